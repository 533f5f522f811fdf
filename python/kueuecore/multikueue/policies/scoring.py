"""Chooses workers by priority, weight, free quota, cost, data, or a score of your own.

With Kueue's default dispatcher, all workers get a copy and the fastest wins. Here, the best worker gets one first, and
the next best only if the workload is not admitted after a while.

Example:
    >>> prices = {"west": 3.0, "east": 1.0}
    >>> cheapest = Scored(score=by_cost(prices))
    >>> clusters = tuple(KnownCluster(name=name, is_connected=True) for name in prices)
    >>> cheapest.nominate(Dispatch(workload={}, clusters=clusters, now=0)).clusters
    ('east',)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kueuecore._arguments import number
from kueuecore._conditions import is_true
from kueuecore._json import text_at, texts_at
from kueuecore.multikueue.dispatcher_protocol import Dispatch, KnownCluster, Nomination
from kueuecore.multikueue.policies.quota import WorkerQuota, has_room

__all__ = [
    "COST",
    "DATA",
    "PRIORITY",
    "WEIGHT",
    "Score",
    "Scored",
    "by_cost",
    "by_data",
    "by_free_quota",
    "by_priority",
    "by_weight",
    "job_annotations",
    "weighed",
]

PRIORITY = "multikueue.kueuecore/priority"
"""Annotation of a MultiKueueCluster: its priority, a number; the highest goes first."""
WEIGHT = "multikueue.kueuecore/weight"
"""Annotation of a MultiKueueCluster: its share of the workloads, a number."""
COST = "multikueue.kueuecore/cost"
"""Annotation of a MultiKueueCluster: what it costs, a number; the lowest goes first."""
DATA = "multikueue.kueuecore/data"
"""Annotation of a MultiKueueCluster: the data it has; of a job: the data it reads. Names separated by commas."""

Score: TypeAlias = Callable[[Dispatch, KnownCluster], float]
"""Returns how well a worker suits a workload: the highest goes first. Pure: the same input gives the same output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Nominates the best workers, and then the next best if none has admitted the workload after a while.

    Equal scores follow the order of the MultiKueueConfig. Workers that are not connected are left out.

    Args:
        score: Returns how well a worker suits a workload.
        step_size: How many workers a round adds.
        round_ns: How long a round lasts.
        prefers_room: Whether workers whose free quota is known to suffice go first. A round then ends
            early if another worker has room and no nominated one does.
        waits_for_checks: Whether to nominate only once all other checks are Ready.
    """

    score: Score
    step_size: int = 1
    round_ns: int = 300_000_000_000
    prefers_room: bool = False
    waits_for_checks: bool = True

    def __post_init__(self) -> None:
        """Refuse settings with which no worker would ever be nominated."""
        if not callable(self.score):
            raise TypeError(f"score must be a function, not {type(self.score).__name__}")
        for name, value in (("step_size", self.step_size), ("round_ns", self.round_ns)):
            if number(name, value) == 0:
                raise ValueError(f"{name} must be greater than 0")

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Keep what is nominated, and add the next best workers if the round is over."""
        there = [cluster for cluster in dispatch.clusters if cluster.is_connected]
        names = {cluster.name for cluster in there}
        nominated = tuple(name for name in dispatch.nominated if name in names)
        begun = dispatch.nominated_at
        left = [cluster for cluster in there if cluster.name not in nominated]
        is_under_way = bool(nominated) and begun is not None and dispatch.now - begun < self.round_ns
        if is_under_way and not self._has_found_room(dispatch, nominated, left):
            return Nomination(nominated, (begun or 0) + self.round_ns)
        left.sort(
            key=lambda cluster: (self.prefers_room and not has_room(dispatch, cluster), -self.score(dispatch, cluster))
        )
        more = tuple(cluster.name for cluster in left[: self.step_size])
        return Nomination((*nominated, *more))

    def _has_found_room(self, dispatch: Dispatch, nominated: Sequence[str], left: Sequence[KnownCluster]) -> bool:
        """Return whether a round may end early: another worker has room, and no nominated one does."""
        if not self.prefers_room or not any(has_room(dispatch, cluster) for cluster in left):
            return False
        asked = [cluster for cluster in dispatch.clusters if cluster.name in nominated]
        return not any(is_true(cluster.workload, "QuotaReserved") or has_room(dispatch, cluster) for cluster in asked)


# Scores are objects, not closures, so that they can be sent to other processes.


@dataclass(frozen=True, slots=True, eq=False)
class _ByNumber:
    """Scores a worker by a number that it has."""

    values: Mapping[str, float] | None
    annotation: str
    is_better_low: bool = False

    def __call__(self, dispatch: Dispatch, cluster: KnownCluster) -> float:
        value = _number(cluster, self.values, self.annotation, 0.0)
        return -value if self.is_better_low else value


@dataclass(frozen=True, slots=True, eq=False)
class _ByFreeQuota:
    """Scores a worker by its free quota of a resource."""

    resource: str

    def __call__(self, dispatch: Dispatch, cluster: KnownCluster) -> float:
        quota = WorkerQuota.of(cluster)
        return 0.0 if quota is None else float(quota.free(self.resource))


@dataclass(frozen=True, slots=True, eq=False)
class _ByData:
    """Scores a worker by how much of the job's data it has."""

    def __call__(self, dispatch: Dispatch, cluster: KnownCluster) -> float:
        wanted = _names(job_annotations(dispatch).get(DATA, ""))
        return float(len(wanted & _names(cluster.annotations.get(DATA, ""))))


@dataclass(frozen=True, slots=True, eq=False)
class _ByWeight:
    """Scores a worker by a draw of the workload, weighted."""

    weights: Mapping[str, float] | None

    def __call__(self, dispatch: Dispatch, cluster: KnownCluster) -> float:
        weight = _number(cluster, self.weights, WEIGHT, 1.0)
        who = f"{text_at(dispatch.workload, 'metadata', 'uid')}/{cluster.name}"
        drawn = int.from_bytes(hashlib.sha256(who.encode()).digest()[:6], "big")
        return weight / -math.log((drawn + 1) / (2**48 + 1)) if weight > 0 else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class _Weighed:
    """Scores a worker by a weighted sum of scores."""

    parts: Mapping[Score, float]

    def __call__(self, dispatch: Dispatch, cluster: KnownCluster) -> float:
        return sum(weight * score(dispatch, cluster) for score, weight in self.parts.items())


def by_priority(priorities: Mapping[str, float] | None = None) -> Score:
    """Prefer the worker with the highest priority: by default annotation `multikueue.kueuecore/priority`, or else 0."""
    return _ByNumber(priorities, PRIORITY)


def by_cost(costs: Mapping[str, float] | None = None) -> Score:
    """Prefer the cheapest worker: by default annotation `multikueue.kueuecore/cost`, or else 0."""
    return _ByNumber(costs, COST, is_better_low=True)


def by_free_quota(resource: str) -> Score:
    """Prefer the worker with the most free quota of a resource, as far as the manager knows."""
    return _ByFreeQuota(resource)


def by_data() -> Score:
    """Prefer the worker with most of the data that the job reads: annotation `multikueue.kueuecore/data` of both."""
    return _ByData()


def by_weight(weights: Mapping[str, float] | None = None) -> Score:
    """Spread workloads by weight: by default annotation `multikueue.kueuecore/weight`, or else 1.

    Which worker goes first depends on the workload alone (rendezvous hashing): a worker added to the config takes its
    share of workloads, and moves no others.
    """
    return _ByWeight(weights)


def weighed(parts: Mapping[Score, float]) -> Score:
    """Combine several scores, each multiplied by its weight.

    Example:
        >>> score = weighed({by_priority({"west": 2}): 10.0, by_cost({"west": 3}): 1.0})
        >>> score(Dispatch(workload={}, clusters=(), now=0), KnownCluster(name="west", is_connected=True))
        17.0
    """
    return _Weighed(parts)


def job_annotations(dispatch: Dispatch) -> dict[str, str]:
    """Return the annotations of the job, completed by those of its Workload."""
    of_workload, of_job = (texts_at(entry, "metadata", "annotations") for entry in (dispatch.workload, dispatch.job))
    return {**of_workload, **of_job}


def _number(cluster: KnownCluster, given: Mapping[str, float] | None, annotation: str, default: float) -> float:
    if given is not None:
        return given.get(cluster.name, default)
    try:
        value = float(cluster.annotations.get(annotation, default))
    except ValueError:
        return default
    return value if math.isfinite(value) else default


def _names(text: str) -> set[str]:
    return {name.strip() for name in text.split(",") if name.strip()}
