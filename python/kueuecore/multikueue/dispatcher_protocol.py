"""The dispatcher protocol: from what is known of a workload and the workers, it decides which workers get a copy.

A dispatcher of your own is any object with a method `nominate`. It does no I/O and has no clock. Any state that it
keeps outside its arguments is lost when the manager restarts.

Example:
    >>> class FirstConnected:
    ...     waits_for_checks = True
    ...     def nominate(self, dispatch):
    ...         there = [cluster.name for cluster in dispatch.clusters if cluster.is_connected]
    ...         return Nomination(tuple(there[:1]))
    >>> east = KnownCluster(name="east", is_connected=False)
    >>> west = KnownCluster(name="west", is_connected=True)
    >>> FirstConnected().nominate(Dispatch(workload={}, clusters=(east, west), now=0)).clusters
    ('west',)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from kueuecore._arguments import shown
from kueuecore._json import JsonObject, object_at
from kueuecore.times import TimeLike

__all__ = [
    "Attempt",
    "AttemptOutcome",
    "Dispatch",
    "Dispatcher",
    "KnownCluster",
    "Nomination",
    "OverflowPolicy",
    "Overflowing",
    "Override",
    "Recall",
    "RecallingDispatcher",
]


_IDENTITY = frozenset({"apiVersion", "kind"})
_METADATA_IDENTITY = frozenset({"name", "namespace"})


class AttemptOutcome(StrEnum):
    """Why a workload was taken back from the worker that had won it (rules/06 §4)."""

    EVICTED = "Evicted"
    """The worker evicted it."""
    LOST = "Lost"
    """The worker was unreachable for too long."""
    GONE = "Gone"
    """The worker is reachable, but its Workload is missing or no longer admitted."""
    OUT_OF_SYNC = "OutOfSync"
    """The worker reported that Workload and job do not match."""
    RECALLED = "Recalled"
    """The dispatcher took it back."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An earlier attempt: a worker that had won a workload, and how that ended.

    Args:
        cluster: The worker.
        outcome: How it ended.
        at: When it was taken back, in nanoseconds since 1970.
    """

    cluster: str
    outcome: AttemptOutcome
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCluster:
    """The state of one worker, as the manager knows it, with respect to one workload.

    Args:
        name: Name of the MultiKueueCluster.
        is_connected: Whether the manager is connected to it.
        lost_at: Since when it is not, in nanoseconds since 1970; None if it is, or if that is unknown.
        labels: Labels of the MultiKueueCluster.
        annotations: Its annotations.
        workload: The copy of the workload on it; None if there is none, or if it is not connected.
        job: The copy of its job; for a group of pods, the first pod.
        local_queue: The LocalQueue that the workload would use there; None if the manager has not seen it.
        cluster_queue: Its ClusterQueue, with quota in `spec` and usage in `status`; None if it has not been seen.
    """

    name: str
    is_connected: bool
    lost_at: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    workload: JsonObject | None = None
    job: JsonObject | None = None
    local_queue: JsonObject | None = None
    cluster_queue: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """The input of a dispatcher: one workload, and the workers that could run it.

    Args:
        workload: The Workload as stored on the manager. It has quota, and its check is Pending.
        job: Its job; for a group of pods, the first pod.
        clusters: The workers of its MultiKueueConfig, in the order of the config.
        now: The time, in nanoseconds since 1970.
        nominated: The value of `status.nominatedClusterNames`.
        nominated_at: When this dispatcher last nominated; None if it has not since the workload got its quota or
            since the manager started.
        attempts: Workers that had won it before, oldest first. They are kept in a condition of the Workload, so they
            survive a restart of the manager.
    """

    workload: JsonObject
    clusters: tuple[KnownCluster, ...]
    now: int
    job: JsonObject = field(default_factory=dict)
    nominated: tuple[str, ...] = ()
    nominated_at: int | None = None
    attempts: tuple[Attempt, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """What differs on one worker, as merge patches (RFC 7386); for example its own image registry.

    Both patches must change the pods alike, or the worker reports that Workload and job do not match.

    Args:
        workload: For the copy of the Workload.
        job: For the copy of the job.

    Raises:
        ValueError: A patch changes a field that identifies the object: the manager would not find the copy, and would
            create another one, again and again.
    """

    workload: JsonObject = field(default_factory=dict)
    job: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Validate the arguments."""
        for what, patch in (("workload", self.workload), ("job", self.job)):
            metadata = patch.get("metadata")
            known_by = [*(patch.keys() & _IDENTITY), *(object_at(metadata).keys() & _METADATA_IDENTITY)]
            if known_by or not isinstance(metadata, dict | None):
                raise ValueError(f"{what} is to stay what it is: leave out {', '.join(sorted(known_by)) or 'metadata'}")


@dataclass(frozen=True, slots=True)
class Nomination:
    """The answer of a dispatcher.

    Args:
        clusters: All clusters that should have a copy, in the order to list them. It is written to the Workload only if
            the set has changed; a cluster that is no longer in it loses its copy.
        look_again: When to ask again if nothing happens before, in nanoseconds since 1970; None: no need to.
        overrides: What differs on a worker, by cluster. It applies to copies made from then on.
        problem: What went wrong; the manager reports it and retries later.
        withdrawn: A worker that made no progress with its copy and loses it; it is recorded among the attempts.
        rejection: Why no worker can ever run it: the check becomes Rejected, which ends the workload. Empty: it is not.
    """

    clusters: tuple[str, ...]
    look_again: int | None = None
    overrides: Mapping[str, Override] = field(default_factory=dict)
    problem: str = ""
    withdrawn: str = ""
    rejection: str = ""

    def __post_init__(self) -> None:
        """Refuse a string where a list of names is expected: it would count as a list of letters."""
        names: object = self.clusters
        if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
            raise TypeError(f"clusters must be a tuple of names, such as ('east', 'west'), not {shown(names)}")


@runtime_checkable
class Dispatcher(Protocol):
    """Decides which workers get a copy of a workload."""

    @property
    def waits_for_checks(self) -> bool:
        """Whether to ask only once all other checks are Ready. If not, it may nominate earlier; copies still wait."""

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Return which clusters get a copy, and when to ask again.

        Called at every reconcile of the workload: after a change to it, its job, its copies or a worker's quota, when
        a worker joins or leaves, and when `look_again` is reached.
        """


@dataclass(frozen=True, slots=True)
class Recall:
    """Whether to take a workload back from the worker that has won it.

    Args:
        message: Why it is taken back; empty: it stays.
        look_again: When to ask again if nothing happens before, in nanoseconds since 1970; None: no need to.
    """

    message: str = ""
    look_again: int | None = None


@runtime_checkable
class RecallingDispatcher(Dispatcher, Protocol):
    """A dispatcher that takes workloads back from workers on which they make no progress."""

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        """Return whether to take the workload back. Called at every reconcile while `cluster` runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflowing:
    """Where a job goes that waits in a queue of the manager itself.

    Args:
        queue: The LocalQueue to move it to; empty, or its present one: it stays.
        look_again: When to look again if nothing happens before, in nanoseconds since 1970; None: no need to.
    """

    queue: str = ""
    look_again: int | None = None


@runtime_checkable
class OverflowPolicy(Protocol):
    """Decides which jobs move on from a queue of the manager itself to one that dispatches."""

    def look(self, job: JsonObject, workload: JsonObject, *, now: TimeLike) -> Overflowing:
        """Return where a job goes. Called at every reconcile of its Workload.

        Args:
            job: The job.
            workload: Its Workload.
            now: The time.
        """
