"""The outcome of a run, collected once for every output format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import counted
from kueuecore.cli.checks import CheckRow, check_rows
from kueuecore.cli.queue_notes import QueueNotes
from kueuecore.cli.sentences import why_preempted
from kueuecore.decisions import Preemption, Undecided
from kueuecore.engine import Engine
from kueuecore.findings.topology_objects import TopologyObjects
from kueuecore.findings.topology_sentences import NO_PLACE_EVER, NODE_GATE, AskedTopology, reasons_of, why_not_placed
from kueuecore.held_manifests import HeldManifests
from kueuecore.states import ClusterQueueState, PendingWorkload, QuotaRow, Stage, WorkloadState
from kueuecore.steady_state import Settled
from kueuecore.topology import DomainCapacity, Placement
from kueuecore.waiting_cause import uncovered_in, waiting_cause
from kueuecore.world import DEFAULT_NAMESPACE, World, is_workload

if TYPE_CHECKING:
    from kueuecore.request_origins import RequestOrigins

__all__ = ["BY_SHARE", "NotPlaced", "Row", "RunOutcome", "namespaces_of"]

# With fair sharing, shares decide whom these preempt: whether, or only who is first.
BY_SHARE = ("InCohortFairSharing", "InCohortReclamation")
# Each takes a run up to its cycle.
_MAX_BY_SHARE = 20
# Each takes a decision.
_MAX_NEVER_PLACED = 100
_ABOUT_FLAVORS = "assign flavors to pod set "
_NEVER = "; they would not fit without other workloads either"

_BYPASSED = "not considered: an equivalent workload ahead of it did not get quota"  # rules/05 §4


@dataclass(frozen=True, slots=True)
class NotPlaced:
    """A pod set that could not be placed in a topology.

    Args:
        asked: What it asks for.
        why: Why it could not be placed, in a sentence.
    """

    asked: AskedTopology
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """A workload: its state, and what its object says.

    Args:
        state: Its state.
        owner: The job it belongs to, `Kind/name`; empty if it has none.
        counts: How many pods each pod set asks for.
        position: Its position in its ClusterQueue while it is queued there, from 0.
        undecided: Why kueuecore cannot decide about it, if it cannot.
        placements: Where its pods are placed.
        not_placed: The pod sets that could not be placed, while it is pending.
        cause: Why it waits if Kueue has no message about it.
        notes: Where its requests come from that its ClusterQueue does not cover, and what they may mean; or that its
            Namespace was added without the labels that its ClusterQueue asks for.
    """

    state: WorkloadState
    owner: str
    counts: Mapping[str, int]
    position: int | None
    undecided: Undecided | None
    placements: tuple[Placement, ...] = ()
    not_placed: tuple[NotPlaced, ...] = ()
    cause: str = ""
    notes: str = ""

    def placement(self, pod_set: str) -> Placement | None:
        """Where the pods of a pod set are placed, if a topology is involved."""
        return next((placement for placement in self.placements if placement.pod_set == pod_set), None)

    @property
    def failed_nodes(self) -> tuple[str, ...]:
        """Failed nodes of its pods that have not been replaced yet: `status.unhealthyNodes`."""
        return tuple(node["name"] for node in self.state.status.get("unhealthyNodes", ()))

    @property
    def status(self) -> str:
        """One word: the stage, or `Undecided`."""
        return "Undecided" if self.undecided else str(self.state.stage)

    @property
    def checks(self) -> tuple[JsonObject, ...]:
        """The states of its admission checks: `status.admissionChecks`."""
        return tuple(map(dict, self.state.status.get("admissionChecks", ())))

    @property
    def open_checks(self) -> tuple[str, ...]:
        """The checks that a workload with quota is still waiting for."""
        if self.state.stage is not Stage.QUOTA_RESERVED:
            return ()
        return tuple(text_at(check, "name") for check in self.checks if text_at(check, "state") != "Ready")

    @property
    def message(self) -> str:
        """Kueue's message, or why there is none."""
        return f"{self.undecided.field}: {self.undecided.message}" if self.undecided else self.state.message

    @property
    def message_or_cause(self) -> str:
        """The message; in brackets the cause if there is no message."""
        if self.message or not self.cause:
            return self.message
        return f"({'; '.join(filter(None, [self.cause, self.notes]))})"

    @property
    def message_and_notes(self) -> str:
        """The same for people: in brackets the notes about a message, too."""
        said = self.message_or_cause
        return f"{said} ({self.notes})" if self.message and self.notes else said


def namespaces_of(plain: JsonObject) -> tuple[str, ...]:
    """The namespaces in which an engine may keep an object; one without goes to `default`, or stays so if trusted."""
    namespace = text_at(plain, "metadata", "namespace")
    return (namespace,) if namespace else ("", DEFAULT_NAMESPACE)


class RunOutcome:
    """The outcome of a run.

    Args:
        engine: The engine after it.
        world: The objects that were given.
        settled: The cycles that ran, and how they ended.
        now: The time at which it happened, in nanoseconds since 1970.
        after_cycles: Makes the state anew, as it was after so many cycles: to say why fair sharing chose a victim.
        namespace: The only namespace of which workloads are shown; by default, all.
    """

    def __init__(
        self,
        engine: Engine,
        world: World,
        settled: Settled,
        now: int,
        after_cycles: Callable[[int], Engine] | None = None,
        namespace: str = "",
    ) -> None:
        self.engine = engine
        self.world = world
        self.settled = settled
        self.now = now
        self._after_cycles = after_cycles
        self._namespace = namespace
        self._n_asked = 0

    @cached_property
    def workloads(self) -> tuple[Row, ...]:
        """All workloads that are shown, by namespace and name."""
        return self.rows(state for state in self.engine.workloads() if self._namespace in ("", state.namespace))

    @cached_property
    def queued(self) -> Mapping[str, PendingWorkload]:
        """The workloads in the queues, by their keys."""
        queues = self.engine.cluster_queues()
        return {queued.key: queued for queue in queues for queued in self.engine.pending(queue)}

    def rows(self, states: Iterable[WorkloadState]) -> tuple[Row, ...]:
        """Return the rows of some workloads."""
        return tuple(self._row(state, self.queued.get(state.key)) for state in states)

    def workload(self, name: str, *, namespace: str) -> Row:
        """One workload, without a look at all others.

        Raises:
            UnknownObjectError: There is none.
        """
        state = self.engine.workload(name, namespace=namespace)
        is_queued = state.place is not None and state.cluster_queue is not None
        queued = self.engine.pending(state.cluster_queue or "") if is_queued else ()
        return self._row(state, next((pending for pending in queued if pending.key == state.key), None))

    def plain(self, state: WorkloadState) -> JsonObject:
        """Return the object of a workload."""
        if isinstance(self.world.manifests, HeldManifests):
            return self.world.workload(state.name, namespace=state.namespace)
        return self._objects.get((state.namespace, state.name), {})

    def _row(self, state: WorkloadState, queued: PendingWorkload | None) -> Row:
        plain = self.plain(state)
        left_open = self._undecided.get(state.key) if state.stage is Stage.PENDING else None
        position = None if queued is None else queued.position_in_cluster_queue
        job = self.world.jobs.get((state.namespace, state.name))
        cause = "" if left_open else self._cause(state, position)
        return Row(
            state,
            _owner(plain, job.object if job else {}),
            _counts(plain),
            position,
            left_open,
            tuple(self._placements.get(state.key, ())),
            self._not_placed(state, plain, cause),
            cause,
            self._notes(state, cause, plain),
        )

    @cached_property
    def _objects(self) -> Mapping[tuple[str, str], JsonObject]:
        kept = {key for key in self.engine._core.workload_keys() if key is not None}
        given = (manifest.object for manifest in self.world.of_kind("Workload"))
        return {_key(plain, kept): plain for plain in given if is_workload(plain)}

    @cached_property
    def _undecided(self) -> Mapping[str, Undecided]:
        return {undecided.key: undecided for undecided in self.settled.undecided}

    @cached_property
    def _placements(self) -> Mapping[str, list[Placement]]:
        placements: dict[str, list[Placement]] = {}
        for placement in self.engine.placements():
            placements.setdefault(placement.key, []).append(placement)
        return placements

    def _cause(self, state: WorkloadState, position: int | None) -> str:
        """Why a workload waits about which Kueue's status says nothing."""
        if state.stage is not Stage.PENDING or state.message:
            return ""
        if state.key in self._said_by_cycles:
            return self._said_by_cycles[state.key]
        was_passed_over = state.cluster_queue in self._queues_with_heads
        if state.place == "inadmissible" and was_passed_over:
            return _BYPASSED
        if position and state.place == "active":
            return f"not considered yet: {counted(position, 'workload')} ahead of it in the queue"
        # Parked by cycles that ran before the engine was saved, or the head of a queue without cycles.
        cause = waiting_cause(self.engine, state.name, namespace=state.namespace, now=self.now)
        return cause or (_BYPASSED if state.place == "inadmissible" else "")

    def _notes(self, state: WorkloadState, cause: str, plain: JsonObject) -> str:
        """What to add about requests that the ClusterQueue does not cover, or about the queues and the Namespace."""
        said = state.message or cause
        if state.stage is not Stage.PENDING or not uncovered_in(said):
            return self._queue_notes.of(state)
        return self.request_origins.notes(said, plain, state.cluster_queue or "")

    @cached_property
    def _queue_notes(self) -> QueueNotes:
        return QueueNotes(self.world, self.engine)

    @cached_property
    def request_origins(self) -> RequestOrigins:
        """Where requests come from."""
        # Imported only where it is needed, as few runs do.
        from kueuecore.request_origins import RequestOrigins

        return RequestOrigins(self.world, self.engine)

    @cached_property
    def _said_by_cycles(self) -> Mapping[str, str]:
        """What the last cycle with each head said; without those about which it said nothing."""
        return {
            pending.key: pending.message
            for cycle in self.settled.decisions
            for pending in cycle.pending
            if pending.message
        }

    @cached_property
    def _queues_with_heads(self) -> Container[str | None]:
        """The ClusterQueues of which a head stayed pending."""
        return {pending.cluster_queue for cycle in self.settled.decisions for pending in cycle.pending}

    def _not_placed(self, state: WorkloadState, plain: JsonObject, cause: str) -> tuple[NotPlaced, ...]:
        if state.stage is not Stage.PENDING:
            return ()
        levels = self.topology_objects.levels
        # Kueue has also tried to place it in an empty cluster (rules/08 §11.5).
        never = _NEVER if state.reason == NO_PLACE_EVER else ""
        looks_at_nodes = self.engine.configuration.is_enabled(NODE_GATE)
        found = []
        for asked in map(AskedTopology.of, list_at(plain, "spec", "podSets")):
            reasons = reasons_of(state.message, asked.pod_set)
            why = why_not_placed(reasons, asked, levels=levels, looks_at_nodes=looks_at_nodes)
            if why:
                found.append(NotPlaced(asked, why + never))
        # Without a place in an empty cluster there is this reason, or none (rules/08 §11.5).
        if not found and (state.reason == NO_PLACE_EVER or _ABOUT_FLAVORS in cause):
            return tuple(self._never_placed(state, plain))
        return tuple(found)

    def _never_placed(self, state: WorkloadState, plain: JsonObject) -> Iterator[NotPlaced]:
        """The pod sets that empty nodes have no place for either, where Kueue's message is about quota alone."""
        if not self.topology_objects.flavors or self._n_asked >= _MAX_NEVER_PLACED:
            return
        self._n_asked += 1
        # Imported only where it is needed, as few runs do.
        from kueuecore.answers import explain

        pod_sets = list_at(plain, "spec", "podSets")
        for pod_set in explain(self.engine, state.name, namespace=state.namespace, now=self.now).pod_sets:
            if pod_set.lacks_place and pod_set.index < len(pod_sets):
                flavors = " and ".join(trial.flavor for trial in pod_set.trials if trial.is_chosen)
                why = f"the nodes of flavor {flavors} have no place for these pods{_NEVER}"
                yield NotPlaced(AskedTopology.of(pod_sets[pod_set.index]), why)

    @cached_property
    def topology_objects(self) -> TopologyObjects:
        """The Topologies, the flavors with one, and the Nodes."""
        return TopologyObjects.of(self.world)

    @cached_property
    def capacity(self) -> tuple[DomainCapacity, ...]:
        """The capacity of topology domains, and how much of it is free."""
        return self.engine.domain_capacity()

    @property
    def preemptions(self) -> tuple[Preemption, ...]:
        """All preemptions, in order."""
        return tuple(preemption for decision in self.settled.decisions for preemption in decision.preemptions)

    def why(self, preemption: Preemption) -> str:
        """Why a preemption happened, in a sentence."""
        states = self._states
        by_share = self._by_share.get((preemption.preemptor, preemption.key), "")
        if by_share and preemption.reason == "InCohortFairSharing":
            return by_share
        why = why_preempted(preemption, states[preemption.key], states[preemption.preemptor])
        return f"{why}; {by_share}" if by_share and preemption.reason in BY_SHARE else why

    @cached_property
    def _by_share(self) -> dict[tuple[str, str], str]:
        """The shares behind the first preemptions by fair sharing, by preemptor and victim."""
        # Imported only where it is needed, as few runs do.
        from kueuecore.answers import explain
        from kueuecore.answers.obstacles import why_by_fair_sharing

        found: dict[tuple[str, str], str] = {}
        configuration = self.engine.configuration
        if self._after_cycles is None or "fairSharing" not in configuration.to_dict():
            return found
        for n_before, decision in enumerate(self.settled.decisions):
            victims = [
                (preemption.preemptor, preemption.key)
                for preemption in decision.preemptions
                if preemption.reason in BY_SHARE
            ]
            if not victims or len(found) >= _MAX_BY_SHARE:
                continue
            engine = self._after_cycles(n_before)
            for preemptor in dict.fromkeys(preemptor for preemptor, _ in victims):
                namespace, _, name = preemptor.rpartition("/")
                explanation = explain(engine, name, namespace=namespace)
                for pair in (victim for victim in victims if victim[0] == preemptor):
                    found.setdefault(pair, why_by_fair_sharing(explanation, pair[1]))
        return found

    @cached_property
    def _states(self) -> Mapping[str, WorkloadState]:
        return {state.key: state for state in self.engine.workloads()}

    @cached_property
    def admission_checks(self) -> tuple[CheckRow, ...]:
        """All AdmissionChecks, by name."""
        return check_rows(self.world)

    @cached_property
    def cluster_queues(self) -> tuple[ClusterQueueState, ...]:
        """All ClusterQueues, by name."""
        return tuple(map(self.engine.cluster_queue, self.engine.cluster_queues()))

    @cached_property
    def quota(self) -> tuple[QuotaRow, ...]:
        """Quota and usage of every ClusterQueue and Cohort."""
        return self.engine.quota()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """The number of workloads in each status, in the order of a workload's life; without zeros."""
        found = Counter(row.status for row in self.workloads)
        return {status: found[status] for status in ("Undecided", *map(str, Stage)) if found[status]}


def _key(plain: JsonObject, kept: Container[tuple[str, str]]) -> tuple[str, str]:
    """The namespace and name under which the engine keeps a Workload."""
    name = text_at(plain, "metadata", "name")
    return next((key for namespace in namespaces_of(plain) if (key := (namespace, name)) in kept), ("", name))


def _owner(plain: JsonObject, job: JsonObject) -> str:
    """The job of a Workload: its owner, but the Deployment if the owner is one of a Deployment's pods."""
    for owner in list_at(plain, "metadata", "ownerReferences"):
        kind = text_at(job, "kind")
        if kind and kind != text_at(owner, "kind"):
            return f"{kind}/{text_at(job, 'metadata', 'name')}"
        return f"{text_at(owner, 'kind')}/{text_at(owner, 'name')}"
    return ""


def _counts(plain: JsonObject) -> dict[str, int]:
    counts = {}
    for pod_set in map(object_at, list_at(plain, "spec", "podSets")):
        count = pod_set.get("count", 1)
        counts[text_at(pod_set, "name") or "main"] = count if isinstance(count, int) else 1
    return counts
