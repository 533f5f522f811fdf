"""How often the usage of LocalQueues is sampled in virtual time (rules/09 §1.4)."""

from __future__ import annotations

from kueuecore._json import object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ConfigurationError
from kueuecore.times import duration_ns

__all__ = ["check_sampling"]

_LEAST_NS = 1_000_000_000


def check_sampling(configuration: Configuration) -> None:
    """See whether a run can take all samples: with an interval of nothing it would never come to the next second.

    Raises:
        ConfigurationError: The interval of admission fair sharing is shorter than a second.
    """
    settings = configuration.to_dict()
    if "admissionFairSharing" not in settings:
        return
    interval = text_at(object_at(settings, "admissionFairSharing"), "usageSamplingInterval")
    if duration_ns(interval) < _LEAST_NS:
        field, remedy = "admissionFairSharing.usageSamplingInterval", "give at least 1s: a run takes each sample"
        raise ConfigurationError.of(f"Invalid value: {interval}", field=field, remedy=remedy)
