"""Experiments: rules that people ask Kueue for and that it does not have (rules/13). All are off by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self, cast

from kueuecore._arguments import shown
from kueuecore._json import JsonObject
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.errors import ConfigurationError, Problem

__all__ = ["Experiments", "experiment_names", "parse_experiments"]

_MAX_SECONDS = 365 * 86400
_NAMES = {
    "minRunSecondsBeforeCrossQueuePreemption": "min_run_seconds_before_cross_queue_preemption",
    "reclaimBackoffSeconds": "reclaim_backoff_seconds",
    "timeShareSeconds": "time_share_seconds",
}
_FORM = "write NAME=SECONDS, such as reclaimBackoffSeconds=300"


def experiment_names() -> tuple[str, ...]:
    """Return the name of every experiment, as it is written in a scenario.

    Example:
        >>> experiment_names()
        ('minRunSecondsBeforeCrossQueuePreemption', 'reclaimBackoffSeconds', 'timeShareSeconds')
    """
    return tuple(_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiments:
    """Which experiments are on, each with its time in seconds, from 1 to 31536000 (365 days); None: off.

    Kueue has none of these rules, so what an engine decides with one of them is not what Kueue would decide.

    Args:
        min_run_seconds_before_cross_queue_preemption: How long a workload runs before another ClusterQueue may preempt
            it (rules/13 §2).
        reclaim_backoff_seconds: How long a ClusterQueue does not borrow again what was reclaimed from it (rules/13 §3).
        time_share_seconds: How long a workload runs before one of equal priority in its ClusterQueue may take its
            turn (rules/13 §4).

    Raises:
        ConfigurationError: A time is not in range.

    Example:
        >>> str(Experiments(reclaim_backoff_seconds=300))
        'reclaimBackoffSeconds=300'
        >>> bool(Experiments())
        False
    """

    min_run_seconds_before_cross_queue_preemption: int | None = None
    reclaim_backoff_seconds: int | None = None
    time_share_seconds: int | None = None

    def __post_init__(self) -> None:
        values = {name: getattr(self, of_python) for name, of_python in _NAMES.items()}
        if problems := [*_problems(values)]:
            raise ConfigurationError(problems)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """Read experiments by the names that they have in a scenario.

        Args:
            values: Seconds by name; None: off.

        Raises:
            ConfigurationError: Names every experiment that is unknown, and every time that is not in range.

        Example:
            >>> Experiments.of({"timeShareSeconds": 1800}).time_share_seconds
            1800
        """
        if problems := [*_problems(values)]:
            raise ConfigurationError(problems)
        given = {_NAMES[name]: cast("int | None", value) for name, value in values.items()}
        return cls(**given)

    def to_dict(self) -> JsonObject:
        """Return those that are on as plain data, by the names that they have in a scenario."""
        values = {name: getattr(self, of_python) for name, of_python in _NAMES.items()}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def notice(self) -> str:
        """What every output says whose decisions they are part of; empty if all are off.

        Example:
            >>> Experiments(time_share_seconds=600).notice
            'experiments: timeShareSeconds=600 (not in Kueue)'
        """
        return f"experiments: {self} (not in Kueue)" if self else ""

    @property
    def longest_seconds(self) -> int:
        """The longest time of those that are on; 0 if all are off."""
        return max((cast("int", value) for value in self.to_dict().values()), default=0)

    def __bool__(self) -> bool:
        return self != Experiments()

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.to_dict().items())


def parse_experiments(texts: Iterable[str]) -> Experiments:
    """Parse experiments as they are written in options: `NAME=SECONDS` each.

    Raises:
        ConfigurationError: Lists everything that is wrong: a text of another form, a name that is unknown or occurs
            twice, a time that is not in range.

    Example:
        >>> parse_experiments(["timeShareSeconds=1800", "reclaimBackoffSeconds=300"]).to_dict()
        {'reclaimBackoffSeconds': 300, 'timeShareSeconds': 1800}
    """
    values: dict[str, object] = {}
    problems: list[Problem] = []
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            problems.append(Problem(f"{quoted(text)} has no value", remedy=_FORM))
        elif name in values:
            problems.append(Problem("it is given twice", field=name, remedy="give it once"))
        else:
            values[name] = int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else value
    problems += _problems(values)
    if problems:
        raise ConfigurationError(problems)
    return Experiments.of(values)


def _problems(values: Mapping[str, object]) -> Iterator[Problem]:
    for name, value in values.items():
        if name not in _NAMES:
            near = near_names(str(name), _NAMES)
            remedy = f"did you mean {near[0]}?" if near else f"there are {', '.join(_NAMES)}"
            yield Problem(f"unknown experiment {quoted(str(name))}", field=str(name), remedy=remedy)
        elif value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_SECONDS
        ):
            remedy = f"write a whole number of seconds from 1 to {_MAX_SECONDS}, or leave it out"
            yield Problem(f"Invalid value: {shown(value)}", field=name, remedy=remedy)
