"""What a release does that is not imitated is reported, and only there."""

from pathlib import Path

import pytest

from kueuecore._json import JsonObject, JsonValue, object_at
from kueuecore.cli import main, state_file
from kueuecore.releases import Release
from kueuecore.releases.unplayed import unplayed

READ = "none of it was compared with a running one"


def queue(amount: str, *, cohort: str = "", policy: str = "Never") -> JsonObject:
    resource: JsonObject = {"name": "cpu", "nominalQuota": amount}
    group: JsonObject = {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [resource]}]}
    preemption: JsonObject = {"withinClusterQueue": policy}
    spec: JsonObject = {"resourceGroups": [group], "cohortName": cohort, "preemption": preemption}
    return {"kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": spec}


def effective(given: JsonObject, amount: str) -> JsonObject:
    """A ClusterQueue whose status gives it other quotas than its spec."""
    groups = object_at(queue(amount), "spec")["resourceGroups"]
    return {**given, "status": {"effectiveQuotas": {"resourceGroups": groups}}}


def workload(requested: str, *, used: str = "0") -> JsonObject:
    pod: JsonObject = {"containers": [{"name": "c", "resources": {"requests": {"cpu": requested}}}]}
    assigned: JsonObject = {"name": "main", "resourceUsage": {"cpu": used}}
    return {
        "kind": "Workload",
        "metadata": {"name": "job"},
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": pod}}]},
        "status": {"admission": {"podSetAssignments": [assigned]}},
    }


@pytest.mark.parametrize(
    ("release", "thing", "fair_sharing", "words"),
    [
        ("0.17", queue("10"), True, []),
        ("0.17", queue("9e15"), False, ["an amount near 2^63"]),
        ("0.18", queue("9e15"), False, []),
        ("0.20.0-devel", queue("9e15"), False, []),
        ("0.20.0", queue("9e15"), False, [READ, "counts such amounts exactly; kueuecore stops at 2^63-1"]),
        ("0.20.0", {**queue("9e15"), "kind": "Cohort"}, False, [READ, "Cohort team has an amount near 2^63"]),
        ("0.20.0", queue("4e12"), True, [READ]),
        ("0.20.0", effective(queue("1"), "9e15"), False, [READ, "ClusterQueue team has an amount near 2^63"]),
        ("0.20.0", effective(queue("1"), "9"), False, [READ]),
        ("0.20.0", workload("9e15"), False, [READ, "Workload job has an amount near 2^63"]),
        ("0.20.0", workload("1", used="9e15"), False, [READ, "Workload job has an amount near 2^63"]),
        ("0.20.0", workload("4e12"), False, [READ]),
        ("0.20.0-devel", workload("9e15"), False, []),
        ("0.17", queue("10", policy="Any"), False, []),
        ("0.17", queue("10", policy="Any"), True, ["crashes when a workload preempts in ClusterQueue team"]),
        ("0.17", queue("10", policy="Any", cohort="all"), True, []),
        ("0.18", queue("10", policy="Any"), True, []),
        ("0.17.1", queue("10"), False, ["not the newest of 0.17"]),
    ],
)
def test_a_note(release: str, thing: JsonObject, fair_sharing: bool, words: list[str]) -> None:
    notes = [*unplayed(Release.named(release), [thing], fair_sharing=fair_sharing)]
    assert len(notes) == len(words)
    assert all(word in note for word, note in zip(words, notes, strict=True))


def test_what_holds_for_all_objects_is_said_if_the_release_was_asked_for() -> None:
    newest = Release.named("0.20.0")
    (note,) = unplayed(newest, [queue("9e15")], fair_sharing=False, is_asked_for=False)
    assert "an amount near 2^63" in note
    assert [*unplayed(Release.named("0.17.1"), [], fair_sharing=False, is_asked_for=False)] == []


def thing(kind: str, *, annotations: JsonObject | None = None, **spec: JsonValue) -> JsonObject:
    return {"kind": kind, "metadata": {"name": "it", "annotations": annotations or {}}, "spec": spec}


ELASTIC: JsonObject = {"kueue.x-k8s.io/elastic-job": "true"}
PARTIAL: JsonObject = {**ELASTIC, "kueue.x-k8s.io/elastic-job-scale-up-strategy": "partial"}
CHECK = thing("AdmissionCheck", controllerName="kueue.x-k8s.io/provisioning-request")
SCALED: JsonObject = {"enableInTreeAutoscaling": True}
AWAY = "kueue.x-k8s.io/multikueue"


GATES = [
    (
        "ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp",
        [thing("Workload", annotations=PARTIAL)],
        [thing("Workload", annotations=ELASTIC)],
        "Workload it may grow in parts",
    ),
    (
        "ElasticJobsViaWorkloadSlicesForProvisioningRequests",
        [thing("Job", annotations=ELASTIC), CHECK],
        [thing("Job"), CHECK],
        "Job it is elastic",
    ),
    (
        "MultiKueueRayInTreeAutoscaling",
        [thing("RayJob", annotations=ELASTIC, managedBy=AWAY, rayClusterSpec=SCALED)],
        [
            thing("RayJob", annotations=ELASTIC, rayClusterSpec=SCALED),
            thing("RayCluster", annotations=ELASTIC, managedBy=AWAY),
        ],
        "RayJob it is scaled by Ray on a worker",
    ),
    ("SchedulerLibraryIntegration", [thing("Topology")], [thing("ClusterQueue")], "Topology it places pods"),
]


@pytest.mark.parametrize(("gate", "objects", "others", "words"), GATES)
def test_a_gate_that_changes_nothing_here_is_reported(
    gate: str, objects: list[JsonObject], others: list[JsonObject], words: str
) -> None:
    def notes(given: list[JsonObject], *gates: str, release: str = "0.20.0") -> list[str]:
        named, is_on = Release.named(release), gates.__contains__
        return [*unplayed(named, given, fair_sharing=False, is_enabled=is_on, is_asked_for=False)]

    (note,) = notes(objects, gate)
    assert note.startswith(words)
    assert gate in note
    assert notes(objects) == notes(others, gate) == []


def test_the_scheduler_library_of_older_releases_is_played() -> None:
    named = Release.named("0.19.2")
    assert [*unplayed(named, [thing("Topology")], fair_sharing=False, is_enabled=lambda _: True)] == []


def test_commands_know_these_gates() -> None:
    assert sorted(gate for gate, *_ in GATES) == sorted(state_file._PARTLY_PLAYED)


def test_a_command_reports_a_gate_of_the_default_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cluster.yaml"
    topology = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: rack}, "
    file.write_text(topology + "spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}}\n", encoding="utf-8")
    for gates, n_notes in (["--feature-gates", "SchedulerLibraryIntegration=true"], 1), ([], 0):
        assert main(["run", str(file), *gates]) == 0
        assert capsys.readouterr().err.count("note: Topology rack places pods") == n_notes
