"""ProvisioningRequests, row by row of rules/07 §4."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration, ManifestError
from kueuecore.checks import Activity, CheckState, Review, applied_review
from kueuecore.errors import ObjectRef
from kueuecore.objects import RetryStrategy
from kueuecore.provisioning import ProvisioningController, config_of, delay_seconds, request_name, template_name
from kueuecore.provisioning.requests import attempt_of
from kueuecore.writes import Answer, Verb, Write

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"


def config(**spec: Any) -> Json:
    whole = {"provisioningClassName": "queued", **spec}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ProvisioningRequestConfig",
        "metadata": {"name": "config"},
        "spec": whole,
    }


def check(**parameters: Any) -> Json:
    reference = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "config", **parameters}
    spec = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": reference}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "AdmissionCheck",
        "metadata": {"name": "check"},
        "spec": spec,
    }


def pod_set(name: str = "main", count: int = 2, **spec: Any) -> Json:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}}
    return {"name": name, "count": count, "template": {"spec": {"containers": [container], **spec}}}


def workload(
    *pod_sets: Json,
    state: str = "Pending",
    retries: int = 0,
    conditions: tuple[str, ...] = ("QuotaReserved",),
    counts: tuple[int | None, ...] = (),
    annotations: dict[str, str] | None = None,
    active: bool = True,
) -> Json:
    pod_sets = pod_sets or (pod_set(),)
    admitted = [
        {"name": set_["name"], "flavors": {"cpu": "flavor"}, **({} if count is None else {"count": count})}
        for set_, count in zip(pod_sets, counts or [set_["count"] for set_ in pod_sets], strict=True)
    ]
    entry: Json = {"name": "check", "state": state, "message": "before", "lastTransitionTime": NOW}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": "w", "uid": "uid-w", "annotations": annotations or {}},
        "spec": {"queueName": "lq", "podSets": list(pod_sets), "active": active},
        "status": {
            "admission": {"clusterQueue": "cq", "podSetAssignments": admitted},
            "conditions": [{"type": kind, "status": "True"} for kind in conditions],
            "admissionChecks": [{**entry, **({"retryCount": retries} if retries else {})}],
        },
    }


def request(attempt: int = 1, *conditions: str, details: dict[str, str] | None = None, **spec: Any) -> Json:
    """A request with these conditions; one in small letters is False."""
    name = f"w-check-{attempt}"
    reported = [
        {
            "type": kind.capitalize() if kind.islower() else kind,
            "status": str(not kind.islower()),
            "message": f"{kind}!",
        }
        for kind in conditions
    ]
    pods = [{"podTemplateRef": {"name": f"ppt-{name}-main"}, "count": 2}]
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"namespace": "ns", "name": name, "ownerReferences": [{"kind": "Workload", "name": "w"}]},
        "spec": {"provisioningClassName": "queued", "podSets": pods, **spec},
        "status": {"conditions": reported, "provisioningClassDetails": details or {}},
    }


def controller(*objects: Json, **options: Any) -> ProvisioningController:
    found = ProvisioningController(**options)
    flavor = {"kind": "ResourceFlavor", "metadata": {"name": "flavor"}, "spec": {"nodeLabels": {"pool": "spot"}}}
    for thing in (config(), check(), flavor, *objects):
        found.observe(thing, now=0)
    return found


def reported(review: Review) -> tuple[Any, ...]:
    """State, message and delay of the one answer, and what is written, in short."""
    (answer,) = review.answers or (None,)
    writes = [
        f"{write.verb} {write.object.name}" for write in review.writes if write.object.kind == "ProvisioningRequest"
    ]
    return (*((answer.state.value, answer.message, answer.requeue_after_seconds) if answer else ()), *writes)


CREATED, DELETED = "create w-check-1", "delete w-check-1"
RETRY, READY, PENDING, REJECTED = "Retry", "Ready", "Pending", "Rejected"
NOT_MANAGED = config(managedResources=["example.com/gpu"])
NO_RETRY = config(retryStrategy={"backoffLimitCount": 0, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800})
ADMITTED = ("QuotaReserved", "Admitted")
EVICTED = ("QuotaReserved", "Evicted")


@pytest.mark.parametrize(
    ("given", "objects", "expected"),
    [
        # A workload without quota is left alone; its requests stay for the next reservation.
        (workload(conditions=()), [request(1)], ()),
        (workload(), [NOT_MANAGED], (READY, "the provisioning request is not needed", None)),
        (workload(state=READY), [NOT_MANAGED], ()),
        (workload(), [NOT_MANAGED, request(1)], (READY, "the provisioning request is not needed", None, DELETED)),
        (workload(), [], (CREATED,)),
        (workload(retries=2), [], ("create w-check-3",)),
        # While a check is Ready nothing is created, even if the request is gone.
        (workload(state=READY), [], ()),
        (workload(), [request(1, "Failed")], (RETRY, "Retrying after failure: Failed!", 60)),
        (workload(state=RETRY), [request(1, "Failed")], (RETRY, "Retrying after failure: Failed!", 60)),
        (workload(retries=1), [request(2, "Failed")], (RETRY, "Retrying after failure: Failed!", 120)),
        (workload(retries=3), [request(4, "Failed")], (REJECTED, "Failed!", None)),
        (workload(), [NO_RETRY, request(1, "Failed")], (REJECTED, "Failed!", None)),
        # The workload was evicted for this one before; the next is made without another eviction.
        (
            workload(retries=1),
            [request(1, "Failed")],
            (PENDING, "Retrying after failure: Failed!", None, "create w-check-2"),
        ),
        (workload(), [request(1, "CapacityRevoked")], (REJECTED, "CapacityRevoked!", None)),
        (
            workload(conditions=ADMITTED),
            [request(1, "Provisioned", "CapacityRevoked")],
            (REJECTED, "CapacityRevoked!", None),
        ),
        (workload(active=False), [request(1, "CapacityRevoked")], ()),
        (workload(), [request(1, "BookingExpired")], (RETRY, "Retrying after booking expired: BookingExpired!", 60)),
        (workload(retries=3), [request(4, "BookingExpired")], (REJECTED, "BookingExpired!", None)),
        (workload(conditions=ADMITTED, state=READY), [request(1, "BookingExpired")], ()),
        (workload(), [request(1, "Provisioned")], (READY, "Provisioned!", None)),
        (workload(state=READY), [request(1, "Provisioned")], ()),
        (workload(), [request(1, "Accepted", "provisioned")], (PENDING, "provisioned!", None)),
        (workload(), [request(1, "Accepted")], ()),
        # A message about what was before does not outlive it.
        (workload(), [request(1)], (PENDING, "", None)),
        # Failed comes before all else, CapacityRevoked before BookingExpired.
        (workload(), [request(1, "Provisioned", "Failed")], (RETRY, "Retrying after failure: Failed!", 60)),
        (workload(), [request(1, "BookingExpired", "CapacityRevoked")], (REJECTED, "CapacityRevoked!", None)),
        # The last attempt counts, and the others are deleted.
        (workload(), [request(2), request(1, "Provisioned")], (PENDING, "", None, DELETED)),
        # What is not as configured is asked for again.
        (workload(), [request(1, provisioningClassName="other")], (DELETED, CREATED)),
        (workload(), [config(parameters={"a": "1"}), request(1, parameters={"a": "2"})], (DELETED, CREATED)),
        (workload(), [config(parameters={"a": "1"}), request(1, parameters={"a": "1", "b": "2"})], (PENDING, "", None)),
        (workload(conditions=("Finished",)), [request(1, "Provisioned")], (DELETED,)),
        (workload(conditions=EVICTED), [request(1, "Failed")], (DELETED,)),
    ],
)
def test_a_check_follows_its_request(given: Json, objects: list[Json], expected: tuple[Any, ...]) -> None:
    asked = controller(*objects)
    review = asked.review(given, ["check"], now=0)
    assert reported(review) == expected
    # With that done there is nothing more to say, but for what follows from the writes.
    after = {**given, "status": applied_review(given["status"], review, now=NOW)}
    assert not asked.review(after, ["check"], now=0).answers


def test_a_check_without_its_config_waits() -> None:
    asked = controller()
    asked.forget(ObjectRef("ProvisioningRequestConfig", "config"), now=0)
    assert reported(asked.review(workload(state=READY), ["check"], now=0)) == (PENDING, "the check is not active", None)


def test_a_bad_reference_stops_everything() -> None:
    asked = controller(check(kind="Secret"))
    assert not asked.review(workload(), ["check"], now=0)


def test_requests_outlive_an_eviction_if_that_is_wanted() -> None:
    asked = controller(request(1, "Failed"), deletes_on_eviction=False)
    assert not asked.review(workload(conditions=EVICTED), ["check"], now=0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (check(), None),
        (check(name="other"), 'provisioningrequestconfigs.kueue.x-k8s.io "other" not found'),
        (check(name=""), "empty name: bad parameters reference"),
        (check(apiGroup="x"), 'wrong group "x", expecting "kueue.x-k8s.io": bad parameters reference'),
        (check(kind="X"), 'wrong kind "X", expecting "ProvisioningRequestConfig": bad parameters reference'),
        (
            {**check(), "spec": {"controllerName": "kueue.x-k8s.io/provisioning-request"}},
            "missing parameters reference",
        ),
    ],
)
def test_active_is_a_check_that_finds_its_config(given: Json, expected: str | None) -> None:
    asked = controller(given)
    good = Activity(True, "Active", "The admission check is active")
    activity = good if expected is None else Activity(False, "BadParametersRef", expected)
    assert asked.activity(given, now=0) == activity
    # Reason and message change with the status only.
    reported: Json = {"type": "Active", "status": str(activity.is_active), "reason": "Other"}
    assert asked.activity({**given, "status": {"conditions": [reported]}}, now=0) is None


def test_a_request_says_what_is_needed() -> None:
    annotations = {"provreq.kueue.x-k8s.io/a": "2", "other": "x"}
    given = workload(counts=(1,), annotations=annotations)
    template, written = controller(config(parameters={"a": "1", "b": "3"})).review(given, ["check"], now=0).writes
    owner = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "name": "w",
        "uid": "uid-w",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {"namespace": "ns", "labels": {"kueue.x-k8s.io/managed": "true"}, "ownerReferences": [owner]}
    assert written.manifest == {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {**metadata, "name": "w-check-1"},
        "spec": {
            "provisioningClassName": "queued",
            "parameters": {"a": "2", "b": "3"},
            "podSets": [{"podTemplateRef": {"name": "ppt-w-check-1-main"}, "count": 1}],
        },
    }
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}}
    assert template.manifest == {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {**metadata, "name": "ppt-w-check-1-main"},
        "template": {"spec": {"containers": [container], "nodeSelector": {"pool": "spot"}}},
    }


def test_a_parameter_of_the_workload_does_not_make_its_request_another() -> None:
    annotations = {"provreq.kueue.x-k8s.io/a": "2"}
    asked = controller(config(parameters={"a": "1"}), request(1, "Provisioned", parameters={"a": "2"}))
    assert reported(asked.review(workload(annotations=annotations), ["check"], now=0)) == (READY, "Provisioned!", None)


@pytest.mark.parametrize(
    ("pod_sets", "counts", "policy", "expected"),
    [
        ((pod_set("a"), pod_set("b")), (), None, [("a", 2), ("b", 2)]),
        ((pod_set("a"), pod_set("b")), (), "IdenticalPodTemplates", [("a", 4)]),
        ((pod_set("a"), pod_set("b", priority=1)), (), "IdenticalPodTemplates", [("a", 2), ("b", 2)]),
        ((pod_set("a"), pod_set("b", priority=1)), (), "IdenticalWorkloadSchedulingRequirements", [("a", 4)]),
        (
            (pod_set("a"), pod_set("b", nodeSelector={"x": "y"})),
            (),
            "IdenticalWorkloadSchedulingRequirements",
            [("a", 2), ("b", 2)],
        ),
        # The first that is alike takes them, also beyond others.
        (
            (pod_set("a"), pod_set("b", nodeSelector={"x": "y"}), pod_set("c")),
            (),
            "IdenticalPodTemplates",
            [("a", 4), ("b", 2)],
        ),
        ((pod_set("a"), pod_set("b", 0)), (), None, [("a", 2)]),
        ((pod_set("a"), pod_set("b")), (0, 1), "IdenticalPodTemplates", [("b", 1)]),
        ((pod_set("a"), pod_set("b")), (None, 1), None, [("a", 2), ("b", 1)]),
    ],
)
def test_pod_sets_that_are_alike_are_asked_for_as_one(
    pod_sets: tuple[Json, ...], counts: tuple[int | None, ...], policy: str | None, expected: list[tuple[str, int]]
) -> None:
    asked = controller(config(**({"podSetMergePolicy": policy} if policy else {})))
    written = asked.review(workload(*pod_sets, counts=counts), ["check"], now=0).writes[-1].manifest
    spec: Any = written["spec"]
    found = [(set_["podTemplateRef"]["name"].removeprefix("ppt-w-check-1-"), set_["count"]) for set_ in spec["podSets"]]
    assert found == expected


def test_only_pods_that_use_what_is_managed_are_asked_for() -> None:
    others = pod_set("b")
    others["template"]["spec"]["containers"][0]["resources"] = {"limits": {"example.com/gpu": 1}}
    asked = controller(NOT_MANAGED)
    spec: Any = asked.review(workload(pod_set("a"), others), ["check"], now=0).writes[-1].manifest["spec"]
    assert [set_["podTemplateRef"]["name"] for set_ in spec["podSets"]] == ["ppt-w-check-1-b"]


def test_pods_get_what_leads_them_to_their_nodes() -> None:
    updates: list[Json] = [
        {"key": "node", "valueFromProvisioningClassDetail": "Group"},
        {"key": "x", "valueFromProvisioningClassDetail": "Missing"},
    ]
    asked = controller(
        config(podSetUpdates={"nodeSelector": updates}), request(1, "Provisioned", details={"Group": "g"})
    )
    (answer,) = asked.review(workload(), ["check"], now=0).answers
    annotations = {
        "autoscaling.x-k8s.io/consume-provisioning-request": "w-check-1",
        "autoscaling.x-k8s.io/provisioning-class-name": "queued",
    }
    assert answer.pod_set_updates == ({"name": "main", "annotations": annotations, "nodeSelector": {"node": "g"}},)


def test_a_refused_write_is_told_and_made_again_later() -> None:
    asked = controller()
    writes = asked.review(workload(), ["check"], now=0).writes
    review = asked.refused(writes[-1], Answer(error="no such kind"), now=0)
    message = 'Error creating ProvisioningRequest "w-check-1": no such kind'
    assert [(answer.state, answer.message) for answer in review.answers] == [(CheckState.PENDING, message)]
    assert [(event.type, event.reason, event.message) for event in review.events] == [
        ("Warning", "FailedCreate", message)
    ]
    wake = asked.next_wake(after=0)
    assert wake is not None
    assert not asked.review(workload(), ["check"], now=wake - 1).writes
    assert asked.due(wake) == (("ns", "w"),)
    # The template was written before.
    assert [write.object.kind for write in asked.review(workload(), ["check"], now=wake).writes] == [
        "ProvisioningRequest"
    ]


def test_what_is_there_already_is_no_error() -> None:
    asked = controller()
    write = asked.review(workload(), ["check"], now=0).writes[-1]
    assert not asked.refused(write, Answer(error="already exists", code=409), now=0)


def test_a_template_that_contradicts_its_flavor_is_told() -> None:
    asked = controller()
    review = asked.review(workload(pod_set(nodeSelector={"pool": "other"})), ["check"], now=0)
    (answer,) = review.answers
    assert answer.message.startswith('Error creating PodTemplate "ppt-w-check-1-main": ')
    assert not review.writes


def test_events_tell_what_happens() -> None:
    asked = controller()
    created = asked.review(workload(), ["check"], now=0).events
    assert [(event.reason, event.message) for event in created] == [
        ("ProvisioningRequestCreated", 'Created ProvisioningRequest: "w-check-1"')
    ]
    asked.observe(request(1, "Provisioned"), now=0)
    updated = asked.review(workload(), ["check"], now=0).events
    message = "Admission check check updated state from Pending to Ready with message: Provisioned!"
    assert [(event.reason, event.message) for event in updated] == [("AdmissionCheckUpdated", message)]


@pytest.mark.parametrize(
    ("base", "most", "delays"),
    [(60, 1800, [60, 120, 240, 480, 960, 1800]), (60, 10, [60, 10, 10]), (5, 0, [5, 10, 20]), (0, 0, [0, 0])],
)
def test_delays_double_up_to_the_maximum(base: int, most: int, delays: list[int]) -> None:
    strategy = RetryStrategy(backoff_base_seconds=base, backoff_max_seconds=most)
    assert [delay_seconds(strategy, n) for n in range(1, len(delays) + 1)] == delays


def test_the_random_part_of_a_delay_is_small_and_follows_from_its_seed() -> None:
    strategy = RetryStrategy(backoff_base_seconds=1_000_000)
    found = [delay_seconds(strategy, 1, seed=str(n)) for n in range(20)]
    assert all(1_000_000 <= number <= 1_000_100 for number in found)
    assert len(set(found)) > 10
    assert found == [delay_seconds(strategy, 1, seed=str(n)) for n in range(20)]


def test_long_names_are_cut_and_known_again() -> None:
    name = request_name("w" * 250, "check", 12)
    assert (len(name), attempt_of(name, "w" * 250, "check")) == (253, 12)
    assert template_name("w", "main") == "ppt-w-main"
    assert attempt_of("w-check-x", "w", "check") is None
    assert attempt_of("w-check-1-2", "w", "check") is None


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"provisioningClassName": ""}, "spec.provisioningClassName"),
        ({"parameters": {"a": "x" * 256}}, "spec.parameters[a]"),
        ({"parameters": {str(n): "" for n in range(101)}}, "spec.parameters"),
        ({"retryStrategy": {"backoffLimitCount": -1}}, "spec.retryStrategy.backoffLimitCount"),
        ({"retryStrategy": {"backoffLimitCount": "x"}}, "spec.retryStrategy.backoffLimitCount"),
        ({"podSetMergePolicy": "Some"}, "spec.podSetMergePolicy"),
        ({"parametres": {}}, "spec.parametres"),
    ],
)
def test_a_wrong_config_is_refused(spec: Json, field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        controller().observe(config(**spec), now=0)
    assert caught.value.field == field


def test_a_config_of_the_older_version_is_read() -> None:
    assert config_of({**config(), "apiVersion": "kueue.x-k8s.io/v1beta1"}).provisioning_class_name == "queued"


def test_a_deletion_takes_the_templates_along() -> None:
    asked = controller(request(1))
    writes: tuple[Write, ...] = asked.review(workload(conditions=EVICTED), ["check"], now=0).writes
    assert [(write.verb, write.object.kind, write.object.name) for write in writes] == [
        (Verb.DELETE, "ProvisioningRequest", "w-check-1"),
        (Verb.DELETE, "PodTemplate", "ppt-w-check-1-main"),
    ]


def test_pod_sets_without_pods_are_requested_by_older_releases() -> None:
    pods, none = pod_set(), pod_set("none", 0)
    asked = {skips: controller(skips_empty_pod_sets=skips) for skips in (True, False)}

    def requested(skips: bool, *pod_sets: Json) -> list[str]:
        writes = asked[skips].review(workload(*pod_sets), ["check"], now=0).writes
        return [write.object.name for write in writes if write.object.kind == "PodTemplate"]

    assert requested(True, pods, none) == ["ppt-w-check-1-main"]
    assert requested(False, pods, none) == ["ppt-w-check-1-main", "ppt-w-check-1-none"]
    assert reported(controller().review(workload(none), ["check"], now=0))[0] == READY
    assert reported(controller(skips_empty_pod_sets=False).review(workload(none), ["check"], now=0)) == (CREATED,)


def test_a_message_outlives_its_cause_in_older_releases() -> None:
    old = controller(request(1), clears_messages=False)
    assert reported(old.review(workload(), ["check"], now=0)) == ()
    told = controller(request(1, "Failed"), clears_messages=False).review(workload(), ["check"], now=0)
    assert reported(told) == (RETRY, "Retrying after failure: Failed!", 60)


def test_a_pod_template_that_was_there_before_asks_for_what_has_quota() -> None:
    def templates(stored: Json, *, enforces: bool) -> list[tuple[str, str]]:
        asked = controller(stored, enforces_templates=enforces)
        writes = asked.review(workload(), ["check"], now=0).writes
        assert [write.object.name for write in writes if write.object.kind == "ProvisioningRequest"] == ["w-check-1"]
        return [(str(write.verb), write.object.name) for write in writes if write.object.kind == "PodTemplate"]

    (wanted, _) = controller().review(workload(), ["check"], now=0).writes
    same: Any = {**wanted.manifest, "metadata": {"namespace": "ns", "name": "ppt-w-check-1-main", "labels": {"a": "b"}}}
    container = {"name": "c", "resources": {"requests": {"cpu": "64"}}}
    other = {**same, "template": {"spec": {"containers": [container]}}}
    create, delete = ("create", "ppt-w-check-1-main"), ("delete", "ppt-w-check-1-main")
    assert templates(same, enforces=True) == []
    assert templates(other, enforces=True) == [delete, create]
    # Without the gate the server refuses the new one, and the next attempt uses the one that is there.
    assert templates(other, enforces=False) == [create]


def test_a_deleted_pod_template_is_created_for_the_next_request() -> None:
    asked = controller()
    (template, made) = asked.review(workload(), ["check"], now=0).writes
    for entry in (template, made):
        asked.observe(entry.manifest, now=0)
    asked.review(workload(conditions=EVICTED), ["check"], now=0)
    asked.forget(made.object, now=0)
    again = asked.review(workload(), ["check"], now=0).writes
    assert [(str(write.verb), write.object.kind) for write in again] == [
        ("create", "PodTemplate"),
        ("create", "ProvisioningRequest"),
    ]


@pytest.mark.parametrize(("release", "enforces"), [("0.20.0", True), ("0.20.0-devel", False), ("0.19.2", False)])
def test_pod_templates_are_watched_to_compare_them(release: str, enforces: bool) -> None:
    manifest: Json = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    found = ProvisioningController.of(Configuration.of([manifest], release=release))
    assert ("PodTemplate" in found.kinds) is enforces
