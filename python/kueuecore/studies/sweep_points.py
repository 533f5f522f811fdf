"""Presents the points of a sweep: short field names, values, and the best point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from kueuecore._json import JsonValue
from kueuecore.scenarios import Edit
from kueuecore.studies.sweeping import Sweep

__all__ = ["best_first", "called", "field_names", "is_more_better", "value_names", "value_text"]

# Values as they are up to here; names made of their parts up to there.
_SHORT, _LONGEST = 20, 44
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


def value_names(values: Sequence[JsonValue]) -> list[str]:
    """Return short names for the values of a field: of objects and lists, only what tells them apart.

    Args:
        values: The value at each point.

    Returns:
        A name for each; equal values have the same name, different ones different names.

    Example:
        >>> value_names([4, "1m", 4])
        ['4', '1m', '4']
        >>> value_names([{"kind": "Span", "mean": "30s"}, {"kind": "Span", "mean": "1m"}, {"kind": "Span"}])
        ['30s', '1m', 'no mean']
        >>> value_names([{"mean": "30s"}, {"lognormal": {"mean": "5m", "p95": "15m"}}])
        ['mean 30s', 'mean 5m, p95 15m']
    """
    texts = [value_text(value) for value in values]
    distinct = dict(zip(texts, values, strict=True))
    if all(
        len(text) <= (_SHORT if isinstance(entry, list) else _LONGEST) for text, entry in distinct.items()
    ) and not any(isinstance(entry, dict) for entry in distinct.values()):
        return texts
    leaves = {text: dict(_leaves(entry, ())) for text, entry in distinct.items()}
    paths = dict.fromkeys(path for leaf in leaves.values() for path in leaf)
    differing = [path for path in paths if len({leaf.get(path) for leaf in leaves.values()}) > 1]
    names = {text: _name(leaf, differing) for text, leaf in leaves.items()}
    is_clear = (
        bool(differing)
        and len(set(names.values())) == len(names)
        and all(0 < len(name) <= _LONGEST for name in names.values())
    )
    if not is_clear:
        names = {text: f"value {number}" for number, text in enumerate(names, 1)}
    return [names[text] for text in texts]


def called(edits: Sequence[Edit]) -> list[str]:
    """Return what tables call the values of a field: the given names, or those of `value_names`.

    Args:
        edits: The edit of the field at each point.

    Example:
        >>> from kueuecore.scenarios import parse_target
        >>> from kueuecore.studies import Axis
        >>> axis = Axis(parse_target("work[0].count"), (8, 16), names=("few", "many"))
        >>> called(axis.edits)
        ['few', 'many']
    """
    names = [edit.called for edit in edits]
    return names if all(names) else value_names([edit.value for edit in edits])


def _leaves(value: JsonValue, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the path and the text of each part of a value that has no parts of its own."""
    parts: Sequence[tuple[str, JsonValue]] = ()
    if isinstance(value, dict):
        parts = [*value.items()]
    elif isinstance(value, list):
        parts = [(str(index), row) for index, row in enumerate(value)]
    if not parts:
        yield path, value_text(value)
    for name, part in parts:
        yield from _leaves(part, (*path, name))


def _name(leaves: Mapping[tuple[str, ...], str], differing: Sequence[tuple[str, ...]]) -> str:
    """Name a value by those of its parts that differ between values."""
    own = [path for path in differing if path in leaves]
    if len(differing) == 1 and own:
        return leaves[own[0]]
    if not own:
        missing = dict.fromkeys(_field(path) for path in differing)
        return f"no {' or '.join(missing)}"
    return ", ".join(f"{_field(path)} {leaves[path]}".strip() for path in own)


def _field(path: tuple[str, ...]) -> str:
    """Return the last part of a path that is not the index of a list."""
    return next((name for name in reversed(path) if not name.isdigit()), "value")


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
        ranks = [
            (median is None, (-median if is_more_better(name) else median) if median is not None else 0.0)
            for name, median in medians
        ]
        return [(was_cut_off, 0.0), *ranks]

    return sorted(range(len(found.points)), key=key)
