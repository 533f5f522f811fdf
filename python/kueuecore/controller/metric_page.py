"""Writes metrics in the Prometheus text format, version 0.0.4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from kueuecore.controller.metric_families import FAMILIES, Family, full_name
from kueuecore.controller.metric_objects import MetricObjects
from kueuecore.controller.metric_series import Histogram, Labels, MetricSeries

__all__ = ["page"]


def page(
    gauges: Mapping[str, Mapping[Labels, float]],
    series: MetricSeries,
    objects: MetricObjects,
    *,
    replica_role: str,
    silent: Sequence[str],
) -> str:
    """Return all families by name, with their help, types and series.

    Args:
        gauges: The current state: family to labels to value.
        series: What was counted.
        objects: Has the names of custom labels.
        replica_role: Value of the label of that name.
        silent: Prefixes of the names of families to leave out.
    """
    lines: list[str] = []
    for family in sorted(FAMILIES, key=full_name):
        if family.startswith(tuple(silent)):
            continue
        it = FAMILIES[family]
        form = _Form(it, objects.labels.names(it.sources), replica_role)
        name = full_name(family)
        body = [
            f"{name}{{{form.labels(labels)}}} {_number(value)}"
            for labels, value in sorted([*gauges.get(family, {}).items(), *series.values(family)])
        ]
        for labels, histogram in sorted(series.histograms(family), key=_labels_of):
            body += _histogram(name, form, labels, histogram)
        if body:
            lines += [f"# HELP {name} {it.about}", f"# TYPE {name} {it.type}", *body]
    return "".join(f"{line}\n" for line in lines)


class _Form:
    """How the labels of a family are written: sorted by name."""

    def __init__(self, family: Family, custom: Sequence[str], replica_role: str) -> None:
        names = [*family.labels, *custom]
        self._role = f'replica_role="{_escaped(replica_role)}"'
        # `None` stands for the role.
        order: list[tuple[str, int | None]] = [*((name, index) for index, name in enumerate(names))]
        self._order = sorted([*order, ("replica_role", None)], key=lambda row: row[0])
        self._n_before_bound = sum(name < "le" for name, _ in self._order)

    def parts(self, values: Labels) -> list[str]:
        """Return the labels as `name="value"`."""
        return [self._role if index is None else f'{name}="{_escaped(values[index])}"' for name, index in self._order]

    def labels(self, values: Labels) -> str:
        """Return the labels of a series."""
        return ",".join(self.parts(values))

    def around_bound(self, values: Labels) -> tuple[str, str]:
        """Return the text before and after the label `le`."""
        parts, n = self.parts(values), self._n_before_bound
        return "".join(f"{part}," for part in parts[:n]), "".join(f",{part}" for part in parts[n:])


def _histogram(name: str, form: _Form, labels: Labels, histogram: Histogram) -> Iterator[str]:
    before, behind = form.around_bound(labels)
    so_far = 0
    for bound, n in zip((*histogram.bounds, math.inf), histogram.counts, strict=True):
        so_far += n
        yield f'{name}_bucket{{{before}le="{_number(bound)}"{behind}}} {so_far}'
    written = form.labels(labels)
    yield f"{name}_sum{{{written}}} {_number(histogram.total)}"
    yield f"{name}_count{{{written}}} {so_far}"


def _labels_of(series: tuple[Labels, Histogram]) -> Labels:
    return series[0]


def _number(value: float) -> str:
    if math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value
