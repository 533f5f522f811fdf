"""Fingerprints of scenarios: equal fingerprints mean equal trials for each seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from pathlib import Path

import numpy as np

from kueuecore.configuration import Configuration
from kueuecore.manifests import Manifest
from kueuecore.scenarios import Scenario
from kueuecore.simulation.checkpoint import Fingerprint

__all__ = ["scenario_key"]


def scenario_key(scenario: Scenario) -> str:
    """Return the fingerprint of a scenario, for this version of kueuecore.

    Raises:
        TypeError: Something in it has no stable representation across processes.

    Example:
        >>> from kueuecore.scenarios import parse_edit, read_scenario
        >>> path = "examples/scenario/scenario.yaml"
        >>> keys = [scenario_key(read_scenario(path, edits=[parse_edit(f"work[0].count={n}")])) for n in (5, 5, 6)]
        >>> keys[0] == keys[1], keys[1] == keys[2]
        (True, False)
    """
    fingerprint = Fingerprint()
    fingerprint.add(_plain(scenario))
    return fingerprint.text


def _plain(value: object) -> object:
    """Convert a value to tuples, bytes and other values whose repr is the same in every process."""
    match value:
        case Manifest():
            # The position in a file does not count.
            return _plain(value.object)
        case Configuration():
            experiments = (str(value.experiments),) if value.experiments else ()
            return (value.release.name, _plain(value.to_dict()), *experiments)
        case Mapping():
            return tuple((str(key), _plain(item)) for key, item in sorted(value.items(), key=lambda item: str(item[0])))
        case list() | tuple():
            return tuple(map(_plain, value))
        case set() | frozenset():
            return tuple(sorted(map(repr, map(_plain, value))))
        case np.ndarray():
            return (str(value.dtype), value.tobytes())
        case _ if is_dataclass(value) and not isinstance(value, type):
            own = [(field.name, _plain(getattr(value, field.name))) for field in fields(value) if field.compare]
            return (type(value).__name__, *own)
        case _ if callable(value):
            return getattr(value, "__qualname__", type(value).__qualname__)
        case None | bool() | int() | float() | str() | bytes() | Enum() | Fraction() | Path():
            return value
    raise TypeError(f"a scenario with a {type(value).__qualname__} has no fingerprint")
