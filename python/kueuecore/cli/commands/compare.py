"""`kueuecore compare`: runs the same work under two configurations, and reports tables or JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue
from kueuecore._numbers import number_text
from kueuecore._text import counted, shown
from kueuecore.cli.documents import document_head, release_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.output_files import write_with_files
from kueuecore.cli.pages import require_page, write_page
from kueuecore.cli.progress import ctrl_c_raises, run_progress
from kueuecore.cli.spans import change, seconds
from kueuecore.cli.streams import output, to_stderr
from kueuecore.cli.study_options import add_look, add_study
from kueuecore.cli.table import Style, table
from kueuecore.errors import ManifestError
from kueuecore.report import ComparisonReport
from kueuecore.scenarios import parse_edit, read_scenario
from kueuecore.studies import Change, Comparison, Estimate, GroupChange, compare, processes

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "comparison_document", "measures_table", "run"]

DESCRIPTION = """\
Runs the same work under two configurations, once per seed, and shows which jobs wait less or more,
what is evicted and how much work is lost. Jobs are paired by the order in which they arrive."""

EXAMPLES = """\
  kueuecore compare before.yaml after.yaml             two scenarios with the same work
  kueuecore compare scenario.yaml \\
    --set 'cluster.configuration.fairSharing.preemptionStrategies=[LessThanOrEqualToFinalShare]'
  kueuecore compare scenario.yaml --seeds 30 \\
    --set 'ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=spot].resources[name=cpu].nominalQuota=8'
  kueuecore compare before.yaml renamed.yaml --fail-on-difference -q    a check for CI
"""

_RIGHT = (
    "JOBS",
    "LESS",
    "MORE",
    "A",
    "B",
    "CHANGE",
    "WAIT A",
    "WAIT B",
    "FAILED A",
    "FAILED B",
    "EVICTIONS A",
    "EVICTIONS B",
    "LOST A",
    "LOST B",
)
_NAMES = {
    "mean_wait_seconds": "mean wait",
    "p95_wait_seconds": "95th percentile of waits",
    "never_admitted": "jobs never admitted",
    "failed": "jobs failed",
    "evictions": "evictions",
    "evicted_jobs": "jobs evicted",
    "lost_seconds": "work lost",
    "finished": "jobs finished",
    "makespan_seconds": "makespan",
    "mean_slowdown": "mean slowdown",
    "fairness": "fairness (Jain's index)",
}


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.add_argument("a", metavar="A", help="a YAML file of kind Scenario")
    add.add_argument(
        "b", metavar="B", nargs="?", help="another with the same work; by default A with the changes of --set"
    )
    help_text = "set a field in B: KIND/NAME:PATH=VALUE, or PATH=VALUE for the scenario itself; repeatable"
    add.add_argument("--set", dest="edits", metavar="EDIT", action="append", default=[], help=help_text)
    add_kueue(add, over="cluster.kueue")
    add_study(add, seeds=10)
    out = add.add_argument_group("output")
    out.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", help="json also has the result of each seed"
    )
    help_text = "write an HTML page with charts to this file; needs the extra `report`"
    out.add_argument("--report", type=Path, metavar="FILE", help=help_text)
    add_look(out)
    out.add_argument("--fail-on-difference", action="store_true", help="exit with 1 if anything differs")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore compare`; returns the exit code."""
    require_page(options.report)
    if options.b is None and not options.edits:
        remedy = "give a second scenario, or change the first with --set PATH=VALUE"
        raise ManifestError.of("there is nothing to compare with", remedy=remedy)
    releases = {"release": options.kueue, "default_release": asked_release(None)}
    a = read_scenario(options.a, allow_code=options.allow_code, **releases)
    edits = [parse_edit(edit) for edit in options.edits]
    # Both use the same seeds, whatever the second file says.
    b = read_scenario(options.b or options.a, allow_code=options.allow_code, edits=edits, **releases)
    seeds = range(a.seed, a.seed + options.seeds)
    workers = min(options.workers, 2 * len(seeds))
    with ctrl_c_raises(), processes(workers) as executor, run_progress(quiet=options.quiet) as progress:
        comparison = compare(a, b, seeds=seeds, executor=executor, progress=progress)
    if not options.quiet:
        to_stderr(*(f"warning: {shown(warning)}" for warning in comparison.warnings))
    is_json = options.output == "json"
    text = _document(comparison) if is_json else _report(comparison, Style.of(output(), options.color)) + "\n"
    write_with_files(text, [] if options.report is None else [lambda: _write_page(comparison, options)])
    return ExitCode.PENDING if options.fail_on_difference and comparison.is_any else ExitCode.OK


def _write_page(comparison: Comparison, options: argparse.Namespace) -> None:
    # Edits would be too long for a title.
    title, edits = (f"{options.a} and {options.b}", ()) if options.b else (options.a, options.edits)
    write_page(ComparisonReport(comparison, title=title, edits=edits), options.report, quiet=options.quiet)


def _report(comparison: Comparison, style: Style) -> str:
    total, n_seeds = comparison.total, len(comparison.seeds)
    n_same = total.n_jobs - total.n_less - total.n_more
    reported = f"{total.n_less} wait less, {total.n_more} wait longer, {n_same} unchanged"
    parts = [f"{counted(n_seeds, 'seed')}, {counted(total.n_jobs, 'job')}: {reported}"]
    if not comparison.is_any:
        return f"{parts[0]}\nno difference"
    parts.append(measures_table(total, style))
    parts.append(_groups(comparison.groups, style))
    note = "A, B and CHANGE are medians over seeds"
    if total["evictions"].difference.interval is None:
        note += "; intervals need six seeds or more"
    return "\n\n".join([*parts, note])


def measures_table(total: GroupChange, style: Style, *, heads: tuple[str, str] = ("A", "B")) -> str:
    """The measures of all jobs under both configurations.

    Args:
        total: The measures.
        style: Colour and width.
        heads: What the configurations are called.
    """
    rows = [[_measure_name(name), *_cells(name, measure)] for name, measure in total.measures.items()]
    return table(["MEASURE", *heads, "CHANGE", "95% INTERVAL"], rows, style, right=(*_RIGHT, *heads))


def _groups(groups: Sequence[GroupChange], style: Style) -> str:
    header = ["WORK", "CLUSTER QUEUE", "JOBS", "LESS", "MORE", "WAIT A", "WAIT B", "CHANGE", "95% INTERVAL"]
    # In most scenarios no job fails, and the table is wide enough.
    fail = any(any((*group["failed"].a.values, *group["failed"].b.values)) for group in groups)
    header += ["FAILED A", "FAILED B"] if fail else []
    header += ["EVICTIONS A", "EVICTIONS B", "LOST A", "LOST B"]
    rows = []
    for group in groups:
        before, after = (name or "-" for name in group.cluster_queues)
        home = before if before == after else f"{before} -> {after}"
        wait = group.measures.get("mean_wait_seconds", _NOTHING)
        failed, evictions, lost = group["failed"], group["evictions"], group["lost_seconds"]
        rows.append(
            [
                *(group.work, home, str(group.n_jobs), str(group.n_less), str(group.n_more)),
                *_cells("mean_wait_seconds", wait),
                *((_number(failed.a.median), _number(failed.b.median)) if fail else ()),
                *(_number(evictions.a.median), _number(evictions.b.median)),
                *(seconds(lost.a.median), seconds(lost.b.median)),
            ]
        )
    return table(header, rows, style, right=_RIGHT)


_NOTHING = Change(Estimate(()), Estimate(()), Estimate(()))


def _measure_name(name: str) -> str:
    """What a measure is called in tables."""
    what, _, rest = name.partition("/")
    return f"{what} of {rest}" if rest else _NAMES[name]


def _cells(name: str, given: Change) -> list[str]:
    """The measure under A and B, the change, and its interval."""
    is_span = name.endswith("_seconds")
    plain, signed = (seconds, change) if is_span else (_number, _signed)
    interval = given.difference.interval
    between = "-" if interval is None else f"{signed(interval[0])} to {signed(interval[1])}"
    return [plain(given.a.median), plain(given.b.median), signed(given.difference.median), between]


def _number(value: float | None) -> str:
    return "-" if value is None else number_text(value)


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{'+' if value > 0 else ''}{number_text(value)}"


def _document(comparison: Comparison) -> str:
    document: JsonObject = {
        **document_head(comparison.releases[0]),
        "kueueB": release_document(comparison.releases[1]),
        **comparison_document(comparison),
    }
    return json.dumps(document, indent=2) + "\n"


def comparison_document(comparison: Comparison) -> JsonObject:
    """What differs, for programs."""
    return {
        "seeds": list(comparison.seeds),
        "differs": comparison.is_any,
        "total": _group(comparison.total),
        "groups": [_group(group) for group in comparison.groups],
    }


def _group(group: GroupChange) -> JsonValue:
    before, after = group.cluster_queues
    names: JsonObject = {"work": group.work, "clusterQueueA": before or None, "clusterQueueB": after or None}
    return {
        **(names if group.work else {}),
        "jobs": group.n_jobs,
        "waitLess": group.n_less,
        "waitMore": group.n_more,
        "measures": {
            name: {"a": _estimate(measure.a), "b": _estimate(measure.b), "difference": _estimate(measure.difference)}
            for name, measure in group.measures.items()
        },
    }


def _estimate(estimate: Estimate) -> JsonValue:
    interval = estimate.interval
    return {
        "median": estimate.median,
        "interval": None if interval is None else list(interval),
        "values": list(estimate.values),
    }
