"""Arguments as the extension takes them; what does not fit is refused by the name of the argument."""

from __future__ import annotations

import math
import operator

__all__ = ["cycles_of", "number", "text"]


def text(name: str, value: object) -> str:
    """A text that UTF-8 can hold.

    Raises:
        TypeError: It is none.
        ValueError: It has half a surrogate pair, which no name and no message has.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {type(value).__name__}")
    try:
        str.encode(value)
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} is no text: at {error.start} stands half a surrogate pair") from None
    # Of a class that is derived from str, the text.
    return str.__str__(value)


def number(name: str, value: object) -> int:
    """A whole number from 0 to 2^63-1.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is not in this range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is an int, not {type(value).__name__}")
    whole = operator.index(value)
    if not 0 <= whole < 2**63:
        raise ValueError(f"{name} must be a number from 0 to {2**63 - 1}")
    return whole


def cycles_of(cycles: object, name: str) -> int | None:
    """A number of cycles, or no limit.

    Raises:
        TypeError: It is no number.
        ValueError: It is negative, beyond 64 bits, or not a number (NaN).
    """
    if cycles is None:
        return None
    if not isinstance(cycles, int) or isinstance(cycles, bool):
        if isinstance(cycles, float) and math.isnan(cycles):
            raise ValueError(f"{name} is NaN; give a number from 0 to {2**63 - 1}")
        raise TypeError(f"{name} is a number of cycles or None, not {type(cycles).__name__}")
    if not 0 <= cycles < 2**63:
        raise ValueError(f"{name} is {cycles}; give a number from 0 to {2**63 - 1}")
    return cycles
