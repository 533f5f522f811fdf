"""The history of workloads of our own runs: cycles on a state, virtual time, and scenarios."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Engine, World, read_manifests, settle, simulate
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.histories import Timeline, What, history_of_cycles, history_of_run, history_of_versions
from kueuecore.objects import ClusterQueuePreemption
from kueuecore.scenarios import ScenarioOutcome, WorkloadVersion, read_scenario, run_scenario
from kueuecore.simulation import Happening, JobPlan, Operation
from kueuecore.times import nanoseconds
from tests.quotas import NEWER, queue, world
from tests.quotas import at as time_at
from tests.quotas import job as quota_job
from tests.unit.histories.recorded_objects import OTHER_UID, at, preempted_at, workload

EXAMPLES = Path(__file__).parents[3] / "examples"
START = "2026-01-01T00:00:00Z"
QUEUES = World.of(read_manifests(EXAMPLES / "scenario" / "queues.yaml")).manifests


def told(timeline: Timeline) -> list[tuple[float, What, str]]:
    start = nanoseconds(START)
    return [((step.at - start) / 1e9, step.what, step.by) for step in timeline.steps if step.at is not None]


def coming(name: str, second: int, *, team: str = "team-a", cpu: int = 8) -> Happening:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    plain: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": team, "name": name},
        "spec": {"queueName": "lq", "podSets": [pod_set]},
    }
    return Happening(at=second, op=Operation.CREATE, object=plain, plan=JobPlan(run_seconds=60))


def test_a_run_through_virtual_time_knows_who_preempted_whom_and_why_it_waited() -> None:
    events = [coming("big", 0), coming("mine", 10, team="team-b", cpu=4)]
    run = simulate(QUEUES, events, now=START, messages=True, cycles=False)
    victim = history_of_run(run, "team-a/big", job="Job team-a/b")
    assert told(victim) == [
        (0, What.CREATED, ""),
        (0, What.QUOTA_RESERVED, ""),
        (0, What.ADMITTED, ""),
        (10, What.PREEMPTED, "team-b/mine"),
        (10, What.RELEASED, ""),
        (11, What.WAITING, ""),
        (12, What.WAITING, ""),
        (71, What.QUOTA_RESERVED, ""),
        (71, What.ADMITTED, ""),
        (131, What.FINISHED, ""),
    ]
    sentences = [step.sentence for step in victim.steps]
    assert sentences[0] == "created for Job team-a/b, queued in LocalQueue lq of ClusterQueue team-a with priority 0"
    assert sentences[1] == "gets quota in ClusterQueue team-a (cpu on default)"
    assert sentences[3] == "preempted by team-b/mine: team-b takes back quota of its own that team-a has borrowed"
    assert (victim.stage, victim.missing) == ("Finished", ())
    ours = history_of_run(run, "team-b/mine")
    assert [step.sentence for step in ours.steps if step.what is What.PREEMPTS] == [
        "preempts team-a/big in ClusterQueue team-a"
    ]
    again = pickle.loads(pickle.dumps(run))
    assert again == run
    assert history_of_run(again, "team-a/big") == history_of_run(run, "team-a/big")


def test_a_run_without_messages_says_what_it_lacks() -> None:
    events = [coming("big", 0), coming("mine", 10, team="team-b", cpu=4)]
    timeline = history_of_run(simulate(QUEUES, events, now=START, finished=False), "team-a/big")
    assert [what for _, what, _ in told(timeline) if what in (What.PREEMPTED, What.WAITING)] == [What.PREEMPTED]
    assert timeline.missing == (
        "the run kept no messages: they say why it waited, and why it was evicted if it was not preempted",
    )
    assert timeline.stage == "Finished"
    assert timeline.steps[0].sentence == "created, queued in ClusterQueue team-a"


def test_a_workload_that_is_not_in_the_run_is_unknown() -> None:
    with pytest.raises(UnknownObjectError, match="team-a/none"):
        history_of_run(simulate(QUEUES, [coming("big", 0)], now=START), "team-a/none")


def test_cycles_are_told_with_what_the_conditions_said_before() -> None:
    loaded = World.of(read_manifests(EXAMPLES / "taking-back"))
    engine, now = Engine(), loaded.newest_time()
    assert now is not None
    loaded.apply_to(engine, now=now)
    settled = settle(engine, now=now)
    assert [at_ for at_, _ in settled.log] == [now] * len(settled.log)
    given = loaded.workload("sweep", namespace="team-b")
    timeline = history_of_cycles(settled, engine.workload("sweep", namespace="team-b"), workload=given)
    assert [(str(step.what), step.by) for step in timeline.steps] == [
        ("Created", ""),
        ("QuotaReserved", ""),
        ("Admitted", ""),
        ("Preempted", "team-a/job-release-build-5ad41"),
        ("QuotaReleased", ""),
        ("Requeued", ""),
        ("Waiting", ""),
    ]
    assert timeline.steps[3].sources == (
        "condition Evicted",
        "condition Preempted",
        "cycle 1: EvictedDueToPreempted",
        "cycle 1: Preempted",
    )


def test_who_preempts_in_a_cycle_is_told_whom() -> None:
    engine = world(queue("ours", {"f": "500m"}, preemption=ClusterQueuePreemption(within_cluster_queue=NEWER)))
    engine.apply(quota_job("old", "400m", "ours", created=30), now=time_at(30))
    settle(engine, now=time_at(31))
    engine.apply(quota_job("new", "400m", "ours", created=1), now=time_at(40))
    settled = settle(engine, now=time_at(40))
    old, new = (history_of_cycles(settled, engine.workload(name, namespace="ns")) for name in ("old", "new"))
    (preempted,) = [step for step in old.steps if step.what is What.PREEMPTED]
    assert (preempted.by, preempted.rule) == ("ns/new", "04 §2")
    assert preempted.sentence == (
        "preempted by ns/new: ns/new goes first in ours: among equal priorities it has waited longer"
    )
    assert [step.sentence for step in new.steps if step.what is What.PREEMPTS] == [
        "preempts ns/old in ClusterQueue ours"
    ]


@pytest.fixture(scope="module")
def outcome() -> ScenarioOutcome:
    scenario = read_scenario(EXAMPLES / "multikueue" / "scenario.yaml")
    return run_scenario(scenario, follow=["team/train-3"])


def test_a_fleet_keeps_all_versions_of_what_it_follows(outcome: ScenarioOutcome) -> None:
    assert list(outcome.versions) == ["team/job-train-3-0b5ad"]
    assert {version.cluster for version in outcome.versions["team/job-train-3-0b5ad"]} == {"", "east", "west"}
    timeline = history_of_versions(outcome.versions["team/job-train-3-0b5ad"], keys=outcome.workload_keys)
    assert (timeline.key, timeline.stage) == ("team/job-train-3-0b5ad", "Finished")
    steps = [(str(step.what), step.cluster) for step in timeline.steps]
    # In the east it ends while the link is cut, so the manager hears of it later.
    assert [what for what, cluster in steps if not cluster] == [
        "Created",
        "QuotaReserved",
        "AdmissionCheck",
        "Waiting",
        "AdmissionCheck",
        "Admitted",
        "Finished",
    ]
    assert ("Deleted", "west") in steps
    assert steps.index(("Finished", "east")) < steps.index(("Finished", ""))
    assert timeline.count(What.ADMITTED) == 1


def test_following_changes_nothing_else(outcome: ScenarioOutcome) -> None:
    plain = run_scenario(read_scenario(EXAMPLES / "multikueue" / "scenario.yaml"))
    assert plain.versions == {}
    assert plain.jobs == outcome.jobs


def test_a_checkpoint_cannot_save_histories(tmp_path: Path) -> None:
    from kueuecore.simulation import Checkpoint

    scenario = read_scenario(EXAMPLES / "scenario" / "scenario.yaml")
    with pytest.raises(ManifestError, match="a checkpoint cannot save histories"):
        run_scenario(scenario, checkpoint=Checkpoint(path=tmp_path / "c"), follow=["team-b/large-1"])


def test_each_version_adds_what_is_new() -> None:
    first, second = workload(), workload(*preempted_at(120, 120))
    versions = [
        WorkloadVersion(time=nanoseconds(at(0)), cluster="", object=first),
        WorkloadVersion(time=nanoseconds(at(120)) + 5, cluster="", object=second),
        WorkloadVersion(time=nanoseconds(at(121)), cluster="", object=second),
        WorkloadVersion(time=nanoseconds(at(130)), cluster="", object=second, is_deleted=True),
    ]
    timeline = history_of_versions(versions, keys={OTHER_UID: "lab/urgent"})
    start = nanoseconds(at(0))
    assert [((step.at or 0) - start, str(step.what), step.by) for step in timeline.steps] == [
        (0, "Created", ""),
        (120 * 10**9 + 5, "Preempted", "lab/urgent"),
        (120 * 10**9 + 5, "QuotaReleased", ""),
        (120 * 10**9 + 5, "Requeued", ""),
        (130 * 10**9, "Deleted", ""),
    ]
    assert timeline.stage == "Deleted"
    with pytest.raises(ValueError, match="versions: there is none"):
        history_of_versions([])
