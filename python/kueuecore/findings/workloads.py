"""Rules about workloads that never get quota, even in an empty cluster (rules/03, rules/05)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kueuecore._json import list_at, text_at
from kueuecore.coverage import meant_resource
from kueuecore.decisions import Outcome
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.manifest_fields import quota_fields
from kueuecore.findings.topology_sentences import AskedTopology, why_not_placed
from kueuecore.manifests import Manifest
from kueuecore.states import PendingWorkload
from kueuecore.waiting_cause import uncovered_in

__all__ = ["blocked_queues", "hopeless_workloads", "may_run", "never_fitting"]


@rule("KC601", "blocked-strict-fifo", Severity.ERROR, "a workload that never fits and blocks a StrictFIFO queue")
def blocked_queues(facts: Facts) -> Iterator[Hit]:
    """Once it is the head of a StrictFIFO queue, nothing behind it is ever admitted (rules/05 §4)."""
    queued: dict[str, tuple[PendingWorkload, ...]] = {}
    for key, why in never_fitting(facts).items():
        workload, name = facts.written(facts.workloads[key]), facts.states[key].cluster_queue or ""
        if _strategy(facts, name) == "StrictFIFO":
            if name not in queued:
                queued[name] = facts.settled_engine.pending(name)
            behind = _behind(queued[name], facts.states[key].key)
            yield hit(
                workload,
                f"it never fits in ClusterQueue {name}, and with StrictFIFO it blocks all behind it, now {behind} "
                f"{'workload' if behind == 1 else 'workloads'}: {why}{_origins(facts, key, why)}",
                remedy=_remedy(facts, key, why, "use BestEffortFIFO"),
            )


@rule("KC602", "never-fits", Severity.NOTE, "a workload that does not fit even if nothing else runs")
def hopeless_workloads(facts: Facts) -> Iterator[Hit]:
    """Workloads that block a queue, or that do not fit into a topology, have findings of their own."""
    for key, why in never_fitting(facts).items():
        name = facts.states[key].cluster_queue or ""
        if _strategy(facts, name) != "StrictFIFO" and not _is_about_topology(facts, facts.workloads[key], why):
            yield hit(
                facts.written(facts.workloads[key]),
                f"it never fits in ClusterQueue {name}, even if nothing else runs: {why}{_origins(facts, key, why)}",
                remedy=_remedy(facts, key, why),
            )


def _origins(facts: Facts, key: tuple[str, str], why: str) -> str:
    found = facts.request_origins.in_message(why, facts.workloads[key].object)
    return f" ({found})" if found else ""


def _remedy(facts: Facts, key: tuple[str, str], why: str, *others: str) -> str:
    """What to do about quota that is missing, or too little."""
    missing = uncovered_in(why)
    if not missing:
        return _either("ask for less", "raise the quota", *others)
    queue = facts.cluster_queues[facts.states[key].cluster_queue or ""]
    covered = {field.resource for field in quota_fields(queue)}
    names = [meant for name in missing if (meant := meant_resource(name, covered))]
    if len(names) == len(missing):
        return f"did you mean {' and '.join(names)}?"
    covering = f"cover {' and '.join(missing)} in the ClusterQueue"
    ignoring = "set quotaCheckStrategy: IgnoreUndeclared"
    return _either(covering, "exclude it with excludeResourcePrefixes", ignoring, *others)


def _either(*ways: str) -> str:
    return f"{', '.join(ways[:-1])}, or {ways[-1]}"


def never_fitting(facts: Facts) -> Mapping[tuple[str, str], str]:
    """Find pending workloads that would wait even in an otherwise empty cluster, with Kueue's message.

    Leaves out those whose queue is missing, stopped or closed to them: other findings report the queue.
    """
    return {
        key: answer.message
        for key, answer in facts.alone.items()
        if answer.outcome is Outcome.WAITS
        and not answer.undecided
        and (facts.nodes or not _is_about_topology(facts, facts.workloads[key], answer.message))
    }


def may_run(facts: Facts) -> frozenset[tuple[str, str]]:
    """Find pending workloads that would get quota in an otherwise empty cluster."""
    return frozenset(key for key, answer in facts.alone.items() if answer.outcome is Outcome.FITS)


def _strategy(facts: Facts, cluster_queue: str) -> str:
    return text_at(facts.cluster_queues[cluster_queue].object, "spec", "queueingStrategy") or "BestEffortFIFO"


def _behind(queued: Sequence[PendingWorkload], key: str) -> int:
    """How many workloads wait behind one in its ClusterQueue."""
    place = next((workload.position_in_cluster_queue for workload in queued if workload.key == key), len(queued))
    return sum(workload.position_in_cluster_queue > place for workload in queued)


def _is_about_topology(facts: Facts, workload: Manifest, message: str) -> bool:
    levels = facts.topology_objects.levels
    asked = [AskedTopology.of(pod_set) for pod_set in list_at(workload.object, "spec", "podSets")]
    return any(why_not_placed(message, pod_set, levels=levels) for pod_set in asked)
