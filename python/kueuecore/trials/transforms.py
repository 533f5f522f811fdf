"""Changes to a scenario that must not change the decisions (docs/invariants.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._kinds import KUEUE
from kueuecore.testing.history import History
from kueuecore.testing.invariants import amount
from kueuecore.testing.move_result import MoveResult, Observation

__all__ = ["decided", "renamed", "scaled", "with_idle_cluster_queue"]

_QUOTAS = ("nominalQuota", "borrowingLimit", "lendingLimit")
_RESOURCES = ("requests", "limits", "resourceUsage", "overhead")


def scaled(scenario: History, factor: int) -> History:
    """Return the scenario with quota, limits, requests and usage times `factor`, in whole units except for cpu.

    The number of pods does not change.

    Example:
        >>> quota = {"name": "cpu", "nominalQuota": "1500m"}
        >>> scaled(History(({"spec": quota},)), 2).objects[0]["spec"]["nominalQuota"]
        '3000m'
    """

    def times(value: JsonValue, resource: str) -> JsonValue:
        if not isinstance(value, str) or resource == "pods":
            return value
        return f"{amount(value) * factor}m" if resource == "cpu" else str(-(-amount(value) // 1000) * factor)

    def walk(value: JsonValue, key: str) -> JsonValue:
        if isinstance(value, dict):
            if key in _RESOURCES:
                return {name: times(row, name) for name, row in value.items()}
            resource = text_at(value, "name")
            return {name: times(row, resource) if name in _QUOTAS else walk(row, name) for name, row in value.items()}
        return [walk(row, "") for row in value] if isinstance(value, list) else value

    return _mapped(scenario, walk)


def renamed(scenario: History, names: Mapping[str, str]) -> History:
    """Return the scenario with other names: replaces every text that is a name, or a key that contains one.

    Example:
        >>> renamed(History(({"metadata": {"name": "a", "uid": "a-1"}},)), {"a": "b"}).objects
        ({'metadata': {'name': 'b', 'uid': 'a-1'}},)
    """

    def walk(value: JsonValue, key: str) -> JsonValue:
        if isinstance(value, dict):
            return {name: walk(row, name) for name, row in value.items()}
        if isinstance(value, list):
            return [walk(row, "") for row in value]
        # Keys, too: `namespace/name`.
        return "/".join(names.get(part, part) for part in value.split("/")) if isinstance(value, str) else value

    found = _mapped(scenario, walk)
    keys = ("/".join(names.get(part, part) for part in move.key.split("/")) for move in scenario.moves)
    return replace(found, moves=tuple(replace(move, key=key) for move, key in zip(found.moves, keys, strict=True)))


def with_idle_cluster_queue(scenario: History, *, name: str = "zz-idle", cohort: str = "") -> History:
    """Return the scenario with one more ClusterQueue, without quota and workloads, in a cohort or alone.

    Example:
        >>> with_idle_cluster_queue(History(()), cohort="c").objects[0]["spec"]["cohortName"]
        'c'
    """
    example = next((object_ for object_ in scenario.objects if text_at(object_, "kind") == "ClusterQueue"), None)
    spec: JsonObject = {"namespaceSelector": {}, **({"cohortName": cohort} if cohort else {})}
    if example is not None and isinstance(example["spec"], dict):
        spec["resourceGroups"] = _without_quota(example["spec"].get("resourceGroups"))
    idle: JsonObject = {
        "apiVersion": KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name},
        "spec": spec,
    }
    return scenario.with_objects([*scenario.objects, idle])


def decided(moved: MoveResult, names: Mapping[str, str] | None = None) -> Observation:
    """Return what a move has decided, without messages and amounts, and sorted.

    Args:
        moved: The result of the move.
        names: The new names, as in `renamed`.
    """
    names = names or {}

    def key(text: str) -> str:
        return "/".join(names.get(part, part) for part in text.split("/"))

    decision = moved.decision
    if decision is None:
        return {"refused": bool(moved.refused), "missing": moved.missing}
    return {
        "admitted": sorted(
            (
                key(admission.key),
                key(admission.cluster_queue),
                [(a.name, a.count, {r: key(f) for r, f in a.flavors.items()}) for a in admission.pod_sets],
            )
            for admission in decision.admissions
        ),
        "preempted": sorted(
            (key(preemption.key), key(preemption.preemptor), preemption.reason) for preemption in decision.preemptions
        ),
        "pending": sorted((key(pending.key), pending.reason, pending.is_parked) for pending in decision.pending),
        "parked": sorted(map(key, decision.parked)),
    }


def _mapped(scenario: History, walk: Callable[[JsonValue, str], JsonValue]) -> History:
    """Return the scenario with every object changed; `walk` gets a value and its key."""

    def changed(plain: JsonObject) -> JsonObject:
        result = walk(plain, "")
        assert isinstance(result, dict)
        return result

    moves = [move if move.object is None else replace(move, object=changed(move.object)) for move in scenario.moves]
    return replace(scenario, objects=tuple(map(changed, scenario.objects)), moves=tuple(moves))


def _without_quota(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        plain: JsonObject = {name: _without_quota(row) for name, row in value.items() if name not in _QUOTAS}
        return {**plain, "nominalQuota": "0"} if "nominalQuota" in value else plain
    return [_without_quota(row) for row in value] if isinstance(value, list) else value
