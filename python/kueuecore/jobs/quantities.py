"""Reads and writes Kubernetes quantities, as far as jobs need them (rules/01 §7)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction

from kueuecore._json import JsonObject, JsonValue
from kueuecore._quantities import BINARY, DECIMAL, number

__all__ = ["canonical", "canonical_amounts", "is_quantity", "larger", "printed_amounts", "rounded_to_milli", "total"]

_NANO = 10**9
_EXPONENT = re.compile(r"[+-]?([0-9]*+)\.?([0-9]*)[eE]([+-]?[0-9]{1,3})")
_EXPONENTS = ("e-9", "e-6", "e-3", "", *(f"e{power}" for power in range(3, 19, 3)))


def canonical(amount: JsonValue) -> JsonValue:
    """Return an amount as an API server returns it: `1000m` is `1`; anything else is unchanged.

    Example:
        >>> canonical("1024Mi"), canonical("1000m"), canonical(2), canonical("1.5Gi")
        ('1Gi', '1', '2', '1536Mi')
    """
    units = number(amount)
    if units is None:
        return amount
    return _text(units, binary=str(amount).endswith("i"))


def canonical_amounts(amounts: JsonValue) -> JsonValue:
    """Return amounts by resource, each as an API server returns it."""
    return {name: canonical(amount) for name, amount in amounts.items()} if isinstance(amounts, dict) else amounts


def printed_amounts(amounts: JsonValue) -> JsonValue:
    """Return amounts by resource, each as Go prints it: a power of ten stays one, even if an equal amount may not.

    Example:
        >>> printed_amounts({"cpu": "2e3", "memory": "20e2"}), canonical("2e3")
        ({'cpu': '2e3', 'memory': '2e3'}, '2k')
    """
    return {name: _printed(amount) for name, amount in amounts.items()} if isinstance(amounts, dict) else amounts


def _printed(amount: JsonValue) -> JsonValue:
    text, units = str(amount), number(amount)
    if units is None or (form := _EXPONENT.fullmatch(text)) is None:
        return canonical(amount)
    digits, scale = form[1] + form[2], int(form[3]) - len(form[2])
    if scale >= -9 and scale % 3 == 0 and not digits.endswith("000") and digits[0] != "0":
        return text
    return _largest(math.ceil(units * _NANO), 1000, _EXPONENTS)


def is_quantity(amount: JsonValue) -> bool:
    """Return whether Kubernetes can read an amount."""
    return number(amount) is not None


def larger(amount: JsonValue, least: str) -> JsonValue:
    """Return the larger of two amounts; the second one if the first is missing."""
    first, second = number(amount), number(least)
    return least if first is None or second is None or first < second else amount


def rounded_to_milli(amounts: JsonObject) -> JsonObject:
    """Return amounts by resource, rounded up to a thousandth."""
    rounded: JsonObject = {}
    for name, amount in amounts.items():
        units = number(amount)
        milli = None if units is None else Fraction(math.ceil(units * 1000), 1000)
        rounded[name] = amount if milli is None or milli == units else _text(milli, binary=False)
    return rounded


def total(amounts: Iterable[JsonValue]) -> str:
    """Return the sum of amounts, written like the first that is not 0.

    Example:
        >>> total(["0", "1Gi", "1024Mi"]), total(["1500m", 2]), total([])
        ('2Gi', '3500m', '0')
    """
    pairs = [(amount, units) for amount in amounts if (units := number(amount))]
    return _text(sum((units for _, units in pairs), Fraction()), binary=bool(pairs) and str(pairs[0][0]).endswith("i"))


def _text(units: Fraction, *, binary: bool) -> str:
    if binary and abs(units) >= 1024:
        return _largest(math.ceil(units), 1024, BINARY)
    return _largest(math.ceil(units * _NANO), 1000, DECIMAL)


def _largest(units: int, step: int, suffixes: tuple[str, ...]) -> str:
    """Return a whole number with the largest suffix that leaves it whole."""
    index = 0
    while units and units % step == 0 and index < len(suffixes) - 1:
        units, index = units // step, index + 1
    return f"{units}{suffixes[index]}" if units else "0"
