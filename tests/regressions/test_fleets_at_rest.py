"""Fleets that went round forever, or were made of what could never work."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.errors import ManifestError, UnsettledError
from kueuecore.fleet import Fleet, LinkSettings, NodeSettings
from kueuecore.multikueue import (
    AllAtOnce,
    Dispatch,
    Manager,
    MultiKueueSettings,
    Nomination,
    Overflowing,
    Override,
)
from kueuecore.multikueue.garbage_collection import GarbageCollection
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.policies import JsonPatchError, Overflow, Overridden, TakingBack
from kueuecore.scenarios import (
    JobOutcome,
    JobOutcomes,
    Scenario,
    ScenarioEnding,
    ScenarioOutcome,
    read_scenario,
    run_scenario,
)
from tests.regressions.scenarios import EXAMPLES, FLEET, Read, problems
from tests.unit.multikueue.worlds import START, fleet_of, job

RENAMED = [
    {"op": "replace", "path": "/metadata/name", "value": "x"},
    {"op": "add", "path": "/metadata/namespace", "value": "x"},
    {"op": "remove", "path": "/kind"},
    {"op": "replace", "path": "/apiVersion", "value": "batch/v2"},
    {"op": "replace", "path": "/metadata", "value": {}},
    {"op": "replace", "path": "", "value": {}},
    {"op": "copy", "from": "/kind", "path": "/metadata/name"},
    {"op": "move", "from": "/metadata/name", "path": "/metadata/generateName"},
]


# Queues.


@pytest.mark.parametrize(
    ("queues", "circle"),
    [
        ({"a": "a"}, "a -> a"),
        ({"a": "b", "b": "a"}, "a -> b -> a"),
        ({"first": "a", "a": "b", "b": "c", "c": "a"}, "a -> b -> c -> a"),
    ],
)
def test_jobs_that_would_go_round_are_refused(queues: dict[str, str], circle: str) -> None:
    for make in (
        lambda: Overflow(queues),
        lambda: Manager(overflow=Overflow(queues)),
        lambda: Fleet(["west"], now=START, overflow=Overflow(queues)),
    ):
        with pytest.raises(ValueError, match=f"jobs would go in a circle: {circle}; "):
            make()


@pytest.mark.parametrize(
    ("queues", "problem"),
    [
        ("{here: here}", "here: jobs would go in a circle: here -> here"),
        ("{here: user-queue, user-queue: here}", "here: jobs would go in a circle: here -> user-queue -> here"),
    ],
)
def test_a_scenario_whose_jobs_would_go_round_is_refused(read: Read, queues: str, problem: str) -> None:
    assert problems(read, FLEET + f"  overflow: {{queues: {queues}}}\n") == [f"fleet.overflow.queues.{problem}"]


def test_many_queues_in_a_row_are_no_circle() -> None:
    assert Overflow({str(n): str(n + 1) for n in range(10_000)}).queues["0"] == "1"


@pytest.mark.parametrize("queues", [{"a": ""}, {"": "a"}])
def test_a_queue_has_a_name(queues: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="without a name"):
        Overflow(queues)


class Staying:
    """Says of each job that it goes to the queue in which it is."""

    def look(self, job: Any, workload: Any, *, now: Any) -> Overflowing:
        return Overflowing(queue=job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"])


def test_a_job_that_is_to_go_where_it_is_stays() -> None:
    fleet = fleet_of(5, {"west": 3}, overflow=Staying())
    fleet.submit(job("train", cpu=3), run_seconds=10)
    (submitted,) = fleet.objects("Job")
    fleet.wait(30)
    (found,) = fleet.objects("Job")
    assert found["metadata"]["uid"] == submitted["metadata"]["uid"]
    assert found["status"]["succeeded"] == 3


# Links.


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("{lostRequests: 1001}", "lostRequests: Invalid value: 1001"),
        ("{lostAnswers: 1001}", "lostAnswers: Invalid value: 1001"),
        ("{repeatedEvents: -1}", "repeatedEvents: Invalid value: -1"),
        ("{mostMs: 9223372036855}", "mostMs: Invalid value: 9223372036855"),
        ("{leastMs: 100, mostMs: 100, timeoutMs: 150}", "timeoutMs: Invalid value: 150"),
        # An answer that takes as long as the timeout comes too late.
        ("{leastMs: 100, mostMs: 100, timeoutMs: 200}", "timeoutMs: Invalid value: 200"),
        ("{mostMs: 5000}", "timeoutMs: Invalid value: 10000"),
    ],
)
def test_a_link_that_can_not_be_is_refused(read: Read, link: str, problem: str) -> None:
    text = FLEET.replace("west.yaml]}", f"west.yaml], link: {link}}}")
    assert problems(read, text) == [f"fleet.workers.west.link.{problem}"]


@pytest.mark.parametrize(
    "given",
    [
        {"lost_requests": 1001},
        {"lost_answers": -1},
        {"least_ms": 30},
        {"most_ms": 5_000},
        {"timeout_ms": 40},
        {"timeout_ms": 2**63},
    ],
)
def test_link_settings_that_can_not_be_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="; give "):
        LinkSettings(**given)


def test_a_request_that_is_never_answered_is_tried_less_and_less_often() -> None:
    # It was tried every 10 s, for each look forgot that the request before had failed.
    base = read_scenario(EXAMPLES / "multikueue" / "scenario.yaml")
    assert base.fleet is not None
    deaf = {name: replace(worker, link=LinkSettings(lost_answers=1000)) for name, worker in base.fleet.workers.items()}
    fleet = replace(base.fleet, workers=deaf, disconnections=())
    n_steps: list[int] = []
    step = Fleet._step

    def counted(self: Fleet, time: int) -> None:
        n_steps.append(time)
        step(self, time)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fleet, "_step", counted)
        outcome = run_scenario(replace(base, fleet=fleet))
    assert outcome.ending is ScenarioEnding.COMPLETE
    assert len(n_steps) < 5_000


def test_an_empty_worker_is_not_looked_through_for_garbage_again_and_again() -> None:
    stores = {"": ObjectStore(), "west": ObjectStore()}
    settings = MultiKueueSettings(gc_interval_ns=60)
    garbage = GarbageCollection(stores, {}, {}, settings)
    assert (garbage.commands(0), garbage.next) == ([], 60)
    assert (garbage.commands(60), garbage.next) == ([], None)
    # Something new is looked at when the interval in which it came is over.
    stores["west"].put(
        {"kind": "Workload", "metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "1"}}
    )
    assert garbage.next == 120
    assert (garbage.commands(610), garbage.next) == ([], 660)


# Overrides.


@pytest.mark.parametrize("operation", RENAMED, ids=lambda entry: f"{entry['op']} {entry['path']}")
def test_an_override_that_makes_another_object_is_refused(read: Read, operation: dict[str, Any]) -> None:
    overrides = json.dumps({"east": [operation]})
    (problem,) = problems(read, FLEET + f"  policy: {{overrides: {overrides}}}\n")
    assert problem.startswith("fleet.policy.overrides.east: ")
    assert problem.endswith(" cannot be changed: the manager would not find the job")
    with pytest.raises(JsonPatchError, match="cannot be changed"):
        Overridden(AllAtOnce(), {"east": [operation]})


def test_an_override_may_test_what_the_job_is_called(read: Read) -> None:
    operation = {"op": "test", "path": "/metadata/name", "value": "train-1"}
    assert read(FLEET + f"  policy: {{overrides: {json.dumps({'east': [operation]})}}}\n").fleet is not None


@pytest.mark.parametrize(
    "patch",
    [
        {"kind": "Pod"},
        {"apiVersion": "v1"},
        {"metadata": {"name": "x"}},
        {"metadata": {"namespace": None}},
        {"metadata": 5},
    ],
)
def test_an_override_of_a_policy_of_ones_own_leaves_objects_what_they_are(patch: dict[str, Any]) -> None:
    for what in ("job", "workload"):
        with pytest.raises(ValueError, match=f"{what} is to stay what it is"):
            Override(**{what: patch})


# Endings.


class Wavering:
    """Nominates the one worker, then the other."""

    waits_for_checks = True

    def nominate(self, dispatch: Dispatch) -> Nomination:
        others = [
            cluster.name
            for cluster in dispatch.clusters
            if cluster.is_connected and cluster.name not in dispatch.nominated
        ]
        return Nomination(tuple(others[:1]))


class ForthAndBack:
    """Sends each job on to the other queue."""

    def look(self, job: Any, workload: Any, *, now: Any) -> Overflowing:
        queue = job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
        return Overflowing(queue="user-queue" if queue == "here" else "here")


class Impatient:
    """Wants to be asked again at a time that is over."""

    waits_for_checks = True

    def nominate(self, dispatch: Dispatch) -> Nomination:
        return Nomination(AllAtOnce().nominate(dispatch).clusters, look_again=0)


def example(name: str, **options: Any) -> Scenario:
    scenario = read_scenario(EXAMPLES / "multikueue" / name)
    assert scenario.fleet is not None
    return replace(scenario, fleet=replace(scenario.fleet, **options))


@pytest.mark.parametrize(
    "scenario",
    [example("scenario.yaml", dispatcher=Wavering()), example("overflow.yaml", overflow=ForthAndBack())],
    ids=["dispatcher", "overflow"],
)
def test_a_fleet_that_does_not_come_to_rest_says_so(scenario: Scenario) -> None:
    outcome = run_scenario(scenario)
    assert outcome.ending is ScenarioEnding.UNSETTLED
    assert outcome.notes[0].startswith("the fleet never settles at 2026-01-01T00:00:00Z: ")
    assert outcome.jobs


def test_a_fleet_whose_messages_take_no_time_says_so_too() -> None:
    scenario = example("overflow.yaml", dispatcher=TakingBack(inner=AllAtOnce(), start_ns=0, exclude_ns=0))
    assert scenario.fleet is not None
    at_once = LinkSettings(least_ms=0, most_ms=0)
    workers = {
        name: replace(worker, link=at_once, starts_pods=False) for name, worker in scenario.fleet.workers.items()
    }
    outcome = run_scenario(replace(scenario, fleet=replace(scenario.fleet, workers=workers)))
    assert outcome.ending is ScenarioEnding.UNSETTLED


def test_a_policy_that_wants_to_be_asked_in_the_past_is_asked_a_moment_later() -> None:
    outcome = run_scenario(example("scenario.yaml", dispatcher=Impatient()))
    assert (outcome.ending, outcome.all.n_finished) == (ScenarioEnding.COMPLETE, 12)


def test_a_fleet_of_ones_own_raises_where_it_does_not_come_to_rest() -> None:
    fleet = fleet_of(5, {"west": 3, "east": 3}, dispatcher=Wavering())
    with pytest.raises(UnsettledError, match="never settles"):
        fleet.submit(job("train", cpu=3), run_seconds=10)


def test_the_command_tells_that_a_fleet_does_not_come_to_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.py").write_text(
        "from kueuecore.multikueue import Nomination\n"
        "class Wavering:\n"
        "    waits_for_checks = True\n"
        "    def nominate(self, dispatch):\n"
        "        there = [it.name for it in dispatch.clusters if it.is_connected]\n"
        "        return Nomination(tuple(it for it in there if it not in dispatch.nominated)[:1])\n"
    )
    job = f"work: [{{job: {EXAMPLES}/multikueue/job.yaml, count: 2, every: 1m, runs: 10s}}]\n"
    text = f"apiVersion: kueuecore/v1\nkind: Scenario\n{FLEET}  policy: {{use: 'own:Wavering'}}\n{job}"
    (tmp_path / "scenario.yaml").write_text(text)
    arguments = ["simulate", str(tmp_path / "scenario.yaml"), "--allow-code"]
    assert main([*arguments, "-o", "json"]) == ExitCode.UNSETTLED
    assert json.loads(capsys.readouterr().out)["ending"] == "Unsettled"
    assert main(arguments) == ExitCode.UNSETTLED
    reported = capsys.readouterr()
    assert reported.out.startswith("1 job: 1 pending; stopped, as it never settles, after 0s\n")
    assert reported.err.startswith("note: the fleet never settles at 2026-01-01T00:00:00Z: ")


def test_a_job_that_ends_without_having_been_admitted_is_not_counted_as_minus_one_running(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = JobOutcome(work="a", job="Job/a", namespace="ns", created=0, finished=10**9)
    runs = JobOutcome(work="a", job="Job/b", namespace="ns", created=0, admitted=0)
    outcome = ScenarioOutcome(start=0, end=10**9, jobs=JobOutcomes.of([ended, runs]))
    monkeypatch.setattr("kueuecore.cli.commands.simulate.read_scenario", lambda *_, **__: Scenario())
    monkeypatch.setattr("kueuecore.cli.commands.simulate.run_scenario", lambda _, **__: outcome)
    assert main(["simulate", "scenario.yaml"]) == ExitCode.OK
    assert capsys.readouterr().out.startswith("2 jobs: 1 finished, 1 running; done after 1s\n")


# Arguments.


@pytest.mark.parametrize(
    ("make", "error", "problem"),
    [
        (lambda: Fleet("west", now=START), TypeError, "workers must be a sequence, not str"),
        (lambda: Fleet(range(10**12), now=START), TypeError, r"workers\[0\] must be a str, not int"),  # type: ignore[arg-type]
        (lambda: Fleet([""], now=START), ValueError, "a worker without a name"),
        (lambda: Fleet(["west", "west"], now=START), ValueError, "two workers have the same name"),
        (lambda: Fleet(["west"], now=START, seed=None), TypeError, "seed must be a whole number"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START, nodes={"east": NodeSettings()}), ValueError, "nodes.'east'.: there is no"),
        (lambda: Fleet(["west"], now=START, links={"east": LinkSettings()}), ValueError, "links.'east'.: there is no"),
        (lambda: Fleet(["west"], now=START, links={"west": 5}), TypeError, "links.'west'. must be a LinkSettings"),  # type: ignore[dict-item]
        (lambda: Fleet(["west"], now=START, settings=5), TypeError, "settings must be MultiKueueSettings"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START, dispatcher=5), TypeError, "dispatcher must be a Dispatcher"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START, overflow=5), TypeError, "overflow must be an OverflowPolicy"),  # type: ignore[arg-type]
        (lambda: NodeSettings(configuration=5), TypeError, "configuration must be a Configuration"),  # type: ignore[arg-type]
        (lambda: NodeSettings(capacity=5), TypeError, "capacity must be a CapacityProvider"),  # type: ignore[arg-type]
        (lambda: NodeSettings(starts_pods=5), TypeError, "starts_pods must be True or False"),  # type: ignore[arg-type]
        (lambda: Overflow({"a": "b"}, patience_ns=0.5), TypeError, "patience_ns must be a number"),  # type: ignore[arg-type]
        (lambda: Overflow({"a": "b"}, patience_ns=-1), ValueError, "patience_ns is -1"),
        (lambda: Fleet(["west"], now=START).cut("east"), ValueError, "there is no worker 'east'"),
        (lambda: Fleet(["west"], now=START).apply([], cluster="east"), ValueError, "there is no cluster 'east'"),
        (lambda: Fleet(["west"], now=START).cut({}), TypeError, "cluster must be a str"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START).objects([]), TypeError, "kind must be a str"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START).submit(5), TypeError, "job must be a Manifest, a dict"),  # type: ignore[arg-type]
        (lambda: Fleet(["west"], now=START).submit({"kind": "Secret"}), ValueError, "cannot run here"),
        (lambda: TakingBack(inner=AllAtOnce(), most_attempts=101), ValueError, "most_attempts is 101"),
        (lambda: TakingBack(inner=AllAtOnce(), exclude_ns=-1), ValueError, "exclude_ns is -1"),
    ],
)
def test_an_argument_that_can_not_be_is_refused(
    make: Callable[[], object], error: type[Exception], problem: str
) -> None:
    with pytest.raises(error, match=problem):
        make()


KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE: dict[str, Any] = {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {}}
NO_JOB: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}}


@pytest.mark.parametrize(
    ("odd", "field"),
    [
        ({**QUEUE, "spec": 5}, "spec"),
        ({**QUEUE, "spec": {"queueingStrategy": "X"}}, "spec.queueingStrategy"),
        ({**QUEUE, "metadata": 5}, "metadata"),
        ({**QUEUE, "kind": 5}, ""),
        ({"kind": "Namespace", "metadata": {"name": ""}}, "apiVersion"),
        ({**QUEUE, "spec": {"namespaceSelector": {"a": {1}}}}, "spec.namespaceSelector.a"),
        ({**NO_JOB, "spec": {"template": 5}}, "spec.template"),
    ],
    ids=range(7),
)
def test_a_fleet_takes_all_objects_of_a_call_or_none(odd: dict[str, Any], field: str) -> None:
    fleet = Fleet(["west"], now=START)
    with pytest.raises(ManifestError) as caught:
        fleet.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}, odd])
    assert field in [problem.field for problem in caught.value.problems]
    assert fleet.objects("Namespace") == []
    # What the cluster could not read it could never again do anything about.
    fleet.wait(5)


def test_a_fleet_keeps_copies() -> None:
    fleet = Fleet(["west"], now=START)
    queue = {**QUEUE, "spec": {"namespaceSelector": {}}}
    fleet.apply(queue)
    queue["spec"]["namespaceSelector"]["matchLabels"] = 5
    assert fleet.objects("ClusterQueue")[0]["spec"] == {"namespaceSelector": {}}


def test_a_queue_of_another_group_is_none_of_kueues() -> None:
    fleet = Fleet(["west"], now=START)
    fleet.apply({**QUEUE, "apiVersion": "example.com/v1"}, cluster="west")
    fleet.wait(5)
    assert "status" not in fleet.objects("ClusterQueue", cluster="west")[0]
