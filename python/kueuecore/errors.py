"""The exceptions of kueuecore.

Every error that is about somebody's input carries [`Problem`][kueuecore.errors.Problem]s: which object, which field,
what stands there, what is wrong with it, what would be right, and in which line of which file it stands. All classes
can be pickled, so they survive a process pool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from kueuecore._text import escaped, quoted, shortened, shown

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
        """`namespace/name`, or the bare name of a cluster-scoped object."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    def __str__(self) -> str:
        kind = escaped(shortened(self.kind))
        return f"{kind} {quoted(self.key)}" if self.name else kind


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with one field of one object.

    As text it is one line: what does not print is escaped, and of names and values of more than 253 characters, which
    are longer than Kubernetes takes, the beginning is shown.

    Args:
        message: What is wrong, as the API server says it after the field path: `Invalid value: "1x": ...`.
        field: Field path, such as `spec.resourceGroups[0].flavors[1].name`; empty for the object as a whole.
        value: What stands there, if it is a scalar.
        remedy: What would be right, as an instruction.
        object: The object, if it is known.
        index: Position of the object in the batch that was given, from 0.
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
        """Where it stands, `file:line:column (document n)`, as far as that is known."""
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
    """Objects that can not be read or are not valid. Nothing of the batch that was given has been applied.

    Args:
        problems: All that is wrong, at least one.
        warnings: What else is odd about the objects that are wrong: a field that nobody knows may be the one that is
            missed.

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
        """An error with one problem."""
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
        """What would be right in place of the first problem."""
        return self.problems[0].remedy

    def with_problems(self, problems: Sequence[Problem]) -> Self:
        """The same error about other problems: the same ones with their places filled in, say."""
        return type(self)(problems, self.warnings).with_traceback(self.__traceback__)

    def mapped(self, change: Callable[[Problem], Problem]) -> Self:
        """The same error with each problem and warning changed."""
        changed = type(self)(map(change, self.problems), map(change, self.warnings))
        return changed.with_traceback(self.__traceback__)

    def in_file(self, file: str) -> Self:
        """The same error, with `file` wherever a problem names no file."""
        return self.mapped(lambda problem: problem if problem.file else replace(problem, file=file))

    def __str__(self) -> str:
        n = len(self.problems)
        head = f"{n} problem{'' if n == 1 else 's'} in {self._subject}:"
        warnings = (f"  warning: {warning}" for warning in self.warnings)
        return "\n".join([head, *(f"  {problem}" for problem in self.problems), *warnings])


class ConfigurationError(ManifestError):
    """A Configuration, a feature gate or an option that is not valid."""

    _subject = "the configuration"


class UnknownObjectError(KueuecoreError, LookupError):
    """An object was asked for that is not there.

    Args:
        object: The object that was asked for.
        remedy: What could be done, as an instruction.

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
    """Virtual time would go beyond April 2262, where 64 bits of nanoseconds end.

    Args:
        message: What leads there.

    Example:
        >>> print(OutOfTimeError("the job ns/a runs"))
        the job ns/a runs past April 2262, where 64 bits of nanoseconds end; start or end the run earlier
    """

    def __str__(self) -> str:
        return f"{super().__str__()} past April 2262, where 64 bits of nanoseconds end; start or end the run earlier"


class UnsettledError(KueuecoreError, RuntimeError):
    """A fleet never settles: every change in it triggers another."""


class EngineBrokenError(KueuecoreError, RuntimeError):
    """A bug in kueuecore stopped an earlier call half-way; this engine refuses to go on.

    Make a new engine from the objects, and please report what the first exception said.
    """

    def __init__(
        self,
        message: str = "this engine broke in an earlier call: make a new one, and report the first exception",
    ) -> None:
        super().__init__(message)
