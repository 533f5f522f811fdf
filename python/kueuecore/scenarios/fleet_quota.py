"""Compares a manager's quota with its workers': too little starves them, too much fills them."""

from __future__ import annotations

from fractions import Fraction

from kueuecore._json import JsonObject, list_at, text_at
from kueuecore._quantities import number
from kueuecore.fleet import Fleet, Node
from kueuecore.multikueue import MANAGER
from kueuecore.multikueue.configs import is_of_multikueue
from kueuecore.scenarios.outcomes import QuotaOutcome

__all__ = ["quotas_of"]


def quotas_of(fleet: Fleet, workers: tuple[str, ...]) -> tuple[QuotaOutcome, ...]:
    """Return what each dispatching ClusterQueue of the manager may use, and what its workers have for it.

    This is what could be used if everything were idle, including all that may be borrowed from a cohort.
    """
    checks = {
        text_at(object_, "metadata", "name") for object_ in fleet.objects("AdmissionCheck") if is_of_multikueue(object_)
    }
    manager, found = fleet.nodes[MANAGER], []
    for queue in fleet.objects("ClusterQueue"):
        strategy = list_at(queue, "spec", "admissionChecksStrategy", "admissionChecks")
        if not checks & {text_at(check, "name") for check in strategy}:
            continue
        name = text_at(queue, "metadata", "name")
        keys = {
            _key(object_) for object_ in fleet.objects("LocalQueue") if text_at(object_, "spec", "clusterQueue") == name
        }
        there = {worker: _usable(fleet.nodes[worker], _targets(fleet.nodes[worker], keys)) for worker in workers}
        for resource, amount in _usable(manager, {name}).items():
            by_worker = {worker: text.get(resource, Fraction()) for worker, text in there.items()}
            found.append(QuotaOutcome(cluster_queue=name, resource=resource, manager=amount, by_worker=by_worker))
    return tuple(found)


def _targets(node: Node, keys: set[tuple[str, str]]) -> set[str]:
    """Return the ClusterQueues behind some LocalQueues."""
    return {text_at(object_, "spec", "clusterQueue") for object_ in node.objects("LocalQueue") if _key(object_) in keys}


def _usable(node: Node, queues: set[str]) -> dict[str, Fraction | None]:
    """Return what some ClusterQueues could use together of each resource; None: no limit."""
    amounts: dict[str, Fraction | None] = {}
    for row in node.controller.engine.quota():
        if row.kind == "ClusterQueue" and row.name in queues:
            before = amounts.get(row.resource, Fraction())
            amount = number(row.potential_available)
            amounts[row.resource] = None if before is None or amount is None else before + amount
    return amounts


def _key(local_queue: JsonObject) -> tuple[str, str]:
    return text_at(local_queue, "metadata", "namespace"), text_at(local_queue, "metadata", "name")
