"""What becomes of each workload and ClusterQueue of a state, to compare two releases of Kueue by."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from kueuecore.dumps import Decided, Deciding
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.manifests import Manifest, object_ref
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import Ending
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["Fate", "Outcome", "Subject", "outcome_of", "problems_by_object", "without"]

_EVICTED, _PREEMPTED = "EvictedDueTo", "EvictedDueToPreempted"

Subject: TypeAlias = tuple[str, str]
"""What a decision is about: a kind and `namespace/name` or a name; `State` without a name is the whole."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What is decided about a workload once nothing changes any more. Equal fates may differ in their messages.

    Args:
        stage: `Pending`, `QuotaReserved`, `Admitted`, `Finished`, or `Undecided`; of a ClusterQueue `Active` or
            `Inactive`; of the whole, how it ended.
        cluster_queue: Its ClusterQueue; `None` if its LocalQueue does not exist.
        flavors: The flavors that it holds quota in, by pod set and resource.
        counts: The pods that may start, by pod set.
        places: The pods in each domain, by pod set and the path of the domain.
        victims: The workloads that it preempts, with Kueue's reasons, sorted.
        evictions: Why it loses its quota on the way, in order: by whom it is preempted, or a reason.
        is_active: `spec.active`.
        reason: Reason of the most telling condition.
        message: Its message.
    """

    stage: str
    cluster_queue: str | None = None
    flavors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    victims: tuple[tuple[str, str], ...] = ()
    evictions: tuple[str, ...] = ()
    is_active: bool = True
    reason: str = field(default="", compare=False)
    message: str = field(default="", compare=False)

    @property
    def has_quota(self) -> bool:
        """Whether it holds quota."""
        return self.stage in ("QuotaReserved", "Admitted")

    @property
    def said(self) -> tuple[str, str]:
        """Reason and message."""
        return self.reason, self.message


@dataclass(frozen=True, slots=True)
class Outcome:
    """A state at rest.

    Args:
        fates: What becomes of each workload and ClusterQueue.
        refused: What is wrong with the objects that an API server with Kueue refuses, which were left out, by object.
        warnings: What is odd about the others: fields that are dropped.
        ending: Whether it settled.
    """

    fates: Mapping[Subject, Fate]
    refused: Mapping[ObjectRef, tuple[Problem, ...]]
    warnings: tuple[Problem, ...]
    ending: Ending


def outcome_of(
    manifests: Sequence[Manifest], deciding: Deciding, *, subjects: Container[Subject] | None = None
) -> Outcome:
    """Decide about some objects without those that an API server with Kueue refuses.

    Args:
        manifests: The objects.
        deciding: How to decide about them.
        subjects: Keep the fates of these only; by default all.

    Raises:
        ManifestError: Something is wrong that is not about one of the objects.
    """
    refused: dict[ObjectRef, tuple[Problem, ...]] = {}
    left = tuple(manifests)
    while True:
        try:
            decided = deciding.of(left)
            break
        except ManifestError as error:
            of_objects = problems_by_object(left, error)
            if not of_objects:
                raise
            refused |= of_objects
            left = without(left, of_objects)
    fates = {about: fate for about, fate in _fates(decided) if subjects is None or about in subjects}
    return Outcome(fates, refused, decided.warnings, decided.settled.ending)


def without(manifests: Iterable[Manifest], refused: Container[ObjectRef]) -> tuple[Manifest, ...]:
    """Return the objects that are not refused, which are named as `problems_by_object` does."""
    return tuple(manifest for manifest in manifests if _ref(object_ref(manifest.object)) not in refused)


def problems_by_object(manifests: Iterable[Manifest], error: ManifestError) -> dict[ObjectRef, tuple[Problem, ...]]:
    """Return the problems of an error by the object that they are about, if it is one of the given ones."""
    given = {_ref(object_ref(manifest.object)) for manifest in manifests}
    found: dict[ObjectRef, tuple[Problem, ...]] = {}
    for problem in error.problems:
        ref = None if problem.object is None else _ref(problem.object)
        if ref is not None and ref in given:
            found[ref] = (*found.get(ref, ()), problem)
    return found


def _ref(ref: ObjectRef) -> ObjectRef:
    """Return the name of an object that is the same with and without the default namespace."""
    return replace(ref, namespace="") if ref.namespace == DEFAULT_NAMESPACE else ref


def _fates(decided: Decided) -> Iterator[tuple[Subject, Fate]]:
    places: dict[str, dict[str, dict[str, int]]] = {}
    for placement in decided.engine.placements():
        domains = {"/".join(domain.path or domain.values): domain.count for domain in placement.domains}
        places.setdefault(placement.key, {})[placement.pod_set] = domains
    victims: dict[str, set[tuple[str, str]]] = {}
    evictions: dict[str, list[str]] = {}
    for preemption in decided.preemptions:
        victims.setdefault(preemption.preemptor, set()).add((preemption.key, preemption.reason))
        evictions.setdefault(preemption.key, []).append(f"preempted by {preemption.preemptor}")
    for event in decided.settled.events:
        if event.reason.startswith(_EVICTED) and event.reason != _PREEMPTED:
            evictions.setdefault(event.key, []).append(event.reason.removeprefix(_EVICTED))
    undecided = {undecided.key: undecided for undecided in decided.settled.undecided}
    for state in decided.engine.workloads():
        said = (state.reason, state.message)
        left_open = undecided.get(state.key) if state.stage is Stage.PENDING else None
        if left_open is not None:
            said = ("", f"{left_open.field}: {left_open.message}")
        yield (
            ("Workload", state.key),
            Fate(
                "Undecided" if left_open else str(state.stage),
                state.status.get("admission", {}).get("clusterQueue") or state.cluster_queue,
                state.flavors,
                _counts(state),
                places.get(state.key, {}),
                tuple(sorted(victims.get(state.key, ()))),
                tuple(evictions.get(state.key, ())),
                state.is_active,
                *said,
            ),
        )
    for queue in map(decided.engine.cluster_queue, decided.engine.cluster_queues()):
        stage = "Active" if queue.is_active else "Inactive"
        yield ("ClusterQueue", queue.name), Fate(stage, reason=queue.reason, message=queue.message)
    yield ("State", ""), Fate(str(decided.settled.ending))


def _counts(state: WorkloadState) -> dict[str, int]:
    assigned = state.status.get("admission", {}).get("podSetAssignments", ())
    return {assignment["name"]: int(assignment.get("count", 0)) for assignment in assigned}
