"""Assignments as the API writes them: slices of domains, values cut into prefix, roots and suffix (rules/08 §15)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from kueuecore.reference.settings import Json
from kueuecore.reference.topology.assignment import TopologyAssignment, Values
from kueuecore.reference.topology.request import HOSTNAME

MAX_DOMAINS = 100_000
MAX_SLICES = 1_000

_Domains = Sequence[tuple[Values, int]]


def decoded(written: Json | None) -> TopologyAssignment | None:
    """Read an assignment; None stays None."""
    if written is None:
        return None
    domains: list[tuple[Values, int]] = []
    for piece in written.get("slices") or ():
        columns = [_column(values, piece["domainCount"]) for values in piece["valuesPerLevel"]]
        counts = piece["podCounts"]
        each = counts.get("individual") or [counts.get("universal", 0)] * piece["domainCount"]
        domains += zip(zip(*columns, strict=True), each, strict=True)
    return TopologyAssignment(tuple(written["levels"]), tuple(domains))


def _column(values: Json, n_domains: int) -> list[str]:
    """Encode the values of one level."""
    if "universal" in values:
        return [values["universal"]] * n_domains
    each = values["individual"]
    return [f"{each.get('prefix', '')}{root}{each.get('suffix', '')}" for root in each["roots"]]


def encoded(assignment: TopologyAssignment, *, by_prefix: bool) -> Json:
    """Write an assignment, in the shorter of two forms (rules/08 §15.5).

    Args:
        assignment: The assignment.
        by_prefix: Whether hostnames may be grouped by prefix (gate TASAssignmentsEncodingByHostnamePrefix).
    """
    single = _written(assignment, [assignment.domains] if assignment.domains else [])
    if not by_prefix:
        return single
    runs = in_runs(assignment)
    if len(runs.get("slices", ())) <= 1 or len(assignment.domains) > MAX_DOMAINS:
        return runs
    return single if _n_bytes(single) < _n_bytes(runs) else runs


def in_runs(assignment: TopologyAssignment) -> Json:
    """Write an assignment with a slice for each run of hostnames that begin alike (rules/08 §15.4)."""
    return _written(assignment, runs_by_prefix(assignment))


def _n_bytes(written: Json) -> int:
    return len(json.dumps(written, separators=(",", ":"), ensure_ascii=False).encode())


def _written(assignment: TopologyAssignment, runs: Sequence[_Domains]) -> Json:
    slices = [_slice(len(assignment.levels), run) for run in runs]
    return {"levels": list(assignment.levels), **({"slices": slices} if slices else {})}


def _slice(n_levels: int, domains: _Domains) -> Json:
    """Encode one slice (rules/08 §15.2)."""
    counts = [count for _, count in domains]
    same = all(count == counts[0] for count in counts)
    values = [_compact([values[level] for values, _ in domains]) for level in range(n_levels)]
    written: dict[str, Any] = {"domainCount": len(domains), "valuesPerLevel": values}
    return written | {"podCounts": {"universal": counts[0]} if same else {"individual": counts}}


def _compact(values: list[str]) -> Json:
    if all(value == values[0] for value in values):
        return {"universal": values[0]}
    shortest = min(map(len, values))
    prefix, suffix = _common(values), _common([value[::-1] for value in values])[::-1]
    prefix = prefix[: max(0, shortest - len(suffix))]
    parts = {name: part for name, part in (("prefix", prefix), ("suffix", suffix)) if part}
    return {"individual": parts | {"roots": [value[len(prefix) : len(value) - len(suffix)] for value in values]}}


def _common(values: list[str]) -> str:
    """Return the common prefix."""
    same = itertools.takewhile(lambda signs: len(set(signs)) == 1, zip(*values, strict=False))
    return "".join(signs[0] for signs in same)


def runs_by_prefix(assignment: TopologyAssignment) -> list[_Domains]:
    """Return runs of consecutive domains whose hostnames begin alike (rules/08 §15.4)."""
    domains = assignment.domains
    if len(domains) < 2 or assignment.levels[-1:] != (HOSTNAME,):
        return _chunks([domains] if domains else [])
    prefixes = [_prefixes(values[-1]) for values, _ in domains]
    times: dict[str, int] = {}
    for prefix in itertools.chain.from_iterable(prefixes):
        times[prefix] = times.get(prefix, 0) + 1
    for depth in range(max(map(len, prefixes)), 0, -1):
        keys = [next((p for p in reversed(each[:depth]) if times[p] > 1), "") for each in prefixes]
        grouped = itertools.groupby(zip(keys, domains, strict=True), key=lambda pair: pair[0])
        runs = _chunks([[domain for _, domain in run] for _, run in grouped])
        if len(runs) <= MAX_SLICES:
            return runs
    return _chunks([domains])


def _prefixes(hostname: str) -> list[str]:
    """Return the possible prefixes of a hostname: up to each hyphen except a final one."""
    return [hostname[: end + 1] for end, sign in enumerate(hostname[:-1]) if sign == "-"]


def _chunks(runs: Sequence[_Domains]) -> list[_Domains]:
    return [run[at : at + MAX_DOMAINS] for run in runs for at in range(0, len(run), MAX_DOMAINS)]
