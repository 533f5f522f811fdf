"""The policies of deploy/ say what Kueue's webhooks say, which judge what the API server for tests makes of them."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore import Configuration
from kueuecore._patches import patched
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.webhooks import admit
from kueuecore_apiserver import HttpApiServer, Request
from kueuecore_apiserver.admission.chain import Admission
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.plain_crds import framework_crds, kueue_crds
from tests.crd_objects import RICH, Plain, group, mutated, own, schema_of
from tests.jobs import ALL_KINDS, job

POLICIES = Path("deploy/admission-policies.yaml")
DEPLOYED = Path("deploy/kueuecore.yaml")
QUEUE, CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
ROLE_HASH = "kueue.x-k8s.io/role-hash"
# Of the kinds of deploy/kueuecore.yaml, those that are suspended as a whole.
SUSPENDED = ("Job", "JobSet", "MPIJob", "RayCluster", "RayJob", "RayService", "TrainJob", "AppWrapper")


def policies() -> list[Plain]:
    return [row for row in yaml.safe_load_all(POLICIES.read_text("utf-8")) if row]


def configuration() -> Configuration:
    manifests = yaml.safe_load_all(DEPLOYED.read_text("utf-8"))
    (text,) = (row["data"]["configuration.yaml"] for row in manifests if row["kind"] == "ConfigMap")
    return Configuration.parse(text)


AROUND: list[Plain] = [
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "default", "namespace": "defaults"},
        "spec": {"clusterQueue": "q"},
    },
]
SET: Plain = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "metadata": {"name": "t", "namespace": "n", "uid": "u"},
}
RUNTIME: Plain = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {"template": {"spec": {"replicatedJobs": []}}},
}


class Judge:
    """The policies of a server that has them."""

    def __init__(self) -> None:
        server = HttpApiServer(ApiServer(), schemas=CrdSchema.of)
        server.load([*kueue_crds(), *framework_crds()])
        names = ("n", "defaults", "kube-system", "kueue-system", "default")
        server.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names])
        server.load([*AROUND, *policies()])
        self.server = server
        self._admission = Admission(server._store, {})

    def __call__(self, new: Plain, old: Plain | None = None) -> Plain | str:
        """What the policies make of a write, or why they refuse it."""
        resource = self.server.kinds.of_kind(new["apiVersion"], new["kind"])
        assert resource is not None
        request = Request("POST" if old is None else "PUT", "")
        try:
            stored = self._admission.mutated(request, resource, copy.deepcopy(new), copy.deepcopy(old))
            self._admission.check(request, resource, stored, old)
        except RefusedError as refused:
            return str(refused)
        return stored


@pytest.fixture(scope="module")
def by_policy() -> Judge:
    return Judge()


def by_webhook(new: Plain, old: Plain | None = None) -> Plain | str:
    try:
        return admit(
            copy.deepcopy(new), old=copy.deepcopy(old), around=[*AROUND, RUNTIME, SET], configuration=configuration()
        ).object
    except RefusedError as refused:
        return str(refused)


def problems(answer: Plain | str) -> set[str]:
    """The problems in a refusal, whoever refuses."""
    assert isinstance(answer, str), answer
    text = answer.partition("denied the request: ")[2] or answer.partition("denied request: ")[2]
    assert text, answer
    return set(text[1:-1].replace(", spec.", "\n spec.").split("\n ")) if text.startswith("[") else {text}


def fields(answer: Plain | str, kind: str) -> Any:
    """What the policies set."""
    assert isinstance(answer, dict), answer
    its = answer["metadata"]
    labels = {key: value for key, value in its.get("labels", {}).items() if key.startswith("kueue.x-k8s.io/")}
    spec = answer["spec"]
    if kind == "Pod":
        gates = [gate["name"] for gate in spec.get("schedulingGates", [])]
        return labels, its.get("finalizers", []), gates
    part = {"MPIJob": "runPolicy", "RayService": "rayClusterConfig"}.get(kind, "")
    holder = spec.get(part, {}) if part else spec
    return labels, holder.get("suspend", False)


def variants(kind: str) -> Iterator[tuple[str, Plain]]:
    base = job(kind)
    yield "names a queue", base
    yield "names no queue", patched(base, {"metadata": {"labels": {QUEUE: None}}})
    for namespace in ("defaults", "kube-system", "kueue-system"):
        yield f"in {namespace}", patched(base, {"metadata": {"namespace": namespace}})
        yield f"in {namespace}, without a label", patched(base, {"metadata": {"namespace": namespace, "labels": None}})
    yield "has finalizers", patched(base, {"metadata": {"finalizers": ["a.b/c"]}})
    owner: Plain = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "t", "uid": "u", "controller": True}
    yield "of an unknown kind", patched(base, {"metadata": {"ownerReferences": [owner]}})
    yield (
        "of a Deployment",
        patched(base, {"metadata": {"ownerReferences": [{**owner, "apiVersion": "apps/v1", "kind": "ReplicaSet"}]}}),
    )
    yield (
        "is no part",
        patched(base, {"metadata": {"ownerReferences": [{**owner, "kind": "Job", "controller": False}]}}),
    )


@pytest.mark.parametrize("kind", [*SUSPENDED, "Pod"])
def test_jobs_are_stored_as_by_the_webhook(by_policy: Judge, kind: str) -> None:
    for what, new in variants(kind):
        stored, wanted = by_policy(new), by_webhook(new)
        if new["metadata"]["namespace"].startswith("ku"):
            # Webhooks are configured not to be asked there.
            wanted = new
        assert fields(stored, kind) == fields(wanted, kind), f"{kind}: {what}"
        assert isinstance(stored, dict)
        assert ROLE_HASH not in stored["metadata"].get("annotations", {})


@pytest.mark.parametrize("kind", [*SUSPENDED, "Pod"])
def test_what_a_managed_job_has_made_is_left_alone(by_policy: Judge, kind: str) -> None:
    parent: Plain = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    new = patched(job(kind), {"metadata": {"ownerReferences": [parent]}})
    assert fields(by_policy(new), kind) == fields(new, kind)


def test_a_pod_gets_the_index_that_its_annotation_names(by_policy: Judge) -> None:
    annotations: Plain = {"kueue.x-k8s.io/pod-group-pod-index-label": "i"}
    new = patched(job("Pod", i="3"), {"metadata": {"annotations": annotations}})
    assert fields(by_policy(new), "Pod") == fields(by_webhook(new), "Pod")


def numbered(rows: Iterable[Plain]) -> list[str]:
    return [f"{row['kind']} {number}" for number, row in enumerate(rows)]


def quotas(**changes: Any) -> Plain:
    resource = {"name": "cpu", "nominalQuota": "4", **changes}
    return {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [resource]}]}]}


TWICE = {"resourceGroups": [group(1), {**group(1), "flavors": [{**group(1)["flavors"][0], "name": "g"}]}]}
REFUSED: list[Plain] = [
    *(
        own(kind, {parent: "all", **spec})
        for kind, parent in (("ClusterQueue", "cohortName"), ("Cohort", "parentName"))
        for spec in (
            quotas(nominalQuota="-4"),
            quotas(lendingLimit="-1"),
            quotas(borrowingLimit="-1"),
            quotas(name="memory"),
            TWICE,
            {"resourceGroups": [group(1), {**group(1), "coveredResources": ["memory"]}]},
            {"fairSharing": {"weight": "-1"}},
            {"fairSharing": {"weight": "1n"}},
        )
    ),
    own("ClusterQueue", {"cohortName": "all", **quotas(lendingLimit="5")}),
    own("ClusterQueue", quotas(lendingLimit="3")),
    own("Cohort", quotas(lendingLimit="3")),
    own("Cohort", quotas(borrowingLimit="3")),
    *(
        own("ClusterQueue", {"namespaceSelector": {"matchExpressions": [{"key": "a", **row}]}})
        for row in (
            {"operator": "In"},
            {"operator": "NotIn", "values": []},
            {"operator": "Exists", "values": ["b"]},
            {"operator": "Near"},
        )
    ),
    own(
        "ClusterQueue",
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["x"]}]}, **quotas()},
    ),
    own(
        "ResourceFlavor",
        {"nodeTaints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "value": "v", "effect": "NoSchedule"}]},
    ),
    *(
        patched(RICH["Workload"], {"status": None, "spec": {"podSets": list(pod_sets)}})
        for pod_sets in (
            [
                {**RICH["Workload"]["spec"]["podSets"][0]},
                {**RICH["Workload"]["spec"]["podSets"][0], "name": "other"},
            ],
            *(
                [
                    {
                        "name": "main",
                        "count": 1,
                        "template": {"spec": {"containers": [{"name": "c", "resources": {where: amounts}}]}},
                    }
                ]
                for where in ("requests", "limits")
                for amounts in ({"pods": 1}, {"cpu": "-1"})
            ),
        )
    ),
    job("Job") | {"metadata": {"name": "j", "namespace": "n", "labels": {QUEUE: "Big_Queue"}}},
    patched(job("Pod", **{"kueue.x-k8s.io/managed": "false"}), {"metadata": {"labels": {QUEUE: None}}}),
    *(patched(job(kind), {"metadata": {"labels": {QUEUE: ""}}}) for kind in (*SUSPENDED, "Pod")),
    job("Pod", **{"kueue.x-k8s.io/pod-group-name": "g"}),
    patched(job("Pod"), {"metadata": {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}}}),
    patched(
        job("Pod", **{"kueue.x-k8s.io/pod-group-name": "g"}),
        {"metadata": {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "0"}}},
    ),
]


@pytest.mark.parametrize("new", REFUSED, ids=numbered(REFUSED))
def test_what_the_webhook_refuses_is_refused_in_its_words(by_policy: Judge, new: Plain) -> None:
    assert problems(by_policy(new)) == problems(by_webhook(new))


ACCEPTED: list[Plain] = [
    *(patched(RICH[kind], {"status": None}) for kind in RICH),
    own("ClusterQueue", {"cohortName": "all", **quotas(lendingLimit="4", borrowingLimit="0")}),
    own("Cohort", {"parentName": "all", **quotas(lendingLimit="9")}),
    own("ClusterQueue", {"fairSharing": {"weight": "0"}}),
    own("ClusterQueue", {"cohortName": "all", **quotas(nominalQuota=1, lendingLimit="1000m")}),
    own("ClusterQueue", {"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}}),
    own("ClusterQueue", {}),
    own("Cohort", {}),
    own("ResourceFlavor", {"nodeTaints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "NoExecute"}]}),
]


@pytest.mark.parametrize("new", ACCEPTED, ids=numbered(ACCEPTED))
def test_what_the_webhook_accepts_is_accepted(by_policy: Judge, new: Plain) -> None:
    assert isinstance(by_webhook(new), dict), by_webhook(new)
    assert isinstance(stored := by_policy(new), dict), stored


def changes() -> Iterator[tuple[Plain, Plain]]:
    for kind in SUSPENDED:
        path = {"MPIJob": ("runPolicy",), "RayService": ("rayClusterConfig",)}.get(kind, ())
        for suspended in (True, False):
            spec: Plain = {"suspend": suspended}
            for name in path:
                spec = {name: spec}
            old = patched(job(kind), {"spec": spec})
            yield old, patched(old, {"metadata": {"labels": {QUEUE: "other"}}})
            yield old, patched(old, {"metadata": {"labels": {CLASS: "high"}}})
            classed = patched(old, {"metadata": {"labels": {CLASS: "high"}}})
            yield classed, old
            yield classed, patched(old, {"metadata": {"labels": {CLASS: "low"}}})
            yield old, patched(old, {"metadata": {"labels": {"kueue.x-k8s.io/max-exec-time-seconds": "60"}}})
            yield old, patched(old, {"metadata": {"labels": {"free": "to-change"}}})
    old = patched(
        job("Pod", **{"kueue.x-k8s.io/pod-group-name": "g"}),
        {"metadata": {"annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"}}},
    )
    yield old, patched(old, {"metadata": {"labels": {"kueue.x-k8s.io/pod-group-name": "h"}}})


CHANGES = [*changes()]


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=numbered(old for old, _ in CHANGES))
def test_changes_are_judged_as_by_the_webhook(by_policy: Judge, old: Plain, new: Plain) -> None:
    wanted = by_webhook(new, old)
    answer = by_policy(new, old)
    if isinstance(wanted, dict):
        assert isinstance(answer, dict), answer
    else:
        assert problems(answer) == problems(wanted)


def test_a_workload_with_quota_keeps_its_pods_and_its_admission(by_policy: Judge) -> None:
    old = RICH["Workload"]
    pod_sets = copy.deepcopy(old["spec"]["podSets"])
    pod_sets[0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 2
    admission = copy.deepcopy(old["status"]["admission"])
    admission["podSetAssignments"][0]["flavors"] = {"cpu": "g"}
    patches: list[tuple[Plain, str]] = [
        ({"spec": {"podSets": pod_sets}}, "spec.podSets"),
        ({"status": {"admission": admission}}, "status.admission"),
    ]
    for patch, where in patches:
        new = patched(old, patch)
        answer, wanted = by_policy(new, old), by_webhook(new, old)
        assert isinstance(answer, str)
        assert isinstance(wanted, str)
        for text in (answer, wanted):
            assert where in text
            assert "field is immutable" in text
    fewer = patched(old, {"spec": {"podSets": [{**old["spec"]["podSets"][0], "count": 3}]}})
    assert isinstance(by_webhook(fewer, old), dict) == isinstance(by_policy(fewer, old), dict)


# What the policies leave to webhooks, or to the engine.
LEFT_OUT = (
    *("label", "annotation", "name part", "prefix part", "qualified name", "Too long", "must be at most"),
    *("is not a multiple of", "reclaimablePods", "podSetUpdates", "Not found", "clusterName", "conditions", "topology"),
    *("nodeLabels", "timeAdded", "flavor-resource combinations", "template.spec.resources"),
)


@pytest.mark.parametrize("kind", ["ClusterQueue", "Cohort", "ResourceFlavor", "Workload"])
def test_random_objects_are_judged_alike(by_policy: Judge, kind: str) -> None:
    random_numbers = random.Random(kind)
    n_refused = 0
    for _ in range(400):
        old = RICH[kind] if random_numbers.random() < 0.5 else None
        new = mutated(RICH[kind], random_numbers, random_numbers.choice((1, 1, 2, 3)))
        try:
            stored = schema_of(kind).stored(copy.deepcopy(new), copy.deepcopy(old))
        except RefusedError:
            # A server would not ask any further.
            continue
        wanted, answer = by_webhook(stored, old), by_policy(stored, old)
        if isinstance(wanted, str) and "denied the request" not in wanted:
            continue
        if isinstance(answer, str):
            n_refused += 1
            assert isinstance(wanted, str), f"{answer}\n{stored}"
            assert "cannot be shown" in answer or shortened(answer) <= shortened(wanted), stored
        elif isinstance(wanted, str):
            assert any(words in wanted for words in LEFT_OUT), f"{wanted}\n{stored}"
    assert n_refused


def shortened(answer: str) -> set[str]:
    """Fields and details of problems, without the values: those of webhooks are canonical."""
    return {f"{problem.split(': ')[0]} {problem.split(': ')[-1]}" for problem in problems(answer)}


def test_all_kinds_of_the_configuration_are_known() -> None:
    enabled = {"Pod", "Deployment", "StatefulSet", "LeaderWorkerSet", *SUSPENDED}
    assert enabled <= set(ALL_KINDS)
    rules = {
        resource
        for row in policies()
        if row["metadata"]["name"] == "kueuecore-suspend-jobs" and row["kind"] == "MutatingAdmissionPolicy"
        for rule in row["spec"]["matchConstraints"]["resourceRules"]
        for resource in rule["resources"]
    }
    assert rules == {f"{kind.lower()}s" for kind in SUSPENDED}
