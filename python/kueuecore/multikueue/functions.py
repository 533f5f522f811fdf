"""Plain functions as dispatchers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

from kueuecore.multikueue.dispatcher_protocol import Dispatch, Dispatcher, Nomination

__all__ = ["DispatchFunction", "FunctionDispatcher", "as_dispatcher", "is_dispatch_function"]

DispatchFunction: TypeAlias = Callable[[Dispatch], Nomination | Iterable[str]]
"""Takes what is known, and returns the names of the workers that get a copy, or a `Nomination`."""


@dataclass(frozen=True, slots=True)
class FunctionDispatcher:
    """A dispatcher made of a plain function.

    Args:
        function: Returns the names of the workers that get a copy, or a `Nomination`.
        waits_for_checks: Whether to ask only once all other checks are Ready.

    Example:
        >>> from kueuecore.multikueue import KnownCluster
        >>> connected = FunctionDispatcher(lambda it: [c.name for c in it.clusters if c.is_connected])
        >>> clusters = (KnownCluster(name="east", is_connected=False), KnownCluster(name="west", is_connected=True))
        >>> connected.nominate(Dispatch(workload={}, clusters=clusters, now=0)).clusters
        ('west',)
    """

    function: DispatchFunction
    waits_for_checks: bool = True

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Ask the function.

        Raises:
            TypeError: It returns neither names nor a Nomination.
        """
        answer = self.function(dispatch)
        if isinstance(answer, Nomination):
            return answer
        if isinstance(answer, str) or not isinstance(answer, Iterable):
            raise TypeError(f"the function must return names of workers or a Nomination, not {type(answer).__name__}")
        return Nomination(tuple(answer))


def is_dispatch_function(given: object) -> TypeGuard[DispatchFunction]:
    """Return whether something is a function of one argument, and no dispatcher of its own."""
    if isinstance(given, type) or not callable(given) or isinstance(given, Dispatcher):
        return False
    try:
        parameters = inspect.signature(given).parameters.values()
    except (TypeError, ValueError):  # built-in ones may have none
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [
        parameter
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind in positional
    ]
    others = [
        parameter
        for parameter in parameters
        if parameter.default is inspect.Parameter.empty and parameter.kind is parameter.KEYWORD_ONLY
    ]
    return len(needed) == 1 and not others


def as_dispatcher(given: Dispatcher | DispatchFunction) -> Dispatcher:
    """Return a dispatcher as it is, and make one of a plain function. What is neither is returned as it is."""
    if isinstance(given, Dispatcher) or not is_dispatch_function(given):
        return given  # type: ignore[return-value]  # whoever takes it refuses it
    return FunctionDispatcher(given)
