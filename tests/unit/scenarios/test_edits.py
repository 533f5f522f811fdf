"""Edits of scenarios by field path."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore import ManifestError
from kueuecore.scenarios import parse_edit, read_scenario
from tests.command import QUEUES

SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
cluster: {objects: [queues.yaml]}
work:
- job:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: both, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}
    spec:
      parallelism: 2
      template: {spec: {restartPolicy: Never, containers: [{name: main, resources: {requests: {cpu: 1}}}]}}
  count: 3
  runs: 1m
"""
QUOTA = "spec.resourceGroups[0].flavors[name=default].resources[name=cpu].nominalQuota"


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    (tmp_path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    (tmp_path / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    return str(tmp_path / "scenario.yaml")


def read(scenario: str, *edits: str) -> dict[str, object]:
    """The ClusterQueue and the job after edits, and how many jobs there are."""
    found = read_scenario(scenario, edits=[parse_edit(edit) for edit in edits])
    (queue,) = (object_.object for object_ in found.cluster.objects if object_.object["kind"] == "ClusterQueue")
    return {"queue": queue, "job": found.work[0].job.object, "n": found.n_jobs}


@pytest.mark.parametrize("name", ["cq", "c*", "?q"])
def test_an_edit_changes_a_field_of_matching_objects(scenario: str, name: str) -> None:
    spec = read(scenario, f"ClusterQueue/{name}:{QUOTA}=7")["queue"]["spec"]  # type: ignore[index]
    assert spec["resourceGroups"][0]["flavors"][0]["resources"] == [{"name": "cpu", "nominalQuota": 7}]


def test_missing_mappings_are_created_and_null_removes(scenario: str) -> None:
    edits = [
        "ClusterQueue/cq:spec.preemption.withinClusterQueue=LowerPriority",
        "ClusterQueue/cq:spec.namespaceSelector=null",
    ]
    spec = read(scenario, *edits)["queue"]["spec"]  # type: ignore[index]
    assert spec["preemption"] == {"withinClusterQueue": "LowerPriority"}
    assert "namespaceSelector" not in spec


def test_an_edit_changes_the_scenario_itself_and_its_jobs(scenario: str) -> None:
    found = read(
        scenario, "work[0].count=5", 'Job/team/both:metadata.annotations["a.b/c"]=x', "Job/both:spec.parallelism=1"
    )
    assert found["n"] == 5
    job = found["job"]
    assert job["metadata"]["annotations"] == {"a.b/c": "x"}  # type: ignore[index]
    assert job["spec"]["parallelism"] == 1  # type: ignore[index]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ("ClusterQueue/x:spec.a=1", "no object matches ClusterQueue/x; write one of cq"),
        ("Cohort/x:spec.a=1", "no object matches Cohort/x; the scenario has no Cohort"),
        ("ClusterQueue/cq:spec.resourceGroups[3].b=1", "there is no [3] in a list of 1"),
        ("ClusterQueue/cq:spec.resourceGroups[0].flavors[name=x].b=1", "there is no [name=x] in a list of 1"),
        ("ClusterQueue/cq:spec.resourceGroups.b=1", "there is no b in a list of 1"),
        ("ClusterQueue/cq:kind.b=1", 'there is no b in "ClusterQueue"'),
        ("work[0].cuont=3", "work[0].cuont: unknown field; write count"),
        ("work[0].count=0", "work[0].count"),
        ("a..b=2", 'cannot read "..b" in the path'),
        ("[0]=2", "a path must start with the name of a field"),
        ("=2", "a path must start with the name of a field"),
        ("nothing", '"nothing" has no value'),
        ("seed=[1", '"[1" is not a value'),
        ("seed=1\nkind: x", "is not a value"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_with_a_remedy(scenario: str, edit: str, message: str) -> None:
    with pytest.raises(ManifestError) as error:
        read(scenario, edit)
    assert message in "\n".join(map(str, error.value.problems))
    assert all(problem.remedy for problem in error.value.problems)


def test_edits_leave_what_was_read_alone(scenario: str) -> None:
    before = read_scenario(scenario)
    read(scenario, f"ClusterQueue/cq:{QUOTA}=7")
    assert read_scenario(scenario).cluster.objects == before.cluster.objects
