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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Protocol, TypeAlias, cast

from kueuecore import _arguments
from kueuecore._file_kinds import may_hold_objects, other_contents, other_document
from kueuecore._files import File, Text, contents
from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._kinds import KINDS
from kueuecore._text import join
from kueuecore.errors import ManifestError, ObjectRef, Problem

if TYPE_CHECKING:
    from kueuecore._documents import Document
    from kueuecore._yaml import Scalar

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
        return self._found(path)[0]

    def _found(self, path: str) -> tuple[int, Scalar | None]:
        """Return the line of a field, and the scalar that is written there."""
        path = self._original(path) or path
        if self._text is None or not (path or self._path):
            return self._start, None
        root = self._text.root(self.document)
        if root is None:
            return self._start, None
        from kueuecore._yaml import find  # the text was YAML

        separator = "." if self._path and path else ""
        line, scalar = find(root, f"{self._path}{separator}{path}")
        return self._text.first_line + line, scalar

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
        warnings: Keys that its text has twice; the last one counts.
    """

    object: JsonObject
    source: Source = Source()
    warnings: tuple[Problem, ...] = ()

    def problem(self, message: str, *, field: str = "", value: str | int | None = None, remedy: str = "") -> Problem:
        """Make a problem with a field of this object, with its position filled in."""
        problem = Problem(message, field=field, value=value, remedy=remedy, object=object_ref(self.object))
        return self.locate(problem)

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with this object's file, document and line filled in."""
        from kueuecore._written_values import as_written  # few objects have problems

        source = self.source
        line, scalar = source._found(problem.field)
        problem = as_written(problem, scalar)
        return replace(
            source.of_job(replace(problem, object=problem.object or object_ref(self.object))),
            file=source.file,
            document=source.document or None,
            line=line or None,
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
    strict: bool = False,
) -> tuple[Manifest, ...]:
    """Read the objects in files, directories and streams, in order.

    Args:
        sources: File names, which may have any suffix; directories, whose `*.yaml`, `*.yml` and `*.json` files are
            read in the order of their names, except hidden ones, as `kubectl apply -f` does; `-` for standard input;
            open streams. For YAML text use `parse_manifests`.
        recursive: Read subdirectories too, sorted by path.
        skipped: Called with what is left out of a directory: documents without apiVersion and kind, such as the values
            of a Helm chart, and the templates and patches of charts and kustomizations in it. In a file given by name
            they are problems.
        strict: Refuse duplicate keys? Without it the last one counts, and `Manifest.warnings` has each.

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
                manifests.extend(objects_of(file, others, strict=strict))
            except ManifestError as error:
                problems.extend(error.problems)
    if problems:
        raise ManifestError(problems)
    if skipped is not None:
        for other in dict.fromkeys(others):
            skipped(other)
    return tuple(manifests)


def objects_of(file: File, others: list[Problem], *, strict: bool) -> tuple[Manifest, ...]:
    """Read the objects in a file; if it was found in a directory, what is not meant as an object goes to `others`."""
    if file.of_tool is not None:
        others.append(Problem(file.of_tool[0], file=file.name, remedy=file.of_tool[1]))
        return ()
    try:
        return _parsed(file.data, file.name, others if file.is_found else None, strict=strict)
    except ManifestError as error:
        if not file.is_found or may_hold_objects(file.data, file.name):
            raise
        others += error.problems
        return ()


def parse_manifests(text: str | bytes, *, file: str = "<string>", strict: bool = False) -> tuple[Manifest, ...]:
    r"""Read the objects in a text: YAML with any number of documents, JSON, or JSON lines.

    YAML is read as kubectl reads it, which is YAML 1.1: bare `yes`, `off` and `y` are booleans, and `0755` is 493.
    `List`s and lists of one kind (`JobList`) are flattened; items without a kind get that of the list. Times stay
    strings. Aliases may expand a text to ten times its length plus 1,000,000 characters, and to ten nodes per character
    plus 1,000.

    Args:
        text: The text; bytes are UTF-8 (in comments anything), or UTF-16 with a byte order mark.
        file: The file name to show in errors.
        strict: Refuse duplicate keys? Without it the last one counts, and `Manifest.warnings` has each.

    Raises:
        ManifestError: All problems in the text, with their lines; reading stops at a syntax error.

    Example:
        >>> text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  mode: 0755\n  mode: 08"
        >>> (manifest,) = parse_manifests(text, file="a.yaml")
        >>> manifest.object["data"], manifest.warnings[0].place
        ({'mode': 8}, 'a.yaml:5:3 (document 1)')
        >>> try:
        ...     parse_manifests(text, strict=True)
        ... except ManifestError as error:
        ...     print(error.problems[0].field, error.remedy)
        data.mode remove one of them: the first is on line 4
    """
    return _parsed(text, _arguments.instance("file", file, str), strict=_arguments.flag("strict", strict))


def _parsed(text: str | bytes, file: str, others: list[Problem] | None = None, *, strict: bool) -> tuple[Manifest, ...]:
    from kueuecore._documents import documents  # only where something is read

    try:
        return _taken(documents(text, file), file, _flatten, others, strict=strict)
    except ManifestError:
        # Say what it is rather than why it is no YAML.
        if other := other_contents(text, file):
            raise ManifestError.of(other[0], remedy=other[1], file=file) from None
        raise


def parse_mappings(text: str | bytes, *, file: str, strict: bool = False) -> tuple[Manifest, ...]:
    """Read the documents in a text of YAML or JSON, which are mappings but need not be Kubernetes objects.

    Raises:
        ManifestError: All problems in the text, with their lines.
    """
    from kueuecore._documents import yaml_documents  # only where something is read

    return _taken(yaml_documents(text, file), file, _take_mapping, strict=strict)


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
            from kueuecore._json_text import unwritable_field

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
    from kueuecore._written_values import as_written

    def place(problem: Problem) -> Problem:
        manifest = manifests[problem.index] if problem.index is not None and problem.index < len(manifests) else None
        file = manifest.source.file if isinstance(manifest, Manifest) else ""
        problem = problem if problem.remedy else replace(problem, remedy=remedy_of(problem, API_VERSIONS, file))
        return manifest.locate(problem) if isinstance(manifest, Manifest) else as_written(problem, None)

    return error.mapped(place)


def _taken(
    given: Iterable[Document], file: str, take: _Take, others: list[Problem] | None = None, *, strict: bool
) -> tuple[Manifest, ...]:
    """Return the objects in documents; raise everything that is wrong with them."""
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    for document in given:
        source = Source(file, document.number, document.line, document.text)
        is_whole = document.value is not None and not document.is_cut_off
        if take is _flatten and is_whole and (other := _other(document.value, source)):
            (problems if others is None else others).append(other)
            continue
        about = (
            object_ref(document.value) if isinstance(document.value, dict) and text_at(document.value, "kind") else None
        )
        wrong = (*document.problems, *document.duplicates) if strict else document.problems
        problems += (replace(problem, file=file, document=document.number, object=about) for problem in wrong)
        if is_whole:
            found: list[Manifest] = []
            take(document.value, source, found, problems)
            manifests += _warned(found, document.duplicates) if document.duplicates else found
    if problems:
        raise ManifestError(problems)
    return tuple(manifests)


def _warned(manifests: Sequence[Manifest], duplicates: Sequence[Problem]) -> Iterator[Manifest]:
    """Yield the objects of a document, each with the duplicate keys in it, the first one with those outside of all."""
    found: dict[str, list[Problem]] = {manifest.source._path: [] for manifest in manifests}
    for duplicate in duplicates:
        steps = duplicate.field.split(".")
        paths = (".".join(steps[:n]) for n in range(len(steps) - 1, -1, -1))
        path = next((path for path in paths if path in found), next(iter(found), ""))
        found.setdefault(path, []).append(duplicate)
    for manifest in manifests:
        source, about = manifest.source, object_ref(manifest.object)
        warnings = tuple(
            replace(
                row,
                message=f"{row.message}: the last one counts",
                field=row.field.removeprefix(f"{source._path}."),
                object=about,
                file=source.file,
                document=source.document,
            )
            for row in found[source._path]
        )
        yield replace(manifest, warnings=warnings)


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
    versions = {**API_VERSIONS, "ConfigMap": "v1", "": "kueue.x-k8s.io/v1beta2, for example"}
    newest = versions.get(text_at(value, "kind"), "that of its kind, which `kubectl api-resources` lists")
    remedies = {"apiVersion": f"write {newest}", "kind": "write ClusterQueue, for example"}
    missing = [name for name in ("apiVersion", "kind") if not (isinstance(value.get(name), str) and value.get(name))]
    for name in missing:
        # An item of a List that has no kind is named by its index.
        problem = manifest.problem("Required value", field=name, remedy=remedies[name])
        problems.append(replace(problem, field=join(source._path, name)))
    if not missing:
        manifests.append(manifest)
