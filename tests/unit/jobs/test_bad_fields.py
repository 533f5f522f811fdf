"""Fields of other types than those of their kind: refused by name and path, whichever kind, whoever asks."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueuecore import Engine, World, parse_manifests
from kueuecore.errors import KueuecoreError, ManifestError
from kueuecore.jobs import (
    INTEGRATIONS,
    Integration,
    JobPodSet,
    JobsConfiguration,
    StopReason,
    fits_workload,
    pod_group,
    reclaimable_pods,
    start_job,
    stop_job,
    with_kinds,
    workloads_for,
)
from tests.jobs import ALL_KINDS, POD, job

ALL = JobsConfiguration(
    frameworks=[integration.framework for integration in INTEGRATIONS.values()],
    feature_gates={"SparkApplicationIntegration": True},
)
Json = dict[str, Any]


def with_field(plain: Json, path: str, value: object) -> Json:
    changed = copy.deepcopy(plain)
    at: Any = changed
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        at = at[step] if isinstance(step, int) else at.setdefault(step, {})
    at[last] = value
    return changed


def only_problem(plain: Any) -> str:
    result = workloads_for([plain], configuration=ALL)
    assert (result.workloads, result.jobs, result.ignored) == ((), (), ())
    (problem,) = result.problems
    assert problem.remedy
    return str(problem)


@pytest.mark.parametrize(
    ("kind", "path", "value", "wanted", "found"),
    [
        ("PyTorchJob", "spec/pytorchReplicaSpecs/Worker", 5, "object", "integer"),
        ("PyTorchJob", "spec/runPolicy/suspend", "false", "boolean", "string"),
        ("MPIJob", "spec/mpiReplicaSpecs", [1], "object", "array"),
        ("TrainJob", "spec/trainer/numNodes", "x", "integer", "string"),
        ("AppWrapper", "spec/components/0/podSets", [{"replicas": "9"}], "integer", "string"),
        ("AppWrapper", "spec/components/0/template/spec/containers", {}, "array", "object"),
        ("SparkApplication", "spec/driver/coreRequest", 1, "string", "integer"),
        ("SparkApplication", "spec/executor/cores", "2", "integer", "string"),
        ("Job", "spec/suspend", "false", "boolean", "string"),
        ("Job", "spec/parallelism", True, "integer", "boolean"),
        ("Job", "spec", "x", "object", "string"),
        ("Job", "metadata/namespace", 5, "string", "integer"),
        ("Job", "metadata/annotations", ["a"], "object", "array"),
        ("Job", "metadata/deletionTimestamp", 5, "string", "integer"),
        ("Job", "metadata/ownerReferences", [5], "object", "integer"),
        ("Pod", "spec/containers/0/resources/requests", [], "object", "array"),
        ("JobSet", "spec/replicatedJobs", [None], "object", "null"),
        ("LeaderWorkerSet", "spec/leaderWorkerTemplate/size", 1.5, "integer", "number"),
        ("StatefulSet", "spec/replicas", "1", "integer", "string"),
        ("Deployment", "spec/template/metadata/labels", "a", "object", "string"),
        ("RayCluster", "spec/enableInTreeAutoscaling", "true", "boolean", "string"),
        ("RayJob", "spec/rayClusterSpec", "x", "object", "string"),
        ("RayJob", "status/jobDeploymentStatus", 3, "string", "integer"),
    ],
)
def test_a_wrong_type_is_refused_at_its_path(kind: str, path: str, value: object, wanted: str, found: str) -> None:
    said = only_problem(with_field(job(kind), path, value))
    assert f'in body must be of type {wanted}: "{found}"' in said
    assert said.startswith(f"{kind} ")


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
@pytest.mark.parametrize(
    "odd", [10**5000, "\ud800", {5: "x"}, float("nan"), {1, 2}], ids=["digits", "half", "key", "nan", "set"]
)
def test_what_is_no_plain_data_is_refused_wherever_it_stands(kind: str, odd: object) -> None:
    for path in ("spec/odd", "metadata/labels/odd", "status/odd"):
        said = only_problem(with_field(job(kind), path, odd))
        assert said.startswith(f'{kind} "n/j": {path.replace("/", ".")}: ')
        assert len(said) < 300


def test_a_time_is_a_time_and_a_number_fits_its_field() -> None:
    assert "in body must be of type date-time" in only_problem(
        with_field(job("Job"), "metadata/creationTimestamp", "yesterday")
    )
    assert "format int32 in spec.completions" in only_problem(with_field(job("Job"), "spec/completions", 2**31))


def test_a_field_that_is_null_is_not_there() -> None:
    nulls = with_field(with_field(job("Job"), "spec/parallelism", None), "metadata/annotations", None)
    assert workloads_for([nulls]).workloads[0].object["spec"]["podSets"][0]["count"] == 1  # type: ignore[index,call-overload]


def test_an_unknown_field_of_a_built_in_kind_is_a_warning() -> None:
    typos = [with_field(job(kind), "spec/paralelism", 3) for kind in ("Job", "Deployment", "StatefulSet", "JobSet")]
    result = workloads_for(typos, configuration=ALL)
    assert result.problems == ()
    # Of kinds whose fields are not all known here nothing is said.
    assert [str(warning) for warning in result.warnings] == [
        f'{kind} "n/j": spec.paralelism: unknown field "spec.paralelism"'
        for kind in ("Job", "Deployment", "StatefulSet")
    ]
    warnings = World.of(typos[:1]).apply_to(Engine(), now=0).warnings
    assert [warning.field for warning in warnings] == ["spec.paralelism"]


def test_a_runtime_of_another_shape_is_named_itself() -> None:
    runtime: Json = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "torch", "namespace": "n"},
        "spec": {"mlPolicy": {"numNodes": "2"}, "template": {"spec": {"replicatedJobs": []}}},
    }
    train = job("TrainJob")
    train["spec"] = {"runtimeRef": {"name": "torch", "kind": "TrainingRuntime"}}
    (problem,) = workloads_for([runtime, train], configuration=ALL).problems
    assert str(problem).startswith('TrainingRuntime "torch": spec.mlPolicy.numNodes: Invalid value: "string"')


WORKLOAD: Json = {
    "metadata": {"name": "job-j", "namespace": "n"},
    "spec": {"podSets": [{"name": "main", "count": 1, "template": POD}]},
    "status": {"admission": {"clusterQueue": "cq", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "f"}}]}},
}
FLAVORS: Json = {"f": {"metadata": {"name": "f"}, "spec": {"nodeLabels": {"pool": "spot"}}}}


@pytest.mark.parametrize(
    ("workload", "flavors", "named"),
    [
        (
            "status/admission/podSetAssignments/0/count",
            None,
            'Workload "n/job-j": status.admission.podSetAssignments[0].count',
        ),
        ("status/admission/podSetAssignments/0/flavors", None, "status.admission.podSetAssignments[0].flavors"),
        ("spec/podSets/0/count", None, "spec.podSets[0].count"),
        (None, "f/spec/nodeLabels/pool", 'ResourceFlavor "f": spec.nodeLabels[pool]'),
        (None, "f/spec", 'ResourceFlavor "f": spec'),
        (None, "f", 'ResourceFlavor "f"'),
    ],
)
def test_nothing_starts_with_an_admission_of_another_shape(
    workload: str | None, flavors: str | None, named: str
) -> None:
    admitted = with_field(WORKLOAD, workload, [7]) if workload else WORKLOAD
    given = with_field(FLAVORS, flavors, [7]) if flavors else FLAVORS
    for ask in (start_job, fits_workload):
        with pytest.raises(ManifestError) as error:
            ask(job("Job"), admitted, flavors=given)
        assert named in str(error.value)


def test_questions_about_a_job_of_another_shape_are_refused() -> None:
    odd = with_field(job("Job"), "spec/parallelism", "3")
    for ask in (
        lambda: start_job(odd, WORKLOAD, flavors=FLAVORS),
        lambda: stop_job(odd, WORKLOAD, reason=StopReason.NOT_ADMITTED),
        lambda: reclaimable_pods(odd, WORKLOAD),
    ):
        with pytest.raises(ManifestError, match=r'Job "n/j": spec\.parallelism'):
            ask()


def test_the_error_for_an_unknown_kind_lists_the_known_kinds() -> None:
    film: Json = {"apiVersion": "example.com/v1", "kind": "Film", "metadata": {"name": "short"}}
    with pytest.raises(ManifestError) as error:
        start_job(film, WORKLOAD, flavors=FLAVORS)
    said = str(error.value)
    assert (
        'Film "short": kind: Unsupported value: "example.com/v1 Film": this is no kind of jobs; the kinds are ' in said
    )
    assert "add yours with with_kinds" in said


def test_a_group_has_pods() -> None:
    with pytest.raises(ManifestError, match='PodList "g": items: Required value; give its pods'):
        pod_group("g", [])
    with pytest.raises(ManifestError, match=r'PodList "g": items\[1\]: Invalid value: "integer"'):
        pod_group("g", [job("Pod"), 5])  # type: ignore[list-item]


def test_the_error_of_a_custom_kind_that_fails_names_the_job() -> None:
    def pod_sets(film: Any, _surroundings: object) -> list[JobPodSet]:
        return [JobPodSet.at(film, ("spec", "template"), name="frames", count=film["spec"]["frames"])]

    film = Integration(framework="example.com/film", api_version="example.com/v1", kind="Film", pod_sets=pod_sets)
    labels = {"kueue.x-k8s.io/queue-name": "lq"}
    short: Json = {"apiVersion": "example.com/v1", "kind": "Film", "metadata": {"name": "short", "labels": labels}}
    with pytest.raises(ManifestError) as error:
        World.of([short], integrations=with_kinds(film))
    (problem,) = error.value.problems
    assert str(problem).startswith(
        'Film "default/short": the kind failed with KeyError in pod_sets (test_bad_fields.py:'
    )
    assert "shape_problems" in problem.remedy


def test_an_error_in_a_generated_workload_is_reported_for_its_job() -> None:
    text = """
apiVersion: batch/v1
kind: Job
metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  template:
    spec:
      containers:
      - {name: c, image: i, resources: {requests: {cpu: -1}}}
"""
    with pytest.raises(ManifestError) as error:
        World.of(parse_manifests(text, file="job.yaml")).apply_to(Engine(), now=0)
    field = "spec.template.spec.containers[0].resources.requests[cpu]"
    assert str(error.value.problems[0]).startswith(f'job.yaml:9 (document 1): Job "default/j": {field}: Invalid value')
    long = with_field(job("JobSet"), "spec/replicatedJobs/0/name", "No_Name")
    with pytest.raises(ManifestError) as error:
        World.of([long]).apply_to(Engine(), now=0)
    assert str(error.value.problems[0]).startswith('JobSet "n/j": in its Workload: spec.podSets[0].name: Invalid value')


def test_a_world_takes_objects_in_any_form() -> None:
    assert len(World.of([job("Job")]).made) == 1
    with pytest.raises(TypeError, match=r"manifests\[0\] must be a Manifest, a dict"):
        World.of([5])  # type: ignore[list-item]
    assert issubclass(ManifestError, KueuecoreError)
