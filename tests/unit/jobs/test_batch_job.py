from __future__ import annotations

import json
from typing import Any

import pytest

from kueuecore.errors import ManifestError
from kueuecore.jobs import INTEGRATIONS, JobsConfiguration, integration_of, workload_name, workloads_for
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.manifests import parse_manifests
from tests.jobs import batch_job

_INDEX = "batch.kubernetes.io/job-completion-index"
_MIN = "kueue.x-k8s.io/job-min-parallelism"
_SYNC = "kueue.x-k8s.io/job-completions-equal-parallelism"
_TAS = "kueue.x-k8s.io/podset-"
_HUGE = str(2**64)  # no number of 64 bits, so it is a name

SAMPLE = """
apiVersion: batch/v1
kind: Job
metadata:
  name: sample-job
  labels: {kueue.x-k8s.io/queue-name: user-queue}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: sleep, image: busybox, args: [sleep, "60"], resources: {requests: {cpu: 1, memory: 200Mi}}}
"""


def _with_template_annotations(annotations: dict[str, str], job: dict[str, Any] | None = None) -> dict[str, Any]:
    job = job or batch_job(parallelism=8, completions=8)
    template = {**job["spec"]["template"], "metadata": {"annotations": annotations}}
    return {**job, "spec": {**job["spec"], "template": template}}


def _pod_set(job: dict[str, Any], **gates: bool) -> dict[str, Any]:
    result = workloads_for([job], configuration=JobsConfiguration(feature_gates=gates))
    result.raise_for_problems()
    spec: Any = result.workloads[0].object["spec"]
    (pod_set,) = spec["podSets"]
    assert isinstance(pod_set, dict)
    return pod_set


def _problems(job: dict[str, Any], **gates: bool) -> list[tuple[str, str]]:
    result = workloads_for([job], configuration=JobsConfiguration(feature_gates=gates))
    assert (result.workloads == ()) is (result.problems != ())
    return [(problem.field, problem.message) for problem in result.problems]


def test_sample_job_is_three_pods() -> None:
    (workload,) = workloads_for(parse_manifests(SAMPLE)).workloads
    assert workload.object == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "job-sample-job-4b8c4",
            "namespace": "default",
            "labels": {"kueue.x-k8s.io/job-uid": ""},
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "sample-job",
                    "uid": "00000000-0000-0000-0000-000000000000",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "queueName": "user-queue",
            "podSets": [
                {
                    "name": "main",
                    "count": 3,
                    "template": {
                        "metadata": {"labels": {"batch.kubernetes.io/job-name": "sample-job"}},
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [
                                {
                                    "name": "sleep",
                                    "image": "busybox",
                                    "args": ["sleep", "60"],
                                    "resources": {"requests": {"cpu": 1, "memory": "200Mi"}},
                                }
                            ],
                        },
                    },
                    "topologyRequest": {"podIndexLabel": _INDEX},
                }
            ],
            "active": True,
            "priority": 0,
        },
    }


def test_sample_job_with_partial_admission_may_shrink_to_five_pods() -> None:
    job = batch_job({_MIN: "5"}, parallelism=20, completions=20)
    assert (_pod_set(job)["count"], _pod_set(job)["minCount"]) == (20, 5)
    assert "minCount" not in _pod_set(job, PartialAdmission=False)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({}, 1),
        ({"parallelism": 4}, 4),
        ({"completions": 4}, 1),
        ({"parallelism": 4, "completions": 2}, 2),
        ({"parallelism": 2, "completions": 4}, 2),
        ({"parallelism": 0}, 0),
        ({"parallelism": None, "completions": None}, 1),
    ],
)
def test_count_is_what_runs_at_once(spec: dict[str, Any], count: int) -> None:
    assert _pod_set(batch_job(**spec))["count"] == count


def test_labels_of_the_job_controller_are_taken_out_of_the_template() -> None:
    labels = {
        "job-name": "j",
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "j",
        "app": "x",
    }
    job = batch_job(template={"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c"}]}})
    assert _pod_set(job)["template"]["metadata"]["labels"] == {"batch.kubernetes.io/job-name": "j", "app": "x"}


def test_template_with_a_selector_of_its_own_gets_no_job_name() -> None:
    assert "metadata" not in {k: v for k, v in _pod_set(batch_job(manualSelector=True))["template"].items() if v}


def test_last_value_of_a_variable_counts() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    job = batch_job(template={"spec": {"containers": [{"name": "c", "env": env}], "initContainers": [{"env": env}]}})
    spec = _pod_set(job)["template"]["spec"]
    expected = [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]
    assert spec["containers"][0]["env"] == expected
    assert spec["initContainers"][0]["env"] == expected


def test_bare_fractions_become_texts() -> None:
    resources = {"requests": {"cpu": 0.5, "memory": 1}, "limits": {"cpu": 0.00001}}
    job = batch_job(
        template={
            "spec": {
                "containers": [{"name": "c", "resources": resources}],
                "overhead": {"cpu": 0.25},
                "resources": {"requests": {"cpu": 1.5}},
            }
        }
    )
    spec = _pod_set(job)["template"]["spec"]
    assert spec["containers"][0]["resources"] == {
        "requests": {"cpu": "0.5", "memory": 1},
        "limits": {"cpu": "0.00001"},
    }
    assert (spec["overhead"], spec["resources"]) == ({"cpu": "0.25"}, {"requests": {"cpu": "1.5"}})


def test_elastic_job_has_its_generation_in_the_name_and_a_gate() -> None:
    job = batch_job({"kueue.x-k8s.io/elastic-job": "true"}, parallelism=3)
    job["metadata"]["generation"] = 2
    (workload,) = workloads_for([job]).workloads
    metadata: Any = workload.object["metadata"]
    first: Any = workloads_for([batch_job({"kueue.x-k8s.io/elastic-job": "true"})]).workloads[0].object["metadata"]
    plain: Any = workloads_for([batch_job()]).workloads[0].object["metadata"]
    assert len({metadata["name"], first["name"], plain["name"]}) == 3
    assert metadata["annotations"] == {
        "kueue.x-k8s.io/elastic-job": "true",
        "kueue.x-k8s.io/workload-slice-name": metadata["name"],
    }
    assert _pod_set(job)["template"]["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/elastic-job"}]
    assert "schedulingGates" not in _pod_set(job, ElasticJobsViaWorkloadSlices=False)["template"]["spec"]


@pytest.mark.parametrize(
    ("annotations", "request_"),
    [
        ({}, {}),
        ({"required-topology": "rack"}, {"required": "rack"}),
        ({"preferred-topology": "rack"}, {"preferred": "rack"}),
        ({"unconstrained-topology": "true"}, {"unconstrained": True}),
        ({"unconstrained-topology": "F"}, {"unconstrained": False}),
        ({"required-topology": "rack", "group-name": "g"}, {"required": "rack", "podSetGroupName": "g"}),
        ({"preferred-topology": "rack", "group-name": _HUGE}, {"preferred": "rack", "podSetGroupName": _HUGE}),
        (
            {"required-topology": "block", "slice-required-topology": "rack", "slice-size": "4"},
            {"required": "block", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4},
        ),
        (
            {"slice-required-topology-constraints": '[{"topology":"rack","size":4},{"topology":"host","size":2}]'},
            {
                "podsetSliceRequiredTopologyConstraints": [
                    {"topology": "rack", "size": 4},
                    {"topology": "host", "size": 2},
                ]
            },
        ),
    ],
)
def test_topology_request_of_the_template(annotations: dict[str, str], request_: dict[str, Any]) -> None:
    job = _with_template_annotations({_TAS + key: value for key, value in annotations.items()})
    assert _pod_set(job)["topologyRequest"] == {**request_, "podIndexLabel": _INDEX}
    assert "topologyRequest" not in _pod_set(job, TopologyAwareScheduling=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", "Invalid value: 0: should be between 0 and 19"),
        ("20", "Invalid value: 20: should be between 0 and 19"),
        ("-1", "Invalid value: -1: should be between 0 and 19"),
        ("five", 'Invalid value: "five": strconv.Atoi: parsing "five": invalid syntax'),
        ("1_0", 'Invalid value: "1_0": strconv.Atoi: parsing "1_0": invalid syntax'),
    ],
)
def test_min_parallelism_is_between_zero_and_the_count(value: str, message: str) -> None:
    job = batch_job({_MIN: value}, parallelism=20, completions=20)
    assert _problems(job) == [(f"metadata.annotations[{_MIN}]", message)]


def test_min_parallelism_and_elastic_do_not_go_together() -> None:
    job = batch_job({_MIN: "5", "kueue.x-k8s.io/elastic-job": "true"}, parallelism=20)
    message = 'Invalid value: "5": partial admission and elastic job cannot be used together'
    assert _problems(job) == [(f"metadata.annotations[{_MIN}]", message)]


def test_completions_follow_parallelism_only_in_indexed_jobs_where_both_are_equal() -> None:
    good = batch_job({_SYNC: "true"}, parallelism=3, completions=3, completionMode="Indexed")
    bad = batch_job({_SYNC: "true"}, parallelism=3, completions=4)
    assert _problems(good) == []
    assert _problems(batch_job({_SYNC: "false"}, parallelism=3, completions=4)) == []
    assert _problems(bad) == [
        (f"metadata.annotations[{_SYNC}]", 'Invalid value: "true": should not be enabled for NonIndexed jobs'),
        (
            "spec.completions",
            f"Invalid value: 4: should be equal to parallelism when {_SYNC} annotation is true",
        ),
    ]
    assert _problems(batch_job({_SYNC: "yes"})) == [
        (f"metadata.annotations[{_SYNC}]", 'Invalid value: "yes": strconv.ParseBool: parsing "yes": invalid syntax')
    ]


_FOUR_LAYERS = json.dumps([{"topology": level, "size": 1} for level in "abcd"])
_PATH = "spec.template.metadata.annotations"


@pytest.mark.parametrize(
    ("annotations", "problems"),
    [
        (
            {"required-topology": "rack", "preferred-topology": "rack"},
            [
                (
                    _PATH,
                    "Invalid value: must not contain more than one topology annotation: "
                    f'["{_TAS}required-topology", "{_TAS}preferred-topology", "{_TAS}unconstrained-topology"]',
                )
            ],
        ),
        (
            {"required-topology": "a rack"},
            [
                (
                    f"{_PATH}[{_TAS}required-topology]",
                    "Invalid value: \"a rack\": name part must consist of alphanumeric characters, '-', '_' or '.', "
                    "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                )
            ],
        ),
        (
            {"unconstrained-topology": "maybe"},
            [(f"{_PATH}[{_TAS}unconstrained-topology]", 'Invalid value: "maybe": must be a boolean value')],
        ),
        (
            {"slice-required-topology": "rack"},
            [
                (
                    f"{_PATH}[{_TAS}slice-size]",
                    f"Required value: must be set when '{_TAS}slice-required-topology' is specified",
                )
            ],
        ),
        (
            {"slice-size": "x"},
            [
                (f"{_PATH}[{_TAS}slice-size]", 'Invalid value: "x": must be a numeric value'),
                (
                    f"{_PATH}[{_TAS}slice-size]",
                    f"Forbidden: may not be set when '{_TAS}slice-required-topology' is not specified",
                ),
            ],
        ),
        (
            {"slice-required-topology": "rack", "slice-size": "0"},
            [(f"{_PATH}[{_TAS}slice-size]", 'Invalid value: "0": must be greater than or equal to 1')],
        ),
        (
            {"slice-required-topology": "rack", "slice-size": "9"},
            [(f"{_PATH}[{_TAS}slice-size]", 'Invalid value: "9": must not be greater than pod set count 8')],
        ),
        (
            {"group-name": "7"},
            [
                (f"{_PATH}[{_TAS}group-name]", 'Invalid value: "7": must not be a number'),
                (
                    f"{_PATH}[{_TAS}group-name]",
                    f"Forbidden: may not be set when neither '{_TAS}preferred-topology' nor '{_TAS}required-topology' "
                    "is specified",
                ),
            ],
        ),
        (
            {"slice-required-topology-constraints": "[]"},
            [
                (
                    f"{_PATH}[{_TAS}slice-required-topology-constraints]",
                    'Invalid value: "[]": topology constraints must contain between 1 and 3 entries',
                )
            ],
        ),
        (
            {"slice-required-topology-constraints": '[{"topology":"a","size":6},{"topology":"a","size":4}]'},
            [
                (
                    f"{_PATH}[{_TAS}slice-required-topology-constraints][1].topology",
                    'Duplicate value: "a (also at index 0)"',
                ),
                (
                    f"{_PATH}[{_TAS}slice-required-topology-constraints][1].size",
                    "Invalid value: 4: must evenly divide the parent layer size 6",
                ),
            ],
        ),
        (
            {"slice-required-topology-constraints": _FOUR_LAYERS},
            [
                (
                    f"{_PATH}[{_TAS}slice-required-topology-constraints]",
                    f"Invalid value: {json.dumps(_FOUR_LAYERS)}: topology constraints must contain between 1 and 3 "
                    "entries",
                )
            ],
        ),
        (
            {"slice-required-topology-constraints": '[{"topology":"a","size":16}]'},
            [
                (
                    f"{_PATH}[{_TAS}slice-required-topology-constraints]",
                    "Invalid value: 16: must not be greater than pod set count 8",
                )
            ],
        ),
    ],
)
def test_topology_annotations_that_are_rejected(annotations: dict[str, str], problems: list[tuple[str, str]]) -> None:
    job = _with_template_annotations({_TAS + key: value for key, value in annotations.items()})
    assert _problems(job) == problems
    assert _problems(job, TopologyAwareScheduling=False) == []


def test_text_in_place_of_constraints_is_rejected() -> None:
    job = _with_template_annotations({f"{_TAS}slice-required-topology-constraints": "rack"})
    ((_, message),) = _problems(job)
    assert message.startswith('Invalid value: "rack": must be a valid JSON array: ')
    ((_, forbidden),) = _problems(job, TASMultiLayerTopology=False)
    assert forbidden == "Forbidden: the TASMultiLayerTopology feature gate must be enabled to use this annotation"


@pytest.mark.parametrize("mode", ["required", "preferred"])
def test_elastic_job_has_no_topology_that_binds(mode: str) -> None:
    key = f"{_TAS}{mode}-topology"
    job = _with_template_annotations({key: "rack"}, batch_job({"kueue.x-k8s.io/elastic-job": "true"}))
    assert _problems(job) == [(f"{_PATH}.{key}", f"Forbidden: {mode} topology is not supported with elastic jobs")]


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"parallelism": "3"},
            "spec.parallelism",
            'Invalid value: "string": spec.parallelism in body must be of type integer: "string"',
        ),
        ({"parallelism": -1}, "spec.parallelism", "Invalid value: -1: must be greater than or equal to 0"),
        (
            {"completions": 2**31},
            "spec.completions",
            "Invalid value: 2147483648: Checked value must be of type integer with format int32 in spec.completions",
        ),
        (
            {"completionMode": "indexed"},
            "spec.completionMode",
            'Unsupported value: "indexed": supported values: "Indexed", "NonIndexed"',
        ),
        ({"template": {}}, "spec.template.spec.containers", "Required value"),
    ],
)
def test_job_without_its_shape_is_rejected(spec: dict[str, Any], field: str, message: str) -> None:
    assert _problems({**batch_job(), "spec": {**batch_job()["spec"], **spec}}) == [(field, message)]


def test_problems_can_be_raised() -> None:
    with pytest.raises(ManifestError, match=r'Job "n/j": spec\.parallelism: Invalid value'):
        workloads_for([batch_job(parallelism=-1)]).raise_for_problems()


def test_elastic_job_is_like_any_other_without_its_gate() -> None:
    result = workloads_for(
        [batch_job({"kueue.x-k8s.io/elastic-job": "true"})],
        configuration=JobsConfiguration(feature_gates={"ElasticJobsViaWorkloadSlices": False}),
    )
    metadata: Any = result.workloads[0].object["metadata"]
    assert (metadata["name"], "annotations" in metadata) == (workload_name("j", kind="Job", group="batch"), False)


def test_integration_is_found_by_group_and_kind() -> None:
    assert INTEGRATIONS["batch", "Job"].framework == "batch/job"
    assert integration_of(batch_job()) is BATCH_JOB
    assert integration_of({"apiVersion": "v1", "kind": "ConfigMap"}) is None
