"""Experiments make workloads wait: a search lets that time pass, and a loop is one however slow it is (rules/13)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from kueuecore import Configuration
from kueuecore.cli import main
from kueuecore.experiments import Experiments, experiment_names
from kueuecore.findings import Severity
from kueuecore.findings.building import facts_of
from kueuecore.policy_tests import read_policy_tests, run_policy_test
from kueuecore.proving import Property, prove, save, severity_of, story_of
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import IN_EXPLORER, Explorer, Move, MoveKind
from kueuecore.proving.replay import replay
from kueuecore.proving.replayed import Replay, ReplayEnding
from kueuecore.proving.scope import Scope, scopes_of
from kueuecore.scenarios import read_scenario, run_scenario
from kueuecore.steady_state import find_preemption_loop
from tests.unit.proving.counterexamples import (
    FAIR,
    START,
    counterexample,
    fair_sharing_loop,
    of_moves,
    preemption_loop,
    reference,
    section,
    under,
)
from tests.unit.proving.test_prove import REPORTED, queues
from tests.unit.proving.test_saving import ONE_QUEUE, work

MIN_RUN, BACKOFF, SHARE = experiment_names()
N = 600
EVERY = {MIN_RUN: 3, BACKOFF: 7, SHARE: 5}
TAKE_TURNS = "{withinClusterQueue: LowerOrNewerEqualPriority, reclaimWithinCohort: Any}"
CONFIGURATIONS = {**REPORTED, "turns": (queues(a=("2", TAKE_TURNS), b=("2", TAKE_TURNS)), None)}
READY = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, waitForPodsReady: {timeout: 5s}}"
)


def turns() -> Counterexample:
    """Two equals in a queue with room for one of them."""
    text = ONE_QUEUE.replace(
        "spec:\n  namespaceSelector",
        "spec:\n  preemption: {withinClusterQueue: LowerOrNewerEqualPriority}\n  namespaceSelector",
    )
    return counterexample(text + work("equal", "a", 2), ("equal", "equal"), property_=Property.TURNS)


# How the two loops of docs/anomalies.md end with each experiment of ten minutes, and how long a turn takes.
OUTCOMES = [
    (preemption_loop, MIN_RUN, ReplayEnding.REPEATS, N + 4),
    (preemption_loop, BACKOFF, ReplayEnding.REST, 0),
    (preemption_loop, SHARE, ReplayEnding.REPEATS, 5),
    (fair_sharing_loop, MIN_RUN, ReplayEnding.REST, 0),
    (fair_sharing_loop, BACKOFF, ReplayEnding.REST, 0),
    (fair_sharing_loop, SHARE, ReplayEnding.REPEATS, 2),
    (turns, SHARE, ReplayEnding.REPEATS, N + 1),
]


@pytest.mark.parametrize(("made", "name", "ending", "seconds"), OUTCOMES)
def test_an_experiment_stops_a_loop_or_slows_it_down_or_leaves_it(
    made: Callable[[], Counterexample], name: str, ending: ReplayEnding, seconds: int
) -> None:
    found = under(made(), Experiments.of({name: N}))
    played = replay(found)
    assert (played.ending, played.seconds_of_turn) == (ending, seconds)
    assert replay(found, reference(found.facts)) == played


def test_a_back_off_that_is_over_within_a_turn_leaves_the_loop() -> None:
    assert replay(under(preemption_loop(), Experiments.of({BACKOFF: 1}))).seconds_of_turn == 5


def scope_of(name: str, experiments: Experiments) -> Scope:
    manifests, configuration = CONFIGURATIONS[name]
    given = (configuration or Configuration()).with_experiments(experiments)
    (scope,) = scopes_of(facts_of(manifests, configuration=given, now=START))
    return scope


def drawn(draw: random.Random, scope: Scope) -> tuple[Move, ...]:
    """A few moves of a few shapes."""
    cast = [draw.randrange(len(scope.shapes)) for _ in range(draw.randint(2, 4))]
    kinds = draw.choices([MoveKind.ARRIVE, MoveKind.BURST, MoveKind.END], weights=[6, 2, 2], k=draw.randint(5, 9))
    return tuple(Move(kind, draw.randrange(4) if kind is MoveKind.END else draw.choice(cast)) for kind in kinds)


@pytest.mark.parametrize("experiments", [{MIN_RUN: 60}, {BACKOFF: 60}, {SHARE: 60}, EVERY, {}], ids=str)
def test_search_engine_and_reference_play_the_same(experiments: dict[str, int]) -> None:
    plays = [played for name in CONFIGURATIONS for played in plays_by_all(name, experiments)]
    moves = [move for played in plays for move in played.moves]
    assert sum(len(list(move.preempted)) for move in moves) > 10
    # Somebody was tried again after a wait.
    waits = [cycle.at - before.at for move in moves for before, cycle in pairwise(move.cycles)]
    assert bool(experiments) is any(seconds > 2 for seconds in waits)


def plays_by_all(name: str, experiments: dict[str, int]) -> Iterator[Replay]:
    """Play random moves by all three, and compare them."""
    scope = scope_of(name, Experiments.of(experiments))
    explorer, draw = scope.explorer(), random.Random(f"{name} {experiments}")
    for _ in range(8):
        found = Counterexample(Property.LOOPS, scope.facts, scope.shapes, (), drawn(draw, scope))
        played = replay(found)
        assert replay(found, reference(scope.facts)) == played, found.moves
        (seen,) = explorer.play([found.moves], IN_EXPLORER)
        preempted = [len(list(move.preempted)) for move in played.moves]
        assert seen.n_preemptions == sum(preempted), found.moves
        is_loop = played.ending is ReplayEnding.REPEATS and preempted[-1] > 0
        assert bool(seen.broken.keys() & {Property.LOOPS, Property.TURNS}) is is_loop, found.moves
        yield played


def test_states_that_differ_only_in_a_wait_are_others() -> None:
    # A loop of two seconds, beside equals that take turns every twenty.
    shared = ONE_QUEUE.split("---", 1)[1].replace("{name: a", "{name: shared").replace("Queue: a", "Queue: shared")
    shared = shared.replace("nominalQuota: 2", "nominalQuota: 1").replace(
        "spec:\n  namespaceSelector",
        "spec:\n  preemption: {withinClusterQueue: LowerOrNewerEqualPriority}\n  namespaceSelector",
    )
    moves: list[tuple[MoveKind, str | int]] = [
        (MoveKind.BURST, "equal"),
        (MoveKind.BURST, "equal"),
        (MoveKind.BURST, "borrower"),
        (MoveKind.ARRIVE, "elastic"),
    ]
    text = f"{section(2)}---{shared}{work('equal', 'shared', 1)}"
    found = under(of_moves(text, moves, configuration=FAIR), Experiments.of({SHARE: 20}))
    played = replay(found)
    assert played.seconds_of_turn == 42
    assert {it.key for cycle in played.turn for it in cycle.preempted} == {
        "team/equal-0",
        "team/equal-1",
        "team/borrower-2",
    }
    assert replay(found, reference(found.facts)) == played
    explorer = Explorer(
        found.facts.engine,
        now=START,
        shapes=found.shapes,
        queues=sorted(found.facts.cluster_queues),
        classes=range(3),
        nodes=(),
        n_flavors=1,
    )
    (seen,) = explorer.play([found.moves], [Property.LOOPS])
    assert seen.broken == {Property.LOOPS: len(moves)}
    assert seen.n_preemptions == len(list(played.moves[-1].preempted))


def test_pods_have_been_ready_when_a_wait_is_over() -> None:
    found = under(preemption_loop(), Experiments.of({MIN_RUN: N}))
    facts = facts_of(found.facts.given, configuration=READY.with_experiments(Experiments.of({MIN_RUN: N})), now=START)
    found = Counterexample(Property.LOOPS, facts, found.shapes, (), found.moves)
    played = replay(found)
    assert not [evicted for move in played.moves for cycle in move.cycles for evicted in cycle.evicted]
    assert played.seconds_of_turn == N + 4
    assert replay(found, reference(facts)) == played


def test_a_slow_loop_is_found_from_the_configuration_alone() -> None:
    manifests, _ = REPORTED["anomaly"]
    configuration = Configuration().with_experiments(Experiments.of({MIN_RUN: N}))
    (found,) = prove(manifests, configuration=configuration, properties=[Property.LOOPS]).counterexamples
    assert severity_of(found) is Severity.ERROR
    assert replay(found).seconds_of_turn >= N
    assert story_of(found).lines[0].startswith("1. At 1s: ")
    assert "follow again and again, every 10m0" in story_of(found).lines[-1]


def few(n_moves: int) -> float:
    return n_moves / 20_000


def test_equals_that_take_turns_are_no_loop_but_a_property_of_their_own() -> None:
    manifests = queues(a=("2", "{withinClusterQueue: LowerOrNewerEqualPriority}"))
    asked = [Property.LOOPS, Property.TURNS]
    assert not prove(manifests, properties=asked, spent=few).counterexamples
    configuration = Configuration().with_experiments(Experiments.of({SHARE: N}))
    (found,) = prove(manifests, configuration=configuration, properties=asked, spent=few).counterexamples
    assert (found.breaks, severity_of(found), found.n_workloads) == (Property.TURNS, Severity.NOTE, 2)


@pytest.mark.parametrize(("made", "name"), [(preemption_loop, MIN_RUN), (turns, SHARE)])
@pytest.mark.parametrize("seconds", [N, 30 * 86_400], ids=["minutes", "a month"])
def test_what_is_saved_carries_the_experiment(
    made: Callable[[], Counterexample], name: str, seconds: int, tmp_path: Path
) -> None:
    found = under(made(), Experiments.of({name: seconds}))
    _, scenario, test = save(found, tmp_path, "found")
    for path in (scenario, test):
        assert path.read_text(encoding="utf-8").startswith(f"# experiments: {name}={seconds} (not in Kueue)\n")
    # Equals are as good as each other, so a turn is over when the next one has its turn.
    victims = {preempted.key for move in replay(found).moves for preempted in move.preempted}
    outcome = run_scenario(read_scenario(scenario))
    assert {f"{job.namespace}/{job.workload}" for job in outcome.jobs if job.n_evictions > 2} == victims
    (case,) = read_policy_tests(test)
    (failure,) = run_policy_test(case).failures
    assert failure.verdict.got == "it never settles"
    assert failure.verdict.why.startswith("every ")


def test_a_loop_over_time_is_found_in_a_state() -> None:
    found = under(preemption_loop(), Experiments.of({MIN_RUN: N}))
    engine = found.facts.engine.fork()
    for move in found.moves:
        engine.apply([{**found.shapes[move.number].workload, "status": {}}], now=START)
    loop = find_preemption_loop(engine, now=START)
    assert loop is not None
    assert loop.keys == ("team/guest", "team/large", "team/small")


def test_the_command_names_the_experiment_in_every_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = "\n---\n".join(json.dumps(manifest.object) for manifest in REPORTED["anomaly"][0])
    file = tmp_path / "queues.yaml"
    file.write_text(objects, encoding="utf-8")
    command = ["prove", str(file), "--experiment", f"{MIN_RUN}={N}", "--property", "loops", "--quiet"]
    summary = tmp_path / "summary.md"
    notice = f"experiments: {MIN_RUN}={N} (not in Kueue)"
    assert main([*command, "--summary", str(summary)]) == 1
    assert capsys.readouterr().out.startswith(f"{notice}\n")
    assert notice in summary.read_text(encoding="utf-8")
    assert main([*command, "-o", "json"]) == 1
    assert f'"experiments": {{\n    "{MIN_RUN}": {N}\n  }}' in capsys.readouterr().out
    assert main([*command, "-o", "github"]) == 1
    assert notice in capsys.readouterr().out


def test_wrong_experiments_are_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", str(tmp_path), "--experiment", "timeShare=5"]) == 2
    assert '--experiment timeShare: unknown experiment "timeShare"; did you mean timeShareSeconds?' in (
        capsys.readouterr().err
    )
