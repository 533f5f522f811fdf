"""Histories of fleets in which things go wrong; and that what looks on sees bugs that are put in on purpose."""

from __future__ import annotations

from collections import Counter

import pytest

from kueuecore.controller.versions import Versions
from kueuecore.multikueue import AllAtOnce, Command, Manager, ManagerTurn, object_store, workload_reconciler
from kueuecore.multikueue.policies import Scored, TakingBack, by_free_quota
from kueuecore.multikueue.workload_group import Group, Result
from kueuecore.testing.fleet_invariants import Invariant, InvariantError
from kueuecore.times import TimeLike
from kueuecore.trials.fleet_histories import FleetHistory
from kueuecore.writes import Answer, Verb, Write
from tests.unit.multikueue.scenarios import MINUTE_NS

SEEDS = range(30)


def test_no_job_starts_twice_none_is_lost_and_nothing_of_others_is_touched() -> None:
    happened: Counter[str] = Counter()
    for seed in SEEDS:
        happened += FleetHistory(seed, n_steps=9).play()
    # They are about something.
    for what in ("cuts", "restarts of the manager", "restarts of workers", "jobs of others", "deletions", "finished"):
        assert happened[what] > 5, happened
    for what in ("with nodes", "nodes that fail", "nodes that go", "nodes that come back"):
        assert happened[what] > 5, happened


def test_what_fleets_store_is_what_a_server_with_kueues_definitions_and_webhooks_takes() -> None:
    # Every history looks; here is that it does.
    history = FleetHistory(3, n_steps=8)
    history.play()
    kinds = {"Workload", "Workload/status", "ClusterQueue/status", "LocalQueue/status", "MultiKueueCluster/status"}
    assert min(history.checked[kind] for kind in kinds) > 0
    assert not history.refused


def test_a_winner_that_was_not_nominated_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Group, "_may_win", lambda self, cluster: True)
    seen = ""
    for seed in SEEDS:
        try:
            FleetHistory(seed).play()
        except AssertionError as error:
            seen = str(error)
            break
    assert "clusterName it must be one of the nominatedClusterNames" in seen


def test_pods_beyond_the_cpus_of_a_node_are_seen() -> None:
    history = next(seed for seed in map(FleetHistory, SEEDS) if seed.nodes is not None)
    assert history.nodes is not None
    for capacity in history.nodes.capacity.values():
        capacity |= dict.fromkeys(capacity, 0)
    with pytest.raises(AssertionError, match=r"\d pods on \w+-\d of 0 cpus"):
        history.play()


def test_the_same_seed_gives_the_same_history() -> None:
    first, second = FleetHistory(3, n_steps=8), FleetHistory(3, n_steps=8)
    assert first.play() == second.play()
    histories = [[node.api.history for node in entry.fleet.nodes.values()] for entry in (first, second)]
    assert histories[0] == histories[1]


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_taking_back_comes_to_rest_whatever_goes_wrong(seed: int) -> None:
    inner = (AllAtOnce(), Scored(score=by_free_quota("cpu"), prefers_room=True, round_ns=MINUTE_NS))[seed % 2]
    policy = TakingBack(inner=inner, admit_ns=5 * 10**9, start_ns=10**9, exclude_ns=MINUTE_NS)
    # A second is too short for most jobs to start: they are taken back all the time.
    FleetHistory(seed, dispatcher=policy).play()


def first_seen() -> Invariant | None:
    """What does not hold in the first history that sees anything."""
    for seed in SEEDS:
        try:
            FleetHistory(seed).play()
        except InvariantError as error:
            return error.invariant
    return None


def test_a_job_that_starts_on_every_worker_that_admits_it_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def settle_everywhere(group: Group) -> Result | None:
        result = original(group)
        admitted = [
            name for name, worker in group.workers.items() if worker.workload is not None and name != group.winner
        ]
        if result is None or not admitted:
            return result
        # The losers get the job, too, instead of losing their copies.
        copy = group.adapter.copy(group.jobs[0], group.sync)
        copies = [Write(Verb.CREATE, copy, cluster=name) for name in admitted]
        there = [copy for copy in copies if copy.name not in group.workers[copy.cluster].jobs]
        return Result([*there, *workload_reconciler._synced(group, group.winner)[0]], 10**10)

    original = workload_reconciler._settle
    steps = tuple(settle_everywhere if step is original else step for step in workload_reconciler._STEPS)
    monkeypatch.setattr(workload_reconciler, "_STEPS", steps)
    assert first_seen() is Invariant.STARTS_ONCE


def test_a_deletion_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Manager, now: TimeLike) -> ManagerTurn:
        turn = original(self, now)
        kept: list[Command] = []
        for command in turn.commands:
            if isinstance(command, Write) and (command.verb, command.kind) == (Verb.DELETE, "Workload"):
                # It takes for done what it has not even sent.
                self.done(command, Answer(), now=now)
            else:
                kept.append(command)
        return ManagerTurn(tuple(kept), turn.problems)

    original = Manager.turn
    monkeypatch.setattr(Manager, "turn", forgetful)
    assert first_seen() is Invariant.NOTHING_LEFT


def test_an_old_event_that_is_taken_for_news_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Credulous(Versions):
        def is_news(self, key: object, version: object) -> bool:
            return True

        def is_gone(self, key: object, version: object) -> bool:
            return True

    monkeypatch.setattr(object_store, "Versions", Credulous)
    # The manager goes on from what once was, and does not look again.
    assert first_seen() is Invariant.NONE_LOST
