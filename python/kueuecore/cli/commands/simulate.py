"""`kueuecore simulate`: runs a scenario in virtual time, and reports tables or JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject, JsonValue
from kueuecore._numbers import number_text
from kueuecore._spans import seconds, span
from kueuecore._text import counted, shown
from kueuecore.cli.documents import document_head, experiments_document, release_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.experiment_option import add_experiments, asked_experiments, with_experiments
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.options import HISTORY_HELP, add_style, seed, step_seconds
from kueuecore.cli.output_files import remove, require_folder, write_with_files
from kueuecore.cli.pages import require_page, write_page
from kueuecore.cli.progress import ctrl_c_raises, job_progress
from kueuecore.cli.streams import OutputError, output, to_stderr
from kueuecore.cli.table import Style, table
from kueuecore.errors import ManifestError
from kueuecore.report import FleetReport, Report
from kueuecore.report.framed import Framed
from kueuecore.results import Results
from kueuecore.scenarios import (
    Scenario,
    ScenarioEnding,
    ScenarioOutcome,
    Waits,
    read_scenario,
    run_scenario,
    waits_by,
)
from kueuecore.simulation import Checkpoint
from kueuecore.times import SECOND_NS, format_time

if TYPE_CHECKING:
    from kueuecore.scenarios import FleetResults

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Runs a scenario in virtual time until nothing is left to happen, and shows what became of each
job and how long jobs waited. The same scenario and seed always give the same result.
docs/scenarios.md describes the file."""

EXAMPLES = """\
  kueuecore simulate examples/scenario/scenario.yaml
  kueuecore simulate scenario.yaml --seed 2 -o wide   another seed, and a row for every job
  kueuecore simulate scenario.yaml -o json | jq '.clusterQueues[].waitSeconds'
  kueuecore simulate scenario.yaml --history team-a/train   what happened to one job, step by step
  kueuecore simulate scenario.yaml --experiment reclaimBackoffSeconds=600   under a rule that Kueue lacks
  kueuecore simulate year.yaml --checkpoint year.checkpoint --resume   continue an interrupted run
"""

# At most this much work is lost, and saving takes a small fraction of it.
_SAVES_SECONDS = 60.0
# More jobs than this are listed with -o wide only.
_MAX_JOBS = 30
_TIMES = ("MIN WAIT", "MEAN", "P95", "MAX")
_LOST_NODES = ("MOVED", "NODE EVICTIONS")
_COUNTS = ("JOBS", "ADMITTED", "FINISHED", "FAILED")
_RIGHT = (*_COUNTS, *_TIMES, "EVICTIONS", *_LOST_NODES, "COPIES", "WASTED", "COPIES WAITED")
_JOB_RIGHT = ("CREATED", "ADMITTED", "WAITED", "FINISHED", "EVICTIONS", *_LOST_NODES, "COPIES")
_ENDINGS = {
    ScenarioEnding.COMPLETE: "done",
    ScenarioEnding.CYCLE_LIMIT: "stopped, as it does not come to an end,",
    ScenarioEnding.INTERRUPTED: "interrupted",
    ScenarioEnding.UNSETTLED: "stopped, as it never settles,",
}


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.add_argument("scenario", metavar="SCENARIO", help="a YAML file of kind Scenario")
    add_kueue(add, over="cluster.kueue")
    add.add_argument("--seed", type=seed, help="use this seed instead of the one in the file: 0 to 2^53")
    add_experiments(add)
    add.add_argument(
        "--allow-code",
        action="store_true",
        help="run the program that fleet.policy.use names; read it first, as it runs with your privileges",
    )
    saved = add.add_argument_group("checkpoints")
    help_text = "save the run to this file from time to time and on Ctrl-C; deleted when the run ends"
    saved.add_argument("--checkpoint", type=Path, metavar="FILE", help=help_text)
    saved.add_argument("--resume", action="store_true", help="continue from that file if it exists")
    help_text = "how often to save, such as 5m; by default every minute"
    saved.add_argument("--checkpoint-every", type=step_seconds, metavar="DURATION", help=help_text)
    out = add.add_argument_group("output")
    help_text = "table (the default); wide: every job, no wrapping; json: everything, as one document"
    out.add_argument("-o", "--output", choices=["table", "wide", "json"], default="table", help=help_text)
    out.add_argument("--history", metavar="WORKLOAD", action="append", default=[], help=HISTORY_HELP)
    help_text = "write an HTML page with charts to this file; needs the extra `report`"
    out.add_argument("--report", type=Path, metavar="FILE", help=help_text)
    help_text = "write tables to this folder; of jobs, ClusterQueues, cohorts, measures and Kueue's metrics"
    out.add_argument("--results", type=Path, metavar="DIR", help=help_text)
    help_text = "the format of these tables; parquet and arrow need the extra `arrow`"
    out.add_argument("--results-format", choices=["csv", "parquet", "arrow"], default="csv", help=help_text)
    help_text = "write a row at this interval, such as 1m; per ClusterQueue and cohort; by default at each change"
    out.add_argument("--results-step", type=step_seconds, metavar="DURATION", help=help_text)
    add_style(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore simulate`; returns the exit code."""
    style = Style.of(output(), options.color)
    checkpoint = _checkpoint(options)
    require_page(options.report)
    _require_results(options)
    experiments = asked_experiments(options.experiments)
    # A user's policy is a program that may print: keep that out of our output.
    with redirect_stdout(sys.stderr):
        scenario = read_scenario(
            options.scenario,
            seed=options.seed,
            allow_code=options.allow_code,
            release=options.kueue,
            default_release=asked_release(None),
        )
        scenario = with_experiments(scenario, experiments, file=options.scenario)
        try:
            with ctrl_c_raises(), job_progress(scenario.n_jobs, quiet=options.quiet) as progress:
                outcome = run_scenario(scenario, progress=progress, checkpoint=checkpoint, follow=options.history)
        except ManifestError as error:
            raise error.in_file(options.scenario) from None
    if not options.quiet:
        to_stderr(*(f"warning: {shown(warning)}" for warning in outcome.warnings))
        to_stderr(*(f"note: {shown(note)}" for note in (*outcome.notes, *map(str, outcome.left_out))))
    is_wide = options.output == "wide"
    histories: JsonObject = {}
    timelines = ""
    if options.history:
        from kueuecore.cli.scenario_histories import histories_of  # few runs are asked for one

        histories, timelines = histories_of(outcome, options.history, style, is_wide=is_wide)
    if options.output == "json":
        text = json.dumps({**_document(scenario, outcome), **histories}, indent=2)
    else:
        text = "\n\n".join(filter(None, [_report(scenario, outcome, style, wide=is_wide), timelines]))
    text += "\n"
    write_with_files(text, [*_writers(outcome, options)])
    if outcome.ending is ScenarioEnding.INTERRUPTED:
        if checkpoint is not None and checkpoint.path.exists() and not options.quiet:
            to_stderr(f"note: saved in {shown(str(checkpoint.path))}: continue with --resume")
        return ExitCode.INTERRUPTED
    if checkpoint is not None:
        # The run is over: nothing is left to resume.
        remove(checkpoint.remove, checkpoint.path)
    if outcome.ending is not ScenarioEnding.COMPLETE:
        return ExitCode.UNSETTLED
    is_pending = bool((outcome.jobs.numbers["admitted"] < 0).any())
    return ExitCode.PENDING if options.fail_on_pending and is_pending else ExitCode.OK


def _checkpoint(options: argparse.Namespace) -> Checkpoint | None:
    """Where to save the run.

    Raises:
        ManifestError: An option needs `--checkpoint`, which is missing.
    """
    if options.checkpoint is not None:
        return Checkpoint(
            path=options.checkpoint, every_seconds=options.checkpoint_every or _SAVES_SECONDS, resume=options.resume
        )
    for given, option in ((options.resume, "--resume"), (options.checkpoint_every, "--checkpoint-every")):
        if given:
            raise ManifestError.of(f"{option} needs a checkpoint file", remedy="name it with --checkpoint FILE")
    return None


def _require_results(options: argparse.Namespace) -> None:
    """Check before the run that its tables can be made and written.

    Raises:
        ManifestError: The extra `arrow` is not installed, or the folder cannot be written to.
    """
    if options.results is not None and options.results_format != "csv" and find_spec("pyarrow") is None:
        remedy = "pip install 'kueuecore[arrow]', or write --results-format csv"
        raise ManifestError.of("Parquet and Arrow need the extra `arrow`", remedy=remedy)
    require_folder("--results", options.results)


def _writers(outcome: ScenarioOutcome, options: argparse.Namespace) -> Iterator[Callable[[], None]]:
    run, fleet = outcome.run, outcome.fleet
    results = fleet if run is None else outcome.results
    if results is not None and options.results is not None:
        yield lambda: _write_results(results, options)
    if options.report is not None:
        page: Framed | None = None
        if run is not None:
            page = Report(run, title=options.scenario, left_out=outcome.left_out)
        elif fleet is not None:
            page = FleetReport(outcome, title=options.scenario)
        if page is not None:
            yield lambda: write_page(page, options.report, quiet=options.quiet)


def _write_results(results: Results | FleetResults, options: argparse.Namespace) -> None:
    """Write tables, measures and metrics to a folder.

    Raises:
        OutputError: The folder cannot be written to.
    """
    try:
        written = results.write(options.results, suffix=f".{options.results_format}", step_seconds=options.results_step)
    except OSError as error:
        raise OutputError(error.strerror or str(error), what=str(options.results)) from None
    if not options.quiet:
        to_stderr(f"note: wrote {', '.join(path.name for path in written)} to {shown(str(options.results))}")


def _report(scenario: Scenario, outcome: ScenarioOutcome, style: Style, *, wide: bool) -> str:
    parts = ["\n".join([*scenario.experiment_notices, _summary(outcome)])]
    if len(outcome.jobs) <= _MAX_JOBS or wide:
        parts.append(_jobs(outcome, style.wide() if wide else style))
    for title, groups in _groups(outcome):
        parts.append(_waits(title, groups, style, is_fleet=outcome.is_fleet))
    parts.append(_quotas(outcome, style))
    return "\n\n".join(part for part in parts if part)


def _summary(outcome: ScenarioOutcome) -> str:
    waits = outcome.all
    # A job may end without ever being admitted.
    left = outcome.jobs.numbers[outcome.jobs.numbers["finished"] < 0]
    n_pending = int((left["admitted"] < 0).sum())
    n_running = len(left) - n_pending
    finished = f"finished ({waits.n_failed} failed)" if waits.n_failed else "finished"
    kinds = [(waits.n_finished, finished), (n_running, "running"), (n_pending, "pending")]
    reported = ", ".join(f"{n} {kind}" for n, kind in kinds if n) or "none"
    jobs, ending = counted(waits.n_jobs, "job"), _ENDINGS[outcome.ending]
    lines = [f"{jobs}: {reported}; {ending} after {span(outcome.end - outcome.start)}"]
    if waits.n_admitted:
        reported = f"mean wait {seconds(waits.mean)}, 95th percentile {seconds(waits.p95)}"
        lines.append(f"{reported}; {counted(waits.n_evictions, 'eviction')}")
    lines += map(str, outcome.left_out)
    numbers = outcome.jobs.numbers
    n_short = int((numbers["replacements"] + numbers["node_evictions"] > 0).sum())
    if n_short:
        reported = f"{counted(n_short, 'job')} lost nodes: pods moved {counted(waits.n_replacements, 'time')}"
        lines.append(f"{reported}, jobs were evicted {counted(waits.n_node_evictions, 'time')}")
    if outcome.is_fleet:
        reported = f"{waits.n_copies} copies on workers, {waits.n_wasted_copies} of them wasted"
        lines.append(f"{reported}; there they waited {seconds(waits.copy_wait)} in all")
    return "\n".join(lines)


def _jobs(outcome: ScenarioOutcome, style: Style) -> str:
    if not outcome.jobs:
        return ""
    extra = ["CLUSTER", "COPIES"] if outcome.is_fleet else []
    header = ["JOB", "CLUSTER QUEUE", *extra, "CREATED", "ADMITTED", "WAITED", "FINISHED", "EVICTIONS"]
    lost = any(job.has_lost_nodes for job in outcome.jobs)
    header += [*(_LOST_NODES if lost else ()), "MESSAGE"]
    rows = []
    for job in outcome.jobs:
        times = [_since(outcome, time) for time in (job.created, job.admitted)]
        where = [job.cluster or "-", str(job.n_copies)] if outcome.is_fleet else []
        waited = "-" if job.wait_ns is None else span(job.wait_ns)
        name = f"{job.namespace}/{job.job.partition('/')[2]}"
        nodes = [str(job.n_replacements), str(job.n_node_evictions)] if lost else []
        ends = [waited, _since(outcome, job.finished), str(job.n_evictions), *nodes, job.message]
        rows.append([name, job.cluster_queue or "-", *where, *times, *ends])
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    return table(header, rows, style, right=_JOB_RIGHT)


def _groups(outcome: ScenarioOutcome) -> list[tuple[str, tuple[Waits, ...]]]:
    """The tables of waits: by ClusterQueue, and by cluster and work if there are several."""
    by = ["cluster_queue", "cluster"] if outcome.is_fleet else ["cluster_queue"]
    groups = [(column.replace("_", " ").upper(), waits_by(outcome.jobs, column)) for column in by]
    works = waits_by(outcome.jobs, "work")
    return [*groups, ("WORK", works)] if len(works) > 1 else groups


def _waits(title: str, groups: Sequence[Waits], style: Style, *, is_fleet: bool) -> str:
    if not groups:
        return ""
    extra = ["COPIES", "WASTED", "COPIES WAITED"] if is_fleet else []
    lost = any(group.n_replacements + group.n_node_evictions for group in groups)
    failed = any(group.n_failed for group in groups)
    header = [title, *(_COUNTS if failed else _COUNTS[:-1]), *_TIMES, "EVICTIONS"]
    header += [*(_LOST_NODES if lost else ()), *extra]
    rows = []
    for group in groups:
        counts = [
            str(group.n_jobs),
            str(group.n_admitted),
            str(group.n_finished),
            *([str(group.n_failed)] if failed else ()),
        ]
        times = [seconds(time) for time in (group.least, group.mean, group.p95, group.most)]
        copies = [str(group.n_copies), str(group.n_wasted_copies), seconds(group.copy_wait)] if is_fleet else []
        nodes = [str(group.n_replacements), str(group.n_node_evictions)] if lost else []
        rows.append([group.name or "-", *counts, *times, str(group.n_evictions), *nodes, *copies])
    return table(header, rows, style, right=_RIGHT)


def _quotas(outcome: ScenarioOutcome, style: Style) -> str:
    """The quota of a manager next to the quota of its workers."""
    header = ["MANAGER QUEUE", "RESOURCE", "QUOTA", "OF WORKERS", "EACH", "WHICH IS"]
    rows = []
    for quota in outcome.quotas:
        each = ", ".join(f"{worker} {_amount(amount)}" for worker, amount in quota.by_worker.items())
        rows.append(
            [quota.cluster_queue, quota.resource, _amount(quota.manager), _amount(quota.workers), each, quota.verdict]
        )
    return table(header, rows, style, right=("QUOTA", "OF WORKERS")) if rows else ""


def _number(units: Fraction | None) -> float | None:
    return None if units is None else float(units)


def _amount(units: Fraction | None) -> str:
    return "unlimited" if units is None else number_text(float(units))


def _document(scenario: Scenario, outcome: ScenarioOutcome) -> JsonObject:
    """The outcome as one JSON document."""
    return {
        **document_head(scenario.release),
        **_of_workers(scenario),
        **experiments_document(scenario.experiments),
        "seed": scenario.seed,
        "start": format_time(outcome.start),
        "end": format_time(outcome.end),
        "ending": outcome.ending.value,
        "leftOut": [out.to_dict() for out in outcome.left_out],
        "jobs": [
            {
                "work": job.work,
                "job": job.job,
                "namespace": job.namespace,
                "workload": job.workload,
                "clusterQueue": job.cluster_queue or None,
                "cluster": job.cluster or None,
                "created": format_time(job.created),
                "admitted": None if job.admitted is None else format_time(job.admitted),
                "finished": None if job.finished is None else format_time(job.finished),
                "failed": job.has_failed,
                "waitSeconds": None if job.wait_ns is None else job.wait_ns / SECOND_NS,
                "evictions": job.n_evictions,
                "nodeReplacements": job.n_replacements,
                "nodeEvictions": job.n_node_evictions,
                "copies": job.n_copies,
                "message": job.message,
            }
            for job in outcome.jobs
        ],
        "all": _waits_document(outcome.all),
        "clusterQueues": _documents(waits_by(outcome.jobs, "cluster_queue")),
        "clusters": _documents(waits_by(outcome.jobs, "cluster")) if outcome.is_fleet else [],
        "managerQuota": [
            {
                "clusterQueue": quota.cluster_queue,
                "resource": quota.resource,
                "quota": _number(quota.manager),
                "ofWorkers": _number(quota.workers),
                "byWorker": {worker: _number(amount) for worker, amount in quota.by_worker.items()},
            }
            for quota in outcome.quotas
        ],
        "work": _documents(waits_by(outcome.jobs, "work")),
    }


def _of_workers(scenario: Scenario) -> JsonObject:
    """The releases of Kueue on a fleet's workers, and the rules there that Kueue does not have."""
    found: JsonObject = {name: release_document(release) for name, release in scenario.worker_releases.items()}
    workers = {} if scenario.fleet is None else scenario.fleet.workers
    of_workers = {name: worker.cluster.configuration.experiments for name, worker in workers.items()}
    tried: JsonObject = {name: experiments.to_dict() for name, experiments in of_workers.items() if experiments}
    return {**({"kueueOfWorkers": found} if found else {}), **({"experimentsOfWorkers": tried} if tried else {})}


def _documents(groups: Sequence[Waits]) -> list[JsonValue]:
    return [_waits_document(group) for group in groups]


def _waits_document(waits: Waits) -> JsonObject:
    return {
        "name": waits.name,
        "jobs": waits.n_jobs,
        "admitted": waits.n_admitted,
        "finished": waits.n_finished,
        "failed": waits.n_failed,
        "waitSeconds": {"min": waits.least, "mean": waits.mean, "p95": waits.p95, "max": waits.most},
        "evictions": waits.n_evictions,
        "nodeReplacements": waits.n_replacements,
        "nodeEvictions": waits.n_node_evictions,
        "copies": waits.n_copies,
        "wastedCopies": waits.n_wasted_copies,
        "copyWaitSeconds": waits.copy_wait,
    }


def _since(outcome: ScenarioOutcome, time: int | None) -> str:
    return "-" if time is None else span(time - outcome.start)
