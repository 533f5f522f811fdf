"""The page of a sweep: a figure for each measure that varies, and all points, the best ones first."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore._json import JsonValue
from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import Figure, svg
from kueuecore.report.page import render
from kueuecore.report.sweep_charts import SweptMeasure, curve, heat_map, is_heat_map, panels
from kueuecore.studies import Estimate, Sweep
from kueuecore.studies.sweep_points import best_first, field_names, is_more_better, value_text

__all__ = ["sweep_html"]

_MEASURES = {
    "mean_wait_seconds": "mean wait",
    "p95_wait_seconds": "p95 wait",
    "never_admitted": "jobs never admitted",
    "failed": "jobs failed",
    "evictions": "evictions",
    "lost_seconds": "work lost",
    "makespan_seconds": "makespan",
}


def sweep_html(found: Sweep, *, title: str, by: str | None = None) -> str:
    """Render a sweep as one page.

    Args:
        found: The sweep.
        title: Its heading.
        by: The figure to rank points by, if any.
    """
    targets = [it.target for it in found.points[0]]
    names = field_names(targets)
    order = best_first(found, by)
    shown = [*dict.fromkeys((*([by] if by is not None else []), *_MEASURES))]
    measures = {name: _measure(found, name, order[0]) for name in shown if name in found.names}
    varied = {name: it for name, it in measures.items() if len({value for e in it.estimates for value in e.values}) > 1}
    fields = [[point[place].value for point in found.points] for place in range(len(names))]
    numbers = [("points", f"{len(found.points):,}"), ("seeds", f"{len(found.seeds):,}")]
    n_cut_off = sum(1 for it in found.figures if it.get("cut_off"))
    if n_cut_off:
        numbers.append(("runs cut off", f"{n_cut_off:,}"))
    numbers += [(f"{name} of the best", _value(found.points[order[0]][n].value)) for n, name in enumerate(names)]
    numbers += [(f"{it.title} of the best", _text(it, order[0])) for it in varied.values()]
    same = ((name, it) for name, it in measures.items() if name not in varied)
    numbers += [(f"{it.title} at all points", _text(it, order[0])) for _, it in same]
    where = "; ".join(f"{name} is {target}" for name, target in zip(names, targets, strict=True) if name != target)
    return render(
        title=title,
        subtitle=f"{counted(len(found.points), 'point')}, {counted(len(found.seeds), 'seed')} each."
        + (f" {where}." if where else ""),
        figures=[
            *(_figure(it, fields, names, place=n) for n, it in enumerate(varied.values())),
            _best(found, measures, order, names, by),
        ],
        numbers=numbers,
    )


def _measure(found: Sweep, name: str, best: int) -> SweptMeasure:
    is_time = name.endswith("_seconds")
    return SweptMeasure(
        title=_title(name),
        is_time=is_time,
        text=clock if is_time else _plain,
        estimates=[found.estimate(point, name) for point in range(len(found.points))],
        best=best,
    )


def _title(name: str) -> str:
    what, _, rest = name.partition("/")
    words = what.removesuffix("_seconds").replace("_", " ")
    return f"{words} of {rest}" if rest else _MEASURES.get(name, words)


def _value(value: JsonValue) -> str:
    """Format a value of a field, a random one with as many digits as matter to a reader."""
    return f"{value:.4g}" if isinstance(value, float) else value_text(value)


def _plain(value: float) -> str:
    return f"{value:.4g}"


def _text(measure: SweptMeasure, point: int) -> str:
    median = measure.estimates[point].median
    return "-" if median is None else measure.text(median)


def _figure(
    measure: SweptMeasure, fields: Sequence[Sequence[JsonValue]], names: Sequence[str], *, place: int
) -> Figure:
    header = (*names, "median", "95 % interval", "least", "most")
    rows = [
        [*(_value(it[point]) for it in fields), *_cells(measure, estimate)]
        for point, estimate in enumerate(measure.estimates)
    ]
    if len(names) == 1:
        chart = curve(measure, fields[0], names[0])
        note = (
            "A dot is the median over seeds, small dots are single seeds, a bar is the median's 95 % interval, which "
            "needs six seeds. The green diamond is the best point."
        )
    elif is_heat_map(fields):
        chart = heat_map(measure, fields, names)
        note = "A cell shows the median over seeds: darker is more. The star marks the best point."
    else:
        chart = panels(measure, fields, names)
        note = (
            "Each point has a dot in every panel, at its value of that field and its median over seeds. "
            "The green diamond is the best point."
        )
    by = f" by {' and '.join(names)}" if len(names) < 3 else " by field"
    return Figure(
        title=measure.title[0].upper() + measure.title[1:] + by,
        says=_says(measure, fields, names),
        # The first note explains the others too.
        note="" if place else note,
        picture=svg(chart, name=f"sweep{place}"),
        header=header,
        rows=rows,
    )


def _cells(measure: SweptMeasure, estimate: Estimate) -> list[str]:
    if estimate.median is None:
        return ["-"] * 4
    interval = estimate.interval
    between = "-" if interval is None else f"{measure.text(interval[0])} to {measure.text(interval[1])}"
    ends = (min(estimate.values), max(estimate.values))
    return [measure.text(estimate.median), between, *map(measure.text, ends)]


def _says(measure: SweptMeasure, fields: Sequence[Sequence[JsonValue]], names: Sequence[str]) -> str:
    medians = [(it.median, point) for point, it in enumerate(measure.estimates) if it.median is not None]
    least, most = min(medians)[0], max(medians)[0]
    if least == most:
        return f"The median over seeds is {measure.text(least)} at all points."

    def where(wanted: float) -> str:
        places = [point for median, point in medians if median == wanted]
        said = ", ".join(f"{name} {_value(it[places[0]])}" for name, it in zip(names, fields, strict=True))
        return said + (f" and {counted(len(places) - 1, 'other point')}" if len(places) > 1 else "")

    return f"Least, {measure.text(least)}, with {where(least)}; most, {measure.text(most)}, with {where(most)}."


def _best(
    found: Sweep, measures: dict[str, SweptMeasure], order: Sequence[int], names: Sequence[str], by: str | None
) -> Figure:
    """Return all points as a table."""
    rule = "the fewest jobs never admitted, then the shortest mean wait"
    if by is not None:
        rule = f"the {'highest' if is_more_better(by) else 'lowest'} {measures[by].title}, then {rule}"
    return Figure(
        title="Points, best first",
        says=f"The best point has {rule}.",
        note="Medians over seeds. Points with a run that was cut off come last.",
        header=(*names, *(it.title for it in measures.values())),
        rows=[
            [*(_value(it.value) for it in found.points[point]), *(_text(it, point) for it in measures.values())]
            for point in order
        ],
    )
