"""Tables of where pods are placed, why others are not, and what capacity is free."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kueuecore.cli.outcome import Row, RunOutcome
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.findings.topology_sentences import HOSTNAME
from kueuecore.topology import DomainCapacity, Placement

__all__ = ["capacity_table", "not_placed_table", "placed_table"]

_AMOUNTS = ("NODES", "ALLOCATABLE", "OTHER PODS", "USED", "FREE")


def placed_table(outcome: RunOutcome, style: Style, *, wide: bool) -> str:
    """Show where pods are placed: by domain, and by node if `wide`; empty if none are."""
    name_of = _short_names(outcome.capacity)
    header = ["PLACED", "POD SET", "FLAVOR", "LEVEL", "DOMAINS", *(["ON NODES"] if wide else [])]
    rows: list[list[Cell]] = []
    for row in outcome.workloads:
        for placement in row.placements:
            level = _level_for_people(placement.levels)
            nodes = [_on_nodes(placement, name_of)] if wide else []
            domains = _counts(placement, level, name_of) + _failed(row, placement)
            rows.append([row.state.key, placement.pod_set, placement.flavor or "-", level or "-", domains, *nodes])
    return table(header, rows, style) if rows else ""


def not_placed_table(outcome: RunOutcome, style: Style, *, only: Row | None = None) -> str:
    """Show why pod sets could not be placed, of all workloads or of `only`; empty if all were."""
    shown = outcome.workloads if only is None else (only,)
    rows = [
        [row.state.key, placed.asked.pod_set, str(placed.asked), placed.why]
        for row in shown
        for placed in row.not_placed
    ]
    return table(["NOT PLACED", "POD SET", "ASKS FOR", "WHY"], rows, style) if rows else ""


def capacity_table(outcome: RunOutcome, style: Style, *, wide: bool) -> str:
    """Show the free capacity of each domain for the resources with quota; if `wide`, of nodes and all resources too.

    Nodes are always shown if they are the only level. Empty if no flavor has a topology.
    """
    covered = {(row.flavor, row.resource) for row in outcome.quota}
    flavors_with_quota = {flavor for flavor, _ in covered}
    levels: dict[str, set[str]] = {}
    for row in outcome.capacity:
        levels.setdefault(row.flavor, set()).add(row.level)
    name_of = _short_names(outcome.capacity)
    header = ["FLAVOR", "LEVEL", "DOMAIN", "NODES", "RESOURCE", "ALLOCATABLE", "OTHER PODS", "USED", "FREE"]
    rows: list[list[Cell]] = []
    for row in outcome.capacity:
        is_of_node = row.level == HOSTNAME and len(levels[row.flavor]) > 1
        is_covered = row.flavor not in flavors_with_quota or (row.flavor, row.resource) in covered
        # A node takes only so many pods, which nobody expects to be what is short.
        is_full = row.resource == "pods" and row.free.startswith(("0", "-"))
        if wide or ((is_covered or is_full) and not is_of_node):
            domain = name_of(row.flavor, row.level, row.path)
            free = Painted(row.free, "yellow" if row.free.startswith(("0", "-")) else "")
            amounts: list[Cell] = [row.allocatable, row.outside, row.used, free]
            rows.append([row.flavor, row.level, domain, str(row.n_nodes), row.resource, *amounts])
    return table(header, rows, style, right=_AMOUNTS) if rows else ""


def _level_for_people(levels: Sequence[str]) -> str:
    """The lowest level above nodes, or nodes if there is no other."""
    above = [level for level in levels if level != HOSTNAME]
    return above[-1] if above else levels[-1] if levels else ""


def _counts(placement: Placement, level: str, name_of: Callable[[str, str, tuple[str, ...]], str]) -> str:
    counts = placement.by_level(level) if level else {pods.values: pods.count for pods in placement.domains}
    return ", ".join(f"{name_of(placement.flavor, level, path)}: {n}" for path, n in counts.items()) or "-"


def _on_nodes(placement: Placement, name_of: Callable[[str, str, tuple[str, ...]], str]) -> str:
    return _counts(placement, HOSTNAME, name_of) if HOSTNAME in placement.levels else "-"


def _failed(row: Row, placement: Placement) -> str:
    here = {pods.values[-1] for pods in placement.domains if pods.values}
    failed = [node for node in row.failed_nodes if node in here]
    return f" ({', '.join(failed)} failed, not replaced)" if failed else ""


def _short_names(capacity: Sequence[DomainCapacity]) -> Callable[[str, str, tuple[str, ...]], str]:
    """Name domains by the last value of their path if it is unique on its level, else by the whole path."""
    paths: dict[tuple[str, str, str], set[tuple[str, ...]]] = {}
    for row in capacity:
        paths.setdefault((row.flavor, row.level, row.path[-1]), set()).add(row.path)
    known: Mapping[tuple[str, str, str], set[tuple[str, ...]]] = paths

    def name_of(flavor: str, level: str, path: tuple[str, ...]) -> str:
        # A value of a label has no slash.
        return path[-1] if path and len(known.get((flavor, level, path[-1]), ())) <= 1 else "/".join(path)

    return name_of
