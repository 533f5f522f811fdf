"""Reconciles a parent and its variants: which to create, delete, activate and admit, and which may preempt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kueuecore._arguments import each, instance
from kueuecore._conditions import condition, has_quota, is_true, transition_time
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.concurrent_admission.family_statuses import (
    admitted_like,
    evicted,
    finished,
    opened,
    ready_like,
    released,
)
from kueuecore.concurrent_admission.variant_objects import (
    VARIANT_GATE,
    flavor_of,
    flavors_of,
    is_parent,
    new_variant,
    parent_of,
    workload_key,
)
from kueuecore.configuration import Configuration
from kueuecore.decisions import Event
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["FamilyReview", "creation_event", "deletion_event", "reconcile_parent"]

_PREEMPTION_TIMEOUT_NS = 5 * 60 * 1_000_000_000


@dataclass(frozen=True, slots=True)
class FamilyReview:
    """The changes that one reconcile of a parent and its variants makes.

    Args:
        creates: Variants to create. If one exists already, that is fine, too.
        deletes: Variants to delete.
        changed: The parent and variants to change, in their new form: `spec.active` and the status.
        events: The events to record once the change that they report is written.
        again_at: When to look again if nothing else happens, in nanoseconds since 1970.
    """

    creates: tuple[JsonObject, ...] = ()
    deletes: tuple[JsonObject, ...] = ()
    changed: tuple[JsonObject, ...] = ()
    events: tuple[Event, ...] = ()
    again_at: int | None = None


def reconcile_parent(
    parent: JsonObject,
    variants: Sequence[JsonObject],
    cluster_queue: JsonObject,
    *,
    now: TimeLike,
    configuration: Configuration | None = None,
) -> FamilyReview:
    """Decide how to change a parent and its variants (rules/09 §4.3, Kueue's `concurrent-admission-controller`).

    Once all of that is written, calling it again returns no changes until something else changes or `again_at`.

    Args:
        parent: The stored parent. Any other Workload is left alone.
        variants: The stored Workloads that it owns, in any order.
        cluster_queue: The ClusterQueue of its LocalQueue, with at least one flavor.
        now: The time.
        configuration: The Configuration, for its gates. With ConcurrentAdmission off, nothing is done.

    Raises:
        TypeError: An object is not plain data, or `configuration` not a Configuration.
        ValueError: `now` is not a time.

    Example:
        >>> text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
        >>> gates = Configuration.parse(text, feature_gates={"ConcurrentAdmission": True})
        >>> metadata = {"namespace": "ns", "name": "job-a-8077b", "uid": "1",
        ...             "labels": {"kueue.x-k8s.io/concurrent-admission-parent": "true"}}
        >>> parent = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": metadata}
        >>> queue = {"spec": {"resourceGroups": [{"flavors": [{"name": "reserved"}, {"name": "spot"}]}]}}
        >>> review = reconcile_parent(parent, [], queue, now="2026-01-01T00:00:00Z", configuration=gates)
        >>> [variant["metadata"]["annotations"] for variant in review.creates]  # doctest: +NORMALIZE_WHITESPACE
        [{'kueue.x-k8s.io/workload-allowed-resource-flavors': 'reserved'},
         {'kueue.x-k8s.io/workload-allowed-resource-flavors': 'spot'}]
    """
    if configuration is None:
        configuration = Configuration()
    instance("configuration", configuration, Configuration)
    instance("parent", parent, dict)
    instance("cluster_queue", cluster_queue, dict)
    listed = list(each("variants", variants))
    for index, variant in enumerate(listed):
        instance(f"variants[{index}]", variant, dict)
    at = nanoseconds(now)
    if not (configuration.is_enabled("ConcurrentAdmission") and is_parent(parent)):
        return FamilyReview()
    return _Family(parent, listed, cluster_queue, at, configuration).reviewed()


def creation_event(variant: JsonObject) -> Event:
    """Return the event about a parent whose variant was created."""
    return _about_variant(variant, "CreatedVariant", f"Variant Workload {_quoted(variant)} created")


def deletion_event(variant: JsonObject) -> Event:
    """Return the event about a parent whose variant was deleted because its flavor was removed."""
    message = f'Variant Workload {_quoted(variant)} deleted; flavor "{flavor_of(variant)}" no longer in ClusterQueue'
    return _about_variant(variant, "DeletedVariant", message)


def _about_variant(variant: JsonObject, reason: str, message: str) -> Event:
    return Event("Normal", reason, *(parent_of(variant) or workload_key(variant)), message)


class _Family:
    """A parent and its variants during a reconcile: each step sees the changes of the steps before it."""

    def __init__(
        self,
        parent: JsonObject,
        variants: Sequence[JsonObject],
        cluster_queue: JsonObject,
        now: int,
        configuration: Configuration,
    ) -> None:
        self.parent = parent
        self.now = now
        self.configuration = configuration
        self.flavors = flavors_of(cluster_queue)
        self.indexes: Mapping[str, int] = {flavor: index for index, flavor in enumerate(self.flavors)}
        policy = object_at(cluster_queue, "spec", "concurrentAdmissionPolicy", "migration")
        self.retains_first = text_at(policy, "mode") == "RetainFirstAdmission"
        self.last_acceptable = text_at(policy, "constraints", "lastAcceptableFlavorName")
        # As before the reconcile, ordered by flavor; Kueue takes those of the same flavor in any order.
        ordered = sorted(variants, key=lambda variant: (self._index(variant), text_at(variant, "metadata", "name")))
        self.stored = {workload_key(variant): variant for variant in (parent, *ordered)}
        self.variants = {workload_key(variant): variant for variant in ordered if flavor_of(variant) in self.indexes}
        self.deletes = tuple(variant for variant in ordered if flavor_of(variant) not in self.indexes)
        self.events: list[Event] = []
        self.again_at: int | None = None

    def reviewed(self) -> FamilyReview:
        """Run all steps, in Kueue's order."""
        present = {flavor_of(row) for row in self.stored.values() if row is not self.parent}
        short = self.configuration.is_enabled("ShortWorkloadNames")
        missing = (flavor for flavor in self.flavors if flavor not in present)
        creates = tuple(new_variant(self.parent, flavor, short_name=short) for flavor in missing)
        if not self._waits_for_parent():
            self._deactivate()
            self._activate()
            self._sync_admission()
            self._open_gate()
        now = (self.parent, *self.variants.values())
        changed = tuple(variant for variant in now if variant is not self.stored[workload_key(variant)])
        return FamilyReview(creates, self.deletes, changed, tuple(self.events), self.again_at)

    def _waits_for_parent(self) -> bool:
        """Return whether the parent must free its quota before an evicted variant does."""
        if is_true(self.parent, "Finished"):
            # Kueue waits forever for a parent that finishes while it is evicted.
            return False
        for key, variant in self.variants.items():
            if not (is_true(variant, "Evicted") and has_quota(variant)):
                continue
            if not has_quota(self.parent):
                self.variants[key] = released(variant, self.now, self.configuration)
                return False
            if not is_true(self.parent, "Evicted"):
                self.parent = evicted(self.parent, "VariantEvicted", "Admitted variant was evicted", self.now)
            return True
        return False

    def _deactivate(self) -> None:
        if not _is_active(self.parent):
            self._deactivate_all(self.variants, f"Parent Workload {_quoted(self.parent)} not active")
            return
        admitted = self._admitted()
        if admitted is None:
            return
        name, own = _quoted(admitted), self._index(admitted)
        if self.retains_first:
            others = (key for key in self.variants if key != workload_key(admitted))
            self._deactivate_all(others, f"RetainFirstAdmission: another Variant {name} is admitted")
            return
        if last := self.last_acceptable:
            beyond = (key for key in self._beyond(self.indexes.get(last, 0)) if key != workload_key(admitted))
            why = f'being below lastAcceptableFlavor: "{last}" and another Variant admitted {name}'
            self._deactivate_all(beyond, why)
        self._deactivate_all(self._beyond(own), f"being lower priority than admitted Variant {name}")

    def _deactivate_all(self, keys: Iterable[WorkloadKey], why: str) -> None:
        for key in tuple(keys):
            self._set_active(key, False, f"Variant Workload deactivated due to {why}")
            variant = self.variants[key]
            if is_true(variant, "Evicted") and has_quota(variant):
                self.variants[key] = released(variant, self.now, self.configuration)

    def _activate(self) -> None:
        if not _is_active(self.parent):
            return
        admitted = self._admitted()
        if admitted is None:
            self._activate_all(self.variants, "no other Variant being admitted")
            return
        if self.retains_first:
            return
        better = (key for key, variant in self.variants.items() if self._index(variant) < self._index(admitted))
        why = f"higher priority than admitted Variant {_quoted(admitted)}"
        if last := self.last_acceptable:
            end = self.indexes.get(last, 0)
            better = (key for key in better if self._index(self.variants[key]) <= end)
            why = f'at least lastAcceptableFlavor: "{last}" and {why}'
        self._activate_all(better, f"being {why}")

    def _activate_all(self, keys: Iterable[WorkloadKey], why: str) -> None:
        for key in tuple(keys):
            self._set_active(key, True, f"Variant Workload activated due to {why}")

    def _set_active(self, key: WorkloadKey, is_active: bool, message: str) -> None:
        variant = self.variants[key]
        if _is_active(variant) is not is_active:
            self.variants[key] = {**variant, "spec": {**object_at(variant, "spec"), "active": is_active}}
            self._tell(key, "ActivatedVariant" if is_active else "DeactivatedVariant", message)

    def _sync_admission(self) -> None:
        """Admit the parent like one of its variants; pass readiness and the end on to the variants."""
        if is_true(self.parent, "Finished"):
            self.variants = {key: finished(variant, self.parent, self.now) for key, variant in self.variants.items()}
            return
        admitted, is_admitted = self._admitted(), is_true(self.parent, "Admitted")
        if admitted is None:
            if is_admitted:
                self.parent = evicted(self.parent, "ConcurrentAdmission", "No variant is running", self.now)
            return
        self.variants[workload_key(admitted)] = ready_like(admitted, self.parent)
        if not is_admitted:
            self.parent = admitted_like(self.parent, admitted, self.now)

    def _open_gate(self) -> None:
        """Let the variants preempt one by one, the preferred one first."""
        admissible = [variant for variant in self.variants.values() if self._is_admissible(variant)]
        waits = self.configuration.has_change("UnevaluatedVariantsAreAwaited")
        candidate = _first_blocked(admissible, awaits_evaluation=waits)
        if candidate is None:
            return
        times = [
            transition_time(gate) for variant in admissible if text_at(gate := _gate(variant), "position") == "Open"
        ]
        self.again_at = max(times, default=self.now - _PREEMPTION_TIMEOUT_NS) + _PREEMPTION_TIMEOUT_NS
        if self.again_at > self.now:
            return
        self.again_at = self.now + _PREEMPTION_TIMEOUT_NS
        key = workload_key(candidate)
        self.variants[key] = opened(candidate, self.now)
        if self.variants[key] is not candidate:
            message = f"Opened preemption gate for variant workload {_quoted(candidate)}"
            self._tell(key, "PreemptionUngatedVariant", message)

    def _is_admissible(self, variant: JsonObject) -> bool:
        """Return whether a variant may wait in a queue (rules/05 §2)."""
        reserved = condition(variant, "QuotaReserved")
        is_held = text_at(reserved, "reason") == "OnHold" and text_at(reserved, "status") == "False"
        gated_by = text_at(variant, "metadata", "annotations", "kueue.x-k8s.io/admission-gated-by")
        is_gated = bool(gated_by) and self.configuration.is_enabled("AdmissionGatedBy")
        true = ("Finished", "QuotaReserved", "WaitingForReplacementPods")
        return _is_active(variant) and not (is_held or is_gated or any(is_true(variant, kind) for kind in true))

    def _admitted(self) -> JsonObject | None:
        return next((variant for variant in self.variants.values() if is_true(variant, "Admitted")), None)

    def _beyond(self, index: int) -> list[WorkloadKey]:
        """Return the variants of less preferred flavors."""
        return [key for key, variant in self.variants.items() if self._index(variant) > index]

    def _index(self, variant: JsonObject) -> int:
        return self.indexes.get(flavor_of(variant), 0)

    def _tell(self, key: WorkloadKey, reason: str, message: str) -> None:
        self.events.append(Event("Normal", reason, *key, message))


def _first_blocked(admissible: Sequence[JsonObject], *, awaits_evaluation: bool) -> JsonObject | None:
    """Return the first variant that is blocked at its gate; None while a preferred one has not been tried yet.

    Args:
        admissible: The variants, the preferred one first.
        awaits_evaluation: Whether one that says PendingEvaluation counts as not tried.
    """
    for variant in admissible:
        if text_at(_gate(variant), "position") == "Open":
            continue
        if is_true(variant, "BlockedOnPreemptionGates"):
            return variant
        reserved = condition(variant, "QuotaReserved")
        if reserved is None or (awaits_evaluation and text_at(reserved, "reason") == "PendingEvaluation"):
            return None
    return None


def _gate(variant: JsonObject) -> JsonObject:
    gates = list_at(variant, "status", "preemptionGates")
    return next((object_at(gate) for gate in gates if text_at(gate, "name") == VARIANT_GATE), {})


def _is_active(workload: JsonObject) -> bool:
    return object_at(workload, "spec").get("active") is not False


def _quoted(workload: JsonObject) -> str:
    return '"{}/{}"'.format(*workload_key(workload))
