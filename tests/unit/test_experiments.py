"""Rules that Kueue does not have: off by default, and kept wherever an engine goes."""

from __future__ import annotations

import pickle

import pytest

from kueuecore import Configuration, Engine, simulate
from kueuecore.answers import Fate, explain
from kueuecore.answers.obstacles import obstacles, rule_link
from kueuecore.errors import ConfigurationError
from kueuecore.experiments import Experiments, experiment_names, parse_experiments
from kueuecore.objects import ClusterQueuePreemption, Namespace, ReclaimWithinCohortPolicy
from kueuecore.saved_engine import configuration_of
from kueuecore.simulation import Happening, JobPlan, Operation
from tests.builders import at, cluster_queue, flavor, local_queue, settle, workload

MIN_RUN = Experiments(min_run_seconds_before_cross_queue_preemption=600)
BACKOFF = Experiments(reclaim_backoff_seconds=600)
SHARE = Experiments(time_share_seconds=600)
RECLAIMS = ClusterQueuePreemption(reclaim_within_cohort=ReclaimWithinCohortPolicy.ANY)


def configured(experiments: Experiments) -> Configuration:
    return Configuration().with_experiments(experiments)


def lending(experiments: Experiments, *, keeps_journal: bool = False) -> Engine:
    """A workload borrows all of a ClusterQueue that takes back what is its own, which is waited for."""
    engine = Engine(configured(experiments), keeps_journal=keeps_journal)
    owner = cluster_queue("owner", cohort="all", preemption=RECLAIMS)
    objects = [cluster_queue(cohort="all"), local_queue(), owner, local_queue("owner", "owner")]
    engine.apply([Namespace("ns"), flavor(), *objects, workload("borrows", 20)], now=at(0))
    assert settle(engine, at(1)) == ["borrows"]
    engine.apply([workload("own", 10, queue="owner", created=2)], now=at(2))
    return engine


def preempted(engine: Engine, seconds: int) -> list[str]:
    return [preemption.name for preemption in engine.cycle(at(seconds)).preemptions]


def test_none_is_on_by_default() -> None:
    assert not Configuration().experiments
    assert preempted(lending(Experiments()), 3) == ["borrows"]
    assert not Configuration.parse("{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}").experiments


def test_a_configuration_file_of_kueue_cannot_turn_them_on() -> None:
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, experiments: {timeShareSeconds: 60}}"
    with pytest.raises(ConfigurationError, match="experiments"):
        Configuration.parse(text)


def test_the_wake_is_the_moment_at_which_the_time_is_over() -> None:
    engine = lending(MIN_RUN)
    assert preempted(engine, 3) == []
    assert engine.next_wake() == at(601)
    assert preempted(engine, 600) == []
    engine.reconcile(at(601))
    assert engine.has_heads
    assert preempted(engine, 601) == ["borrows"]
    assert engine.next_wake() is None


def test_an_explanation_says_who_has_just_started() -> None:
    engine = lending(MIN_RUN)
    settle(engine, at(3))
    found = explain(engine, "own", namespace="ns", now=at(3))
    assert [holder.fate for search in found.searches for holder in search.holders] == [Fate.JUST_STARTED]


def test_an_explanation_says_what_is_not_borrowed_again_yet() -> None:
    engine = lending(BACKOFF)
    assert preempted(engine, 3) == ["borrows"]
    engine.release("borrows", namespace="ns", now=at(4))
    assert settle(engine, at(5)) == ["own"]
    engine.finish("own", namespace="ns", now=at(6))
    settle(engine, at(7))
    (found,) = obstacles(explain(engine, "borrows", namespace="ns", now=at(7)))
    assert found.rule == "13 §3"
    assert found.text.startswith("cpu in flavor default was reclaimed and is not borrowed again yet")
    assert rule_link(found.rule) == "docs/rules/13-experiments.md"
    assert engine.next_wake() == at(603)


def test_forks_saves_journals_and_pickles_keep_them() -> None:
    engine = lending(MIN_RUN, keeps_journal=True)
    preempted(engine, 3)
    saved = engine.save()
    others = [engine.fork(), Engine.load(saved), Engine.replay(engine.journal())]
    assert Engine.load(saved).save() == saved
    assert configuration_of(saved).experiments == MIN_RUN
    assert configuration_of(engine.journal()).experiments == MIN_RUN
    for other in others:
        assert other.configuration.experiments == MIN_RUN
        assert other.next_wake() == at(601)
        assert preempted(other, 600) == []
        assert preempted(other, 601) == ["borrows"]
    again = pickle.loads(pickle.dumps(engine.configuration))
    assert again.experiments == MIN_RUN
    assert preempted(lending(again.experiments), 3) == []


def test_a_save_is_not_loaded_with_others() -> None:
    saved = lending(MIN_RUN).save()
    with pytest.raises(ValueError, match=r"minRunSeconds.*=600 \(not in Kueue\), and this Configuration has none"):
        Engine.load(saved, configuration=Configuration())
    assert Engine.load(saved, configuration=configured(MIN_RUN)).configuration.experiments == MIN_RUN


def test_switches_keep_them() -> None:
    assert configured(SHARE).switched({"PartialAdmission": False}).experiments == SHARE
    assert configured(SHARE).with_experiments(Experiments()).experiments == Experiments()


def test_a_run_in_virtual_time_wakes_when_a_backoff_is_over() -> None:
    owner = cluster_queue("owner", cohort="all", preemption=RECLAIMS)
    objects = [Namespace("ns"), flavor(), cluster_queue(cohort="all"), local_queue(), owner]
    objects.append(local_queue("owner", "owner"))
    events = [
        Happening(at=0, op=Operation.CREATE, object=workload("borrows", 20), plan=JobPlan(run_seconds=3600)),
        Happening(
            at=60,
            op=Operation.CREATE,
            object=workload("own", 10, queue="owner", created=60),
            plan=JobPlan(run_seconds=60),
        ),
    ]
    admitted_at = {}
    for experiments in (Experiments(), BACKOFF):
        run = simulate(objects, events, configuration=configured(experiments), now=at(0))
        steps = [cycle.time for cycle in run.cycles for it in cycle.decision.admissions if it.name == "borrows"]
        admitted_at[experiments] = [(time - at(0)) // 10**9 for time in steps]
    without, with_backoff = admitted_at.values()
    assert without[0] == with_backoff[0]
    # It was preempted at 60 s; without a wake it would wait for ever, as nothing else happens.
    assert without[1] < 130
    assert with_backoff[1] == 660


def test_each_is_read_and_written_by_its_name() -> None:
    every = Experiments.of(dict.fromkeys(experiment_names(), 60))
    assert every.to_dict() == dict.fromkeys(experiment_names(), 60)
    assert Experiments.of({"timeShareSeconds": None}) == Experiments()
    assert parse_experiments([f"{name}=60" for name in experiment_names()]) == every
    assert not parse_experiments([])
    assert every.notice.endswith("timeShareSeconds=60 (not in Kueue)")


@pytest.mark.parametrize("value", [0, -1, 31536001, True, 1.5, "60", "1h"])
def test_a_time_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match="write a whole number of seconds from 1 to 31536000") as caught:
        Experiments.of({"timeShareSeconds": value})
    assert caught.value.problems[0].field == "timeShareSeconds"


@pytest.mark.parametrize("value", [1, 31536000])
def test_the_ends_of_the_range_are_in_it(value: int) -> None:
    assert Experiments(time_share_seconds=value).time_share_seconds == value


def test_options_name_everything_that_is_wrong() -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_experiments(["timeShareSecond=60", "reclaimBackoffSeconds", "timeShareSeconds=60", "timeShareSeconds=9"])
    found = {(problem.field, problem.remedy) for problem in caught.value.problems}
    assert found == {
        ("timeShareSecond", "did you mean timeShareSeconds?"),
        ("", "write NAME=SECONDS, such as reclaimBackoffSeconds=300"),
        ("timeShareSeconds", "give it once"),
    }
