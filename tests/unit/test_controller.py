"""The loop of a controller without I/O: what goes in, what is to be written, and how that went."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore.api_server import ApiServer
from kueuecore.controller import WATCHED, Considered, Controller, Metrics, Turn, Verdict, WatchError, WorkloadWrite
from kueuecore.controller.metric_families import FAMILIES
from kueuecore.states import Stage

SECOND = 1_000_000_000
START = 1_767_225_600 * SECOND
KUEUE = "kueue.x-k8s.io/v1beta2"


def thing(kind: str, name: str, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    if kind in ("LocalQueue", "Workload"):
        metadata["namespace"] = "default"
    made = {"apiVersion": "v1" if kind == "Namespace" else KUEUE, "kind": kind, "metadata": metadata, **more}
    return made if spec is None else {**made, "spec": spec}


def queue(quota: int | str, **spec: Any) -> dict[str, Any]:
    flavor = {"name": "default-flavor", "resources": [{"name": "cpu", "nominalQuota": quota}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    defaults = {"namespaceSelector": {}, "queueingStrategy": "BestEffortFIFO", "stopPolicy": "None"}
    return thing("ClusterQueue", "cluster-queue", {**defaults, "resourceGroups": groups, **spec})


def workload(name: str, cpu: int | str = 1, *, priority: int = 0, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_sets = [{"name": "main", "count": 1, "template": template}]
    return thing(
        "Workload", name, {"queueName": "jobs", "active": True, "priority": priority, "podSets": pod_sets} | spec
    )


class World:
    """A cluster, a controller on it, and what a turn of the two is."""

    def __init__(self, quota: int | str = 2, controller: Controller | None = None, **spec: Any) -> None:
        self.cluster = ApiServer(now=START)
        self.controller = controller or Controller(status_delay_seconds=None)
        self.seen = 0
        for made in (
            thing("Namespace", "default", metadata={"labels": {"kubernetes.io/metadata.name": "default"}}),
            thing("ResourceFlavor", "default-flavor", {}),
            queue(quota, **spec),
            thing("LocalQueue", "jobs", {"clusterQueue": "cluster-queue", "stopPolicy": "None"}),
        ):
            self.cluster.create(made)

    @property
    def now(self) -> int:
        return self.cluster.now

    def watch(self) -> list[bool]:
        news = [(version, event) for version, event in self.cluster.history if version > self.seen]
        self.seen = self.cluster.version
        return [self.controller.observe(event, now=self.now) for _, event in news]

    def turn(self) -> Turn:
        self.watch()
        self.cluster.now += SECOND
        return self.controller.turn(self.now)

    def send(self, write: WorkloadWrite) -> None:
        answer = self.cluster.patch(
            "Workload", write.name, write.patch, namespace=write.namespace, subresource=write.subresource
        )
        assert self.controller.confirm(write, answer, now=self.now)

    def settle(self) -> None:
        for _ in range(20):
            turn = self.turn()
            for write in turn.writes:
                self.send(write)
            if not turn.writes and self.controller.next_wake(self.now) != self.now:
                return
        raise AssertionError("it never settles")

    def stored(self, name: str) -> dict[str, Any]:
        return self.cluster.get("Workload", name, namespace="default")

    def holding(self) -> list[str]:
        """The names of those that have Admitted in the cluster."""
        return [it["metadata"]["name"] for it in self.cluster.list("Workload")[0] if "Admitted" in conditions(it)]

    def usage(self) -> str:
        return next(row.usage for row in self.controller.engine.quota())


def conditions(manifest: dict[str, Any]) -> dict[str, str]:
    found = manifest.get("status", {}).get("conditions", ())
    return {it["type"]: it["reason"] for it in found if it["status"] == "True"}


def test_an_admission_is_the_merge_patch_that_kueue_sends() -> None:
    world = World()
    stored = world.cluster.create(workload("w", "1500m"))
    turn = world.turn()
    (write,) = turn.writes
    at = "2026-01-01T00:00:01Z"
    true = {"status": "True", "lastTransitionTime": at, "observedGeneration": 1}
    assert write.patch == {
        "metadata": {"uid": stored["metadata"]["uid"], "resourceVersion": stored["metadata"]["resourceVersion"]},
        "status": {
            "conditions": [
                {"type": "QuotaReserved", "reason": "QuotaReserved"}
                | true
                | {"message": "Quota reserved in ClusterQueue cluster-queue"},
                {"type": "Admitted", "reason": "Admitted", "message": "The workload is admitted"} | true,
            ],
            "admission": {
                "clusterQueue": "cluster-queue",
                "podSetAssignments": [
                    {
                        "name": "main",
                        "count": 1,
                        "flavors": {"cpu": "default-flavor"},
                        "resourceUsage": {"cpu": "1500m"},
                    }
                ],
            },
        },
    }
    assert (write.subresource, write.gained, write.lost) == ("status", ("QuotaReserved", "Admitted"), ())
    assert [event.reason for event in write.events] == ["QuotaReserved", "Admitted"]
    assert write.event_manifests(at)[1]["message"] == (
        "Admitted by ClusterQueue cluster-queue, wait time since reservation was 0s"
    )
    assert (turn.events, world.controller.open_writes) == ((), (write,))


def test_a_job_may_run_once_its_admission_is_written() -> None:
    world = World()
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    assert not world.controller.may_run("w", namespace="default")
    assert world.turn().writes == (), "it is open"
    world.send(write)
    assert world.controller.may_run("w", namespace="default")
    assert world.watch() == [False], "what a watch says of it is old news"
    assert world.turn().writes == ()


def test_a_refused_admission_gives_the_quota_back_and_comes_again() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    assert world.usage() == "1"
    assert world.controller.refuse(write, now=world.now)
    assert world.usage() == "0"
    (again,) = world.turn().writes
    assert again.gained == ("QuotaReserved", "Admitted")
    world.send(again)
    assert not world.controller.refuse(write, now=world.now), "that one is over"
    assert (world.usage(), world.holding()) == ("1", ["w"])


def test_an_admission_can_be_refused_cycles_later() -> None:
    world = World(quota=2)
    world.cluster.create(workload("a"))
    (a,) = world.turn().writes
    world.cluster.create(workload("b"))
    (b,) = world.turn().writes
    world.send(b)
    world.cluster.create(workload("c"))
    assert [write.name for write in world.turn().writes] == ["c"]
    world.controller.refuse(a, now=world.now)
    assert world.controller.engine.workload("a", namespace="default").stage is Stage.PENDING
    assert world.usage() == "1", "b's alone"
    world.settle()
    assert world.holding() == ["a", "b"], "a is older than c"


def test_after_a_conflict_the_newest_object_stands() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    newest = world.cluster.patch("Workload", "w", {"spec": {"active": False}}, namespace="default")
    assert world.watch() == [True]
    assert world.usage() == "1", "the write is open, so that is put off"
    world.controller.refuse(write, newest, now=world.now)
    assert world.usage() == "0"
    world.settle()
    assert world.holding() == []
    assert conditions(world.stored("w")) == {"Evicted": "Deactivated"}


def test_a_write_that_nobody_knows_of_was_accepted() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    (write,) = world.turn().writes
    newest = world.cluster.patch("Workload", "w", write.patch, namespace="default", subresource="status")
    world.controller.refuse(write, newest, now=world.now)
    assert (world.usage(), world.turn().writes) == ("1", ())
    assert world.controller.may_run("w", namespace="default")


def test_a_workload_that_has_gone_is_not_written_any_more() -> None:
    world = World(quota=1)
    world.cluster.create(workload("a"))
    world.cluster.create(workload("b"))
    (write,) = (it for it in world.turn().writes if it.name == "a")
    world.cluster.delete("Workload", "a", namespace="default")
    world.controller.refuse(write, now=world.now, gone=True)
    assert not world.controller.confirm(write, now=world.now)
    world.settle()
    assert world.holding() == ["b"]
    assert world.controller.workload("a", namespace="default") is None


def test_others_may_write_to_a_status_too() -> None:
    world = World()
    world.cluster.create(workload("w") | {"status": {"x": [1], "conditions": [{"type": "Mine", "status": "True"}]}})
    world.settle()
    status = world.stored("w")["status"]
    assert (status["x"], [it["type"] for it in status["conditions"]]) == ([1], ["Mine", "QuotaReserved", "Admitted"])


def test_a_victim_is_evicted_stopped_and_queued_again() -> None:
    world = World(quota=1, preemption={"withinClusterQueue": "LowerPriority"})
    world.cluster.create(workload("low"))
    world.settle()
    world.cluster.create(workload("high", priority=1))
    turn = world.turn()
    by_name = {write.name: write for write in turn.writes}
    assert by_name["low"].gained == ("Preempted", "Evicted")
    assert [event.reason for event in by_name["low"].events] == ["EvictedDueToPreempted", "Preempted"]
    assert [event.reason for event in by_name["high"].events] == ["PreemptedWorkload", "WaitingForPreemptedWorkloads"]
    for write in turn.writes:
        world.send(write)
    assert not world.controller.may_run("low", namespace="default")
    world.settle()
    assert world.holding() == ["low"], "it holds its quota until its job has stopped"
    assert world.controller.stopped("low", namespace="default")
    world.settle()
    assert world.holding() == ["high"]
    assert world.stored("low")["status"]["schedulingStats"]["evictions"][0]["count"] == 1


def test_a_stop_is_told_again_after_a_conflict() -> None:
    world = World(quota=1, preemption={"withinClusterQueue": "LowerPriority"})
    world.cluster.create(workload("low"))
    world.settle()
    world.cluster.create(workload("high", priority=1))
    world.settle()
    world.controller.stopped("low", namespace="default")
    (release,) = (write for write in world.turn().writes if write.name == "low")
    assert release.lost == ("QuotaReserved", "Admitted")
    newest = world.cluster.patch("Workload", "low", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    high = world.controller.open_writes
    world.controller.refuse(release, newest, now=world.now)
    for write in high:
        if write.name == "high":
            world.send(write)
    world.settle()
    assert world.holding() == ["high"]


def test_the_end_of_a_job_is_told_until_it_is_written() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    world.settle()
    world.controller.finished("w", namespace="default")
    (write,) = world.turn().writes
    newest = world.cluster.patch("Workload", "w", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
    world.controller.refuse(write, newest, now=world.now)
    world.settle()
    assert conditions(world.stored("w"))["Finished"] == "Succeeded"
    assert world.usage() == "0"
    assert not world.controller.finished("nobody", namespace="default")


@pytest.mark.parametrize("seed", range(20))
def test_events_may_come_in_any_order_and_twice(seed: int) -> None:
    from random import Random

    world = World(quota=2)
    for name in ("a", "b", "c"):
        world.cluster.create(workload(name))
    world.cluster.patch("Workload", "a", {"spec": {"priority": -1}}, namespace="default")
    world.cluster.delete("Workload", "b", namespace="default")
    world.cluster.create(workload("b", 2, priority=1))
    world.cluster.delete("Workload", "c", namespace="default")
    events = [event for _, event in world.cluster.history] * 2
    Random(seed).shuffle(events)
    for event in events:
        world.controller.observe(event, now=world.now)
    found = {it.name: it.priority for it in world.controller.engine.workloads()}
    assert found == {"a": -1, "b": 1}
    world.seen = world.cluster.version
    world.settle()
    assert world.holding() == ["b"]


def test_a_list_says_what_has_gone() -> None:
    world = World(quota=2)
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    listed, version = world.cluster.list("Workload")
    late = world.cluster.create(workload("late"))
    world.watch()
    kept = [
        {k: v for k, v in it.items() if k not in ("kind", "apiVersion")}
        for it in listed
        if "b" not in str(it["metadata"]["name"])
    ]
    assert world.controller.resync("Workload", kept, now=world.now, resource_version=version) == ()
    assert [it.name for it in world.controller.engine.workloads()] == ["a", "late"], "that is newer than the list"
    gone = next(it for it in listed if it["metadata"]["name"] == "b")
    assert not world.controller.observe({"type": "MODIFIED", "object": gone}, now=world.now)
    assert world.controller.workload("late", namespace="default") == late


def test_a_controller_begins_with_lists() -> None:
    world = World(quota=1)
    world.cluster.create(workload("w"))
    for kind in WATCHED:
        objects, version = world.cluster.list(kind)
        for _ in range(2):
            assert world.controller.resync(kind, objects, now=world.now, resource_version=version) == ()
    (write,) = world.controller.turn(world.now).writes
    assert write.gained == ("QuotaReserved", "Admitted")


def test_a_list_tells_what_was_not_taken() -> None:
    world = World()
    listed = [workload("bad") | {"spec": 1}, workload("good")]
    problems = world.controller.resync("Workload", listed, now=START)
    assert [problem.field for problem in problems] == ["spec"]
    assert [it.name for it in world.controller.engine.workloads()] == ["good"]


def test_an_error_of_a_watch_says_to_list_again() -> None:
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
    with pytest.raises(WatchError, match="410: too old resource version") as raised:
        Controller().observe(gone, now=START)
    assert raised.value.code == 410


def test_kinds_that_nobody_looks_at_change_nothing() -> None:
    controller = Controller()
    assert not controller.observe({"type": "ADDED", "object": {"kind": "Event", "metadata": {"name": "e"}}}, now=START)
    assert not controller.observe({"type": "BOOKMARK", "object": thing("Workload", "w")}, now=START)
    assert controller.next_wake(START) is None


def test_deactivation_is_written_to_the_spec_first() -> None:
    world = World(admissionChecksStrategy={"admissionChecks": [{"name": "check"}]})
    active: Any = {"type": "Active", "status": "True", "reason": "Active", "message": ""}
    world.cluster.create(thing("AdmissionCheck", "check", {"controllerName": "c"}, status={"conditions": [active]}))
    world.cluster.create(workload("w"))
    world.settle()
    assert conditions(world.stored("w")) == {"QuotaReserved": "QuotaReserved"}
    check: Any = {"name": "check", "state": "Rejected", "message": "no", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    world.cluster.patch(
        "Workload", "w", {"status": {"admissionChecks": [check]}}, namespace="default", subresource="status"
    )
    (first,) = world.turn().writes
    assert (first.subresource, first.patch["spec"]) == ("", {"active": False})
    world.send(first)
    (second,) = world.turn().writes
    assert second.gained == ("Evicted",)
    assert "EvictedDueToDeactivatedDueToAdmissionCheck" in [event.reason for event in second.events]


def test_readiness_is_written_and_its_timeout_wakes() -> None:
    settings = {"waitForPodsReady": {"timeout": "5m"}}
    kind = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    configuration = Configuration.parse(str({**kind, **settings}).replace("'", '"'))
    world = World(controller=Controller(configuration, status_delay_seconds=None))
    world.cluster.create(workload("w"))
    world.settle()
    admitted = world.now
    assert world.controller.next_wake(world.now) is not None
    assert world.controller.next_wake(world.now) // SECOND <= admitted // SECOND + 300  # type: ignore[operator]
    assert world.controller.note_readiness("w", namespace="default", are_ready=True)
    assert not world.controller.note_readiness("x", namespace="default", are_ready=True)
    (write,) = world.turn().writes
    assert write.gained == ("PodsReady",)
    world.send(write)
    assert world.controller.next_wake(world.now) == world.now
    assert world.turn().writes == ()
    assert world.controller.next_wake(world.now) is None


def test_a_head_that_does_not_fit_lets_the_loop_rest() -> None:
    world = World(quota=0, queueingStrategy="StrictFIFO")
    world.cluster.create(workload("w"))
    world.settle()
    assert world.controller.next_wake(world.now) is None
    world.cluster.patch("ClusterQueue", "cluster-queue", {"spec": queue(1)["spec"]})
    world.watch()
    assert world.controller.next_wake(world.now) == world.now


def test_what_was_considered_is_told() -> None:
    reported: list[Considered] = []
    world = World(quota=1, controller=Controller(considered=reported.append))
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    assert [(it.name, it.verdict, it.reason) for it in reported] == [
        ("a", Verdict.RESERVED, ""),
        ("b", Verdict.PENDING, "WaitingForQuota"),
    ]
    assert "insufficient unused quota for cpu in flavor default-flavor, 1 more needed" in reported[1].message


def test_a_controller_that_starts_again_gets_back_what_is_written() -> None:
    world = World(quota=2)
    for name in ("a", "b", "c"):
        world.cluster.create(workload(name))
    world.settle()
    before = world.usage(), world.holding()
    world.controller, world.seen = Controller(), 0
    assert world.turn().writes == ()
    assert (world.usage(), world.holding()) == before


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
    world.cluster.now += 100 * SECOND
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


def test_what_was_saved_goes_on_without_a_list() -> None:
    settings = "admissionFairSharing: {usageHalfLifeTime: 10h}"
    configuration = Configuration.parse(f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{settings}")
    scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    world = World(quota=2, controller=Controller(configuration), admissionScope=scope)
    for name in ("a", "b", "c", "gone"):
        world.cluster.create(workload(name))
    world.settle()
    world.cluster.now += 3600 * SECOND
    world.cluster.delete("Workload", "gone", namespace="default")
    world.settle()
    world.controller.finished("a", namespace="default")
    before = world.controller
    saved = json.loads(json.dumps(before.save()))
    after = world.controller = Controller.load(saved, now=world.now, configuration=configuration)
    stages = [{it.key: (it.stage, it.status) for it in one.engine.workloads()} for one in (before, after)]
    assert stages[0] == stages[1]
    assert after.engine.quota() == before.engine.quota()
    used = [it.engine.local_queue("jobs", namespace="default").status["fairSharing"] for it in (before, after)]
    consumed = [it["admissionFairSharingStatus"]["consumedResources"] for it in used]
    assert consumed[0] == consumed[1] != {}
    assert (after.watched("Workload"), after.watched("Cohort")) == (before.watched("Workload"), "")
    old = [event for _, event in world.cluster.history]
    assert [after.observe(event, now=world.now) for event in old] == [False] * len(old)
    world.settle()
    assert conditions(world.stored("a"))["Finished"] == "Succeeded"
    assert world.holding() == ["a", "b", "c"]


def test_another_format_is_not_read() -> None:
    with pytest.raises(ValueError, match=r"this was saved as .*/9', and only .*/1' can be read"):
        Controller.load({"format": "kueuecore.controller/9"}, now=START)


def test_a_watch_goes_on_where_it_was_and_not_where_an_answer_was() -> None:
    world = World()
    world.cluster.create(workload("w"))
    world.watch()
    seen = world.controller.watched("Workload")
    assert seen == world.stored("w")["metadata"]["resourceVersion"]
    (write,) = world.controller.turn(world.now).writes
    world.cluster.create(workload("v"))
    world.send(write)
    assert world.controller.watched("Workload") == seen, "the other one has not been observed yet"
    bookmark = {"kind": "Workload", "metadata": {"resourceVersion": "99"}}
    world.controller.observe({"type": "BOOKMARK", "object": bookmark}, now=world.now)
    assert world.controller.watched("Workload") == "99"


def test_metrics_are_those_of_the_rules() -> None:
    rules = (Path(__file__).parents[2] / "docs/rules/09-fair-sharing-admission.md").read_text(encoding="utf-8")
    named = {name for line in rules.splitlines() if line.startswith("| ") for name in re.findall(r"[a-z_]+", line)}
    assert set(FAMILIES) <= named


def test_a_cycle_that_waits_for_pods_lets_the_loop_rest() -> None:
    settings = "waitForPodsReady: {timeout: 5m, blockAdmission: true}"
    text = f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{settings}"
    world = World(quota=2, controller=Controller(Configuration.parse(text)))
    for name in ("a", "b"):
        world.cluster.create(workload(name))
    world.settle()
    assert world.holding() == ["a"]
    world.controller.note_readiness("a", namespace="default", are_ready=True)
    world.settle()
    assert world.holding() == ["a", "b"]


def test_a_controller_that_does_not_schedule_reconciles_all_the_same() -> None:
    world = World(controller=Controller(schedules=False, status_delay_seconds=None))
    world.cluster.create(workload("w"))
    world.cluster.create(workload("gone", active=False))
    world.settle()
    assert world.turn().decision.cycle == 0
    assert world.holding() == []
    assert world.controller.next_wake(world.now) is None
    # Kueue's workload controller writes this, the scheduler has no part in it.
    assert "Evicted" in conditions(world.stored("gone"))


def test_what_was_observed_and_only_needs_a_reconcile_wakes() -> None:
    world = World(quota=0)
    world.cluster.create(workload("w"))
    world.settle()
    assert world.controller.next_wake(world.now) is None
    world.cluster.patch("Workload", "w", {"spec": {"active": False}}, namespace="default")
    world.watch()
    assert world.controller.next_wake(world.now) == world.now
    world.settle()
    assert "Evicted" in conditions(world.stored("w"))
