"""`kueuecore sweep`: runs one scenario under many configurations; reports a table, CSV, JSON or a page."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import shown
from kueuecore.cli.documents import document_head, release_document
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.output_files import remove, write_with_files
from kueuecore.cli.pages import require_page, write_page
from kueuecore.cli.progress import ctrl_c_raises, run_progress
from kueuecore.cli.streams import output, to_stderr
from kueuecore.cli.study_options import add_look, add_study, count
from kueuecore.cli.table import Style, table
from kueuecore.errors import ManifestError
from kueuecore.releases import Release
from kueuecore.report import SweepReport
from kueuecore.scenarios import Edit, parse_edit, parse_target, read_scenario
from kueuecore.scenarios.edits import parse_value, split_edit
from kueuecore.studies import processes
from kueuecore.studies.sweep_rows import headline, point_rows
from kueuecore.studies.sweeping import Axis, Journal, Sweep, drawn_points, grid_points, sweep

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Runs one scenario at every point of a grid, or at random points, with each seed, and shows how long
jobs wait at each point. Any field of the scenario, its objects and its jobs can vary."""

EXAMPLES = """\
  kueuecore sweep scenario.yaml --grid \\
    'ClusterQueue/team-a:spec.resourceGroups[0].flavors[name=spot].resources[name=cpu].nominalQuota=[4, 8, 16]'
  kueuecore sweep scenario.yaml --random 50 --range 'work[0].count=10..200' --seeds 5 -o csv > points.csv
  kueuecore sweep scenario.yaml --grid 'work[0].count=[30, 60]' --grid 'cluster.cycle=[1s, 10s]' --report out.html
  kueuecore sweep scenario.yaml --grid 'cluster.cycle=[100ms, 1s]' --checkpoint sweep.jsonl --resume
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.add_argument("scenario", metavar="SCENARIO", help="a YAML file of kind Scenario")
    what = add.add_argument_group("what to vary; repeatable")
    help_text = "a field and its values: KIND/NAME:PATH=[V, ...], or PATH=[V, ...]; {NAME: V, ...} names them"
    what.add_argument("--grid", metavar="AXIS", action="append", default=[], help=help_text)
    help_text = "a field and its lowest and highest number: TARGET=LOW..HIGH; needs --random"
    what.add_argument("--range", dest="ranges", metavar="AXIS", action="append", default=[], help=help_text)
    what.add_argument(
        "--set", dest="edits", metavar="EDIT", action="append", default=[], help="set a field at all points"
    )
    what.add_argument("--random", metavar="N", type=count, help="draw N random points instead of the whole grid")
    add_kueue(add, over="cluster.kueue")
    add_study(add, seeds=1)
    saved = add.add_argument_group("checkpoints")
    help_text = "write each finished run to this file; deleted when the sweep ends"
    saved.add_argument("--checkpoint", type=Path, metavar="FILE", help=help_text)
    saved.add_argument("--resume", action="store_true", help="continue from that file if it exists")
    out = add.add_argument_group("output")
    help_text = "table (the default): medians over seeds; csv: one row per run; json: everything"
    out.add_argument("-o", "--output", choices=["table", "csv", "json"], default="table", help=help_text)
    out.add_argument("--sort", metavar="FIGURE", help="sort the points by a figure, such as p95_wait_seconds")
    help_text = "write an HTML page with charts to this file; needs the extra `report`"
    out.add_argument("--report", type=Path, metavar="FILE", help=help_text)
    add_look(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore sweep`; returns the exit code."""
    require_page(options.report)
    axes = [_axis(entry) for entry in options.grid] + [_range(range_) for range_ in options.ranges]
    if not axes:
        raise ManifestError.of("nothing varies", remedy="give a field and its values with --grid TARGET=[V, ...]")
    if options.ranges and options.random is None:
        raise ManifestError.of("a range has infinitely many points", remedy="say how many to draw with --random N")
    if options.resume and options.checkpoint is None:
        raise ManifestError.of("--resume needs a checkpoint file", remedy="name it with --checkpoint FILE")
    edits = [parse_edit(edit) for edit in options.edits]
    read = partial(
        read_scenario,
        options.scenario,
        allow_code=options.allow_code,
        release=options.kueue,
        default_release=asked_release(None),
    )
    base = read(edits=edits)
    points = grid_points(axes) if options.random is None else drawn_points(axes, options.random, seed=base.seed)
    seeds = range(base.seed, base.seed + options.seeds)
    journal = None if options.checkpoint is None else Journal(options.checkpoint, resume=options.resume)
    with (
        ctrl_c_raises(),
        processes(min(options.workers, len(points) * len(seeds))) as executor,
        run_progress(quiet=options.quiet) as progress,
    ):
        try:
            found = sweep(
                lambda point: read(edits=[*edits, *point]),
                points,
                seeds=seeds,
                executor=executor,
                progress=progress,
                journal=journal,
            )
        except KeyboardInterrupt:
            if journal is not None and not options.quiet:
                to_stderr(f"note: saved in {shown(str(options.checkpoint))}: continue with --resume")
            raise
    if not options.quiet:
        to_stderr(*dict.fromkeys(f"note: {shown(notice)}" for notices in found.notices for notice in notices))
    n_cut_off = int(sum(figure["cut_off"] for figure in found.figures))
    if n_cut_off and not options.quiet:
        to_stderr(f"warning: {n_cut_off} of {len(found.figures)} runs did not come to an end (figure cut_off)")
    by = options.sort if options.sort in found.names else None
    order = _order(found, by)
    if options.output == "csv":
        text = _csv(found)
    elif options.output == "json":
        text = _document(found, order, base.release)
    else:
        text = _report(found, order, Style.of(output(), options.color)) + "\n"
    page = SweepReport(found, title=f"Sweep of {options.scenario}", by=by)
    writers = [] if options.report is None else [lambda: write_page(page, options.report, quiet=options.quiet)]
    write_with_files(text, writers)
    if journal is not None:
        remove(journal.remove, options.checkpoint)
    if by != options.sort:
        remedy = f"write one of {', '.join(found.names)}"
        raise ManifestError.of(f"no run has a figure {shown(options.sort)}: not sorted", remedy=remedy)
    return ExitCode.OK


def _axis(text: str) -> Axis:
    target, value = split_edit(text)
    values = parse_value(value)
    names: tuple[str, ...] = ()
    if isinstance(values, dict):
        names, values = tuple(values), [*values.values()]
    if not isinstance(values, list) or not values:
        remedy = "write TARGET=[V, ...], or TARGET={NAME: V, ...}"
        raise ManifestError.of(f"{shown(text)} has no list of values", remedy=remedy)
    return _made(parse_target(target), tuple(values), names=names, remedy="choose another field, or more --seeds")


def _range(text: str) -> Axis:
    target, value = split_edit(text)
    low, dots, high = value.partition("..")
    ends = (parse_value(low), parse_value(high if dots else "null"))
    remedy = "write TARGET=LOW..HIGH, such as work[0].count=10..200"
    return _made(parse_target(target), ends, is_range=True, remedy=remedy)


def _made(
    target: Edit, values: tuple[JsonValue, ...], *, is_range: bool = False, names: tuple[str, ...] = (), remedy: str
) -> Axis:
    try:
        return Axis(target, values, is_range=is_range, names=names)
    except ValueError as error:
        raise ManifestError.of(str(error), remedy=remedy) from None


def _order(found: Sweep, name: str | None) -> list[int]:
    points = list(range(len(found.points)))
    if name is None:
        return points
    medians = [found.estimate(point, name).median for point in points]
    return sorted(points, key=lambda point: (medians[point] is None, medians[point] or 0.0))


def _report(found: Sweep, order: list[int], style: Style) -> str:
    rows = point_rows(found, order)
    lines = [headline(found), *rows.legend, "", table(rows.header, rows.rows, style, right=rows.header)]
    return "\n".join(lines)


def _csv(found: Sweep) -> str:
    columns = found.table()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns.names)
    writer.writerows(zip(*(columns[name].to_list() for name in columns.names), strict=True))
    return text.getvalue()


def _names(point: Sequence[Edit]) -> JsonObject:
    """The names of values that have one, by field."""
    return {edit.target: edit.called for edit in point if edit.called}


def _document(found: Sweep, order: list[int], release: Release) -> str:
    def figures(point: int) -> JsonObject:
        return {name: [*found.estimate(point, name).values] for name in found.names}

    points: list[JsonValue] = [
        {
            "kueue": release_document(found.releases[point]),
            **({"notices": [*notices]} if (notices := found.notices[point]) else {}),
            "edits": {edit.target: edit.value for edit in found.points[point]},
            **({"names": names} if (names := _names(found.points[point])) else {}),
            "figures": figures(point),
        }
        for point in order
    ]
    document: JsonObject = {
        **document_head(release),
        "seeds": [*found.seeds],
        "points": points,
    }
    return json.dumps(document, indent=2) + "\n"
