"""Rules about queues that lead nowhere, that nobody can reach, or that are stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kueuecore._json import JsonValue, object_at, text_at
from kueuecore._quantities import number
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.labels import correction, missing_labels, selects
from kueuecore.manifests import Manifest
from kueuecore.world import key_of

__all__ = [
    "excluded_namespaces",
    "local_queues_of_weight_zero",
    "missing_cluster_queues",
    "missing_local_queues",
    "namespaces_not_given",
    "selectors_of_nothing",
    "stopped_queues",
    "unreachable_queues",
]


@rule("KC401", "missing-cluster-queue", Severity.ERROR, "a LocalQueue whose ClusterQueue does not exist")
def missing_cluster_queues(facts: Facts) -> Iterator[Hit]:
    """Its workloads wait forever."""
    for queue in facts.local_queues.values():
        name = text_at(queue.object, "spec", "clusterQueue")
        if name not in facts.cluster_queues:
            yield hit(
                queue,
                f"Not found: {quoted(name)}: there is no such ClusterQueue, so nothing is admitted",
                field="spec.clusterQueue",
                remedy=correction(name, facts.cluster_queues, kind="ClusterQueue"),
            )


@rule("KC402", "unreachable-cluster-queue", Severity.WARNING, "a ClusterQueue that no LocalQueue points to")
def unreachable_queues(facts: Facts) -> Iterator[Hit]:
    """Without any LocalQueue, they are assumed to be elsewhere. A queue that selects no namespace is there to lend."""
    named = _reachable(facts)
    for name, queue in facts.cluster_queues.items():
        if named and name not in named and _selector(queue) is not None:
            yield hit(
                queue,
                "no LocalQueue points to it, so nobody can submit to it",
                field="metadata.name",
                remedy="create a LocalQueue, or remove the namespaceSelector if it is only there to lend",
            )


@rule("KC403", "stopped-queue", Severity.WARNING, "a ClusterQueue or LocalQueue with a stopPolicy")
def stopped_queues(facts: Facts) -> Iterator[Hit]:
    """A Hold is easily forgotten."""
    for queue in (*facts.cluster_queues.values(), *facts.local_queues.values()):
        policy = text_at(queue.object, "spec", "stopPolicy")
        if policy not in ("", "None"):
            yield hit(
                queue,
                f"Invalid value: {quoted(policy)}: nothing is admitted while it is set",
                field="spec.stopPolicy",
                remedy="remove it to restart the queue",
            )


@rule("KC404", "selects-no-namespace", Severity.WARNING, "a namespaceSelector that matches no Namespace")
def selectors_of_nothing(facts: Facts) -> Iterator[Hit]:
    """A missing selector matches nothing; others are compared with the Namespaces, if any are given."""
    named = _reachable(facts)
    for name, queue in facts.cluster_queues.items():
        selector = _selector(queue)
        if selector is None:
            if named and name not in named:
                continue  # it is there to lend
            yield hit(
                queue,
                "Required value: without it no namespace is selected, so nothing is admitted",
                field="spec.namespaceSelector",
                remedy="set it to {} to select all namespaces",
            )
        elif facts.namespaces and not any(selects(selector, namespace) for namespace in facts.namespaces.values()):
            yield hit(
                queue,
                "it matches none of the Namespaces given, so nothing is admitted",
                field="spec.namespaceSelector",
                remedy="label a Namespace, or correct the selector",
            )


@rule(
    "KC405", "excluded-namespace", Severity.ERROR, "a LocalQueue in a Namespace that its ClusterQueue does not select"
)
def excluded_namespaces(facts: Facts) -> Iterator[Hit]:
    """If the selector matches no Namespace at all, `selects-no-namespace` reports that instead."""
    for (namespace, _), queue in facts.local_queues.items():
        name = text_at(queue.object, "spec", "clusterQueue")
        if namespace not in facts.namespaces or name not in facts.cluster_queues:
            continue
        selector = _selector(facts.cluster_queues[name])
        is_selective = any(selects(selector, namespace) for namespace in facts.namespaces.values())
        if is_selective and not selects(selector, facts.namespaces[namespace]):
            yield hit(
                queue,
                f"ClusterQueue {name} does not select namespace {namespace}, so nothing from here is admitted",
                field="metadata.namespace",
                remedy="label the Namespace to match its namespaceSelector, or use another ClusterQueue",
            )


@rule("KC407", "missing-local-queue", Severity.ERROR, "a workload or job whose LocalQueue does not exist")
def missing_local_queues(facts: Facts) -> Iterator[Hit]:
    """It waits forever. Without any LocalQueue, they are assumed to be elsewhere, and this is a note."""
    for workload in facts.workloads.values():
        name = text_at(workload.object, "spec", "queueName")
        namespace, _ = key_of(workload.object)
        if not name or (namespace, name) in facts.local_queues:
            continue
        if facts.local_queues:
            what = f"namespace {namespace} has no such LocalQueue, so it waits forever"
            remedy = correction(name, [queue for at, queue in facts.local_queues if at == namespace], kind="LocalQueue")
        else:
            what = f"there are no LocalQueues among the objects, and without this one in namespace {namespace} it waits"
            remedy = "add the LocalQueue, unless it is elsewhere"
        yield hit(
            workload,
            f"Not found: {quoted(name)}: {what}",
            field="spec.queueName",
            remedy=remedy,
            severity=None if facts.local_queues else Severity.NOTE,
        )


@rule("KC414", "namespace-not-given", Severity.NOTE, "a LocalQueue whose Namespace, with its labels, is not given")
def namespaces_not_given(facts: Facts) -> Iterator[Hit]:
    """It is added without labels, and its ClusterQueue selects Namespaces by labels, so nothing of it can be tried."""
    for (namespace, _), queue in facts.local_queues.items():
        name = text_at(queue.object, "spec", "clusterQueue")
        target = facts.cluster_queues.get(name)
        labels = "" if target is None else missing_labels(facts.world, namespace, _selector(target))
        if labels:
            yield hit(
                queue,
                f"Namespace {namespace} is not among the objects, and ClusterQueue {name} asks for {labels}: without "
                "these labels nothing from here is admitted",
                field="metadata.namespace",
                remedy="add the Namespace with its labels, or set them with --namespace-labels",
            )


@rule("KC412", "local-queue-weight-zero", Severity.NOTE, "a LocalQueue that is always served last, as its weight is 0")
def local_queues_of_weight_zero(facts: Facts) -> Iterator[Hit]:
    """With admission fair sharing its usage counts as infinite (rules/09 §1)."""
    configuration = facts.engine.configuration
    if not configuration.to_dict().get("admissionFairSharing") or not configuration.is_enabled("AdmissionFairSharing"):
        return
    sharing = Counter(
        text_at(local_queue.object, "spec", "clusterQueue") for local_queue in facts.local_queues.values()
    )
    for queue in facts.local_queues.values():
        name = text_at(queue.object, "spec", "clusterQueue")
        target = facts.cluster_queues.get(name)
        mode = "" if target is None else text_at(target.object, "spec", "admissionScope", "admissionMode")
        weight = number(object_at(queue.object, "spec", "fairSharing").get("weight"))
        if weight == 0 and sharing[name] > 1 and mode == "UsageBasedAdmissionFairSharing":
            yield hit(
                queue,
                f"with weight 0 its workloads come after those of all other LocalQueues of ClusterQueue {name}, "
                "whatever they have used and whoever came first",
                field="spec.fairSharing.weight",
                remedy="give it a weight above 0, unless that is meant",
            )


def _reachable(facts: Facts) -> set[str]:
    """The ClusterQueues that LocalQueues point to."""
    return {text_at(queue.object, "spec", "clusterQueue") for queue in facts.local_queues.values()}


def _selector(queue: Manifest) -> JsonValue:
    return object_at(queue.object, "spec").get("namespaceSelector")
