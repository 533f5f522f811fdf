"""Edits of a scenario and its objects by field path: `ClusterQueue/team-a:spec.cohortName=all`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._text import quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest, object_ref, parse_manifests

if TYPE_CHECKING:  # the questions edit objects, and need nothing else of a scenario
    from kueuecore.scenarios.cluster_part import ClusterPart
    from kueuecore.scenarios.scenario import Scenario

__all__ = ["Edit", "parse_edit", "parse_target", "parse_value", "split_edit", "with_edits"]

_OBJECT = re.compile(r"(?P<kind>[A-Z][A-Za-z0-9]*)/(?P<name>[^:=\[\]]+):(?P<path>.*)", re.DOTALL)
_STEP = re.compile(
    r"""\[(?P<index>\d+)\]|\[(?P<key>\w+)=(?P<value>[^\]]*)\]|\["(?P<quoted>[^"]*)"\]|\.?(?P<name>[^.\[\]=]+)"""
)
# The name of a field, the index of an entry, or a (key, value) of an entry.
_Step: TypeAlias = str | int | tuple[str, str]
_FORM = "write KIND/NAME:PATH=VALUE, such as ClusterQueue/team-a:spec.cohortName=all, or PATH=VALUE for the scenario"
_PATH_FORM = 'separate names with dots; write [0] or [name=x] after a list, ["a.b/c"] for a name with dots'


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A new value for one field, of the scenario itself or of all matching objects.

    Args:
        kind: Kind of the objects; empty: the scenario.
        name: Their name, or `namespace/name`; `*` and `?` are wildcards.
        path: The field, such as `spec.resourceGroups[0].flavors[name=spot].resources[name=cpu].nominalQuota`.
        value: The new value; None removes the field.
        called: What tables call the value; empty: itself, or what tells it apart.
    """

    kind: str = ""
    name: str = ""
    path: str
    value: JsonValue
    called: str = field(default="", repr=False)

    @property
    def target(self) -> str:
        """What it changes, as users write it."""
        return f"{self.kind}/{self.name}:{self.path}" if self.kind else self.path

    def matches(self, manifest: Manifest) -> bool:
        """Return whether it changes this object."""
        ref = object_ref(manifest.object)
        full = f"{ref.namespace}/{ref.name}" if "/" in self.name else ref.name
        return ref.kind == self.kind and fnmatchcase(full, self.name)

    def apply(self, plain: JsonObject) -> JsonObject:
        """Return a copy of the object with the new value; it shares all that is not on the path.

        Raises:
            ValueError: The path does not exist; the message says where it ends.

        Example:
            >>> Edit(path="a[name=y].n", value=5).apply({"a": [{"name": "x"}, {"name": "y"}]})
            {'a': [{'name': 'x'}, {'name': 'y', 'n': 5}]}
        """
        result = dict(plain)
        *before, last = _steps(self.path)
        place: JsonValue = result
        for step in before:
            # Only what is on the path is copied.
            place = _copied_below(place, step)
        if isinstance(place, dict) and isinstance(last, str):
            if self.value is None:
                place.pop(last, None)
            else:
                place[last] = deepcopy(self.value)
        elif isinstance(place, list):
            index = _index(place, last)
            if self.value is None:
                del place[index]
            else:
                place[index] = deepcopy(self.value)
        else:
            raise ValueError(f"there is no {_written(last)} in {quoted(str(place))}")
        return result


def parse_target(text: str) -> Edit:
    """Parse an edit without its value: `KIND/NAME:PATH`, or `PATH` in the scenario.

    Raises:
        ManifestError: The text has another format.

    Example:
        >>> parse_target("ClusterQueue/team-*:spec.cohortName")
        Edit(kind='ClusterQueue', name='team-*', path='spec.cohortName', value=None)
    """
    found = _OBJECT.fullmatch(text)
    kind, name, path = found.group("kind", "name", "path") if found else ("", "", text)
    try:
        _steps(path)
    except ValueError as error:
        raise ManifestError.of(f"{quoted(text)}: {error}", remedy=_PATH_FORM) from None
    return Edit(kind=kind, name=name, path=path, value=None)


def parse_edit(text: str) -> Edit:
    """Parse an edit: `KIND/NAME:PATH=VALUE`, or `PATH=VALUE` in the scenario. The value is YAML.

    Raises:
        ManifestError: The text has another format.

    Example:
        >>> parse_edit("ClusterQueue/a:spec.resourceGroups[0].flavors[name=spot].resources[0].nominalQuota=4").value
        4
        >>> parse_edit("cluster.configuration.fairSharing.preemptionStrategies=[LessThanOrEqualToFinalShare]").target
        'cluster.configuration.fairSharing.preemptionStrategies'
    """
    target, value = split_edit(text)
    return replace(parse_target(target), value=parse_value(value))


def split_edit(text: str) -> tuple[str, str]:
    """Split an edit at its `=`.

    Raises:
        ManifestError: It has no `=`.
    """
    # An `=` in brackets selects a list entry.
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "=" and depth == 0:
            return text[:place], text[place + 1 :]
    raise ManifestError.of(f"{quoted(text)} has no value", remedy=_FORM)


def parse_value(text: str) -> JsonValue:
    """Parse a value as YAML.

    Raises:
        ManifestError: It is not YAML.

    Example:
        >>> parse_value("4"), parse_value("36Gi"), parse_value("[a, b]"), parse_value("null")
        (4, '36Gi', ['a', 'b'], None)
    """
    try:
        # The parser takes only objects; strict, so that the text ends where the value does.
        (manifest,) = parse_manifests(f"apiVersion: v1\nkind: Value\nvalue: {text}\n", file="<value>", strict=True)
        return manifest.object["value"]
    except (ValueError, KeyError):
        raise ManifestError.of(
            f"{quoted(text)} is not a value", remedy="write it as in YAML, such as 4 or [a, b]"
        ) from None


def with_edits(scenario: Scenario, edits: Sequence[Edit]) -> Scenario:
    """Apply edits to a scenario's objects and jobs, in the cluster or in every cluster of a fleet.

    Raises:
        ManifestError: Lists every edit that matches no object, or does not fit a matching one.
    """
    objects = _Objects([edit for edit in edits if edit.kind])
    fleet, generated = scenario.fleet, scenario.generated
    if fleet is not None:
        workers = {
            name: replace(worker, cluster=objects.of_cluster(worker.cluster)) for name, worker in fleet.workers.items()
        }
        fleet = replace(fleet, manager=objects.of_cluster(fleet.manager), workers=workers)
    if generated is not None:
        generated = replace(
            generated, objects=tuple(manifest.object for manifest in objects.of(map(Manifest, generated.objects)))
        )
    result = replace(
        scenario,
        cluster=objects.of_cluster(scenario.cluster),
        fleet=fleet,
        generated=generated,
        work=tuple(replace(work, job=objects.of([work.job])[0]) for work in scenario.work),
    )
    objects.end()
    return result


class _Objects:
    """Applies edits to objects, and keeps track of edits that have matched none."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._matched: set[str] = set()
        self._names: dict[str, set[str]] = {}
        self._problems: list[Problem] = []

    def of(self, manifests: Iterable[Manifest]) -> tuple[Manifest, ...]:
        return tuple(self._of_one(manifest) for manifest in manifests) if self._edits else tuple(manifests)

    def of_cluster(self, part: ClusterPart) -> ClusterPart:
        return replace(part, objects=self.of(part.objects))

    def _of_one(self, manifest: Manifest) -> Manifest:
        ref = object_ref(manifest.object)
        self._names.setdefault(ref.kind, set()).add(ref.name)
        for edit in self._edits:
            if not edit.matches(manifest):
                continue
            self._matched.add(edit.target)
            try:
                manifest = replace(manifest, object=edit.apply(manifest.object))
            except ValueError as error:
                self._problems.append(manifest.problem(str(error), field=edit.path, remedy=_PATH_FORM))
        return manifest

    def end(self) -> None:
        for edit in self._edits:
            if edit.target in self._matched:
                continue
            names = sorted(self._names.get(edit.kind, ()))
            remedy = f"write one of {', '.join(names[:9])}" if names else f"the scenario has no {edit.kind}"
            self._problems.append(Problem(f"no object matches {edit.kind}/{edit.name}", remedy=remedy))
        if self._problems:
            raise ManifestError(self._problems)


def _steps(path: str) -> list[_Step]:
    """Split a path into steps.

    Raises:
        ValueError: It is not a path.
    """
    steps: list[_Step] = []
    place = 0
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None or (not steps and path.startswith(".")):
            raise ValueError(f"cannot read {quoted(path[place:])} in the path")
        place = found.end()
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["key"] is not None:
            steps.append((found["key"], found["value"]))
        else:
            steps.append(found["quoted"] if found["quoted"] is not None else found["name"])
    if not steps or not isinstance(steps[0], str):
        raise ValueError("a path must start with the name of a field")
    return steps


def _copied_below(place: JsonValue, step: _Step) -> JsonValue:
    """Replace the value below a place by a copy, and return it."""
    if isinstance(place, dict) and isinstance(step, str):
        # As `kubectl set` does: create what does not exist yet.
        found = place.get(step)
        place[step] = {} if found is None else copy(found)
        return place[step]
    if isinstance(place, list):
        index = _index(place, step)
        place[index] = copy(place[index])
        return place[index]
    raise ValueError(f"there is no {_written(step)} in {quoted(str(place))}")


def _index(entries: list[JsonValue], step: _Step) -> int:
    if isinstance(step, int) and step < len(entries):
        return step
    if isinstance(step, tuple):
        key, value = step
        for index, entry in enumerate(entries):
            if text_at(entry, key) == value:
                return index
    raise ValueError(f"there is no {_written(step)} in a list of {len(entries)}")


def _written(step: _Step) -> str:
    match step:
        case str():
            return step
        case int():
            return f"[{step}]"
        case (key, value):
            return f"[{key}={value}]"
