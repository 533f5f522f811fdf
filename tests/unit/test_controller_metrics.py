"""What the metrics of a controller tell, one behaviour a test; `test_controller.py` has the counters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kueuecore import Configuration
from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, Metrics
from kueuecore.controller.metric_families import FAMILIES, bounds_of
from kueuecore.times import nanoseconds
from tests.unit.test_controller_refusals import KUEUE, thing

Json = dict[str, Any]
SECOND = 10**9
START = nanoseconds("2026-01-01T00:00:00Z")
Samples = dict[str, float]


class Lab:
    """A cluster of two ClusterQueues below two cohorts, and a controller with metrics."""

    def __init__(self, *, gates: str = "", quota: str = "2") -> None:
        text = f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{gates}"
        self.metrics = Metrics()
        self.configuration = Configuration.parse(text) if gates else None
        self.controller = Controller(self.configuration, models_readiness=True, metrics=self.metrics)
        self.cluster = ApiServer(now=START)
        self.told = 0
        flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": quota}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
        queue = {"namespaceSelector": {}, "resourceGroups": groups, "cohortName": "team"}
        preemption = {"withinClusterQueue": "LowerPriority"}
        for each in (
            thing("Namespace", "a", api_version="v1"),
            thing("ResourceFlavor", "f"),
            thing("Cohort", "all"),
            thing("Cohort", "team", {"parentName": "all"}),
            thing("ClusterQueue", "cq", {**queue, "preemption": preemption}),
            thing("ClusterQueue", "empty", {"namespaceSelector": {}}),
            thing("LocalQueue", "q", {"clusterQueue": "cq"}, "a"),
            thing("LocalQueue", "idle", {"clusterQueue": "empty", "stopPolicy": "Hold"}, "a"),
        ):
            self.cluster.create(each)

    def submit(self, name: str, *, priority: int = 0, cpu: str = "1") -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        spec = {"queueName": "q", "podSets": [pods], "priority": priority, "active": True}
        self.cluster.create(
            {"apiVersion": KUEUE, "kind": "Workload", "metadata": {"name": name, "namespace": "a"}, "spec": spec}
        )

    def turn(self, seconds: int = 1) -> Any:
        self.cluster.now += seconds * SECOND
        for version, event in self.cluster.history:
            if version > self.told:
                self.controller.observe(event, now=self.cluster.now)
        self.told = self.cluster.version
        turn = self.controller.turn(self.cluster.now)
        for it in turn.writes:
            answer = self.cluster.patch(
                "Workload", it.name, it.patch, namespace=it.namespace, subresource=it.subresource
            )
            self.controller.confirm(it, answer, now=self.cluster.now)
        return turn

    def samples(self) -> Samples:
        return parsed(self.metrics.text(self.controller.engine))


LINE = re.compile(r'kueue_([a-z_]+)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\+Inf|NaN|-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="')


def parsed(page: str) -> Samples:
    """The samples of a page, which has to be as Prometheus wants it."""
    samples: Samples = {}
    family, kind = "", ""
    n_told: dict[tuple[str, str], int] = {}
    for line in page.splitlines():
        if line.startswith("# "):
            _, word, name, about = line.split(" ", 3)
            assert word in ("HELP", "TYPE")
            n_told[word, name] = n_told.get((word, name), 0) + 1
            family, kind = name.removeprefix("kueue_"), about
            continue
        match = LINE.fullmatch(line)
        assert match is not None, line
        name, labels, value = match.groups()
        assert name in ([f"{family}_{it}" for it in ("bucket", "sum", "count")] if kind == "histogram" else [family])
        extra = {"replica_role"} | ({"le"} if name.endswith("_bucket") else set())
        assert set(LABEL.findall(labels)) == {*FAMILIES[family][1], *extra}, line
        assert line.rpartition(" ")[0] not in samples
        samples[re.sub(',?replica_role="standalone"', "", line.rpartition(" ")[0]).replace("{,", "{")] = float(value)
    assert set(n_told.values()) <= {1}
    return samples


def counters(samples: Samples) -> Samples:
    return {key: value for key, value in samples.items() if re.match(r"kueue_[a-z_]*(_total|_bucket|_count)\{", key)}


CQ, LQ = 'cluster_queue="cq"', 'name="q",namespace="a"'


def test_times_of_readiness_and_eviction_are_those_of_the_conditions() -> None:
    lab = Lab()
    lab.submit("low")
    lab.submit("other")
    for _ in range(2):
        lab.turn(10)
    lab.cluster.now += 4 * SECOND
    lab.controller.note_readiness("low", namespace="a", are_ready=True)
    lab.turn(1)
    got = lab.samples()
    # Created at 0, admitted after 10 seconds.
    assert got[f'kueue_ready_wait_time_seconds_sum{{{CQ},priority_class=""}}'] == 25
    assert got[f'kueue_admitted_until_ready_wait_time_seconds_sum{{{CQ},priority_class=""}}'] == 15
    assert got[f'kueue_local_queue_ready_wait_time_seconds_count{{{LQ},priority_class=""}}'] == 1
    lab.controller.note_readiness("low", namespace="a", are_ready=False)
    lab.turn()
    lab.controller.note_readiness("low", namespace="a", are_ready=True)
    lab.turn()
    # A recovery is no second start.
    assert lab.samples()[f'kueue_ready_wait_time_seconds_count{{{CQ},priority_class=""}}'] == 1
    lab.submit("high", priority=5, cpu="2")
    lab.turn(30)
    lab.turn(1)
    lab.cluster.now += 6 * SECOND
    for name in ("low", "other"):
        lab.controller.stopped(name, namespace="a")
    lab.turn(1)
    got = lab.samples()
    cause = 'reason="Preempted",underlying_cause=""'
    # Of the one that was never ready there is no such time.
    assert got[f"kueue_pods_ready_to_evicted_time_seconds_count{{{CQ},{cause}}}"] == 1
    assert got[f"kueue_pods_ready_to_evicted_time_seconds_sum{{{CQ},{cause}}}"] >= 30
    assert got[f'kueue_workload_eviction_latency_seconds_count{{{CQ},reason="Preempted"}}'] == 2
    assert 7 <= got[f'kueue_workload_eviction_latency_seconds_sum{{{CQ},reason="Preempted"}}'] / 2 <= 8


def test_local_queues_have_their_gauges() -> None:
    lab = Lab()
    for name in ("one", "two", "three"):
        lab.submit(name)
    for _ in range(3):
        lab.turn()
    lab.controller.finished("one", namespace="a")
    for _ in range(4):
        lab.turn()
    lab.submit("four")
    lab.turn()
    got = lab.samples()
    for key, value in {
        f"kueue_local_queue_reserving_active_workloads{{{LQ}}}": 2,
        f"kueue_local_queue_admitted_active_workloads{{{LQ}}}": 2,
        f"kueue_local_queue_finished_workloads{{{LQ}}}": 1,
        f"kueue_finished_workloads{{{CQ}}}": 1,
        'kueue_finished_workloads{cluster_queue="empty"}': 0,
        f'kueue_local_queue_pending_workloads{{{LQ},status="active"}}': 0,
        f'kueue_local_queue_pending_workloads{{{LQ},status="inadmissible"}}': 1,
        'kueue_local_queue_pending_workloads{name="idle",namespace="a",status="active"}': 0,
        f'kueue_local_queue_status{{active="True",{LQ}}}': 1,
        'kueue_local_queue_status{active="False",name="idle",namespace="a"}': 1,
        'kueue_local_queue_status{active="True",name="idle",namespace="a"}': 0,
        f'kueue_local_queue_resource_reservation{{flavor="f",{LQ},resource="cpu"}}': 2,
        f'kueue_local_queue_resource_usage{{flavor="f",{LQ},resource="cpu"}}': 2,
        f'kueue_unadmitted_workloads{{{CQ},reason="NoReservation",underlying_cause="WaitingForQuota"}}': 1,
    }.items():
        assert got[key] == value, key


def test_cohorts_tell_where_they_stand_and_what_is_below_them() -> None:
    lab = Lab()
    lab.submit("one")
    lab.turn()
    lab.turn()
    got = lab.samples()
    assert {key for key in got if "_info" in key} == {
        'kueue_cohort_info{cohort="all",parent_cohort="",root_cohort="all"}',
        'kueue_cohort_info{cohort="team",parent_cohort="all",root_cohort="all"}',
        'kueue_cluster_queue_info{cluster_queue="cq",parent_cohort="team",root_cohort="all"}',
        'kueue_cluster_queue_info{cluster_queue="empty",parent_cohort="",root_cohort=""}',
    }
    for cohort in ("all", "team"):
        assert got[f'kueue_cohort_subtree_admitted_workloads_total{{cohort="{cohort}",priority_class=""}}'] == 1
        assert got[f'kueue_cohort_subtree_admitted_active_workloads{{cohort="{cohort}"}}'] == 1


def test_how_long_a_cycle_took_its_caller_says() -> None:
    lab = Lab()
    idle = lab.turn().decision
    lab.submit("one")
    busy = lab.turn().decision
    for decision, seconds in ((idle, 0.3), (busy, 0.004), (busy, 20.0)):
        lab.metrics.time_attempt(decision, seconds=seconds)
    got = lab.samples()
    name = "kueue_admission_attempt_duration_seconds"
    assert (
        got[f'{name}_bucket{{le="0.005",result="success"}}'],
        got[f'{name}_bucket{{le="10",result="success"}}'],
    ) == (1, 1)
    assert (got[f'{name}_count{{result="success"}}'], got[f'{name}_sum{{result="success"}}']) == (2, 20.004)
    for odd in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="seconds must be a time from 0 on"):
            lab.metrics.time_attempt(busy, seconds=odd)


@pytest.mark.parametrize(
    ("gates", "silent"),
    [
        ("metrics: {localQueueMetrics: {enable: false}}", "local_queue_"),
        ("featureGates: {LocalQueueMetrics: false}", "local_queue_"),
        ("featureGates: {MetricsForCohorts: false}", "cohort_"),
        ("featureGates: {MetricsForCohorts: false}", "cluster_queue_info"),
        ("featureGates: {UnadmittedWorkloadsObservability: false}", "unadmitted_"),
    ],
)
def test_what_is_switched_off_is_not_told(gates: str, silent: str) -> None:
    for lab, is_told in ((Lab(), True), (Lab(gates=gates), False)):
        lab.submit("one")
        lab.submit("two")
        lab.submit("three")
        lab.turn()
        assert any(f"kueue_{silent}" in key for key in lab.samples()) == is_told


HAPPENINGS = st.sampled_from(["submit", "urgent", "finish", "stop", "ready", "unready", "delete", "wait", "wait"])


@settings(max_examples=8)
@given(st.lists(st.tuples(HAPPENINGS, st.integers(0, 4)), max_size=14))
def test_the_page_can_be_read_and_no_counter_goes_down(happenings: list[tuple[str, int]]) -> None:
    lab = Lab()
    before: Samples = {}
    for step, (what, which) in enumerate(happenings):
        name = f"w{which}"
        is_there = any(it["metadata"]["name"] == name for it in lab.cluster.list("Workload")[0])
        if what in ("submit", "urgent") and not is_there:
            lab.submit(name, priority=5 * (what == "urgent"))
        elif what == "delete" and is_there:
            lab.cluster.delete("Workload", name, namespace="a")
        elif what == "finish":
            lab.controller.finished(name, namespace="a")
        elif what == "stop":
            lab.controller.stopped(name, namespace="a")
        elif what in ("ready", "unready"):
            lab.controller.note_readiness(name, namespace="a", are_ready=what == "ready")
        turn = lab.turn(1 + 40 * (what == "wait"))
        lab.metrics.time_attempt(turn.decision, seconds=step / 7)
        samples = lab.samples()
        after = counters(samples)
        assert {key for key, value in before.items() if after.get(key, -1) < value} == set()
        assert all(value >= 0 for value in samples.values())
        check_buckets(samples)
        before = after


def check_buckets(samples: Samples) -> None:
    """Buckets count up, the last counts all."""
    for family, (kind, _, _) in FAMILIES.items():
        if not kind.startswith("histogram"):
            continue
        rows: dict[str, list[float]] = {}
        for key, value in samples.items():
            if key.startswith(f"kueue_{family}_bucket{{"):
                rows.setdefault(re.sub(r'le="[^"]*",?', "", key).replace(",}", "}"), []).append(value)
        for key, values in rows.items():
            assert len(values) == len(bounds_of(family)) + 1
            assert values == sorted(values)
            assert samples[key.replace("_bucket{", "_count{")] == values[-1]
