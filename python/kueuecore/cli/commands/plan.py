"""`kueuecore plan`: finds the smallest quota that keeps waits short, and reports it with the curve."""

from __future__ import annotations

import argparse
import json
from math import isfinite
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue
from kueuecore._numbers import number_text
from kueuecore._quantities import number
from kueuecore._spans import seconds
from kueuecore._text import quoted, shown
from kueuecore.cli.documents import document_head
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.cli.output_files import write_with_files
from kueuecore.cli.pages import require_page, write_page
from kueuecore.cli.progress import ctrl_c_raises, run_progress
from kueuecore.cli.streams import output, to_stderr
from kueuecore.cli.study_options import add_look, add_study, count
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.report import PlanReport
from kueuecore.scenarios import parse_edit, read_scenario
from kueuecore.studies import Plan, PlanPoint, WaitTarget, plan, processes, quota_scales
from kueuecore.studies.quota_scaling import unit_suffix

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Finds the smallest nominal quota that meets a target for waits, and shows how waits depend on quota.
All quotas of a flavor are scaled by the same factor; everything else stays as it is."""

EXAMPLES = """\
  kueuecore plan scenario.yaml --wait 'p95<=1h'
  kueuecore plan scenario.yaml --wait 'p99<=30m' --flavor h100 --step 8       whole nodes of eight GPUs
  kueuecore plan scenario.yaml --wait 'mean<=10m' --cluster-queue team-a      its quota, and the waits of its jobs
  kueuecore plan scenario.yaml --wait 'max<=1h' --seeds 20 --share 0.9        in 18 of 20 seeds
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.add_argument("scenario", metavar="SCENARIO", help="a YAML file of kind Scenario")
    help_text = "the target: p95<=1h (any percentile), mean<=10m or max<=2h; a job that is never admitted waits forever"
    add.add_argument("--wait", metavar="TARGET", required=True, help=help_text)
    what = add.add_argument_group("which quota to vary; the first three options are repeatable")
    help_text = (
        "vary the quota of this ClusterQueue only; count only its jobs; by default all ClusterQueues and Cohorts"
    )
    what.add_argument("--cluster-queue", metavar="NAME", action="append", default=[], help=help_text)
    help_text = "vary the quota of this flavor only; by default each flavor in turn, with the others unchanged"
    what.add_argument("--flavor", metavar="NAME", action="append", default=[], help=help_text)
    help_text = "vary the quota of this resource only; by default all resources of a flavor, by the same factor"
    what.add_argument("--resource", metavar="NAME", action="append", default=[], help=help_text)
    what.add_argument("--together", action="store_true", help="vary all flavors together, by the same factor")
    help_text = "vary the total in steps of N cores, GiB or devices; by default 1"
    what.add_argument("--step", metavar="N", type=count, default=1, help=help_text)
    help_text = "set a field in every run: KIND/NAME:PATH=VALUE, or PATH=VALUE for the scenario itself; repeatable"
    what.add_argument("--set", dest="edits", metavar="EDIT", action="append", default=[], help=help_text)
    add_kueue(add, over="cluster.kueue")
    add_study(add, seeds=5)
    help_text = "share of the seeds that must meet the target; by default 0.5, the median"
    add.add_argument("--share", metavar="SHARE", type=_share, default=0.5, help=help_text)
    out = add.add_argument_group("output")
    out.add_argument(
        "-o", "--output", choices=["table", "json"], default="table", help="json also has the result of each seed"
    )
    help_text = "write an HTML page with the curve to this file; needs the extra `report`"
    out.add_argument("--report", type=Path, metavar="FILE", help=help_text)
    add_look(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore plan`; returns the exit code."""
    require_page(options.report)
    target = WaitTarget.parse(options.wait)
    edits = [parse_edit(edit) for edit in options.edits]
    scenario = read_scenario(
        options.scenario,
        allow_code=options.allow_code,
        edits=edits,
        release=options.kueue,
        default_release=asked_release(None),
    )
    scales = quota_scales(
        scenario,
        cluster_queues=options.cluster_queue,
        flavors=options.flavor,
        resources=options.resource,
        together=options.together,
    )
    plans = []
    with ctrl_c_raises(), processes(options.workers) as executor:
        for scale in scales:
            with run_progress(quiet=options.quiet) as progress:
                plans.append(
                    plan(
                        scenario,
                        target,
                        scale,
                        cluster_queues=options.cluster_queue,
                        seeds=range(scenario.seed, scenario.seed + options.seeds),
                        share=options.share,
                        step=options.step,
                        executor=executor,
                        progress=progress,
                    )
                )
    if not options.quiet:
        to_stderr(*dict.fromkeys(f"warning: {shown(warning)}" for found in plans for warning in found.warnings))
    if options.output == "json":
        text = _document(plans)
    else:
        style = Style.of(output(), options.color)
        text = "\n\n".join([_head(plans[0]), *(_report(found, style) for found in plans)]) + "\n"
    page = PlanReport(plans, title=options.scenario)
    writers = [] if options.report is None else [lambda: write_page(page, options.report, quiet=options.quiet)]
    write_with_files(text, writers)
    return ExitCode.OK if all(other.answer for other in plans) else ExitCode.FOUND


def _share(text: str) -> float:
    found = number(text)
    if found is None or not 0 < found <= 1:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number above 0 and up to 1")
    return float(found)


def _head(found: Plan) -> str:
    n_seeds = len(found.seeds)
    seeds = "in the only seed" if n_seeds == 1 else f"in at least {found.n_needed} of {n_seeds} seeds"
    return "\n".join([*found.notices, f"target: {found.target.says} {seconds(found.target.seconds)} or less, {seeds}"])


def _report(found: Plan, style: Style) -> str:
    parts = [_verdict(found, style), _curve(found, style)]
    parts += ["\n".join(it)] if (it := [*_oddities(found)]) else []
    if found.answer is not None:
        parts.append(_quotas(found, found.answer, style))
    return "\n\n".join(parts)


def _verdict(found: Plan, style: Style) -> str:
    if found.answer is not None:
        needed = style.paint(f"{found.scale.name}: {_amount(found, found.answer)}", "bold")
        return f"{needed} is the smallest quota that meets it; now it is {_now(found)}"
    limit = found.unlimited
    verdict = style.paint(f"{found.scale.name}: no quota meets it", "bold")
    if isfinite(limit.wait):
        why = "jobs wait for something else: other quotas, borrowing limits, nodes, checks or the next cycle"
        return f"{verdict}: {found.target.figure} is {seconds(limit.wait)} even with unlimited quota\n  {why}"
    reasons = [shown(message) for message, _ in found.reasons[:3]] or ["the scenario ends before their turn comes"]
    n_never = number_text(limit.median_never)
    head = f"{verdict}, as {n_never} of the jobs are never admitted even with unlimited quota, because:"
    return "\n  ".join([head, *reasons])


def _now(found: Plan) -> str:
    return f"{number_text(float(found.scale.now))}{unit_suffix(found.scale.resource)}"


def _amount(found: Plan, point: PlanPoint) -> str:
    return f"{point.n_units}{unit_suffix(found.scale.resource)}"


def _curve(found: Plan, style: Style) -> str:
    figure = f"{found.target.figure.upper()} WAIT"
    rows: list[list[Cell]] = []
    for point in [*found.points, *([] if found.answer else [found.unlimited])]:
        meets = found.meets(point)
        notes = []
        if point is found.answer:
            notes.append("the answer")
        if found.scale.is_now(point.n_units):
            notes.append("now")
        used = point.median_utilisation
        rows.append(
            [
                "unlimited" if point is found.unlimited else _amount(found, point),
                _wait(point.wait),
                number_text(point.median_never),
                "-" if used is None or point is found.unlimited else f"{used:.0%}",
                Painted("yes", "green") if meets else Painted("no", "red"),
                ", ".join(notes),
            ]
        )
    header = ["QUOTA", figure, "NEVER ADMITTED", "USED", "MEETS TARGET", ""]
    return table(header, rows, style, right=header[:4])


def _wait(wait: float) -> str:
    return seconds(wait) if isfinite(wait) else "forever"


def _oddities(found: Plan) -> list[str]:
    lines = []
    if found.rises:
        steps = [f"from {_amount(found, a)} to {_amount(found, b)}" for a, b in found.rises]
        lines.append(f"note: more quota does not always shorten waits: they rise {_listed(steps)}")
    if found.smaller:
        amounts = [_amount(found, edit) for edit in found.smaller]
        meet = "meets" if len(amounts) == 1 else "meet"
        lines.append(f"note: {_listed(amounts)} also {meet} the target, but some larger quota does not")
    if found.answer is not None and found.answer.median_never:
        n = number_text(found.answer.median_never)
        lines.append(f"note: {n} of the jobs are never admitted with {_amount(found, found.answer)}")
    return lines


def _listed(texts: list[str]) -> str:
    more = len(texts) - 3
    return ", ".join(texts[:3]) + (f" and {more} more" if more > 0 else "")


def _quotas(found: Plan, answer: PlanPoint, style: Style) -> str:
    rows = []
    for quota, n in zip(found.scale.quotas, found.scale.split(answer.n_units), strict=True):
        suffix = unit_suffix(quota.resource)
        rows.append(
            [
                f"{quota.kind}/{quota.name}",
                quota.flavor,
                quota.resource,
                f"{number_text(float(quota.units))}{suffix}",
                f"{n}{suffix}",
            ]
        )
    return table(["QUOTA OF", "FLAVOR", "RESOURCE", "NOW", "NEEDED"], rows, style, right=["NOW", "NEEDED"])


def _document(plans: list[Plan]) -> str:
    first = plans[0]
    document: JsonObject = {
        **document_head(first.release),
        **({"notices": [*first.notices]} if first.notices else {}),
        "target": {"figure": first.target.figure, "seconds": first.target.seconds, "share": first.unlimited.share},
        "seeds": [*first.seeds],
        "plans": [_plan(other) for other in plans],
    }
    return json.dumps(document, indent=2) + "\n"


def _plan(found: Plan) -> JsonValue:
    answer = found.answer
    needed = [None] * len(found.scale.quotas) if answer is None else found.scale.split(answer.n_units)
    quotas: list[JsonValue] = [
        {
            "kind": quota.kind,
            "name": quota.name,
            "flavor": quota.flavor,
            "resource": quota.resource,
            "now": float(quota.units),
            "needed": n,
        }
        for quota, n in zip(found.scale.quotas, needed, strict=True)
    ]
    return {
        "flavor": found.scale.flavor,
        "resource": found.scale.resource,
        "unit": f"1{unit_suffix(found.scale.resource)}",
        "step": found.step,
        "now": float(found.scale.now),
        "needed": None if answer is None else answer.n_units,
        "quotas": quotas,
        "points": [_point(found, point) for point in found.points],
        "unlimited": _point(found, found.unlimited),
        "rises": [[a.n_units, b.n_units] for a, b in found.rises],
        "reasons": [{"message": message, "jobs": n} for message, n in found.reasons],
    }


def _point(found: Plan, point: PlanPoint) -> JsonValue:
    return {
        "quota": point.n_units,
        "meets": found.meets(point),
        # JSON has no infinity: null means that the job waits forever.
        "waitSeconds": _finite(point.wait),
        "waitSecondsBySeed": [_finite(wait) for wait in point.waits],
        "neverAdmittedBySeed": [*point.n_never],
        "usedBySeed": [*point.utilisation],
    }


def _finite(wait: float) -> float | None:
    return wait if isfinite(wait) else None
