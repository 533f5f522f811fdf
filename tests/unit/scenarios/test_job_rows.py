"""Jobs of one work are copies of one Workload, and go as jobs do that are made one by one."""

from __future__ import annotations

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ClusterPart, Scenario, run_scenario
from kueuecore.scenarios.early_ends import EarlyEnds
from kueuecore.scenarios.job_names import NamedWorkloads
from kueuecore.scenarios.job_rows import JobRows
from kueuecore.scenarios.work import Span, Work
from kueuecore.times import nanoseconds
from tests.builders import cluster_queue, flavor, local_queue
from tests.jobs import ALL_KINDS, job

QUEUES = tuple(Manifest(made.to_manifest()) for made in (flavor(), cluster_queue(cpu=3), local_queue()))
FRAMEWORKS = sorted({integration.framework for integration in INTEGRATIONS.values()})
CONFIGURATION = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, "
    f"integrations: {{frameworks: {FRAMEWORKS}}}, featureGates: {{SparkApplicationIntegration: true}}}}"
)
# What the smallest job of a kind lacks to get a Workload that asks for a CPU.
SPECS: dict[str, dict[str, JsonValue]] = {
    "TrainJob": {
        "runtimeRef": {"name": "torch-distributed"},
        "trainer": {"numNodes": 1, "resourcesPerNode": {"requests": {"cpu": 1}}},
    },
    "SparkApplication": {
        "driver": {"coreRequest": "500m", "instances": 1},
        "executor": {"coreRequest": "500m", "instances": 1},
    },
}


def submitted(kind: str, spec: dict[str, JsonValue] | None = None) -> Manifest:
    """The smallest job of a kind, with more in its spec."""
    plain = job(kind)
    plain["metadata"]["namespace"] = "ns"
    plain["spec"].update(SPECS.get(kind, {}) | (spec or {}))
    return Manifest(plain)


def rows_of(*work: Work) -> JobRows:
    return JobRows.of(QUEUES, work, generated=None, traces=(), configuration=CONFIGURATION, seed=0)


def scenario_of(*work: Work) -> Scenario:
    cluster = ClusterPart(objects=QUEUES, configuration=CONFIGURATION)
    return Scenario(cluster=cluster, work=work, start=nanoseconds("2026-01-05T00:00:00Z"))


@pytest.mark.parametrize(
    ("kind", "spec", "n_each", "n_templates"),
    [
        *((kind, {}, 1, 1) for kind in sorted(ALL_KINDS.keys() - {"AppWrapper"})),
        # A Workload for each pod or group.
        ("Deployment", {"replicas": 3}, 3, 3),
        ("LeaderWorkerSet", {"replicas": 2}, 2, 2),
        # Names of pod sets, which Kueue's messages have, hold that of the job.
        ("AppWrapper", {}, 1, 12),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_the_first_job_of_a_work_stands_for_all(
    kind: str, spec: dict[str, JsonValue], n_each: int, n_templates: int, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = EarlyEnds(share=0.5, after=Span(5)) if fails else None
    work = Work(name="many", job=submitted(kind, spec), count=12, every=Span(10), runs=Span(45), fails=early)
    rows = rows_of(work)
    n_ends = 2 if fails and n_templates < 12 else 1
    assert (len(rows.copies.templates), len(rows.copies)) == (n_templates * n_ends, 12 * n_each)
    together = run_scenario(scenario_of(work))
    monkeypatch.setattr(NamedWorkloads, "of", lambda *_, **__: None)
    assert len(rows_of(work).copies.templates) == 12 * n_each
    apart = run_scenario(scenario_of(work))
    assert [*together.jobs] == [*apart.jobs]
    assert (together.end, together.notes, together.warnings) == (apart.end, apart.notes, apart.warnings)
    # Some wait.
    assert any(outcome.admitted != outcome.created for outcome in together.jobs)


def test_jobs_that_wait_say_so_in_their_own_names(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(name="many", job=submitted("AppWrapper"), count=12, every=Span(10))
    together = [outcome.message for outcome in run_scenario(scenario_of(work)).jobs]
    assert "pod set many-12-0: insufficient unused quota" in together[-1]
    monkeypatch.setattr(NamedWorkloads, "of", lambda *_, **__: None)
    assert together == [outcome.message for outcome in run_scenario(scenario_of(work)).jobs]


def test_a_text_that_looks_like_the_name_of_a_job_is_no_name() -> None:
    # `many-1` would be renamed in the image, too.
    container: JsonValue = {"name": "c", "image": "registry/many-1.0"}
    pod: JsonValue = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}}
    wrapper = submitted("AppWrapper", {"components": [{"template": pod}]})
    rows = rows_of(Work(name="many", job=wrapper, count=3))
    for row in range(3):
        (pod_set,) = list_at(rows.copies.manifest(row, start=0).object, "spec", "podSets")
        (copied,) = list_at(pod_set, "template", "spec", "containers")
        assert (text_at(pod_set, "name"), text_at(copied, "image")) == (f"many-{row + 1}-0", "registry/many-1.0")


def test_labels_of_pods_are_kept_unless_they_are_the_jobs_name() -> None:
    plain = submitted("Job").object
    labels: JsonValue = {"app": "many", "team": "a"}
    template: JsonValue = {**object_at(plain, "spec", "template"), "metadata": {"labels": labels}}
    labelled = submitted("Job", {"template": template})
    rows = rows_of(Work(name="many", job=labelled, count=3, every=Span(10), runs=Span(5)))
    (pod_set,) = list_at(rows.copies.manifest(1, start=0).object, "spec", "podSets")
    assert texts_at(pod_set, "template", "metadata", "labels") == {"app": "many", "team": "a"}
