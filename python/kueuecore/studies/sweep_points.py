"""Presents the points of a sweep: short field names, values, and the best point."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kueuecore._json import JsonValue
from kueuecore.studies.sweeping import Sweep

__all__ = ["best_first", "field_names", "is_more_better", "value_text"]

_MORE_IS_BETTER = ("finished", "fairness", "utilisation", "goodput")


def field_names(targets: Sequence[str]) -> list[str]:
    """Return the last part of each field, numbered where several are the same.

    Args:
        targets: The fields, as `Edit.target` has them.

    Example:
        >>> field_names(["work[0].count", "ClusterQueue/a:spec.weight", "ClusterQueue/b:spec.weight"])
        ['count', 'weight 1', 'weight 2']
    """
    last = [target.replace("]", "").replace("[", ".").split(".")[-1] for target in targets]
    lower = [name.lower() for name in last]
    return [
        name if lower.count(lower[place]) == 1 else f"{name} {lower[: place + 1].count(lower[place])}"
        for place, name in enumerate(last)
    ]


def value_text(value: JsonValue) -> str:
    """Format a value for a table: strings as they are, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def is_more_better(name: str) -> bool:
    """Return whether a larger value of a figure is better.

    Example:
        >>> is_more_better("goodput/cpu"), is_more_better("mean_wait_seconds")
        (True, False)
    """
    return name.partition("/")[0] in _MORE_IS_BETTER


def best_first(found: Sweep, by: str | None = None) -> list[int]:
    """Return the indices of the points, the best first.

    Points with a run that was cut off come last. The others are ranked by the fewest jobs never admitted, then by the
    shortest mean wait, then in their own order. Figures are medians over seeds.

    Args:
        found: The sweep.
        by: A figure to rank by before these.

    Example:
        >>> from kueuecore.scenarios import parse_target, read_scenario
        >>> from kueuecore.studies import Axis, grid_points, sweep
        >>> path = "examples/scenario/scenario.yaml"
        >>> quota = "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"
        >>> points = grid_points([Axis(parse_target(f"ClusterQueue/*:{quota}"), (3, 6))])
        >>> best_first(sweep(lambda edits: read_scenario(path, edits=edits), points))
        [1, 0]
    """
    names = [*([by] if by is not None else []), "never_admitted", "mean_wait_seconds"]

    def key(point: int) -> list[tuple[bool, float]]:
        was_cut_off = any(found.estimate(point, "cut_off").values)
        medians = [(name, found.estimate(point, name).median) for name in names]
        ranks = [(it is None, (-it if is_more_better(name) else it) if it is not None else 0.0) for name, it in medians]
        return [(was_cut_off, 0.0), *ranks]

    return sorted(range(len(found.points)), key=key)
