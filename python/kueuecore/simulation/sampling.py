"""Checks the sampling interval of LocalQueue usage in virtual time (rules/09 §1.4)."""

from __future__ import annotations

from kueuecore._json import object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ConfigurationError
from kueuecore.times import duration_ns

__all__ = ["check_sampling"]

_LEAST_NS = 1_000_000_000


def check_sampling(configuration: Configuration) -> None:
    """Check that a run can take all samples: with an interval of 0 it would never reach the next second.

    Raises:
        ConfigurationError: The interval of admission fair sharing is shorter than a second.
    """
    settings = configuration.to_dict()
    if "admissionFairSharing" not in settings:
        return
    interval = text_at(object_at(settings, "admissionFairSharing"), "usageSamplingInterval")
    if duration_ns(interval) < _LEAST_NS:
        field, remedy = "admissionFairSharing.usageSamplingInterval", "write at least 1s: a run takes every sample"
        raise ConfigurationError.of(f"Invalid value: {interval}", field=field, remedy=remedy)
