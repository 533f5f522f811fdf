"""One reconcile of a parent and its variants by Kueue's concurrent admission controller (rules/09 §4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.concurrent_admission import FamilyReview, reconcile_parent
from tests.unit.concurrent_admission.families import (
    BLOCKED,
    EVICTED,
    GATE,
    MINUTE,
    NOW,
    PARENT,
    PARENT_UID,
    TRIED,
    admission,
    cluster_queue,
    condition,
    conditions,
    configuration,
    is_open,
    look,
    parent,
    running,
    saying,
    variant,
)

TWO = ("large", "small")
THREE = ("bought", "large", "small")


def changed(review: FamilyReview) -> dict[str, Any]:
    return {manifest["metadata"]["name"]: manifest for manifest in review.changed}  # type: ignore[index,call-overload,misc]


def reported(review: FamilyReview) -> list[tuple[str, str, str]]:
    return [(event.name, event.reason, event.message) for event in review.events]


def names(manifests: tuple[Any, ...]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in manifests]


# Which variants there are.


def test_a_parent_without_variants_gets_one_for_each_flavor() -> None:
    review = look(parent(active=True), [], cluster_queue(*TWO))
    large, small = review.creates
    assert (review.deletes, review.changed, review.events, review.again_at) == ((), (), (), None)
    assert large == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "train-variant-large-15468",
            "namespace": "ns",
            "labels": {"team": "blue"},
            "annotations": {"kueue.x-k8s.io/workload-allowed-resource-flavors": "large"},
            "ownerReferences": [
                {
                    "apiVersion": "kueue.x-k8s.io/v1beta2",
                    "kind": "Workload",
                    "name": PARENT,
                    "uid": PARENT_UID,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {"queueName": "jobs", "active": True, "preemptionGates": [{"name": GATE}]},
    }
    assert small["metadata"]["annotations"] == {"kueue.x-k8s.io/workload-allowed-resource-flavors": "small"}  # type: ignore[index,call-overload]


def test_variants_are_named_as_kueue_names_them() -> None:
    # Kueue's own tests read objects without their kind.
    of = parent()
    of["metadata"] |= {"name": "wl-12345", "uid": ""}
    del of["kind"], of["apiVersion"]
    review = look(of, [], cluster_queue("on-demand", "spot"))
    assert names(review.creates) == ["wl-variant-on-demand-480a3", "wl-variant-spot-a2342"]


def test_names_can_be_kept_short() -> None:
    of = parent()
    of["metadata"]["name"] = f"{'a' * 80}-0a1b2"
    (made,) = names(look(of, [], cluster_queue("large"), ShortWorkloadNames=True).creates)
    assert len(made) == 63
    assert made.startswith("a" * 57 + "-")


def test_only_missing_variants_are_made() -> None:
    review = look(parent(), [variant("small")], cluster_queue(*TWO))
    assert names(review.creates) == ["train-variant-large-15468"]


def test_variants_have_the_gates_of_their_parent_and_their_own() -> None:
    review = look(parent(preemptionGates=[{"name": "other"}]), [], cluster_queue("large"))
    assert review.creates[0]["spec"]["preemptionGates"] == [{"name": "other"}, {"name": GATE}]  # type: ignore[index,call-overload]


def test_a_variant_goes_with_its_flavor() -> None:
    variants = [variant("large"), variant("small"), variant("sold")]
    review = look(parent(), variants, cluster_queue(*TWO))
    assert (names(review.deletes), review.creates, review.changed) == (["train-sold"], (), ())


def test_a_parent_whose_variant_goes_with_its_flavor_is_evicted() -> None:
    status = running("large")
    variants = [variant("large", running("large")), variant("small")]
    review = look(parent(status), variants, cluster_queue("small"))
    assert names(review.deletes) == ["train-large"]
    (evicted,) = changed(review).values()
    assert evicted["metadata"]["name"] == PARENT
    assert conditions(evicted)["Evicted"] == ("True", "ConcurrentAdmission", "No variant is running")
    assert {**evicted["status"], "conditions": evicted["status"]["conditions"][:-1]} == status


# Who may preempt.


def test_the_gate_of_the_next_variant_opens_when_the_one_with_the_open_gate_goes() -> None:
    variants = [variant("large", saying(BLOCKED, **is_open())), variant("small", saying(BLOCKED))]
    review = look(parent(), variants, cluster_queue("small"))
    assert names(review.deletes) == ["train-large"]
    assert changed(review)["train-small"]["status"] == saying(BLOCKED, **is_open())
    assert reported(review) == [
        (
            "train-small",
            "PreemptionUngatedVariant",
            'Opened preemption gate for variant workload "ns/train-small"',
        )
    ]
    assert review.again_at == NOW + 5 * MINUTE


@pytest.mark.parametrize(
    ("large", "small", "opens", "again_in"),
    [
        pytest.param(saying(BLOCKED, **is_open(since=NOW - 5 * MINUTE)), saying(BLOCKED), "small", 5, id="in turn"),
        pytest.param(saying(BLOCKED), is_open("Closed"), "large", 5, id="only who waits at it"),
        pytest.param(is_open("Closed"), is_open("Closed"), None, None, id="nobody waits"),
        pytest.param({}, saying(BLOCKED), None, None, id="a preferred one was not tried yet"),
        pytest.param(saying(TRIED), saying(BLOCKED), "small", 5, id="a preferred one needs no preemption"),
        pytest.param(saying(BLOCKED), saying(BLOCKED), "large", 5, id="the preferred one first"),
        pytest.param(is_open(since=NOW - MINUTE), saying(BLOCKED), None, 4, id="one after the other"),
    ],
)
def test_one_gate_opens_at_a_time(
    large: dict[str, Any], small: dict[str, Any], opens: str | None, again_in: int | None
) -> None:
    variants = [variant("large", large), variant("small", small)]
    review = look(parent(), variants, cluster_queue(*TWO))
    assert review.again_at == (None if again_in is None else NOW + again_in * MINUTE)
    if opens is None:
        assert (review.changed, review.events) == ((), ())
        return
    (ungated,) = changed(review).values()
    assert ungated == variant(opens, {**{"large": large, "small": small}[opens], **is_open()})


def test_the_gate_that_opened_last_counts() -> None:
    variants = [
        variant("bought", is_open(since=NOW - 4 * MINUTE)),
        variant("large", is_open(since=NOW - MINUTE)),
        variant("small", saying(BLOCKED)),
    ]
    review = look(parent(), variants, cluster_queue(*THREE))
    assert (review.changed, review.again_at) == ((), NOW + 4 * MINUTE)


def test_a_preferred_variant_that_is_to_be_tried_comes_first() -> None:
    untried = condition("QuotaReserved", False, "PendingEvaluation", "Workload is pending evaluation")
    variants = [variant("large", saying(untried)), variant("small", saying(BLOCKED))]
    manifest: Any = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    opened = {}
    for release in ("0.20.0", "0.20.0-devel", "0.19.2"):
        given = Configuration.of([manifest], feature_gates={"ConcurrentAdmission": True}, release=release)
        review = reconcile_parent(parent(), variants, cluster_queue(*TWO), now=NOW, configuration=given)
        opened[release] = [*changed(review)]
    assert opened == {"0.20.0": [], "0.20.0-devel": ["train-small"], "0.19.2": ["train-small"]}


def test_no_gate_opens_that_a_variant_does_not_have() -> None:
    review = look(parent(), [variant("large", saying(BLOCKED), preemptionGates=[])], cluster_queue("large"))
    assert (review.changed, review.events, review.again_at) == ((), (), NOW + 5 * MINUTE)


# What the parent and its variants have of each other.


def test_a_parent_is_admitted_as_its_variant_is() -> None:
    status = saying(condition("Evicted", True, "VariantEvicted", "Admitted variant was evicted"))
    variants = [variant("small", running("small")), variant("large")]
    (admitted,) = changed(look(parent(status), variants, cluster_queue(*TWO))).values()
    assert admitted["status"]["admission"] == admission("queue", "small")
    assert conditions(admitted) == {
        "Evicted": ("False", "QuotaReserved", "Previously: Admitted variant was evicted"),
        "QuotaReserved": ("True", "QuotaReserved", "Quota reserved in ClusterQueue queue"),
        "Admitted": ("True", "Admitted", "The variant train-small is admitted"),
    }


def test_a_parent_none_of_whose_variants_runs_is_evicted() -> None:
    review = look(parent(running("small")), [variant("small"), variant("large")], cluster_queue(*TWO))
    (evicted,) = changed(review).values()
    assert conditions(evicted)["Evicted"] == ("True", "ConcurrentAdmission", "No variant is running")


def test_a_parent_goes_before_its_evicted_variant() -> None:
    small = variant("small", running("small", EVICTED), active=True)
    variants = [small, variant("large", active=False)]
    (evicted,) = changed(look(parent(running("small")), variants, cluster_queue(*TWO))).values()
    assert evicted["metadata"]["name"] == PARENT
    assert conditions(evicted)["Evicted"] == ("True", "VariantEvicted", "Admitted variant was evicted")


def test_a_parent_that_ends_while_it_is_evicted_is_not_waited_for() -> None:
    end = condition("Finished", True, "Succeeded", "Job finished successfully")
    status = running("small", condition("Evicted", True, "VariantEvicted", "Admitted variant was evicted"), end)
    review = look(parent(status), [variant("small", running("small", EVICTED))], cluster_queue("small"))
    assert conditions(changed(review)["train-small"])["Finished"][0] == "True"


def test_an_evicted_parent_is_waited_for() -> None:
    status = running("small", condition("Evicted", True, "PodsReadyTimeout", "too late"))
    review = look(parent(status), [variant("small", running("small", EVICTED))], cluster_queue("small"))
    assert review == FamilyReview()


@pytest.mark.parametrize(
    ("reason", "is_queued", "is_observed", "why"),
    [
        ("Preempted", "True", True, "PendingEvaluation"),
        ("NodeFailures", "True", True, "PendingEvaluation"),
        ("FlavorMigration", "False", True, "PendingEvaluation"),
        ("Preempted", "True", False, "Pending"),
    ],
)
def test_an_evicted_variant_gives_its_quota_back_after_its_parent(
    reason: str, is_queued: str, is_observed: bool, why: str
) -> None:
    eviction = condition("Evicted", True, reason, "made room")
    variants = [variant("small", running("small", eviction)), variant("large", active=False)]
    review = look(parent(), variants, cluster_queue(*TWO), UnadmittedWorkloadsObservability=is_observed)
    small, large = changed(review)["train-small"], changed(review)["train-large"]
    assert conditions(small) == {
        "QuotaReserved": ("False", why, "made room"),
        "Admitted": ("False", "NoReservation", "The workload has no reservation"),
        "Evicted": ("True", reason, "made room"),
        "Requeued": (is_queued, reason, "made room"),
    }
    assert "admission" not in small["status"]
    assert small["status"]["accumulatedPastExecutionTimeSeconds"] == 60
    assert large["spec"]["active"] is True
    why = "Variant Workload activated due to no other Variant being admitted"
    assert reported(review) == [("train-large", "ActivatedVariant", why)]


def test_checks_that_are_not_ready_are_named_where_kueue_does_not_observe() -> None:
    status = {**running("small", EVICTED), "admissionChecks": [{"name": "a", "state": "Pending"}]}
    review = look(parent(), [variant("small", status)], cluster_queue("small"), UnadmittedWorkloadsObservability=False)
    message = "The workload has no reservation and not all checks ready"
    assert conditions(changed(review)["train-small"])["Admitted"] == (
        "False",
        "NoReservationUnsatisfiedChecks",
        message,
    )


def test_variants_end_with_their_parent() -> None:
    end = condition("Finished", True, "Succeeded", "Job finished successfully")
    review = look(parent(saying(end)), [variant("large"), variant("small")], cluster_queue(*TWO))
    ends = {name: conditions(row) for name, row in changed(review).items()}
    finished = {"Finished": ("True", "Succeeded", "Job finished successfully")}
    assert ends == {"train-large": finished, "train-small": finished}


@pytest.mark.parametrize(("is_ready", "was_ready"), [(True, False), (False, True)])
def test_the_variant_that_runs_is_as_ready_as_its_parent(is_ready: bool, was_ready: bool) -> None:
    said = condition("PodsReady", is_ready, "Now", "pods are as they are", NOW)
    variants = [
        variant("small", running("small", condition("PodsReady", was_ready, "Before", "pods were otherwise"))),
        variant("large"),
    ]
    review = look(parent(running("small", said)), variants, cluster_queue(*TWO))
    (small,) = changed(review).values()
    assert small["status"] == running("small", said)


def test_a_parent_that_is_admitted_tells_its_variant_at_once_whether_pods_are_ready() -> None:
    said = condition("PodsReady", False, "Now", "pods are not ready", NOW)
    was = condition("PodsReady", True, "Before", "pods were ready")
    variants = [variant("small", running("small", was)), variant("large")]
    review = changed(look(parent(saying(said)), variants, cluster_queue(*TWO)))
    assert review["train-small"]["status"] == running("small", said)
    assert conditions(review[PARENT])["Admitted"] == ("True", "Admitted", "The variant train-small is admitted")
    assert conditions(review[PARENT])["PodsReady"] == ("False", "Now", "pods are not ready")


# Which variants go on trying.

BELOW_LAST = 'being below lastAcceptableFlavor: "bought" and another Variant admitted "ns/train-{}"'
BELOW = 'being lower priority than admitted Variant "ns/train-{}"'
KEPT = 'RetainFirstAdmission: another Variant "ns/train-{}" is admitted'


@pytest.mark.parametrize(
    ("policy", "admitted", "stops"),
    [
        ({"last": "bought"}, "small", {"large": BELOW_LAST}),
        ({"last": "bought"}, "large", {"small": BELOW_LAST}),
        ({"last": "bought"}, "bought", {"large": BELOW_LAST, "small": BELOW_LAST}),
        ({"last": "large"}, "bought", {"small": BELOW_LAST.replace("bought", "large", 1), "large": BELOW}),
        ({}, "small", {}),
        ({}, "large", {"small": BELOW}),
        ({}, "bought", {"large": BELOW, "small": BELOW}),
        ({"mode": "RetainFirstAdmission"}, "small", {"bought": KEPT, "large": KEPT}),
    ],
)
def test_which_variants_stop_trying(policy: dict[str, str], admitted: str, stops: dict[str, str]) -> None:
    variants = [variant(flavor, running(flavor) if flavor == admitted else {}) for flavor in THREE]
    review = look(parent(), variants, cluster_queue(*THREE, **policy))
    others = {name: row["spec"]["active"] for name, row in changed(review).items() if name != PARENT}
    assert others == {f"train-{flavor}": False for flavor in stops}
    assert reported(review) == [
        (f"train-{flavor}", "DeactivatedVariant", f"Variant Workload deactivated due to {why.format(admitted)}")
        for flavor, why in stops.items()
    ]
    assert changed(review)[PARENT]["status"]["admission"] == admission("queue", admitted)


LAST = 'being at least lastAcceptableFlavor: "bought" and higher priority than admitted Variant "ns/train-small"'
BETTER = 'being higher priority than admitted Variant "ns/train-small"'


@pytest.mark.parametrize(
    ("policy", "tries"),
    [
        ({"last": "bought"}, {"bought": LAST}),
        ({}, {"bought": BETTER, "large": BETTER}),
        ({"mode": "RetainFirstAdmission"}, {}),
    ],
)
def test_which_variants_try_again(policy: dict[str, str], tries: dict[str, str]) -> None:
    variants = [
        variant("bought", active=False),
        variant("large", active=False),
        variant("small", running("small")),
    ]
    review = look(parent(running("small")), variants, cluster_queue(*THREE, **policy))
    assert {name: row["spec"]["active"] for name, row in changed(review).items()} == {
        f"train-{other}": True for other in tries
    }
    assert reported(review) == [
        (f"train-{flavor}", "ActivatedVariant", f"Variant Workload activated due to {why}")
        for flavor, why in tries.items()
    ]


def test_variants_stop_with_their_parent() -> None:
    review = look(parent(active=False), [variant("small"), variant("large")], cluster_queue(*TWO))
    assert {name: row["spec"]["active"] for name, row in changed(review).items()} == {
        "train-large": False,
        "train-small": False,
    }
    why = f'Variant Workload deactivated due to Parent Workload "ns/{PARENT}" not active'
    assert reported(review) == [("train-large", "DeactivatedVariant", why), ("train-small", "DeactivatedVariant", why)]


def test_an_evicted_variant_that_may_not_try_gives_its_quota_back_at_once() -> None:
    # The first one is taken care of before; this is the second.
    variants = [variant(entry, running(entry, EVICTED), active=False) for entry in TWO]
    review = changed(look(parent(active=False), variants, cluster_queue(*TWO)))
    assert [conditions(row)["QuotaReserved"][0] for row in review.values()] == ["False", "False"]


# Who is left alone.


def test_a_workload_that_is_no_parent_is_left_alone() -> None:
    assert look(variant("small"), [], cluster_queue(*TWO)) == FamilyReview()


def test_without_the_gate_nothing_is_done() -> None:
    review = reconcile_parent(
        parent(), [], cluster_queue(*TWO), now=NOW, configuration=configuration(ConcurrentAdmission=False)
    )
    assert review == FamilyReview()
