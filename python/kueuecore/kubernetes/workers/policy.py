"""Finds the dispatching policy of MultiKueue: in a file, or by the name that the Configuration gives."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from kueuecore._fields import Fields
from kueuecore._files import read_file
from kueuecore._json import JsonObject, text_at
from kueuecore._text import logged
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest, parse_mappings
from kueuecore.multikueue import Dispatch, Dispatcher, Nomination, Recall, RecallingDispatcher
from kueuecore.multikueue.kueue_dispatchers import is_kueues
from kueuecore.scenarios.policy_part import read_policy

__all__ = ["PREFIX", "chosen_dispatcher"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
PREFIX = "multikueue.kueuecore/"
"""The prefix of names in `multiKueue.dispatcherName` that Kueue does not know."""
_NAMES = ("cost", "data", "free-quota", "priority", "weight")


def chosen_dispatcher(
    configuration: Configuration, file: str | None = None, *, allow_code: bool = False
) -> Dispatcher | None:
    """Return the dispatcher that a file describes, or that the Configuration names if Kueue does not know the name.

    Args:
        configuration: Kueue's Configuration.
        file: A file with the fields of `fleet.policy` in scenarios.
        allow_code: Whether it may name a program, which runs with the privileges of this process.

    Returns:
        None if the Configuration names one of Kueue's.

    Raises:
        ManifestError: The file cannot be used; with field paths, lines and remedies.
        ValueError: There is no such policy.
    """
    if file is not None:
        return _guarded(_described(file, allow_code=allow_code), file)
    name = text_at(configuration.to_dict(), "multiKueue", "dispatcherName")
    if not name.startswith(PREFIX):
        return None
    choice = name.removeprefix(PREFIX)
    if choice not in _NAMES:
        known = ", ".join(f"{PREFIX}{known}" for known in _NAMES)
        raise ValueError(f"multiKueue.dispatcherName: Unsupported value: {name}: write one of {known}")
    plain: JsonObject = {"choose": choice, "constraints": True, "prefersRoom": True}
    return _guarded(_read(Manifest(plain), Path(), allow_code=False), name)


def _guarded(dispatcher: Dispatcher, name: str) -> Dispatcher:
    # With Kueue's own, the manager writes nothing that Kueue would not write: it has to know them.
    return dispatcher if is_kueues(dispatcher) else _Guarded(dispatcher, name)


def _described(file: str, *, allow_code: bool) -> Dispatcher:
    try:
        documents = parse_mappings(read_file(Path(file)), file=file, strict=True)
    except OSError as error:
        raise ManifestError.of(f"cannot be read: {error.strerror or error}", file=file) from None
    if len(documents) != 1:
        remedy = "write `choose: cost`, or other fields of fleet.policy in docs/scenarios.md"
        raise ManifestError.of("a policy is one document", remedy=remedy, file=file)
    return _read(documents[0], Path(file).parent, allow_code=allow_code)


def _read(document: Manifest, folder: Path, *, allow_code: bool) -> Dispatcher:
    problems: list[Problem] = []
    section = Fields(document, document.object, "", problems, folder)
    found = read_policy(section, None, folder, allow_code=allow_code)
    if problems:
        raise ManifestError(problems)
    return found if isinstance(found, Dispatcher) else found()


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A dispatcher whose failures delay one workload, and end nothing.

    Args:
        inner: The dispatcher.
        name: What logs call it.
    """

    inner: Dispatcher
    name: str

    @property
    def waits_for_checks(self) -> bool:
        """Whether it is asked only once all other checks are Ready."""
        return self.inner.waits_for_checks

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Return its answer; if it fails, what is nominated already."""
        try:
            return self.inner.nominate(dispatch)
        except Exception as error:
            return Nomination(dispatch.nominated, problem=f"the policy failed: {logged(error) or type(error).__name__}")

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        """Return whether it takes a workload back; if it fails, it does not."""
        if not isinstance(self.inner, RecallingDispatcher):
            return Recall()
        try:
            return self.inner.recall(dispatch, cluster)
        except Exception as error:
            extra = {"workload": text_at(dispatch.workload, "metadata", "name"), "error": logged(error)}
            _LOGGER.warning("the policy failed", extra=extra)
            return Recall()
