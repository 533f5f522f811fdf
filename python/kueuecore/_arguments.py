"""Checks and converts arguments for the extension; errors name the argument."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kueuecore._text import shortened

__all__ = ["cycles_of", "each", "flag", "instance", "mapping", "number", "one", "shown", "text", "workload_key"]

_K = TypeVar("_K")
_T = TypeVar("_T")


def text(name: str, value: object) -> str:
    """Check that a value is a string that UTF-8 can encode.

    Raises:
        TypeError: It is not a string.
        ValueError: It has an unpaired surrogate, which no name or message has.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    try:
        str.encode(value)
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: unpaired surrogate at position {error.start}") from None
    # Turns a subclass of str into a str.
    return str.__str__(value)


def workload_key(namespace: str, name: str) -> tuple[str, str]:
    """Check the namespace and name of a Workload or another namespaced object.

    Raises:
        TypeError: One of them is not a string.
        ValueError: UTF-8 cannot encode one of them.
    """
    return text("namespace", namespace), text("name", name)


def flag(name: str, value: object) -> bool:
    """Check that a value is a bool, of Python or numpy.

    Raises:
        TypeError: It is something else, whose truth would be a guess.
    """
    is_numpys = str(getattr(value, "dtype", "")) == "bool" and getattr(value, "shape", None) == ()
    if not (isinstance(value, bool) or is_numpys):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return bool(value)


def number(name: str, value: object) -> int:
    """Check that a value is a whole number from 0 to 2^63-1.

    Raises:
        TypeError: It is not a whole number.
        ValueError: It is out of range.
    """
    try:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError
        whole = operator.index(value)
    except TypeError:  # an array of several numbers has an __index__ too
        raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if not 0 <= whole < 2**63:
        raise ValueError(f"{name} must be a number from 0 to {2**63 - 1}")
    return whole


def cycles_of(cycles: object, name: str) -> int | None:
    """Check a number of cycles; `None` is no limit.

    Raises:
        TypeError: It is not a number.
        ValueError: It is negative, beyond 64 bits, or NaN.
    """
    if isinstance(cycles, float) and math.isnan(cycles):
        raise ValueError(f"{name} is NaN; give a number from 0 to {2**63 - 1}")
    if cycles is not None and (isinstance(cycles, bool) or not isinstance(cycles, int)):
        raise TypeError(f"{name} must be a number of cycles or None, not {type(cycles).__name__}")
    return None if cycles is None else number(name, cycles)


def instance(name: str, value: object, cls: type[_T]) -> _T:
    """Check that a value is an instance of a class.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(value, cls):
        raise TypeError(f"{name} must be {one(cls)}, not {type(value).__name__}")
    return value


def one(cls: type) -> str:
    """Return the name of a class with its article: `an Engine`."""
    return f"{'an' if cls.__name__[0] in 'AEIOU' else 'a'} {cls.__name__}"


def each(name: str, values: Iterable[_T]) -> Iterator[_T]:
    """Iterate over objects.

    Raises:
        TypeError: `values` is not an iterable, or is a single object.
    """
    try:
        if isinstance(values, str | bytes | Mapping):
            raise TypeError
        return iter(values)
    except TypeError:  # an array without a dimension only looks iterable
        raise TypeError(f"{name} must be a sequence, not {type(values).__name__}") from None


def mapping(name: str, value: Mapping[_K, _T]) -> Mapping[_K, _T]:
    """Check that a value is a mapping.

    Raises:
        TypeError: It is not.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(value).__name__}")
    return value


def shown(value: object) -> str:
    """Format a value for a message: cut if long, only its type if `repr` fails."""
    try:
        return shortened(repr(value))
    except Exception:  # its class may raise anything
        return f"a {type(value).__name__}"
