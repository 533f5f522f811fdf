"""Concurrent admission: variants of one workload, each for one flavor (rules/09 §4)."""

from __future__ import annotations

from collections.abc import Callable

from kueuecore.reference import conditions
from kueuecore.reference.cache import Snapshot
from kueuecore.reference.settings import Json
from kueuecore.reference.totals import ALLOWED_FLAVORS, Info


def allowed_flavors(workload: Json) -> list[str] | None:
    """Return the flavors that a variant was made for, in order; None allows all (rules/09 §4.2)."""
    written = workload["metadata"]["annotations"].get(ALLOWED_FLAVORS)
    return None if written is None else [name.strip() for name in written.split(",") if name.strip()]


def _owner(workload: Json) -> Json | None:
    owners = workload["metadata"]["ownerReferences"]
    return next((o for o in owners if (o["kind"], o["apiVersion"]) == ("Workload", "kueue.x-k8s.io/v1beta2")), None)


def is_variant(workload: Json) -> bool:
    """Return whether it is a variant, made for one flavor of another workload (rules/09 §4.2)."""
    return _owner(workload) is not None


def is_parent(workload: Json) -> bool:
    """Return whether it has variants. A parent is never queued itself (rules/09 §4.2)."""
    return bool(workload["metadata"]["labels"].get("kueue.x-k8s.io/concurrent-admission-parent") == "true")


def _index(info: Info, snapshot: Snapshot) -> int:
    """Return the position of the flavor that it was made for; -1 if there is none."""
    groups, allowed = snapshot.spec(info.cluster_queue).groups, allowed_flavors(info.workload)
    order = groups[0].flavors if groups else ()
    return order.index(allowed[0]) if allowed and allowed[0] in order else -1


def admitted_sibling(info: Info, snapshot: Snapshot, matches: Callable[[int, int], bool]) -> Info | None:
    """Return a running sibling whose flavor compares in this way to that of the variant (rules/09 §4.4)."""
    owner, own = _owner(info.workload), _index(info, snapshot)
    if owner is None or own < 0:
        return None
    for other in snapshot.workloads[info.cluster_queue].values():
        other_owner, index = _owner(other.workload), _index(other, snapshot)
        is_sibling = other_owner is not None and other_owner.get("uid") == owner.get("uid") and other.uid != info.uid
        if is_sibling and index >= 0 and conditions.is_true(other.workload, "Admitted") and matches(index, own):
            return other
    return None


def may_migrate(info: Info, snapshot: Snapshot) -> bool:
    """Return whether the flavor of a variant is good enough to migrate to (rules/09 §4.4)."""
    spec = snapshot.spec(info.cluster_queue)
    last = ((spec.migration or {}).get("constraints") or {}).get("lastAcceptableFlavorName")
    return last is None or _index(info, snapshot) <= spec.groups[0].flavors.index(last)
