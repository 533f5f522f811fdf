"""What the metrics of a controller show, one behaviour a test; `test_counters.py` has the counters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kueuecore._json import object_at
from kueuecore.controller import JobController
from kueuecore.controller.metric_families import FAMILIES
from kueuecore.jobs import JobsConfiguration
from kueuecore.writes import Answer, Verb
from tests.metrics import Json, Lab, Samples, cluster_queue, histogram, local_queue, quotas, thing

CQ, LQ = 'cluster_queue="cq"', 'name="q",namespace="a"'
# Kueue's generateExponentialBuckets: 1, then 2.5 doubled.
B14 = [1.0, *(2.5 * 2**k for k in range(13))]
B16 = [1.0, *(2.5 * 2**k for k in range(15))]


def lab(configuration: str = "", **spec: Any) -> Lab:
    """Two ClusterQueues, one of them below two cohorts and without preemption of equals."""
    preemption = {"withinClusterQueue": "LowerPriority"}
    return Lab(
        thing("Cohort", "all"),
        thing("Cohort", "team", {"parentName": "all"}),
        cluster_queue("cq", "team", preemption=preemption, **spec),
        cluster_queue("empty", resourceGroups=[]),
        local_queue("q", "cq"),
        local_queue("idle", "empty", stopPolicy="Hold"),
        settings=configuration,
    )


def counters(samples: Samples) -> Samples:
    return {key: value for key, value in samples.items() if re.match(r"kueue_[a-z_]*(_total|_bucket|_count)\{", key)}


def test_the_whole_page_is_kueues() -> None:
    it = Lab(
        thing("Cohort", "team"),
        cluster_queue("cq", "team", resourceGroups=quotas({"cpu": "2"}, borrowingLimit="3")),
        local_queue("q", "cq"),
        settings=(
            "metrics: {enableClusterQueueResources: true}\n"
            "fairSharing: {preemptionStrategies: [LessThanInitialShare]}\n"
        ),
    )
    it.submit("runs", cpu="1500m")
    it.submit("waits")
    it.turn(4)
    it.turn(1)
    reserved = [4.0]
    cell = 'cohort="team",flavor="f",resource="cpu"'
    assert it.samples() == {
        'kueue_admission_attempts_total{result="success"}': 1,
        'kueue_admission_attempts_total{result="inadmissible"}': 1,
        **histogram("quota_reserved_wait_time_seconds", f'{CQ},priority_class=""', reserved, B14),
        **histogram("local_queue_quota_reserved_wait_time_seconds", f'{LQ},priority_class=""', reserved, B14),
        **histogram("admission_wait_time_seconds", f'{CQ},priority_class=""', reserved, B16),
        **histogram("local_queue_admission_wait_time_seconds", f'{LQ},priority_class=""', reserved, B14),
        f'kueue_quota_reserved_workloads_total{{{CQ},priority_class=""}}': 1,
        f'kueue_local_queue_quota_reserved_workloads_total{{{LQ},priority_class=""}}': 1,
        f'kueue_admitted_workloads_total{{{CQ},priority_class=""}}': 1,
        f'kueue_local_queue_admitted_workloads_total{{{LQ},priority_class=""}}': 1,
        'kueue_cohort_subtree_admitted_workloads_total{cohort="team",priority_class=""}': 1,
        f'kueue_pending_workloads{{{CQ},status="active"}}': 0,
        f'kueue_pending_workloads{{{CQ},status="inadmissible"}}': 1,
        f'kueue_pending_scheduling_hashes{{{CQ},status="active"}}': 0,
        f'kueue_pending_scheduling_hashes{{{CQ},status="inadmissible"}}': 1,
        f'kueue_local_queue_pending_workloads{{{LQ},status="active"}}': 0,
        f'kueue_local_queue_pending_workloads{{{LQ},status="inadmissible"}}': 1,
        f'kueue_unadmitted_workloads{{{CQ},reason="NoReservation",underlying_cause="WaitingForQuota"}}': 1,
        f"kueue_local_queue_unadmitted_workloads{{{CQ},{LQ}"
        ',reason="NoReservation",underlying_cause="WaitingForQuota"}': 1,
        f"kueue_finished_workloads{{{CQ}}}": 0,
        f"kueue_local_queue_finished_workloads{{{LQ}}}": 0,
        f"kueue_reserving_active_workloads{{{CQ}}}": 1,
        f"kueue_local_queue_reserving_active_workloads{{{LQ}}}": 1,
        f"kueue_admitted_active_workloads{{{CQ}}}": 1,
        f"kueue_local_queue_admitted_active_workloads{{{LQ}}}": 1,
        f'kueue_cluster_queue_status{{{CQ},status="pending"}}': 0,
        f'kueue_cluster_queue_status{{{CQ},status="active"}}': 1,
        f'kueue_cluster_queue_status{{{CQ},status="terminating"}}': 0,
        f'kueue_local_queue_status{{active="True",{LQ}}}': 1,
        f'kueue_local_queue_status{{active="False",{LQ}}}': 0,
        f'kueue_local_queue_status{{active="Unknown",{LQ}}}': 0,
        f"kueue_cluster_queue_nominal_quota{{{CQ},{cell}}}": 2,
        f"kueue_cluster_queue_borrowing_limit{{{CQ},{cell}}}": 3,
        f"kueue_cluster_queue_lending_limit{{{CQ},{cell}}}": float("inf"),
        f"kueue_cluster_queue_resource_reservation{{{CQ},{cell}}}": 1.5,
        f"kueue_cluster_queue_resource_usage{{{CQ},{cell}}}": 1.5,
        f'kueue_cluster_queue_resource_pending{{{CQ},resource="cpu"}}': 1,
        f'kueue_local_queue_resource_reservation{{flavor="f",{LQ},resource="cpu"}}': 1.5,
        f'kueue_local_queue_resource_usage{{flavor="f",{LQ},resource="cpu"}}': 1.5,
        f'kueue_cluster_queue_weighted_share{{{CQ},cohort="team"}}': 0,
        'kueue_cohort_weighted_share{cohort="team"}': 0,
        f"kueue_cohort_subtree_quota{{{cell}}}": 2,
        f"kueue_cohort_subtree_resource_reservations{{{cell}}}": 1.5,
        'kueue_cohort_subtree_admitted_active_workloads{cohort="team"}': 1,
        'kueue_cohort_info{cohort="team",parent_cohort="",root_cohort="team"}': 1,
        f'kueue_cluster_queue_info{{{CQ},parent_cohort="team",root_cohort="team"}}': 1,
    }


def test_families_stand_in_the_order_of_their_names_as_in_kueues_registry() -> None:
    it = lab()
    it.submit("one")
    it.settle()
    it.metrics.count_dispatched("cq", "east")
    page = it.metrics.text(it.controller.engine)
    names = re.findall("^# TYPE ([a-z_]+) ", page, re.MULTILINE)
    assert names == sorted(names)
    assert names[-1] == "multikueue_workloads_dispatched_total"


def test_times_of_readiness_and_eviction_are_those_of_the_conditions() -> None:
    it = lab()
    it.submit("low")
    it.submit("other")
    for _ in range(2):
        it.turn(10)
    it.turn(4)
    it.controller.note_readiness("low", namespace="a", are_ready=True)
    it.turn(1)
    got = it.samples()
    # Created at 0, admitted after 10 seconds.
    assert got[f'kueue_ready_wait_time_seconds_sum{{{CQ},priority_class=""}}'] == 25
    assert got[f'kueue_admitted_until_ready_wait_time_seconds_sum{{{CQ},priority_class=""}}'] == 15
    assert got[f'kueue_local_queue_ready_wait_time_seconds_count{{{LQ},priority_class=""}}'] == 1
    it.controller.note_readiness("low", namespace="a", are_ready=False)
    it.turn()
    it.controller.note_readiness("low", namespace="a", are_ready=True)
    it.turn()
    # A recovery is no second start.
    assert it.samples()[f'kueue_ready_wait_time_seconds_count{{{CQ},priority_class=""}}'] == 1
    it.submit("high", priority=5, cpu="2")
    it.turn(30)
    it.turn(1)
    it.turn(5)
    for name in ("low", "other"):
        it.controller.stopped(name, namespace="a")
    it.turn(1)
    got = it.samples()
    cause = 'reason="Preempted",underlying_cause=""'
    # Of the one that was never ready there is no such time.
    assert got[f"kueue_pods_ready_to_evicted_time_seconds_count{{{CQ},{cause}}}"] == 1
    assert got[f"kueue_pods_ready_to_evicted_time_seconds_sum{{{CQ},{cause}}}"] >= 30
    assert got[f'kueue_workload_eviction_latency_seconds_count{{{CQ},reason="Preempted"}}'] == 2
    assert 6 <= got[f'kueue_workload_eviction_latency_seconds_sum{{{CQ},reason="Preempted"}}'] / 2 <= 8
    assert it.of("preempted_workloads_total") == {'preempting_cluster_queue="cq",reason="InClusterQueue"': 2}


def test_local_queues_have_their_gauges() -> None:
    it = lab()
    for name in ("one", "two", "three"):
        it.submit(name)
    it.settle()
    it.controller.finished("one", namespace="a")
    it.settle()
    it.turn(1)
    it.settle()
    it.submit("four")
    it.turn()
    got = it.samples()
    for key, value in {
        f"kueue_local_queue_reserving_active_workloads{{{LQ}}}": 2,
        f"kueue_local_queue_admitted_active_workloads{{{LQ}}}": 2,
        f"kueue_local_queue_finished_workloads{{{LQ}}}": 1,
        f"kueue_finished_workloads{{{CQ}}}": 1,
        'kueue_finished_workloads{cluster_queue="empty"}': 0,
        f'kueue_local_queue_pending_workloads{{{LQ},status="active"}}': 0,
        f'kueue_local_queue_pending_workloads{{{LQ},status="inadmissible"}}': 1,
        f'kueue_local_queue_status{{active="True",{LQ}}}': 1,
        'kueue_local_queue_status{active="False",name="idle",namespace="a"}': 1,
        'kueue_local_queue_status{active="True",name="idle",namespace="a"}': 0,
        f'kueue_local_queue_resource_reservation{{flavor="f",{LQ},resource="cpu"}}': 2,
        f'kueue_local_queue_resource_usage{{flavor="f",{LQ},resource="cpu"}}': 2,
        f'kueue_unadmitted_workloads{{{CQ},reason="NoReservation",underlying_cause="WaitingForQuota"}}': 1,
    }.items():
        assert got[key] == value, key


def test_the_queue_manager_does_not_know_a_stopped_local_queue() -> None:
    it = lab()
    it.submit("one")
    it.submit("two", cpu="9")
    it.settle()
    stopped = {key for key in it.samples() if 'name="idle"' in key}
    assert {key.partition("{")[0].removeprefix("kueue_local_queue_") for key in stopped} == {
        "status",
        "reserving_active_workloads",
        "admitted_active_workloads",
    }
    it.cluster.patch("LocalQueue", "q", {"spec": {"stopPolicy": "Hold"}}, namespace="a")
    it.turn()
    got = it.samples()
    assert f'kueue_local_queue_admitted_workloads_total{{{LQ},priority_class=""}}' not in got
    assert got[f'kueue_admitted_workloads_total{{{CQ},priority_class=""}}'] == 1
    assert got[f"kueue_local_queue_admitted_active_workloads{{{LQ}}}"] == 1
    assert not it.of("unadmitted_workloads")


def test_all_that_waits_in_an_inactive_cluster_queue_counts_as_inadmissible() -> None:
    it = lab()
    it.submit("one")
    it.submit("two")
    it.submit("other", cpu="9")
    it.turn()
    it.cluster.patch("ClusterQueue", "cq", {"spec": {"stopPolicy": "Hold"}})
    it.watch()
    for family in ("pending_workloads", "pending_scheduling_hashes"):
        got = it.of(family)
        assert got[f'{CQ},status="active"'] == 0
        assert got[f'{CQ},status="inadmissible"'] == 2


def test_cohorts_show_where_they_stand_and_what_is_below_them() -> None:
    it = lab()
    it.submit("one")
    it.turn()
    it.turn()
    got = it.samples()
    assert {key for key in got if "_info" in key} == {
        'kueue_cohort_info{cohort="all",parent_cohort="",root_cohort="all"}',
        'kueue_cohort_info{cohort="team",parent_cohort="all",root_cohort="all"}',
        'kueue_cluster_queue_info{cluster_queue="cq",parent_cohort="team",root_cohort="all"}',
        'kueue_cluster_queue_info{cluster_queue="empty",parent_cohort="",root_cohort=""}',
    }
    for cohort in ("all", "team"):
        assert got[f'kueue_cohort_subtree_admitted_workloads_total{{cohort="{cohort}",priority_class=""}}'] == 1
        assert got[f'kueue_cohort_subtree_admitted_active_workloads{{cohort="{cohort}"}}'] == 1


def test_a_circle_of_cohorts_has_no_numbers() -> None:
    it = lab()
    it.submit("one")
    it.settle()
    it.cluster.patch("Cohort", "all", {"spec": {"parentName": "team"}})
    it.settle()
    got = it.samples()
    assert not [key for key in got if "cohort_subtree_quota" in key or "cohort_info" in key]
    assert got['kueue_cluster_queue_info{cluster_queue="cq",parent_cohort="",root_cohort=""}'] == 1


def test_how_long_a_cycle_took_its_caller_reports() -> None:
    it = lab()
    idle = it.turn().decision
    it.submit("one")
    busy = it.turn().decision
    for decision, seconds in ((idle, 0.3), (busy, 0.004), (busy, 20.0)):
        it.metrics.time_attempt(decision, seconds=seconds)
    bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
    expected = histogram("admission_attempt_duration_seconds", 'result="success"', [0.004, 20.0], bounds)
    got = it.samples()
    assert {key: got[key] for key in expected} == expected
    for odd in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="seconds must be a time from 0 on"):
            it.metrics.time_attempt(busy, seconds=odd)


def created(kind: str, at: str, generation: int = 1) -> Json:
    return {"kind": kind, "metadata": {"creationTimestamp": at, "generation": generation}}


def test_the_time_from_a_job_to_its_workload_counts_while_the_job_is_new() -> None:
    it = lab()
    workload = created("Workload", "2026-01-01T00:00:03Z")
    it.metrics.workload_created(created("Job", "2026-01-01T00:00:00Z"), workload)
    it.metrics.workload_created(created("Job", "2026-01-01T00:00:02Z"), workload)
    it.metrics.workload_created(created("Job", "2026-01-01T00:00:00Z", generation=2), workload)
    it.metrics.workload_created(created("Pod", "2026-01-01T00:00:03Z", generation=0), workload)
    it.metrics.workload_created({"kind": "Pod", "metadata": {}}, workload)
    bounds = [0.01 * 2**k for k in range(11)]
    expected = histogram("workload_creation_latency_seconds", 'job_kind="Job"', [3, 1], bounds)
    expected |= histogram("workload_creation_latency_seconds", 'job_kind="Pod"', [0], bounds)
    assert {key: value for key, value in it.samples().items() if "workload_creation" in key} == expected


def test_a_removed_gate_counts_from_the_admission() -> None:
    it = lab()
    it.submit("one")
    it.turn()
    gate = "kueue.x-k8s.io/admission"
    pending: Json = {"status": {"conditions": []}}
    workload = it.cluster.get("Workload", "one", namespace="a")
    assert workload is not None
    it.metrics.gate_removed(gate, pending, now=it.cluster.now)
    it.metrics.gate_removed(gate, workload, now=it.cluster.now + 2 * 10**9)
    # A clock that is behind.
    it.metrics.gate_removed(gate, workload, now=it.cluster.now - 10**9, is_group=True)
    family, rest = "pod_scheduling_gate_removal_seconds", f'name="{gate}"'
    assert {key: value for key, value in it.samples().items() if re.search(f"{family}_(sum|count)", key)} == {
        f'kueue_{family}_sum{{{CQ},is_group="false",{rest}}}': 2,
        f'kueue_{family}_count{{{CQ},is_group="false",{rest}}}': 1,
        f'kueue_{family}_sum{{{CQ},is_group="true",{rest}}}': 0,
        f'kueue_{family}_count{{{CQ},is_group="true",{rest}}}': 1,
    }


class JobLab(Lab):
    """A lab with the controllers of jobs."""

    def __init__(self, *, sees_answers: bool) -> None:
        super().__init__(cluster_queue("cq"), local_queue("q", "cq"))
        frameworks = JobsConfiguration(frameworks=["batch/job", "pod"])
        self.jobs = JobController(self.controller, configuration=frameworks, metrics=self.metrics)
        self.sees_answers = sees_answers

    def watch(self) -> None:
        for version, event in self.cluster.history:
            if version > self.seen:
                self.jobs.observe(event, now=self.cluster.now)
        self.seen = self.cluster.version

    def work(self, *, refuses: bool = False) -> None:
        self.watch()
        for work in self.jobs.take_due(self.cluster.now):
            if refuses and work.requests:
                self.jobs.done(work.job, Answer(error="refused"), now=self.cluster.now)
                continue
            for request in work.requests:
                if request.verb is Verb.CREATE:
                    # A server sets the time itself.
                    object_at(request.manifest, "metadata").pop("creationTimestamp", None)
                assert self.cluster.carry_out(request).is_accepted
                if self.sees_answers:
                    self.watch()
            self.jobs.done(work.job, Answer(), now=self.cluster.now)
        self.watch()


@pytest.mark.parametrize("sees_answers", [True, False])
def test_the_controller_of_jobs_counts_workloads_and_gates(sees_answers: bool) -> None:
    it = JobLab(sees_answers=sees_answers)
    template: Json = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
    metadata: Json = {"namespace": "a", "labels": {"kueue.x-k8s.io/queue-name": "q"}}
    job = {"suspend": True, "template": template}
    it.cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {**metadata, "name": "job"}, "spec": job})
    managed = {**metadata, "name": "pod", "labels": {**metadata["labels"], "kueue.x-k8s.io/managed": "true"}}
    gated = {**template["spec"], "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    it.cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": managed, "spec": gated})
    # What is refused is no Workload.
    it.work(refuses=True)
    it.cluster.now += 2 * 10**9
    it.work()
    it.turn(3)
    it.turn(0)
    it.cluster.now += 10**9
    it.work()
    latency, removal = "workload_creation_latency_seconds", "pod_scheduling_gate_removal_seconds"
    gate = f'{CQ},is_group="false",name="kueue.x-k8s.io/admission"'
    assert {key: n for key, n in it.samples().items() if re.search(f"({latency}|{removal})_(sum|count)", key)} == {
        f'kueue_{latency}_sum{{job_kind="Job"}}': 2,
        f'kueue_{latency}_count{{job_kind="Job"}}': 1,
        f'kueue_{latency}_sum{{job_kind="Pod"}}': 2,
        f'kueue_{latency}_count{{job_kind="Pod"}}': 1,
        f"kueue_{removal}_sum{{{gate}}}": 1,
        f"kueue_{removal}_count{{{gate}}}": 1,
    }


def test_usage_for_admission_fair_sharing_is_weighted() -> None:
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    it = Lab(
        cluster_queue("cq", admissionScope=scope),
        local_queue("q", "cq", fairSharing={"weight": "2"}),
        local_queue("none", "cq", fairSharing={"weight": "0"}),
        settings="admissionFairSharing: {usageHalfLifeTime: 300s, usageSamplingInterval: 300s}",
    )
    it.submit("one")
    # The penalty of an interval, 0.5 cpu, goes into the history at once; each half-life halves it and adds 0.5 cpu.
    for seconds, used in ((0, 0.5), (300, 0.75), (300, 0.875)):
        it.turn(seconds)
        assert it.of("local_queue_admission_fair_sharing_usage") == {
            f'cluster_queue="cq",{LQ}': used / 2,
            'cluster_queue="cq",name="none",namespace="a"': float("inf"),
        }


@pytest.mark.parametrize(
    ("configuration", "silent"),
    [
        ("metrics: {localQueueMetrics: {enable: false}}", "local_queue_"),
        # Only without the whole block it is enabled by default.
        ("metrics: {localQueueMetrics: {localQueueSelector: {}}}", "local_queue_"),
        ("featureGates: {LocalQueueMetrics: false}", "local_queue_"),
        ("featureGates: {MetricsForCohorts: false}", "cohort_info"),
        ("featureGates: {MetricsForCohorts: false}", "cluster_queue_info"),
        ("featureGates: {UnadmittedWorkloadsObservability: false}", "unadmitted_"),
        (
            "featureGates: {SchedulingEquivalenceHashing: false, SchedulingEquivalenceHashingIgnorePodSetName: false}",
            "pending_scheduling_hashes",
        ),
        ("featureGates: {MetricForWorkloadCreationLatency: false}", "workload_creation_latency"),
        ("fairSharing: {preemptionStrategies: [LessThanInitialShare]}", "admission_fair_sharing"),
    ],
)
def test_what_is_switched_off_is_not_shown(configuration: str, silent: str) -> None:
    on = "admissionFairSharing: {usageHalfLifeTime: 1h, usageSamplingInterval: 5m}"
    for entry, is_shown in ((lab(on), True), (lab(configuration), False)):
        for name in ("one", "two", "three"):
            entry.submit(name)
        entry.turn()
        job = created("Job", "2026-01-01T00:00:00Z")
        entry.metrics.workload_created(job, job)
        assert any(f"kueue_{silent}" in key or f"_{silent}" in key for key in entry.samples()) == is_shown


def test_the_gate_of_cohorts_is_about_their_places_alone() -> None:
    it = lab("featureGates: {MetricsForCohorts: false}")
    it.submit("one")
    it.settle()
    assert it.of("cohort_subtree_admitted_active_workloads") == {'cohort="all"': 1, 'cohort="team"': 1}


def test_skipped_preemptions_stay_until_a_cycle_skips_some_again() -> None:
    it = lab()
    decision: Any = type("Decision", (), {})()
    decision.cycle, decision.waits_for_pods, decision.admission_table = 1, None, ()
    decision.target_recomputations, decision.preemptions, decision.replaced_slices = {}, (), ()
    for skipped in ({"cq": 2}, {"empty": 1}, {"empty": 3}):
        decision.skipped_preemptions = skipped
        it.metrics.count_cycle(decision)
    assert it.of("admission_cycle_preemption_skips") == {CQ: 2, 'cluster_queue="empty"': 3}


def test_a_replaced_slice_counts_when_its_end_is_written() -> None:
    it = lab()
    elastic = "kueue.x-k8s.io/elastic-job"
    it.submit("old", annotations={elastic: "true"})
    it.settle()
    it.submit("new", cpu="2", annotations={elastic: "true", "kueue.x-k8s.io/workload-slice-replacement-for": "a/old"})
    it.settle()
    assert it.of("replaced_workload_slices_total") == {CQ: 1}
    assert it.of("finished_workloads_total") == {f'{CQ},priority_class=""': 1}


HAPPENINGS = st.sampled_from(["submit", "urgent", "finish", "stop", "ready", "unready", "delete", "wait", "wait"])


@settings(max_examples=8)
@given(st.lists(st.tuples(HAPPENINGS, st.integers(0, 4)), max_size=14))
def test_the_page_can_be_read_and_no_counter_goes_down(happenings: list[tuple[str, int]]) -> None:
    it = lab()
    before: Samples = {}
    for step, (what, which) in enumerate(happenings):
        name = f"w{which}"
        is_there = any(each["metadata"]["name"] == name for each in it.cluster.list("Workload")[0])
        if what in ("submit", "urgent") and not is_there:
            it.submit(name, priority=5 * (what == "urgent"))
        elif what == "delete" and is_there:
            it.cluster.delete("Workload", name, namespace="a")
        elif what == "finish":
            it.controller.finished(name, namespace="a")
        elif what == "stop":
            it.controller.stopped(name, namespace="a")
        elif what in ("ready", "unready"):
            it.controller.note_readiness(name, namespace="a", are_ready=what == "ready")
        turn = it.turn(1 + 40 * (what == "wait"))
        it.metrics.time_attempt(turn.decision, seconds=step / 7)
        samples = it.samples()
        after = counters(samples)
        assert {key for key, value in before.items() if after.get(key, -1) < value} == set()
        assert all(value >= 0 for value in samples.values())
        check_buckets(samples)
        before = after


def check_buckets(samples: Samples) -> None:
    """Buckets count up, the last counts all."""
    for family, other in FAMILIES.items():
        rows: dict[str, list[float]] = {}
        for key, value in samples.items():
            if key.startswith(f"kueue_{family}_bucket{{"):
                rows.setdefault(re.sub(r'le="[^"]*",?', "", key).replace(",}", "}"), []).append(value)
        for key, values in rows.items():
            assert len(values) == len(other.bounds) + 1
            assert values == sorted(values)
            assert samples[key.replace("_bucket{", "_count{")] == values[-1]
