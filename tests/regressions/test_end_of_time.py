"""Times that 64 bits of nanoseconds do not hold were clamped, or ended in wrong outcomes and in tracebacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kueuecore import simulate
from kueuecore.errors import ManifestError, OutOfTimeError
from kueuecore.fleet import Fleet
from kueuecore.manifests import JsonObject, Manifest
from kueuecore.multikueue import MANAGER
from kueuecore.scenarios import ClusterPart, Disconnection, FleetPart, Scenario, Span, Work, WorkerPart, run_scenario
from kueuecore.simulation import Happening, JobPlan, Operation, StepKind, VirtualCluster
from kueuecore.submissions import Submissions
from kueuecore.times import END_NS, SECOND_NS, nanoseconds
from tests.regressions.scenarios import CLUSTER, FLEET, Read, problems
from tests.unit.test_simulation import NOW, QUEUES, workload

START = nanoseconds(NOW)
CENTURY = 100 * 365 * 86400.0
# From the beginning to the end of time.
LEFT = (END_NS - START) // SECOND_NS


def create(name: str, at: float = 0, **plan: Any) -> Happening:
    return Happening(at=at, op=Operation.CREATE, object=workload(name), plan=JobPlan(**plan))


def stepped(events: Sequence[Happening], **options: Any) -> None:
    cluster = VirtualCluster(QUEUES, now=options.pop("now", NOW), **options)
    cluster.schedule(events)
    cluster.advance()


def ran(events: Sequence[Happening], **options: Any) -> None:
    simulate(QUEUES, events, now=options.pop("now", NOW), **options)


BOTH = pytest.mark.parametrize("run", [ran, stepped])
Run = Callable[..., None]


@BOTH
@pytest.mark.parametrize("now", [-1, -(2**63), 2**63 - 1, 2**63, "1969-12-31T23:59:59Z", "2262-04-12T00:00:00Z"])
def test_nothing_begins_before_1970_or_after_2262(run: Run, now: Any) -> None:
    with pytest.raises(ValueError, match=r"1970 to April 2262|64 bits"):
        run([create("a", run_seconds=5)], now=now)


@BOTH
@pytest.mark.parametrize("name", ["at", "run_seconds"])
@pytest.mark.parametrize("seconds", [-1, math.inf, -math.inf, math.nan, 1e300, 10**400, LEFT + 1])
def test_what_does_not_fit_into_time_is_refused(run: Run, name: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"at|seconds|Seconds|Infinity|NaN"):
        run([create("a", **{name: seconds})])


@BOTH
@pytest.mark.parametrize("plan", [{"ready_seconds": [None, LEFT]}, {"ready_seconds": [1], "fail_seconds": LEFT}])
def test_what_pods_do_has_to_fit_into_time_from_the_moment_on_at_which_they_come(run: Run, plan: Any) -> None:
    with pytest.raises(ValueError, match="2262"):
        run([create("a", at=60, **plan)])


def test_a_time_beyond_its_end_is_told_by_field() -> None:
    with pytest.raises(ManifestError) as error:
        ran([create("a", at=CENTURY, run_seconds=2 * CENTURY)])
    assert error.value.field == "runSeconds"


@BOTH
def test_a_queue_that_leads_beyond_the_end_of_time_is_told(run: Run) -> None:
    # One after the other; each of them would fit. The second was said to end at the end of time.
    with pytest.raises(OutOfTimeError, match="past April 2262"):
        run([create("a", run_seconds=LEFT - 60), create("b", run_seconds=LEFT - 60)])


@BOTH
@pytest.mark.parametrize("span", ["cycle_seconds", "eviction_seconds"])
def test_a_cycle_and_an_eviction_have_to_end_in_time(run: Run, span: str) -> None:
    urgent = Happening(at=5, op=Operation.CREATE, object=workload("b", priority=9), plan=JobPlan(run_seconds=5))
    with pytest.raises(OutOfTimeError):
        run([create("a"), urgent], **{span: float(LEFT)})


def test_a_step_beyond_the_end_of_time_changes_nothing() -> None:
    cluster = VirtualCluster(QUEUES, now=NOW)
    cluster.submit(workload("a"), JobPlan(run_seconds=LEFT - 60))
    cluster.submit(workload("b"), JobPlan(run_seconds=LEFT - 60))
    # Before that all goes well.
    assert [step.kind for step in cluster.advance("2026-01-02T00:00:00Z")] == [StepKind.ADMITTED]
    with pytest.raises(OutOfTimeError):
        cluster.advance()
    before = cluster.now, cluster.steps
    with pytest.raises(OutOfTimeError):
        cluster.step()
    assert (cluster.now, cluster.steps) == before


@pytest.mark.parametrize("run_seconds", [-1, math.nan, math.inf, LEFT + 1])
def test_a_job_that_is_refused_leaves_no_workload(run_seconds: float) -> None:
    cluster = VirtualCluster(QUEUES, now=NOW)
    with pytest.raises(ValueError, match="run_seconds"):
        cluster.submit(workload("a"), JobPlan(run_seconds=run_seconds))
    assert (cluster.object("Workload", "a", namespace="ns"), cluster.next_event_time) == (None, None)


@pytest.mark.parametrize(
    "columns", [{"at": -1.0}, {"at": [CENTURY - 1], "run_seconds": 2 * CENTURY}, {"run_seconds": -1.0}]
)
def test_submissions_have_to_fit_into_time(columns: Any) -> None:
    rows = Submissions(namespace="ns", local_queues=["lq"], queue=[0], requests={"cpu": 1000}, **columns)
    with pytest.raises(ValueError, match=r"at: |run_seconds: "):
        simulate(QUEUES, submissions=[rows], now=NOW)
    late = replace(rows, at=0.0, run_seconds=50 * 365 * 86400.0)
    with pytest.raises(ValueError, match="run_seconds: must end before April 2262"):
        simulate(QUEUES, submissions=[late], now="2220-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('start: "1969-12-31T23:59:59Z"\n', 'start: Invalid value: "1969-12-31T23:59:59Z"'),
        ('start: "2262-04-12T00:00:00Z"\n', 'start: Invalid value: "2262-04-12T00:00:00Z"'),
        ("until: 250y\n", 'until: not a duration: "250y"'),
        ("until: 2500000h\n", "until: until is 9000000000.0, which goes past April 2262"),
        ("work: [{job: job.yaml, at: 2500000h}]\n", "work[0].at: at is 9000000000.0, which goes past April 2262"),
        (
            "work: [{job: job.yaml, runs: 2500000h}]\n",
            "work[0].runs: runs is 9000000000.0, which goes past April 2262",
        ),
        (
            "work: [{job: job.yaml, count: 3, every: 1100000h}]\n",
            "work[0].every: every is 7920000000.0, which goes past April 2262",
        ),
        # Each of them would fit; eight run at a time.
        ("work: [{job: job.yaml, count: 30, runs: 1000000h}]\n", "start: the scenario runs past April 2262"),
    ],
)
def test_a_scenario_has_to_fit_into_time(read: Read, text: str, problem: str) -> None:
    assert problems(read, CLUSTER + text) == [problem]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("  disconnections: [{worker: east, at: 2500000h}]\n", "at: at is 9000000000.0, which goes past April 2262"),
        (
            "  disconnections: [{worker: east, at: 1h, lasts: 2500000h}]\n",
            "lasts: lasts is 9000000000.0, which goes past April 2262",
        ),
    ],
)
def test_disconnections_have_to_fit_into_time(read: Read, text: str, problem: str) -> None:
    assert problems(read, FLEET + text) == [f"fleet.disconnections[0].{problem}"]


def test_the_day_after_the_last_thing_in_a_fleet_has_to_fit_into_time(read: Read) -> None:
    start = 'start: "2262-04-11T00:00:00Z"\n'
    assert problems(read, FLEET + start) == ["start: the scenario runs past April 2262"]
    assert not run_scenario(read(FLEET + start + "until: 1h\n")).jobs


@pytest.mark.parametrize(
    ("scenario", "field"),
    [
        (Scenario(start=-1), "start"),
        (Scenario(until_seconds=math.nan), "until"),
        (Scenario(work=(Work(name="a", job=Manifest({}), at=-1.0),)), "work[0].at"),
        (Scenario(work=(Work(name="a", job=Manifest({}), count=2, every=Span(math.inf)),)), "work[0].every"),
        (Scenario(work=(Work(name="a", job=Manifest({}), runs=Span(math.nan)),)), "work[0].runs"),
        (
            Scenario(
                start=START,
                fleet=FleetPart(
                    manager=ClusterPart(),
                    workers={"west": WorkerPart(cluster=ClusterPart())},
                    disconnections=(Disconnection(worker="west", at=5.0, lasts=-1.0),),
                ),
            ),
            "fleet.disconnections[0].lasts",
        ),
    ],
)
def test_a_scenario_that_is_made_in_python_has_to_fit_into_time(scenario: Scenario, field: str) -> None:
    with pytest.raises(ManifestError) as error:
        run_scenario(scenario)
    assert error.value.field == field


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf, 1e300, LEFT + 1])
def test_a_fleet_waits_for_spans_that_fit_into_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds is "):
        Fleet(["west"], now=NOW).wait(seconds)


def test_a_fleet_does_not_begin_before_1970(read: Read) -> None:
    with pytest.raises(ValueError, match="1970 to April 2262"):
        Fleet(["west"], now=-1)
    # Its workers connect before the beginning; a controller took that time for one that is over.
    start = 'start: "1970-01-01T00:00:09Z"\n'
    assert problems(read, FLEET + start) == ["start: a fleet starts ten seconds before its scenario"]


def test_the_time_of_a_fleet_does_not_go_backwards() -> None:
    fleet = Fleet(["west"], now=NOW)
    with pytest.raises(ValueError, match="until is 2025-01-01T00:00:00Z, which is over"):
        fleet.advance("2025-01-01T00:00:00Z")
    assert fleet.nodes[MANAGER].api.now == fleet.now == START


@pytest.mark.parametrize("run_seconds", [-1, math.nan, math.inf, 1e300])
def test_a_job_of_a_fleet_runs_for_a_span_of_time(run_seconds: float) -> None:
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "namespace": "ns"},
        "spec": {},
    }
    fleet = Fleet(["west"], now=NOW)
    with pytest.raises(ValueError, match="run_seconds is "):
        fleet.submit(job, run_seconds=run_seconds)
    assert fleet.objects("Job") == []


def test_a_fleet_in_which_nothing_happens_goes_through_a_century_at_once() -> None:
    fleet = Fleet(["west"], now=NOW)
    fleet.wait(CENTURY)
    assert fleet.n_steps < 10
