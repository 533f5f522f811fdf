"""How a process forecasts, and from what; importing this brings no numpy along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kueuecore._json import JsonObject
from kueuecore._kinds import KINDS

__all__ = ["FORECAST_KINDS", "ForecastExport", "ForecastSettings", "Snapshot"]

FORECAST_KINDS = frozenset(kind.name for kind in KINDS)
"""The kinds that a forecast is made from."""


class ForecastExport(StrEnum):
    """Where forecasts go."""

    METRICS = "metrics"
    ANNOTATE = "annotate"
    """To metrics and to annotations of the Workloads that wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSettings:
    """How a process forecasts.

    Args:
        export: Where the forecasts go.
        seconds: How long after a round begins the next one does.
    """

    export: ForecastExport = ForecastExport.METRICS
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if not self.seconds >= 1:
            raise ValueError("the time between forecasts must be at least a second")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster as its watches have shown it.

    Args:
        now: When, in nanoseconds since 1970.
        objects: Its objects, those of `FORECAST_KINDS`. Nobody changes them.
    """

    now: int
    objects: Sequence[JsonObject]
