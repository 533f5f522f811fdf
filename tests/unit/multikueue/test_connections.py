"""Connections to workers, and what MultiKueueClusters and AdmissionChecks say of them (G1, rules/06 §2, §3)."""

from __future__ import annotations

import pytest

from kueuecore.multikueue import Connect, ConnectionReason, Manager, MultiKueueSettings
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer
from tests.unit.multikueue.stage import KUEUE, MINUTE, OBJECT, START, Stage

NOW = "2026-01-01T00:00:00Z"


def test_a_connected_worker_is_active_and_its_check_too() -> None:
    stage = Stage("west", "east")
    assert stage.active("MultiKueueCluster", "west") == ("True", "Active", "Connected")
    assert stage.active("AdmissionCheck", "ac") == ("True", "Active", "The admission check is active")


def test_a_check_is_active_as_long_as_one_of_its_workers_is() -> None:
    stage = Stage("west", "east", start=False)
    stage.cut_off = {"east"}
    stage.settle()
    assert stage.active("AdmissionCheck", "ac") == ("True", "SomeActiveClusters", "Inactive clusters: [east]")
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"clusters": ["gone", "east"]}})
    stage.settle()
    message = "Missing clusters: [gone], Inactive clusters: [east]"
    assert stage.active("AdmissionCheck", "ac") == ("False", "NoUsableClusters", message)


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        (None, "missing parameters reference"),
        ({"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig"}, "empty name: bad parameters reference"),
        (
            {"apiGroup": "x", "kind": "MultiKueueConfig", "name": "config"},
            'wrong group "x", expecting "kueue.x-k8s.io": bad parameters reference',
        ),
        (
            {"apiGroup": "kueue.x-k8s.io", "kind": "X", "name": "config"},
            'wrong kind "X", expecting "MultiKueueConfig": bad parameters reference',
        ),
        (
            {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "other"},
            'MultiKueueConfig.kueue.x-k8s.io "other" not found',
        ),
    ],
)
def test_a_check_without_a_config_is_not_active(parameters: OBJECT | None, why: str) -> None:
    stage = Stage("west")
    stage.api[""].patch("AdmissionCheck", "ac", {"spec": {"parameters": None}})
    if parameters is not None:
        stage.api[""].patch("AdmissionCheck", "ac", {"spec": {"parameters": parameters}})
    stage.settle()
    message = f"Cannot load the AdmissionChecks parameters: {why}"
    assert stage.active("AdmissionCheck", "ac") == ("False", "BadConfig", message)


def test_a_worker_that_can_not_be_reached_says_how_often_it_was_tried_and_when_it_is_next() -> None:
    stage = Stage("west", start=False)
    stage.cut_off = {"west"}
    stage.settle(delay=SECOND_NS)
    tried = "dial tcp: connection refused; connection attempts: 1, next connection attempt: 2026-01-01T00:00:05Z"
    assert stage.active("MultiKueueCluster", "west") == ("False", "ClientConnectionFailed", tried)
    stage.wait(5 * SECOND_NS)
    tried = "dial tcp: connection refused; connection attempts: 2, next connection attempt: 2026-01-01T00:00:15Z"
    assert stage.active("MultiKueueCluster", "west") == ("False", "ClientConnectionFailed", tried)
    stage.mend("west")
    stage.wait(10 * SECOND_NS)
    assert stage.active("MultiKueueCluster", "west") == ("True", "Active", "Connected")


def test_a_watch_that_ends_is_made_again_at_once_and_nobody_hears_of_it() -> None:
    stage = Stage("west")
    version = stage.api[""].get("MultiKueueCluster", "west")["metadata"]["resourceVersion"]
    stage.manager.connection_lost("west", now=stage.now)
    assert not stage.manager.is_connected("west")
    stage.settle()
    assert stage.manager.is_connected("west")
    assert stage.api[""].get("MultiKueueCluster", "west")["metadata"]["resourceVersion"] == version


class Bare:
    """A manager with one MultiKueueCluster; a test says what becomes of each attempt."""

    def __init__(self, **source: object) -> None:
        self.manager, self.version = Manager(settings=MultiKueueSettings(gc_interval_ns=0)), 1
        self.cluster: OBJECT = {
            "apiVersion": KUEUE,
            "kind": "MultiKueueCluster",
            "metadata": {"name": "west", "uid": "1", "resourceVersion": "1"},
            "spec": {"clusterSource": source or {"kubeConfig": {"location": "secret"}}},
        }
        self.manager.observe({"type": "ADDED", "object": self.cluster}, now=START)

    def commands(self, now: int) -> list[tuple[str, object]]:
        """What it asks for: attempts with their timeouts in minutes, and what is said of the cluster."""
        found: list[tuple[str, object]] = []
        for command in self.manager.turn(now).commands:
            if isinstance(command, Connect):
                found.append(("connect", command.timeout_ns // MINUTE))
                continue
            self.version += 1
            self.cluster["metadata"] = {**self.cluster["metadata"], "resourceVersion": str(self.version)}
            self.cluster |= {"status": command.manifest["status"]}
            self.manager.done(command, Answer(dict(self.cluster)), now=now)
            (said,) = self.cluster["status"]["conditions"]
            found.append((said["reason"], said["message"]))
        return found


def test_attempts_wait_longer_each_time_and_watches_may_take_longer_each_time() -> None:
    bare, now = Bare(), START
    waits = []
    for _ in range(9):
        (attempt,) = [command for command in bare.commands(now) if command[0] == "connect"]
        bare.manager.connection_failed("west", ConnectionReason.CONNECTION_FAILED, "no", now=now)
        while (wake := bare.manager.next_wake(now)) == now:
            bare.commands(now)
        assert wake is not None
        waits.append((attempt[1], (wake - now) // SECOND_NS))
        now = wake
    assert waits == [(1, 5), (2, 10), (4, 20), (8, 40), (10, 80), (10, 160), (10, 320), (10, 320), (10, 320)]


@pytest.mark.parametrize("reason", [entry for entry in ConnectionReason if entry.is_of_configuration])
def test_bad_credentials_are_told_with_their_reason(reason: ConnectionReason) -> None:
    bare = Bare()
    bare.commands(START)
    bare.manager.connection_failed("west", reason, "tokenFile is not allowed", now=START)
    assert bare.commands(START) == [(reason, "load client config failed: tokenFile is not allowed")]


def test_credentials_that_are_not_there_are_waited_for_and_others_are_tried_again() -> None:
    bare = Bare()
    bare.commands(START)
    bare.manager.connection_failed("west", ConnectionReason.BAD_KUBE_CONFIG, "not found", now=START, is_missing=True)
    bare.commands(START)
    assert not [command for command in bare.commands(START + 59 * SECOND_NS) if command[0] == "connect"]
    bare.manager.source_changed("west", now=START + 59 * SECOND_NS)
    assert [command for command in bare.commands(START + 59 * SECOND_NS) if command[0] == "connect"] == [("connect", 1)]
    bare.manager.connection_failed("west", ConnectionReason.BAD_KUBE_CONFIG, "bad", now=START + 59 * SECOND_NS)
    assert [command for command in bare.commands(START + 60 * SECOND_NS) if command[0] == "connect"] == [("connect", 1)]


def test_a_cluster_profile_needs_its_gate() -> None:
    bare = Bare(clusterProfileRef={"name": "profile"})
    reported = "load client config failed: MultiKueueClusterProfile feature gate is disabled"
    assert bare.commands(START) == [("MultiKueueClusterProfileFeatureDisabled", reported)]


def test_an_attempt_that_is_still_under_way_does_not_count() -> None:
    bare = Bare()
    bare.commands(START)
    bare.manager.connection_pending("west", "watch establishment is already in progress", now=START)
    assert bare.commands(START) == [("ClientConnectionFailed", "watch establishment is already in progress")]
    assert bare.commands(START + 5 * SECOND_NS) == [("connect", 1)]


def test_a_new_source_begins_anew() -> None:
    bare = Bare()
    bare.commands(START)
    bare.manager.connection_failed("west", ConnectionReason.CONNECTION_FAILED, "no", now=START)
    bare.commands(START)
    bare.version += 1
    bare.cluster["metadata"] = {**bare.cluster["metadata"], "resourceVersion": str(bare.version)}
    bare.cluster["spec"] = {"clusterSource": {"kubeConfig": {"location": "other"}}}
    bare.manager.observe({"type": "MODIFIED", "object": dict(bare.cluster)}, now=START)
    assert ("connect", 1) in bare.commands(START)


@pytest.mark.parametrize("tells", [True, False])
def test_older_releases_do_not_say_how_often_a_worker_was_tried(tells: bool) -> None:
    stage = Stage("west", start=False, settings=MultiKueueSettings(tells_next_attempt=tells))
    stage.cut_off = {"west"}
    stage.settle(delay=SECOND_NS)
    _, _, message = stage.active("MultiKueueCluster", "west")
    assert ("connection attempts: 1" in message) == tells


@pytest.mark.parametrize("looks", [True, False])
def test_workloads_follow_their_check_to_another_config(looks: bool) -> None:
    stage = Stage("west", "east", settings=MultiKueueSettings(looks_again_at_checks=looks))
    stage.api[""].patch("MultiKueueConfig", "config", {"spec": {"clusters": ["west"]}})
    stage.create("MultiKueueConfig", "other", {"clusters": ["east"]})
    stage.settle()
    stage.job()
    stage.settle()
    assert stage.get("Workload", "job", cluster="east") is None
    stage.api[""].patch("AdmissionCheck", "ac", {"spec": {"parameters": {"name": "other"}}})
    stage.wait(2 * SECOND_NS)
    assert (stage.get("Workload", "job", cluster="east") is not None) == looks
