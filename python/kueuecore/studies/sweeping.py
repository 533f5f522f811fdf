"""Runs one scenario under many configurations: each point of a grid, or random points, with each seed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from random import Random

import numpy as np

from kueuecore._json import JsonValue
from kueuecore._replaced_files import open_unlinked, replaced
from kueuecore.errors import ManifestError
from kueuecore.releases import Release
from kueuecore.results.table import Column, Table
from kueuecore.scenarios import Edit, Scenario
from kueuecore.studies.estimates import Estimate
from kueuecore.studies.fingerprints import scenario_key
from kueuecore.studies.running import run_all
from kueuecore.studies.trial import run_trial

__all__ = ["Axis", "Journal", "Sweep", "drawn_points", "grid_points", "sweep"]

Point = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """A field and its possible values.

    Args:
        target: The field; its own value is ignored.
        values: The values; if `is_range`, the least and the greatest.
        is_range: Whether it may be any number between the two.
        names: What tables call the values; empty: themselves.

    Raises:
        ValueError: There is no value, the range is not one of numbers, the field is the seed, or there is not a name
            of its own for each value.
    """

    target: Edit
    values: tuple[JsonValue, ...]
    is_range: bool = False
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.target.target == "seed":
            raise ValueError("the seed cannot be varied: every point runs with each of the seeds")
        if not self.values:
            raise ValueError(f"{self.target.target} has no values")
        is_named = len(self.names) == len(set(self.names)) == len(self.values) and all(self.names)
        if self.names and (self.is_range or not is_named):
            raise ValueError(f"{self.target.target}: give each value a name of its own, and a range none")
        if self.is_range:
            are_numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in self.values)
            if not are_numbers or len(self.values) != 2 or self.values[0] > self.values[1]:  # type: ignore[operator]
                raise ValueError(f"{self.target.target}: a range goes from one number up to another")

    @property
    def edits(self) -> list[Edit]:
        """Each of the values, with its name."""
        names = self.names or [""] * len(self.values)
        return [replace(self.target, value=value, called=name) for value, name in zip(self.values, names, strict=True)]

    def draw(self, random: Random) -> Edit:
        """Draw one of the values; from a range of whole numbers, a whole number."""
        if not self.is_range:
            return random.choice(self.edits)
        low, high = self.values
        if isinstance(low, int) and isinstance(high, int):
            return replace(self.target, value=random.randint(low, high))
        return replace(self.target, value=random.uniform(low, high))  # type: ignore[arg-type]  # they are numbers


def grid_points(axes: Sequence[Axis]) -> list[Point]:
    """Return every combination of values, the last axis fastest.

    Raises:
        ValueError: An axis is a range.

    Example:
        >>> from kueuecore.scenarios import parse_target
        >>> axes = [Axis(parse_target("work[0].count"), (1, 2)), Axis(parse_target("until"), ("1h",))]
        >>> [[it.value for it in point] for point in grid_points(axes)]
        [[1, '1h'], [2, '1h']]
    """
    for axis in axes:
        if axis.is_range:
            raise ValueError(f"{axis.target.target} is a range; a grid needs values")
    return [*product(*(axis.edits for axis in axes))]


def drawn_points(axes: Sequence[Axis], n: int, *, seed: int) -> list[Point]:
    """Draw random points, each axis independently. The first points do not depend on `n`.

    Args:
        axes: The fields.
        n: The number of points.
        seed: The seed of the random draws.
    """
    return [
        tuple(axis.draw(Random(f"{seed}/point/{index}/{axis.target.target}")) for axis in axes) for index in range(n)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The outcome of each point for each seed.

    Args:
        points: The points.
        seeds: The seeds.
        figures: Figures by name (`Trial.all_figures`) for each point and seed, point by point.
        releases: The release of Kueue that decides at each point; for a fleet, on the manager.
        notices: What each point says about rules that Kueue does not have.
    """

    points: tuple[Point, ...]
    seeds: tuple[int, ...]
    figures: tuple[Mapping[str, float], ...]
    releases: tuple[Release, ...] = ()
    notices: tuple[tuple[str, ...], ...] = ()

    def estimate(self, point: int, name: str) -> Estimate:
        """Return one figure of a point over seeds.

        Args:
            point: Its index.
            name: The figure.
        """
        n = len(self.seeds)
        return Estimate(tuple(figure[name] for figure in self.figures[point * n : (point + 1) * n] if name in figure))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all figures of any run."""
        return tuple(dict.fromkeys(name for figure in self.figures for name in figure))

    def __repr__(self) -> str:
        return f"Sweep({len(self.points)} points, {len(self.seeds)} seeds each)"

    def _repr_html_(self) -> str:
        """The points with medians over seeds, for notebooks."""
        from kueuecore.studies.study_html import sweep_html  # which imports this module

        return sweep_html(self)

    def table(self) -> Table:
        """Return a row for each point and seed: `point`, values by field as names or text, `seed`, and the figures."""
        n = len(self.seeds)
        index = np.arange(len(self.figures)) // n
        columns = {"point": Column(values=index)}
        for place, edit in enumerate(self.points[0] if self.points else ()):
            words = tuple(point[place].called or json.dumps(point[place].value) for point in self.points)
            columns[edit.target] = Column(values=index, words=words)
        columns["seed"] = Column(values=np.tile(np.array(self.seeds, np.int64), len(self.points)))
        for name in self.names:
            values = [figure.get(name) for figure in self.figures]
            is_null = np.array([value is None for value in values], np.bool_)
            columns[name] = Column(values=np.array([value or 0.0 for value in values]), is_null=is_null)
        return Table(columns)


class Journal:
    """A file of finished trials, one per line, so that an interrupted sweep can resume.

    Args:
        path: The file.
        resume: Use the trials in it. If false, it must not exist.

    Raises:
        ManifestError: It exists, or cannot be read or written.
    """

    def __init__(self, path: str | Path, *, resume: bool) -> None:
        self._path = Path(path)
        self.known: dict[str, dict[str, float]] = {}
        try:
            if self._path.exists() and not resume:
                remedy = "pass --resume to continue, or delete it"
                raise ManifestError.of("the file exists", remedy=remedy, file=str(path))
            text = self._path.read_text(encoding="utf-8") if self._path.exists() else ""
            # The last line may have been cut off.
            whole = text[: text.rfind("\n") + 1]
            for number, line in enumerate(whole.splitlines(), 1):
                self._take(line, number)
            with replaced(self._path) as file:
                file.write(whole.encode())
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror or error if isinstance(error, OSError) else error
            raise ManifestError.of(f"cannot be used: {reason}", remedy="name another file", file=str(path)) from None

    def _take(self, line: str, number: int) -> None:
        try:
            found = json.loads(line)
            figures = {str(name): float(value) for name, value in found["figures"].items()}
            self.known[str(found["trial"])] = figures
        except (ValueError, KeyError, TypeError, AttributeError):
            remedy = "name the file of a sweep, or delete it"
            raise ManifestError.of("not a trial", remedy=remedy, file=f"{self._path}:{number}") from None

    def add(self, key: str, figures: Mapping[str, float]) -> None:
        """Append a finished trial.

        Raises:
            ManifestError: The file cannot be written.
        """
        try:
            with open_unlinked(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
                file.write(f"{json.dumps({'trial': key, 'figures': figures})}\n".encode())
        except OSError as error:
            remedy = "make room, and continue with --resume"
            raise ManifestError.of(f"cannot be written: {error}", remedy=remedy, file=str(self._path)) from None

    def remove(self) -> None:
        """Delete the file once there is nothing left to resume."""
        self._path.unlink(missing_ok=True)


def sweep(
    read: Callable[[Sequence[Edit]], Scenario],
    points: Sequence[Point],
    *,
    seeds: Sequence[int] = range(1),
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    journal: Journal | None = None,
) -> Sweep:
    """Run a scenario at each point for each seed. The results do not depend on the executor.

    Args:
        read: Reads the scenario with edits.
        points: The points, each with edits of the same fields.
        seeds: Distinct seeds for all of them.
        executor: What runs them; None: one at a time, in this process.
        progress: Called after each run with the numbers of finished runs and of all runs.
        journal: Where to save finished trials, and read those of an earlier run.

    Raises:
        ManifestError: Everything that is wrong with the scenario at the first invalid point.
        ValueError: There is no point, no seed, or a seed occurs twice.

    Example:
        >>> from kueuecore.scenarios import parse_target, read_scenario
        >>> path = "examples/scenario/scenario.yaml"
        >>> quota = "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"
        >>> axis = Axis(parse_target(f"ClusterQueue/*:{quota}"), (4, 8))
        >>> found = sweep(lambda edits: read_scenario(path, edits=edits), grid_points([axis]))
        >>> found.estimate(0, "mean_wait_seconds").median > found.estimate(1, "mean_wait_seconds").median
        True
    """
    if not points:
        raise ValueError("there are no points")
    if not seeds or len(set(seeds)) != len(seeds):
        raise ValueError("seeds must be distinct, and at least one")
    scenarios = [read(point) for point in points]
    calls = [(scenario, seed) for scenario in scenarios for seed in seeds]
    names = [scenario_key(scenario) for scenario in scenarios] if journal is not None else []
    keys = [f"{name}/{seed}" for name in names for seed in seeds]
    known = {} if journal is None else journal.known
    figures = {index: known[key] for index, key in enumerate(keys) if key in known}
    left = [index for index in range(len(calls)) if index not in figures]
    for index, found in _figures(calls, left, executor):
        figures[index] = found
        if journal is not None:
            journal.add(keys[index], found)
        if progress is not None:
            progress(len(figures), len(calls))
    return Sweep(
        points=tuple(points),
        seeds=tuple(seeds),
        figures=tuple(figures[index] for index in range(len(calls))),
        releases=tuple(scenario.release for scenario in scenarios),
        notices=tuple(scenario.experiment_notices for scenario in scenarios),
    )


def _figures(
    calls: Sequence[tuple[Scenario, int]], left: Sequence[int], executor: Executor | None
) -> Iterator[tuple[int, dict[str, float]]]:
    for place, found in run_all(figures_of, [calls[index] for index in left], executor):
        yield left[place], found


def figures_of(scenario: Scenario, seed: int) -> dict[str, float]:
    """Run a scenario with a seed and return its figures."""
    return run_trial(scenario, seed).all_figures()
