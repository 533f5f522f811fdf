"""The dispatcher protocol: given what is known of a workload and the workers, it says which get a copy.

A dispatcher of your own is any object with a method `nominate`. It does no I/O and has no clock; whatever it remembers
besides its arguments is lost when the manager restarts.

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
    """What became of a workload on the worker that had won it, when it was taken back (rules/06 §4)."""

    EVICTED = "Evicted"
    """The worker evicted it."""
    LOST = "Lost"
    """The worker was away for too long."""
    GONE = "Gone"
    """The worker is there, and its Workload is not, or is not admitted any more."""
    OUT_OF_SYNC = "OutOfSync"
    """The worker found that Workload and job do not fit."""
    RECALLED = "Recalled"
    """The dispatcher took it back."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One worker that had won a workload once.

    Args:
        cluster: The worker.
        outcome: What became of it.
        at: When it was taken back, in nanoseconds since 1970.
    """

    cluster: str
    outcome: AttemptOutcome
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownCluster:
    """What a manager knows of one worker, seen from one workload.

    Args:
        name: Name of the MultiKueueCluster.
        is_connected: Is it?
        lost_at: Since when it is not, in nanoseconds since 1970; None if it is, or if nobody knows it.
        labels: Labels of the MultiKueueCluster.
        annotations: Its annotations.
        workload: The copy of the workload on it; None if there is none, or it is not connected.
        job: The copy of its job; of a group of pods, the first pod.
        local_queue: The LocalQueue on it that the workload would be in; None if the manager has not seen it.
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
    """What a dispatcher is given.

    Args:
        workload: The Workload on the manager, as it is stored. It has quota, and its check is Pending.
        job: Its job; of a group of pods, the first pod.
        clusters: The workers of its MultiKueueConfig, in the order of the config.
        now: The time, in nanoseconds since 1970.
        nominated: `status.nominatedClusterNames`.
        nominated_at: When this dispatcher nominated last; None if it has not since the workload got its quota, or since
            the manager started.
        attempts: Workers that had won it before, the oldest first. They stand in a condition of the Workload, so that
            a manager that starts anew knows them.
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
    """What is otherwise on one worker: merge patches (RFC 7386), an image registry of its own say (rules/00 H5).

    Both have to say the same of the pods, or the worker finds that Workload and job do not fit.

    Args:
        workload: For the copy of the Workload.
        job: For the copy of the job.

    Raises:
        ValueError: One of them changes what the object is known by: the manager would look for the copy in vain, and
            make another one, forever.
    """

    workload: JsonObject = field(default_factory=dict)
    job: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what was given."""
        for what, patch in (("workload", self.workload), ("job", self.job)):
            metadata = patch.get("metadata")
            known_by = [*(patch.keys() & _IDENTITY), *(object_at(metadata).keys() & _METADATA_IDENTITY)]
            if known_by or not isinstance(metadata, dict | None):
                raise ValueError(f"{what} is to stay what it is: leave out {', '.join(sorted(known_by)) or 'metadata'}")


@dataclass(frozen=True, slots=True)
class Nomination:
    """What a dispatcher says.

    Args:
        clusters: All clusters that are to have a copy, in the order in which they are to be listed. It is written to
            the Workload only if the set is another than before; whoever is not in it any more loses its copy.
        look_again: When to ask again if nothing happens before, in nanoseconds since 1970; None: then not.
        overrides: What is otherwise on a worker, by cluster. It counts for copies that are made from then on.
        problem: What is wrong; the manager reports it and retries later.
        withdrawn: A worker that has got no further with its copy and loses it: from then on it is among the attempts.
        rejection: Why no worker will ever do: the check is Rejected, which ends the workload. Empty: it is not.
    """

    clusters: tuple[str, ...]
    look_again: int | None = None
    overrides: Mapping[str, Override] = field(default_factory=dict)
    problem: str = ""
    withdrawn: str = ""
    rejection: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no list of names: a text would be one of letters."""
        names: object = self.clusters
        if not isinstance(names, tuple | list) or not all(isinstance(it, str) for it in names):
            raise TypeError(f"clusters must be a tuple of names, such as ('east', 'west'), not {shown(names)}")


@runtime_checkable
class Dispatcher(Protocol):
    """Who gets a copy of a workload."""

    @property
    def waits_for_checks(self) -> bool:
        """Is it asked only once all other checks are Ready? If not, it nominates before; copies are made after."""

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Return which clusters get a copy, and when to ask again.

        Called at every reconcile of the workload: after a change to it, its job, its copies or a worker's quota, when
        a worker joins or leaves, and when the time to ask again has come.
        """


@dataclass(frozen=True, slots=True)
class Recall:
    """Whether a workload is taken back from the worker that has won it.

    Args:
        message: Why; empty: it stays.
        look_again: When to ask again if nothing happens before, in nanoseconds since 1970; None: then not.
    """

    message: str = ""
    look_again: int | None = None


@runtime_checkable
class RecallingDispatcher(Dispatcher, Protocol):
    """A dispatcher that takes workloads back from workers that do not get on with them (rules/00 H4)."""

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        """Is the workload to be taken back? Asked at every reconcile while `cluster` runs it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflowing:
    """What is to become of a job that waits in a queue of the manager itself.

    Args:
        queue: The LocalQueue to which it goes; empty, or the one in which it is: it stays.
        look_again: When to look again if nothing happens before, in nanoseconds since 1970; None: then not.
    """

    queue: str = ""
    look_again: int | None = None


@runtime_checkable
class OverflowPolicy(Protocol):
    """Which jobs that wait for quota of the manager itself go on to a queue that dispatches (rules/00 H3)."""

    def look(self, job: JsonObject, workload: JsonObject, *, now: TimeLike) -> Overflowing:
        """Decide what happens to a job. Asked at every reconcile of its Workload.

        Args:
            job: The job.
            workload: Its Workload.
            now: The time.
        """
