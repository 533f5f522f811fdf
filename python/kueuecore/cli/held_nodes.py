"""Tables of the nodes on which a workload finds no place, and of who holds them: workloads, and pods outside Kueue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.answers import Explanation
from kueuecore.answers.amounts import pod_requests, quantity_of, units_of
from kueuecore.answers.explanation import Holder, Search
from kueuecore.answers.obstacles import why_so
from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.cli.table import Cell, Style, table
from kueuecore.findings.labels import names_of, nodes_with
from kueuecore.findings.topology_objects import TopologyObjects, trouble_of
from kueuecore.findings.topology_sentences import PODS
from kueuecore.jobs.topology import CONSTRAINTS, PREFERRED, REQUIRED, SLICE_TOPOLOGY, UNCONSTRAINED
from kueuecore.topology import DomainCapacity

__all__ = ["node_tables", "nodes_document", "nodes_left_out"]

_MAX_ROWS = 20
# Kueue has placed a pod with one of these (rules/08 §4 rule 4).
_PLACED = (REQUIRED, PREFERRED, UNCONSTRAINED, SLICE_TOPOLOGY, CONSTRAINTS)


@dataclass(frozen=True, slots=True)
class _Held:
    """Somebody's pods in a domain."""

    path: tuple[str, ...]
    key: str
    priority: int
    takes: str
    why: str


def node_tables(outcome: RunOutcome, found: Explanation, row: Row, style: Style, *, is_wide: bool) -> list[str]:
    """Show the domains without room for one more pod, and who is there; nothing if places are not the problem."""
    short, held = _full(outcome, found, row)
    if not short:
        return []
    header = ["FLAVOR", "NODE", "RESOURCE", "ONE POD ASKS FOR", "ALLOCATABLE", "OTHER PODS", "USED", "FREE"]
    amounts = [
        [
            short_row.flavor,
            "/".join(short_row.path),
            short_row.resource,
            asked,
            short_row.allocatable,
            short_row.outside,
            short_row.used,
            short_row.free,
        ]
        for short_row, asked in short
    ]
    holders: list[list[Cell]] = [
        ["/".join(workload.path), workload.key, str(workload.priority), workload.takes, workload.why]
        for workload in held
    ]
    tables = [_cut(header, amounts, style, right=header[3:], is_wide=is_wide)]
    if holders:
        tables.append(
            _cut(
                ["ON NODE", "HELD BY", "PRIORITY", "TAKES", "WHY"], holders, style, right=["PRIORITY"], is_wide=is_wide
            )
        )
    return tables


def nodes_document(outcome: RunOutcome, found: Explanation, row: Row) -> JsonObject:
    """The same as JSON: `fullNodes`, and `onNodes` for who is there."""
    short, held = _full(outcome, found, row)
    nodes: list[JsonValue] = [
        {
            "flavor": stock.flavor,
            "path": list(stock.path),
            "resource": stock.resource,
            "asked": asked,
            "allocatable": stock.allocatable,
            "outside": stock.outside,
            "used": stock.used,
            "free": stock.free,
        }
        for stock, asked in short
    ]
    on_nodes: list[JsonValue] = [
        {
            "path": list(holder.path),
            "heldBy": holder.key,
            "priority": holder.priority,
            "takes": holder.takes,
            "why": holder.why,
        }
        for holder in held
    ]
    return {"fullNodes": nodes, "onNodes": on_nodes}


def _full(outcome: RunOutcome, found: Explanation, row: Row) -> tuple[list[tuple[DomainCapacity, str]], list[_Held]]:
    """The domains without room for one more pod, with what that asks for, and who is there."""
    search = next((search for search in reversed(found.searches) if search.asks_for_place), None)
    lacks_place = bool(row.not_placed) or found.lacks_place or (search is not None and not search.is_found)
    short = _short_rows(outcome, found, row) if lacks_place else []
    paths = {stock.path for stock, _ in short}
    held = [*_workloads(outcome, found, search, paths), *_outside(outcome, paths)] if short else []
    return short, sorted(held, key=lambda holder: (holder.path, holder.key))


def nodes_left_out(objects: TopologyObjects, found: Explanation) -> list[str]:
    """Name the nodes of the flavors that were tried that take no pods: Kueue's message counts only the others.

    Args:
        objects: The Topologies, the flavors with one, and the Nodes.
        found: The explanation of a workload that has no place.
    """
    lines = []
    tried = (trial.flavor for pod_set in found.pod_sets for trial in pod_set.trials)
    for flavor in (name for name in dict.fromkeys(tried) if name in objects.flavors):
        labels = texts_at(objects.flavors[flavor].object, "spec", "nodeLabels")
        nodes = nodes_with(labels, dict(sorted(objects.nodes.items())))
        out = [f"{text_at(node.object, 'metadata', 'name')} ({why})" for node in nodes if (why := trouble_of(node))]
        if out:
            lines.append(f"nodes of flavor {flavor} that take no pods: {names_of(out)}")
    return lines


def _cut(
    header: Sequence[str], rows: Sequence[Sequence[Cell]], style: Style, *, right: Sequence[str], is_wide: bool
) -> str:
    listed = rows if is_wide else rows[:_MAX_ROWS]
    more = f"\nand {len(rows) - len(listed)} more (-o wide)" if len(rows) > len(listed) else ""
    return table(header, [list(row) for row in listed], style, right=right) + more


def _short_rows(outcome: RunOutcome, found: Explanation, row: Row) -> list[tuple[DomainCapacity, str]]:
    """What the lowest domains lack for one more pod of a pod set, with what that pod asks for."""
    flavors = {trial.flavor for pod_set in found.pod_sets for trial in pod_set.trials if trial.is_chosen}
    flavors = flavors or {trial.flavor for pod_set in found.pod_sets for trial in pod_set.trials}
    lowest = {stock.flavor: stock.level for stock in outcome.capacity if stock.flavor in flavors}
    asked = _least_requests(outcome, row)
    short = []
    for stock in outcome.capacity:
        if lowest.get(stock.flavor) != stock.level or stock.resource not in asked:
            continue
        if units_of(stock.resource, stock.free) < asked[stock.resource]:
            short.append((stock, quantity_of(stock.resource, asked[stock.resource])))
    return short


def _least_requests(outcome: RunOutcome, row: Row) -> dict[str, int]:
    """By resource, the least that a pod of the workload asks for, in units; zero is left out."""
    plain = outcome.plain(row.state)
    least = {PODS: 1}
    for pod_set in map(object_at, list_at(plain, "spec", "podSets")):
        for resource, units in pod_requests(pod_set).items():
            if units:
                least[resource] = min(units, least.get(resource, units))
    return least


def _workloads(
    outcome: RunOutcome, found: Explanation, search: Search | None, paths: set[tuple[str, ...]]
) -> Iterator[_Held]:
    holders = {holder.key: holder for holder in search.holders} if search else {}
    counts: dict[tuple[str, str, str], dict[tuple[str, ...], int]] = {}
    for placement in outcome.engine.placements():
        of_workload = counts.setdefault((placement.key, placement.namespace, placement.name), {})
        for pods in placement.domains:
            of_workload[pods.path] = of_workload.get(pods.path, 0) + pods.count
    for (key, namespace, name), by_path in counts.items():
        for path, count in by_path.items():
            if path in paths and key != found.workload.key:
                priority = outcome.engine.workload(name, namespace=namespace).priority
                yield _Held(path, key, priority, _n_pods(count), _why_it_stays(holders.get(key), found, search))


def _why_it_stays(holder: Holder | None, found: Explanation, search: Search | None) -> str:
    if search is not None and holder is not None:
        return f"{holder.fate}: {why_so(holder, found, search)[1]}"
    if found.lacks_place:
        return "the pods would not fit without it either"
    if search is None:
        return "no search for victims was made"
    what = " or ".join(f"{resource} in {flavor}" for flavor, resource in search.contested)
    return f"no candidate: it uses no {what}"


def _outside(outcome: RunOutcome, paths: set[tuple[str, ...]]) -> Iterator[_Held]:
    """Pods that Kueue has not placed (rules/08 §4 rule 4)."""
    hosts = {name: texts_at(node.object, "metadata", "labels") for name, node in outcome.topology_objects.nodes.items()}
    levels = {tuple(outcome.topology_objects.levels_of(flavor)) for flavor in outcome.topology_objects.flavors}
    for plain in (manifest.object for manifest in outcome.world.of_kind("Pod")):
        if not _counts_outside(plain):
            continue
        labels = hosts.get(text_at(plain, "spec", "nodeName"), {})
        for path in {tuple(labels.get(level, "") for level in of_flavor) for of_flavor in levels} & paths:
            requests = pod_requests({"template": {"spec": plain.get("spec")}})
            takes = [_n_pods(1), *(f"{quantity_of(name, units)} {name}" for name, units in sorted(requests.items()))]
            key = f"{text_at(plain, 'metadata', 'namespace') or 'default'}/{text_at(plain, 'metadata', 'name')}"
            why = "a pod outside Kueue, which preempts none of these"
            yield _Held(path, f"Pod {key}", int_at(plain, "spec", "priority"), ", ".join(takes), why)


def _counts_outside(pod: JsonObject) -> bool:
    is_running = text_at(pod, "spec", "nodeName") and text_at(pod, "status", "phase") not in ("Succeeded", "Failed")
    return bool(is_running) and not any(entry in texts_at(pod, "metadata", "annotations") for entry in _PLACED)


def _n_pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
