"""Reconciles a parent and its variants, outside of cycles (rules/09 §4.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kueuecore.reference import conditions, eviction, times
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.variants import allowed_flavors

GATE = "kueue.x-k8s.io/concurrent-admission"
TIMEOUT = 300 * times.SECOND


@dataclass
class Look:
    """The result of one reconcile."""

    # Flavors that lack a variant, and variants that lack a flavor.
    missing: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    # The changed parent and variants.
    workloads: dict[str, Json] = field(default_factory=dict)
    # Name of the Workload, reason, message.
    events: list[tuple[str, str, str]] = field(default_factory=list)
    again_at: int | None = None


def look(parent: Json, variants: Sequence[Json], cluster_queue: Json, now: int, settings: Settings) -> Look:
    """Reconcile a parent and its variants once (rules/09 §4.3)."""
    flavors = [flavor["name"] for flavor in cluster_queue["resourceGroups"][0]["flavors"]]
    made, result = {_flavor(variant) for variant in variants}, Look()
    result.missing = [flavor for flavor in flavors if flavor not in made]
    result.deleted = [_name(variant) for variant in variants if _flavor(variant) not in flavors]
    parent = conditions.own({**parent, "spec": dict(parent["spec"])})
    own = [
        conditions.own({**variant, "spec": dict(variant["spec"])})
        for variant in variants
        if _flavor(variant) in flavors
    ]
    own.sort(key=lambda variant: (flavors.index(_flavor(variant)), _name(variant)))
    result.workloads = {_name(variant): variant for variant in (parent, *own)}
    if _has_come_to_eviction(parent, own, now, settings):
        return result
    policy = cluster_queue.get("concurrentAdmissionPolicy", {}).get("migration", {})
    last = policy.get("constraints", {}).get("lastAcceptableFlavorName")
    _choose_active(parent, own, flavors, policy.get("mode"), last, now, settings, result)
    _follow(parent, own, now)
    result.again_at = _open_gate(own, now, settings, result)
    return result


def _has_come_to_eviction(parent: Json, variants: list[Json], now: int, settings: Settings) -> bool:
    """Step 2. Return whether the rest waits for the parent. A finished parent has no quota to give back."""
    if conditions.is_finished(parent):
        return False
    for variant in variants:
        if conditions.is_true(variant, "Evicted") and conditions.has_reservation(variant):
            if not conditions.has_reservation(parent):
                eviction.release(variant, now, settings)
                return False
            if not conditions.is_true(parent, "Evicted"):
                conditions.put(parent, "Evicted", True, "VariantEvicted", "Admitted variant was evicted", now)
            return True
    return False


def _choose_active(
    parent: Json,
    variants: list[Json],
    flavors: list[str],
    mode: str | None,
    last: str | None,
    now: int,
    settings: Settings,
    result: Look,
) -> None:
    """Steps 3 and 4. Decide which variants are active."""

    def stop(matches: Callable[[Json], bool], why: str) -> None:
        for variant in filter(matches, variants):
            if conditions.is_active(variant):
                variant["spec"]["active"] = False
                message = f"Variant Workload deactivated due to {why}"
                result.events.append((_name(variant), "DeactivatedVariant", message))
            if conditions.is_true(variant, "Evicted") and conditions.has_reservation(variant):
                eviction.release(variant, now, settings)

    def start(matches: Callable[[Json], bool], why: str) -> None:
        for variant in filter(matches, variants):
            if not conditions.is_active(variant):
                variant["spec"]["active"] = True
                message = f"Variant Workload activated due to {why}"
                result.events.append((_name(variant), "ActivatedVariant", message))

    def place(variant: Json) -> int:
        return flavors.index(_flavor(variant))

    def end() -> int:
        # In Go, a missing key of a map reads as 0.
        return flavors.index(last) if last in flavors else 0

    if not conditions.is_active(parent):
        return stop(lambda _: True, f'Parent Workload "{_key(parent)}" not active')
    best = _admitted(variants)
    if best is not None:
        key, own = f'"{_key(best)}"', place(best)
        if mode == "RetainFirstAdmission":
            stop(lambda entry: entry is not best, f"RetainFirstAdmission: another Variant {key} is admitted")
        else:
            if last is not None:
                why = f'being below lastAcceptableFlavor: "{last}" and another Variant admitted {key}'
                stop(lambda entry: entry is not best and place(entry) > end(), why)
            stop(lambda entry: place(entry) > own, f"being lower priority than admitted Variant {key}")
    best = _admitted(variants)
    if best is None:
        return start(lambda _: True, "no other Variant being admitted")
    key, own = f'"{_key(best)}"', place(best)
    if mode == "RetainFirstAdmission":
        return None
    if last is None:
        return start(lambda entry: place(entry) < own, f"being higher priority than admitted Variant {key}")
    why = f'being at least lastAcceptableFlavor: "{last}" and higher priority than admitted Variant {key}'
    return start(lambda entry: place(entry) < own and place(entry) <= end(), why)


def _follow(parent: Json, variants: list[Json], now: int) -> None:
    """Step 5. Let parent and variants follow each other."""
    if conditions.is_finished(parent):
        finished = conditions.find(parent, "Finished")
        for variant in variants:
            if not conditions.is_finished(variant):
                conditions.put(variant, "Finished", True, finished["reason"], finished["message"], now)
        return
    best, is_admitted = _admitted(variants), conditions.is_true(parent, "Admitted")
    if best is None:
        if is_admitted:
            conditions.put(parent, "Evicted", True, "ConcurrentAdmission", "No variant is running", now)
        return
    ready = conditions.find(parent, "PodsReady")
    if ready:
        time = times.moment(ready["lastTransitionTime"])
        conditions.put(best, "PodsReady", ready["status"] == "True", ready["reason"], ready["message"], time)
    if not is_admitted:
        conditions.reserve(parent, conditions.admission(best), now)
        conditions.put(parent, "Admitted", True, "Admitted", f"The variant {_name(best)} is admitted", now)


def _open_gate(variants: list[Json], now: int, settings: Settings, result: Look) -> int | None:
    """Step 6. Open a preemption gate. Returns when to look again."""
    admissible = [variant for variant in variants if conditions.is_admissible(variant, settings)]
    opened = [gate for variant in admissible for gate in [_gate(variant)] if gate.get("position") == "Open"]
    candidate = None
    for variant in admissible:
        if _gate(variant).get("position") == "Open":
            continue
        if conditions.is_true(variant, "BlockedOnPreemptionGates"):
            candidate = variant
            break
        reserved = conditions.find(variant, "QuotaReserved")
        is_unevaluated = reserved.get("reason") == "PendingEvaluation" and settings.has("UnevaluatedVariantsAreAwaited")
        if not reserved or is_unevaluated:
            return None
    if candidate is None:
        return None
    if opened:
        again_at = max(times.moment(gate["lastTransitionTime"]) for gate in opened) + TIMEOUT
        if again_at > now:
            return again_at
    if any(gate["name"] == GATE for gate in candidate["spec"].get("preemptionGates") or ()):
        others = [
            preemption_gate
            for preemption_gate in candidate["status"].get("preemptionGates") or ()
            if preemption_gate["name"] != GATE
        ]
        new = {"name": GATE, "position": "Open", "lastTransitionTime": times.text(now)}
        candidate["status"]["preemptionGates"] = [*others, new]
        message = f'Opened preemption gate for variant workload "{_key(candidate)}"'
        result.events.append((_name(candidate), "PreemptionUngatedVariant", message))
    return now + TIMEOUT


def _admitted(variants: list[Json]) -> Json | None:
    return next((variant for variant in variants if conditions.is_true(variant, "Admitted")), None)


def _gate(variant: Json) -> Json:
    gates = variant["status"].get("preemptionGates") or ()
    found: Json = next((gate for gate in gates if gate["name"] == GATE), {})
    return found


def _flavor(variant: Json) -> str:
    return next(iter(allowed_flavors(variant) or ()), "")


def _name(workload: Json) -> str:
    return str(workload["metadata"]["name"])


def _key(workload: Json) -> str:
    return f"{workload['metadata']['namespace']}/{_name(workload)}"
