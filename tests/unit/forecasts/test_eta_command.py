"""`kueuecore eta` on the command line."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.cli.progress import ticking
from kueuecore.manifests import Manifest
from scripts.eta_example import example
from tests.command import Ran
from tests.unit.forecasts.present_states import NOW, QUEUES, START, finished, workload

EXAMPLE = Path(__file__).parents[3] / "examples" / "eta"
QUICK = ("--workers", "1", "--seeds", "5")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore eta` on a state of some Workloads."""

    def run(*arguments: str, workloads: tuple[object, ...] = ()) -> Ran:
        code = main(["eta", state(tmp_path, *workloads), *arguments, *QUICK])
        return Ran(code, *capsys.readouterr())

    return run


def state(folder: Path, *workloads: object) -> str:
    plain = "".join(f"---\n{json.dumps(other.object)}\n" for other in workloads)  # type: ignore[attr-defined]
    file = folder / "dump.yaml"
    file.write_text(QUEUES + plain, encoding="utf-8")
    return str(file)


WAITING = (workload("runs", created=600, admitted=600), workload("waits", created=30), workload("big", cpu=9))
HOUR = ("--run-seconds", "1h", "--arrivals", "none", "--now", NOW)


def test_the_forecast_of_one_workload_has_times_and_assumptions(run: Callable[..., Ran]) -> None:
    assert run("waits", *HOUR, workloads=WAITING) == Ran(
        ExitCode.OK,
        """\
ns/waits waits at 2026-01-05T12:00:00Z; of 5 futures all admit it within 30d

FUTURES  WITHIN  BY
    10%  50m00s  2026-01-05T12:50:00Z
    50%  50m00s  2026-01-05T12:50:00Z
    90%  50m00s  2026-01-05T12:50:00Z

not checked against the past, as run times, arrivals or changes are given: each future counts the same

assumed:
- 1 workload holds quota and 2 wait; run times are as in the table
- no more workloads arrive
- an evicted job starts over; admission checks are ready at once
- quotas, queues and nodes stay as they are, unless a scenario changes them

LOCAL QUEUE  PRIORITY  RUN TIMES FROM  FINISHED  RUNNING  MEDIAN
ns/lq             any  given                  -        -       -
""",
        "",
    )


def test_without_a_name_there_is_a_row_for_all_that_wait(run: Callable[..., Ran]) -> None:
    ran = run(*HOUR, "--quantiles", "25,75", "--horizon", "40m", workloads=WAITING)
    table = ran.out.split("\n\n")[1].splitlines()
    assert table[0].split() == ["WORKLOAD", "STATUS", "25%", "75%", "NOT", "ADMITTED", "MESSAGE"]
    assert table[1].split()[:7] == ["ns/waits", "Pending", "over", "40m00s", "over", "40m00s", "100%"]
    assert table[2].startswith(
        "ns/big    Pending  over 40m00s  over 40m00s          100%  never: couldn't assign flavors"
    )


def test_json_has_each_future(run: Callable[..., Ran]) -> None:
    document = json.loads(run("waits", "runs", "big", *HOUR, "-o", "json", workloads=WAITING).out)
    waits, runs, big = document["workloads"]
    assert waits["draws"] == [pytest.approx(3000.0)] * 5
    assert waits["quantiles"][1] == {"percent": 50.0, "seconds": waits["draws"][0], "time": "2026-01-05T12:50:00Z"}
    assert (waits["futures"], waits["isCalibrated"], waits["bounds"]) == (waits["quantiles"], False, None)
    assert (document["record"], document["nMoments"], document["unknown"]) == (None, 0, None)
    assert (waits["shareNotAdmitted"], waits["never"], waits["job"]) == (0.0, None, None)
    assert (runs["status"], runs["since"], runs["quantiles"]) == ("Admitted", "2026-01-05T11:50:00Z", [])
    assert (big["draws"], big["quantiles"][0]["seconds"], big["shareNotAdmitted"]) == ([None] * 5, None, 1.0)
    assert document["assumptions"]["arrivals"] == []
    assert document["assumptions"]["runTimes"][0]["source"] == "Given"
    assert (document["futures"], document["futuresAsked"]) == (5, 5)
    assert (document["now"], document["horizonSeconds"], document["seeds"]) == (NOW, 2592000.0, [0, 1, 2, 3, 4])


def test_an_admitted_or_finished_workload_needs_no_forecast(run: Callable[..., Ran]) -> None:
    given = (*WAITING, *finished(1))
    assert run("runs", *HOUR, workloads=given).out == "ns/runs is admitted since 2026-01-05T11:50:00Z\n"
    assert run("done-lq-0-0", *HOUR, workloads=given).out == "ns/done-lq-0-0 has finished since 2026-01-05T11:59:59Z\n"


def test_a_workload_that_never_fits_says_why(run: Callable[..., Ran]) -> None:
    out = run("big", *HOUR, workloads=WAITING).out
    assert out.startswith("ns/big will never be admitted as things are, not even in an empty cluster: couldn't assign")


def test_if_nothing_waits_there_is_no_forecast(run: Callable[..., Ran]) -> None:
    assert run(*HOUR, workloads=WAITING[:1]).out == "no workload is waiting\n"


def test_a_dump_may_come_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(state(tmp_path, *WAITING)).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text), closed=False))
    assert main(["eta", "-", "waits", *HOUR, *QUICK]) == ExitCode.OK
    assert "50%  50m00s" in capsys.readouterr().out


def test_a_state_may_be_a_scenario(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state(tmp_path, *WAITING)
    file = tmp_path / "scenario.yaml"
    parts = "cluster: {objects: [dump.yaml]}, present: {runs: 5m, waitingRuns: 5m}"
    text = f"{{apiVersion: kueuecore/v1, kind: Scenario, {parts}}}"
    file.write_text(text, encoding="utf-8")
    assert main(["eta", str(file), "waits", "--arrivals", "none", *QUICK]) == ExitCode.OK
    assert "50%   5m00s" in capsys.readouterr().out
    assert main(["eta", str(file), "waits", "--now", NOW]) == ExitCode.BAD_INPUT
    assert "--now works with a dump only; set `start` in the scenario" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (("wait", *HOUR), 'there is no workload "wait"; write ns/waits'),
        (("--run-seconds", "{men: 5m}"), "--run-seconds: not a duration"),
        (("--run-seconds", "soon"), '--run-seconds: not a duration: "soon"'),
        (("--run-seconds", "lq=5m"), "--run-seconds: no Workload is in a queue lq; write one of cq, ns/lq"),
        (("--horizon", "soon"), "'soon' is not a duration above 0"),
        (("--quantiles", "0,50"), "'0,50' is not a list of percentages between 0 and 100"),
        (("--now", "soon"), "'soon' is not a time"),
    ],
)
def test_problems_are_reported_with_a_remedy(
    run: Callable[..., Ran], arguments: tuple[str, ...], reported: str
) -> None:
    ran = run(*arguments, workloads=WAITING)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert reported in ran.err
    assert "Traceback" not in ran.err


BOUNDED = (
    workload("small", cpu=1, created=500, admitted=400),
    workload("large", cpu=2, created=600, admitted=600),
    workload("other", cpu=1, created=500, admitted=400),
    workload("waits", cpu=2, created=30),
)


def test_if_nothing_says_how_long_jobs_run_there_are_bounds(run: Callable[..., Ran]) -> None:
    assert run("waits", "--now", NOW, workloads=BOUNDED) == Ran(
        ExitCode.OK,
        """\
ns/waits waits at 2026-01-05T12:00:00Z; nothing says when it is admitted, but

- not before 1 of the 3 workloads that hold quota ends; enough would be ns/large

no forecast: no Workload has finished, so nothing says how long jobs run; assume a run time, such as \
--run-seconds '{mean: 30m}'
""",
        "",
    )
    document = json.loads(run("waits", "--now", NOW, "-o", "json", workloads=BOUNDED).out)
    (waits,) = document["workloads"]
    before = {"ends": 1, "isExact": True, "holding": 3, "goFirst": 0, "workloads": ["ns/large"]}
    assert waits["bounds"] == {"notBefore": before, "latest": None, "pastWaits": None}
    assert (waits["quantiles"], waits["futures"], waits["draws"], document["futures"]) == ([], [], [], 0)
    assert document["unknown"].startswith("no Workload has finished")


def test_bounds_of_several_workloads_name_them(run: Callable[..., Ran]) -> None:
    out = run("--now", NOW, workloads=(*BOUNDED, workload("all", cpu=4, created=10))).out
    assert "2 workloads at 2026-01-05T12:00:00Z\n" in out
    assert "however long jobs run, the admission of ns/all is\n- not before all 3 workloads that hold quota end" in out


def test_with_time_limits_there_is_a_latest_time_beside_a_forecast(run: Callable[..., Ran]) -> None:
    running = [Manifest(json.loads(json.dumps(each.object))) for each in BOUNDED[:3]]
    for each in running:
        each.object["spec"]["maximumExecutionTimeSeconds"] = 3600  # type: ignore[index,call-overload]
    given = [*running, *BOUNDED[3:], *finished(2)]
    out = run("waits", "--now", NOW, workloads=tuple(given)).out
    heading = "however long jobs run, the admission is\n- not before 1 of the 3"
    assert out.startswith("ns/waits waits at 2026-01-05T12:00:00Z; of 5 futures all admit it within 30d\n\nCHANCE")
    assert heading in out
    assert "- at the latest 2026-01-05T12:50:00Z, in 50m00s, if nobody arrives and no job runs beyond its time" in out
    assert "no past wait was compared: the intervals are corrected by what was seen on other clusters" in out


def test_past_waits_of_prometheus_are_a_bound(tmp_path: Path, run: Callable[..., Ran]) -> None:
    file = tmp_path / "waits.json"
    name, start = "kueue_admission_wait_time_seconds_bucket", START // 10**9
    rows = [
        {
            "metric": {"__name__": name, "cluster_queue": "cq", "le": le},
            "values": [[start - 7200, "0"], [start - 3600, n]],
        }
        for le, n in (("60", "6"), ("600", "9"), ("+Inf", "10"))
    ]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}})
    file.write_text(text, encoding="utf-8")
    ran = run("waits", "--now", NOW, "--history", str(file), workloads=BOUNDED)
    assert "- of 10 past waits in ClusterQueue cq, 50 % were at most 1m00s, 80 % were at most 10m00s\n" in ran.out


def test_it_says_how_forecasts_of_the_past_turned_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eta", str(EXAMPLE), "train-73", "--workers", "1", "--seeds", "20", "-q"]
    assert main(command) == ExitCode.OK
    top, _, trust, *_ = capsys.readouterr().out.split("\n\n")
    held = re.fullmatch(r".*; (\d+) of 10 such forecasts held", top)
    assert held is not None
    found = re.fullmatch(
        r"checked against this cluster's past: (\d+) of (\d+) such 80% intervals held, (\d+) waits were shorter, "
        r"(\d+) longer",
        trust,
    )
    assert found is not None
    n_held, n, n_early, n_late = map(int, found.groups())
    assert n_held + n_early + n_late == n >= 30
    assert int(held[1]) == round(10 * n_held / n)
    assert main([*command, "-o", "json", "--backtest", "5"]) == ExitCode.OK
    few = json.loads(capsys.readouterr().out)
    assert 0 < few["nMoments"] <= 5
    assert few["record"]["nHeld"] + few["record"]["nEarly"] + few["record"]["nLate"] == few["record"]["n"] < 30
    assert main([*command, "--backtest", "5"]) == ExitCode.OK
    assert f"\n\nonly {few['record']['n']} past waits could be compared" in capsys.readouterr().out
    assert main([*command, "--backtest", "0"]) == ExitCode.OK
    assert "\n\nno past wait was compared: " in capsys.readouterr().out


def test_doubts_go_to_standard_error_unless_quiet(run: Callable[..., Ran]) -> None:
    given = (*WAITING, *finished(3))
    reported = "warning: only 3 jobs of ns/lq finished: run times are a guess\n"
    assert run("waits", "--now", NOW, workloads=given).err == reported
    assert run("waits", "--now", NOW, "-q", workloads=given).err == ""


def test_the_state_of_the_example_is_what_its_program_writes() -> None:
    assert (EXAMPLE / "workloads.yaml").read_text(encoding="utf-8") == example()


def test_it_stops_at_its_budget_with_twenty_futures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["eta", state(tmp_path, *WAITING), "waits", *HOUR, "--workers", "1", "--budget", "0.000001"]
    assert main(command) == ExitCode.OK
    out = capsys.readouterr().out
    assert "; of 20 futures all admit it" in out
    assert "stopped after 20 of 200 futures; --budget gives it more time" in out
    assert main([*command, "-o", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["futures"], document["futuresAsked"]) == (20, 200)
    assert main(["eta", state(tmp_path, *WAITING), "waits", *HOUR, "--workers", "1", "--seeds", "22"]) == ExitCode.OK
    assert "; of 22 futures all admit it" in capsys.readouterr().out


def test_answers_on_the_way_go_to_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kueuecore.cli.commands.eta.monotonic", count(step=10).__next__)
    command = ["eta", state(tmp_path, *WAITING), "waits", *HOUR, "--workers", "1", "--seeds", "50"]
    assert main(command) == ExitCode.OK
    lines = capsys.readouterr().err.splitlines()
    assert "after 20 of 50 futures: ns/waits: 10% within 50m00s, 50% within 50m00s, 90% within 50m00s" in lines
    assert main([*command, "-q"]) == ExitCode.OK
    assert capsys.readouterr().err == ""


def test_a_thread_says_how_far_it_is_whatever_the_program_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kueuecore.cli.progress._LINE_SECONDS", 0.001)
    said = Event()

    def line() -> str:
        said.set()
        return "7 of 50 futures played"

    with ticking(line, quiet=False):
        assert said.wait(60)
    assert capsys.readouterr().err.splitlines()[0] == "7 of 50 futures played"
    with ticking(lambda: "hidden", quiet=True):
        pass
    assert capsys.readouterr().err == ""


def test_a_future_in_which_too_much_happens_is_not_looked_at_to_its_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kueuecore.forecasts.futures._ENOUGH_STEPS", 10)
    monkeypatch.setattr("kueuecore.forecasts.futures._STEPS_OF_AN_OBJECT", 0)
    many = (*WAITING[:1], *(workload(f"w{n:02}", created=60 - n) for n in range(30)))
    command = ["eta", state(tmp_path, *many), "w29", *HOUR, "--workers", "1", "--seeds", "2"]
    assert main(command) == ExitCode.OK
    out = capsys.readouterr().out
    assert "--horizon sets how far to look" in out
    assert "2 do not admit it within " in out
    assert main([*command, "--horizon", "30d"]) == ExitCode.OK
    assert "of 2 futures all admit it within 30d" in capsys.readouterr().out
