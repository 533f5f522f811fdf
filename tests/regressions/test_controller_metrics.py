"""What the metrics of a controller showed otherwise than Kueue, or not at all."""

from __future__ import annotations

import math

import pytest

from kueuecore import Configuration
from kueuecore._json import texts_at
from kueuecore.jobs import JobsConfiguration, workloads_for
from kueuecore.writes import Answer
from tests.metrics import Json, Lab, cluster_queue, local_queue, quotas, thing

FAIR = "fairSharing: {preemptionStrategies: [LessThanInitialShare]}\n"
RESOURCES = "metrics: {enableClusterQueueResources: true}\n"
UNTRACKED = "kueue.x-k8s.io/_UNTRACKED_VALUE_"


def borrower(weight: str) -> Lab:
    """A ClusterQueue of 1 cpu that borrows 2 of the 3 that its cohort has; the cohort is below another."""
    one, two = (quotas({"cpu": name}) for name in ("1", "2"))
    share: Json = {"fairSharing": {"weight": weight}}
    lab = Lab(
        thing("Cohort", "all"),
        thing("Cohort", "team", {"parentName": "all", **share}),
        cluster_queue("cq", "team", resourceGroups=one, **share),
        cluster_queue("other", "team", resourceGroups=two),
        local_queue("q", "cq"),
        settings=RESOURCES + FAIR,
    )
    lab.submit("w", cpu="3")
    lab.settle()
    return lab


def test_a_weighted_share_is_not_rounded() -> None:
    # It was 667, which belongs into the status.
    lab = borrower("1")
    assert lab.of("cluster_queue_weighted_share") == {
        'cluster_queue="cq",cohort="team"': 2 * 1000 / 3,
        'cluster_queue="other",cohort="team"': 0,
    }
    assert lab.controller.engine.cluster_queue("cq").status["fairSharing"]["weightedShare"] == 667


def test_a_borrower_of_weight_0_has_no_number() -> None:
    # It was the largest integer, as in the status.
    assert math.isnan(borrower("0").of("cluster_queue_weighted_share")['cluster_queue="cq",cohort="team"'])


def test_cohorts_have_a_share_and_an_infinite_one_stays_so() -> None:
    # There was none. Below `all`, `team` borrows what `spare` has: 2 of the 5 that `all` could lend, by weight 0.5.
    spare = cluster_queue("spare", "all")
    for weight, share in (("500m", 800), ("0", math.inf)):
        lab = borrower(weight)
        lab.cluster.create(spare)
        lab.submit("more", cpu="2")
        lab.settle()
        assert lab.of("cohort_weighted_share") == {'cohort="all"': 0, 'cohort="team"': share}


def test_shares_of_cluster_queues_are_among_their_resource_metrics() -> None:
    # They were shown without metrics.enableClusterQueueResources.
    lab = Lab(thing("Cohort", "team"), cluster_queue("cq", "team"), settings=FAIR)
    lab.turn()
    assert not lab.of("cluster_queue_weighted_share")
    assert lab.of("cohort_weighted_share") == {'cohort="team"': 0}


def test_reservations_below_a_cohort_are_the_sum_of_its_cluster_queues() -> None:
    # They were what the node of the cohort uses: nothing of quota that is not lent.
    lab = Lab(
        thing("Cohort", "team", {"parentName": "all"}),
        cluster_queue("cq", "team", resourceGroups=quotas({"cpu": "2"}, lendingLimit="0")),
        cluster_queue("idle", "other"),
        local_queue("q", "cq"),
    )
    lab.submit("w", cpu="1500m")
    lab.settle()
    assert lab.of("cohort_subtree_resource_reservations") == {
        'cohort="all",flavor="f",resource="cpu"': 1.5,
        'cohort="team",flavor="f",resource="cpu"': 1.5,
    }
    # Nor is there a series for nothing: what is not lent is no quota of the subtree.
    assert lab.of("cohort_subtree_quota") == {'cohort="other",flavor="f",resource="cpu"': 2}


def test_series_of_what_is_deleted_go() -> None:
    # They stayed forever.
    lab = Lab(
        thing("Cohort", "team"),
        cluster_queue("cq", "team"),
        cluster_queue("stays", "implicit"),
        local_queue("q", "cq"),
        local_queue("p", "stays"),
    )
    for queue in ("q", "p"):
        lab.submit(f"w-{queue}", queue)
    lab.settle()
    for name, namespace in (("w-q", "a"), ("w-p", "a")):
        lab.controller.finished(name, namespace=namespace)
    lab.settle()
    lab.metrics.count_dispatched("cq", "east")
    assert any('cluster_queue="cq"' in key for key in lab.samples())
    lab.cluster.delete("LocalQueue", "q", namespace="a")
    lab.settle()
    assert not [key for key in lab.samples() if 'name="q"' in key]
    lab.cluster.delete("ClusterQueue", "cq")
    lab.cluster.delete("Cohort", "team")
    lab.settle()
    # What a manager of MultiKueue has counted stays, as in Kueue.
    gone = {key for key in lab.samples() if 'cluster_queue="cq"' in key or 'cohort="team"' in key}
    assert gone == {'multikueue_workloads_dispatched_total{cluster="east",cluster_queue="cq"}'}
    assert lab.of("cohort_subtree_admitted_workloads_total") == {'cohort="implicit",priority_class=""': 1}
    lab.cluster.patch("ClusterQueue", "stays", {"spec": {"cohortName": "new"}})
    lab.settle()
    assert not lab.of("cohort_subtree_admitted_workloads_total")
    assert lab.of("finished_workloads_total") == {'cluster_queue="stays",priority_class=""': 1}


def test_a_preemption_counts_once_its_write_is_accepted() -> None:
    # It counted with the decision, and again after a conflict.
    lab = Lab(cluster_queue("cq", preemption={"withinClusterQueue": "LowerPriority"}), local_queue("q", "cq"))
    lab.submit("low", cpu="2")
    lab.settle()
    lab.submit("high", priority=1)
    lab.watch()
    (write,) = (write for write in lab.controller.turn(lab.cluster.now).writes if write.name == "low")
    assert not lab.of("preempted_workloads_total")
    lab.controller.done(write, Answer(error="refused"), now=lab.cluster.now)
    lab.settle()
    counted = {'preempting_cluster_queue="cq",reason="InClusterQueue"': 1}
    assert lab.of("preempted_workloads_total") == counted


def test_what_waits_is_summed_by_resource() -> None:
    # The family was missing.
    lab = Lab(
        cluster_queue("cq", resourceGroups=quotas({"cpu": "1", "memory": "1Gi"})),
        local_queue("q", "cq"),
        settings=RESOURCES,
    )
    family = "cluster_queue_resource_pending"
    lab.turn()
    assert lab.of(family) == {'cluster_queue="cq",resource="cpu"': 0, 'cluster_queue="cq",resource="memory"': 0}
    lab.submit("runs", cpu="1")
    lab.settle()
    lab.submit("parked", cpu="700m", requests={"memory": "1Ki"})
    lab.settle()
    lab.submit("waits", cpu="300m", requests={"example.com/gpu": "3"})
    lab.watch()
    assert lab.of(family) == {
        'cluster_queue="cq",resource="cpu"': 1,
        'cluster_queue="cq",resource="memory"': 1024,
        'cluster_queue="cq",resource="example.com/gpu"': 3,
    }


def test_equal_workloads_that_wait_have_one_scheduling_hash() -> None:
    # The family was missing.
    lab = Lab(cluster_queue("cq", resourceGroups=quotas({"cpu": "1"})), local_queue("q", "cq"), local_queue("p", "cq"))
    lab.submit("runs")
    lab.settle()
    for index in range(3):
        lab.submit(f"equal-{index}", "q" if index else "p")
    lab.submit("greater", cpu="2")
    lab.submit("urgent", priority=1)
    lab.watch()
    family, labels = "pending_scheduling_hashes", 'cluster_queue="cq",status='
    assert lab.of(family) == {f'{labels}"active"': 3, f'{labels}"inadmissible"': 0}
    for _ in range(3):
        lab.turn()
    assert lab.of(family) == {f'{labels}"active"': 0, f'{labels}"inadmissible"': 3}


def test_a_selector_says_which_local_queues_have_metrics() -> None:
    # All had.
    selector = "{matchLabels: {metrics: 'yes'}, matchExpressions: [{key: tier, operator: NotIn, values: [test]}]}"
    lab = Lab(
        cluster_queue("cq", resourceGroups=quotas({"cpu": "9"})),
        local_queue("shown", "cq", labels={"metrics": "yes"}),
        local_queue("test", "cq", labels={"metrics": "yes", "tier": "test"}),
        local_queue("plain", "cq"),
        settings=f"metrics: {{localQueueMetrics: {{enable: true, localQueueSelector: {selector}}}}}",
    )
    for queue in ("shown", "test", "plain"):
        lab.submit(f"w-{queue}", queue)
    lab.settle()
    names = {key for key in lab.samples() if 'name="test"' in key or 'name="plain"' in key}
    assert (names, len(lab.of("local_queue_admitted_workloads_total"))) == (set(), 1)
    lab.cluster.patch("LocalQueue", "shown", {"metadata": {"labels": {"metrics": "no"}}}, namespace="a")
    lab.turn()
    assert not [key for key in lab.samples() if key.startswith("kueue_local_queue_")]


CUSTOM = """
featureGates: {CustomMetricLabels: true}
metrics:
  customLabels:
    - {name: team}
    - {name: tier, sourceAnnotationKey: example.com/tier, trackedValues: [gold]}
    - {name: of_lq, sourceKind: LocalQueue, sourceLabelKey: example.com/lq}
    - {name: org, sourceKind: Cohort}
    - {name: size, sourceKind: Workload, trackedValues: [big, small]}
"""


def custom_lab() -> Lab:
    queue = cluster_queue("cq", "cohort", labels={"team": "x"})
    queue["metadata"]["annotations"] = {"example.com/tier": "bronze"}
    lab = Lab(
        thing("Cohort", "cohort", labels={"org": "o"}),
        queue,
        local_queue("q", "cq", labels={"example.com/lq": "mine"}),
        settings=CUSTOM,
    )
    lab.submit("big", labels={"size": "big"})
    lab.submit("small", labels={"size": "small"})
    lab.submit("odd", labels={"size": "odd"})
    lab.submit("none")
    lab.settle()
    return lab


def test_labels_of_objects_become_labels_of_metrics() -> None:
    # There were none.
    lab = custom_lab()
    own = f'custom_team="x",custom_tier="{UNTRACKED}"'
    queue = 'cluster_queue="cq"'
    assert lab.of("reserving_active_workloads") == {f"{queue},{own}": 2}
    assert lab.of("admitted_workloads_total") == {f'{queue},{own},priority_class=""': 2}
    assert lab.of("admitted_active_workloads") == {
        f'{queue},custom_size="{size}",{own}': 1 for size in ("big", "small")
    }
    # Of two that wait one has another label, one none.
    assert lab.of("pending_workloads") == {
        f'{queue},custom_size="{UNTRACKED}",{own},status="inadmissible"': 2,
    }
    local = 'name="q",namespace="a"'
    assert lab.of("local_queue_admitted_workloads_total") == {
        f'custom_of_lq="mine",custom_size="{size}",{local},priority_class=""': 1 for size in ("big", "small")
    }
    assert lab.of("local_queue_admitted_active_workloads") == {
        f'custom_of_lq="mine",custom_size="{size}",{local}': 1 for size in ("big", "small")
    }
    assert lab.of("local_queue_quota_reserved_workloads_total") == {f'custom_of_lq="mine",{local},priority_class=""': 2}
    cohort = 'cohort="cohort"'
    assert lab.of("cohort_info") == {f'{cohort},custom_org="o",parent_cohort="",root_cohort="cohort"': 1}
    assert lab.of("cohort_subtree_admitted_workloads_total") == {f'{cohort},custom_org="o",priority_class=""': 2}
    # This one has those of the ClusterQueues below.
    assert lab.of("cohort_subtree_admitted_active_workloads") == {f"{cohort},{own}": 2}


def test_a_changed_label_ends_what_was_counted_under_the_old_one() -> None:
    lab = custom_lab()
    lab.cluster.patch("ClusterQueue", "cq", {"metadata": {"labels": {"team": "y"}}})
    lab.cluster.patch("LocalQueue", "q", {"metadata": {"labels": {"example.com/lq": "yours"}}}, namespace="a")
    lab.cluster.patch("Cohort", "cohort", {"metadata": {"labels": {"org": "p"}}})
    lab.turn()
    got = lab.samples()
    assert not [key for key in got if 'custom_team="x"' in key or 'custom_of_lq="mine"' in key]
    assert not lab.of("admitted_workloads_total")
    assert len(lab.of("reserving_active_workloads")) == 1
    # What a Cohort has counted stays under its old label; gauges have the new one.
    assert [key for key in got if 'custom_org="o"' in key] == [
        'kueue_cohort_subtree_admitted_workloads_total{cohort="cohort",custom_org="o",priority_class=""}'
    ]


@pytest.mark.parametrize("settings", [CUSTOM.replace("true", "false"), ""])
def test_without_their_gate_there_are_no_custom_labels(settings: str) -> None:
    lab = Lab(cluster_queue("cq", labels={"team": "x"}), local_queue("q", "cq"), settings=settings)
    lab.submit("one")
    lab.settle()
    assert not [key for key in lab.samples() if "custom_" in key]


def test_a_workload_gets_from_its_job_what_becomes_a_label_of_metrics() -> None:
    # Only integrations.labelKeysToCopy was copied (rules/10 §3.2).
    labels = (
        "[{name: size, sourceKind: Workload, trackedValues: [big]},"
        " {name: cost, sourceKind: Workload, sourceAnnotationKey: example.com/cost, trackedValues: [low]},"
        " {name: team}]"
    )
    head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    container = {"name": "c", "image": "i"}
    job: Json = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "job",
            "namespace": "a",
            "labels": {"kueue.x-k8s.io/queue-name": "q", "size": "big", "team": "x"},
            "annotations": {"example.com/cost": "low", "other": "x"},
        },
        "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    for gate, copied in (
        ("true", ({"size": "big"}, {"example.com/cost": "low"})),
        ("false", ({}, {})),
    ):
        text = f"{head}featureGates: {{CustomMetricLabels: {gate}}}\nmetrics: {{customLabels: {labels}}}"
        settings = JobsConfiguration.of(Configuration.parse(text))
        (workload,) = workloads_for([job], configuration=settings).workloads
        found = texts_at(workload.object, "metadata", "labels")
        found = {key: label for key, label in found.items() if "/" not in key}
        assert (found, texts_at(workload.object, "metadata", "annotations")) == copied
