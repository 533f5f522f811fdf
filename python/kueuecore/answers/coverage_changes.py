"""Tries quota for resources that a ClusterQueue does not cover, and not to ask for these."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.answers.amounts import quantity_of, requests_of
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, least_changes
from kueuecore.answers.explanation import explain
from kueuecore.answers.parts import Part, needed_parts
from kueuecore.answers.quota_changes import QuotaTree
from kueuecore.answers.trials import Trials
from kueuecore.answers.workload_edits import edit_of
from kueuecore.engine import Engine
from kueuecore.scenarios.edits import Edit

__all__ = ["coverage_changes", "uncovered_requests", "uncovered_resources"]

_MAX_FLAVORS = 4


def uncovered_resources(engine: Engine, name: str, *, namespace: str) -> list[str]:
    """The resources that a Workload requests and its ClusterQueue has no quota for in any flavor."""
    found = explain(engine, name, namespace=namespace)
    return sorted({text for pod_set in found.pod_sets for text in pod_set.unavailable})


def coverage_changes(trials: Trials, workload: JsonObject, tree: QuotaTree) -> Iterator[Change | Failure]:
    """The smallest quota for what the ClusterQueue does not cover, in one of its flavors."""
    names = uncovered_resources(trials.engine, trials.name, namespace=trials.namespace)
    groups = list_at(trials.engine.object("ClusterQueue", tree.queue), "spec", "resourceGroups")
    if not names or not groups:
        return
    asked = requests_of(workload)
    for index, group in enumerate(groups):
        covered = [*list_at(group, "coveredResources"), *names]
        flavors: list[JsonValue] = []
        for other in list_at(group, "flavors"):
            added: list[JsonValue] = [{"name": name, "nominalQuota": "0"} for name in names]
            flavors.append({**object_at(other), "resources": [*list_at(other, "resources"), *added]})
        path = f"spec.resourceGroups[{index}]"
        changed: JsonObject = {**object_at(group), "coveredResources": covered, "flavors": flavors}
        base = (Edit(kind="ClusterQueue", name=tree.queue, path=path, value=changed),)
        for flavor in [text_at(flavor, "name") for flavor in flavors][:_MAX_FLAVORS]:
            of = f"{path}.flavors[name={flavor}].resources"
            dials = [_dial(tree, of, flavor, name, asked.get(name, 1), base) for name in names]
            yield from least_changes(trials, dials)


def uncovered_requests(trials: Trials, workload: JsonObject) -> Iterator[Change | Failure]:
    """Not to ask for what the ClusterQueue does not cover."""
    parts: list[Part] = []
    for name in uncovered_resources(trials.engine, trials.name, namespace=trials.namespace):
        for index, pod_set in enumerate(list_at(workload, "spec", "podSets")):
            for field in ("initContainers", "containers"):
                for place, container in enumerate(list_at(pod_set, "template", "spec", field)):
                    path = f"spec.podSets[{index}].template.spec.{field}[{place}].resources"
                    of = f"container {text_at(container, 'name')} of pod set {text_at(pod_set, 'name')}"
                    resources = object_at(container, "resources")
                    edits = tuple(
                        edit_of(workload, f'{path}.{which}["{name}"]', None)
                        for which in ("requests", "limits")
                        if name in object_at(resources, which)
                    )
                    if edits:
                        amount = object_at(resources, "requests").get(name, object_at(resources, "limits").get(name))
                        parts.append(Part(f"request of {of} for {name}", str(amount), "none", edits))
    found = needed_parts(trials, ChangeKind.REQUEST, parts)
    if found is not None:
        yield found


def _dial(tree: QuotaTree, path: str, flavor: str, resource: str, asked: int, base: tuple[Edit, ...]) -> Dial:
    return Dial(
        kind=ChangeKind.COVERAGE,
        what=f"nominalQuota of ClusterQueue {tree.queue} for {resource} in {flavor}",
        most=tree.far(flavor, resource, asked),
        edits=lambda turn: (
            Edit(
                kind="ClusterQueue",
                name=tree.queue,
                path=f"{path}[name={resource}].nominalQuota",
                value=quantity_of(resource, turn),
            ),
        ),
        shown=lambda turn: quantity_of(resource, turn) if turn else "not covered",
        weight=asked,
        hint=asked,
        unit=asked,
        base=base,
    )
