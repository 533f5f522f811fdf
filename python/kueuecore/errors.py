"""The exceptions of kueuecore.

Every error about input carries [`Problem`][kueuecore.errors.Problem]s: the object, the field, its value, what is wrong
with it, how to fix it, and the file and line. All classes can be pickled, so they survive a process pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kueuecore._text import counted, escaped, quoted, shortened, shown

__all__ = [
    "ConfigurationError",
    "EngineBrokenError",
    "KueuecoreError",
    "ManifestError",
    "ObjectRef",
    "OutOfTimeError",
    "Problem",
    "UnknownObjectError",
    "UnsettledError",
]


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The name of a Kubernetes object.

    Args:
        kind: Kind, such as `ClusterQueue`.
        name: Name; empty if the object has none.
        namespace: Namespace; empty for cluster-scoped kinds.

    Example:
        >>> print(ObjectRef("LocalQueue", "user-queue", "team-a"))
        LocalQueue "team-a/user-queue"
    """

    kind: str
    name: str = ""
    namespace: str = ""

    @property
    def key(self) -> str:
        """The `namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        kind = escaped(shortened(self.kind))
        return f"{kind} {quoted(self.key)}" if self.name else kind


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with one field of one object.

    `str()` gives one line. Unprintable characters are escaped; names and values over 253 characters, the most that
    Kubernetes allows, are cut.

    Args:
        message: What is wrong, as the API server says it after the field path: `Invalid value: "1x": ...`.
        field: Field path, such as `spec.resourceGroups[0].flavors[1].name`; empty for the object as a whole.
        value: The field's value, if it is a scalar.
        remedy: How to fix it, as an instruction.
        object: The object, if it is known.
        index: Position of the object in its batch, from 0.
        file: Name of the file, `<stdin>` or `<string>`.
        document: Which YAML document of the file, from 1.
        line: Line in the file, from 1.
        column: Column in the line, from 1.

    Example:
        >>> print(Problem("Required value", field="spec.clusterQueue", object=ObjectRef("LocalQueue", "a", "x"),
        ...               file="queues.yaml", line=12, document=2))
        queues.yaml:12 (document 2): LocalQueue "x/a": spec.clusterQueue: Required value
    """

    message: str
    field: str = ""
    value: str | int | float | bool | None = None
    remedy: str = ""
    object: ObjectRef | None = None
    index: int | None = None
    file: str = ""
    document: int | None = None
    line: int | None = None
    column: int | None = None

    @property
    def place(self) -> str:
        """The position as `file:line:column (document n)`, as far as it is known."""
        file = self.file if self.file == self.file.strip() else quoted(self.file)
        place = file or ("" if self.line is None else "line ")
        if self.line is not None:
            place += f":{self.line}" if file else str(self.line)
            if self.column is not None:
                place += f":{self.column}"
        if self.document is not None:
            place += f" (document {self.document})" if place else f"document {self.document}"
        return place

    def __str__(self) -> str:
        about = "" if self.object is None else str(self.object)
        if self.index is not None and not self.place and not (self.object is not None and self.object.name):
            about = f"{about or 'object'} at index {self.index}"
        parts = [escaped(self.place), about, escaped(shortened(self.field)), shown(self.message)]
        text = ": ".join(part for part in parts if part)
        return f"{text}; {shown(self.remedy)}" if self.remedy else text


class KueuecoreError(Exception):
    """The base of every exception that kueuecore raises on purpose."""


class ManifestError(KueuecoreError, ValueError):
    """Objects that cannot be read or are not valid. No object of the batch has been applied.

    Args:
        problems: Everything that is wrong, at least one.
        warnings: What else is odd about the wrong objects: an unknown field may be a misspelling of the missing one.

    Example:
        >>> print(ManifestError([Problem("Required value", field="spec.clusterQueue")]))
        1 problem in the manifests:
          spec.clusterQueue: Required value
    """

    _subject: ClassVar[str] = "the manifests"

    def __init__(self, problems: Iterable[Problem], warnings: Iterable[Problem] = ()) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.warnings: tuple[Problem, ...] = tuple(warnings)
        if not self.problems:
            raise ValueError(f"{type(self).__name__} needs at least one Problem")
        super().__init__(self.problems, self.warnings)

    @classmethod
    def of(cls, message: str, *, field: str = "", remedy: str = "", file: str = "", line: int | None = None) -> Self:
        """Make an error with one problem."""
        return cls([Problem(message, field=field, remedy=remedy, file=file, line=line)])

    @property
    def object(self) -> ObjectRef | None:
        """The object of the first problem."""
        return self.problems[0].object

    @property
    def field(self) -> str:
        """The field path of the first problem."""
        return self.problems[0].field

    @property
    def value(self) -> str | int | float | bool | None:
        """The value that the first problem is about."""
        return self.problems[0].value

    @property
    def remedy(self) -> str:
        """How to fix the first problem."""
        return self.problems[0].remedy

    def with_problems(self, problems: Sequence[Problem]) -> Self:
        """Return the same error with other problems, such as the same ones with their positions filled in."""
        return type(self)(problems, self.warnings).with_traceback(self.__traceback__)

    def mapped(self, change: Callable[[Problem], Problem]) -> Self:
        """Return the same error with each problem and warning changed."""
        changed = type(self)(map(change, self.problems), map(change, self.warnings))
        return changed.with_traceback(self.__traceback__)

    def in_file(self, file: str) -> Self:
        """Return the same error, with `file` wherever a problem names no file."""
        return self.mapped(lambda problem: problem if problem.file else replace(problem, file=file))

    def __str__(self) -> str:
        head = f"{counted(len(self.problems), 'problem')} in {self._subject}:"
        warnings = (f"  warning: {warning}" for warning in self.warnings)
        return "\n".join([head, *(f"  {problem}" for problem in self.problems), *warnings])


class ConfigurationError(ManifestError):
    """An invalid Configuration, feature gate or option."""

    _subject = "the configuration"


class UnknownObjectError(KueuecoreError, LookupError):
    """An object that does not exist was requested.

    Args:
        object: The requested object.
        remedy: What to do, as an instruction.

    Example:
        >>> print(UnknownObjectError(ObjectRef("ClusterQueue", "a"), remedy="apply it first"))
        there is no ClusterQueue "a"; apply it first
    """

    def __init__(self, object: ObjectRef, remedy: str = "") -> None:  # noqa: A002  # as in Problem and ManifestError
        super().__init__(object, remedy)
        self.object = object
        self.remedy = remedy

    def __str__(self) -> str:
        text = f"there is no {self.object}"
        return f"{text}; {shown(self.remedy)}" if self.remedy else text


class OutOfTimeError(KueuecoreError, ValueError):
    """Virtual time would pass April 2262, where 64 bits of nanoseconds end.

    Args:
        message: What would take it there.

    Example:
        >>> print(OutOfTimeError("the job ns/a runs"))
        the job ns/a runs past April 2262, where 64 bits of nanoseconds end; start or end the run earlier
    """

    def __str__(self) -> str:
        return f"{super().__str__()} past April 2262, where 64 bits of nanoseconds end; start or end the run earlier"


class UnsettledError(KueuecoreError, RuntimeError):
    """A fleet never settles: every change in it triggers another."""


class EngineBrokenError(KueuecoreError, RuntimeError):
    """A bug in kueuecore stopped an earlier call halfway; this engine refuses further calls.

    Make a new engine from the objects, and please report the first exception.
    """

    def __init__(
        self,
        message: str = "this engine broke in an earlier call: make a new one, and report the first exception",
    ) -> None:
        super().__init__(message)
