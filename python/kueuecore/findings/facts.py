"""The facts that rules look at: objects by kind and name, and what an engine decides about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from kueuecore._json import object_at, text_at, texts_at
from kueuecore.configuration import Configuration
from kueuecore.decisions import WhatIf
from kueuecore.engine import Engine
from kueuecore.errors import Problem
from kueuecore.findings.labels import selects
from kueuecore.findings.manifest_fields import work_of
from kueuecore.findings.quota_tree import QuotaTree
from kueuecore.findings.topology_objects import KUEUE_GROUP, TopologyObjects
from kueuecore.findings.topology_sentences import NODE_GATE
from kueuecore.manifests import Manifest
from kueuecore.states import Stage, WorkloadState
from kueuecore.steady_state import Settled, settle
from kueuecore.world import DEFAULT_NAMESPACE, World, is_workload, key_of

if TYPE_CHECKING:
    from kueuecore.request_origins import RequestOrigins

__all__ = ["Facts"]

_CORE = {"Node", "Namespace", "Pod"}


class Facts:
    """The facts that rules look at, all computed lazily.

    Args:
        world: The objects, with Workloads for jobs.
        engine: An engine that holds them; it is not changed.
        given: The objects as they were given, without any added ones.
        configuration: Kueue's Configuration.
        now: The current time, in nanoseconds since 1970.
        warnings: The engine's warnings about the objects.
        unread: Kinds of objects that nothing reads.
        settled: The engine after cycles have run until nothing changed, if that is known.
        configuration_manifest: The Configuration as it is written, if that is known.
    """

    def __init__(
        self,
        world: World,
        engine: Engine,
        *,
        given: Sequence[Manifest] = (),
        configuration: Configuration | None = None,
        now: int = 0,
        warnings: Sequence[Problem] = (),
        unread: Collection[str] = (),
        settled: Engine | None = None,
        configuration_manifest: Manifest | None = None,
    ) -> None:
        self.world = world
        self.engine = engine
        self.given = tuple(given)
        self.configuration = configuration
        self.now = now
        self.warnings = tuple(warnings)
        self.unread = unread
        self._settled_engine = settled
        self.configuration_manifest = configuration_manifest
        self.assumes_active_checks = False
        """Whether AdmissionChecks without a condition Active count as active in runs."""
        self.unfinished: list[str] = []
        """What rules have not tried to the end, as it would take too long."""

    # Objects by name, in the order of the files; the last one wins where a name is given twice.

    @cached_property
    def _by_kind(self) -> Mapping[str, Mapping[tuple[str, str], Manifest]]:
        found: dict[str, dict[tuple[str, str], Manifest]] = {}
        for manifest in self.world.manifests:
            kind, api_version = text_at(manifest.object, "kind"), text_at(manifest.object, "apiVersion")
            if api_version == "v1" if kind in _CORE else api_version.startswith(KUEUE_GROUP):
                found.setdefault(kind, {})[key_of(manifest.object)] = manifest
        return found

    def of_kind(self, kind: str) -> dict[str, Manifest]:
        """Objects of a kind without namespaces, by name."""
        return {name: row for (_, name), row in self._by_kind.get(kind, {}).items()}

    @cached_property
    def cluster_queues(self) -> Mapping[str, Manifest]:
        """ClusterQueues by name."""
        return self.of_kind("ClusterQueue")

    @cached_property
    def cohorts(self) -> Mapping[str, Manifest]:
        """Cohorts that are objects, by name."""
        return self.of_kind("Cohort")

    @cached_property
    def flavors(self) -> Mapping[str, Manifest]:
        """ResourceFlavors by name."""
        return self.of_kind("ResourceFlavor")

    @cached_property
    def nodes(self) -> Mapping[str, Manifest]:
        """Nodes by name."""
        return self.of_kind("Node")

    @cached_property
    def local_queues(self) -> Mapping[tuple[str, str], Manifest]:
        """LocalQueues by namespace and name."""
        return self._by_kind.get("LocalQueue", {})

    @cached_property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of the Namespaces that were given; added ones have no labels of their own."""
        named = {
            text_at(assignment.object, "metadata", "name")
            for assignment in self.given
            if _is_core(assignment, "Namespace")
        }
        found = self.of_kind("Namespace")
        return {
            name: texts_at(manifest.object, "metadata", "labels") for name, manifest in found.items() if name in named
        }

    @cached_property
    def workloads(self) -> Mapping[tuple[str, str], Manifest]:
        """Workloads by namespace and name, those of jobs among them."""
        return {key_of(manifest.object): manifest for manifest in self.world.manifests if is_workload(manifest.object)}

    @cached_property
    def tree(self) -> QuotaTree:
        """ClusterQueues and cohorts with their quotas."""
        return QuotaTree(self.engine.quota(), self.cohorts, self.cluster_queues)

    @cached_property
    def request_origins(self) -> RequestOrigins:
        """Where requests come from."""
        # Imported only where it is needed, as runs do not.
        from kueuecore.request_origins import RequestOrigins

        return RequestOrigins(self.world, self.engine)

    @cached_property
    def topology_objects(self) -> TopologyObjects:
        """The objects that topology-aware scheduling reads."""
        return TopologyObjects.of(self.world)

    @property
    def looks_at_nodes(self) -> bool:
        """Whether pods have to fit on single nodes, wherever the levels of a Topology end (rules/08 §1.3)."""
        return self.engine.configuration.is_enabled(NODE_GATE)

    def written(self, manifest: Manifest) -> Manifest:
        """The object that the user wrote and can annotate: the job of a Workload that was made from one."""
        job = self.world.jobs.get(key_of(manifest.object)) if is_workload(manifest.object) else None
        return job or manifest

    # What an engine decides.

    @cached_property
    def _outcome(self) -> tuple[Engine, Settled]:
        engine = self.engine.fork()
        return engine, settle(engine, now=self.now, max_cycles=100_000)

    @property
    def settled_engine(self) -> Engine:
        """The engine once nothing changes any more."""
        return self._settled_engine or self._outcome[0]

    @property
    def settled(self) -> Settled:
        """The cycles that led there."""
        return self._outcome[1]

    @cached_property
    def states(self) -> Mapping[tuple[str, str], WorkloadState]:
        """The final state of each workload, by namespace and name."""
        states = self.settled_engine.workloads()
        return {(state.namespace or DEFAULT_NAMESPACE, state.name): state for state in states}

    def state_of(self, manifest: Manifest) -> WorkloadState | None:
        """The final state of a Workload."""
        return self.states.get(key_of(manifest.object))

    @cached_property
    def empty_engine(self) -> Engine:
        """An engine with all objects but workloads and pods."""
        engine = Engine(self.configuration)
        others = [
            manifest
            for manifest in self.world.manifests
            if not is_workload(manifest.object) and not _is_core(manifest, "Pod")
        ]
        engine.apply(others, now=self.now, trusted=self.world.trusted)
        return engine

    @cached_property
    def alone(self) -> Mapping[tuple[str, str], WhatIf]:
        """The outcome for each pending workload that may enter its queue, if it were the only one.

        Those that ask for the same get the same answer, so each kind is asked about once. After a run nothing is asked.
        """
        if self._settled_engine is not None:
            return {}
        answers: dict[str, WhatIf] = {}
        found = {}
        for key, workload in self.workloads.items():
            if self._may_enter(workload):
                kind = work_of(workload)
                if kind not in answers:
                    plain = {name: manifest for name, manifest in workload.object.items() if name != "status"}
                    answers[kind] = self.empty_engine.what_if(plain, now=self.now, trusted=self.world.trusted)
                found[key] = answers[kind]
        return found

    def _may_enter(self, workload: Manifest) -> bool:
        """Whether a workload is pending, and its queues exist, are active and open to its namespace."""
        key = key_of(workload.object)
        state = self.states.get(key)
        is_off = object_at(workload.object, "spec").get("active") is False
        if state is None or state.stage is not Stage.PENDING or is_off:
            return False
        queue = self.local_queues.get((key[0], text_at(workload.object, "spec", "queueName")))
        if queue is None or text_at(queue.object, "spec", "stopPolicy") not in ("", "None"):
            return False
        name = text_at(queue.object, "spec", "clusterQueue")
        if name not in self.cluster_queues or not self.empty_engine.cluster_queue(name).is_active:
            return False
        namespace = self.of_kind("Namespace").get(key[0])
        if namespace is None:  # the dump may not contain it
            return False
        selector = object_at(self.cluster_queues[name].object, "spec").get("namespaceSelector")
        return selects(selector, texts_at(namespace.object, "metadata", "labels"))


def _is_core(manifest: Manifest, kind: str) -> bool:
    return text_at(manifest.object, "kind") == kind and text_at(manifest.object, "apiVersion") == "v1"
