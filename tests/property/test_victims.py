"""Who is preempted follows from the state alone, however it came about (rules/04 §3)."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine

Json = dict[str, Any]

KUEUE = "kueue.x-k8s.io/v1beta2"
FAIR = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, fairSharing: {preemptionStrategies: "
    "[LessThanOrEqualToFinalShare, LessThanInitialShare]}}"
)
CONFIGURATIONS = (None, FAIR)

quick = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def at(second: int) -> str:
    return f"2026-01-01T00:00:{second:02}Z"


def manifest(kind: str, name: str, spec: Json, **metadata: Any) -> Json:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


@st.composite
def cohorts(draw: st.DrawFn) -> list[Json]:
    """A root and what is below it, 0 to 3 cohorts deep; some with quota of their own."""
    found = []
    for depth in range(draw(st.integers(0, 3))):
        spec: Json = {"parentName": f"cohort-{depth - 1}"} if depth else {}
        if draw(st.booleans()):
            quota = {"name": "cpu", "nominalQuota": draw(st.sampled_from(["0", "1", "3"]))}
            flavors = [{"name": "f0", "resources": [quota]}]
            spec["resourceGroups"] = [{"coveredResources": ["cpu"], "flavors": flavors}]
        found.append(manifest("Cohort", f"cohort-{depth}", spec))
    return found


@st.composite
def queues(draw: st.DrawFn, cohort_names: list[str]) -> list[Json]:
    found = []
    for number in range(draw(st.integers(1, 4))):
        cohort = draw(st.sampled_from(cohort_names or [""]))
        flavors = []
        for flavor in ("f0", "f1")[: draw(st.sampled_from([1, 1, 2]))]:
            quota: Json = {"name": "cpu", "nominalQuota": draw(st.sampled_from(["2", "0", "4"]))}
            for limit in ("borrowingLimit", "lendingLimit") if cohort else ():
                amount = draw(st.sampled_from([None, None, None, "0", "2"]))
                if amount is not None:
                    quota[limit] = amount
            flavors.append({"name": flavor, "resources": [quota]})
        preemption: Json = {
            "withinClusterQueue": draw(st.sampled_from(["LowerPriority", "LowerOrNewerEqualPriority", "Never"])),
            "reclaimWithinCohort": draw(st.sampled_from(["Any", "LowerPriority", "Never"])),
            "borrowWithinCohort": {"policy": "Never"},
        }
        if preemption["reclaimWithinCohort"] != "Never" and draw(st.booleans()):
            preemption["borrowWithinCohort"] = {"policy": "LowerPriority"}
        spec: Json = {
            "namespaceSelector": {},
            "queueingStrategy": draw(st.sampled_from(["BestEffortFIFO", "StrictFIFO"])),
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            "preemption": preemption,
            "fairSharing": {"weight": draw(st.sampled_from(["1", "2", "0"]))},
        }
        if cohort:
            spec["cohortName"] = cohort
        name = f"q{number}"
        found += [
            manifest("ClusterQueue", name, spec),
            manifest("LocalQueue", name, {"clusterQueue": name}, namespace="ns"),
        ]
    return found


@st.composite
def worlds(draw: st.DrawFn) -> list[Json]:
    """A world in which workloads run, some on their way out, and others come. Few priorities and times make ties
    common; every UID is another, and none of their orders is that of the names.
    """
    found: list[Json] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}]
    found += [manifest("ResourceFlavor", flavor, {}) for flavor in ("f0", "f1")]
    found += draw(cohorts())
    found += draw(queues([cohort["metadata"]["name"] for cohort in found if cohort["kind"] == "Cohort"]))
    names = [queue["metadata"]["name"] for queue in found if queue["kind"] == "ClusterQueue"]
    n_running, n_pending = draw(st.integers(2, 8)), draw(st.integers(1, 4))
    uids = draw(st.permutations(range(n_running + n_pending)))
    for number, uid in enumerate(uids):
        running = number < n_running
        queue, cpu = draw(st.sampled_from(names)), draw(st.sampled_from(["1", "2", "3"]))
        container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        priority = draw(st.integers(0, 2)) + (0 if running else 1)
        workload = manifest(
            "Workload",
            f"w{number}",
            {"queueName": queue, "priority": priority, "podSets": [pod_set]},
            namespace="ns",
            uid=f"uid-{uid:02}",
            creationTimestamp=at(draw(st.integers(0, 2))),
        )
        if running:
            reserved = at(draw(st.integers(2, 4)))
            kinds = ["QuotaReserved", "Admitted", *draw(st.sampled_from([[], [], [], ["Evicted"]]))]
            assignment = {"name": "main", "count": 1, "flavors": {"cpu": "f0"}, "resourceUsage": {"cpu": cpu}}
            workload["status"] = {
                "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
                "conditions": [
                    {"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": reserved}
                    for kind in kinds
                ],
            }
        found.append(workload)
    return found


def play(batches: list[list[Json]], configuration: Configuration | None) -> list[Any]:
    """What some cycles decide; whoever is preempted has stopped before the next."""
    engine = Engine(configuration)
    for batch in batches:
        engine.apply(json.dumps(batch).encode(), now=at(5), trusted=True)
    told: list[Any] = []
    for second in range(6, 11):
        decision = engine.cycle(at(second))
        told.append((decision.preemptions, decision.admissions, decision.pending, decision.events))
        for victim in decision.preemptions:
            engine.release(victim.name, namespace=victim.namespace, now=at(second))
    return told


@st.composite
def shuffled(draw: st.DrawFn, objects: list[Json]) -> list[list[Json]]:
    batches: list[list[Json]] = [[]]
    for thing in draw(st.permutations(objects)):
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(thing)
    return batches


@quick
@given(st.data(), worlds(), st.sampled_from(CONFIGURATIONS))
def test_the_order_in_which_objects_come_does_not_decide_who_goes(
    data: st.DataObject, objects: list[Json], configuration: Configuration | None
) -> None:
    other = data.draw(shuffled(objects))
    assert play([objects], configuration) == play(other, configuration)


@quick
@given(st.data(), worlds(), st.sampled_from(CONFIGURATIONS))
def test_the_names_of_workloads_do_not_decide_who_goes(
    data: st.DataObject, objects: list[Json], configuration: Configuration | None
) -> None:
    """Names are swapped; what else a workload is stays with its UID."""
    names = [thing["metadata"]["name"] for thing in objects if thing["kind"] == "Workload"]
    renamed = dict(zip(names, data.draw(st.permutations(names)), strict=True))
    other = [
        thing | {"metadata": thing["metadata"] | {"name": renamed[thing["metadata"]["name"]]}}
        if thing["kind"] == "Workload"
        else thing
        for thing in objects
    ]
    for (before, *_), (after, *_) in zip(play([objects], configuration), play([other], configuration), strict=True):
        assert [renamed[victim.name] for victim in before] == [victim.name for victim in after]


def test_there_is_somebody_to_go_in_these_worlds() -> None:
    for configuration in CONFIGURATIONS:

        def has_victims(objects: list[Json], configuration: Configuration | None = configuration) -> bool:
            return sum(len(preemptions) for preemptions, *_ in play([objects], configuration)) > 2

        find(worlds(), has_victims, settings=settings(quick, max_examples=2000, phases=[Phase.generate]))
