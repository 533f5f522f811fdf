"""Finds the rules in queues, cohorts and priority classes, with other values for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.manifests import Manifest
from kueuecore.policy_tests.coverage.rule import (
    FoundRule,
    Path,
    Variation,
    edit,
    found_rule,
    other_values,
    removed,
)

__all__ = ["object_rules"]

_Finder: TypeAlias = Callable[[Manifest], Iterator[FoundRule]]

# More than any cluster has, in cores as in bytes, and far enough from where sums of quotas are unlimited.
_PLENTY = "1P"
_LOWEST, _HIGHEST = -2_000_000_000, 2_000_000_000
_HIGHEST_OF_PODS = 1_000_000_000  # what is higher is the system's
# A cohort of its own rather than none: without any, limits on borrowing and lending are refused.
_CUT_OFF = "kueuecore-cut-off"
_STOPS: tuple[JsonValue, ...] = ("Hold", "HoldAndDrain", "None")
_WEIGHTS: tuple[JsonValue, ...] = (0, 1_000, 1)
# The last two are those of v1beta1.
_SEARCHES: tuple[JsonValue, ...] = ("MayStopSearch", "TryNextFlavor", "Borrow", "Preempt")

_QUEUE_FIELDS: Mapping[tuple[str, ...], tuple[JsonValue, ...]] = {
    ("preemption", "withinClusterQueue"): ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    ("preemption", "reclaimWithinCohort"): ("Never", "LowerPriority", "Any"),
    ("preemption", "borrowWithinCohort", "policy"): ("Never", "LowerPriority"),
    ("preemption", "borrowWithinCohort", "maxPriorityThreshold"): (_LOWEST, _HIGHEST, None),
    ("flavorFungibility", "whenCanBorrow"): _SEARCHES,
    ("flavorFungibility", "whenCanPreempt"): _SEARCHES,
    ("flavorFungibility", "preference"): ("BorrowingOverPreemption", "PreemptionOverBorrowing", None),
    ("queueingStrategy",): ("StrictFIFO", "BestEffortFIFO"),
    ("stopPolicy",): _STOPS,
    ("fairSharing", "weight"): _WEIGHTS,
    ("admissionScope", "admissionMode"): ("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"),
}
"""Fields of a ClusterQueue's spec that have one value each, and what else each can be."""


def object_rules(manifest: Manifest) -> Iterator[FoundRule]:
    """Yield the rules in an object, in the order of its fields; none if its kind has none."""
    group, _, _ = text_at(manifest.object, "apiVersion").rpartition("/")
    finder = _FINDERS.get((group, text_at(manifest.object, "kind")))
    if finder is not None:
        yield from finder(manifest)


def _of_cluster_queue(manifest: Manifest) -> Iterator[FoundRule]:
    # v1beta1 has `cohort`.
    for name in ("cohortName", "cohort"):
        yield from _edge(manifest, ("spec", name))
    yield from _selector(manifest)
    for path, values in _QUEUE_FIELDS.items():
        yield from _plain_field(manifest, ("spec", *path), values)
    yield from _quotas(manifest)
    yield from _checks(manifest)


def _of_cohort(manifest: Manifest) -> Iterator[FoundRule]:
    yield from _edge(manifest, ("spec", "parentName"))
    yield from _plain_field(manifest, ("spec", "fairSharing", "weight"), _WEIGHTS)
    yield from _quotas(manifest)


def _of_local_queue(manifest: Manifest) -> Iterator[FoundRule]:
    yield from _plain_field(manifest, ("spec", "stopPolicy"), _STOPS)
    yield from _plain_field(manifest, ("spec", "fairSharing", "weight"), _WEIGHTS)


def _of_workload_class(manifest: Manifest) -> Iterator[FoundRule]:
    yield from _plain_field(manifest, ("value",), (_LOWEST, _HIGHEST))


def _of_pod_class(manifest: Manifest) -> Iterator[FoundRule]:
    yield from _plain_field(manifest, ("value",), (_LOWEST, _HIGHEST_OF_PODS))


def _plain_field(manifest: Manifest, path: Path, values: tuple[JsonValue, ...], about: str = "") -> Iterator[FoundRule]:
    """The rule at a field, if it is written."""
    *before, last = path
    now = _at(manifest.object, tuple(before))
    if isinstance(now, dict) and now.get(str(last)) is not None:
        value = now[str(last)]
        yield found_rule(manifest, path, other_values(path, value, values), about=about, value=value)


def _edge(manifest: Manifest, path: Path) -> Iterator[FoundRule]:
    parent = text_at(manifest.object, *map(str, path))
    if parent:
        variations = [Variation((edit(path, _CUT_OFF),), "cut"), removed(path)]
        yield found_rule(manifest, path, variations, value=parent)


def _selector(manifest: Manifest) -> Iterator[FoundRule]:
    spec, path = object_at(manifest.object, "spec"), ("spec", "namespaceSelector")
    if "namespaceSelector" not in spec:
        return
    now = spec["namespaceSelector"]
    everything = Variation((edit(path, {}),), "all namespaces")
    nothing = Variation((edit(path, None),), "no namespace")
    variations = [everything] if not now and now != {} else [nothing] if now == {} else [nothing, everything]
    yield found_rule(manifest, path, variations)


def _quotas(manifest: Manifest) -> Iterator[FoundRule]:
    """Flavors, their places in the order, and the quota of each resource."""
    for i, group in enumerate(list_at(manifest.object, "spec", "resourceGroups")):
        flavors = list_at(group, "flavors")
        names = [text_at(flavor, "name") for flavor in flavors]
        for j, flavor in enumerate(flavors):
            path: Path = ("spec", "resourceGroups", i, "flavors", j)
            yield found_rule(manifest, path, _without_flavor(manifest, path, len(flavors)), about=f"flavor {names[j]}")
            if j and text_at(manifest.object, "kind") == "ClusterQueue":
                about = f"flavor {names[j]} after {names[j - 1]}"
                yield found_rule(manifest, path, [_swapped(flavors, path, j)], about=about)
            for k, resource in enumerate(list_at(flavor, "resources")):
                yield from _amounts(manifest, (*path, "resources", k), object_at(resource), names[j])


def _amounts(manifest: Manifest, path: Path, resource: JsonObject, flavor: str) -> Iterator[FoundRule]:
    about = f"{text_at(resource, 'name')} in {flavor}"
    # The nominal quota of a ClusterQueue cannot be less than what it lends.
    least = resource.get("lendingLimit")
    nominal: tuple[JsonValue, ...] = (0, _PLENTY) if least is None else (0, least, _PLENTY)
    yield from _plain_field(manifest, (*path, "nominalQuota"), nominal, about)
    for limit in ("borrowingLimit", "lendingLimit"):
        yield from _plain_field(manifest, (*path, limit), (None, 0), about)


def _without_flavor(manifest: Manifest, path: Path, n_flavors: int) -> Iterator[Variation]:
    """The flavor removed: with its group if it is the only one, and with the checks that are for it alone."""
    name = text_at(_at(manifest.object, path), "name")
    gone = edit(path if n_flavors > 1 else path[:3], None)
    of_checks = ("spec", "admissionChecksStrategy", "admissionChecks")
    checks: list[JsonValue] = []
    for check in list_at(manifest.object, *of_checks):
        flavors = list_at(check, "onFlavors")
        if not flavors:
            checks.append(check)
        elif others := [flavor for flavor in flavors if flavor != name]:
            checks.append({**object_at(check), "onFlavors": others})
    if checks == list_at(manifest.object, *of_checks):
        yield Variation((gone,), "removed")
    else:
        changed = edit(of_checks, checks) if checks else edit(of_checks[:2], None)
        yield Variation((gone, changed), "removed")


def _swapped(flavors: list[JsonValue], path: Path, j: int) -> Variation:
    order = [*flavors[: j - 1], flavors[j], flavors[j - 1], *flavors[j + 1 :]]
    return Variation((edit(path[:-1], order),), "swapped")


def _checks(manifest: Manifest) -> Iterator[FoundRule]:
    in_strategy: Path = ("spec", "admissionChecksStrategy", "admissionChecks")
    for path in (("spec", "admissionChecks"), in_strategy):  # the first is that of v1beta1
        checks = list_at(manifest.object, *map(str, path))
        for i, check in enumerate(checks):
            name = check if isinstance(check, str) else text_at(check, "name")
            # A strategy without any check is refused.
            gone = removed((*path, i)) if len(checks) > 1 else removed(path if len(path) == 2 else path[:2])
            yield found_rule(manifest, (*path, i), [gone], about=f"check {name}")


def _at(plain: JsonValue, path: Path) -> JsonValue:
    for step in path:
        if isinstance(step, int):
            plain = plain[step] if isinstance(plain, list) and step < len(plain) else None
        else:
            plain = plain.get(step) if isinstance(plain, dict) else None
    return plain


_KUEUE = "kueue.x-k8s.io"
_FINDERS: Mapping[tuple[str, str], _Finder] = {
    (_KUEUE, "ClusterQueue"): _of_cluster_queue,
    (_KUEUE, "Cohort"): _of_cohort,
    (_KUEUE, "LocalQueue"): _of_local_queue,
    (_KUEUE, "WorkloadPriorityClass"): _of_workload_class,
    ("scheduling.k8s.io", "PriorityClass"): _of_pod_class,
}
