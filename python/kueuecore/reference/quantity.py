"""Kubernetes quantities: converts texts to numbers and back (rules/01 §7.1, §7.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import cache

from kueuecore.reference.amount import UNLIMITED, clamp

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SUFFIX = {power: suffix for suffix, power in _DECIMAL.items()}
_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+)|(n|u|m|k|M|G|T|P|E|[KMGTPE]i)?)")
NANO = 10**9


def away_from_zero(number: Fraction) -> int:
    """Round to a whole number, as Kubernetes does."""
    return math.ceil(number) if number > 0 else math.floor(number)


@cache
def parse(quantity: str | float) -> Fraction:
    """Read a quantity: at most 2^63-1, in steps of a billionth, rounded away from zero."""
    form = _FORM.fullmatch(str(quantity))
    if form is None or not (form[2] or form[3]):
        raise ValueError(f"not a quantity: {quantity!r}")
    suffix = form[5] or ""
    unit = Fraction(1024) ** _BINARY.index(suffix) if suffix in _BINARY else Fraction(10) ** _DECIMAL[suffix]
    number = Fraction(f"{form[1]}{form[2] or 0}.{form[3] or 0}") * unit * Fraction(10) ** int(form[4] or 0)
    return min(Fraction(UNLIMITED), Fraction(away_from_zero(number * NANO), NANO))


@cache
def value(resource: str, quantity: str | float | Fraction) -> int:
    """Return cpu in thousandths, anything else in units, rounded away from zero (rules/01 §7.1)."""
    number = quantity if isinstance(quantity, Fraction) else parse(quantity)
    return clamp(away_from_zero(number * 1000 if resource == "cpu" else number))


@cache
def limit(resource: str, quantity: str | float) -> int:
    """Read a quota or limit; values close to the end of the range are unlimited (rules/02 §1)."""
    most = UNLIMITED // 1000 if resource == "cpu" else UNLIMITED
    return UNLIMITED if parse(quantity) >= most else value(resource, quantity)


def total(*lists: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Add up lists of resources."""
    summed: dict[str, Fraction] = {}
    for resources in lists:
        for name, more in resources.items():
            summed[name] = summed[name] + more if name in summed else more
    return summed


def exact(resource: str, number: int) -> Fraction:
    """Return an amount of a resource in cores or units."""
    return Fraction(number, 1000 if resource == "cpu" else 1)


def text(resource: str, number: int, *, in_bytes: bool = False) -> str:
    """Write an amount of a resource (rules/01 §7.2)."""
    in_bytes |= resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    is_binary = in_bytes and number and number % 1024 == 0
    return _binary_text(number) if is_binary else text_of_exact(exact(resource, number))


def _binary_text(number: int) -> str:
    power = 0
    while power < 6 and number % 1024 == 0:
        number, power = number // 1024, power + 1
    return f"{number}{_BINARY[power]}"


@cache
def text_of_exact(number: Fraction) -> str:
    """Write a number with the largest decimal suffix that leaves a whole number before it (rules/01 §7.2)."""
    units, power = int(number * NANO), -9
    while units and power < 18 and units % 1000 == 0:
        units, power = units // 1000, power + 3
    return f"{units}{_SUFFIX[power]}" if units else "0"


@cache
def canonical(quantity: str | float) -> str:
    """Write a quantity as Kubernetes would: the binary, decimal or exponent family stays (rules/05 §4)."""
    number, written = parse(quantity), str(quantity)
    if written.endswith("i") and abs(number) >= 1024:
        return _binary_text(away_from_zero(number))
    decimal = text_of_exact(number)
    if re.search(r"[eE][+-]?[0-9]", written) and decimal[-1] in _DECIMAL:
        return f"{decimal[:-1]}e{_DECIMAL[decimal[-1]]}"
    return decimal
