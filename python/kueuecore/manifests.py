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
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Protocol, TypeAlias

import yaml

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._yaml import MOST_DIGITS, Text, compose, convert, find_line, join, syntax_problem
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

_SUFFIXES = (".yaml", ".yml", ".json")

_KUEUE = "kueue.x-k8s.io/v1beta2"
API_VERSIONS: Mapping[str, str] = {
    "AdmissionCheck": _KUEUE,
    "ClusterQueue": _KUEUE,
    "Cohort": _KUEUE,
    "LocalQueue": _KUEUE,
    "MultiKueueCluster": _KUEUE,
    "MultiKueueConfig": _KUEUE,
    "ProvisioningRequestConfig": _KUEUE,
    "ResourceFlavor": _KUEUE,
    "Topology": _KUEUE,
    "Workload": _KUEUE,
    "WorkloadPriorityClass": _KUEUE,
    "DeviceClass": "resource.k8s.io/v1",
    "ResourceClaimTemplate": "resource.k8s.io/v1",
    "Configuration": "config.kueue.x-k8s.io/v1beta2",
    "Job": "batch/v1",
    "LimitRange": "v1",
    "Namespace": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
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
        for name, data in _contents(source, problems, recursive=recursive):
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
    underscored numbers, keys that occur twice. Times stay texts.

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
    decoded = _decode(text, file)
    if decoded.lstrip()[:1] == "{":
        try:
            return _from_json(decoded, file)
        except json.JSONDecodeError as error:
            if file.endswith(".json"):
                raise ManifestError([_json_problem(error, file)]) from None
            # A flow mapping of YAML starts with a brace too, and YAML's message is the better one then.
    return _from_yaml(decoded, file)


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
    for index, manifest in enumerate(manifests):
        plain = plain_object(manifest)
        try:
            lines.append(json.dumps(plain, separators=(",", ":"), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            problem = Problem(f"it can not be written as JSON: {error}", object=object_ref(plain), index=index)
            raise ManifestError([problem]) from error
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def plain_object(manifest: ManifestLike) -> JsonObject:
    """The plain JSON data of an object in any form."""
    if isinstance(manifest, Manifest):
        return manifest.object
    if isinstance(manifest, Mapping):
        return dict(manifest)
    try:
        to_manifest = manifest.to_manifest
    except AttributeError:
        what = type(manifest).__name__
        raise TypeError(f"an object is a Manifest, a dict or of a class of kueuecore.objects, not {what}") from None
    return to_manifest()


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


def _contents(
    source: str | os.PathLike[str] | IO[str] | IO[bytes], problems: list[Problem], *, recursive: bool
) -> Iterable[tuple[str, str | bytes]]:
    """Name and content of each file that `source` stands for."""
    if not isinstance(source, (str, os.PathLike)):
        name = getattr(source, "name", None)
        yield (name if isinstance(name, str) else "<stream>"), source.read()
        return
    if source == "":
        problems.append(Problem("the name of a file is empty", remedy='write "." for the directory you are in'))
        return
    if source == "-":
        yield "<stdin>", sys.stdin.buffer.read()
        return
    if isinstance(source, str) and "\n" in source:
        remedy = "use parse_manifests for a text"
        problems.append(Problem("the name of a file has several lines", remedy=remedy))
        return
    path = Path(source)
    try:
        for file in _directory(path, problems, recursive=recursive) if path.is_dir() else [path]:
            yield str(file), file.read_bytes()
    except FileNotFoundError:
        problems.append(Problem("there is no such file", file=str(path), remedy="check the name"))
    except OSError as error:
        problems.append(Problem(f"it can not be read: {error.strerror or error}", file=str(path)))


def _directory(path: Path, problems: list[Problem], *, recursive: bool) -> list[Path]:
    found = [
        file
        for file in path.glob("**/*" if recursive else "*")
        if file.suffix in _SUFFIXES and file.is_file()
        if not any(part.startswith(".") for part in file.relative_to(path).parts)
    ]
    if not found:
        nested = not recursive and any(entry.is_dir() for entry in path.iterdir())
        remedy = "pass recursive=True to read its directories too" if nested else "name a file, or another directory"
        message = f"no file in it ends in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
        problems.append(Problem(message, file=str(path), remedy=remedy))
    return sorted(found)


def _decode(text: str | bytes, file: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    if not isinstance(text, bytes):
        raise TypeError(f"manifests are str or bytes, not {type(text).__name__}")
    utf_16 = text.startswith((b"\xff\xfe", b"\xfe\xff"))
    try:
        return text.decode("utf-16" if utf_16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        problem = Problem(f"byte {error.start} is not UTF-8", file=file, line=line, remedy="save the file as UTF-8")
        raise ManifestError([problem]) from None


def _from_yaml(text: str, file: str) -> tuple[Manifest, ...]:
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    shared, document = Text(text), 0
    try:
        for document, node in enumerate(compose(text), start=1):
            if node is None or (isinstance(node, yaml.ScalarNode) and node.tag.endswith(":null")):
                continue
            value, found = convert(node, text_length=len(text))
            about = object_ref(value) if isinstance(value, dict) and text_at(value, "kind") else None
            problems.extend(replace(problem, file=file, document=document, object=about) for problem in found)
            source = Source(file, document, node.start_mark.line + 1, shared)
            _flatten(value, source, manifests, problems)
    except yaml.YAMLError as error:
        problems.append(replace(syntax_problem(error, text), file=file, document=document + 1))
    except RecursionError:
        problems.append(Problem("it is nested too deeply", file=file, document=document + 1))
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _from_json(text: str, file: str) -> tuple[Manifest, ...]:
    """JSON, one value or several one after the other."""
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    repeated: list[str] = []

    def pairs(entries: list[tuple[str, JsonValue]]) -> JsonObject:
        result = dict(entries)
        if len(result) < len(entries):
            keys = [key for key, _ in entries]
            repeated.extend(key for key in result if keys.count(key) > 1)
        return result

    def constant(name: str) -> JsonValue:
        raise json.JSONDecodeError(f"{name} is no JSON", text, position)

    def integer(digits: str) -> int:
        if len(digits) > MOST_DIGITS:
            message = f"the number {digits[:37]}... is too large"
            raise json.JSONDecodeError(message, text, max(text.find(digits, position), 0))
        return int(digits)

    decoder = json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant, parse_int=integer)
    position = len(text) - len(text.lstrip())
    line, document, counted = 1, 0, 0
    while position < len(text):
        document += 1
        line += text.count("\n", counted, position)
        counted = position
        try:
            value, end = decoder.raw_decode(text, position)
        except RecursionError:
            problem = Problem("it is nested too deeply", file=file, document=document, line=line)
            raise ManifestError([problem]) from None
        for key in repeated:
            problem = Problem(f"the key {key} occurs twice in one object", remedy="remove one of the two", file=file)
            problems.append(replace(problem, document=document, line=line))
        repeated.clear()
        # A document of its own text: the line of a field is then found without composing the others.
        source = Source(file, document, line, Text(text[position:end], line, document))
        _flatten(value, source, manifests, problems)
        position = end
        while position < len(text) and text[position].isspace():
            position += 1
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _json_problem(error: json.JSONDecodeError, file: str) -> Problem:
    remedy = "check the quotes, the commas and the brackets here"
    return Problem(f"this is not JSON: {error.msg}", file=file, line=error.lineno, column=error.colno, remedy=remedy)


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
