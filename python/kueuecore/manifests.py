"""Kubernetes manifests for people: files, directories, standard input and texts, YAML or JSON.

What comes out is plain data with the place where it stood, ready for the engine's one door (JSON lines) and for
errors that name file, line and field.

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
from pathlib import Path
from typing import IO, Protocol, TypeAlias, cast

import yaml

from kueuecore import _arguments
from kueuecore._files import contents
from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._json_text import json_documents
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
_KUEUE = "kueue.x-k8s.io/v1beta2"
_DEEPEST = 200  # levels that are searched for what is wrong
_Take: TypeAlias = Callable[[JsonValue, "Source", list["Manifest"], list[Problem]], None]
API_VERSIONS: Mapping[str, str] = {
    **{kind.name: kind.api_version for kind in KINDS},
    "Configuration": "config.kueue.x-k8s.io/v1beta2",
    "Job": "batch/v1",
}
"""The newest apiVersion of each kind that is read, to show to those who left it out or wrote another group."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where an object stands.

    Args:
        file: Name of the file, `<stdin>`, `<string>`, or empty for an object that was made in code.
        document: Which document of the file, from 1; empty documents count. 0 if there is none.
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
        """Line in which the object starts, from 1; 0 if there is none."""
        return self.line_of("")

    def line_of(self, path: str) -> int:
        """The line of a field, from 1; of what should contain it if it is absent; 0 if the object has no lines.

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
        """The source of a Workload that was made from the job that stands here.

        Args:
            prefixes: Pairs of a field path in the Workload and the one that it came from; the first that fits counts.
            job: The job.
        """
        return replace(self, _renamed=prefixes, _job=job)

    def of_job(self, problem: Problem) -> Problem:
        """The problem of a made Workload as one of its job, which is what people have written; others as they are."""
        if self._job is None:
            return problem
        original = self._original(problem.field)
        if original is not None:
            message = problem.message.replace(problem.field, original) if problem.field else problem.message
            return replace(problem, object=self._job, field=original, message=message)
        message = ": ".join(filter(None, ("in its Workload", problem.field, problem.message)))
        return replace(problem, object=self._job, field="", message=message)

    def _original(self, path: str) -> str | None:
        """The field of the job that became a field of its Workload."""
        for prefix, original in self._renamed:
            if path.startswith(prefix):
                return (original + path[len(prefix) :]).removeprefix(".")
        return None

    def without_fields(self) -> Source:
        """The source of an object that was made from this one as a whole: all its fields are where this one starts."""
        return Source(self.file, self.document, _start=self.line)

    def __str__(self) -> str:
        return Problem("", file=self.file, line=self.line or None, document=self.document or None).place


@dataclass(frozen=True, slots=True)
class Manifest:
    """A Kubernetes object as plain JSON data, and where it stands.

    Args:
        object: The object: `apiVersion`, `kind`, `metadata` and so on. Times are texts.
        source: Where it stands.
    """

    object: JsonObject
    source: Source = Source()

    def problem(self, message: str, *, field: str = "", value: str | int | None = None, remedy: str = "") -> Problem:
        """A problem with a field of this object, with its place filled in."""
        problem = Problem(message, field=field, value=value, remedy=remedy, object=object_ref(self.object))
        return self.locate(problem)

    def locate(self, problem: Problem) -> Problem:
        """The same problem, with this object's file, document and line filled in."""
        source = self.source
        return replace(
            source.of_job(replace(problem, object=problem.object or object_ref(self.object))),
            file=source.file,
            document=source.document or None,
            line=source.line_of(problem.field) or None,
            column=None,
        )


class ToManifest(Protocol):
    """What can write itself as a manifest: the classes of `kueuecore.objects`."""

    def to_manifest(self) -> JsonObject:
        """The object as plain JSON data."""
        ...


ManifestLike: TypeAlias = Manifest | ToManifest | Mapping[str, JsonValue]
"""An object in any of the forms in which Python holds one."""


def object_ref(manifest: Mapping[str, JsonValue]) -> ObjectRef:
    """Kind, name and namespace of an object.

    Example:
        >>> print(object_ref({"kind": "Job", "metadata": {"generateName": "sample-", "namespace": "x"}}))
        Job "x/sample-"
    """
    plain = dict(manifest)
    name = text_at(plain, "metadata", "name") or text_at(plain, "metadata", "generateName")
    return ObjectRef(text_at(plain, "kind"), name, text_at(plain, "metadata", "namespace"))


def read_manifests(
    *sources: str | os.PathLike[str] | IO[str] | IO[bytes], recursive: bool = False
) -> tuple[Manifest, ...]:
    """Read the objects of files, directories and streams, in the order in which they stand there.

    Args:
        sources: Names of files; directories, of which every `*.yaml`, `*.yml` and `*.json` file is read, sorted by
            name (hidden ones are left out, as `kubectl apply -f` does); `-` for standard input; open streams. A file
            that is named itself may end in anything. For a text that holds YAML use `parse_manifests`.
        recursive: Go into the directories of directories too, sorted by path.

    Raises:
        ManifestError: Anything that can not be read, with all problems of all files.

    Returns:
        The objects. `List`s are taken apart, empty documents are left out. See `parse_manifests`.
    """
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for source in sources:
        for name, data in contents(source, problems, recursive=recursive):
            try:
                manifests.extend(parse_manifests(data, file=name))
            except ManifestError as error:
                problems.extend(error.problems)
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def parse_manifests(text: str | bytes, *, file: str = "<string>") -> tuple[Manifest, ...]:
    r"""Read the objects of a text: YAML of any number of documents, JSON, or JSON lines.

    `List`s and lists of one kind (`JobList`) are taken apart; their items get the kind of the list if they name none.
    What YAML 1.1 would read by surprise is an error: bare `yes`, `no`, `on` and `off`, octal, sexagesimal and
    underscored numbers, keys that occur twice. Times stay texts. Aliases may multiply a text to ten times its length
    and 1,000,000 characters more, and to ten nodes a character and 1,000 more.

    Args:
        text: The text; bytes are UTF-8, or UTF-16 with a byte order mark.
        file: The name that errors show.

    Raises:
        ManifestError: With all problems of the text, at their lines; after a syntax error reading ends.

    Example:
        >>> try:
        ...     parse_manifests("apiVersion: v1\nkind: ConfigMap\ndata:\n  enabled: no", file="a.yaml")
        ... except ManifestError as error:
        ...     print(error.problems[0].field, error.remedy)
        data.enabled write "no" for the text, or false for the truth value
    """
    file = _arguments.instance("file", file, str)
    decoded = _decode(text, file)
    if decoded.lstrip()[:1] == "{":
        # A flow mapping of YAML starts with a brace too, and YAML's message is the better one then.
        with suppress(json.JSONDecodeError):
            return _from_json(decoded, file)
    return _from_yaml(decoded, file, _flatten)


def read_mapping(path: str | os.PathLike[str]) -> Manifest:
    """Read a file that holds one mapping in YAML or JSON, which need not be an object of Kubernetes."""
    problems: list[Problem] = []
    files = contents(path, problems, recursive=False)
    found = [it for name, data in files for it in _from_yaml(_decode(data, name), name, _take_mapping)]
    if len(found) != 1 and not problems:
        problems.append(Problem(f"{len(found)} documents", file=os.fsdecode(path), remedy="give one document"))
    if problems:
        raise ManifestError(problems)
    return found[0]


def to_json_lines(manifests: Iterable[ManifestLike]) -> bytes:
    r"""The objects as JSON, one a line, in ASCII: what `Engine.apply` takes.

    Args:
        manifests: Manifests, plain dicts, or objects of `kueuecore.objects`.

    Raises:
        ManifestError: An object that JSON can not hold, such as a not-a-number.

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
            message, about = f"it can not be written as JSON: {error}", object_ref(plain)
            raise ManifestError([Problem(message, field=_unwritable(plain), object=about, index=index)]) from error
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def _unwritable(value: object, path: str = "", depth: int = 0) -> str:
    """The field that JSON can not hold; empty if that is the whole."""
    if depth > _DEEPEST:
        return ""
    if isinstance(value, dict):
        if not all(isinstance(key, str | int | float | None) for key in value):
            return path
        entries = ((join(path, str(key)), entry) for key, entry in value.items())
    elif isinstance(value, list | tuple):
        entries = ((f"{path}[{index}]", entry) for index, entry in enumerate(value))
    else:
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError):
            return path
        return ""
    return next(filter(None, (_unwritable(entry, field, depth + 1) for field, entry in entries)), "")


def manifest_like(value: object, name: str = "an object") -> ManifestLike:
    """An object in one of the forms in which Python holds one.

    Raises:
        TypeError: It is something else; `name` says what it was given for.
    """
    plain = value.object if isinstance(value, Manifest) else value
    if isinstance(plain, Mapping):
        return cast("ManifestLike", value)
    if not isinstance(value, Manifest) and not isinstance(value, type) and hasattr(value, "to_manifest"):
        return cast("ManifestLike", value)
    raise TypeError(f"{name} must be a Manifest, a dict or of a class of kueuecore.objects, not {_what(value)}")


def as_manifest(value: object, name: str = "an object") -> Manifest:
    """An object in any form as a Manifest; one that has no place has none then.

    Raises:
        TypeError: It is in none of them; `name` says what it was given for.
    """
    found = manifest_like(value, name)
    return found if isinstance(found, Manifest) else Manifest(plain_object(found, name))


def plain_object(manifest: ManifestLike, name: str = "an object") -> JsonObject:
    """The plain JSON data of an object in any form.

    Raises:
        TypeError: It is in none of them; `name` says what it was given for.
    """
    found = manifest_like(manifest, name)
    if isinstance(found, Manifest):
        return found.object
    if isinstance(found, Mapping):
        return dict(found)
    plain = found.to_manifest()
    if not isinstance(plain, dict):
        raise TypeError(f"{name} is of a class whose to_manifest gives {type(plain).__name__}, not a dict")
    return plain


def _what(value: object) -> str:
    within = f" of a {type(value.object).__name__}" if isinstance(value, Manifest) else ""
    return f"{type(value).__name__}{within}"


def located(error: ManifestError, manifests: Sequence[ManifestLike]) -> ManifestError:
    """The same error, with file, document and line of each problem that says which object of the batch it is about.

    Args:
        error: What refused the batch; `Problem.index` counts its objects.
        manifests: The batch.
    """

    def place(problem: Problem) -> Problem:
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


def _from_yaml(text: str, file: str, take: _Take) -> tuple[Manifest, ...]:
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    shared, converter, document = Text(text), Converter(len(text)), 0
    try:
        for document, node in enumerate(compose(text), start=1):
            if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
                continue
            value, found = converter.convert(node)
            about = object_ref(value) if isinstance(value, dict) and text_at(value, "kind") else None
            problems.extend(replace(problem, file=file, document=document, object=about) for problem in found)
            if converter.is_exhausted:
                break
            source = Source(file, document, node.start_mark.line + 1, shared)
            take(value, source, manifests, problems)
    except yaml.YAMLError as error:
        problems.append(replace(syntax_problem(error, text), file=file, document=document + 1))
    except RecursionError:
        problems.append(Problem("it is nested too deeply", file=file, document=document + 1))
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _from_json(text: str, file: str) -> tuple[Manifest, ...]:
    """JSON, one value or several one after the other; a `JSONDecodeError` if it may be YAML."""
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    is_json = file.endswith(".json")
    document = 0
    try:
        for document, it in enumerate(json_documents(text, allows_constants=is_json), start=1):
            about = object_ref(it.value) if isinstance(it.value, dict) and text_at(it.value, "kind") else None
            problems.extend(replace(problem, file=file, document=document, object=about) for problem in it.problems)
            # A document of its own text: the line of a field is then found without composing the others. Pairs of
            # escapes are no YAML.
            source = Source(file, document, it.line, Text(_PAIR.sub("?", it.text), it.line, document))
            _flatten(it.value, source, manifests, problems)
    except json.JSONDecodeError as error:
        if not is_json:
            raise
        problems.append(replace(json_syntax_problem(error), file=file, document=document + 1))
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _take_mapping(value: JsonValue, source: Source, manifests: list[Manifest], problems: list[Problem]) -> None:
    """Append a mapping, whatever it is."""
    if isinstance(value, dict):
        manifests.append(Manifest(value, source))
    else:
        problems.append(Problem("a mapping is needed", file=source.file, line=source.line, remedy="write name: value"))


def _flatten(value: JsonValue, source: Source, manifests: list[Manifest], problems: list[Problem]) -> None:
    """Append the object, or the objects of the list."""
    if not isinstance(value, dict):
        what = "a list" if isinstance(value, list) else "a single value"
        problem = Problem(f"found {what} where a Kubernetes object belongs", field=source._path, file=source.file)
        remedy = "start each object with apiVersion and kind; separate objects by lines of ---"
        problems.append(replace(problem, remedy=remedy, document=source.document, line=source.line))
        return
    manifest = Manifest(value, source)
    kind, api_version, items = value.get("kind"), value.get("apiVersion"), value.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            path = join(source._path, "items") + f"[{index}]"
            if item is None:
                continue
            if isinstance(item, dict) and kind != "List":
                # The API server leaves both out of the items of a list of one kind.
                item = {"apiVersion": api_version, "kind": kind.removesuffix("List"), **item}
            _flatten(item, replace(source, _path=path), manifests, problems)
        return
    api_version_of_kind = API_VERSIONS.get(kind) if isinstance(kind, str) else None
    remedies = {
        "apiVersion": f"write {api_version_of_kind}" if api_version_of_kind else f"write {_KUEUE}, say",
        "kind": "write ClusterQueue, say",
    }
    missing = [name for name in ("apiVersion", "kind") if not (isinstance(value.get(name), str) and value.get(name))]
    if Path(source.file).stem == "kustomization" and missing:
        problems.append(manifest.problem("this is no object", remedy="render it first, with `kubectl kustomize`"))
        return
    for name in missing:
        # An item of a List without a kind has its place in the List for a name.
        problem = manifest.problem("Required value", field=name, remedy=remedies[name])
        problems.append(replace(problem, field=join(source._path, name)))
    if not missing:
        manifests.append(manifest)
