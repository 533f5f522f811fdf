"""Single decisions of a Kueue, and what the judge says of them."""

from __future__ import annotations

from typing import Any

from kueuecore import Configuration
from kueuecore._json import object_at
from kueuecore.kubernetes.dry_run.decisions_seen import Kind
from kueuecore.kubernetes.dry_run.judge import Judge, Judged, Verdict
from kueuecore.times import SECOND_NS, format_time
from kueuecore.world import World
from tests.unit.kubernetes.dry_run_days import START, queues, workload

Object = dict[str, Any]


class Cluster:
    """What a judge sees of a cluster."""

    def __init__(self, *objects: Object) -> None:
        self.judge = Judge(Configuration())
        self.now = START
        self.stored: dict[str, Object] = {}
        self.version = 1
        kinds: dict[str, list[Object]] = {}
        for other in (*queues(), *objects):
            kinds.setdefault(other["kind"], []).append(other)
        for kind in self.judge.view.kinds:
            self.judge.take_list(kind, kinds.get(kind, []), version="1", now=self.now)
        self.judge.tick(self.now)

    def show(self, manifest: Object, *, version: int = 0) -> None:
        name = manifest["metadata"]["name"]
        self.version = version or self.version + 1
        happened = "MODIFIED" if name in self.stored else "ADDED"
        metadata = {**manifest["metadata"], "resourceVersion": str(self.version), "uid": f"uid-{name}"}
        self.stored[name] = {**manifest, "metadata": metadata}
        self.judge.observe({"type": happened, "object": self.stored[name]}, now=self.now)

    def wait(self, seconds: float) -> list[Judged]:
        until = self.now + round(seconds * SECOND_NS)
        while self.now < until:
            self.now = min(until, self.now + SECOND_NS // 4)
            self.judge.tick(self.now)
        return self.judge.take()

    def admit(self, name: str, queue: str, *, cpu: int = 1, flavor: str = "default", version: int = 0) -> None:
        usage = {"name": "main", "count": 1, "flavors": {"cpu": flavor}, "resourceUsage": {"cpu": str(cpu)}}
        admission = {"clusterQueue": queue, "podSetAssignments": [usage]}
        reserved = self._condition("QuotaReserved", f"Quota reserved in ClusterQueue {queue}")
        conditions = [reserved, self._condition("Admitted", "The workload is admitted")]
        status = {"conditions": conditions, "admission": admission}
        self.show({**self.stored[name], "status": status}, version=version)

    def say(self, name: str, message: str) -> None:
        condition = {**self._condition("QuotaReserved", message), "status": "False", "reason": "Pending"}
        self.show({**self.stored[name], "status": {"conditions": [condition]}})

    def _condition(self, kind: str, message: str) -> Object:
        time = format_time(self.now // SECOND_NS * SECOND_NS)
        return {"type": kind, "status": "True", "reason": kind, "message": message, "lastTransitionTime": time}


def of(judged: list[Judged]) -> list[tuple[str, str, str]]:
    return [(it.workload[1], it.kind.value, it.verdict.value) for it in judged]


def test_the_expected_admission_agrees_at_once() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c", cpu=2))
    cluster.admit("w", "c", cpu=2)
    assert of(cluster.judge.take()) == [("w", "admission", "agreed")]


def test_an_admission_without_quota_differs_and_keeps_the_state_before_it() -> None:
    cluster = Cluster()
    for name in ("w", "x"):
        cluster.show(workload(name, "c", cpu=4))
    cluster.admit("w", "c", cpu=4)
    cluster.wait(7)
    cluster.admit("x", "c", cpu=4)
    [found] = cluster.wait(5)
    assert (found.kind, found.verdict) == (Kind.ADMISSION, Verdict.DIFFERED)
    assert found.kueue == "admitted in c, main: 1 pod, cpu on default"
    assert "insufficient unused quota for cpu in flavor default, 2 more needed" in found.here
    assert found.why.startswith("lab/x, alone in a cycle, would wait: couldn't assign flavors")
    # The state is one to ask: there `x` waits, and `w` runs.
    world = World.of(found.objects)
    states = {other["metadata"]["name"]: other for other in found.objects if other["kind"] == "Workload"}
    assert object_at(world.workload("x", namespace="lab"), "spec")["priority"] == 0
    assert (set(states), "status" in states["x"], "status" in states["w"]) == ({"w", "x"}, False, True)


def test_a_change_that_shows_later_but_was_written_before_counts() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c", cpu=8))
    [queue] = [other for other in queues() if other["kind"] == "ClusterQueue" and other["metadata"]["name"] == "c"]
    cluster.wait(7)
    cluster.admit("w", "c", cpu=8, version=10)
    cluster.wait(1)
    flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}
    groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
    cluster.stored["c"] = queue
    cluster.show({**queue, "spec": {**queue["spec"], "resourceGroups": groups}}, version=9)
    [found] = cluster.wait(4)
    assert (found.verdict, found.why) == (
        Verdict.AGREED,
        "Kueue saw ClusterQueue c changed at 2026-01-01T00:00:08Z before this process did",
    )


def test_a_message_is_judged_too() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c", cpu=7))
    cluster.wait(1)
    cluster.say("w", "couldn't assign flavors to pod set main: something that no Kueue says")
    [found] = cluster.wait(5)
    assert (found.kind, found.verdict) == (Kind.MESSAGE, Verdict.DIFFERED)
    assert "maximum capacity (6)" in found.here


def test_what_is_due_and_not_decided_differs_once() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c"))
    assert cluster.wait(9) == []
    [found] = cluster.wait(60)
    assert (found.kueue, found.here) == ("nothing is decided", "admitted in c, main: 1 pod, cpu on default")
    assert found.why.endswith("s, and Kueue has not decided so")
    # Late, but right.
    cluster.admit("w", "c")
    assert of(cluster.wait(5)) == [("w", "admission", "agreed")]


def test_who_is_passed_over_although_it_was_next_for_long_is_named() -> None:
    cluster = Cluster()
    cluster.show(workload("first", "c", cpu=6, priority=100))
    cluster.show(workload("second", "c", cpu=6))
    cluster.wait(8)
    cluster.admit("second", "c", cpu=6)
    found = [it for it in cluster.wait(5) if it.workload[1] == "second"]
    assert of(found) == [("second", "admission", "differed")]
    assert found[0].why == "here lab/first goes first"


def test_a_list_after_a_gap_is_taken_in_and_not_judged() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c", cpu=7))
    cluster.wait(7)
    whole = cluster.stored["w"]
    cluster.admit("w", "c", cpu=7)
    cluster.judge.take_list("Workload", [cluster.stored["w"]], version="20", now=cluster.now)
    [found] = cluster.wait(5)
    assert (found.verdict, found.why) == (Verdict.UNJUDGED, "the watch of Workload had to list anew")
    cluster.judge.take_list("Workload", [whole], version="30", now=cluster.now)
    assert cluster.wait(5) == []


def test_nothing_is_judged_while_a_watch_fails_or_kueue_is_away() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c", cpu=7))
    cluster.show(workload("v", "a"))
    cluster.judge.blind("the watch of ClusterQueue fails", now=cluster.now)
    cluster.admit("w", "c", cpu=7)
    assert [(it.verdict, it.why) for it in cluster.wait(60)] == [(Verdict.UNJUDGED, "the watch of ClusterQueue fails")]
    cluster.judge.blind("", now=cluster.now)
    assert of(cluster.wait(30)) == [("v", "admission", "differed")]


def test_another_release_is_judged_by_its_own_rules_with_the_same_objects() -> None:
    cluster = Cluster()
    cluster.show(workload("w", "c", cpu=4))
    old = cluster.stored["w"]
    cluster.judge.restart(Configuration(release="0.17.0"), "Kueue has changed", now=cluster.now)
    assert cluster.judge.view.engine.configuration.release.name == "0.17.0"
    cluster.admit("w", "c", cpu=4)
    assert of(cluster.wait(1)) == [("w", "admission", "agreed")]
    # A version from before the restart changes nothing.
    assert cluster.judge.view.observe({"type": "MODIFIED", "object": old}, now=cluster.now) is None


def test_preemptions_name_the_preemptor_and_the_rule() -> None:
    cluster = Cluster()
    cluster.show(workload("low", "c", cpu=6))
    cluster.admit("low", "c", cpu=6)
    cluster.show(workload("high", "c", cpu=6, priority=100))
    cluster.wait(1)
    by = (
        "Preempted to accommodate a workload (UID: uid-high, JobUID: UNKNOWN) due to prioritization in the ClusterQueue"
    )
    stored = cluster.stored["low"]
    evicted = {**cluster._condition("Evicted", by), "reason": "Preempted"}
    preempted = {**cluster._condition("Preempted", by), "reason": "InClusterQueue"}
    conditions = [*stored["status"]["conditions"], evicted, preempted]
    cluster.show({**stored, "status": {**stored["status"], "conditions": conditions}})
    found = [it for it in cluster.wait(5) if it.kind is Kind.PREEMPTION]
    assert [(it.workload[1], it.verdict, it.kueue) for it in found] == [
        ("low", Verdict.AGREED, "preempted: InClusterQueue, by uid-high")
    ]
