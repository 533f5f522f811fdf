"""Limits that are called dead are dead, and no others: in random cohorts nothing changes without them."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

import pytest

from kueuecore import Engine, World, settle
from kueuecore.findings import check

KUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
FLAVORS = ("f", "g")


def flavors_of(rng: Random, *, has_parent: bool, is_cohort: bool) -> list[dict[str, Any]]:
    found = []
    for name in FLAVORS[: rng.choice([1, 2, 2])]:
        nominal = rng.choice([0, 2, 4, 6])
        resource: dict[str, Any] = {"name": "cpu", "nominalQuota": nominal}
        if has_parent and rng.random() < 0.5:
            resource["borrowingLimit"] = rng.choice([0, 1, 4, 9, 20])
        if has_parent and rng.random() < 0.5:
            resource["lendingLimit"] = rng.choice([0, 1, nominal]) if is_cohort or nominal else 0
        found.append({"name": name, "resources": [resource]})
    return found


def world(rng: Random) -> list[dict[str, Any]]:
    """A tree of cohorts with ClusterQueues, and workloads of many sizes in them."""
    objects: list[dict[str, Any]] = [
        {**KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}} for name in FLAVORS
    ]
    parents = {"root": "", "left": "root", "right": "root"}
    for name, parent in parents.items():
        groups = [{"coveredResources": ["cpu"], "flavors": flavors_of(rng, has_parent=bool(parent), is_cohort=True)}]
        spec: dict[str, Any] = {"resourceGroups": groups} if rng.random() < 0.6 else {}
        above = {"parentName": parent} if parent else {}
        objects.append({**KUEUE, "kind": "Cohort", "metadata": {"name": name}, "spec": spec | above})
    for i in range(rng.randint(2, 4)):
        flavors = flavors_of(rng, has_parent=True, is_cohort=False)
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        for flavor in flavors:
            quota = flavor["resources"][0]
            quota["lendingLimit"] = min(quota.get("lendingLimit", 99), quota["nominalQuota"])
        spec = {"cohortName": rng.choice([*parents]), "namespaceSelector": {}, "resourceGroups": groups}
        objects.append({**KUEUE, "kind": "ClusterQueue", "metadata": {"name": f"q{i}"}, "spec": spec})
        metadata = {"name": f"q{i}", "namespace": "team"}
        objects.append({**KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": f"q{i}"}})
        objects += [workload(f"w{i}{j}", f"q{i}", rng.choice([1, 1, 2, 3, 5, 8])) for j in range(6)]
    return objects


def workload(name: str, queue: str, count: int) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}
    spec = {"queueName": queue, "podSets": [{"name": "main", "count": count, "template": template}]}
    return {**KUEUE, "kind": "Workload", "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def outcome(objects: list[dict[str, Any]]) -> tuple[object, ...]:
    """What could be used where, and who gets which flavors."""
    engine = Engine()
    World.of(objects).apply_to(engine, now=0)
    potential = [
        (row.name, row.flavor, row.potential_available) for row in engine.quota() if row.kind == "ClusterQueue"
    ]
    settle(engine, now=0)
    return potential, [(other.key, other.stage, other.flavors) for other in engine.workloads()]


def quota_at(objects: list[dict[str, Any]], name: str, path: str) -> dict[str, Any]:
    """The quota of an object that a path such as `spec.resourceGroups[0].flavors[1].resources[0].x` leads to."""
    spec = next(
        object_["spec"]
        for object_ in objects
        if object_["kind"] in ("ClusterQueue", "Cohort") and object_["metadata"]["name"] == name
    )
    index = int(path.split("flavors[")[1][0])
    quota: dict[str, Any] = spec["resourceGroups"][0]["flavors"][index]["resources"][0]
    return quota


def limits(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """All limits above 0 that stand in the objects: name and path."""
    return {
        (object_["metadata"]["name"], f"spec.resourceGroups[0].flavors[{i}].resources[0].{limit}")
        for object_ in objects
        if object_["kind"] in ("ClusterQueue", "Cohort") and "resourceGroups" in object_["spec"]
        for i, flavor in enumerate(object_["spec"]["resourceGroups"][0]["flavors"])
        for limit in ("borrowingLimit", "lendingLimit")
        if flavor["resources"][0].get(limit)
    }


@pytest.mark.parametrize("seed", range(60))
def test_removing_a_limit_that_never_binds_changes_nothing(seed: int) -> None:
    objects = world(Random(seed))
    found = check(objects, select=["loose-borrowing-limit", "loose-lending-limit"])
    without = deepcopy(objects)
    for finding in found:
        assert finding.object is not None
        del quota_at(without, finding.object.name, finding.problem.field)[finding.problem.field.rpartition(".")[2]]
    assert outcome(without) == outcome(objects)


@pytest.mark.parametrize("seed", range(60))
def test_a_borrowing_limit_without_a_finding_does_bind(seed: int) -> None:
    objects = world(Random(seed))
    found = {
        (finding.object.name, finding.problem.field)
        for finding in check(objects, select=["KC201"])
        if finding.object is not None
    }
    before = Engine()
    World.of(objects).apply_to(before, now=0)
    for name, path in sorted(limits(objects) - found):
        if path.endswith("borrowingLimit"):
            without = deepcopy(objects)
            del quota_at(without, name, path)["borrowingLimit"]
            after = Engine()
            World.of(without).apply_to(after, now=0)
            potential = [[row.potential_available for row in engine.quota()] for engine in (before, after)]
            assert potential[0] != potential[1], (name, path)


@pytest.mark.parametrize("seed", range(60))
def test_quota_lent_to_nobody_changes_nothing_for_others(seed: int) -> None:
    objects = world(Random(seed))
    for finding in check(objects, select=["lent-to-nobody"]):
        assert finding.object is not None
        kept = deepcopy(objects)
        quota_at(kept, finding.object.name, finding.problem.field)["lendingLimit"] = 0
        assert outcome(kept) == outcome(objects)
