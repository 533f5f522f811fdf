"""The counters and histograms of a controller after a preemption and a finished job."""

from __future__ import annotations

import re
from pathlib import Path

from kueuecore.controller import Controller, Metrics
from kueuecore.controller.metric_families import FAMILIES
from kueuecore.times import SECOND_NS
from tests.unit.controller.world import World, workload


def test_metrics_have_kueues_names_labels_and_buckets() -> None:
    metrics = Metrics(replica_role="leader")
    world = World(
        quota=1,
        controller=Controller(metrics=metrics),
        preemption={"withinClusterQueue": "LowerPriority"},
        cohortName="all",
    )
    world.cluster.create(workload("low", priorityClassRef={"kind": "WorkloadPriorityClass", "name": 'a"b'}))
    world.settle()
    world.cluster.create(workload("high", priority=1))
    world.settle()
    world.controller.stopped("low", namespace="default")
    world.settle()
    world.cluster.now += 100 * SECOND_NS
    world.controller.finished("high", namespace="default")
    world.settle()
    reported = metrics.text(world.controller.engine).replace(',replica_role="leader"', "").splitlines()
    labels, by_class = 'cluster_queue="cluster-queue"', 'priority_class="a\\"b"'
    assert [line for line in reported if "_workloads_total" in line and "local" not in line and line[0] != "#"] == [
        f'kueue_admitted_workloads_total{{{labels},priority_class=""}} 1',
        f"kueue_admitted_workloads_total{{{labels},{by_class}}} 2",
        'kueue_cohort_subtree_admitted_workloads_total{cohort="all",priority_class=""} 1',
        f'kueue_cohort_subtree_admitted_workloads_total{{cohort="all",{by_class}}} 2',
        f'kueue_evicted_workloads_total{{{labels},{by_class},reason="Preempted",underlying_cause=""}} 1',
        f'kueue_finished_workloads_total{{{labels},priority_class=""}} 1',
        'kueue_preempted_workloads_total{preempting_cluster_queue="cluster-queue",reason="InClusterQueue"} 1',
        f'kueue_quota_reserved_workloads_total{{{labels},priority_class=""}} 1',
        f"kueue_quota_reserved_workloads_total{{{labels},{by_class}}} 2",
    ]
    execution = [line for line in reported if line.startswith("kueue_execution_time_seconds")]
    assert execution[:3] == [
        f'kueue_execution_time_seconds_bucket{{{labels},le="1",priority_class=""}} 0',
        f'kueue_execution_time_seconds_bucket{{{labels},le="2.5",priority_class=""}} 0',
        f'kueue_execution_time_seconds_bucket{{{labels},le="5",priority_class=""}} 0',
    ]
    assert (len(execution), execution[15]) == (
        19,
        f'kueue_execution_time_seconds_bucket{{{labels},le="40960",priority_class=""}} 1',
    )
    assert execution[-1] == f'kueue_execution_time_seconds_count{{{labels},priority_class=""}} 1'
    for line in (
        f'kueue_pending_workloads{{{labels},status="active"}} 0',
        f"kueue_reserving_active_workloads{{{labels}}} 1",
        f'kueue_cluster_queue_status{{{labels},status="active"}} 1',
        'kueue_cohort_subtree_quota{cohort="all",flavor="default-flavor",resource="cpu"} 1',
        "# TYPE kueue_execution_time_seconds histogram",
        'kueue_admission_attempts_total{replica_role="leader",result="success"} 3',
        'kueue_local_queue_finished_workloads_total{name="jobs",namespace="default",priority_class=""} 1',
    ):
        assert line in reported
    assert "nominal_quota" not in str(reported), "only if the Configuration asks for it"


def test_metrics_are_those_of_the_rules() -> None:
    rules = (Path(__file__).parents[3] / "docs/rules/09-fair-sharing-admission.md").read_text(encoding="utf-8")
    named = {name for line in rules.splitlines() if line.startswith("| ") for name in re.findall(r"[a-z_]+", line)}
    assert set(FAMILIES) <= named
