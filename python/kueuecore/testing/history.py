"""A small world and what happens in it, as plain data: to play, to print, and to keep in one line."""

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
from kueuecore.times import nanoseconds

__all__ = ["START", "History", "Move", "MoveKind", "read_histories", "shown"]

START = nanoseconds("2026-01-01T00:00:00Z")
"""When the objects of a scenario are applied, in nanoseconds since 1970."""

_KUEUE_CONFIGURATION = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}


class MoveKind(StrEnum):
    """What can happen in a scenario."""

    APPLY = "apply"
    """An object is created, or replaced by another version."""
    DELETE = "delete"
    """An object is deleted."""
    FINISH = "finish"
    """The job of a workload ends, whether it runs or not."""
    EVICT = "evict"
    """A workload is evicted, and its job stops at once."""
    CYCLE = "cycle"
    """One scheduling cycle, what is written after it, and the end of the jobs that are evicted."""
    LINGER = "linger"
    """A cycle after which evicted jobs go on running, and hold their quota, until the next `cycle` is done."""
    FORK = "fork"
    """The engine is forked; the fork goes on, and the other must stay as it is."""
    WAIT = "wait"
    """Time passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One thing that happens, a second after the one before.

    Args:
        kind: What happens.
        object: The object that is applied.
        object_kind: Kind of the object that is deleted.
        key: `namespace/name` of what is deleted, finished or evicted; the bare name of what is in no namespace.
        reason: Why a workload is evicted; with another reason than `Preempted` it does not come back by itself.
        seconds: How long time passes.

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
        """The move as plain JSON, without what is not given."""
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
        """The move that `to_json` gave.

        Raises:
            ValueError: No move of this kind is known.
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
    """What `_repr_pretty_` writes to."""

    def text(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True, repr=False)
class History:
    """A world and what happens in it.

    Args:
        objects: What is applied at the beginning, in this order.
        moves: What happens then.
        configuration: Settings of Kueue's Configuration, without its apiVersion and kind.
        why: What it shows, in a sentence.

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

    def to_line(self) -> str:
        """The scenario as one line of JSON, to keep in a file of regressions."""
        fields: JsonObject = {
            "why": self.why,
            "configuration": self.configuration,
            "objects": list(self.objects),
            "moves": [move.to_json() for move in self.moves],
        }
        present = {name: value for name, value in fields.items() if value not in ("", None)}
        return json.dumps(present, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_line(cls, line: str | bytes) -> Self:
        """The scenario of a line that `to_line` gave.

        Raises:
            ManifestError: It is no scenario.
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
        )

    def to_yaml(self) -> str:
        """The world as manifests for `kueuecore run`; its moves are in comments."""
        parts = [f"# {self.why}\n"] if self.why else []
        documents = [{**_KUEUE_CONFIGURATION, **self.configuration}] if self.configuration is not None else []
        documents += self.objects
        parts.append("---\n".join(map(_document, documents)))
        for move in self.moves:
            parts.append(f"# then: {move}\n")
            if move.object is not None:
                parts.append("---\n" + _document(move.object))
        return "".join(parts)

    def parsed_configuration(self) -> Configuration:
        """The Configuration, with the defaults of Kueue.

        Raises:
            ConfigurationError: A setting is wrong.
        """
        if self.configuration is None:
            return Configuration()
        return Configuration.parse(json.dumps({**_KUEUE_CONFIGURATION, **self.configuration}))

    def with_objects(self, objects: Sequence[JsonObject]) -> History:
        """The same with other objects at the beginning."""
        return replace(self, objects=tuple(objects))

    def with_moves(self, moves: Sequence[Move]) -> History:
        """The same world, in which something else happens."""
        return replace(self, moves=tuple(moves))

    def __repr__(self) -> str:
        return f"History.from_line({self.to_line()!r})"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        """How IPython and Hypothesis show it: in one line, too."""
        printer.text(repr(self))


def read_histories(path: Path) -> Iterator[History]:
    """The scenarios of a file, one a line; empty lines and those that begin with `#` are none.

    Raises:
        ManifestError: A line that is no scenario.
    """
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            yield History.from_line(line)


@contextmanager
def shown(scenario: History) -> Iterator[None]:
    """Whatever fails inside is raised with the scenario in a note: as manifests, and as a line to keep.

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
    """`namespace/name` of an object, or its bare name."""
    plain = dict(manifest)
    namespace, name = text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")
    return f"{namespace}/{name}" if namespace else name


def _document(manifest: Mapping[str, JsonValue]) -> str:
    return yaml.safe_dump(dict(manifest), sort_keys=False, default_flow_style=None, width=120)


def without_min_counts(spec: JsonObject) -> JsonObject:
    """The spec of a Workload as Kueue's webhook stores it where partial admission is off."""
    pod_sets: list[JsonValue] = [
        {name: value for name, value in object_at(it).items() if name != "minCount"} for it in list_at(spec, "podSets")
    ]
    return {**spec, "podSets": pod_sets}
