"""Errors about fields of an object, in the words of an API server, and the refusal that they make up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Self

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import escaped, quoted, shortened
from kueuecore.api_server import RefusedError
from kueuecore.errors import ObjectRef, Problem

__all__ = ["WHOLE", "ErrorKind", "FieldError", "refusal", "rendered"]

WHOLE = "<nil>"
"""What an API server shows instead of a path for errors about the whole object."""


class ErrorKind(StrEnum):
    """What is wrong with a field: the `reason` of a cause in a Status."""

    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    REQUIRED = "FieldValueRequired"
    FORBIDDEN = "FieldValueForbidden"
    TOO_MANY = "FieldValueTooMany"
    TOO_LONG = "FieldValueTooLong"


_WORDS = {
    ErrorKind.INVALID: "Invalid value",
    ErrorKind.TYPE_INVALID: "Invalid value",
    ErrorKind.DUPLICATE: "Duplicate value",
    ErrorKind.NOT_SUPPORTED: "Unsupported value",
    ErrorKind.REQUIRED: "Required value",
    ErrorKind.FORBIDDEN: "Forbidden",
    ErrorKind.TOO_MANY: "Too many",
    ErrorKind.TOO_LONG: "Too long",
}


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error about one field.

    Args:
        field: The field's path, such as `spec.podSets[0].count`; `<nil>` for the object as a whole.
        kind: The kind of error.
        detail: What would be right; may be empty.
        value: The value as shown; None if none is.

    Example:
        >>> print(FieldError("spec.count", ErrorKind.INVALID, "must be positive", rendered(-1)))
        spec.count: Invalid value: -1: must be positive
    """

    field: str
    kind: ErrorKind
    detail: str = ""
    value: str | None = None

    @classmethod
    def reported(cls, field: str, kind: ErrorKind, message: str) -> Self:
        """Create an error with a given message."""
        return cls(field, kind, message.removeprefix(_WORDS[kind]).removeprefix(": "))

    @property
    def message(self) -> str:
        """The message that follows the path."""
        value = None if self.value is None else _shortened(self.value)
        return escaped(": ".join(part for part in (_WORDS[self.kind], value, self.detail or None) if part is not None))

    def __str__(self) -> str:
        return f"{escaped(self.field)}: {self.message}"


def refusal(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> RefusedError:
    """Return the API server's answer to an invalid object: 422, with a cause for each error."""
    causes: list[JsonValue] = [
        {"reason": str(error.kind), "message": error.message, "field": error.field} for error in errors
    ]
    details: JsonObject = {"name": name, "group": group, "kind": kind, "causes": causes}
    texts = list(dict.fromkeys(map(str, errors)))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    about = ObjectRef(kind, name)
    problems = [Problem(error.message, field=error.field, object=about) for error in errors]
    message = f'{".".join(filter(None, (kind, group)))} "{name}" is invalid: {joined}'
    return RefusedError(422, message, details=details, problems=problems)


def rendered(value: JsonValue) -> str:
    r"""Return a value as field errors show it: numbers plain, strings quoted, anything else as JSON written by Go.

    Example:
        >>> rendered(1e6), rendered("a\tb"), rendered({"b": [1.0, "<"], "a": None})
        ('1e+06', '"a\\tb"', '{"a":null,"b":[1,"\\u003c"]}')
    """
    match value:
        case str():
            # Not shortened yet: the message does that, where an escape counts as one character.
            inner = value.replace("\\", "\\\\").replace('"', '\\"')
            return f'"{escaped(inner)}"'
        case bool() | None:
            return _json(value)
        case int() | float():
            return _number(value, exponents=range(-4, 6), width=2)
        case _:
            return _json(value)


def _json(value: JsonValue) -> str:
    """Return a value as Go's `encoding/json` writes it: keys sorted, and HTML's special characters escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return _number(value, exponents=range(-6, 21), width=1)
        case str():
            return re.sub(
                "[<>&\u2028\u2029]", lambda entry: f"\\u{ord(entry[0]):04x}", json.dumps(value, ensure_ascii=False)
            )
        case list():
            return f"[{','.join(map(_json, value))}]"
        case dict():
            return f"{{{','.join(f'{_json(name)}:{_json(value[name])}' for name in sorted(value))}}}"


def _number(number: float, *, exponents: range, width: int) -> str:
    """Return the shortest digits that identify a float, with an exponent only outside `exponents`."""
    if isinstance(number, int):
        if -(2**63) <= number < 2**63:
            return str(number)
        number = float(number)
    sign, digits, _ = (decimal := Decimal(repr(number))).as_tuple()
    exponent = decimal.adjusted()
    if not number or exponent in exponents:
        plain = format(decimal, "f")
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    first, rest = str(digits[0]), "".join(map(str, digits[1:])).rstrip("0")
    mantissa = f"{first}.{rest}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}}"


def _shortened(value: str) -> str:
    """Return the beginning of a value that is longer than any name."""
    if value.startswith('"') and value.endswith('"') and "\\" not in value:
        return quoted(value[1:-1])
    return shortened(value)


def supported(values: Iterable[JsonValue]) -> str:
    """Return the values that an enumeration allows, as an error lists them."""
    return (
        f"supported values: {', '.join(quoted(value if isinstance(value, str) else _json(value)) for value in values)}"
    )
