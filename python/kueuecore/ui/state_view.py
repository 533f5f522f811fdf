"""What the lists of the page show of one version of a state, collected once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.cli.state_file import SettledState
from kueuecore.cli.state_source import StateSource
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.held_manifests import HeldManifests
from kueuecore.manifests import Manifest
from kueuecore.states import ClusterQueueState, QuotaRow, Stage, WorkloadState
from kueuecore.times import format_time, nanoseconds
from kueuecore.topology import DomainCapacity, Placement
from kueuecore.world import DEFAULT_NAMESPACE, is_workload

__all__ = ["StateView", "Views", "WorkloadRow"]


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """A workload in a list.

    Args:
        state: Its state.
        position: Its position in its ClusterQueue while it is queued there, from 0.
    """

    state: WorkloadState
    position: int | None
    _created: Callable[[WorkloadState], int | None] = field(default=lambda _: None, repr=False, compare=False)

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return self.state.key

    @property
    def since(self) -> int | None:
        """Since when it exists or, after an eviction, waits again, in nanoseconds since 1970; None if unknown."""
        return _since(self.state, self._created(self.state))


@dataclass(frozen=True)
class StateView:
    """One version of a state. What a page does not show is not collected.

    Args:
        state: The state.
        version: Its version.
        problem: Why a newer version cannot be read; empty if this is the newest.
    """

    state: SettledState
    version: int
    problem: str = field(default="")

    @property
    def engine(self) -> Engine:
        """The engine, which nobody changes."""
        return self.state.engine

    @property
    def now(self) -> str:
        """The time of the state."""
        return format_time(self.state.now)

    @cached_property
    def workloads(self) -> tuple[WorkloadRow, ...]:
        """All workloads, by namespace and name."""
        positions = {
            pending.key: pending.position_in_cluster_queue
            for queue in self.engine.cluster_queues()
            for pending in self.engine.pending(queue)
        }
        return tuple(WorkloadRow(state, positions.get(state.key), self._created) for state in self.engine.workloads())

    @cached_property
    def by_key(self) -> Mapping[str, WorkloadRow]:
        """The workloads by namespace and name."""
        return {row.key: row for row in self.workloads}

    def _created(self, state: WorkloadState) -> int | None:
        """When a Workload was created, as far as its object says."""
        found = self._created_at
        manifests = self.state.world.manifests
        # The Workloads of a cluster stay in its engine: only those that are shown are looked at.
        if isinstance(manifests, HeldManifests) and state.key not in found:
            held = manifests.workload(state.name, namespace=state.namespace)
            found[state.key] = None if held is None else _time(text_at(held.object, "metadata", "creationTimestamp"))
        return found.get(state.key)

    @cached_property
    def _created_at(self) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for manifest in self._objects:
            if is_workload(manifest.object):
                metadata = object_at(manifest.object, "metadata")
                key = f"{text_at(metadata, 'namespace') or DEFAULT_NAMESPACE}/{text_at(metadata, 'name')}"
                found[key] = _time(text_at(metadata, "creationTimestamp"))
        return found

    @property
    def _objects(self) -> Sequence[Manifest]:
        """The objects; of a cluster without the Workloads, which stay in its engine."""
        manifests = self.state.world.manifests
        return manifests.others if isinstance(manifests, HeldManifests) else manifests

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that have workloads, sorted."""
        return tuple(sorted({row.state.namespace for row in self.workloads}))

    @cached_property
    def stages(self) -> Mapping[str, int]:
        """How many workloads are in each stage, in the order of a workload's life."""
        counts = Counter(row.state.stage for row in self.workloads)
        return {str(stage): counts[stage] for stage in Stage}

    @cached_property
    def queues(self) -> tuple[ClusterQueueState, ...]:
        """All ClusterQueues, by name."""
        return tuple(map(self.engine.cluster_queue, self.engine.cluster_queues()))

    @cached_property
    def heads(self) -> Mapping[str, WorkloadRow]:
        """The first workload that waits in each ClusterQueue."""
        first = {}
        for row in self.workloads:
            if row.position == 0 and row.state.cluster_queue is not None:
                first[row.state.cluster_queue] = row
        return first

    @cached_property
    def quota(self) -> tuple[QuotaRow, ...]:
        """Quota and usage of every ClusterQueue and Cohort."""
        return self.engine.quota()

    @cached_property
    def capacity(self) -> tuple[DomainCapacity, ...]:
        """The capacity of the domains of all topologies."""
        return self.engine.domain_capacity()

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """Where pods run."""
        return self.engine.placements()

    @cached_property
    def nodes(self) -> tuple[JsonObject, ...]:
        """The Nodes, by name."""
        objects = (manifest.object for manifest in self._objects)
        found = (plain for plain in objects if text_at(plain, "kind") == "Node")
        return tuple(sorted(found, key=lambda node: text_at(node, "metadata", "name")))


class Views:
    """The newest view of a source. While one is collected, others get the one before."""

    def __init__(self, source: StateSource) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._newest: StateView | None = None

    def newest(self) -> StateView:
        """Return the view of the newest version.

        Raises:
            ManifestError: There is none, as the state cannot be read.
        """
        found = self._newest
        if found is not None and found.version == self._source.version:
            return found
        if not self._lock.acquire(blocking=found is None):
            assert found is not None, "only a later version is collected without waiting"
            return found
        try:
            if self._newest is None or self._newest.version != self._source.version:
                self._newest = self._collected()
            return self._newest
        finally:
            self._lock.release()

    def _collected(self) -> StateView:
        # Read first: a change meanwhile leads to another view.
        version = self._source.version
        try:
            view = StateView(self._source.state(), version)
        except ManifestError as error:
            if self._newest is None:
                raise
            return StateView(self._newest.state, version, problem=str(error.problems[0]))
        # The lists take longest, and every page is quick once they are there.
        _ = view.workloads, view.heads
        return view


def _since(state: WorkloadState, created: int | None) -> int | None:
    if state.stage is not Stage.PENDING:
        return created
    times = [
        _time(text_at(condition, "lastTransitionTime"))
        for condition in list_at(dict(state.status), "conditions")
        if text_at(condition, "type") in ("Evicted", "Requeued") and text_at(condition, "status") == "True"
    ]
    return max((time for time in [created, *times] if time is not None), default=None)


def _time(text: str) -> int | None:
    try:
        return nanoseconds(text) if text else None
    except ValueError:
        return None
