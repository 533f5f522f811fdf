"""The files of a counterexample: the scenario shows it, and the policy test fails until the configuration is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kueuecore.policy_tests import CaseResult, read_policy_tests, run_policy_test
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.proving.saving import files_of, save
from kueuecore.scenarios import ScenarioOutcome, read_scenario, run_scenario
from kueuecore.times import SECOND_NS
from tests.unit.proving.counterexamples import counterexample, fair_sharing_loop, of_moves, preemption_loop
from tests.unit.proving.test_story import TWO_QUEUES

ARRIVE, END, LOSE = MoveKind.ARRIVE, MoveKind.END, MoveKind.LOSE
HEAD = "apiVersion: kueue.x-k8s.io/v1beta2\n"


def work(name: str, queue: str, cpu: int, **fields: int) -> str:
    more = "".join(f"\n  {field}: {value}" for field, value in fields.items())
    pod = f"{{spec: {{containers: [{{name: c, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}"
    return (
        f"---\n{HEAD}kind: Workload\nmetadata: {{name: {name}, namespace: team}}\nspec:\n  queueName: {queue}{more}\n"
        f"  podSets:\n  - {{name: main, count: 1, template: {pod}}}\n"
    )


RECLAIMS = {"metadata:\n  name: b\nspec:\n": "metadata:\n  name: b\nspec:\n  preemption: {reclaimWithinCohort: Any}\n"}
ONE_QUEUE = (
    TWO_QUEUES.split("---")[0]
    + f"---\n{HEAD}kind: ClusterQueue\nmetadata: {{name: a}}\nspec:\n  namespaceSelector: {{}}\n"
    + "  queueingStrategy: BestEffortFIFO\n  resourceGroups:\n  - coveredResources: [cpu]\n"
    + "    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 2}]}]\n"
    + f"---\n{HEAD}kind: LocalQueue\nmetadata: {{name: a, namespace: team}}\nspec: {{clusterQueue: a}}\n"
)


def denied() -> Counterexample:
    return counterexample(TWO_QUEUES, ("wide", "own"), property_=Property.GUARANTEE)


def denied_after_an_end() -> Counterexample:
    """`guest` takes the room of `own`, which has ended when the next one like it comes."""
    text = TWO_QUEUES + work("guest", "a", 1)
    moves: list[tuple[MoveKind, str | int]] = [
        (ARRIVE, "own"),
        (ARRIVE, "wide"),
        (END, 0),
        (ARRIVE, "guest"),
        (ARRIVE, "own"),
    ]
    return of_moves(text, moves, property_=Property.GUARANTEE)


def starving() -> Counterexample:
    text = ONE_QUEUE + work("small", "a", 1) + work("large", "a", 2)
    return counterexample(text, ("small", "small", "large"), property_=Property.STARVATION)


def wasteful() -> Counterexample:
    text = TWO_QUEUES.replace(
        "metadata: {name: b}\nspec:\n", "metadata: {name: b}\nspec:\n  preemption: {reclaimWithinCohort: Any}\n"
    )
    text += work("guest", "a", 4)
    return counterexample(text, ("guest", "own"), property_=Property.WASTE)


def unplaced() -> Counterexample:
    text = ONE_QUEUE.replace(
        "metadata: {name: default}",
        "metadata: {name: default}\nspec: {nodeTaints: [{key: a, value: b, effect: NoSchedule}]}",
    )
    return counterexample(text + work("small", "a", 1), ("small",), property_=Property.PLACEMENT)


def denied_after_a_loss() -> Counterexample:
    """The only other node is in another pool."""
    node = (
        "---\napiVersion: v1\nkind: Node\nmetadata: {name: NAME, labels: {kubernetes.io/hostname: NAME, pool: POOL}}\n"
        'status: {allocatable: {cpu: "1", pods: "10"}, conditions: [{type: Ready, status: "True"}]}\n'
    )
    text = ONE_QUEUE.replace(
        "metadata: {name: default}", "metadata: {name: default}\nspec: {nodeLabels: {pool: a}, topologyName: t}"
    )
    text += (
        f"---\n{HEAD}kind: Topology\nmetadata: {{name: t}}\nspec: {{levels: [{{nodeLabel: kubernetes.io/hostname}}]}}\n"
    )
    text += "".join(node.replace("NAME", name).replace("POOL", pool) for name, pool in (("n1", "a"), ("n2", "b")))
    moves: list[tuple[MoveKind, str | int]] = [(ARRIVE, "small"), (LOSE, 0)]
    return of_moves(text + work("small", "a", 1), moves, property_=Property.GUARANTEE, nodes=("n1",))


def order_dependent() -> Counterexample:
    found = counterexample(TWO_QUEUES, ("wide", "own"), property_=Property.ORDER)
    return replace(found, instead=found.moves[::-1])


CASES: dict[Callable[[], Counterexample], dict[str, str]] = {
    preemption_loop: {
        ", borrowWithinCohort: {policy: LowerPriority}": "",
        "borrowWithinCohort:\n      policy: LowerPriority": "",
    },
    fair_sharing_loop: {"weight: 0": "weight: 1"},
    denied: RECLAIMS,
    denied_after_an_end: RECLAIMS,
    starving: {"BestEffortFIFO": "StrictFIFO"},
    wasteful: {"reclaimWithinCohort: Any": "reclaimWithinCohort: Never"},
    unplaced: {"NoSchedule": "PreferNoSchedule"},
    denied_after_a_loss: {"pool: b": "pool: a"},
    order_dependent: RECLAIMS,
}


def results(test: Path) -> list[CaseResult]:
    return [run_policy_test(it) for it in read_policy_tests(test)]


def played(scenario: Path) -> ScenarioOutcome:
    return run_scenario(read_scenario(scenario))


@pytest.mark.parametrize("made", CASES)
def test_the_policy_test_fails_until_the_configuration_is_mended(
    made: Callable[[], Counterexample], tmp_path: Path
) -> None:
    manifests, _, test = save(made(), tmp_path, "found")
    assert not all(result.has_passed for result in results(test))
    text = manifests.read_text(encoding="utf-8")
    mended = text
    for today, better in CASES[made].items():
        mended = mended.replace(today, better)
    assert mended != text
    manifests.write_text(mended, encoding="utf-8")
    assert [failure for result in results(test) for failure in result.failures] == []


@pytest.mark.parametrize("made", [preemption_loop, fair_sharing_loop])
def test_the_scenario_shows_the_loop(made: Callable[[], Counterexample], tmp_path: Path) -> None:
    found = made()
    outcome = played(save(found, tmp_path, "found")[1])
    victims = {preempted.key for cycle in replay(found).turn for preempted in cycle.preempted}
    evicted = {f"{job.namespace}/{job.workload}" for job in outcome.jobs if job.n_evictions > 20}
    assert evicted == victims


@pytest.mark.parametrize("made", [denied, denied_after_an_end, unplaced])
def test_the_scenario_ends_as_the_moves_do(made: Callable[[], Counterexample], tmp_path: Path) -> None:
    found = made()
    jobs = played(save(found, tmp_path, "found")[1]).jobs
    waiting = {f"{job.namespace}/{job.workload}" for job in jobs if job.admitted is None}
    assert waiting == set(replay(found).moves[-1].waiting)
    ended = [job.workload for job in jobs if job.finished is not None]
    assert ended == [move.subject.partition("/")[2] for move in replay(found).moves if move.move.kind is END]


def test_the_scenario_shows_who_is_passed_over(tmp_path: Path) -> None:
    jobs = {job.workload: job for job in played(save(starving(), tmp_path, "found")[1]).jobs}
    large = jobs.pop("large-2")
    assert large.admitted is not None
    assert len(jobs) == 12
    assert all(job.admitted is not None and job.admitted < large.admitted for job in jobs.values())
    assert all((job.admitted or 0) - job.created < 10 * SECOND_NS for job in jobs.values())


def test_a_lost_node_is_in_the_timetables_of_scenario_and_policy_test(tmp_path: Path) -> None:
    found = denied_after_a_loss()
    paths = save(found, tmp_path, "found")
    (job,) = played(paths[1]).jobs
    assert (job.n_node_evictions, job.n_evictions) == (1, 1)
    evicted = {it.key: it.reason for cycle in replay(found).moves[-1].cycles for it in cycle.evicted}
    assert evicted == {"team/small-0": "NodeFailures"}
    (test,) = read_policy_tests(paths[2])
    (failure,) = run_policy_test(test).failures
    assert "no topology domains at level: kubernetes.io/hostname" in str(failure)
    assert [(it.at, it.path) for it in test.timetable] == [(60.0, "cases[0].timetable[0]")]


def test_of_a_property_of_the_users_own_no_policy_test_is_written(tmp_path: Path) -> None:
    paths = save(replace(denied(), breaks="never mine"), tmp_path, "found")
    assert [path.name for path in paths] == ["found.manifests.yaml", "found.scenario.yaml"]


def test_the_same_counterexample_gives_the_same_files() -> None:
    assert files_of(preemption_loop(), "a") == files_of(preemption_loop(), "a")


def test_files_begin_with_the_story_and_name_the_release() -> None:
    files = files_of(fair_sharing_loop(), "a")
    assert files["a_test.yaml"].startswith("# 1. team/borrower-0 arrives in small and is admitted")
    assert "configuration:\n    fairSharing:\n" in files["a.scenario.yaml"]
    assert "kueue:" not in files["a.scenario.yaml"]
