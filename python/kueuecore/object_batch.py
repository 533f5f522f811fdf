"""Objects on their way into an engine, in any form, and the warnings about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

from kueuecore._json import JsonObject, text_at
from kueuecore._text import shown
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.manifests import (
    Manifest,
    ManifestLike,
    located,
    manifest_like,
    object_ref,
    parse_manifests,
    plain_object,
    to_json_lines,
)

__all__ = ["Applied", "Batch", "Objects", "each_manifest"]

Objects: TypeAlias = str | bytes | bytearray | memoryview | ManifestLike | Iterable[ManifestLike]
"""Objects for `Engine.apply`: YAML or JSON text, JSON bytes, one object or many in any form."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True, slots=True)
class Applied:
    """The report of `Engine.apply` about a batch that it accepted.

    Args:
        warnings: Unknown fields, with a suggestion where a known one is close, and keys that are given twice.
        foreign: Objects of kinds that the engine does not read, such as a Deployment.
    """

    warnings: tuple[Problem, ...]
    foreign: tuple[ObjectRef, ...]


_FILE_NAME = re.compile(r"[^\s:{}\[\],]+\.(?:ya?ml|json)(?:\.gz)?")
_IMMUTABLE = "field is immutable"
_NOTHING_TO_SAY = Applied((), ())


@dataclass(frozen=True, slots=True)
class Batch:
    """Objects as the extension reads them, and in their original form.

    Args:
        data: JSON, one object per line; or the caller's own bytes.
        manifests: The objects, for their positions; empty if they came as bytes.
    """

    data: bytes
    manifests: tuple[ManifestLike, ...] = ()

    @classmethod
    def of(cls, objects: Objects) -> Batch:
        """Make a batch of objects in any form.

        Raises:
            ManifestError: A text cannot be read.
            TypeError: `objects` or one of its items is not an object.
        """
        return cls(bytes(objects)) if isinstance(objects, _BYTES) else cls.of_manifests(each_manifest(objects))

    @classmethod
    def of_manifests(cls, manifests: tuple[ManifestLike, ...]) -> Batch:
        """Make a batch of manifests."""
        return cls(to_json_lines(manifests), manifests)

    def given_to(self, call: Callable[Concatenate[bytes, _P], _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Pass the objects to a call of the extension, and add file and line to its errors where they are known."""
        try:
            return call(self.data, *arguments, **named)
        except ManifestError as error:
            raise located(error.mapped(self._named_before), self.manifests) from None

    def _named_before(self, problem: Problem) -> Problem:
        """Say where an object is given before, if this one changes a field of it that may not change."""
        if not problem.message.endswith(_IMMUTABLE) or not problem.index or problem.index >= len(self.manifests):
            return problem
        given = [plain_object(manifest) for manifest in self.manifests[: problem.index + 1]]
        same = [index for index, manifest in enumerate(given) if identity(manifest) == identity(given[-1])]
        before = self.manifests[same[0]]
        if len(same) == 1 or not isinstance(before, Manifest) or not before.source.file:
            return problem
        remedy = f"it is also in {before.source}, with another value: keep one, or give one of the files at a time"
        return replace(problem, remedy=remedy)

    def applied(
        self,
        warnings: Iterable[tuple[int, str, str, str, str, str]],
        foreign: Iterable[tuple[int, str, str, str, str]],
    ) -> Applied:
        """Turn the extension's rows into a report with names, files and lines.

        Args:
            warnings: Index, kind, namespace, name, field and message of each.
            foreign: Index, apiVersion, kind, namespace and name of each.
        """
        duplicates = [
            warning for manifest in self.manifests if isinstance(manifest, Manifest) for warning in manifest.warnings
        ]
        if not warnings and not foreign and not duplicates:
            return _NOTHING_TO_SAY
        problems = [
            Problem(message, field=field, object=ObjectRef(kind, name, namespace), index=index)
            for index, kind, namespace, name, field, message in warnings
        ]
        if problems:
            problems = list(located(ManifestError(problems), self.manifests).problems)
        refs = tuple(ObjectRef(kind, name, namespace) for _, _, kind, namespace, name in foreign)
        return Applied((*problems, *duplicates), refs)


def each_manifest(
    objects: str | ManifestLike | Iterable[ManifestLike], name: str = "objects"
) -> tuple[ManifestLike, ...]:
    """Return objects in any form except bytes, one by one.

    Raises:
        ManifestError: A text cannot be read.
        TypeError: `objects` or one of its items is not an object.
    """
    if isinstance(objects, str):
        if _FILE_NAME.fullmatch(objects):
            remedy = f"pass what read_manifests({shown(repr(objects))}) returns; if it is a Scenario, use kueuecore.run"
            raise ManifestError.of("this is the name of a file, and no text with objects", field=name, remedy=remedy)
        return parse_manifests(objects)
    if isinstance(objects, Manifest | Mapping) or not isinstance(objects, Iterable):
        return (manifest_like(objects, name),)
    try:
        each = iter(objects)
    except TypeError:  # such as an array without a dimension
        return (manifest_like(objects, name),)
    return tuple(manifest_like(object_, f"{name}[{index}]") for index, object_ in enumerate(each))


def identity(plain: JsonObject) -> tuple[str, ObjectRef]:
    """What makes two objects one: group, kind, namespace and name."""
    return text_at(plain, "apiVersion").partition("/")[0], object_ref(plain)
