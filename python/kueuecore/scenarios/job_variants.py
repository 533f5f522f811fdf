"""What differs between the jobs of a work besides name and time: fields with drawn values, and texts with a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice
from operator import is_
from random import Random

from kueuecore._json import JsonObject, JsonValue
from kueuecore.scenarios.edits import Edit

__all__ = ["NUMBER", "Variation", "depends_on_number", "numbered", "with_text", "without_own_texts"]

NUMBER = "{index}"
"""What stands for the number of a job in its texts."""
# What containers run, and what only people and their tools read. Elsewhere, as in a nodeSelector, `env` decides.
_CONTAINERS = frozenset({"containers", "initContainers"})
_PROGRAM = frozenset({"args", "command", "env", "image", "workingDir"})
_LABELS = frozenset({"annotations", "labels"})
# Labels and annotations of Kubernetes and its projects, Kueue among them.
_KUBERNETES = ("k8s.io/", "kubernetes.io/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """A field whose value differs from job to job.

    Args:
        field: Its path in the job, as in an `Edit`.
        values: Its values; None removes it.
        weights: Their relative frequencies; None: all equal.
        in_order: Whether they are taken in order, and after the last from the first again, instead of drawn.

    Example:
        >>> cpu = Variation(field="spec.cpu", values=(1, 8), in_order=True)
        >>> cpu.draw(Random(1), 3), cpu.applied({"kind": "Job"}, 1)
        ([0, 1, 0], {'kind': 'Job', 'spec': {'cpu': 8}})
    """

    field: str
    values: tuple[JsonValue, ...]
    weights: tuple[float, ...] | None = None
    in_order: bool = False

    def draw(self, random: Random, n: int) -> Sequence[int]:
        """Return the index of each job's value, for n jobs."""
        places = range(len(self.values))
        if self.in_order:
            return list(islice(cycle(places), n))
        summed = None if self.weights is None else list(accumulate(self.weights))
        return random.choices(places, cum_weights=summed, k=n)

    def applied(self, job: JsonObject, place: int) -> JsonObject:
        """Return a copy of a job with the value of this index.

        Raises:
            ValueError: The job has no such field, and cannot have it.
        """
        return Edit(path=self.field, value=self.values[place]).apply(job)


def numbered(job: JsonObject, number: int) -> JsonObject:
    """Return a job with its number, counted from 1, for `{index}` in its texts.

    Example:
        >>> numbered({"metadata": {"labels": {"user": "user-{index}"}}}, 7)
        {'metadata': {'labels': {'user': 'user-7'}}}
    """
    return with_text(job, NUMBER, str(number))


def depends_on_number(job: JsonObject) -> bool:
    """Return whether a decision may depend on the number of a job: on an `{index}` that is not just read or run.

    Example:
        >>> depends_on_number({"metadata": {"labels": {"user": "user-{index}"}}})
        False
        >>> depends_on_number({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "lq-{index}"}}})
        True
    """
    return any(_depends_on_number(value, name) for name, value in job.items())


def _depends_on_number(value: JsonValue, name: str) -> bool:
    if isinstance(value, str):
        return NUMBER in value
    if isinstance(value, list):
        return any(_depends_on_number(row, name) for row in value)
    if not isinstance(value, dict):
        return False
    return any(NUMBER in key or _depends_on_number(row, key) for key, row in value.items() if not _is_own(name, key))


def without_own_texts(plain: JsonObject) -> JsonObject:
    """Return an object without the texts on which no decision depends: what containers run, and labels of its own.

    Example:
        >>> without_own_texts({"labels": {"user": "u", "k8s.io/app": "a"}, "containers": [{"args": ["b"]}]})
        {'labels': {'k8s.io/app': 'a'}, 'containers': [{}]}
    """
    return {name: _without_own_texts(value, name) for name, value in plain.items()}


def _without_own_texts(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, list):
        return [_without_own_texts(row, name) for row in value]
    if isinstance(value, dict):
        return {key: _without_own_texts(row, key) for key, row in value.items() if not _is_own(name, key)}
    return value


def _is_own(mapping: str, key: str) -> bool:
    """Return whether only a job's owner and its containers read this key of a mapping."""
    if mapping in _LABELS:
        return not any(domain in key for domain in _KUBERNETES)
    return mapping in _CONTAINERS and key in _PROGRAM


def with_text(plain: JsonObject, old: str, new: str) -> JsonObject:
    """Return an object with one text replaced by another; parts without the text are shared with the original."""

    def replaced(value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return value.replace(old, new)
        if isinstance(value, dict):
            changed: JsonObject = {name.replace(old, new): replaced(row) for name, row in value.items()}
            is_same = all(map(is_, changed.values(), value.values())) and changed.keys() == value.keys()
            return value if is_same else changed
        if isinstance(value, list):
            rows = [replaced(row) for row in value]
            return value if all(map(is_, rows, value)) else rows
        return value

    return {name: replaced(value) for name, value in plain.items()}
