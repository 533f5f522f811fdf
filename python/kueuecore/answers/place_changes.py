"""Tries other places for a workload: other flavors, other LocalQueues, queues that are no longer stopped."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.answers.amounts import requests_of
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import change_of
from kueuecore.answers.parts import Part, needed_parts
from kueuecore.answers.trials import Step, Trials
from kueuecore.answers.workload_edits import edit_of
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.scenarios.edits import Edit

__all__ = ["local_queue_changes", "node_changes", "start_changes"]

_AFFINITY = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_KEEPS_OFF = ("NoSchedule", "NoExecute")


def node_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change]:
    """Node selectors, affinities and tolerations that would let the pods use a flavor of the ClusterQueue."""
    asked = requests_of(workload)
    for group in list_at(trials.engine.object("ClusterQueue", queue), "spec", "resourceGroups"):
        if not set(asked) & {str(it) for it in list_at(group, "coveredResources")}:
            continue
        for name in (text_at(it, "name") for it in list_at(group, "flavors")):
            flavor = _found(trials.engine, "ResourceFlavor", name)
            parts = _parts(workload, flavor) if flavor is not None else []
            change = needed_parts(trials, ChangeKind.NODES, parts)
            if change is not None:
                yield change


def local_queue_changes(trials: Trials, workload: JsonObject) -> Iterator[Change]:
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


def start_changes(trials: Trials, workload: JsonObject, queue: str, *, helps_again: bool) -> Iterator[Change]:
    """Lift what holds the workload back on purpose; or only submit it again, if that is enough."""
    if helps_again:
        what, step = "submit it again", Step(resubmits=True)
        change = change_of(trials, ChangeKind.START, what, before="-", after="with its creation time", step=step)
        if change is not None:
            yield change
        return
    parts: list[Part] = []
    if object_at(workload, "spec").get("active") is False:
        parts.append(Part("active", "false", "true", (edit_of(workload, "spec.active", True),)))
    name = text_at(workload, "spec", "queueName")
    for kind, namespace, of in (("LocalQueue", trials.namespace, name), ("ClusterQueue", "", queue)):
        found = _found(trials.engine, kind, of, namespace)
        policy = text_at(found, "spec", "stopPolicy")
        if policy not in ("", "None"):
            full = f"{namespace}/{of}" if namespace else of
            edit = Edit(kind=kind, name=full, path="spec.stopPolicy", value="None")
            parts.append(Part(f"stopPolicy of {kind} {of}", policy, "None", (edit,)))
    change = needed_parts(trials, ChangeKind.START, parts)
    if change is not None:
        yield change


def _parts(workload: JsonObject, flavor: JsonObject) -> list[Part]:
    """Everything that may keep the pods off the nodes of a flavor (rules/03 §5)."""
    labels = texts_at(flavor, "spec", "nodeLabels")
    taints = [it for it in list_at(flavor, "spec", "nodeTaints") if text_at(it, "effect") in _KEEPS_OFF]
    of_flavor = list_at(flavor, "spec", "tolerations")
    parts: list[Part] = []
    for index, pod_set in enumerate(list_at(workload, "spec", "podSets")):
        spec = object_at(pod_set, "template", "spec")
        name, path = text_at(pod_set, "name"), f"spec.podSets[{index}].template.spec"
        for key, value in texts_at(spec, "nodeSelector").items():
            if labels.get(key, value) != value:
                edit = edit_of(workload, f'{path}.nodeSelector["{key}"]', labels[key])
                what = f"nodeSelector of pod set {name}"
                parts.append(Part(what, f"{key}={value}", f"{key}={labels[key]}", (edit,)))
        if object_at(spec, *_AFFINITY):
            edit = edit_of(workload, f"{path}.{'.'.join(_AFFINITY)}", None)
            parts.append(Part(f"required node affinity of pod set {name}", "as it is", "none", (edit,)))
        tolerations = list_at(spec, "tolerations")
        missing = [it for it in taints if not any(_tolerates(by, it) for by in (*tolerations, *of_flavor))]
        if missing:
            added: list[JsonValue] = [{"operator": "Equal", **object_at(it)} for it in missing]
            edit = edit_of(workload, f"{path}.tolerations", [*tolerations, *added])
            written = ", ".join(f"{text_at(it, 'key')}={text_at(it, 'value')}" for it in missing)
            parts.append(Part(f"tolerations of pod set {name}", "-", written, (edit,)))
    return parts


def _tolerates(toleration: JsonValue, taint: JsonValue) -> bool:
    effect, key = text_at(toleration, "effect"), text_at(toleration, "key")
    is_about_it = effect in ("", text_at(taint, "effect")) and key in ("", text_at(taint, "key"))
    exists = text_at(toleration, "operator") == "Exists"
    return is_about_it and (exists or text_at(toleration, "value") == text_at(taint, "value"))


def _found(engine: Engine, kind: str, name: str, namespace: str = "") -> JsonObject | None:
    try:
        return engine.object(kind, name, namespace=namespace)
    except UnknownObjectError:
        return None
