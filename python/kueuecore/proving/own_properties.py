"""Properties of the user's: a function of Python or an expression of CEL over the states of a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, cast

from kueuecore import _quantities
from kueuecore._json import JsonObject, JsonValue
from kueuecore._near_names import near_names
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, UnknownObjectError
from kueuecore.proving.explorer import Explorer, Move, MoveKind
from kueuecore.proving.own_code import ran
from kueuecore.states import Stage

__all__ = ["NotHereError", "OwnProperty", "When", "broken_by", "state_of"]

_RETURN = "have it return True or False"


class When(StrEnum):
    """When something must hold."""

    ALWAYS = "always"
    """In every state in which nothing changes any more."""
    NEVER = "never"
    """In none of them."""
    EVENTUALLY = "eventually"
    """From every state on, once those who run end one after the other and nobody arrives, in one of the states."""


class NotHereError(ManifestError):
    """A property asks for an object that is not there: each tree of cohorts is searched without the others."""


@dataclass(frozen=True, slots=True)
class OwnProperty:
    """A property of the user's.

    Args:
        when: When it must hold.
        text: As it was given: `FILE.py:FUNCTION`, or an expression of CEL.
        holds: Whether it holds in a state.
    """

    when: When
    text: str
    holds: Callable[[Engine], bool]

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return f"{self.when} {self.text}"

    @classmethod
    def parse(cls, when: When, text: str) -> OwnProperty:
        """Read a property: `FILE.py:FUNCTION`, or an expression of CEL over what `state_of` returns.

        Args:
            when: When it must hold.
            text: A function that takes an `Engine` and returns a bool, in a file that is run; or the expression, which
                needs the extra `cel`.

        Raises:
            ManifestError: There is no such file or function, it cannot be loaded, or the expression is wrong.
        """
        file, colon, function = text.rpartition(":")
        if colon and file.endswith(".py") and function.isidentifier():
            return cls(when, text, _function(when, file, function))
        return cls(when, text, _expression(when, text))


def broken_by(property_: OwnProperty, explorer: Explorer, moves: tuple[Move, ...]) -> bool:
    """Return whether a property does not hold after some moves.

    Raises:
        NotHereError: It asks for an object that is not there.
        ManifestError: Its function or expression failed.
    """
    found = explorer.engine_after(moves)
    if found is None:
        return False
    holds = property_.holds(found[0])
    if property_.when is not When.EVENTUALLY:
        return holds is (property_.when is When.NEVER)
    return not holds and not any(property_.holds(engine) for engine in _as_they_end(explorer, moves))


def _as_they_end(explorer: Explorer, moves: tuple[Move, ...]) -> Iterator[Engine]:
    """Yield the states in which those who run end one after the other, those first who came first."""
    n_arrived = sum(kind in (MoveKind.ARRIVE, MoveKind.BURST) for kind, _ in moves)
    # Each ends once; who waits may begin when another has ended.
    for _ in range(n_arrived):
        for number in range(n_arrived):
            longer = (*moves, Move(MoveKind.END, number))
            found = explorer.engine_after(longer)
            if found is not None:
                moves = longer
                yield found[0]
                break
        else:
            return


def state_of(engine: Engine) -> JsonObject:
    """Return what expressions see of a state: `workloads` and `queues`.

    A workload has `name`, `namespace`, `localQueue`, `clusterQueue`, `priority`, `status`, `admitted` (a bool),
    `flavors` (a list of names) and `message`. `queues` has for each ClusterQueue `pending`, `admitted`, and for each
    flavor and resource, as `usage["default/cpu"]`, `nominal["default/cpu"]` and `borrowed["default/cpu"]`, numbers.
    """
    workloads: list[JsonValue] = []
    counts: dict[str, dict[str, int]] = {name: {"pending": 0, "admitted": 0} for name in engine.cluster_queues()}
    for workload in engine.workloads():
        is_admitted = workload.stage in (Stage.QUOTA_RESERVED, Stage.ADMITTED)
        queue = workload.cluster_queue or ""
        if queue in counts:
            counts[queue]["admitted" if is_admitted else "pending"] += workload.stage is not Stage.FINISHED
        workloads.append(
            {
                "name": workload.name,
                "namespace": workload.namespace,
                "clusterQueue": queue,
                "localQueue": workload.local_queue,
                "priority": workload.priority,
                "status": str(workload.stage),
                "admitted": is_admitted,
                "flavors": list[JsonValue](sorted({it for row in workload.flavors.values() for it in row.values()})),
                "message": workload.message,
            }
        )
    queues: JsonObject = {name: {**count, "usage": {}, "nominal": {}, "borrowed": {}} for name, count in counts.items()}
    for row in engine.quota():
        if row.kind == "ClusterQueue" and row.name in queues:
            at = cast(dict[str, dict[str, float]], queues[row.name])
            pair = f"{row.flavor}/{row.resource}"
            at["usage"][pair] = float(_quantities.number(row.usage) or 0)
            at["nominal"][pair] = float(_quantities.number(row.nominal) or 0)
            at["borrowed"][pair] = float(_quantities.number(row.borrowed) or 0)
    return {"workloads": workloads, "queues": queues}


def _function(when: When, file: str, name: str) -> Callable[[Engine], bool]:
    path = Path(file)
    spec = spec_from_file_location(f"{path.stem} of {path.parent.resolve()}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise ManifestError.of("there is no such file", file=file, remedy=f"name a file of Python in --{when}")
    module = module_from_spec(spec)
    # Dataclasses look up their module there.
    sys.modules[spec.name] = module
    ran(partial(spec.loader.exec_module, module), "it cannot be loaded", file=file, remedy="correct it")
    function: object = vars(module).get(name)
    if not callable(function):
        near = near_names(name, (it for it, value in vars(module).items() if callable(value)))
        remedy = f"write {file}:{near[0]}" if near else f"name one of its functions in --{when}"
        raise ManifestError.of(f"it has no function {name}", file=file, remedy=remedy)
    code = getattr(function, "__code__", None)
    line: int | None = getattr(code, "co_firstlineno", None)

    def holds(engine: Engine) -> bool:
        answer = ran(partial(_asked, function, engine), f"{name} failed", file=file, remedy=_RETURN)
        if isinstance(answer, UnknownObjectError):
            raise NotHereError.of(f"{name} failed: {answer}", file=file, line=line, remedy=answer.remedy)
        if not isinstance(answer, bool):
            if isinstance(answer, Coroutine):
                answer.close()
            kind = type(answer).__name__
            raise ManifestError.of(f"{name} returns a value of type {kind}", file=file, line=line, remedy=_RETURN)
        return answer

    return holds


def _asked(function: Callable[[Engine], object], engine: Engine) -> object:
    try:
        return function(engine)
    except UnknownObjectError as error:
        return error


def _expression(when: When, text: str) -> Callable[[Engine], bool]:
    try:
        import cel
    except ImportError:
        message = "expressions of CEL need the extra cel"
        remedy = "pip install 'kueuecore[cel]', or name a function as FILE.py:FUNCTION"
        raise ManifestError.of(message, remedy=remedy) from None
    try:
        program: Any = cel.compile(text)
    except Exception as error:
        # The parser quotes the expression, and draws where it is wrong.
        reason = str(error).rpartition("ERROR: <input>:")[2].partition("\n")[0]
        message = f"--{when} {text!r} is no expression of CEL: {reason}"
        remedy = "docs/prove.md has examples; a function is FILE.py:FUNCTION"
        raise ManifestError.of(message, remedy=remedy) from error

    def holds(engine: Engine) -> bool:
        try:
            result = program.execute(state_of(engine))
        except Exception as error:
            is_missing = isinstance(error, KeyError)
            message = f"--{when} {text!r} failed: {'there is no ' if is_missing else ''}{error}"
            kind = NotHereError if is_missing else ManifestError
            raise kind.of(message, remedy="docs/prove.md lists what expressions see") from error
        if not isinstance(result, bool):
            raise ManifestError.of(f"--{when} {text!r} gives {result!r}", remedy="have it give true or false")
        return result

    return holds
