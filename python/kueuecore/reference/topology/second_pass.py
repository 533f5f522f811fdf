"""The second pass: for workloads that hold quota, but whose pods have no place yet or lost it (rules/08 §11.10)."""

from __future__ import annotations

from kueuecore.reference import conditions, times
from kueuecore.reference.objects import key
from kueuecore.reference.settings import Json
from kueuecore.reference.topology.phase import stands_on_failed_node

_LONGEST = 30 * times.SECOND


def is_needed(workload: Json) -> bool:
    """Return whether it needs another pass (rules/08 §11.10)."""
    is_out = any(conditions.is_true(workload, kind) for kind in ("Finished", "Evicted"))
    if is_out or not conditions.has_reservation(workload) or conditions.is_on_hold(workload):
        return False
    checks = conditions.check_states(workload)
    is_due = bool(checks) and all(check["state"] == "Ready" for check in checks)
    is_pending = any(
        assignment.get("delayedTopologyRequest") == "Pending" and not assignment.get("topologyAssignment")
        for assignment in conditions.admission(workload).get("podSetAssignments") or ()
    )
    is_placed_late = is_due and is_pending and not conditions.is_true(workload, "Admitted")
    return is_placed_late or stands_on_failed_node(workload)


class SecondPasses:
    """The workloads that wait for a second pass, and those ready for one.

    Each workload is kept as it was when it was added: later versions change nothing.

    Args:
        keeps_first: Whether a workload that waits is not added again; else the timer counts that expires first.

    Attributes:
        waiting: Waiting workloads by key, in order, with their time and the number of tries by then.
        ready: Heads of the next cycle, by key.
    """

    def __init__(self, *, keeps_first: bool) -> None:
        self.keeps_first = keeps_first
        self.waiting: dict[str, tuple[int, Json, int]] = {}
        self.ready: dict[str, tuple[Json, int]] = {}

    def put(self, workload: Json, n_tries: int, now: int) -> bool:
        """Let a workload wait, if it needs a pass and does not wait already. Returns whether it was added."""
        name = key(workload)
        if not is_needed(workload):
            if n_tries > 0:
                self.forget(name)
            return False
        # A timer may have expired without a cycle since, as in a replica that does not lead.
        self.advance(now - 1)
        # An update to the version that is already ready is no news.
        if (self.keeps_first and name in self.waiting) or (name in self.ready and self.ready[name][0] == workload):
            return False
        time = now + min(times.SECOND * 2**n_tries, _LONGEST)
        if name not in self.waiting or time < self.waiting[name][0]:
            self.waiting.pop(name, None)
            self.waiting[name] = time, workload, n_tries + 1
        return True

    def forget(self, name: str) -> None:
        """Stop waiting for a workload. In Kueue its timer continues, and also releases one that is added meanwhile."""
        self.waiting.pop(name, None)
        self.ready.pop(name, None)

    def next(self) -> int | None:
        """Return when the next one is ready."""
        return min((time for time, _, _ in self.waiting.values()), default=None)

    def advance(self, now: int) -> None:
        """Make those ready whose timers have expired."""
        due = {name: each for name, each in self.waiting.items() if each[0] <= now}
        for name, (_, workload, n_tries) in due.items():
            del self.waiting[name]
            self.ready[name] = workload, n_tries

    def take(self) -> list[tuple[Json, int]]:
        """Remove and return all that are ready, by key; Kueue takes them in any order."""
        ready, self.ready = self.ready, {}
        return [ready[name] for name in sorted(ready)]
