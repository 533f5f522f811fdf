"""Reads in which fields the jobs of a work differ."""

from __future__ import annotations

from math import prod

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonObject, text_at
from kueuecore.scenarios.job_variants import Variation
from kueuecore.scenarios.spans import read_weights

__all__ = ["read_variations"]

_FORM = 'write a path in the job, such as spec.parallelism or metadata.labels["kueue.x-k8s.io/priority-class"]'
_OF_ALL = (("apiVersion",), ("kind",), ("metadata", "name"))


def read_variations(section: Fields, job: JsonObject, *, most: int) -> tuple[Variation, ...]:
    """Read the fields in which jobs differ; those that are wrong are recorded and left out.

    Args:
        section: The work.
        job: Its job.
        most: The most combinations of values.
    """
    found: list[Variation] = []
    for fields in section.parts("varies"):
        variation = _read_variation(fields, job)
        if variation is not None and any(variation.field == other.field for other in found):
            fields.complain("field", f"Duplicate value: {shown(variation.field)}", "write one list of values for it")
        elif variation is not None:
            found.append(variation)
    if (n := prod(len(each.values) for each in found)) > most:
        section.complain("varies", f"{n} combinations of values are too many", f"write at most {most}")
    return tuple(found)


def _read_variation(fields: Fields, job: JsonObject) -> Variation | None:
    n_problems = len(fields.problems)
    path, values = fields.text("field"), fields.entries("values")
    weights = read_weights(fields, "weights", len(values))
    in_order = fields.truth("inOrder", default=False)
    fields.end()
    fields.has("field", _FORM)
    if not values:
        fields.complain("values", "Required value", "write at least one value")
    if in_order and weights:
        fields.complain("weights", "values in order have no weights", "remove weights, or inOrder")
    variation = Variation(field=path, values=tuple(values), weights=weights or None, in_order=in_order)
    if len(fields.problems) == n_problems and job:
        _check(fields, variation, job)
    return variation if len(fields.problems) == n_problems else None


def _check(fields: Fields, variation: Variation, job: JsonObject) -> None:
    for place in range(len(variation.values)):
        try:
            varied = variation.applied(job, place)
        except ValueError as error:
            fields.complain("field", f"Invalid value: {shown(variation.field)}: {error}", _FORM)
            return
        if any(text_at(varied, *path) != text_at(job, *path) for path in _OF_ALL):
            remedy = "all jobs of a work have one kind, and its name with a number: write several entries under work"
            fields.complain("field", f"Invalid value: {shown(variation.field)}", remedy)
            return
