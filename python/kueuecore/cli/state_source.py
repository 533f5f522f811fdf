"""Where a command's state comes from: files that are read once, or a cluster that is followed."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.cli.state_file import SettledState, read_state
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.times import format_time

__all__ = ["FileSource", "StateSource", "UnreadableError", "arguments_of", "events_about", "source_of", "time_of_event"]

# Of core/v1 and of events.k8s.io/v1.
_TIMES = (
    ("series", "lastObservedTime"),
    ("lastTimestamp",),
    ("deprecatedLastTimestamp",),
    ("eventTime",),
    ("firstTimestamp",),
    ("metadata", "creationTimestamp"),
)


class UnreadableError(ManifestError):
    """The state cannot be read at the moment; later it may be."""


class StateSource(Protocol):
    """A state that many questions are asked about. Safe to use from several threads.

    Attributes:
        title: What people call it: the files, or the context of the cluster.
        arguments: How a command line names it, such as `("state.yaml", "--trusted")` or `("--context", "prod")`.
    """

    title: str
    arguments: tuple[str, ...]

    @property
    def settings(self) -> Mapping[str, object]:
        """Options of `add_state` by their names, which are those of every command on this state."""

    @property
    def version(self) -> int:
        """A number that grows whenever the state changes."""

    def wait(self, version: int, *, seconds: float) -> int:
        """Wait until the version is another one, or this long; returns the version."""

    def manifests(self) -> tuple[Manifest, ...]:
        """Return the objects of the newest version."""

    def state(self, named: str = "") -> SettledState:
        """Return the newest state, after cycles ran until nothing changed. Shared: fork its engine to change it.

        Args:
            named: The workload or job that is asked about, which may need more objects.
        """

    def events(self, namespace: str, names: Iterable[str]) -> list[JsonObject]:
        """Return the Events about the objects of these names in a namespace, oldest first."""

    def close(self) -> None:
        """Let go of what is open."""


_SETTINGS = {
    "trusted": "--trusted",
    "recursive": "-R",
    "assume_checks_active": "--assume-checks-active",
    "strict": "--strict",
    "config": "--config",
    "kueue": "--kueue",
    "now": "--now",
    "feature_gates": "--feature-gates",
    "namespace_labels": "--namespace-labels",
}


class FileSource:
    """The state in files, read once.

    Args:
        options: The options of `add_state`, with paths.

    Raises:
        ManifestError: Everything that is wrong with them.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._state = read_state(options)
        self._options = options
        self.title = ", ".join(Path(path).name for path in options.paths)
        self.settings = {name: getattr(options, name) for name in _SETTINGS}
        self.arguments = (*options.paths, *arguments_of(self.settings))

    @property
    def version(self) -> int:
        """Always 1: files that were read do not change."""
        return 1

    def wait(self, version: int, *, seconds: float) -> int:
        """Return the version, after this many seconds if it is the same."""
        if version == self.version:
            time.sleep(seconds)
        return self.version

    def manifests(self) -> tuple[Manifest, ...]:
        """Return the objects in the files; of a saved engine, those that it holds."""
        return self._state.given or tuple(self._state.world.manifests)

    def state(self, named: str = "") -> SettledState:
        """Return the state."""
        return self._state

    def close(self) -> None:
        """Nothing is open."""

    def events(self, namespace: str, names: Iterable[str]) -> list[JsonObject]:
        """Return the Events among the objects."""
        return events_about((manifest.object for manifest in self._state.given), namespace, names)


def source_of(options: argparse.Namespace) -> StateSource:
    """Return the state that the options of `add_state` name: that of files or, without any, of the cluster.

    Raises:
        ManifestError: It cannot be read.
    """
    if options.paths:
        return FileSource(options)
    from kueuecore.cli.cluster_source import ClusterSource  # needs the extra `kubernetes`

    return ClusterSource(options)


def events_about(objects: Iterable[JsonObject], namespace: str, names: Iterable[str]) -> list[JsonObject]:
    """Return the Events among objects that are about objects of these names in a namespace, oldest first."""
    wanted = set(names)
    found = [plain for plain in objects if text_at(plain, "kind") == "Event" and _is_about(plain, namespace, wanted)]
    return sorted(found, key=time_of_event)


def time_of_event(event: JsonObject) -> str:
    """When an Event was last seen, as it is written."""
    times = (text_at(event, *path) for path in _TIMES)
    return next(filter(None, times), "")


def arguments_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how a command line sets the options of `add_state`."""
    found: list[str] = []
    for name, option in _SETTINGS.items():
        value = settings.get(name)
        if value is True:
            found.append(option)
        elif name == "feature_gates" and value:
            found += [option, ",".join(f"{gate}={str(is_on).lower()}" for gate, is_on in value)]
        elif name == "namespace_labels":
            for of, labels in value or ():
                pairs = ",".join(f"{key}={label}" for key, label in labels.items())
                found += [option, f"{of}:{pairs}" if of else pairs]
        elif value not in (None, False, []):
            text = format_time(value) if name == "now" else getattr(value, "name", value)
            found += [option, str(text)]
    return tuple(found)


def _is_about(event: JsonObject, namespace: str, names: set[str]) -> bool:
    about = object_at(event, "involvedObject") or object_at(event, "regarding")
    return text_at(about, "namespace") == namespace and text_at(about, "name") in names
