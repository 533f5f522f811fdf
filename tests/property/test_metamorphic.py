"""Changes of a world that change no decision in it (docs/invariants.md)."""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from kueuecore._json import JsonObject, text_at
from kueuecore.engine import Engine
from kueuecore.objects import from_manifest
from kueuecore.testing import History, Limits, MoveResult, Play, first_difference, histories, observe, shown
from kueuecore.trials.transforms import decided, renamed, scaled, with_idle_cluster_queue
from tests.property.worlds import engine_of

no_forks = histories(forks=False)
modest = histories(Limits(edges=False, usage_based=False), forks=False)
without_checks = histories(Limits(checks=False), forks=False)


def played(history: History) -> list[MoveResult]:
    play = Play.of(history)
    return list(play.run(history.moves))


def check_same_decisions(history: History, other: History, names: dict[str, str] | None = None) -> None:
    """Both decide the same, where the names of the first are those of the second after `names`."""
    with shown(history):
        for one, another in zip(played(history), played(other), strict=True):
            assert first_difference(decided(one, names), decided(another)) is None


@given(modest, st.sampled_from([2, 3, 10, 1000, 10**9]))
def test_scaling_all_quantities_changes_no_decision(history: History, factor: int) -> None:
    check_same_decisions(history, scaled(history, factor))


@given(no_forks, st.randoms(use_true_random=False))
def test_the_names_of_workloads_flavors_and_namespaces_decide_nothing(history: History, random: Any) -> None:
    """UIDs and times decide; every UID is another."""
    names: dict[str, str] = {}
    for kind in ("w", "n", "f", "g"):
        own = [f"{kind}{number}" for number in range(40)]
        names |= dict(zip(own, random.sample(own, len(own)), strict=True))
    check_same_decisions(history, renamed(history, names | {"ns": "other"}), names | {"ns": "other"})


@given(no_forks)
def test_only_the_order_of_the_names_of_queues_and_cohorts_decides(history: History) -> None:
    """They break ties that Kueue leaves to chance."""
    names = {f"{kind}{number}": f"team-{kind}{number}" for kind in "cq" for number in range(1, 9)}
    check_same_decisions(history, renamed(history, names), names)


@given(no_forks, st.sampled_from(["c1", "c2", ""]))
def test_a_cluster_queue_without_quota_and_workloads_changes_nothing(history: History, cohort: str) -> None:
    things = [*history.objects, *(move.object for move in history.moves if move.object is not None)]
    # In a tree of cohorts, one that had no ClusterQueue counts as a level from then on (rules/02 §2.5).
    assume(not cohort or not any(text_at(thing, "spec", "parentName") for thing in things))
    with shown(history):
        for one, other in zip(played(history), played(with_idle_cluster_queue(history, cohort=cohort)), strict=True):
            assert first_difference(one.to_json(), other.to_json()) is None


@given(no_forks)
def test_objects_with_all_defaults_decide_the_same_when_they_are_trusted(history: History) -> None:
    filled = [from_manifest(thing).to_manifest() for thing in history.objects]
    for thing in filled:
        thing["metadata"]["generation"] = 1  # type: ignore[index, call-overload]  # as an API server sets it
    with shown(history):
        one = Play.of(history)
        trusted = Engine(history.parsed_configuration(), batches_retries=history.batches_retries)
        trusted.apply(json.dumps(filled).encode(), now=one.now, trusted=True)
        other = Play(trusted)
        assert first_difference(observe(one.engine), observe(other.engine)) is None
        for move in history.moves:
            assert first_difference(one.do(move).to_json(), other.do(move).to_json()) is None


@given(without_checks)
def test_an_engine_made_of_the_objects_as_they_are_holds_the_same(history: History) -> None:
    """A restart loses what was tried, but no quota."""
    with shown(history):
        play = Play.of(history)
        there = {name_of(object_): object_ for object_ in history.objects}
        for reported in play.run(history.moves):
            thing = reported.move.object
            if thing is not None and not reported.refused:
                there[name_of(thing)] = thing
            if reported.move.object_kind and not reported.missing:
                del there[reported.move.object_kind, reported.move.key.rpartition("/")[2]]
        statuses = {("Workload", workload.name): workload.status for workload in play.engine.workloads()}
        objects = [{**name, "status": statuses.get(key, {})} for key, name in there.items()]
        again = Engine(history.parsed_configuration(), batches_retries=history.batches_retries)
        again.apply(json.dumps(objects).encode(), now=play.now, trusted=True)
        assert again.quota() == play.engine.quota()
        assert [(workload.key, workload.stage, workload.flavors) for workload in again.workloads()] == [
            (workload.key, workload.stage, workload.flavors) for workload in play.engine.workloads()
        ]


@given(histories())
def test_what_is_remembered_of_earlier_cycles_changes_nothing(history: History) -> None:
    """Heads on which the verdict still holds are not evaluated again: with that shortcut and without it."""
    with shown(history):
        plays = [Play(engine_of(history, evaluates_always=always)) for always in (False, True)]
        for move in history.moves:
            one, other = (play.do(move).to_json() for play in plays)
            assert first_difference(one, other) is None
        one, other = (observe(play.engine) for play in plays)
        assert first_difference(one, other) is None


def name_of(thing: JsonObject) -> tuple[str, str]:
    return text_at(thing, "kind"), text_at(thing, "metadata", "name")


def digest(lines: list[str]) -> str:
    """A hash of all that is seen when scenarios are played."""
    seen = hashlib.sha256()
    for line in lines:
        history = History.from_line(line)
        play = Play.of(history)
        for reported in play.run(history.moves):
            seen.update(json.dumps([reported.to_json(), observe(play.engine)]).encode())
    return seen.hexdigest()


def some_histories(n: int) -> list[str]:
    lines: list[str] = []

    @settings(max_examples=n, phases=[Phase.generate], derandomize=True)
    @given(histories())
    def draw(history: History) -> None:
        lines.append(history.to_line())

    draw()
    return lines


PROGRAM = "import sys; from tests.property.test_metamorphic import digest; print(digest(sys.stdin.read().splitlines()))"


def test_other_processes_and_threads_see_the_same_bytes() -> None:
    lines = some_histories(20)
    here = digest(lines)
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(digest, [lines] * 4)) == {here}
    for seed in ("0", "12345", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], input="\n".join(lines), capture_output=True, text=True, env=environment
        )
        assert (ran.stdout.strip(), ran.stderr) == (here, "")
