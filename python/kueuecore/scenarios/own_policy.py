"""A dispatcher of one's own that a scenario names: `use: module:name`, in a file beside it or an installed module."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from kueuecore.errors import ManifestError
from kueuecore.multikueue import AllAtOnce, Dispatch, Dispatcher, Nomination, Recall
from kueuecore.multikueue.policies.wrapping import inner_recall
from kueuecore.scenarios.fields import Fields

__all__ = ["own_policy"]

_NEEDS = "give it `waits_for_checks` and `nominate`, as in docs/multikueue-policies.md"
_Answer = TypeVar("_Answer")


def own_policy(section: Fields, folder: Path) -> Dispatcher:
    """The dispatcher that `use` names; a class or a function is called with `arguments`, anything else is it.

    Args:
        section: The fields of the policy.
        folder: Where the scenario is.
    """
    name, given = section.text("use"), section.part("arguments")
    arguments = {} if given is None else given.plain
    try:
        found = _found(section, name, folder)
        made = found(**arguments) if callable(found) else found
    except Exception as error:  # whatever somebody else's program does wrong is told
        section.complain("use", f"{name} can not be loaded: {_told(error)}", "mend it, or its arguments")
        return AllAtOnce()
    if not isinstance(made, Dispatcher):
        if found is not None:
            section.complain("use", f"{name} is no dispatcher", _NEEDS)
        return AllAtOnce()
    return _Own(made, name, section)


def _found(section: Fields, name: str, folder: Path) -> object:
    """What is named; None if that was told to be wrong."""
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        section.complain("use", f'Invalid value: "{name}"', "write MODULE:NAME, such as my_policies:OneByOne")
        return None
    try:
        module = _module(module_name, folder)
    except ModuleNotFoundError as error:
        if error.name != module_name:
            raise
        section.complain("use", f"there is no module {module_name}", f"put {module_name}.py beside the scenario")
        return None
    if not hasattr(module, attribute):
        near = get_close_matches(attribute, vars(module), n=1)
        section.complain("use", f"{module_name} has no {attribute}", f"write {module_name}:{(near or ['NAME'])[0]}")
        return None
    found: object = getattr(module, attribute)
    return found


def _module(name: str, folder: Path) -> ModuleType:
    """A module that stands beside the scenario, loaded anew; else one that is installed."""
    file = folder.resolve().joinpath(*name.split(".")).with_suffix(".py")
    spec = spec_from_file_location(f"{name} of {file.parent}", file) if file.is_file() else None
    if spec is None or spec.loader is None:
        return importlib.import_module(name)
    module = module_from_spec(spec)
    # Dataclasses look there for the module that they are in.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class _Own:
    """Says whose mistake it was if a dispatcher does not answer as it should."""

    inner: Dispatcher
    name: str
    section: Fields

    @property
    def waits_for_checks(self) -> bool:
        return self.inner.waits_for_checks

    def nominate(self, dispatch: Dispatch) -> Nomination:
        return self._asked(lambda: self.inner.nominate(dispatch), Nomination)

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        return self._asked(lambda: inner_recall(self, dispatch, cluster), Recall)

    def _asked(self, ask: Callable[[], _Answer], wanted: type[_Answer]) -> _Answer:
        try:
            answer = ask()
        except Exception as error:
            raise self._error(f"{self.name} failed: {_told(error)}", "mend it") from error
        if not isinstance(answer, wanted):
            what = f"{self.name} answered with {type(answer).__name__}"
            raise self._error(what, f"let it answer with a {wanted.__name__}")
        return answer

    def _error(self, message: str, remedy: str) -> ManifestError:
        self.section.complain("use", message, remedy)
        return ManifestError(self.section.problems[-1:])


def _told(error: Exception) -> str:
    """An error in one line, with the place where it happened."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
