"""Reads Kubernetes manifests: files, directories, standard input and texts, YAML or JSON.

The result is plain data with its position, ready for the engine (as JSON lines) and for errors that name file, line
and field.

Example:
    >>> manifests = parse_manifests('''
    ... apiVersion: kueue.x-k8s.io/v1beta2
    ... kind: LocalQueue
    ... metadata: {name: user-queue, namespace: team-a}
    ... spec:
    ...   clusterQueue: cluster-queue
    ... ''', file="queues.yaml")
    >>> manifests[0].object["kind"], manifests[0].source.line_of("spec.clusterQueue")
    ('LocalQueue', 6)
    >>> to_json_lines(manifests)[:46]
    b'{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":'
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import IO, Protocol, TypeAlias, cast

import yaml

from kueuecore import _arguments
from kueuecore._file_kinds import other_contents, other_document
from kueuecore._files import File, contents
from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._json_text import json_documents, unwritable_field
from kueuecore._json_text import syntax_problem as json_syntax_problem
from kueuecore._kinds import KINDS
from kueuecore._yaml import Converter, Text, compose, find_line, join, syntax_problem
from kueuecore.errors import ManifestError, ObjectRef, Problem

__all__ = [
    "JsonObject",
    "JsonValue",
    "Manifest",
    "ManifestLike",
    "Source",
    "ToManifest",
    "located",
    "object_ref",
    "parse_manifests",
    "read_manifests",
    "to_json_lines",
]

_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_Take: TypeAlias = Callable[[JsonValue, "Source", list["Manifest"], list[Problem]], None]
API_VERSIONS: Mapping[str, str] = {
    **{kind.name: kind.api_version for kind in KINDS},
    "Configuration": "config.kueue.x-k8s.io/v1beta2",
    "Job": "batch/v1",
}
"""The newest apiVersion of each kind that is read, to suggest when it is missing or has another group."""


@dataclass(frozen=True, slots=True)
class Source:
    """The position of an object.

    Args:
        file: Name of the file, `<stdin>`, `<string>`, or empty for an object made in code.
        document: The number of its document in the file, from 1, counting empty ones; 0 for an object made in code.
    """

    file: str = ""
    document: int = 0
    _start: int = field(default=0, repr=False)  # line in which the document starts
    _text: Text | None = field(default=None, repr=False, compare=False)
    _path: str = field(default="", repr=False, compare=False)  # from the document to the object: `items[3]`
    _renamed: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)
    _job: ObjectRef | None = field(default=None, repr=False, compare=False)

    @property
    def line(self) -> int:
        """The line on which the object starts, from 1; 0 if it has none."""
        return self.line_of("")

    def line_of(self, path: str) -> int:
        """Return the line of a field, from 1; if it is absent, of its parent; 0 if the object has no lines.

        Args:
            path: A field path such as `spec.resourceGroups[0].flavors[1].name`.
        """
        path = self._original(path) or path
        if self._text is None or not (path or self._path):
            return self._start
        root = self._text.root(self.document)
        if root is None:
            return self._start
        separator = "." if self._path and path else ""
        return self._text.first_line + find_line(root, f"{self._path}{separator}{path}")

    def renamed(self, *prefixes: tuple[str, str], job: ObjectRef) -> Source:
        """Return the source of the Workload made from the job at this position.

        Args:
            prefixes: Pairs of a field path in the Workload and the path in the job that it came from; the first match
                counts.
            job: The job.
        """
        return replace(self, _renamed=prefixes, _job=job)

    def of_job(self, problem: Problem) -> Problem:
        """Turn a problem of a made Workload into one of its job, which the user wrote; return others unchanged."""
        if self._job is None:
            return problem
        original = self._original(problem.field)
        if original is not None:
            message = problem.message.replace(problem.field, original) if problem.field else problem.message
            return replace(problem, object=self._job, field=original, message=message)
        message = ": ".join(filter(None, ("in its Workload", problem.field, problem.message)))
        return replace(problem, object=self._job, field="", message=message)

    def _original(self, path: str) -> str | None:
        """Return the job's field that became a field of its Workload."""
        for prefix, original in self._renamed:
            if path.startswith(prefix):
                return (original + path[len(prefix) :]).removeprefix(".")
        return None

    def without_fields(self) -> Source:
        """Return the source of an object made from this one as a whole: its fields all point to this one's start."""
        return Source(self.file, self.document, _start=self.line)

    def problem(self, message: str, *, remedy: str = "") -> Problem:
        """Make a problem with what is at this position."""
        return Problem(message, remedy=remedy, file=self.file, line=self.line or None, document=self.document or None)

    def __str__(self) -> str:
        return self.problem("").place


@dataclass(frozen=True, slots=True)
class Manifest:
    """A Kubernetes object as plain JSON data, and its position.

    Args:
        object: The object: `apiVersion`, `kind`, `metadata` and so on. Times are strings.
        source: Its position.
    """

    object: JsonObject
    source: Source = Source()

    def problem(self, message: str, *, field: str = "", value: str | int | None = None, remedy: str = "") -> Problem:
        """Make a problem with a field of this object, with its position filled in."""
        problem = Problem(message, field=field, value=value, remedy=remedy, object=object_ref(self.object))
        return self.locate(problem)

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with this object's file, document and line filled in."""
        source = self.source
        return replace(
            source.of_job(replace(problem, object=problem.object or object_ref(self.object))),
            file=source.file,
            document=source.document or None,
            line=source.line_of(problem.field) or None,
            column=None,
        )


class ToManifest(Protocol):
    """Anything with `to_manifest`: the classes of `kueuecore.objects`."""

    def to_manifest(self) -> JsonObject:
        """Return the object as plain JSON data."""
        ...


ManifestLike: TypeAlias = Manifest | ToManifest | Mapping[str, JsonValue]
"""An object in any of its Python forms: a Manifest, a dict, or an object of `kueuecore.objects`."""


def object_ref(manifest: Mapping[str, JsonValue]) -> ObjectRef:
    """Return the kind, name and namespace of an object.

    Example:
        >>> print(object_ref({"kind": "Job", "metadata": {"generateName": "sample-", "namespace": "x"}}))
        Job "x/sample-"
    """
    plain = dict(manifest)
    name = text_at(plain, "metadata", "name") or text_at(plain, "metadata", "generateName")
    return ObjectRef(text_at(plain, "kind"), name, text_at(plain, "metadata", "namespace"))


def read_manifests(
    *sources: str | os.PathLike[str] | IO[str] | IO[bytes],
    recursive: bool = False,
    skipped: Callable[[Problem], None] | None = None,
) -> tuple[Manifest, ...]:
    """Read the objects in files, directories and streams, in order.

    Args:
        sources: File names, which may have any suffix; directories, whose `*.yaml`, `*.yml` and `*.json` files are
            read in the order of their names, except hidden ones, as `kubectl apply -f` does; `-` for standard input;
            open streams. For YAML text use `parse_manifests`.
        recursive: Read subdirectories too, sorted by path.
        skipped: Called for each document in a directory that has neither apiVersion nor kind, such as a patch or the
            values of a Helm chart. They are left out; in a file given by name they are problems.

    Raises:
        ManifestError: Something cannot be read; it lists all problems in all files.

    Returns:
        The objects. `List`s are flattened, empty documents skipped. See `parse_manifests`.
    """
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    others: list[Problem] = []
    for source in sources:
        for file in contents(source, problems, recursive=recursive):
            try:
                manifests.extend(objects_of(file, others))
            except ManifestError as error:
                problems.extend(error.problems)
    if problems:
        raise ManifestError(problems)
    if skipped is not None:
        for other in dict.fromkeys(others):
            skipped(other)
    return tuple(manifests)


def objects_of(file: File, others: list[Problem]) -> tuple[Manifest, ...]:
    """Read the objects in a file; if it was found in a directory, what is not meant as one goes to `others`."""
    return _parsed(file.data, file.name, others if file.is_found else None)


def parse_manifests(text: str | bytes, *, file: str = "<string>") -> tuple[Manifest, ...]:
    r"""Read the objects in a text: YAML with any number of documents, JSON, or JSON lines.

    `List`s and lists of one kind (`JobList`) are flattened; items without a kind get that of the list. The traps of
    YAML 1.1 are errors: bare `yes`, `no`, `on` and `off`, octal, sexagesimal and underscored numbers, duplicate keys.
    Times stay strings. Aliases may expand a text to ten times its length plus 1,000,000 characters, and to ten nodes
    per character plus 1,000.

    Args:
        text: The text; bytes are UTF-8, or UTF-16 with a byte order mark.
        file: The file name to show in errors.

    Raises:
        ManifestError: All problems in the text, with their lines; reading stops at a syntax error.

    Example:
        >>> try:
        ...     parse_manifests("apiVersion: v1\nkind: ConfigMap\ndata:\n  enabled: no", file="a.yaml")
        ... except ManifestError as error:
        ...     print(error.problems[0].field, error.remedy)
        data.enabled write "no" for the string, or false for the boolean
    """
    return _parsed(text, _arguments.instance("file", file, str))


def _parsed(text: str | bytes, file: str, others: list[Problem] | None = None) -> tuple[Manifest, ...]:
    try:
        decoded = _decode(text, file)
        if decoded.lstrip()[:1] == "{":
            # A YAML flow mapping starts with a brace too, and then YAML's message is the better one.
            with suppress(json.JSONDecodeError):
                return _from_json(decoded, file, others)
        return _from_yaml(decoded, file, _flatten, others)
    except ManifestError:
        # Say what it is rather than why it is no YAML.
        if other := other_contents(text, file):
            raise ManifestError.of(other[0], remedy=other[1], file=file) from None
        raise


def parse_mappings(text: str | bytes, *, file: str) -> tuple[Manifest, ...]:
    """Read the documents in a text of YAML or JSON, which are mappings but need not be Kubernetes objects.

    Raises:
        ManifestError: All problems in the text, with their lines.
    """
    return _from_yaml(_decode(text, file), file, _take_mapping)


def read_mapping(path: str | os.PathLike[str]) -> Manifest:
    """Read a file with one mapping in YAML or JSON, which need not be a Kubernetes object."""
    problems: list[Problem] = []
    files = contents(path, problems, recursive=False)
    found = [it for name, data, _ in files for it in _from_yaml(_decode(data, name), name, _take_mapping)]
    if len(found) != 1 and not problems:
        problems.append(Problem(f"{len(found)} documents", file=os.fsdecode(path), remedy="give one document"))
    if problems:
        raise ManifestError(problems)
    return found[0]


def to_json_lines(manifests: Iterable[ManifestLike]) -> bytes:
    r"""Write objects as JSON lines in ASCII, as `Engine.apply` takes them.

    Args:
        manifests: Manifests, plain dicts, or objects of `kueuecore.objects`.

    Raises:
        ManifestError: JSON cannot represent an object, such as one with a NaN.

    Example:
        >>> to_json_lines([{"kind": "Namespace", "metadata": {"name": "a"}}])
        b'{"kind":"Namespace","metadata":{"name":"a"}}\n'
    """
    lines = []
    for index, manifest in enumerate(_arguments.each("manifests", manifests)):
        plain = plain_object(manifest)
        try:
            lines.append(json.dumps(plain, separators=(",", ":"), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            message, about = f"it cannot be written as JSON: {error}", object_ref(plain)
            raise ManifestError([Problem(message, field=unwritable_field(plain), object=about, index=index)]) from error
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def manifest_like(value: object, name: str = "an object") -> ManifestLike:
    """Check that a value is an object in one of its Python forms.

    Raises:
        TypeError: It is something else; the message calls it `name`.
    """
    plain = value.object if isinstance(value, Manifest) else value
    if isinstance(plain, Mapping):
        return cast("ManifestLike", value)
    if not isinstance(value, Manifest) and not isinstance(value, type) and hasattr(value, "to_manifest"):
        return cast("ManifestLike", value)
    what = type(value).__name__ + (f" of a {type(plain).__name__}" if isinstance(value, Manifest) else "")
    raise TypeError(f"{name} must be a Manifest, a dict or of a class of kueuecore.objects, not {what}")


def as_manifest(value: object, name: str = "an object") -> Manifest:
    """Return an object in any form as a Manifest.

    Raises:
        TypeError: It is something else; the message calls it `name`.
    """
    found = manifest_like(value, name)
    return found if isinstance(found, Manifest) else Manifest(plain_object(found, name))


def plain_object(manifest: ManifestLike, name: str = "an object") -> JsonObject:
    """Return the plain JSON data of an object in any form.

    Raises:
        TypeError: It is something else; the message calls it `name`.
    """
    found = manifest_like(manifest, name)
    if isinstance(found, Manifest):
        return found.object
    if isinstance(found, Mapping):
        return dict(found)
    plain = found.to_manifest()
    if not isinstance(plain, dict):
        raise TypeError(f"{name} must be of a class whose to_manifest returns a dict, not {type(plain).__name__}")
    return plain


def located(error: ManifestError, manifests: Sequence[ManifestLike]) -> ManifestError:
    """Fill in file, document and line of each problem that names its object in the batch, and what to write instead.

    Args:
        error: The error that refused the batch; `Problem.index` counts its objects.
        manifests: The batch.
    """
    from kueuecore._remedies import remedy_of

    def place(problem: Problem) -> Problem:
        problem = problem if problem.remedy else replace(problem, remedy=remedy_of(problem, API_VERSIONS))
        manifest = manifests[problem.index] if problem.index is not None and problem.index < len(manifests) else None
        return manifest.locate(problem) if isinstance(manifest, Manifest) else problem

    return error.mapped(place)


def _decode(text: str | bytes, file: str) -> str:
    if not isinstance(text, str | bytes):
        raise TypeError(f"a text must be str or bytes, not {type(text).__name__}")
    try:
        if isinstance(text, bytes):
            return text.decode("utf-16" if text.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")
        if not text.isascii():
            text.encode()
    except UnicodeDecodeError as error:
        encoding = error.encoding.upper()
        line = error.object.count(b"\n", 0, error.start) + 1
        remedy = "save the file as UTF-8"
        problem = Problem(f"byte {error.start} is not {encoding}", file=file, line=line, remedy=remedy)
        raise ManifestError([problem]) from None
    except UnicodeEncodeError as error:
        before = error.object[: error.start]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message, remedy = "unpaired surrogate", "write both halves"
        raise ManifestError([Problem(message, file=file, line=line, column=column, remedy=remedy)]) from None
    return text.removeprefix("\ufeff")


def _from_yaml(text: str, file: str, take: _Take, others: list[Problem] | None = None) -> tuple[Manifest, ...]:
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    shared, converter, document = Text(text), Converter(len(text)), 0
    try:
        for document, node in enumerate(compose(text), start=1):
            if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
                continue
            value, found = converter.convert(node)
            source = Source(file, document, node.start_mark.line + 1, shared)
            if take is _flatten and not converter.is_exhausted and (other := _other(value, source)):
                (problems if others is None else others).append(other)
                continue
            about = object_ref(value) if isinstance(value, dict) and text_at(value, "kind") else None
            problems.extend(replace(problem, file=file, document=document, object=about) for problem in found)
            if converter.is_exhausted:
                break
            take(value, source, manifests, problems)
    except yaml.YAMLError as error:
        problems.append(replace(syntax_problem(error, text), file=file, document=document + 1))
    except RecursionError:
        problems.append(Problem("it is nested too deeply", file=file, document=document + 1))
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _from_json(text: str, file: str, others: list[Problem] | None) -> tuple[Manifest, ...]:
    """Read JSON, one value or several in a row; a `JSONDecodeError` if it may be YAML."""
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    is_json = file.endswith(".json")
    document = 0
    try:
        for document, it in enumerate(json_documents(text, allows_constants=is_json), start=1):
            # Each document keeps only its own text, so that finding the line of a field composes no others. YAML has no
            # escaped surrogate pairs.
            source = Source(file, document, it.line, Text(_PAIR.sub("?", it.text), it.line, document))
            if other := _other(it.value, source):
                (problems if others is None else others).append(other)
                continue
            about = object_ref(it.value) if isinstance(it.value, dict) and text_at(it.value, "kind") else None
            problems.extend(replace(problem, file=file, document=document, object=about) for problem in it.problems)
            _flatten(it.value, source, manifests, problems)
    except json.JSONDecodeError as error:
        if not is_json:
            raise
        problems.append(replace(json_syntax_problem(error), file=file, document=document + 1))
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _take_mapping(value: JsonValue, source: Source, manifests: list[Manifest], problems: list[Problem]) -> None:
    """Append a mapping of any kind."""
    if isinstance(value, dict):
        manifests.append(Manifest(value, source))
    else:
        problems.append(replace(source.problem("must be a mapping", remedy="write name: value"), document=None))


def _other(value: JsonValue, source: Source) -> Problem | None:
    """Say what a document is that is not meant as an object."""
    found = other_document(value, source.file)
    return None if found is None else source.problem(found[0], remedy=found[1])


def _flatten(value: JsonValue, source: Source, manifests: list[Manifest], problems: list[Problem]) -> None:
    """Append the object, or the objects in the list."""
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "a single value"
        message, remedy = f"found {what} instead of a Kubernetes object", "separate objects with --- lines"
        problems.append(replace(source.problem(message, remedy=remedy), field=source._path))
        return
    manifest = Manifest(value, source)
    kind, api_version, items = value.get("kind"), value.get("apiVersion"), value.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            path = join(source._path, "items") + f"[{index}]"
            if item is None:
                continue
            if isinstance(item, dict) and kind != "List":
                # The API server omits both from the items of a list of one kind.
                item = {"apiVersion": api_version, "kind": kind.removesuffix("List"), **item}
            _flatten(item, replace(source, _path=path), manifests, problems)
        return
    newest = {**API_VERSIONS, "ConfigMap": "v1"}.get(text_at(value, "kind"), "kueue.x-k8s.io/v1beta2, for example")
    remedies = {"apiVersion": f"write {newest}", "kind": "write ClusterQueue, for example"}
    missing = [name for name in ("apiVersion", "kind") if not (isinstance(value.get(name), str) and value.get(name))]
    for name in missing:
        # An item of a List that has no kind is named by its index.
        problem = manifest.problem("Required value", field=name, remedy=remedies[name])
        problems.append(replace(problem, field=join(source._path, name)))
    if not missing:
        manifests.append(manifest)
