"""Quantities as floating point numbers, for metrics; what decides does not count so."""

from __future__ import annotations

import re

__all__ = ["as_number"]

_QUANTITY = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(n|u|m|k|[KMGTPE]i?)?")
_POWERS = {"n": -9, "u": -6, "m": -3, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def as_number(quantity: str | None) -> float:
    """A quantity in whole units; infinity for one without a limit.

    Example:
        >>> as_number("1500m"), as_number("2Ki"), as_number(None)
        (1.5, 2048.0, inf)
    """
    if quantity is None:
        return float("inf")
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    number, suffix = float(match[1]), match[2] or ""
    if suffix.endswith("i"):
        return float(number * 1024 ** (_POWERS[suffix[0]] // 3))
    # Divided, not multiplied: 1500 * 0.001 is not 1.5.
    power = _POWERS.get(suffix, 0)
    return float(number * 10**power if power >= 0 else number / 10**-power)
