"""`kueuecore compare`: runs the same work under several configurations, and reports tables or JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import shown
from kueuecore.cli.compared_sides import Side, add_sides, asked_sides, described
from kueuecore.cli.documents import document_head, experiments_document, release_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue
from kueuecore.cli.output_files import write_with_files
from kueuecore.cli.pages import require_page, write_page
from kueuecore.cli.progress import ctrl_c_raises, run_progress
from kueuecore.cli.streams import output, to_stderr
from kueuecore.cli.study_options import add_look, add_study
from kueuecore.cli.table import Style, table
from kueuecore.report import ComparisonReport
from kueuecore.studies import Change, Comparison, Estimate, GroupChange, SideChange, compare, processes
from kueuecore.studies.comparison_rows import group_rows, headlines, how_to_read, measure_rows

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "comparison_document", "measures_table", "run"]

DESCRIPTION = """\
Runs the same work under two or more configurations, once per seed, and shows which jobs wait less
or more than under the first, what is evicted and how much work is lost. Jobs are paired by the order
in which they arrive."""

EXAMPLES = """\
  kueuecore compare before.yaml after.yaml             two scenarios with the same work
  kueuecore compare small.yaml medium.yaml large.yaml --baseline B     three, against the second
  kueuecore compare scenario.yaml --seeds 30 \\
    --set 'ClusterQueue/team-*:spec.resourceGroups[0].flavors[name=spot].resources[name=cpu].nominalQuota=8'
  kueuecore compare scenario.yaml --side 0.18 --set cluster.kueue=0.18 --side 0.17 --set cluster.kueue=0.17
  kueuecore compare scenario.yaml --experiment timeShareSeconds=14400    would a rule that Kueue lacks help?
  kueuecore compare before.yaml renamed.yaml --fail-on-difference -q    a check for CI
"""

_TEXT = ("MEASURE", "WORK", "CLUSTER QUEUE", "95% INTERVAL")


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_sides(add)
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
    sides = asked_sides(options)
    scenarios = [side.read(release=options.kueue, allow_code=options.allow_code) for side in sides]
    # All use the same seeds, whatever the other files say.
    seeds = range(scenarios[0].seed, scenarios[0].seed + options.seeds)
    workers = min(options.workers, len(sides) * len(seeds))
    with ctrl_c_raises(), processes(workers) as executor, run_progress(quiet=options.quiet) as progress:
        comparison = compare(
            *scenarios,
            names=[side.name for side in sides],
            baseline=options.baseline,
            seeds=seeds,
            executor=executor,
            progress=progress,
        )
    if not options.quiet:
        to_stderr(*(f"warning: {shown(warning)}" for warning in comparison.warnings))
    if options.output == "json":
        text = _document(comparison, sides)
    else:
        text = _report(comparison, sides, Style.of(output(), options.color)) + "\n"
    write_with_files(text, [] if options.report is None else [lambda: _write_page(comparison, sides, options)])
    return ExitCode.PENDING if options.fail_on_difference and comparison.is_any else ExitCode.OK


def _write_page(comparison: Comparison, sides: list[Side], options: argparse.Namespace) -> None:
    title = ", ".join(dict.fromkeys(side.file for side in sides))
    page = ComparisonReport(comparison, title=title, sides=described(sides))
    write_page(page, options.report, quiet=options.quiet)


def _report(comparison: Comparison, sides: list[Side], style: Style) -> str:
    said = zip(comparison.names, comparison.notices, strict=True)
    head = [f"{name}: {text}" for name, texts in said for text in texts]
    if len(sides) > 2:
        head += [f"{name}: {shown(what)}" for name, what in described(sides).items()]
    head += headlines(comparison)
    if not comparison.is_any:
        return "\n".join([*head, "no difference"])
    parts = ["\n".join(head), measures_table(comparison, style)]
    for side in comparison.others:
        header, rows = group_rows(comparison, side)
        parts.append(table(header, rows, style, right=_numbers(header)))
    return "\n\n".join([*parts, how_to_read(comparison)])


def measures_table(comparison: Comparison, style: Style) -> str:
    """The measures of all jobs on each side.

    Args:
        comparison: The comparison.
        style: Colour and width.
    """
    header, rows = measure_rows(comparison)
    return table(header, rows, style, right=_numbers(header))


def _numbers(header: list[str]) -> list[str]:
    return [name for name in header if name not in _TEXT]


def _document(comparison: Comparison, sides: list[Side]) -> str:
    at = comparison.names.index(comparison.baseline)
    document: JsonObject = {
        **document_head(comparison.releases[at]),
        **experiments_document(comparison.experiments[at]),
        **comparison_document(comparison, [side.to_dict() for side in sides]),
    }
    return json.dumps(document, indent=2) + "\n"


def comparison_document(comparison: Comparison, given: list[JsonObject] | None = None) -> JsonObject:
    """What differs, for programs.

    Args:
        comparison: The comparison.
        given: More about each side.
    """
    sides: list[JsonValue] = [
        {"name": name, **more, "kueue": release_document(release), **experiments_document(experiments)}
        for name, more, release, experiments in zip(
            comparison.names,
            given or [{}] * len(comparison.names),
            comparison.releases,
            comparison.experiments,
            strict=True,
        )
    ]
    return {
        "sides": sides,
        "baseline": comparison.baseline,
        "seeds": list(comparison.seeds),
        "differs": comparison.is_any,
        "total": _group(comparison.total),
        "groups": [_group(group) for group in comparison.groups],
    }


def _group(group: GroupChange) -> JsonValue:
    names: JsonObject = {"work": group.work} if group.work else {}
    sides: list[JsonValue] = [_side(group, name, side) for name, side in group.sides.items()]
    return {**names, "jobs": group.n_jobs, "sides": sides}


def _side(group: GroupChange, name: str, side: SideChange) -> JsonValue:
    return {
        "name": name,
        **({"clusterQueue": side.cluster_queue or None} if group.work else {}),
        "waitLess": side.n_less,
        "waitMore": side.n_more,
        "measures": {measure: _change(change) for measure, change in side.measures.items()},
    }


def _change(change: Change) -> JsonValue:
    return {**_estimate(change.value), "difference": _estimate(change.difference)}


def _estimate(estimate: Estimate) -> JsonObject:
    interval = estimate.interval
    return {
        "median": estimate.median,
        "interval": None if interval is None else list(interval),
        "values": list(estimate.values),
    }
