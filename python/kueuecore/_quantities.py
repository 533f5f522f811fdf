"""Values of Kubernetes quantities, for display only: for decisions, the engine reads them itself (rules/01 §7)."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["BINARY", "DECIMAL", "number"]

DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FORM = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)")
_LONGEST = 1000


def number(quantity: object) -> Fraction | None:
    """Return the value of a quantity in whole units; None if it is not one.

    Example:
        >>> number("1500m"), number("2Ki"), number("1e3"), number("1x")
        (Fraction(3, 2), Fraction(2048, 1), Fraction(1000, 1), None)
    """
    if isinstance(quantity, bool) or not isinstance(quantity, int | float | str):
        return None
    text = str(quantity)
    form = _FORM.match(text) if len(text) <= _LONGEST else None
    if form is None:
        return None
    suffix = text[form.end() :]
    if suffix in BINARY[1:]:
        unit = Fraction(1024) ** BINARY.index(suffix)
    elif suffix in DECIMAL:
        unit = Fraction(1000) ** (DECIMAL.index(suffix) - 3)
    elif exponent := re.fullmatch(r"[eE]([+-]?[0-9]{1,3})", suffix):
        unit = Fraction(10) ** int(exponent[1])
    else:
        return None
    return Fraction(form[0]) * unit
