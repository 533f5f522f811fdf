"""Tries what would give pods a place in a topology: another request, tolerations of the flavor, other nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore._quantities import number
from kueuecore.answers.amounts import pod_requests
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, least_changes
from kueuecore.answers.flavor_nodes import (
    FlavorNodes,
    flavor_names,
    flavors_with_nodes,
    missing_taints,
    taint_sets,
    toleration_of,
)
from kueuecore.answers.parts import Part, needed_parts
from kueuecore.answers.trials import Trials
from kueuecore.answers.workload_edits import edit_of
from kueuecore.scenarios.edits import Edit

__all__ = ["cluster_changes", "flavor_changes", "topology_changes"]

_HOSTNAME = "kubernetes.io/hostname"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_PLACES = ("required", "preferred", "unconstrained")
_SLICES = (
    "podSetSliceRequiredTopology",
    "podSetSliceSize",
    "podsetSliceRequiredTopologyConstraints",
)
_MAX_NODES = 256
_MAX_NAMES = 3


def topology_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change | Failure]:
    """The strictest topology request of each pod set with which the workload gets quota."""
    flavors = flavors_with_nodes(trials.engine, workload, queue)
    if not flavors:
        return
    levels = list(dict.fromkeys(level for flavor in flavors for level in flavor.levels))
    has_others = len(flavor_names(trials.engine, workload, queue)) > len(flavors)
    dials: list[Dial] = []
    for index, pod_set in enumerate(list_at(workload, "spec", "podSets")):
        given = pod_set.get("topologyRequest") if isinstance(pod_set, dict) else None
        requests = _weaker(given, levels, has_others=has_others)
        if len(requests) > 1:
            dials.append(_request_dial(workload, index, text_at(pod_set, "name"), requests))
    yield from least_changes(trials, dials)


def flavor_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change | Failure]:
    """Tolerations of a flavor with a topology, for the taints of its nodes: pods get them from there."""
    for flavor in flavors_with_nodes(trials.engine, workload, queue):
        there = list_at(flavor.flavor, "spec", "tolerations")
        for taints in taint_sets(flavor.flavor, flavor.nodes, there):
            if not taints:
                continue
            added = [*there, *map(toleration_of, taints)]
            edit = Edit(kind="ResourceFlavor", name=flavor.name, path="spec.tolerations", value=added)
            written = ", ".join(f"{text_at(taint, 'key')}={text_at(taint, 'value')}" for taint in taints)
            part = Part(f"tolerations of ResourceFlavor {flavor.name}", "-", written, (edit,))
            change = needed_parts(trials, ChangeKind.FLAVOR, [part])
            if change is not None:
                yield change
            if isinstance(change, Change):
                break


def cluster_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change | Failure]:
    """Nodes that take pods again, lose taints or get labels, and new nodes like one that is there."""
    for flavor in flavors_with_nodes(trials.engine, workload, queue):
        tolerations = [*list_at(flavor.flavor, "spec", "tolerations"), *_tolerated_by_all(workload)]
        for dial in (
            _uncordoned(flavor),
            _untainted(flavor, tolerations),
            _labelled(trials, flavor),
            _added(trials, flavor, workload),
        ):
            if dial is not None:
                yield from least_changes(trials, [dial])


def _weaker(given: JsonValue, levels: Sequence[str], *, has_others: bool) -> list[JsonValue]:
    """A topology request, and weaker ones: wider levels, then preferred ones, then none in particular."""
    if not isinstance(given, dict):
        return [given, {"unconstrained": True}]
    level = text_at(given, "required") or text_at(given, "preferred")
    rest = {key: value for key, value in given.items() if key not in _PLACES}
    wider = list(reversed(levels[: levels.index(level)] if level in levels else levels))
    kept = [level] if level in levels else []
    requests: list[JsonValue] = [given]
    if "required" in given:
        requests += [{**rest, "required": level} for level in wider]
    if level:
        requests += [{**rest, "preferred": quota} for quota in (*kept, *wider)]
        requests.append({**rest, "unconstrained": True})
    if any(key in given for key in _SLICES):
        requests.append(
            {"unconstrained": True, **{key: json_value for key, json_value in rest.items() if key not in _SLICES}}
        )
    if has_others:
        requests.append(None)
    return [request for n, request in enumerate(requests) if request not in requests[:n]]


def _request_dial(workload: JsonObject, index: int, name: str, requests: Sequence[JsonValue]) -> Dial:
    path = f"spec.podSets[{index}].topologyRequest"
    return Dial(
        kind=ChangeKind.TOPOLOGY,
        what=f"topology request of pod set {name}",
        most=len(requests) - 1,
        edits=lambda turn: (edit_of(workload, path, requests[turn]),),
        shown=lambda turn: _written(requests[turn]),
        weight=len(requests),
    )


def _written(request: JsonValue) -> str:
    """A topology request in words."""
    if not isinstance(request, dict):
        return "none"
    asked = [f"{place} {text_at(request, place)}" for place in _PLACES[:2] if text_at(request, place)]
    constraints = list_at(request, "podsetSliceRequiredTopologyConstraints")
    slices = [(text_at(constraint, "topology"), int_at(constraint, "size")) for constraint in constraints]
    if text_at(request, _SLICES[0]):
        slices.append((text_at(request, _SLICES[0]), int_at(request, _SLICES[1])))
    return ", ".join([*(asked or ["unconstrained"]), *(f"slices of {size} in {level}" for level, size in slices)])


def _uncordoned(it: FlavorNodes) -> Dial | None:
    nodes = [node for node in it.nodes if object_at(node, "spec").get("unschedulable") is True]

    def edits(node: JsonObject) -> tuple[Edit, ...]:
        taints = list_at(node, "spec", "taints")
        kept = [taint for taint in taints if text_at(taint, "key") != _UNSCHEDULABLE]
        open_again = (_edit(node, "spec.unschedulable", None),)
        return open_again if kept == taints else (*open_again, _edit(node, "spec.taints", kept))

    return _nodes_dial("uncordoned nodes", it, [_name(node) for node in nodes], [edits(node) for node in nodes])


def _untainted(it: FlavorNodes, tolerations: Sequence[JsonValue]) -> Dial | None:
    names: list[str] = []
    each: list[tuple[Edit, ...]] = []
    for node in it.nodes:
        taints = list_at(node, "spec", "taints")
        off = missing_taints(taints, tolerations)
        if off:
            names.append(_name(node))
            each.append((_edit(node, "spec.taints", [taint for taint in taints if taint not in off]),))
    return _nodes_dial("nodes without the taints that the pods do not tolerate", it, names, each)


def _labelled(trials: Trials, it: FlavorNodes) -> Dial | None:
    """Nodes that get the labels which they lack for the flavor and its levels."""
    wanted = texts_at(it.flavor, "spec", "nodeLabels")
    values = {level: _usual(trials.engine.objects("Node"), level) for level in it.levels}
    written: list[str] = []
    each: list[tuple[Edit, ...]] = []
    for node in (*it.nodes, *it.others):
        labels = texts_at(node, "metadata", "labels")
        new = {key: value for key, value in wanted.items() if key not in labels}
        new |= {
            level: _name(node) if level == _HOSTNAME else values[level] for level in it.levels if level not in labels
        }
        if new:
            written.append(f"{_name(node)} ({', '.join(f'{key}={value}' for key, value in sorted(new.items()))})")
            each.append(tuple(_edit(node, f'metadata.labels["{key}"]', value) for key, value in sorted(new.items())))
    return _nodes_dial("labels of nodes", it, written, each)


def _added(trials: Trials, it: FlavorNodes, workload: JsonObject) -> Dial | None:
    """More nodes like the one of the flavor that has room for most pods."""
    pod_sets = [object_at(pod_set) for pod_set in list_at(workload, "spec", "podSets")]
    usable = [node for node in it.nodes if set(it.levels) <= set(texts_at(node, "metadata", "labels"))]
    if not usable or not pod_sets:
        return None
    model = max(usable, key=lambda node: (_room(node, pod_sets[0]), -usable.index(node)))
    taken = {_name(node) for node in trials.engine.objects("Node")}
    name = _name(model)
    names = [free for n in range(1, _MAX_NODES + len(taken)) if (free := f"{name}-more-{n}") not in taken]
    made = [_like(model, free) for free in names]
    most = min(_MAX_NODES, max(1, sum(int_at(pod_set, "count") for pod_set in pod_sets)))
    return Dial(
        kind=ChangeKind.CLUSTER,
        what=f"more nodes like {name} in flavor {it.name}",
        most=most,
        edits=lambda turn: (),
        objects=lambda turn: tuple(made[:turn]),
        shown=lambda turn: str(turn) if turn else "-",
        weight=1,
    )


def _room(node: JsonObject, pod_set: JsonObject) -> int:
    """For how many pods an empty node has room."""
    allocatable = object_at(node, "status", "allocatable")
    units = ((name, amount) for name, amount in pod_requests(pod_set).items() if amount)
    rooms = [int((number(allocatable.get(name)) or 0) * (1000 if name == "cpu" else 1)) // unit for name, unit in units]
    return min(rooms, default=0)


def _like(model: JsonObject, name: str) -> JsonObject:
    labels: JsonObject = {**texts_at(model, "metadata", "labels"), _HOSTNAME: name}
    metadata: JsonObject = {"name": name, "labels": labels}
    spec = {key: value for key, value in object_at(model, "spec").items() if key != "unschedulable"}
    spec["taints"] = [taint for taint in list_at(spec, "taints") if text_at(taint, "key") != _UNSCHEDULABLE]
    return {**model, "metadata": metadata, "spec": spec}


def _nodes_dial(what: str, it: FlavorNodes, names: Sequence[str], each: Sequence[tuple[Edit, ...]]) -> Dial | None:
    """A dial that changes the first node, the first two, and so on."""
    if not names:
        return None

    def shown(turn: int) -> str:
        more = f" and {turn - _MAX_NAMES} more" if turn > _MAX_NAMES else ""
        return ", ".join(names[:turn][:_MAX_NAMES]) + more if turn else "-"

    return Dial(
        kind=ChangeKind.CLUSTER,
        what=f"{what} in flavor {it.name}",
        most=len(names),
        edits=lambda turn: tuple(edit for edits in each[:turn] for edit in edits),
        shown=shown,
        weight=1,
    )


def _name(node: JsonObject) -> str:
    return text_at(node, "metadata", "name")


def _edit(node: JsonObject, path: str, value: JsonValue) -> Edit:
    return Edit(kind="Node", name=_name(node), path=path, value=value)


def _usual(nodes: Sequence[JsonObject], label: str) -> str:
    """The value that most nodes have for a label."""
    values = Counter(texts_at(node, "metadata", "labels").get(label, "") for node in nodes)
    values.pop("", None)
    return max(sorted(values), key=values.__getitem__, default="any")


def _tolerated_by_all(workload: JsonObject) -> list[JsonValue]:
    """The tolerations that all pod sets have."""
    each = [list_at(pod_set, "template", "spec", "tolerations") for pod_set in list_at(workload, "spec", "podSets")]
    return [pod_set for pod_set in each[0] if all(pod_set in others for others in each)] if each else []
