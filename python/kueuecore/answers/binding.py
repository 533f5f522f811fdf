"""Says in one line what keeps a workload waiting in a state in which a change was not enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kueuecore._json import list_at, text_at
from kueuecore.answers.explanation import Explanation, Fate, explain
from kueuecore.answers.obstacles import obstacles, why_so
from kueuecore.engine import Engine
from kueuecore.findings.topology_sentences import NODE_GATE, AskedTopology, reasons_of, why_not_placed
from kueuecore.states import Stage

__all__ = ["what_binds"]

_MOST = 2
# Fates that say nothing about why the search for victims failed.
_OPEN = (Fate.VICTIM, Fate.NOT_NEEDED, Fate.NOT_ENOUGH)


def what_binds(engine: Engine, name: str, *, namespace: str, now: int, by_preemption: bool = False) -> str:
    """What keeps a workload waiting: places of a topology, preemption policies, quota, or workloads ahead of it.

    Args:
        engine: The state after the change; it is not changed.
        name: Name of the Workload.
        namespace: Its namespace.
        now: The time.
        by_preemption: Whether the change was to let it preempt others: then what spares these comes first.
    """
    found = explain(engine, name, namespace=namespace, now=now)
    if found.workload.stage is not Stage.PENDING:
        return "workloads would evict each other again and again"
    if not found.now.message and not found.pod_sets:
        return found.workload.message or "its ClusterQueue does not take it"
    places = list(_places(engine, found))
    spared = list(_spared(found))
    quotas = [
        f"{obstacle.flavor}: {obstacle.text}" if obstacle.flavor else obstacle.text for obstacle in obstacles(found)
    ]
    if places:
        return _joined(places)
    if by_preemption and spared:
        return _joined(spared)
    if quotas:
        return _joined([*quotas[:_MOST], *spared[:1]] if by_preemption else quotas)
    if found.ahead:
        return f"workloads ahead of it in its ClusterQueue take it: {found.ahead[0].key}"
    return found.now.message or found.workload.message or "other workloads take it first"


def _places(engine: Engine, found: Explanation) -> Iterator[str]:
    """What the nodes of a topology have no room for."""
    levels: dict[str, tuple[str, ...]] = {}
    for topology in engine.objects("Topology"):
        labels = tuple(text_at(level, "nodeLabel") for level in list_at(topology, "spec", "levels"))
        levels[text_at(topology, "metadata", "name")] = labels
    topologies = {}
    for flavor in engine.objects("ResourceFlavor"):
        name = text_at(flavor, "spec", "topologyName")
        if name in levels:
            levels[text_at(flavor, "metadata", "name")] = levels[name]
            topologies[text_at(flavor, "metadata", "name")] = name
    if not topologies:
        return
    workload = engine.object("Workload", found.workload.name, namespace=found.workload.namespace)
    message = found.now.message or found.workload.message
    looks_at_nodes = engine.configuration.is_enabled(NODE_GATE)
    for pod_set in list_at(workload, "spec", "podSets"):
        asked = AskedTopology.of(pod_set)
        reasons = reasons_of(message, asked.pod_set)
        why = why_not_placed(reasons, asked, levels=levels, looks_at_nodes=looks_at_nodes)
        if why:
            used = [topologies[flavor] for flavor in _flavors(engine, found) if flavor in topologies]
            named = [fromkey for fromkey in dict.fromkeys(used) if f'"{fromkey}"' in message] or list(
                dict.fromkeys(used)
            )
            where = f"the nodes of topology {' and '.join(named)}" if named else "the nodes"
            yield f"{where}: {why}"


def _flavors(engine: Engine, found: Explanation) -> Iterator[str]:
    """The flavors of its ClusterQueue."""
    if found.queue is not None:
        for group in list_at(engine.object("ClusterQueue", found.queue.name), "spec", "resourceGroups"):
            yield from (text_at(flavor, "name") for flavor in list_at(group, "flavors"))


def _spared(found: Explanation) -> Iterator[str]:
    """Why the search for victims spared most of them."""
    texts = Counter(
        why_so(holder, found, search)[1]
        for search in found.searches
        for holder in search.holders
        if holder.fate not in _OPEN
    )
    yield from (text for text, _ in texts.most_common())


def _joined(texts: list[str]) -> str:
    distinct = list(dict.fromkeys(texts))
    more = f"; and {len(distinct) - _MOST} more" if len(distinct) > _MOST else ""
    return "; ".join(distinct[:_MOST]) + more
