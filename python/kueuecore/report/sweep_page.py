"""The page of a sweep: a figure for each measure that varies, and all points, the best ones first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueuecore._json import JsonValue
from kueuecore._numbers import number_text
from kueuecore.report.facts import clock, counted
from kueuecore.report.figure import Figure, svg
from kueuecore.report.page import render
from kueuecore.report.sweep_charts import SweptMeasure, curve, heat_map, is_heat_map, panels
from kueuecore.scenarios import Edit
from kueuecore.studies import Estimate, Sweep
from kueuecore.studies.sweep_points import best_first, called, field_names, is_more_better, value_text

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
    targets = [point.target for point in found.points[0]]
    names = field_names(targets)
    order = best_first(found, by)
    shown = [*dict.fromkeys((*([by] if by is not None else []), *_MEASURES))]
    measures = {name: _measure(found, name, order[0]) for name in shown if name in found.names}
    varied = {
        name: measure
        for name, measure in measures.items()
        if len({value for e in measure.estimates for value in e.values}) > 1
    }
    fields = [[point[place].value for point in found.points] for place in range(len(names))]
    labels = [_labels([point[place] for point in found.points]) for place in range(len(names))]
    numbers = [("points", f"{len(found.points):,}"), ("seeds", f"{len(found.seeds):,}")]
    n_cut_off = sum(1 for figure in found.figures if figure.get("cut_off"))
    if n_cut_off:
        numbers.append(("runs cut off", f"{n_cut_off:,}"))
    numbers += [(f"{name} of the best", label[order[0]]) for name, label in zip(names, labels, strict=True)]
    numbers += [(f"{entry.title} of the best", _text(entry, order[0])) for entry in varied.values()]
    same = ((name, measure) for name, measure in measures.items() if name not in varied)
    numbers += [(f"{item.title} at all points", _text(item, order[0])) for _, item in same]
    where = "; ".join(f"{name} is {target}" for name, target in zip(names, targets, strict=True) if name != target)
    return render(
        title=title,
        subtitle=f"{counted(len(found.points), 'point')}, {counted(len(found.seeds), 'seed')} each."
        + (f" {where}." if where else ""),
        figures=[
            *(_figure(entry, fields, labels, names, place=n) for n, entry in enumerate(varied.values())),
            _best(measures, order, labels, names, by),
            *_values(fields, labels, names),
        ],
        numbers=numbers,
        releases=found.releases,
        notices=[notice for notices in found.notices for notice in notices],
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


def _labels(edits: Sequence[Edit]) -> list[str]:
    """Name the values of a field, random numbers with as many digits as matter to a reader."""
    values = [edit.value for edit in edits]
    rounded = {value: number_text(value) for value in values if isinstance(value, float)}
    if len({*rounded.values()}) < len(rounded) or all(edit.called for edit in edits):
        rounded = {}
    names = zip(values, called(edits), strict=True)
    return [rounded.get(other, name) if isinstance(other, float) else name for other, name in names]


def _plain(value: float) -> str:
    return number_text(value, is_grouped=True)


def _text(measure: SweptMeasure, point: int) -> str:
    median = measure.estimates[point].median
    return "-" if median is None else measure.text(median)


def _figure(
    measure: SweptMeasure,
    fields: Sequence[Sequence[JsonValue]],
    labels: Sequence[Sequence[str]],
    names: Sequence[str],
    *,
    place: int,
) -> Figure:
    header = (*names, "median", "95 % interval", "least", "most")
    rows = [
        [*(label[point] for label in labels), *_cells(measure, estimate)]
        for point, estimate in enumerate(measure.estimates)
    ]
    if len(names) == 1:
        chart = curve(measure, fields[0], labels[0], names[0])
        note = (
            "A dot is the median over seeds, small dots are single seeds, a bar is the median's 95 % interval, which "
            "needs six seeds. The green diamond is the best point."
        )
    elif is_heat_map(fields):
        chart = heat_map(measure, fields, labels, names)
        note = "A cell shows the median over seeds: darker is more. The star marks the best point."
    else:
        chart = panels(measure, fields, labels, names)
        note = (
            "Each point has a dot in every panel, at its value of that field and its median over seeds. "
            "The green diamond is the best point."
        )
    by = f" by {' and '.join(names)}" if len(names) < 3 else " by field"
    return Figure(
        title=measure.title[0].upper() + measure.title[1:] + by,
        says=_says(measure, labels, names),
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


def _says(measure: SweptMeasure, labels: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    medians = [
        (estimate.median, point) for point, estimate in enumerate(measure.estimates) if estimate.median is not None
    ]
    least, most = min(medians)[0], max(medians)[0]
    if least == most:
        return f"The median over seeds is {measure.text(least)} at all points."

    def where(wanted: float) -> str:
        places = [point for median, point in medians if median == wanted]
        said = ", ".join(f"{name} {label[places[0]]}" for name, label in zip(names, labels, strict=True))
        return said + (f" and {counted(len(places) - 1, 'other point')}" if len(places) > 1 else "")

    return f"Least, {measure.text(least)}, with {where(least)}; most, {measure.text(most)}, with {where(most)}."


def _values(
    fields: Sequence[Sequence[JsonValue]], labels: Sequence[Sequence[str]], names: Sequence[str]
) -> Iterator[Figure]:
    """Return what stands behind short names, as a table, if there are any."""
    rows = [
        [name, label, text]
        for name, values, own in zip(names, fields, labels, strict=True)
        for label, text in dict(zip(own, map(value_text, values), strict=True)).items()
        if label != text and not isinstance(values[0], float)
    ]
    if rows:
        yield Figure(
            title="Values", says="What the short names stand for.", header=("field", "name", "value"), rows=rows
        )


def _best(
    measures: dict[str, SweptMeasure],
    order: Sequence[int],
    labels: Sequence[Sequence[str]],
    names: Sequence[str],
    by: str | None,
) -> Figure:
    """Return all points as a table."""
    rule = "the fewest jobs never admitted, then the shortest mean wait"
    if by is not None:
        rule = f"the {'highest' if is_more_better(by) else 'lowest'} {measures[by].title}, then {rule}"
    return Figure(
        title="Points, best first",
        says=f"The best point has {rule}.",
        note="Medians over seeds. Points with a run that was cut off come last.",
        header=(*names, *(measure.title for measure in measures.values())),
        rows=[
            [*(label[point] for label in labels), *(_text(measure, point) for measure in measures.values())]
            for point in order
        ],
    )
