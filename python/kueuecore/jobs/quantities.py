"""Quantities of Kubernetes, as far as jobs need them: their numbers, and how Kubernetes writes them (rules/01 §7)."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from kueuecore._json import JsonObject, JsonValue

__all__ = ["canonical", "canonical_amounts", "is_quantity", "larger", "rounded_to_milli"]

_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FORM = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_NANO = 10**9
_LONGEST = 1000


def canonical(amount: JsonValue) -> JsonValue:
    """An amount as an API server gives it back: `1000m` is `1`; what is no amount stays as it is.

    Example:
        >>> canonical("1024Mi"), canonical("1000m"), canonical(2), canonical("1.5Gi")
        ('1Gi', '1', '2', '1536Mi')
    """
    number = _number(amount)
    if number is None:
        return amount
    return _text(number, binary=str(amount).endswith("i"))


def canonical_amounts(amounts: JsonValue) -> JsonValue:
    """Amounts by resource, each as an API server gives it back."""
    return {name: canonical(amount) for name, amount in amounts.items()} if isinstance(amounts, dict) else amounts


def is_quantity(amount: JsonValue) -> bool:
    """Whether Kubernetes can read an amount."""
    return _number(amount) is not None


def larger(amount: JsonValue, least: str) -> JsonValue:
    """The larger of two amounts; the second one if the first is missing."""
    first, second = _number(amount), _number(least)
    return least if first is None or second is None or first < second else amount


def rounded_to_milli(amounts: JsonObject) -> JsonObject:
    """Amounts by resource without what is finer than a thousandth, rounded up."""
    rounded: JsonObject = {}
    for name, amount in amounts.items():
        number = _number(amount)
        milli = None if number is None else Fraction(math.ceil(number * 1000), 1000)
        rounded[name] = amount if milli is None or milli == number else _text(milli, binary=False)
    return rounded


def _number(amount: JsonValue) -> Fraction | None:
    if isinstance(amount, bool) or not isinstance(amount, int | float | str):
        return None
    text = str(amount)
    if len(text) > _LONGEST:
        return None
    form = _FORM.match(text)
    if form is None:
        return None
    suffix = text[form.end() :]
    if suffix in _BINARY[1:]:
        unit = Fraction(1024) ** _BINARY.index(suffix)
    elif suffix in _DECIMAL:
        unit = Fraction(1000) ** (_DECIMAL.index(suffix) - 3)
    elif exponent := re.fullmatch(r"[eE]([+-]?[0-9]{1,3})", suffix):
        unit = Fraction(10) ** int(exponent[1])
    else:
        return None
    return Fraction(form[0]) * unit


def _text(number: Fraction, *, binary: bool) -> str:
    if binary and abs(number) >= 1024:
        return _largest(math.ceil(number), 1024, _BINARY)
    return _largest(math.ceil(number * _NANO), 1000, _DECIMAL)


def _largest(units: int, step: int, suffixes: tuple[str, ...]) -> str:
    """A whole number with the largest suffix that leaves a whole number before it."""
    index = 0
    while units and units % step == 0 and index < len(suffixes) - 1:
        units, index = units // step, index + 1
    return f"{units}{suffixes[index]}" if units else "0"
