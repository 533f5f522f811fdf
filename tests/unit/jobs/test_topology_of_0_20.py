"""What Kueue 0.20 checks otherwise in the topology annotations of jobs, with its gates and changes and without."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueuecore.jobs import JobsConfiguration, sync_workloads, update_problems, workloads_for
from kueuecore.jobs.context import installed_frameworks
from kueuecore.releases import Release
from tests.jobs import batch_job, job

Json = dict[str, Any]

TAS = "kueue.x-k8s.io/podset-"
OFFSET = "kueue.x-k8s.io/pod-index-offset"


def configuration(*, gates: dict[str, bool] | None = None, absent: str = "") -> JobsConfiguration:
    return JobsConfiguration(
        frameworks=installed_frameworks(Release.named("0.20.0")),
        feature_gates=gates or {},
        absent_changes=frozenset(absent.split()),
    )


def refused(made: Json, using: JobsConfiguration) -> list[tuple[str | None, str]]:
    return [(problem.field, problem.message) for problem in workloads_for([made], configuration=using).problems]


def annotated(**annotations: str) -> Json:
    named = {f"{TAS}{name.replace('_', '-')}": value for name, value in annotations.items()}
    pods = {"metadata": {"annotations": named}, "spec": {"containers": [{"name": "c"}]}}
    return batch_job(template=pods, parallelism=20, completions=20)


@pytest.mark.parametrize(
    ("layers", "is_refused"),
    [
        ('[{"topology":"rack","size":16},{"topology":"kubernetes.io/hostname","size":4}]', True),
        ('[{"topology":"rack","size":10},{"topology":"kubernetes.io/hostname","size":5}]', False),
        ('[{"topology":"rack","size":16}]', False),
    ],
)
def test_several_layers_leave_no_shorter_slice(layers: str, is_refused: bool) -> None:
    made = annotated(required_topology="block", slice_required_topology_constraints=layers)
    field = f"spec.template.metadata.annotations[{TAS}slice-required-topology-constraints]"
    detail = "Invalid value: 16: must evenly divide pod set count 20 when more than one layer is specified"
    assert refused(made, configuration(gates={"TASPartialSlices": True})) == [(field, detail)] * is_refused
    assert refused(made, configuration(gates={"TASPartialSlices": False})) == []


def test_pod_sets_of_a_group_may_have_slices() -> None:
    made = annotated(required_topology="block", group_name="g", slice_required_topology="rack", slice_size="2")
    field = f"spec.template.metadata.annotations[{TAS}group-name]"
    said = [
        (field, f"Forbidden: may not be set when '{TAS}{name}' is specified")
        for name in ("slice-size", "slice-required-topology")
    ]
    assert refused(made, configuration(gates={"TASGroupedPodSetSlicing": True})) == []
    assert refused(made, configuration(gates={"TASGroupedPodSetSlicing": False})) == said
    layers = annotated(
        required_topology="block", group_name="g", slice_required_topology_constraints='[{"topology":"rack","size":2}]'
    )
    assert refused(layers, configuration(gates={"TASGroupedPodSetSlicing": True})) == []
    assert len(refused(layers, configuration(gates={"TASGroupedPodSetSlicing": False}))) == 1


def test_unconstrained_may_have_to_be_true() -> None:
    made, gate = annotated(unconstrained_topology="false"), "TASRejectFalseUnconstrainedTopology"
    assert [field for field, _ in refused(made, configuration(gates={gate: True}))] == [
        f"spec.template.metadata.annotations[{TAS}unconstrained-topology]"
    ]
    assert refused(made, configuration()) == []
    assert refused(annotated(unconstrained_topology="true"), configuration(gates={gate: True})) == []


def test_a_stateful_set_is_checked() -> None:
    made = job("StatefulSet")
    both = {f"{TAS}required-topology": "rack", f"{TAS}preferred-topology": "rack"}
    made["spec"]["template"]["metadata"] = {"annotations": both}
    assert [field for field, _ in refused(made, configuration())] == ["spec.template.metadata.annotations"]
    assert refused(made, configuration(absent="StatefulSetTopologyIsChecked")) == []
    assert refused(made, configuration(gates={"TopologyAwareScheduling": False})) == []


def mpi_job(offset: str | None, *, group: bool = False) -> Json:
    made = job("MPIJob")
    replicas = made["spec"]["mpiReplicaSpecs"]
    replicas["Worker"] = {"replicas": 2, "template": replicas["Launcher"]["template"]}
    for name, spec in replicas.items():
        annotations = {f"{TAS}required-topology": "rack", f"{TAS}group-name": "g"} if group else {}
        if name == "Worker" and offset is not None:
            annotations[OFFSET] = offset
        replicas[name] = {**spec, "template": {**spec["template"], "metadata": {"annotations": annotations}}}
    return made


@pytest.mark.parametrize(
    ("offset", "group", "is_refused"), [("1", False, False), ("-1", False, True), ("x", False, True), ("1", True, True)]
)
def test_where_the_indexes_of_pods_start_is_checked(offset: str, group: bool, is_refused: bool) -> None:
    frameworks = ("kubeflow.org/mpijob",)
    fields = {
        absent: [
            problem.field
            for problem in workloads_for(
                [mpi_job(offset, group=group)],
                configuration=JobsConfiguration(frameworks=frameworks, absent_changes=frozenset(absent.split())),
            ).problems
        ]
        for absent in ("", "PodIndexOffsetIsChecked")
    }
    wanted = f"spec.mpiReplicaSpecs[Worker].template.metadata.annotations[{OFFSET}]"
    assert fields == {"": [wanted] * is_refused, "PodIndexOffsetIsChecked": []}


def test_where_the_indexes_of_pods_start_does_not_change() -> None:
    for absent, n in (("", 1), ("PodIndexOffsetIsChecked", 0)):
        using = JobsConfiguration(frameworks=("kubeflow.org/mpijob",), absent_changes=frozenset(absent.split()))
        assert len(update_problems(mpi_job("1"), mpi_job("2"), configuration=using)) == n


def test_what_the_start_of_a_job_adds_is_not_compared() -> None:
    waiting = annotated()
    waiting["spec"]["suspend"] = True
    (step,) = sync_workloads(waiting, (), now=0, configuration=configuration()).steps
    admitted = {"conditions": [{"type": "Admitted", "status": "True", "reason": "Admitted"}]}
    started = annotated(unconstrained_topology="true")
    started["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] = "w"
    for is_suspended, status, ends in ((False, {}, False), (True, admitted, False), (True, {}, True)):
        started["spec"]["suspend"] = is_suspended
        stored: Json = {**step.workload, "metadata": {"name": "w", "namespace": "n"}, "status": status}
        steps = sync_workloads(started, (stored,), now=0, configuration=configuration()).steps
        assert ("OutOfSync" in {step.reason for step in steps}) == ends


def test_a_prebuilt_workload_asks_for_the_topology_of_its_job() -> None:
    made = annotated(required_topology="rack")
    made["spec"]["suspend"] = True
    (step,) = sync_workloads(made, (), now=0, configuration=configuration()).steps
    stored: Json = {**step.workload, "metadata": {"name": "w", "namespace": "n"}}
    other = copy.deepcopy(stored)
    other["spec"]["podSets"][0]["topologyRequest"]["required"] = "block"
    made["metadata"]["annotations"]["kueue.x-k8s.io/prebuilt-workload-name"] = "w"
    for workload, absent, ends in (
        (stored, "", False),
        (other, "", True),
        (other, "PrebuiltTopologyIsCompared", False),
    ):
        steps = sync_workloads(made, (workload,), now=0, configuration=configuration(absent=absent)).steps
        assert [step.reason for step in steps if step.reason == "OutOfSync"] == ["OutOfSync"] * ends
