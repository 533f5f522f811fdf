"""Evaluates the CEL of policies, with the package `common-expression-language`.

Beyond what [`cel_rules`][kueuecore_apiserver.schemas.cel_rules] has, there are quantities (`quantity`, `isLessThan`,
`isGreaterThan`, `compareTo`) and messages: `JSONPatch{op: "add"}` is the map `{"op": "add"}`. Its gaps are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import cel

from kueuecore._quantities import number
from kueuecore_apiserver.schemas.cel_functions import FUNCTIONS
from kueuecore_apiserver.schemas.cel_names import tokens_of

__all__ = ["ExpressionError", "Variables"]

_Json: TypeAlias = Any


class ExpressionError(Exception):
    """An expression cannot be evaluated."""


class Variables:
    """What expressions see, and the variables that a policy defines from it.

    Args:
        given: The values that are given, such as `object`.
        defined: The expressions of the policy's own variables, by name; each may use those before it.
    """

    def __init__(self, given: Mapping[str, _Json], defined: Mapping[str, str]) -> None:
        self._given = given
        self._found: dict[str, _Json] = {}
        for name, source in defined.items():
            try:
                self._found[name] = self.value(source)
            except ExpressionError:
                # On a server a variable fails only where it is used; here it does not exist there.
                continue

    def value(self, source: str) -> _Json:
        """Return what an expression evaluates to.

        Raises:
            ExpressionError: It cannot be evaluated.
        """
        context = cel.Context()
        for name, function in _FUNCTIONS.items():
            context.add_function(name, function)
        for name, value in {**self._given, "variables": self._found}.items():
            context.add_variable(name, value)
        try:
            return _compiled(source).execute(context)
        except Exception as error:  # any exception of the package is an answer
            raise ExpressionError(f"expression '{source}' resulted in error: {error}") from None

    def holds(self, source: str) -> bool:
        """Return whether a condition is met.

        Raises:
            ExpressionError: It cannot be evaluated, or is no condition.
        """
        found = self.value(source)
        if not isinstance(found, bool):
            raise ExpressionError(f"expression '{source}' resulted in error: no boolean")
        return found


@cache
def _compiled(source: str) -> cel.Program:
    return cel.compile(_without_messages(source))


def _without_messages(source: str) -> str:
    """Return an expression in which messages are maps, as the package has no messages."""
    written: list[str] = []
    # For each open bracket, whether it is the brace of a message.
    open_: list[bool] = []
    last = ""
    for kind, text in tokens_of(source):
        if text in ("(", "[", "{"):
            is_message = text == "{" and last == "name" and written[-1] != "in"
            while is_message and written and (written[-1] == "." or written[-1].isidentifier()):
                written.pop()
            open_.append(is_message)
        elif text in (")", "]", "}") and open_:
            open_.pop()
        is_field = kind == "name" and bool(open_) and open_[-1] and written[-1] in ("{", ",")
        written.append(f"'{text}'" if is_field else text)
        last = kind
    return " ".join(written)


def _quantity(value: str) -> dict[str, str]:
    found = number(value)
    if found is None:
        raise ValueError(f"{value!r} is no quantity")
    return {"quantity": str(found)}


def _compared(one: dict[str, str], other: dict[str, str]) -> int:
    first, second = Fraction(one["quantity"]), Fraction(other["quantity"])
    return (first > second) - (first < second)


_FUNCTIONS: Mapping[str, Callable[..., _Json]] = {
    **{name: function for name, function in FUNCTIONS.items() if name != "_size"},
    "quantity": _quantity,
    "compareTo": _compared,
    "isLessThan": lambda one, other: _compared(one, other) < 0,
    "isGreaterThan": lambda one, other: _compared(one, other) > 0,
}
