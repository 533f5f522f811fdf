"""Calls of the Python API with wrong arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from kueuecore.errors import KueuecoreError
from tests.attack.case import MAY_BE_LATE, Case, Wrong, size_of
from tests.attack.values import arguments

__all__ = ["Call", "case_of"]


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is right.

    Args:
        name: What is called.
        function: What to call.
        given: Its arguments.
        state: What a refusal must leave as it is.
        then: What has to hold after the call was taken, with what it returned.
        seconds: What it may take, whatever is given.
        others: What a refusal may name besides what is wrong: columns of other lengths, or what `function` calls it.
    """

    name: str
    function: Callable[..., Any]
    given: Mapping[str, Any]
    state: Callable[[], object] | None = None
    then: Callable[[Any], object] | None = None
    seconds: float = 2.0
    others: tuple[str, ...] = ()


def case_of(rng: Random, call: Call, *, parts: tuple[Any, ...] = ()) -> Case:
    """The call with one or two arguments wrong."""
    damage = arguments(rng, call.given, parts=parts)

    def act() -> object:
        answer = call.function(**damage.value)
        if call.then is None:
            return answer
        try:
            return call.then(answer)
        except MAY_BE_LATE:
            return answer
        except (KueuecoreError, TypeError, ValueError) as error:
            # After a call at the end of time there is no later.
            if "past April 2262" in str(error):
                return answer
            raise Wrong(f"taken, and then: {type(error).__name__}: {error}") from error

    size = size_of(damage.value)
    return Case(f"{call.name}: {damage.what}", act, size, (*damage.names, *call.others), call.state, call.seconds)
