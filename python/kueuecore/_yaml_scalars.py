"""Converts YAML's scalars to JSON values as Kubernetes does: by YAML 1.1, as kubectl's library reads it.

So `yes`, `off` and `y` are booleans, `0755` and `0o755` are 493, `08` is 8, and `12:30:00` is a string. What that
library answers is recorded in `tests/yaml_scalars`.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from datetime import date

from kueuecore._json import JsonValue

__all__ = ["json_number", "key_text", "plain_value", "tagged_value"]

_WORDS: dict[str, JsonValue] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"], math.inf),
    **dict.fromkeys(["-.inf", "-.Inf", "-.INF"], -math.inf),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
}
_NUMBER_STARTS = frozenset("+-.0123456789")
_STARTS = frozenset(word[:1] for word in _WORDS) | _NUMBER_STARTS
_WHOLE = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_SIGN_AFTER_PREFIX = re.compile(r"0b([-+])([01]+)")  # an oddity of the library
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_REAL_FROM_POINT = re.compile(r"\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?")
_MAX_DIGITS = 20  # of a decimal whole number below 2^64
_BIG = 10**21  # from here on Go writes a whole float with an exponent, so that it is read as a float again
_DATE = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_CLOCK = r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.[0-9]+)?"
_DAY = re.compile(_DATE)
_TIME = re.compile(f"{_DATE} {_CLOCK}")
_TIME_IN_ZONE = re.compile(f"{_DATE}[Tt]{_CLOCK}(?:Z|[-+][0-9]{{2}}:[0-9]{{2}})")
_TAG = "tag:yaml.org,2002:"
_TYPES = {"bool": bool, "int": int, "float": float, "null": type(None), "timestamp": str}
_UNSIGNED = 2**63  # from here on a whole number is of a type that can be no key and no !!float
_MAX_FLOAT_DIGITS = 9  # enough for any float of 32 bits
_PLAIN_EXPONENTS = range(-4, 6)  # of floats that are written without one


def plain_value(text: str) -> JsonValue:
    """Return what a plain scalar without a tag stands for; `json_number` makes JSON of a float.

    Example:
        >>> [plain_value(it) for it in ("0755", "08", "1_000", "on", "~", "12:30:00", "8Gi", ".5", "1e3")]
        [493, 8.0, 1000, True, None, '12:30:00', '8Gi', 0.5, 1000.0]
    """
    first = text[:1]
    if first not in _STARTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if first not in _NUMBER_STARTS:
        return text
    number = _number(text)
    return text if number is None else number


def tagged_value(tag: str, text: str) -> JsonValue:
    """Return what a scalar with a tag stands for; a tag that is not one of YAML's scalars has no effect.

    Raises:
        ValueError: The text is not of the tag's type.

    Example:
        >>> tagged_value("tag:yaml.org,2002:int", "0755"), tagged_value("!secret", "0755")
        (493, '0755')
    """
    name = tag.removeprefix(_TAG)
    if name == "binary":
        return _binary(text)
    if name not in _TYPES:
        return text
    value = plain_value(text)
    if name == "float" and type(value) is int and value < _UNSIGNED:
        return float(value)
    if type(value) is not _TYPES[name] or (name == "timestamp" and not _is_time(text)):
        raise ValueError(f"it is not a !!{name}")
    return value


def json_number(number: float) -> int | float | None:
    """Return a float as JSON has it, where a whole one is an integer; None if JSON cannot hold it."""
    if not math.isfinite(number):
        return None
    if not number.is_integer() or abs(number) >= _BIG:
        return number
    digits, _, exponent = repr(number).removesuffix(".0").partition("e+")
    if not exponent:
        return int(digits)
    # Zeros after the digits that matter, as Go writes it.
    before, _, after = digits.partition(".")
    return int(before + after.ljust(int(exponent), "0"))


def key_text(value: JsonValue) -> str | None:
    """Return the key of a JSON object that the value of a scalar becomes; None if it cannot be one.

    Example:
        >>> [key_text(it) for it in (True, 493, 1e6, 0.1, None)]
        ['true', '493', '1e+06', '0.1', None]
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value < _UNSIGNED else None
    return _float_text(value) if isinstance(value, float) else None


def _number(text: str) -> int | float | None:
    """Parse a text that starts like a number; None if it is not one."""
    if text.startswith("."):
        # Here, and only here, the library leaves it to Go where an underscore may be.
        return _finite(text.replace("_", "")) if _REAL_FROM_POINT.fullmatch(text) else None
    text = text.replace("_", "")
    whole = _whole(text)
    if whole is None and _REAL.fullmatch(text):
        return _finite(text)
    return whole


def _whole(text: str) -> int | None:
    """Parse a whole number of at most 64 bits; None if it is not one."""
    match = _WHOLE.fullmatch(text)
    if match is None:
        match = _SIGN_AFTER_PREFIX.fullmatch(text)
        return None if match is None else _in_range(match[1], int(match[2], 2))
    sign, hexadecimal, binary, octal, decimal = match.groups()
    if decimal is None:
        digits, base = (hexadecimal, 16) if hexadecimal else (binary, 2) if binary else (octal, 8)
        return _in_range(sign, int(digits, base))
    # Python refuses to convert thousands of digits.
    return _in_range(sign, int(decimal)) if len(decimal) <= _MAX_DIGITS else None


def _in_range(sign: str, number: int) -> int | None:
    """Return the number if it has at most 64 bits; only one without a sign may use the 64th."""
    if sign == "-":
        return -number if number <= _UNSIGNED else None
    return number if number < (_UNSIGNED if sign else 2 * _UNSIGNED) else None


def _finite(text: str) -> float | None:
    """Parse a number; None if it is too large, so that it stays a string."""
    number = float(text)
    return number if math.isfinite(number) else None


def _binary(text: str) -> str:
    try:
        data = base64.b64decode("".join(text.splitlines()), validate=True)
    except binascii.Error:
        raise ValueError("it is not base64") from None
    return data.decode("utf-8", "replace")


def _is_time(text: str) -> bool:
    match = _DAY.fullmatch(text) or _TIME.fullmatch(text) or _TIME_IN_ZONE.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second, *_ = (*map(int, match.groups()), 0, 0, 0)
    try:
        date(year or 4, month, day)  # Go knows the year 0, a leap year
    except ValueError:
        return False
    return hour < 24 and minute < 60 and second < 60


def _float_text(number: float) -> str:
    """Format a float of 32 bits as Go's `%g` does, with as few digits as tell it from all others."""
    try:
        (number,) = struct.unpack("f", struct.pack("f", number))
    except OverflowError:
        number = math.copysign(math.inf, number)
    if not math.isfinite(number):
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    texts = (f"{number:.{n}e}" for n in range(_MAX_FLOAT_DIGITS))
    mantissa, _, exponent = next(text for text in texts if _is_float(text, number)).partition("e")
    n_decimals = len(mantissa.partition(".")[2]) - int(exponent)
    if int(exponent) not in _PLAIN_EXPONENTS:
        return f"{mantissa}e{exponent}"
    return f"{number:.{max(n_decimals, 0)}f}"


def _is_float(text: str, number: float) -> bool:
    return bool(struct.unpack("f", struct.pack("f", float(text)))[0] == number)
