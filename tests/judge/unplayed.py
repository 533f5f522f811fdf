"""What Kueue does in some worlds that the engine does not imitate: they are not compared.

`kueuecore.releases.unplayed` says the same to users.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kueuecore.releases import Release
from tests.judge.comparing import Level, Parts

__all__ = ["unplayed"]

_SEEDS_ALL_FLAVORS = Release.named("0.17.3")
_COUNTS_FROM_ZERO = Release.named("0.17.3")
_SKIPS_EMPTY_POD_SETS = Release.named("0.17.1")
# Amounts of 2^63-1, of which cpu is counted in thousandths.
_STUCK = {str(2**63 - 1), f"{(2**63 - 1) // 1000}.{(2**63 - 1) % 1000:03}"}


def unplayed(release: Release, runs: Sequence[Parts]) -> str:
    """Return why runs of one world by a release, by Kueue or by us, are not compared; empty: they are."""
    admitted = [pods for run in runs for pods in _admitted(run) if "topologyAssignment" in pods]
    if release < _SEEDS_ALL_FLAVORS and any(map(_has_second_pass, runs)) and any(map(_has_several, runs)):
        return (
            "a second pass keeps the flavor of any one resource, and looks for the others beside its own usage (#11005)"
        )
    if release < _COUNTS_FROM_ZERO and (any(map(_has_negative, admitted)) or any(map(_reports_negative, runs))):
        return "pods are placed in negative numbers, which an API server refuses, or room for such is reported (#10949)"
    if release < _SKIPS_EMPTY_POD_SETS and any("slices" not in pods["topologyAssignment"] for pods in admitted):
        return "pod sets of no pods get an assignment, which an API server refuses (#10478)"
    if release < _SKIPS_EMPTY_POD_SETS and len({frozenset(_with_no_pods(run)) for run in runs}) > 1:
        return "pod sets of no pods need room in the topology (#10478)"
    if any(map(_is_stuck, runs)):
        return "usage stays at 2^63-1, and each update of a workload adds to that of the cohort what no longer fits"
    return ""


def _cycles(run: Parts) -> list[dict[str, Any]]:
    decisions = run[Level.DECISIONS]
    return [] if isinstance(decisions, str) else decisions.get("cycles") or []


def _is_stuck(run: Parts) -> bool:
    """Whether a ClusterQueue uses more at the end than 63 bits hold, or a cohort something although nothing is held."""
    decisions = run[Level.DECISIONS]
    final = {} if isinstance(decisions, str) else decisions.get("final", {})
    usage = final.get("usage", {})
    is_left = bool(final.get("cohortUsage")) and not usage
    return is_left or any(amount in _STUCK for queue in usage.values() for amount in _amounts(queue))


def _amounts(of: dict[str, Any]) -> Iterator[str]:
    return (amount for flavor in of.values() for amount in flavor.values())


def _admitted(run: Parts) -> Iterator[dict[str, Any]]:
    """Yield the pod sets that got quota or places."""
    for cycle in _cycles(run):
        for entry in (*cycle.get("admitted", ()), *cycle.get("assigned", ())):
            yield from entry["podSets"]


def _with_no_pods(run: Parts) -> Iterator[tuple[int, str]]:
    """Yield the admissions with a pod set of no pods: the cycle, and the workload."""
    for cycle in _cycles(run):
        for entry in cycle.get("admitted", ()):
            if any("count" not in pods for pods in entry["podSets"]):
                yield cycle["n"], entry["key"]


def _has_several(run: Parts) -> bool:
    """Whether pods that have a place, or are to get one later, have flavors of several resources."""
    have_place = (row for row in _admitted(run) if "topologyAssignment" in row or "delayedTopologyRequest" in row)
    return any(len(row.get("flavors", ())) > 1 for row in have_place)


def _has_negative(pods: dict[str, Any]) -> bool:
    counts = [slice_.get("podCounts", {}) for slice_ in pods["topologyAssignment"].get("slices", ())]
    return any(n < 0 for count in counts for n in (count.get("universal", 0), *count.get("individual", ())))


def _reports_negative(run: Parts) -> bool:
    """Whether a message or a condition says that fewer than no pods fit."""
    said = [row["message"] for each in run[Level.MESSAGES].values() for row in each]
    said += [
        condition.get("message", "")
        for each in run[Level.STATUSES].values()
        for condition in each.get("conditions", ())
    ]
    return any("allows to fit only -" in row for row in said)


def _has_second_pass(run: Parts) -> bool:
    said = (row for each in run[Level.MESSAGES].values() for row in each)
    gone = (entry for cycle in _cycles(run) for entry in cycle.get("evicted", ()))
    return (
        any("assigned" in cycle for cycle in _cycles(run))
        or any(row.get("reason") == "SecondPassFailed" for row in said)
        or any(cycle.get("reason") == "NodeFailures" for cycle in gone)
    )
