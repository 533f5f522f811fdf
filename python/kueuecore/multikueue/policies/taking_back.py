"""Takes a workload back from a worker on which it makes no progress.

Kueue leaves a workload on the worker that has admitted it, whether or not its pods ever start.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kueuecore._conditions import condition, is_true
from kueuecore._json import JsonObject, text_at
from kueuecore.jobs import JobsConfiguration, integration_of
from kueuecore.multikueue.attempts import MAX_ATTEMPTS
from kueuecore.multikueue.dispatcher_protocol import (
    Attempt,
    AttemptOutcome,
    Dispatch,
    Dispatcher,
    KnownCluster,
    Nomination,
    Recall,
)
from kueuecore.multikueue.policies.wrapping import among, inner_recall
from kueuecore.times import nanoseconds

__all__ = ["TakingBack"]

_MINUTE_NS = 60_000_000_000
_COUNTED = (AttemptOutcome.RECALLED, AttemptOutcome.EVICTED, AttemptOutcome.LOST)
# Beyond this, exclusions no longer double.
_MAX_DOUBLINGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TakingBack:
    """Takes stuck workloads back, and excludes such a worker for a while, doubling the time after each failure.

    Args:
        inner: The dispatcher that chooses among the other workers.
        admit_ns: How long a worker may hold quota for a copy without admitting it, for example because checks are not
            ready; then it loses the copy if another worker may have one. None: no limit.
        start_ns: How long the job may take to start after its admission there. None: no limit.
        exclude_ns: How long a worker is excluded after its first failure with a workload.
        most_attempts: The number of failures, at most 100, after which the workload is rejected. None: never.

    Raises:
        ValueError: A time is negative, or there are more attempts than are remembered.
    """

    inner: Dispatcher
    admit_ns: int | None = 5 * _MINUTE_NS
    start_ns: int | None = 5 * _MINUTE_NS
    exclude_ns: int = 10 * _MINUTE_NS
    most_attempts: int | None = None

    def __post_init__(self) -> None:
        """Validate the arguments."""
        for name in ("admit_ns", "start_ns", "exclude_ns"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; give 0 or more")
        if self.most_attempts is not None and not 1 <= self.most_attempts <= MAX_ATTEMPTS:
            raise ValueError(f"most_attempts is {self.most_attempts}; give 1 to {MAX_ATTEMPTS}: no more are remembered")

    @property
    def waits_for_checks(self) -> bool:
        """The setting of the inner dispatcher."""
        return self.inner.waits_for_checks

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Nominate what the inner dispatcher chooses from the workers that are not excluded."""
        failed = [attempt for attempt in dispatch.attempts if attempt.outcome in _COUNTED]
        if self.most_attempts is not None and len(failed) >= self.most_attempts:
            reported = ", ".join(f"{attempt.cluster} ({attempt.outcome})" for attempt in failed)
            return Nomination((), rejection=f"Given up after {len(failed)} attempts: {reported}")
        until = {cluster.name: self._excluded_until(failed, cluster.name) for cluster in dispatch.clusters}
        left = [cluster for cluster in dispatch.clusters if until[cluster.name] <= dispatch.now]
        times = [time for time in until.values() if time > dispatch.now]
        stuck = ""
        for cluster in left:
            since = self._stuck_since(cluster)
            if since is None or self.admit_ns is None:
                continue
            if dispatch.now < since + self.admit_ns:
                times.append(since + self.admit_ns)
            elif not stuck and any(other.is_connected and other is not cluster for other in left):
                stuck = cluster.name
        names = {cluster.name for cluster in left if cluster.name != stuck}
        nomination = among(self.inner, dispatch, lambda entry: entry.name in names) if names else Nomination(())
        if nomination.look_again is not None:
            times.append(nomination.look_again)
        return replace(nomination, look_again=min(times, default=None), withdrawn=stuck or nomination.withdrawn)

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        """Take the workload back if its job should have started by now."""
        inner = inner_recall(self, dispatch, cluster)
        if inner.message or self.start_ns is None:
            return inner
        known = next((other for other in dispatch.clusters if other.name == cluster), None)
        since = _since(known.workload if known is not None else None, "Admitted")
        if known is None or since is None or _has_started(known):
            return inner
        if dispatch.now >= since + self.start_ns:
            seconds = self.start_ns // 1_000_000_000
            return Recall(f'The job has not started on "{cluster}" within {seconds}s')
        times = [since + self.start_ns, *([inner.look_again] if inner.look_again is not None else [])]
        return Recall(look_again=min(times))

    def _excluded_until(self, failed: list[Attempt], cluster: str) -> int:
        times = [attempt.at for attempt in failed if attempt.cluster == cluster]
        return times[-1] + self.exclude_ns * 2 ** min(len(times) - 1, _MAX_DOUBLINGS) if times else 0

    def _stuck_since(self, cluster: KnownCluster) -> int | None:
        """Return since when a worker has held quota for the copy without admitting it."""
        return None if is_true(cluster.workload, "Admitted") else _since(cluster.workload, "QuotaReserved")


def _since(workload: JsonObject | None, kind: str) -> int | None:
    if workload is None or not is_true(workload, kind):
        return None
    return nanoseconds(text_at(condition(workload, kind), "lastTransitionTime"))


def _has_started(cluster: KnownCluster) -> bool:
    """Return whether all pods of the job are ready or it is over, by its Workload if that says so, else by the job."""
    if is_true(cluster.workload, "PodsReady") or is_true(cluster.workload, "Finished"):
        return True
    integration = integration_of(cluster.job) if cluster.job is not None else None
    return (
        cluster.job is not None
        and integration is not None
        and integration.are_pods_ready(cluster.job, JobsConfiguration())
    )
