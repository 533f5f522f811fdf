"""What the server adds to Jobs and pods, and what of them may not change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.wire import (
    JOBS,
    MAPS,
    PODS,
    STRATEGIC,
    Object,
    cluster,
    config_map,
    job,
    pod,
    template,
)


def test_a_job_gets_defaults_a_selector_and_labels_for_its_pods() -> None:
    with cluster() as client:
        made = client.post(JOBS, job(suspend=False)).body
    uid, spec = made["metadata"]["uid"], made["spec"]
    labels = {"controller-uid": uid, "job-name": "sum"}
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert spec["template"]["metadata"]["labels"] == {
        **labels,
        **{f"batch.kubernetes.io/{name}": value for name, value in labels.items()},
    }
    assert {name: spec[name] for name in ("parallelism", "completions", "backoffLimit", "completionMode")} == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
    }
    assert spec["podReplacementPolicy"] == "TerminatingOrFailed"


NO_CONTAINERS = template(containers=[])
ALWAYS = template(restartPolicy="Always")
TWINS = template(containers=[{"name": "c", "image": "i"}] * 2)
ODD = template(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "much"}}}])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"template": NO_CONTAINERS}, "spec.template.spec.containers"),
        ({"template": {}}, "spec.template.spec.containers"),
        ({"template": ALWAYS}, "spec.template.spec.restartPolicy"),
        ({"template": TWINS}, "spec.template.spec.containers[1].name"),
        ({"template": ODD}, "spec.template.spec.containers[0].resources.requests[cpu]"),
        ({"parallelism": -1}, "spec.parallelism"),
        ({"completionMode": "Indexed", "parallelism": 2}, "spec.completions"),
        ({"selector": {"matchLabels": {"a": "b"}}, "manualSelector": True}, "spec.template.metadata.labels"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused(spec: Object, field: str) -> None:
    with cluster() as client:
        reply = client.post(JOBS, job(**spec))
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    assert field in [place for place, _ in reply.causes]


def changed(
    patch: Object, *, status: Object | None = None, kind: str = "application/merge-patch+json", **spec: Any
) -> Any:
    """The answer to a change of a job."""
    with cluster() as client:
        assert client.post(JOBS, job(**spec)).code == 201
        if status:
            client.patch(f"{JOBS}/sum/status", {"status": status})
        return client.patch(f"{JOBS}/sum", {"spec": patch}, kind)


SELECTED = {"template": {"spec": {"nodeSelector": {"a": "b"}}}}
STARTED = {"startTime": "2026-01-01T00:00:00Z", "active": 1}


@pytest.mark.parametrize(
    "patch",
    [
        SELECTED,
        {"template": {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}}}},
        {"template": {"spec": {"tolerations": [{"key": "a"}], "schedulingGates": [{"name": "g"}]}}},
        {"template": {"spec": {"affinity": {"nodeAffinity": {}}}}},
        {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}},
        {**SELECTED, "suspend": False},
    ],
)
def test_a_suspended_job_may_change_where_its_pods_go_and_what_they_take(patch: Object) -> None:
    reply = changed(patch, kind=STRATEGIC)
    assert reply.code == 200, reply.message


@pytest.mark.parametrize(
    ("patch", "status", "suspend"),
    [
        (SELECTED, None, False),
        (SELECTED, STARTED, True),
        ({"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}, None, True),
        ({"template": {"spec": {"serviceAccountName": "x"}}}, None, True),
        ({"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}},
         {"active": 1}, True),
    ],
)  # fmt: skip
def test_all_else_of_a_jobs_template_never_changes(patch: Object, status: Object | None, suspend: bool) -> None:
    reply = changed(patch, status=status, suspend=suspend, kind=STRATEGIC)
    assert (reply.code, reply.causes[0][0].removesuffix(".spec")) == (422, "spec.template")
    assert reply.message.endswith(": field is immutable")


def test_a_stopped_job_may_be_restored_once_it_has_no_pods_and_no_start_or_says_that_it_is_suspended() -> None:
    suspended = {"conditions": [{"type": "Suspended", "status": "True"}]}
    assert changed(SELECTED, status={**STARTED, "active": 0, **suspended}).code == 200
    assert changed(SELECTED, status={"active": 0}).code == 200
    for status in ({**STARTED, "active": 0}, {"active": 1}, {"active": 1, **suspended}):
        assert changed(SELECTED, status=status).code == 422


def test_a_job_that_runs_has_started_once() -> None:
    with cluster() as client:
        client.post(JOBS, job(suspend=False))
        client.patch(f"{JOBS}/sum/status", {"status": STARTED})
        removed = client.patch(f"{JOBS}/sum/status", {"status": {"startTime": None}})
        moved = client.patch(f"{JOBS}/sum/status", {"status": {"startTime": "2026-01-02T00:00:00Z"}})
        client.patch(f"{JOBS}/sum", {"spec": {"suspend": True}})
        suspended = client.patch(f"{JOBS}/sum/status", {"status": {"startTime": None}})
    assert [removed.causes[0][0], moved.causes[0][0]] == ["status.startTime"] * 2
    assert suspended.code == 200


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"completions": 3}, "spec.completions"),
        ({"completionMode": "Indexed", "completions": 1}, "spec.completionMode"),
        ({"selector": {"matchLabels": {"job-name": "sum"}}}, "spec.selector"),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, "spec.managedBy"),
    ],
)
def test_what_a_job_counts_by_never_changes(patch: Object, field: str) -> None:
    reply = changed(patch)
    assert (reply.code, reply.causes[0][0]) == (422, field)


def test_an_indexed_job_may_grow_as_a_whole() -> None:
    spec: Object = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    assert changed({"completions": 3, "parallelism": 3}, **spec).code == 200
    assert changed({"completions": 3}, **spec).code == 422


def test_a_pod_gets_defaults_a_class_of_quality_and_a_gate() -> None:
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    with cluster() as client:
        made = client.post(PODS, pod(containers=[container], schedulingGates=[{"name": "g"}])).body
    spec, status = made["spec"], made["status"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert (spec["serviceAccountName"], spec["schedulerName"], spec["priority"]) == ("default", "default-scheduler", 0)
    assert [toleration["key"] for toleration in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]
    assert (status["phase"], status["qosClass"]) == ("Pending", "Guaranteed")
    assert [(condition["type"], condition["reason"]) for condition in status["conditions"]] == [
        ("PodScheduled", "SchedulingGated")
    ]


def test_a_pods_priority_is_that_of_its_class() -> None:
    with cluster() as client:
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        made = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
        client.post(classes, made)
        high = client.post(PODS, pod(priorityClassName="high")).body["spec"]
        none = client.post(PODS, pod("q", priorityClassName="none"))
        value = client.patch(f"{classes}/high", {"value": 10})
    assert (high["priority"], high["preemptionPolicy"]) == (9, "PreemptLowerPriority")
    assert (none.code, none.message) == (
        403,
        'pods "q" is forbidden: no PriorityClass with name none was found',
    )
    assert (value.code, value.causes[0][0]) == (422, "value")


GATED: Object = {"schedulingGates": [{"name": "g"}], "nodeSelector": {"a": "b"}}
MORE_TOLERATION = [{"key": "x", "operator": "Exists"}]


@pytest.mark.parametrize(
    ("spec", "patch", "field"),
    [
        ({}, {"containers": [{"name": "c", "image": "j"}]}, ""),
        ({}, {"activeDeadlineSeconds": 5}, ""),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}, ""),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 6}, "spec.activeDeadlineSeconds"),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": None}, "spec.activeDeadlineSeconds"),
        (GATED, {"schedulingGates": None}, ""),
        (GATED, {"nodeSelector": {"c": "d"}}, ""),
        (GATED, {"affinity": {"nodeAffinity": {}}}, ""),
        (GATED, {"nodeSelector": {"a": "c"}}, "spec.nodeSelector"),
        (GATED, {"nodeSelector": None}, "spec.nodeSelector"),
        ({"nodeSelector": {"a": "b"}}, {"nodeSelector": {"c": "d"}}, "spec"),
        ({}, {"schedulingGates": [{"name": "g"}]}, "spec.schedulingGates[0].name"),
        ({}, {"containers": [{"name": "c", "command": ["x"]}]}, "spec"),
        ({}, {"priority": 7}, "spec"),
        ({}, {"tolerations": MORE_TOLERATION}, "spec.tolerations"),
    ],
)
def test_little_of_a_pod_changes(spec: Object, patch: Object, field: str) -> None:
    with cluster() as client:
        assert client.post(PODS, pod(**spec)).code == 201
        reply = client.patch(f"{PODS}/p", {"spec": patch}, STRATEGIC)
    if field:
        assert (reply.code, field in [cause for cause, _ in reply.causes]) == (422, True), reply.message
    else:
        assert reply.code == 200, reply.message


def test_a_pod_may_tolerate_more() -> None:
    with cluster() as client:
        made = client.post(PODS, pod()).body
        more = [*made["spec"]["tolerations"], *MORE_TOLERATION]
        assert client.patch(f"{PODS}/p", {"spec": {"tolerations": more}}).code == 200


def test_a_gated_pod_may_narrow_its_affinity_alone() -> None:
    def affinity(*expressions: str) -> Object:
        terms = [{"matchExpressions": [{"key": expression, "operator": "Exists"} for expression in expressions]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"affinity": {"nodeAffinity": required}}

    with cluster() as client:
        client.post(PODS, pod(**GATED, **affinity("a")))
        narrower = client.patch(f"{PODS}/p", {"spec": affinity("a", "b")})
        wider = client.patch(f"{PODS}/p", {"spec": affinity("b")})
    assert (narrower.code, wider.code) == (200, 422)
    assert wider.causes[0][0].startswith("spec.affinity.nodeAffinity.required")


def test_pods_without_containers_are_refused() -> None:
    with cluster() as client:
        reply = client.post(PODS, pod(containers=[]))
        nameless = client.post(PODS, pod(containers=[{"image": "i"}]))
    assert reply.message == 'Pod "p" is invalid: spec.containers: Required value'
    assert nameless.causes == [("spec.containers[0].name", "Required value")]


def test_what_is_marked_as_immutable_stays() -> None:
    with cluster() as client:
        client.post(MAPS, {**config_map(), "immutable": True})
        reply = client.patch(f"{MAPS}/cm", {"data": {"a": "2"}})
    assert reply.causes == [("data", "Forbidden: field is immutable when `immutable` is set")]


def test_a_deployments_selector_fits_its_template_and_stays() -> None:
    path = "/apis/apps/v1/namespaces/lab/deployments"
    labelled = {"metadata": {"labels": {"a": "b", "c": "d"}}, **template(restartPolicy="Always")}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": labelled}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
    with cluster() as client:
        misfit = client.post(path, {**deployment, "spec": {**spec, "selector": {"matchLabels": {"a": "c"}}}})
        made = client.post(path, {**deployment, "spec": spec})
        moved = client.patch(f"{path}/d", {"spec": {"selector": {"matchLabels": {"c": "d"}}}})
    assert (misfit.code, misfit.causes[0][0]) == (422, "spec.template.metadata.labels")
    assert (made.code, made.body["spec"]["replicas"]) == (201, 1)
    assert (moved.code, moved.causes[0][0]) == (422, "spec.selector")
