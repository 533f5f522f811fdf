"""What a real API server refuses, ours refuses in the same words; run on both, so that neither is made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from kueuecore._json import int_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, UnansweredError
from kueuecore.kubernetes.api import MERGE_PATCH
from scripts.clusters.place import KINDS, KUEUE, Cluster, create, wait_for

Object = dict[str, Any]

NAMESPACE = "refusals"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
WORKLOADS = f"/apis/{KUEUE}/namespaces/{NAMESPACE}/workloads"
QUEUES = f"/apis/{KUEUE}/clusterqueues"
START, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
FROZEN = ": field is immutable"
BLOCKED = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"


def job(name: str, *, suspend: bool = True, metadata: Object | None = None, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    own = {"name": name, **(metadata or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": own,
        "spec": {"suspend": suspend, "template": template, **spec},
    }


def pod(name: str, *, resources: Object | None = None, **spec: Any) -> Object:
    container = {"name": "c", "image": "i", "resources": resources or {"requests": {"cpu": "1"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def config_map(name: str, **metadata: Any) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


def event(name: str, namespace: str = NAMESPACE, **more: Any) -> Object:
    about = {"apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": "j"}
    metadata = {"name": name, "namespace": NAMESPACE}
    base = {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, "reason": "R"}
    return {**base, "message": "m", "type": "Normal", "source": {"component": "c"}, **more}


def workload(name: str, **owner: Any) -> Object:
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}
    metadata = {"name": name, "ownerReferences": [{"name": "o", "uid": "u", **owner}]}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": metadata,
        "spec": {"queueName": "q", "podSets": [pod_set]},
    }


def conditions(*types: str) -> Object:
    rest = {"status": "True", "reason": "R", "message": "m", "lastTransitionTime": START, "lastProbeTime": START}
    return {"conditions": [{"type": type_, **rest} for type_ in types]}


def template(**spec: Any) -> Object:
    return {"spec": {"template": {"spec": spec}}}


@dataclass(frozen=True)
class Case:
    """A request, what must be there before it, and what is answered.

    Args:
        title: What it shows.
        method: Its method.
        path: Its path.
        body: Its body.
        code: The code of the answer.
        message: How its message ends; empty: it is accepted.
        before: Requests before it: method, path and body.
        as_serve: Whether the ServiceAccount of `serve` asks.
    """

    title: str
    method: str
    path: str
    body: Object | None
    code: int = 200
    message: str = ""
    before: tuple[tuple[str, str, Object | None], ...] = ()
    as_serve: bool = False
    accepted: Object = field(default_factory=dict)


def _status(name: str, status: Object) -> tuple[str, str, Object]:
    return "PATCH", f"{JOBS}/{name}/status", {"status": status}


def _status_cases() -> Iterator[Case]:
    """Yield statuses of Jobs that make no sense."""
    done = {"startTime": START, "completionTime": LATER, "succeeded": 1, **conditions("SuccessCriteriaMet", "Complete")}
    refused: list[tuple[str, Object, str]] = [
        (
            "no-time",
            {"startTime": START, **conditions("SuccessCriteriaMet", "Complete")},
            "status.completionTime: Required value: completionTime is required for Complete jobs",
        ),
        (
            "no-criteria",
            {"startTime": START, "completionTime": LATER, **conditions("Complete")},
            "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true "
            "condition",
        ),
        (
            "no-target",
            {"startTime": START, **conditions("Failed")},
            "Invalid value: cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            "no-start",
            {**done, "startTime": None},
            "status.startTime: Required value: startTime is required for finished job",
        ),
        ("active", {**done, "active": 1}, "status.active: Invalid value: 1: active>0 is invalid for finished job"),
        (
            "ready",
            {"startTime": START, "ready": 3, "active": 1},
            "status.ready: Invalid value: 3: cannot set more ready pods than active",
        ),
        ("negative", {"active": -1}, "status.active: Invalid value: -1: must be greater than or equal to 0"),
        (
            "early",
            {"completionTime": LATER},
            f'Invalid value: "{LATER}": cannot set completionTime when there is no Complete=True condition',
        ),
    ]
    for name, status, message in refused:
        made = ("POST", JOBS, job(name, suspend=False))
        yield Case(f"job status {name}", *_status(name, status), 422, message, before=(made,))
    made = ("POST", JOBS, job("counted", suspend=False))
    less = "status.succeeded: Invalid value: 1: cannot decrease the succeeded counter"
    yield Case(
        "job status counted",
        *_status("counted", {"succeeded": 1}),
        422,
        less,
        before=(made, _status("counted", {"succeeded": 3})),
    )
    made = ("POST", JOBS, job("moved", suspend=False))
    why = "field is immutable for unsuspended job once set"
    for what, value, shown in (("moved", LATER, f'"{LATER}"'), ("removed", None, "null")):
        yield Case(
            f"job start {what}",
            *_status("moved", {"startTime": value}),
            422,
            f"status.startTime: Invalid value: {shown}: {why}",
            before=(made, _status("moved", {"startTime": START})),
        )
    made = ("POST", JOBS, job("ended", suspend=False))
    off = "status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition]"
    yield Case(
        "job reopened",
        *_status("ended", {"conditions": [], "completionTime": None}),
        422,
        off,
        before=(made, _status("ended", done)),
    )


def _template_cases() -> Iterator[Case]:
    """Yield changes to the template of a Job: since 1.36 it is open while the Job is suspended and has no pods."""
    selector = template(nodeSelector={"a": "b"})
    for name, status, code in (
        ("fresh", {}, 200),
        ("active", {"startTime": START, "active": 1}, 422),
        ("stopped", {"startTime": START}, 422),
        ("suspended", {"startTime": START, **conditions("Suspended")}, 200),
    ):
        made = ("POST", JOBS, job(f"t-{name}"))
        yield Case(
            f"job template {name}",
            "PATCH",
            f"{JOBS}/t-{name}",
            selector,
            code,
            FROZEN if code == 422 else "",
            before=(made, _status(f"t-{name}", status)),
        )
    made = ("POST", JOBS, job("t-runs", suspend=False))
    yield Case("job template running", "PATCH", f"{JOBS}/t-runs", selector, 422, FROZEN, before=(made,))
    both = {"spec": {"suspend": True, **selector["spec"]}}
    yield Case("job template with suspend", "PATCH", f"{JOBS}/t-runs", both, 422, FROZEN, before=(made,))
    image = template(containers=[{"name": "c", "image": "other", "resources": {"requests": {"cpu": "1"}}}])
    yield Case("job image", "PATCH", f"{JOBS}/t-image", image, 422, FROZEN, before=(("POST", JOBS, job("t-image")),))


def _other_cases() -> Iterator[Case]:
    finalized = (
        "POST",
        QUEUES,
        {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": "refusals", "finalizers": ["a.b/c"]},
            "spec": {"namespaceSelector": {}},
        },
    )
    yield Case(
        "finalizers hold",
        "DELETE",
        f"{QUEUES}/refusals",
        None,
        before=(finalized,),
        accepted={"metadata": {"finalizers": ["a.b/c"], "generation": 2}},
    )
    yield Case(
        "no more finalizers",
        "PATCH",
        f"{QUEUES}/refusals",
        {"metadata": {"finalizers": ["a.b/c", "d.e/f"]}},
        422,
        'if the object is being deleted, found new finalizers []string{"d.e/f"}',
    )
    yield Case("the last finalizer", "PATCH", f"{QUEUES}/refusals", {"metadata": {"finalizers": []}})
    yield Case(
        "and it is gone", "GET", f"{QUEUES}/refusals", None, 404, 'clusterqueues.kueue.x-k8s.io "refusals" not found'
    )
    yield Case(
        "unqualified finalizer",
        "POST",
        MAPS,
        config_map("f", finalizers=["x"]),
        422,
        "name is neither a standard finalizer name nor is it fully qualified",
    )
    yield Case(
        "a Job leaves its pods",
        "DELETE",
        f"{JOBS}/left",
        None,
        before=(("POST", JOBS, job("left", metadata={"finalizers": ["a.b/c"]})),),
        accepted={"metadata": {"finalizers": ["a.b/c", "orphan"]}},
    )
    yield Case("long name", "POST", JOBS, job("j" * 64), 422, "must be no more than 63 bytes")
    yield Case(
        "manager",
        "POST",
        JOBS,
        job("m", managedBy="x"),
        422,
        'spec.managedBy: Invalid value: "x": must be a domain-prefixed path (such as "acme.io/foo")',
    )
    yield Case(
        "text as number",
        "POST",
        JOBS,
        job("n", parallelism="3"),
        400,
        "cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32",
    )
    yield Case(
        "event elsewhere",
        "POST",
        EVENTS,
        event("e", "other"),
        422,
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
    )
    yield Case(
        "event without reporter",
        "POST",
        EVENTS,
        event("e", eventTime="2026-01-01T00:00:00.000000Z"),
        422,
        "reportingInstance: Required value, action: Required value]",
    )
    there = ("POST", MAPS, config_map("there"))
    stale = "the object has been modified; please apply your changes to the latest version and try again"
    yield Case(
        "stale patch",
        "PATCH",
        f"{MAPS}/there",
        {"metadata": {"resourceVersion": "1"}, "data": {"a": "b"}},
        409,
        stale,
        before=(there,),
    )
    yield Case(
        "another UID",
        "PATCH",
        f"{MAPS}/there",
        {"metadata": {"uid": "x"}, "data": {"a": "b"}},
        422,
        'metadata.uid: Invalid value: "x": field is immutable',
        before=(there,),
    )
    yield Case(
        "precondition",
        "DELETE",
        f"{MAPS}/there",
        {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "x"}},
        409,
        "The object might have been deleted and then recreated",
        before=(there,),
    )
    yield Case("label", "POST", MAPS, config_map("l", labels={"a": "c" * 64}), 422, "must be no more than 63 bytes")
    yield Case(
        "owner without UID",
        "POST",
        MAPS,
        config_map("o", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}]),
        422,
        'metadata.ownerReferences.uid: Invalid value: "": must not be empty',
    )
    yield Case(
        "events own nothing",
        "POST",
        MAPS,
        config_map("o", ownerReferences=[{"apiVersion": "v1", "kind": "Event", "name": "c", "uid": "u"}]),
        422,
        "/v1, Kind=Event is disallowed from being an owner",
    )
    yield Case(
        "two gates of a name",
        "POST",
        PODS,
        pod("g", schedulingGates=[{"name": "a.b/c"}] * 2),
        422,
        'spec.schedulingGates[1]: Duplicate value: "a.b/c"',
    )
    yield Case(
        "request above limit",
        "POST",
        PODS,
        pod("r", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        422,
        'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
    )
    gated = ("POST", PODS, pod("gated", nodeSelector={"a": "b"}, schedulingGates=[{"name": "a.b/c"}]))
    yield Case(
        "selector changes",
        "PATCH",
        f"{PODS}/gated",
        {"spec": {"nodeSelector": {"a": "c"}}},
        422,
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)",
        before=(gated,),
    )
    yield Case("selector grows", "PATCH", f"{PODS}/gated", {"spec": {"nodeSelector": {"c": "d"}}}, before=(gated,))
    yield Case("no such kind", "GET", "/apis/ray.io/v1/rayjobs", None, 404, "404 page not found")
    yield Case("no such resource", "GET", "/apis/batch/v1/jabs", None, 404, "could not find the requested resource")


def _role_cases() -> Iterator[Case]:
    for kind, version, code, message in (
        ("Job", "batch/v1", 201, ""),
        ("ConfigMap", "v1", 403, BLOCKED),
        ("StatefulSet", "apps/v1", 403, BLOCKED),
        ("Thing", "no.such/v1", 403, 'no matches for kind "Thing" in version "no.such/v1"'),
    ):
        owned = workload(f"w-{kind.lower()}", apiVersion=version, kind=kind, blockOwnerDeletion=True)
        yield Case(f"owner {kind}", "POST", WORKLOADS, owned, code, message, as_serve=True)
    yield Case(
        "not allowed",
        "POST",
        MAPS,
        config_map("s"),
        403,
        as_serve=True,
        message=(
            'User "system:serviceaccount:kueue-system:kueuecore" cannot create resource "configmaps" in API group "" '
            f'in the namespace "{NAMESPACE}"'
        ),
    )


CASES = [*_status_cases(), *_template_cases(), *_other_cases(), *_role_cases()]


def sent(api: Api, method: str, path: str, body: Object | None) -> Object:
    return api.send(method, path, body, content_type=MERGE_PATCH if method == "PATCH" else "application/json")


@pytest.mark.parametrize("case", CASES, ids=lambda case: re.sub(r"\W+", "-", case.title))
def test_requests_are_answered_as_by_a_real_server(bare_cluster: Cluster, case: Case) -> None:
    admin, serve = bare_cluster.api(), Api.connect(kubeconfig=bare_cluster.serve_kubeconfig, kinds=KINDS)
    create(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for method, path, body in case.before:
        try:
            sent(admin, method, path, body)
        except RefusedError as error:
            if error.code != 409:
                raise
    asks = serve if case.as_serve else admin
    if not case.message:
        found = sent(asks, case.method, case.path, case.body)
        for name, value in case.accepted.get("metadata", {}).items():
            assert found["metadata"].get(name) == value
        return
    with pytest.raises(RefusedError) as refused:
        sent(asks, case.method, case.path, case.body)
    assert (refused.value.code, str(refused.value)[-len(case.message) :]) == (case.code, case.message)


def test_a_watch_from_before_a_restart_has_to_begin_again(bare_cluster: Cluster) -> None:
    api = bare_cluster.api()
    create(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}})
    bare_cluster.restart(seconds=0.2)

    def code() -> int:
        try:
            event, _ = next(api.watch(api.path("Job"), since="1"))
        except UnansweredError:
            return 0
        except RefusedError as error:
            return error.code
        return int_at(event, "object", "code")

    wait_for(lambda: code() == 410, "the watch is told that it is too old", seconds=20)
