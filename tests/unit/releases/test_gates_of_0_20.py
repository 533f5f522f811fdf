"""Gates of Kueue 0.20 that the engine decides by, by engine and reference alike."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration, Engine, ManifestError
from kueuecore.objects import PreemptionConfig
from kueuecore.reference import readiness
from kueuecore.reference.world import World
from kueuecore.times import nanoseconds
from tests.builders import cluster_queue, flavor, local_queue

Json = dict[str, Any]
START = "2026-01-01T00:00:00Z"
MINUTE = 60 * 10**9


def at(minutes: float) -> int:
    return nanoseconds(START) + int(minutes * MINUTE)


def workload(name: str = "a", cpu: str = "1", **fields: Any) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "creationTimestamp": START,
            **fields.pop("metadata", {}),
        },
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
        **fields,
    }


def around(**queue: Any) -> list[Json]:
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    objects: list[Any] = [namespace, flavor(), cluster_queue(cpu=10), local_queue()]
    plain = [object_ if isinstance(object_, dict) else object_.to_manifest() for object_ in objects]
    plain[2] |= queue
    return plain


def both(configuration: Json, gates: dict[str, bool], objects: list[Json]) -> tuple[Engine, World]:
    written = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **configuration}
    engine = Engine(Configuration.of([written], feature_gates=gates, release="0.20.0"))
    engine.apply(objects, now=at(0), trusted=True)
    settings = {**configuration, "featureGates": gates, "kueue": "0.20.0"}
    return engine, World(objects, configuration=settings, now=at(0), trusted=True)


def said(status: Any, kind: str) -> tuple[str, str]:
    found = [condition for condition in status.get("conditions", ()) if condition["type"] == kind]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


# Effective quotas (rules/02 §2).


@pytest.mark.parametrize(
    ("status", "is_on", "is_admitted"),
    [
        ({"effectiveQuotas": {"resourceGroups": []}}, True, False),
        ({"effectiveQuotas": {"resourceGroups": []}}, False, True),
        ({}, True, True),
    ],
)
def test_effective_quotas_take_the_place_of_the_specs(status: Json, is_on: bool, is_admitted: bool) -> None:
    engine, world = both({}, {"DynamicQuotaOrchestration": is_on}, [*around(status=status), workload()])
    engine.cycle(at(0))
    world.cycle(at(0))
    state = engine.workload("a", namespace="ns").status
    stored = world.kind("Workload")["ns/a"]["status"]
    assert said(state, "QuotaReserved") == said(stored, "QuotaReserved")
    assert (said(state, "QuotaReserved")[0] == "True") is is_admitted


# Pods without nodes, and timeouts of a job (rules/07 §6).


def running(*conditions: tuple[str, str, str, float], **metadata: Any) -> Json:
    assignment = {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}, "count": 1}
    admission = {"clusterQueue": "cq", "podSetAssignments": [assignment]}
    kinds = [("QuotaReserved", "True", "QuotaReserved", 0.0), ("Admitted", "True", "Admitted", 0.0), *conditions]
    written = [
        {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": written_time(minutes)}
        for kind, status, reason, minutes in kinds
    ]
    return workload(metadata=metadata, status={"admission": admission, "conditions": written})


def written_time(minutes: float) -> str:
    seconds = int(minutes * 60)
    return f"2026-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"


UNSCHEDULED = ("PodsScheduled", "False", "WaitForScheduling", 0.5)
WAITS = ("PodsReady", "False", "WaitForScheduling", 0.5)
STARTS = ("PodsReady", "False", "WaitForStart", 0.0)
TIMEOUTS = {"waitForPodsReady": {"timeout": "10m", "unscheduledTimeout": "2m"}}
GATE = {"WaitForPodsReadyUnscheduledTimeout": True}
NO_MULTIKUEUE = {"MultiKueue": False, "MultiKueueReuseClientConnectionConfigForWorkers": False}


def with_check(*checks: Json) -> list[Json]:
    """The objects around a workload, whose ClusterQueue has these checks."""
    made = around()
    names = [{"name": check["metadata"]["name"]} for check in checks]
    made[2]["spec"] |= {"admissionChecksStrategy": {"admissionChecks": names}} if names else {}
    return made


def evictions(plain: Json, configuration: Json, gates: dict[str, bool], *checks: Json) -> tuple[float, str] | None:
    """When it is evicted, to the minute, and the underlying cause."""
    engine, world = both(configuration, gates, [*checks, *with_check(*checks), plain])
    for half in range(1, 50):
        now = at(half / 2)
        engine.reconcile(now)
        world.dirty.add("ns/a")
        world.reconcile(now)
        state, stored = engine.workload("a", namespace="ns").status, world.kind("Workload")["ns/a"]["status"]
        assert said(state, "Evicted") == said(stored, "Evicted")
        if said(state, "Evicted")[0] == "True":
            found = state["schedulingStats"]["evictions"]
            assert found == stored["schedulingStats"]["evictions"]
            return half / 2, found[0]["underlyingCause"]
    return None


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((UNSCHEDULED, WAITS), (2, "WaitForScheduling")),
        ((("PodsScheduled", "True", "AllRequiredPodsScheduled", 1), STARTS), (10, "WaitForStart")),
        ((STARTS,), (10, "WaitForStart")),
        # Seen before this admission.
        ((("PodsScheduled", "False", "WaitForScheduling", 0), WAITS), (10, "WaitForScheduling")),
        ((UNSCHEDULED, ("PodsReady", "True", "Started", 1)), None),
    ],
)
def test_pods_without_nodes_have_a_shorter_time(conditions: Any, expected: Any) -> None:
    assert evictions(running(*conditions), TIMEOUTS, GATE) == expected


def test_a_job_reports_that_its_pods_wait_for_nodes() -> None:
    engine, world = both(TIMEOUTS, GATE, [*around(), running()])
    stored = world.owned("ns/a")

    def note(minutes: float, are_scheduled: bool) -> tuple[bool, tuple[str, str]]:
        now, name = at(minutes), {"namespace": "ns"}
        is_news = engine.note_scheduling("a", **name, now=now, are_scheduled=are_scheduled)
        engine.note_readiness("a", **name, now=now, are_ready=False)
        assert readiness.note_scheduling(stored, are_scheduled, world.settings, now) is is_news
        readiness.note(stored, False, world.settings, now)
        status = engine.workload("a", namespace="ns").status
        for kind in ("PodsScheduled", "PodsReady"):
            assert said(status, kind) == said(stored["status"], kind)
        return is_news, said(status, "PodsReady")

    assert note(0.5, False) == (True, ("False", "WaitForScheduling"))
    assert note(0.6, False) == (False, ("False", "WaitForScheduling"))
    assert note(1, True) == (True, ("False", "WaitForStart"))
    assert note(2, False) == (False, ("False", "WaitForStart"))
    without, _ = both({}, {}, [*around(), running()])
    assert not without.note_scheduling("a", namespace="ns", now=at(1), are_scheduled=False)


@pytest.mark.parametrize(
    ("controller", "gates", "expected"),
    [
        ("example.com/check", {}, (2, "WaitForScheduling")),
        ("kueue.x-k8s.io/multikueue", {}, (10, "WaitForStart")),
        ("kueue.x-k8s.io/multikueue", NO_MULTIKUEUE, (2, "WaitForScheduling")),
    ],
)
def test_pods_of_another_cluster_have_no_shorter_time(controller: str, gates: dict[str, bool], expected: Any) -> None:
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": START}
    check: Json = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": "elsewhere"},
        "spec": {"controllerName": controller},
        "status": {"conditions": [active]},
    }
    plain = running(UNSCHEDULED, WAITS)
    state = {"name": "elsewhere", "state": "Ready", "message": "", "lastTransitionTime": START}
    plain["status"]["admissionChecks"] = [state]
    assert evictions(plain, TIMEOUTS, {**GATE, **gates}, check) == expected
    engine, world = both(TIMEOUTS, {**GATE, **gates}, [check, *with_check(check), plain])
    is_news = expected[0] == 2
    pending = engine.note_scheduling("a", namespace="ns", now=at(1), are_scheduled=True)
    stored, is_elsewhere = world.owned("ns/a"), world.runs_elsewhere(world.owned("ns/a"))
    noted = readiness.note_scheduling(stored, True, world.settings, at(1), is_elsewhere=is_elsewhere)
    assert pending is noted is is_news


@pytest.mark.parametrize(
    ("own", "conditions", "expected"),
    [
        ('{"timeoutSeconds": 180}', (STARTS,), (3, "WaitForStart")),
        ('{"timeoutSeconds": 900}', (STARTS,), (15, "WaitForStart")),
        ('{"timeoutSeconds": 180}', (("PodsReady", "False", "WaitForRecovery", 1),), (4, "WaitForRecovery")),
        (
            '{"timeoutSeconds": 180, "recoveryTimeoutSeconds": 60}',
            (("PodsReady", "False", "WaitForRecovery", 1),),
            (2, "WaitForRecovery"),
        ),
        ('{"timeoutSeconds": 180, "recoveryTimeoutSeconds": 0}', (("PodsReady", "False", "WaitForRecovery", 1),), None),
        ("soon", (STARTS,), (10, "WaitForStart")),
        ('{"timeoutSeconds": "180"}', (STARTS,), (10, "WaitForStart")),
    ],
)
def test_a_workload_may_have_timeouts_of_its_own(own: str, conditions: Any, expected: Any) -> None:
    plain = running(*conditions, annotations={"kueue.x-k8s.io/wait-for-pods-ready": own})
    settings = {"waitForPodsReady": {"timeout": "10m"}}
    assert evictions(plain, settings, {"WorkloadLevelWaitForPodsReady": True}) == expected
    assert evictions(running(STARTS, **plain["metadata"]), settings, {}) == (10, "WaitForStart")


# Candidates of a PreemptionConfig (rules/01 §1).


@pytest.mark.parametrize("is_on", [True, False])
def test_a_preemption_config_is_read_and_decides_nothing(is_on: bool) -> None:
    rule: Json = {"name": "smaller-first", "activationPolicy": {"trigger": "Always"}}
    config = PreemptionConfig("smaller-first", rules=[rule]).to_manifest()
    objects = [config, *around(), workload(cpu="6"), workload("b", cpu="6")]
    objects[3]["metadata"] |= {"annotations": {"kueue.x-k8s.io/preemption-config-name": "smaller-first"}}
    engine, world = both({}, {"ConfigurablePreemptions": is_on}, objects)
    undecided = [undecided.name for _ in range(2) for undecided in engine.cycle(at(0)).undecided]
    # Whoever does not fit at once may have other victims.
    assert undecided == (["b"] if is_on else [])
    for _ in range(1 if is_on else 2):
        world.cycle(at(0))
    for name in ("a",) if is_on else ("a", "b"):
        stored = world.kind("Workload")[f"ns/{name}"]["status"]
        state = engine.workload(name, namespace="ns").status
        assert said(state, "QuotaReserved") == said(stored, "QuotaReserved")


def test_kueue_0_19_has_no_preemption_config() -> None:
    engine = Engine(Configuration(release="0.19"))
    for trusted in (True, False):
        with pytest.raises(ManifestError, match='Unsupported value: "PreemptionConfig"'):
            engine.apply(PreemptionConfig("p"), now=at(0), trusted=trusted)
