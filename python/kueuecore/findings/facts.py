"""The objects that findings are about, by kind and name, and what an engine makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from kueuecore._json import text_at, texts_at
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import Problem
from kueuecore.findings.manifest_fields import key_of
from kueuecore.findings.quota_tree import QuotaTree
from kueuecore.findings.topology_objects import KUEUE_GROUP, TopologyObjects
from kueuecore.manifests import Manifest
from kueuecore.states import WorkloadState
from kueuecore.steady_state import Settled, settle
from kueuecore.world import DEFAULT_NAMESPACE, World, is_workload

__all__ = ["Facts"]

_CORE = {"Node", "Namespace", "Pod"}


class Facts:
    """What rules look at. Everything is worked out when it is first asked for.

    Args:
        world: The objects, jobs made into Workloads.
        engine: An engine that has them; it stays as it is.
        given: The objects as they were given, without what has been added.
        configuration: Kueue's Configuration.
        now: The time of everything, in nanoseconds since 1970.
        warnings: What the engine had to say about the objects.
        settled: What came of the engine, if that is known.
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
        settled: Engine | None = None,
    ) -> None:
        self.world = world
        self.engine = engine
        self.given = tuple(given)
        self.configuration = configuration
        self.now = now
        self.warnings = tuple(warnings)
        self._settled_engine = settled

    # Objects by name, in the order of the files; of those given twice the last.

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
        return {name: it for (_, name), it in self._by_kind.get(kind, {}).items()}

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
        """The labels of the Namespaces that were given; those that were added say nothing."""
        named = {text_at(it.object, "metadata", "name") for it in self.given if _is_namespace(it)}
        found = self.of_kind("Namespace")
        return {name: texts_at(it.object, "metadata", "labels") for name, it in found.items() if name in named}

    @cached_property
    def workloads(self) -> Mapping[tuple[str, str], Manifest]:
        """Workloads by namespace and name, those of jobs among them."""
        return {key_of(it.object): it for it in self.world.manifests if is_workload(it.object)}

    @cached_property
    def tree(self) -> QuotaTree:
        """ClusterQueues and cohorts with their quotas."""
        return QuotaTree(self.engine.quota(), self.cohorts, self.cluster_queues)

    @cached_property
    def topology_objects(self) -> TopologyObjects:
        """What topology-aware scheduling reads."""
        return TopologyObjects.of(self.world)

    def written(self, manifest: Manifest) -> Manifest:
        """The object that people have written, and annotate: of a Workload that was made its job."""
        job = self.world.jobs.get(key_of(manifest.object)) if is_workload(manifest.object) else None
        return job or manifest

    # What an engine says.

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
        """How it came to that."""
        return self._outcome[1]

    @cached_property
    def states(self) -> Mapping[tuple[str, str], WorkloadState]:
        """Where each workload stands then, by namespace and name."""
        states = self.settled_engine.workloads()
        return {(it.namespace or DEFAULT_NAMESPACE, it.name): it for it in states}

    def state_of(self, manifest: Manifest) -> WorkloadState | None:
        """Where a Workload stands then."""
        return self.states.get(key_of(manifest.object))


def _is_namespace(manifest: Manifest) -> bool:
    plain = manifest.object
    return text_at(plain, "kind") == "Namespace" and text_at(plain, "apiVersion") == "v1"
