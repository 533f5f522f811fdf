"""Reads an incident: what somebody asked about a cluster, its objects, what the answer has to say, and what helped.

A file starts with a document of kind Incident; the objects of the cluster follow, so that each command reads the file
as it is:

    kueuecore explain tests/incidents/quota-used.yaml lab/train
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, TypeAlias

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.manifests import object_ref, parse_manifests
from kueuecore.scenarios.edits import Edit, parse_edit

__all__ = ["Fix", "Incident", "incidents"]

FOLDER = Path(__file__).parent
_FIELDS = {
    "apiVersion", "kind", "subject", "symptom", "source", "question", "now", "code", "says", "document", "cause", "fix",
    "notLive",
}  # fmt: skip
_FIELDS_OF_FIX = {"set", "delete", "add", "then"}

# A part of a document, as JSON.
Part: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Fix:
    """What helped.

    Args:
        edits: Changed fields.
        deleted: Deleted objects, as `KIND/NAME` or `KIND/NAMESPACE/NAME`.
        added: Created objects.
        then: The status of workloads afterwards, by `NAMESPACE/NAME`.
    """

    edits: tuple[Edit, ...]
    deleted: tuple[str, ...]
    added: tuple[JsonObject, ...]
    then: dict[str, str]

    def apply(self, objects: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        """Return the objects after it; each edit and deletion has to match."""
        from kueuecore.manifests import Manifest

        rest = [plain for plain in objects if not self._deletes(plain)]
        for edit in self.edits:
            matching = [edit.matches(Manifest(plain)) for plain in rest]
            assert any(matching), f"no object matches {edit.target}"
            rest = [edit.apply(plain) if is_it else plain for plain, is_it in zip(rest, matching, strict=True)]
        assert len(objects) - len(rest) == len(self.deleted), "each deletion takes one object"
        return (*rest, *self.added)

    def _deletes(self, plain: JsonObject) -> bool:
        ref = object_ref(plain)
        return bool({f"{ref.kind}/{ref.name}", f"{ref.kind}/{ref.namespace}/{ref.name}"} & set(self.deleted))


@dataclass(frozen=True, slots=True)
class Incident:
    """A question about a cluster.

    Args:
        name: That of its file.
        subject: What it is about.
        symptom: What somebody saw, in a sentence.
        source: A public report of such a case; empty: none is known.
        command: The command that answers it, without where the state is.
        now: When it was asked.
        code: Its exit code.
        says: What its table says.
        document: What its JSON holds: of objects these fields, of lists at least these entries.
        cause: Why it is so, in a sentence.
        fix: What helped.
        not_live: Why the question cannot be put to a cluster; empty: it can.
        objects: The objects of the cluster.
        path: The file.
    """

    name: str
    subject: str
    symptom: str
    source: str
    command: tuple[str, ...]
    now: str
    code: int
    says: tuple[str, ...]
    document: Part
    cause: str
    fix: Fix
    not_live: str
    objects: tuple[JsonObject, ...]
    path: Path

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        front, *objects = (manifest.object for manifest in parse_manifests(path.read_text(encoding="utf-8")))
        assert text_at(front, "kind") == "Incident", f"{path.name} has to start with an Incident"
        fix = object_at(front, "fix")
        unknown = (set(front) - _FIELDS) | (set(fix) - _FIELDS_OF_FIX)
        assert not unknown, f"{path.name} has unknown fields: {sorted(unknown)}"
        code = front.get("code", 0)
        assert isinstance(code, int)
        return cls(
            name=path.stem,
            subject=text_at(front, "subject"),
            symptom=text_at(front, "symptom"),
            source=text_at(front, "source"),
            command=tuple(shlex.split(text_at(front, "question"))),
            now=text_at(front, "now"),
            code=code,
            says=_texts(front, "says"),
            document=front.get("document", {}),
            cause=text_at(front, "cause"),
            fix=Fix(
                tuple(map(parse_edit, _texts(fix, "set"))),
                _texts(fix, "delete"),
                tuple(map(object_at, list_at(fix, "add"))),
                {key: str(status) for key, status in object_at(fix, "then").items()},
            ),
            not_live=text_at(front, "notLive"),
            objects=tuple(objects),
            path=path,
        )


def _texts(plain: JsonObject, key: str) -> tuple[str, ...]:
    return tuple(map(str, list_at(plain, key)))


def incidents() -> Iterator[Incident]:
    """All incidents, by name, whose command exists in this version."""
    for incident in map(Incident.read, sorted(FOLDER.glob("*.yaml"))):
        if find_spec(f"kueuecore.cli.commands.{incident.command[0].replace('-', '_')}") is not None:
            yield incident


def lacks(found: Part, wanted: Part, where: str = "") -> str:
    """Say where a document does not hold what is wanted; empty if it does."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return f"{where} is {found!r} and no object"
        return next(filter(None, (lacks(found.get(key), value, f"{where}.{key}") for key, value in wanted.items())), "")
    if isinstance(wanted, list):
        entries = found if isinstance(found, list) else []
        missing = [value for value in wanted if all(lacks(entry, value) for entry in entries)]
        return f"{where} has no {missing[0]!r} in {entries!r}" if missing else ""
    return "" if found == wanted else f"{where} is {found!r}, not {wanted!r}"
