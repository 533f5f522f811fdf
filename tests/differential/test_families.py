"""A parent and its variants: the product against the reference, in families that no history would bring about, too."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kueuecore.concurrent_admission import flavor_of, reconcile_parent, workload_key
from kueuecore.reference.families import look
from kueuecore.reference.settings import Settings
from kueuecore.times import SECOND_NS
from tests.unit.concurrent_admission.families import (
    GATE,
    MINUTE,
    NOW,
    PARENT,
    admission,
    at,
    cluster_queue,
    condition,
    configuration,
    parent,
    variant,
)

KINDS = {
    "QuotaReserved": ("QuotaReserved", "Pending", "OnHold"),
    "Admitted": ("Admitted", "NoReservation"),
    "Evicted": ("Preempted", "NodeFailures", "FlavorMigration", "PodsReadyTimeout"),
    "Requeued": ("Preempted", "BackoffFinished"),
    "PodsReady": ("Started", "WaitForStart"),
    "BlockedOnPreemptionGates": ("PreemptionGated", "QuotaReserved"),
    "Preempted": ("InClusterQueue",),
    "Finished": ("Succeeded",),
    "WaitingForReplacementPods": ("Pods",),
}
RARE = ("Finished", "WaitingForReplacementPods")


def status(random: Random, flavor: str) -> dict[str, Any]:
    """Any status, whether it makes sense or not."""
    said = []
    for kind, reasons in KINDS.items():
        if random.random() < (0.05 if kind in RARE else 0.5):
            time = NOW - random.randrange(600) * SECOND_NS
            is_true = random.random() < 0.6
            said.append(condition(kind, is_true, random.choice(reasons), random.choice("abc"), time))
    random.shuffle(said)
    is_admitted = any(switch["type"] == "Admitted" and switch["status"] == "True" for switch in said)
    made: dict[str, Any] = {"conditions": said}
    if is_admitted or random.random() < 0.3:
        made["admission"] = admission("queue", flavor)
    if random.random() < 0.4:
        since = NOW - random.choice((0, 1, 4, 5, 9)) * MINUTE
        position = random.choice(("Open", "Closed"))
        made["preemptionGates"] = [{"name": GATE, "position": position, "lastTransitionTime": at(since)}]
    if random.random() < 0.3:
        made["admissionChecks"] = [{"name": "check", "state": random.choice(("Ready", "Pending"))}]
    if random.random() < 0.2:
        made["accumulatedPastExecutionTimeSeconds"] = random.randrange(100)
    return made


def family(random: Random) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """A parent, variants and a ClusterQueue."""
    names = random.sample(("a", "b", "c", "d"), random.randint(1, 4))
    policy: dict[str, str] = {}
    if random.random() < 0.3:
        policy["mode"] = "RetainFirstAdmission"
    elif random.random() < 0.5:
        policy["last"] = random.choice(names)
    spec = {"active": random.random() < 0.85}
    variants = []
    for flavor in random.sample(("a", "b", "c", "d"), random.randint(0, 4)):
        gates: dict[str, Any] = {"preemptionGates": []} if random.random() < 0.1 else {}
        it = variant(flavor, status(random, flavor), active=random.random() < 0.6, **gates)
        if random.random() < 0.1:
            it["metadata"]["annotations"]["kueue.x-k8s.io/admission-gated-by"] = "somebody"
        variants.append(it)
    of = parent(status(random, "a"), **spec)
    for other in (of, *variants):
        other["metadata"] = {
            "generation": 1,
            "labels": {},
            "annotations": {},
            "ownerReferences": [],
            **other["metadata"],
        }
        for said in other["status"]["conditions"]:
            said["observedGeneration"] = 1
    return of, variants, cluster_queue(*names, **policy)


def by_type(workload: Any) -> Any:
    """A Workload whose conditions are in order."""
    said = sorted(workload["status"].get("conditions", ()), key=lambda other: other["type"])
    return {**workload, "status": {**workload["status"], "conditions": said}}


@pytest.mark.parametrize("seed", range(20))
def test_product_and_reference_say_the_same_of_a_family(seed: int) -> None:
    random = Random(seed)
    n_changed = 0
    for _ in range(150):
        of, variants, queue = family(random)
        gates = {"ConcurrentAdmission": True, "UnadmittedWorkloadsObservability": random.random() < 0.5}
        settings = Settings({"featureGates": gates})
        expected = look(of, variants, queue["spec"], NOW, settings)
        review = reconcile_parent(of, variants, queue, now=NOW, configuration=configuration(**gates))
        assert [flavor_of(create) for create in review.creates] == expected.missing
        assert sorted(workload_key(delete)[1] for delete in review.deletes) == sorted(expected.deleted)
        kept = {other["metadata"]["name"]: other for other in (of, *variants)}
        kept |= {workload_key(manifest)[1]: manifest for manifest in review.changed}
        found = {name: by_type(quota) for name, quota in kept.items() if name == PARENT or name not in expected.deleted}
        assert found == {name: by_type(workload) for name, workload in expected.workloads.items()}
        assert [(event.name, event.reason, event.message) for event in review.events] == expected.events
        assert review.again_at == expected.again_at
        n_changed += bool(review.changed)
    assert n_changed > 50
