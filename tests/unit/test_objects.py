from __future__ import annotations

import dataclasses
import json
import pickle
import types
import typing
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kueuecore import objects
from kueuecore.errors import ManifestError, ObjectRef
from kueuecore.manifests import parse_manifests
from kueuecore.objects import (
    KINDS,
    AdmissionCheck,
    AdmissionCheckRule,
    BorrowWithinCohort,
    ClusterQueue,
    Cohort,
    Condition,
    ConditionStatus,
    Container,
    DeviceClass,
    DeviceRequest,
    FairSharing,
    FlavorQuotas,
    LabelSelector,
    LabelSelectorOperator,
    LabelSelectorRequirement,
    LocalQueue,
    MultiKueueCluster,
    Namespace,
    Node,
    NodeCondition,
    Pod,
    PodSet,
    PodTemplate,
    PreemptionConfig,
    PreemptionGate,
    PriorityClass,
    ProvisioningRequestConfig,
    ResourceClaimTemplate,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    RuntimeClass,
    Toleration,
    Topology,
    TopologyLevel,
    Workload,
    WorkloadPriorityClass,
)
from kueuecore.objects._fields import Value

_TEXTS = st.text("abcxyz-./0 ", max_size=4)
_AMOUNTS = (
    st.integers(-5, 2**70).map(str)
    | st.integers(0, 9)
    | st.decimals(-9, 10**12, allow_nan=False, places=3)
    | st.sampled_from(["0", "500m", "10Gi", "1e3", "1.5", ".5", "1n", "+2E", "3E2"])
)
_FREE = st.dictionaries(
    st.sampled_from(["image", "other-a", "other-b"]), st.none() | st.booleans() | st.integers() | st.lists(st.text())
)


def _strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type hint of a field."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        members = set(arguments) - {type(None)}
        inner = _AMOUNTS if members == {str, int, Decimal} else _strategy(*members)
        return st.none() | inner if type(None) in arguments else inner
    if origin is Sequence:
        return st.lists(_strategy(arguments[0]), max_size=2)
    if origin is Mapping:
        return st.dictionaries(st.text("ab/.", min_size=1, max_size=3), _strategy(arguments[1]), max_size=2)
    if origin is dict:
        return _FREE
    if issubclass(hint, StrEnum):
        return st.sampled_from([*hint])
    if issubclass(hint, Value):
        return st.deferred(lambda: _objects(hint))
    return {str: _TEXTS, int: st.integers(-(2**31), 2**31 - 1), bool: st.booleans()}[hint]


def _objects(cls: type[Value]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    fields = {field.name: _strategy(hints[field.name]) for field in dataclasses.fields(typing.cast(Any, cls))}
    if "other" in fields:
        # What has a field of its own cannot be in the rest.
        fields["other"] = st.dictionaries(st.sampled_from(["x", "y"]), st.none() | st.integers(), max_size=2)
    # Some fields stay at their defaults.
    required = {
        field.name: fields.pop(field.name)
        for field in dataclasses.fields(typing.cast(Any, cls))
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    }
    return st.fixed_dictionaries(required, optional=fields).map(lambda arguments: cls(**arguments))


@pytest.mark.parametrize("cls", KINDS.values(), ids=lambda cls: cls.__name__)
def test_manifest_and_back_gives_the_same_object(cls: type[objects.ClusterQueue]) -> None:
    @settings(max_examples=60, deadline=None)
    @given(_objects(cls))
    def round_trip(instance: objects.ClusterQueue) -> None:
        manifest = instance.to_manifest()
        through_json = json.loads(json.dumps(manifest))
        assert through_json == manifest
        assert objects.from_manifest(through_json) == instance
        assert pickle.loads(pickle.dumps(instance)) == instance

    round_trip()


def test_there_is_a_class_for_every_kind() -> None:
    kinds = {kind for _, kind in KINDS}
    assert kinds >= {
        "ResourceFlavor",
        "ClusterQueue",
        "Cohort",
        "LocalQueue",
        "Workload",
        "WorkloadPriorityClass",
        "AdmissionCheck",
        "ProvisioningRequestConfig",
        "MultiKueueConfig",
        "MultiKueueCluster",
        "Topology",
    }
    others = (*_OF_KUBERNETES, "PreemptionConfig")
    assert all(api_version == "kueue.x-k8s.io/v1beta2" for api_version, kind in KINDS if kind not in others)


_OF_KUBERNETES = (
    "PriorityClass",
    "Namespace",
    "LimitRange",
    "RuntimeClass",
    "ResourceClaimTemplate",
    "DeviceClass",
    "Node",
    "Pod",
)


def test_cluster_queue_has_the_defaults_of_the_api() -> None:
    assert ClusterQueue("a").to_manifest() == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": {
            "queueingStrategy": "BestEffortFIFO",
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
            "preemption": {
                "reclaimWithinCohort": "Never",
                "withinClusterQueue": "Never",
                "borrowWithinCohort": {"policy": "Never"},
            },
            "stopPolicy": "None",
        },
    }


def test_cluster_queue_is_written_in_the_names_of_v1beta2() -> None:
    quota = ResourceQuota("cpu", nominal_quota=9, borrowing_limit="1500m", lending_limit=Decimal("0.5"))
    queue = ClusterQueue(
        "a",
        cohort_name="team",
        labels={"x": "y"},
        resource_groups=[ResourceGroup(["cpu"], flavors=[FlavorQuotas("default", resources=[quota])])],
        namespace_selector=LabelSelector(),
        admission_checks=[AdmissionCheckRule("check", on_flavors=["default"])],
        fair_sharing=FairSharing(),
        admission_mode=objects.AdmissionMode.USAGE_BASED_ADMISSION_FAIR_SHARING,
        concurrent_admission_policy=objects.ConcurrentAdmissionPolicy(
            objects.ConcurrentAdmissionMode.RETAIN_FIRST_ADMISSION, last_acceptable_flavor_name="spot"
        ),
    )
    manifest: Any = queue.to_manifest()
    assert manifest["metadata"] == {"name": "a", "labels": {"x": "y"}}
    spec = manifest["spec"]
    assert spec["cohortName"] == "team"
    assert spec["resourceGroups"][0]["flavors"][0]["resources"] == [
        {"name": "cpu", "nominalQuota": "9", "borrowingLimit": "1500m", "lendingLimit": "0.5"}
    ]
    assert spec["namespaceSelector"] == {}
    assert spec["admissionChecksStrategy"] == {"admissionChecks": [{"name": "check", "onFlavors": ["default"]}]}
    assert spec["fairSharing"] == {"weight": "1"}
    assert spec["admissionScope"] == {"admissionMode": "UsageBasedAdmissionFairSharing"}
    assert spec["concurrentAdmissionPolicy"] == {
        "migration": {"mode": "RetainFirstAdmission", "constraints": {"lastAcceptableFlavorName": "spot"}}
    }


@pytest.mark.parametrize(
    ("instance", "where", "expected"),
    [
        (Cohort("a", parent_name="b"), "spec", {"parentName": "b"}),
        (Topology("t", levels=[TopologyLevel("rack")]), "spec", {"levels": [{"nodeLabel": "rack"}]}),
        (WorkloadPriorityClass("high", value=10), "value", 10),
        (PriorityClass("high", value=0, global_default=True), "globalDefault", True),
        (
            MultiKueueCluster("w", kube_config=objects.KubeConfig("secret")),
            "spec",
            {"clusterSource": {"kubeConfig": {"location": "secret", "locationType": "Secret"}}},
        ),
        (
            ProvisioningRequestConfig(
                "p",
                provisioning_class_name="queued",
                node_selector_updates=[objects.NodeSelectorUpdate("k", value_from_provisioning_class_detail="d")],
            ),
            "spec",
            {
                "provisioningClassName": "queued",
                "retryStrategy": {"backoffLimitCount": 3, "backoffBaseSeconds": 60, "backoffMaxSeconds": 1800},
                "podSetUpdates": {"nodeSelector": [{"key": "k", "valueFromProvisioningClassDetail": "d"}]},
            },
        ),
        (
            AdmissionCheck("c", controller_name="x", conditions=[Condition("Active", status=ConditionStatus.TRUE)]),
            "status",
            {"conditions": [{"type": "Active", "status": "True"}]},
        ),
        (PreemptionConfig("p", rules=[{"name": "r"}]), "spec", {"rules": [{"name": "r"}]}),
        (DeviceClass("gpu", extended_resource_name="a.b/gpu"), "spec", {"extendedResourceName": "a.b/gpu"}),
        (
            ResourceClaimTemplate("t", requests=[DeviceRequest("r", first_available=[{"name": "s"}])]),
            "spec",
            {"spec": {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}}},
        ),
        (
            Node(
                "n",
                unschedulable=True,
                allocatable={"cpu": 8},
                conditions=[NodeCondition("Ready", status=ConditionStatus.TRUE)],
            ),
            "status",
            {"allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
        ),
        (Pod("p", node_name="n", phase="Running"), "spec", {"containers": [{"name": "main"}], "nodeName": "n"}),
        (RuntimeClass("kata", handler="kata", pod_fixed={"cpu": 1}), "overhead", {"podFixed": {"cpu": "1"}}),
    ],
)
def test_kinds_are_written_where_the_api_has_their_fields(
    instance: objects.ClusterQueue, where: str, expected: object
) -> None:
    assert instance.to_manifest()[where] == expected


def test_pod_set_from_requests_is_one_container() -> None:
    pod_set = PodSet("main", count=3, min_count=1, requests={"cpu": "1", "memory": "200Mi"})
    assert pod_set == PodSet(
        "main",
        count=3,
        min_count=1,
        template=PodTemplate([Container("main", requests={"cpu": 1, "memory": "200Mi"})]),
    )
    with pytest.raises(ValueError, match="requests or a template"):
        PodSet(requests={"cpu": 1}, template=PodTemplate([Container("other")]))


def test_pod_template_keeps_what_it_has_no_name_for() -> None:
    template: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "env": [{"name": "A", "value": "1"}],
                    "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "gpu"}]},
                }
            ],
            "initContainers": [{"name": "side", "restartPolicy": "Always"}],
            "nodeSelector": {"zone": "a"},
            "priorityClassName": "high",
            "restartPolicy": "Never",
            "schedulingGates": [{"name": "g"}],
        },
    }
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "n"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": template}], "active": True},
    }
    read = Workload.from_manifest(typing.cast(Any, workload))
    assert read.pod_sets[0].template.containers[0].other == {"env": [{"name": "A", "value": "1"}]}
    assert read.pod_sets[0].template.other == {"restartPolicy": "Never", "schedulingGates": [{"name": "g"}]}
    assert read.to_manifest() == workload


def test_status_of_a_workload_is_kept_and_that_of_a_queue_is_not() -> None:
    text = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: w, namespace: 'n', resourceVersion: "7", managedFields: []}
spec: {podSets: [{name: main, count: 2, template: {spec: {containers: [{name: c}]}}}]}
status:
  admission:
    clusterQueue: a
    podSetAssignments: [{name: main, count: 2, flavors: {cpu: default}, resourceUsage: {cpu: 2}}]
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, lastTransitionTime: 2026-01-01T00:00:00Z}]
  unhealthyNodes: [{name: node-1}]
"""
    workload = Workload.from_manifest(parse_manifests(text)[0].object)
    assert workload.status is not None
    assert workload.status.admission is not None
    assert workload.status.admission.pod_set_assignments[0].resource_usage == {"cpu": "2"}
    assert workload.status.other == {"unhealthyNodes": [{"name": "node-1"}]}
    queue = {**LocalQueue("q", cluster_queue="c").to_manifest(), "status": {"pendingWorkloads": 3}}
    assert LocalQueue.from_manifest(typing.cast(Any, queue)) == LocalQueue("q", cluster_queue="c")


@pytest.mark.parametrize("value", [1.5, float("nan"), True, None, [1]])
def test_quantities_of_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        ResourceQuota("cpu", nominal_quota=value)


def test_float_quantity_shows_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"write Decimal\('0.1'\) or '0.1', not 0.1"):
        ResourceQuota("cpu", nominal_quota=typing.cast(Any, 0.1))


@pytest.mark.parametrize("value", ["", "1x", "1 Gi", "1GiB", "--1", "1K", "e3", "٣", "1\n"])
def test_texts_that_are_no_quantity_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        ResourceQuota("cpu", nominal_quota=value)


def test_decimal_quantity_is_written_out() -> None:
    assert ResourceQuota("cpu", nominal_quota=Decimal("1E+3")).nominal_quota == "1000"
    assert ResourceQuota("cpu", nominal_quota=Decimal("0.0000001")).nominal_quota == "0.0000001"
    with pytest.raises(ValueError, match="is not a quantity"):
        ResourceQuota("cpu", nominal_quota=Decimal("NaN"))


def test_bare_whole_number_of_a_manifest_is_a_quantity() -> None:
    manifest: Any = ResourceQuota("cpu", nominal_quota=1)._to_json()
    assert ResourceQuota._from_json({**manifest, "nominalQuota": 2}, "").nominal_quota == "2"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ClusterQueue(typing.cast(Any, 3)), "ClusterQueue.name must be a string, not 3"),
        (lambda: PodSet(count=typing.cast(Any, "3")), "PodSet.count must be a whole number, not '3'"),
        (lambda: PodSet(count=typing.cast(Any, True)), "PodSet.count must be a whole number, not True"),
        (lambda: Workload("w", pod_sets=typing.cast(Any, PodSet())), "Workload.pod_sets must be a list"),
        (lambda: Workload("w", pod_sets=typing.cast(Any, ["main"])), r"Workload.pod_sets\[0\] must be a PodSet"),
        (lambda: LabelSelector(typing.cast(Any, "a=b")), "LabelSelector.match_labels must be a mapping"),
    ],
)
def test_wrong_types_name_the_field(make: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        make()


def test_enum_takes_the_spelling_of_kubernetes_and_lists_it_otherwise() -> None:
    assert (
        BorrowWithinCohort(typing.cast(Any, "LowerPriority")).policy is objects.BorrowWithinCohortPolicy.LOWER_PRIORITY
    )
    with pytest.raises(ValueError, match='Unsupported value: "lower": supported values: "Never", "LowerPriority"'):
        BorrowWithinCohort(typing.cast(Any, "lower"))


def test_arguments_are_copied() -> None:
    labels, groups = {"a": "b"}, [ResourceGroup.of({"f": {"cpu": 1}})]
    queue = ClusterQueue("a", labels=labels, resource_groups=groups)
    labels["a"] = "c"
    groups.clear()
    assert queue.labels == {"a": "b"}
    assert len(queue.resource_groups) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        queue.name = "b"  # type: ignore[misc]


def test_resource_group_of_uneven_flavors_is_refused() -> None:
    with pytest.raises(ValueError, match="flavor 'b' has quotas of"):
        ResourceGroup.of({"a": {"cpu": 1, "memory": 1}, "b": {"cpu": 1}})


def _problem(changes: dict[str, Any]) -> tuple[str, str]:
    manifest: Any = LocalQueue("q", namespace="n", cluster_queue="c").to_manifest()
    for path, value in changes.items():
        *parents, last = path.split(".")
        target = manifest
        for key in parents:
            target = target[key]
        target[last] = value
    with pytest.raises(ManifestError) as caught:
        objects.from_manifest(manifest)
    return caught.value.field, str(caught.value)


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"spec.clusterQueue": None}, "spec.clusterQueue", "Required value"),
        ({"spec.clusterQueue": 3}, "spec.clusterQueue", "must be a string, not 3"),
        ({"spec.clusterQueu": "c"}, "spec.clusterQueu", "the known fields are clusterQueue, fairSharing, stopPolicy"),
        ({"spec": []}, "spec", "must be a mapping, not a list"),
        ({"spec.stopPolicy": "hold"}, "spec.stopPolicy", 'supported values: "None", "Hold", "HoldAndDrain"'),
        ({"spec.fairSharing": {"weight": "x"}}, "spec.fairSharing.weight", 'Invalid value: "x"'),
        ({"spec.fairSharing": {"weight": 0.5}}, "spec.fairSharing.weight", 'write "0.5"'),
        ({"extra": 1}, "extra", "unknown field of LocalQueue"),
        ({"apiVersion": "kueue.x-k8s.io/v1beta1"}, "", "there is no class for kueue.x-k8s.io/v1beta1 LocalQueue"),
        ({"metadata.labels": {"a": 1}}, "metadata.labels[a]", "must be a string, not 1"),
    ],
)
def test_manifest_that_does_not_fit_names_the_field(changes: dict[str, Any], field: str, message: str) -> None:
    found_field, text = _problem(changes)
    assert found_field == field
    assert message in text


def test_other_kind_is_refused_by_a_class() -> None:
    with pytest.raises(ManifestError, match=r"found kueue\.x-k8s\.io/v1beta2 Cohort instead"):
        ClusterQueue.from_manifest(Cohort("a").to_manifest())


def test_empty_enum_of_a_manifest_is_absent() -> None:
    flavor: Any = ResourceFlavor("f", tolerations=[Toleration("k")]).to_manifest()
    flavor["spec"]["tolerations"][0] |= {"operator": "", "effect": ""}
    assert ResourceFlavor.from_manifest(flavor).tolerations == (Toleration("k"),)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ["a"], {"k": "a"}, True),
        ("In", ["a"], {"k": "b"}, False),
        ("In", ["a"], {}, False),
        ("NotIn", ["a"], {"k": "a"}, False),
        ("NotIn", ["a"], {"k": "b"}, True),
        ("NotIn", ["a"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {"k": ""}, False),
        ("DoesNotExist", [], {}, True),
    ],
)
def test_requirement_of_a_selector(operator: str, values: list[str], labels: dict[str, str], matches: bool) -> None:
    requirement = LabelSelectorRequirement("k", operator=LabelSelectorOperator(operator), values=values)
    assert LabelSelector(match_expressions=[requirement]).matches(labels) is matches
    assert LabelSelector({"x": "y"}, match_expressions=[requirement]).matches(labels) is False


def test_empty_selector_matches_everything() -> None:
    assert LabelSelector().matches({})


def test_names_for_errors() -> None:
    assert LocalQueue("q", namespace="n", cluster_queue="c").ref == ObjectRef("LocalQueue", "q", "n")
    assert Namespace("n").ref == ObjectRef("Namespace", "n")
    assert PreemptionGate("g").name == "g"
