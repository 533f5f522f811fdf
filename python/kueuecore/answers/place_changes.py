"""Tries other places for a workload: other flavors, other LocalQueues, queues that are no longer stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Failure, change_of
from kueuecore.answers.flavor_nodes import (
    flavor_names,
    flavors_with_nodes,
    found_object,
    missing_taints,
    taint_sets,
    toleration_of,
)
from kueuecore.answers.parts import Part, needed_parts
from kueuecore.answers.trials import Step, Trials
from kueuecore.answers.workload_edits import edit_of
from kueuecore.scenarios.edits import Edit

__all__ = ["local_queue_changes", "node_changes", "start_changes"]

_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


def node_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change | Failure]:
    """Node selectors, affinities and tolerations that would let the pods use a flavor of the ClusterQueue."""
    nodes = {flavor.name: flavor.nodes for flavor in flavors_with_nodes(trials.engine, workload, queue)}
    for name in flavor_names(trials.engine, workload, queue):
        flavor = found_object(trials.engine, "ResourceFlavor", name)
        if flavor is None:
            continue
        tried: list[list[Part]] = []
        for taints in taint_sets(flavor, nodes.get(name, ()), []):
            parts = _parts(workload, flavor, taints, nodes.get(name, ()))
            if parts in tried:
                continue
            tried.append(parts)
            change = needed_parts(trials, ChangeKind.NODES, parts)
            if change is not None:
                yield change
            if isinstance(change, Change):
                break


def local_queue_changes(trials: Trials, workload: JsonObject) -> Iterator[Change | Failure]:
    """Other LocalQueues in its namespace through which the workload would get quota."""
    now = text_at(workload, "spec", "queueName")
    for queue in trials.engine.objects("LocalQueue"):
        name, namespace = text_at(queue, "metadata", "name"), text_at(queue, "metadata", "namespace")
        if namespace != trials.namespace or name == now:
            continue
        after = f"{name} (ClusterQueue {text_at(queue, 'spec', 'clusterQueue')})"
        part = Part("LocalQueue", now or "-", after, (edit_of(workload, "spec.queueName", name),))
        change = needed_parts(trials, ChangeKind.LOCAL_QUEUE, [part])
        if change is not None:
            yield change


def start_changes(trials: Trials, workload: JsonObject, queue: str, *, helps_again: bool) -> Iterator[Change | Failure]:
    """Lift what holds the workload back on purpose; or only submit it again, if that is enough."""
    if helps_again:
        what, step = "submit it again", Step(resubmits=True)
        again = change_of(trials, ChangeKind.START, what, before="-", after="with its creation time", step=step)
        if again is not None:
            yield again
        return
    parts: list[Part] = []
    if object_at(workload, "spec").get("active") is False:
        parts.append(Part("active", "false", "true", (edit_of(workload, "spec.active", True),)))
    name = text_at(workload, "spec", "queueName")
    for kind, namespace, of in (("LocalQueue", trials.namespace, name), ("ClusterQueue", "", queue)):
        found = found_object(trials.engine, kind, of, namespace)
        policy = text_at(found, "spec", "stopPolicy")
        if policy not in ("", "None"):
            full = f"{namespace}/{of}" if namespace else of
            edit = Edit(kind=kind, name=full, path="spec.stopPolicy", value="None")
            parts.append(Part(f"stopPolicy of {kind} {of}", policy, "None", (edit,)))
    change = needed_parts(trials, ChangeKind.START, parts)
    if change is not None:
        yield change


def _parts(
    workload: JsonObject, flavor: JsonObject, taints: Sequence[JsonObject], nodes: Sequence[JsonObject]
) -> list[Part]:
    """Everything that may keep the pods off a flavor (rules/03 §5), or off the nodes of its topology (rules/08 §4)."""
    labels = texts_at(flavor, "spec", "nodeLabels")
    of_flavor = list_at(flavor, "spec", "tolerations")
    parts: list[Part] = []
    for index, pod_set in enumerate(list_at(workload, "spec", "podSets")):
        spec = object_at(pod_set, "template", "spec")
        name, path = text_at(pod_set, "name"), f"spec.podSets[{index}].template.spec"
        for key, value in texts_at(spec, "nodeSelector").items():
            after: str | None = labels.get(key, value)
            # Only nodes of a topology have to match a label that is not the flavor's.
            if key not in labels and any(texts_at(node, "metadata", "labels").get(key) != value for node in nodes):
                after = None
            if after != value:
                edit = edit_of(workload, f'{path}.nodeSelector["{key}"]', after)
                what, shown = f"nodeSelector of pod set {name}", "none" if after is None else f"{key}={after}"
                parts.append(Part(what, f"{key}={value}", shown, (edit,)))
        if object_at(spec, *_AFFINITY):
            edit = edit_of(workload, f"{path}.{'.'.join(_AFFINITY)}", None)
            parts.append(Part(f"required node affinity of pod set {name}", "as it is", "none", (edit,)))
        tolerations = list_at(spec, "tolerations")
        missing = missing_taints(taints, (*tolerations, *of_flavor))
        if missing:
            edit = edit_of(workload, f"{path}.tolerations", [*tolerations, *map(toleration_of, missing)])
            written = ", ".join(f"{text_at(taint, 'key')}={text_at(taint, 'value')}" for taint in missing)
            parts.append(Part(f"tolerations of pod set {name}", "-", written, (edit,)))
    return parts
