"""A small world and its moves, as plain data: to play, to print, and to keep in one line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Protocol, Self

import yaml

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError, Problem
from kueuecore.experiments import Experiments
from kueuecore.manifests import API_VERSIONS
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore.times import nanoseconds

__all__ = ["START", "History", "Move", "MoveKind", "read_histories", "shown"]

START = nanoseconds("2026-01-01T00:00:00Z")
"""The time when the objects of a scenario are applied, in nanoseconds since 1970."""

_KUEUE_CONFIGURATION = {"apiVersion": API_VERSIONS["Configuration"], "kind": "Configuration"}
_NONE = Experiments()


class MoveKind(StrEnum):
    """The kinds of moves in a scenario."""

    APPLY = "apply"
    """Create an object, or replace it with another version."""
    DELETE = "delete"
    """Delete an object."""
    FINISH = "finish"
    """End the job of a workload, whether it runs or not."""
    EVICT = "evict"
    """Evict a workload, and stop its job at once."""
    CYCLE = "cycle"
    """Run one scheduling cycle, write its results, and stop the jobs that were evicted."""
    LINGER = "linger"
    """Run a cycle after which evicted jobs keep running, and hold their quota, until the next `cycle` is done."""
    FORK = "fork"
    """Fork the engine: the fork continues, and the original must stay as it is."""
    WAIT = "wait"
    """Let time pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One move; it happens a second after the one before.

    Args:
        kind: The kind of move.
        object: The object to apply.
        object_kind: Kind of the object to delete.
        key: `namespace/name` of what to delete, finish or evict; the bare name of objects without a namespace.
        reason: Why a workload is evicted; with any reason but `Preempted` it does not return by itself.
        seconds: How much time passes.

    Example:
        >>> Move(kind=MoveKind.FINISH, key="ns/a").to_json()
        {'move': 'finish', 'key': 'ns/a'}
    """

    kind: MoveKind
    object: JsonObject | None = None
    object_kind: str = ""
    key: str = ""
    reason: str = ""
    seconds: int = 0

    def to_json(self) -> JsonObject:
        """Return the move as plain JSON, without fields that are not set."""
        fields: JsonObject = {
            "move": str(self.kind),
            "kind": self.object_kind,
            "key": self.key,
            "reason": self.reason,
            "seconds": self.seconds,
            "object": self.object,
        }
        return {name: value for name, value in fields.items() if value}

    @classmethod
    def from_json(cls, value: JsonObject) -> Self:
        """Return the move that `to_json` wrote.

        Raises:
            ValueError: There is no move of this kind.
        """
        seconds = value.get("seconds", 0)
        return cls(
            kind=MoveKind(text_at(value, "move")),
            object=object_at(value, "object") or None,
            object_kind=text_at(value, "kind"),
            key=text_at(value, "key"),
            reason=text_at(value, "reason"),
            seconds=seconds if isinstance(seconds, int) else 0,
        )

    def __str__(self) -> str:
        if self.object is not None:
            return f"apply {text_at(self.object, 'kind')} {key_of(self.object)}"
        words = (str(self.kind), self.object_kind, self.key, self.reason, f"{self.seconds} s" if self.seconds else "")
        return " ".join(word for word in words if word)


class _Printer(Protocol):
    """The printer that `_repr_pretty_` writes to."""

    def text(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True, repr=False)
class History:
    """A world and its moves.

    Args:
        objects: What to apply at the beginning, in this order.
        moves: What happens then.
        configuration: Settings of Kueue's Configuration, without its apiVersion and kind.
        why: What the scenario shows, in a sentence.
        release: The release of Kueue that decides.
        batches_retries: Whether the engine batches retries of parked workloads.
        experiments: Rules that Kueue does not have.

    Example:
        >>> flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "f"}}
        >>> scenario = History((flavor,), (Move(kind=MoveKind.CYCLE),), why="Nothing happens.")
        >>> History.from_line(scenario.to_line()) == scenario
        True
        >>> print(scenario.to_yaml())
        # Nothing happens.
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ResourceFlavor
        metadata: {name: f}
        # then: cycle
        <BLANKLINE>
    """

    objects: tuple[JsonObject, ...]
    moves: tuple[Move, ...] = ()
    configuration: JsonObject | None = None
    why: str = ""
    release: str = DEFAULT_RELEASE
    batches_retries: bool = False
    experiments: Experiments = _NONE

    def to_line(self) -> str:
        """Return the scenario as one line of JSON, to keep in a file of regressions."""
        fields: JsonObject = {
            "why": self.why,
            "release": "" if self.release == DEFAULT_RELEASE else self.release,
            "batchesRetries": self.batches_retries or None,
            "configuration": self.configuration,
            "experiments": self.experiments.to_dict() or None,
            "objects": list(self.objects),
            "moves": [move.to_json() for move in self.moves],
        }
        present = {name: value for name, value in fields.items() if value not in ("", None)}
        return json.dumps(present, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str | bytes) -> Self:
        """Return the scenario that `to_line` wrote.

        Raises:
            ManifestError: The line is not a scenario.
        """
        try:
            value: JsonValue = json.loads(line)
            moves = tuple(Move.from_json(object_at(move)) for move in list_at(value, "moves"))
        except ValueError as error:
            raise ManifestError(
                [Problem(f"no scenario: {error}", remedy="give a line as to_line() makes it")]
            ) from None
        configuration = object_at(value).get("configuration")
        return cls(
            tuple(object_at(thing) for thing in list_at(value, "objects")),
            moves,
            configuration if isinstance(configuration, dict) else None,
            text_at(value, "why"),
            text_at(value, "release") or DEFAULT_RELEASE,
            object_at(value).get("batchesRetries") is True,
            Experiments.of(object_at(value, "experiments")),
        )

    def to_yaml(self) -> str:
        """Return the world as manifests for `kueuecore run`, with its moves in comments."""
        parts = [f"# {self.why}\n"] if self.why else []
        parts += [f"# Kueue {self.release}\n"] if self.release != DEFAULT_RELEASE else []
        parts += ["# with batched retries\n"] if self.batches_retries else []
        parts += [f"# {self.experiments.notice}\n"] if self.experiments else []
        documents = [{**_KUEUE_CONFIGURATION, **self.configuration}] if self.configuration is not None else []
        documents += self.objects
        parts.append("---\n".join(map(_document, documents)))
        for move in self.moves:
            parts.append(f"# then: {move}\n")
            if move.object is not None:
                parts.append("---\n" + _document(move.object))
        return "".join(parts)

    def parsed_configuration(self) -> Configuration:
        """Return the Configuration, with Kueue's defaults.

        Raises:
            ConfigurationError: A setting is invalid.
        """
        if self.configuration is None:
            return Configuration(release=self.release).with_experiments(self.experiments)
        text = json.dumps({**_KUEUE_CONFIGURATION, **self.configuration})
        return Configuration.parse(text, release=self.release).with_experiments(self.experiments)

    def with_objects(self, objects: Sequence[JsonObject]) -> History:
        """Return the scenario with other initial objects."""
        return replace(self, objects=tuple(objects))

    def with_moves(self, moves: Sequence[Move]) -> History:
        """Return the scenario with other moves."""
        return replace(self, moves=tuple(moves))

    def __repr__(self) -> str:
        return f"History.from_line({self.to_line()!r})"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """Print the scenario in IPython and Hypothesis, including its one-line form."""
        printer.text(repr(self))


def read_histories(path: Path) -> Iterator[History]:
    """Yield the scenarios of a file, one from each line; skips empty lines and lines that begin with `#`.

    Raises:
        ManifestError: A line is not a scenario.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield History.from_line(line)


@contextmanager
def shown(scenario: History) -> Iterator[None]:
    """Add the scenario to any exception raised inside, as a note: as manifests, and as a line to keep.

    Example:
        >>> with shown(History(())):
        ...     assert 1 < 2
    """
    try:
        yield
    except Exception as error:
        error.add_note(f"\nIn this world:\n\n{scenario.to_yaml()}\nFor tests/regressions/:\n\n{scenario.to_line()}\n")
        raise


def key_of(manifest: Mapping[str, JsonValue]) -> str:
    """Return `namespace/name` of an object, or its bare name."""
    plain = dict(manifest)
    namespace, name = text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")
    return f"{namespace}/{name}" if namespace else name


def _document(manifest: Mapping[str, JsonValue]) -> str:
    return yaml.safe_dump(dict(manifest), sort_keys=False, default_flow_style=None, width=120)


def without_min_counts(spec: JsonObject) -> JsonObject:
    """Return the spec of a Workload as Kueue's webhook stores it while partial admission is off."""
    pod_sets: list[JsonValue] = [
        {name: value for name, value in object_at(pod_set).items() if name != "minCount"}
        for pod_set in list_at(spec, "podSets")
    ]
    return {**spec, "podSets": pod_sets}
