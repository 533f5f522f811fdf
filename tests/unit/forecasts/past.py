"""Jobs of the past, for tests of what is drawn from them."""

from __future__ import annotations

from kueuecore.forecasts.past_jobs import PastJob
from tests.unit.forecasts.present_states import START

__all__ = ["job"]


def job(
    *,
    created: float,
    started: float | None = None,
    ended: float | None = None,
    name: str = "train-1",
    queue: str = "lq",
    cpu: int = 1,
    limit: float | None = None,
    template: str = "template",
) -> PastJob:
    """A job; times are seconds before the start, or after it if negative."""

    def at(seconds: float | None) -> int | None:
        return None if seconds is None else START - round(seconds * 1e9)

    return PastJob(
        namespace="ns",
        local_queue=queue,
        cluster_queue="cq",
        name=name,
        priority=0,
        requests={"cpu": 1000 * cpu},
        n_pods=1,
        limit_seconds=limit,
        labels={},
        created=at(created),
        started=at(started),
        ended=at(ended),
        template={"kind": "Workload", "metadata": {"namespace": "ns", "name": template}, "spec": {"queueName": queue}},
    )
