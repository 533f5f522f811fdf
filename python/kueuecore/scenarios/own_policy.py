"""Loads a custom dispatcher that a scenario names (`use: module:name`), from its folder or an installed module."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonObject
from kueuecore._near_names import near_names
from kueuecore.errors import ManifestError
from kueuecore.multikueue import Dispatch, Dispatcher, Nomination, Recall
from kueuecore.multikueue.functions import as_dispatcher, is_dispatch_function
from kueuecore.multikueue.policies.wrapping import inner_recall

__all__ = ["own_policy"]

_FORM = "write MODULE:NAME, such as my_policies:OneByOne"
_NEEDS = (
    "give it `waits_for_checks` and `nominate`, or write a function of one argument, as in docs/multikueue-policies.md"
)
_ALLOW = "read it, then pass --allow-code (in Python, `allow_code=True`)"
_NOTHING = object()
_Answer = TypeVar("_Answer")


def own_policy(section: Fields, folder: Path, *, allow_code: bool) -> Callable[[], Dispatcher]:
    """Check what `use` names without running any of it, and return a function that makes the dispatcher.

    A class or a function is called with `arguments`, anything else is the dispatcher. A function of one argument,
    without `arguments`, is the dispatcher itself.

    Args:
        section: The fields of the policy.
        folder: The scenario's folder.
        allow_code: Whether the program may run.
    """
    name, given = section.text("use"), section.part("arguments")
    arguments = {} if given is None else given.plain
    module_name, _, attribute = name.partition(":")
    if not attribute.isidentifier() or not all(part.isidentifier() for part in module_name.split(".")):
        section.complain("use", f"Invalid value: {shown(name)}", _FORM)
    elif not allow_code:
        section.complain("use", f"{name} is a program that would run with your privileges", _ALLOW)
    return _Made(section, name, arguments, folder)


@dataclass(frozen=True, slots=True)
class _Made:
    """Loads what is named, and makes the dispatcher from it; an object, to be sent to other processes."""

    section: Fields = field(compare=False)
    name: str
    arguments: JsonObject
    folder: Path

    def __call__(self) -> Dispatcher:
        return _made(self.section, self.name, self.arguments, self.folder)


def _made(section: Fields, name: str, arguments: JsonObject, folder: Path) -> Dispatcher:
    """Load what is named, and make the dispatcher from it.

    Raises:
        ManifestError: The name does not exist, or the program fails.
    """
    module_name, _, attribute = name.partition(":")
    module = _ran(section, name, lambda: _module(module_name, folder))
    if module is None:
        remedy = f"put {module_name}.py next to the scenario"
        raise _error(section, f"there is no module {module_name}", remedy)
    # A module may define `__getattr__`.
    found = _ran(section, name, lambda: getattr(module, attribute, _NOTHING))
    if found is _NOTHING:
        near = near_names(attribute, vars(module))
        remedy = f"write {module_name}:{(near or ['NAME'])[0]}"
        raise _error(section, f"{module_name} has no {attribute}", remedy)
    made = _ran(section, name, lambda: _dispatcher(found, arguments))
    if made is None:
        raise _error(section, f"{name} is not a dispatcher", _NEEDS)
    return _Own(made, name, section)


def _ran(section: Fields, name: str, run: Callable[[], _Answer]) -> _Answer:
    """Run third-party code, and report whatever it raises except Ctrl-C."""
    try:
        return run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = f"{name} cannot be loaded: {_one_line(error)}"
        raise _error(section, message, "fix it or its arguments") from error


def _dispatcher(found: object, arguments: JsonObject) -> Dispatcher | None:
    """Return what was found, or what it makes, if it is a dispatcher; its attributes may run code too."""
    is_function = not arguments and is_dispatch_function(found)
    made: object = found(**arguments) if callable(found) and not is_function else found
    if is_dispatch_function(made):
        made = as_dispatcher(made)
    return made if isinstance(made, Dispatcher) else None


def _error(section: Fields, message: str, remedy: str) -> ManifestError:
    section.complain("use", message, remedy)
    return ManifestError(section.problems[-1:])


def _module(name: str, folder: Path) -> ModuleType | None:
    """Return a fresh module from the scenario's folder, else an installed one; None if there is none."""
    file = folder.resolve().joinpath(*name.split(".")).with_suffix(".py")
    spec = spec_from_file_location(f"{name} of {file.parent}", file) if file.is_file() else None
    if spec is None or spec.loader is None:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                # The module exists, but an import in it does not.
                raise
            return None
    module = module_from_spec(spec)
    # Dataclasses look up their module there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class _Own:
    """Wraps a custom dispatcher, so that errors name it if it answers badly."""

    inner: Dispatcher
    name: str
    section: Fields

    @property
    def waits_for_checks(self) -> bool:
        return self._asked(lambda: self.inner.waits_for_checks, bool)

    def nominate(self, dispatch: Dispatch) -> Nomination:
        return self._asked(lambda: self.inner.nominate(dispatch), Nomination)

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        return self._asked(lambda: inner_recall(self, dispatch, cluster), Recall)

    def _asked(self, ask: Callable[[], _Answer], wanted: type[_Answer]) -> _Answer:
        try:
            answer = ask()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise _error(self.section, f"{self.name} failed: {_one_line(error)}", "fix it") from error
        if not isinstance(answer, wanted):
            what = f"{self.name} returned {type(answer).__name__}"
            raise _error(self.section, what, f"return a {wanted.__name__}")
        if not isinstance(getattr(answer, "look_again", None), int | None):
            raise _error(
                self.section, f"`look_again` of {self.name} is not a time", "return nanoseconds since 1970, or None"
            )
        return answer


def _one_line(error: BaseException) -> str:
    """Format an error on one line, with its position in the program."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    message = " ".join(str(error).split())
    reported = f"{type(error).__name__}: {message}" if message else type(error).__name__
    # Code not written in Python has no position of its own.
    return reported if place.filename == __file__ else f"{reported} ({Path(place.filename).name}:{place.lineno})"
