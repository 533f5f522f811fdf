"""The arithmetic of quotas finds what was given away twice, and nothing else."""

from __future__ import annotations

from itertools import count

import pytest

from kueuecore._json import JsonObject
from scripts.clusters.ledger import Revision
from scripts.clusters.quotas import exceeded

VERSIONS = count(1)


def queue(name: str, cpus: int, *, at: float = 0.0, **limits: str) -> Revision:
    resource: JsonObject = {"name": "cpu", "nominalQuota": str(cpus), **limits}
    group: JsonObject = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [resource]}]}
    spec: JsonObject = {"cohortName": "all", "resourceGroups": [group]}
    return Revision(next(VERSIONS), "ClusterQueue", {"metadata": {"name": name, "uid": name}, "spec": spec}, False, at)


def workload(name: str, queue: str, cpus: int, *, at: float, holds: bool = True, by: str = "") -> Revision:
    """A Workload that holds quota or not, and may be preempted by another."""
    container: JsonObject = {"resources": {"requests": {"cpu": "1"}}}
    pod_set: JsonObject = {"name": "main", "count": cpus, "template": {"spec": {"containers": [container]}}}
    assigned: JsonObject = {
        "name": "main",
        "count": cpus,
        "flavors": {"cpu": "f"},
        "resourceUsage": {"cpu": str(cpus)},
    }
    conditions: list[JsonObject] = [{"type": "QuotaReserved", "status": "True"}] if holds else []
    if by:
        message = (
            f"Preempted to accommodate a workload (UID: {by}, JobUID: x) due to prioritization in the ClusterQueue"
        )
        conditions.append({"type": "Evicted", "status": "True", "reason": "Preempted", "message": message})
    status: JsonObject = {"conditions": [*conditions]}
    if holds:
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": [assigned]}
    plain: JsonObject = {
        "metadata": {"name": name, "uid": name},
        "spec": {"queueName": queue, "podSets": [pod_set]},
        "status": status,
    }
    return Revision(next(VERSIONS), "Workload", plain, False, at)


def test_more_than_there_is_is_found() -> None:
    rows = [queue("a", 4), queue("b", 4, lendingLimit="2")]
    assert list(exceeded([*rows, workload("x", "a", 6, at=1)])) == []
    (problem,) = exceeded([*rows, workload("x", "a", 7, at=1)])
    assert "x: cohort all uses 7000 of 6000" in problem
    (problem,) = exceeded([queue("a", 4, borrowingLimit="1"), queue("b", 4), workload("x", "a", 6, at=1)])
    assert "a uses 6000 of" in problem


@pytest.mark.parametrize("lag", [-1.0, 1.0], ids=["written before", "written after"])
@pytest.mark.parametrize(("cpus", "n_problems"), [(1, 0), (2, 1)])
def test_what_a_victim_leaves_may_be_given_away_but_not_its_preemptors_part(
    lag: float, cpus: int, n_problems: int
) -> None:
    rows = [
        queue("a", 2),
        queue("b", 2),
        workload("victim", "a", 3, at=1),
        workload("other", "b", 1, at=1),
        workload("preemptor", "a", 2, at=2, holds=False),
        workload("next", "b", cpus, at=10),
        workload("victim", "a", 3, at=10 + lag, by="preemptor"),
    ]
    assert len(list(exceeded(sorted(rows, key=lambda row: row.at)))) == n_problems


def test_a_victim_that_is_admitted_again_counts_again() -> None:
    rows = [
        queue("a", 4),
        workload("victim", "a", 3, at=1),
        workload("preemptor", "a", 2, at=2, holds=False),
        workload("victim", "a", 3, at=3, by="preemptor"),
        workload("victim", "a", 3, at=4, holds=False),
        workload("preemptor", "a", 2, at=5),
    ]
    assert list(exceeded(rows)) == []
    (problem,) = exceeded([*rows, workload("victim", "a", 3, at=6)])
    assert "victim: cohort all uses 5000 of 4000" in problem
