"""Local first: only jobs that find no quota on the manager for a while go to the workers.

In Kueue, the LocalQueue decides once and for all whether a job is dispatched. Here, a job waits in a queue without the
MultiKueue check; when quota there has been short for long enough, `Manager(overflow=...)` recreates it in a queue that
has the check. It has not run yet, so nothing is lost; it is recreated because `spec.managedBy` cannot be changed.

Example:
    >>> job = {"kind": "Job", "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "here"}}, "spec": {}}
    >>> short = {"type": "QuotaReserved", "status": "False", "reason": "WaitingForQuota"}
    >>> workload = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"conditions": [short]}}
    >>> overflow = Overflow({"here": "workers"}, patience_ns=60_000_000_000)
    >>> overflow.look(job, workload, now="2026-01-01T00:00:30Z").queue
    ''
    >>> overflow.look(job, workload, now="2026-01-01T00:01:00Z").queue
    'workers'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kueuecore._conditions import condition, has_quota
from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore.multikueue.dispatcher_protocol import Overflowing
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["Overflow", "circle_of"]

_QUEUE = "kueue.x-k8s.io/queue-name"
_NEVER = "ExceedsMaxQuota"
# Why a Workload waits if quota is short; empty: nothing has been reported yet.
_SHORT = ("WaitingForQuota", _NEVER, "")


@dataclass(frozen=True, slots=True)
class Overflow:
    """Moves jobs on when quota on the manager is short.

    Args:
        queues: Where jobs go when a LocalQueue on the manager is full: LocalQueue names, by LocalQueue name.
        patience_ns: How long quota must have been short.

    Raises:
        TypeError: The queues are not names.
        ValueError: Jobs would move in a circle, a queue has no name, or the patience is negative.
    """

    queues: Mapping[str, str]
    patience_ns: int = 0

    def __post_init__(self) -> None:
        """Validate the arguments."""
        if not isinstance(self.queues, Mapping):
            raise TypeError(f"queues must map names to names, not be {type(self.queues).__name__}")
        for name in (*self.queues, *self.queues.values()):
            if not isinstance(name, str):
                raise TypeError(f"queues must hold names, not {type(name).__name__}")
            if not name:
                raise ValueError("queues has a LocalQueue without a name")
        if circle := circle_of(self.queues):
            raise ValueError(
                f"queues: jobs would go in a circle: {' -> '.join(circle)}; let them end in a queue that forwards none"
            )
        patience: object = self.patience_ns
        if not isinstance(patience, int) or isinstance(patience, bool):
            raise TypeError(f"patience_ns must be a number of nanoseconds, not {type(patience).__name__}")
        if patience < 0:
            raise ValueError(f"patience_ns is {self.patience_ns}; give 0 or more")

    def look(self, job: JsonObject, workload: JsonObject, *, now: TimeLike) -> Overflowing:
        """Return where a job goes. It moves on if quota is short; at once if it asks for more than there ever is.

        A Workload that never had quota has waited since its creation, even while Kueue has not reported on it: then it
        is behind others, or like one that did not fit (rules/05 §4). An evicted one has waited since its eviction.

        Args:
            job: The job.
            workload: Its Workload.
            now: The time.
        """
        target = self.queues.get(texts_at(job, "metadata", "labels").get(_QUEUE, ""))
        short = condition(workload, "QuotaReserved")
        is_over = condition(workload, "Finished") is not None or object_at(workload, "spec").get("active") is False
        reason = text_at(short, "reason")
        if not target or has_quota(workload) or is_over or reason not in _SHORT:
            return Overflowing()
        was_evicted = condition(workload, "Evicted") is not None
        since = text_at(short, "lastTransitionTime") if was_evicted else ""
        due = nanoseconds(since or text_at(workload, "metadata", "creationTimestamp"))
        due += 0 if reason == _NEVER else self.patience_ns
        if nanoseconds(now) < due:
            return Overflowing(look_again=due)
        return Overflowing(queue=target)


def circle_of(queues: Mapping[str, str]) -> tuple[str, ...]:
    """Return the first circle in which jobs would move forever; empty if there is none.

    Example:
        >>> circle_of({"a": "b", "b": "a"}), circle_of({"a": "b", "b": "c"})
        (('a', 'b', 'a'), ())
    """
    seen: set[str] = set()
    for first in queues:
        queue, path = first, list[str]()
        while queue in queues and queue not in seen:
            seen.add(queue)
            path.append(queue)
            queue = queues[queue]
        if queue in path:
            return (*path[path.index(queue) :], queue)
    return ()
