"""The reference model behind the engine's interface, as far as plays need it, with an API server for its objects."""

from __future__ import annotations

import json
from typing import Any, Self

from kueuecore._json import JsonObject
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.reference import conditions, readiness
from kueuecore.reference.world import World
from kueuecore.states import Stage, WorkloadState
from kueuecore.testing.history import START, History, key_of, without_min_counts

__all__ = ["ReferenceEngine"]

_STAGES = (("Finished", Stage.FINISHED), ("Admitted", Stage.ADMITTED), ("QuotaReserved", Stage.QUOTA_RESERVED))


class ReferenceEngine:
    """The reference model, with the engine's interface as far as plays need it, and an API server for its objects."""

    def __init__(self, world: World) -> None:
        self.world = world

    @classmethod
    def of(cls, scenario: History) -> Self:
        """Create the reference with the objects of a scenario."""
        configuration = {**(scenario.configuration or {}), "kueue": scenario.release}
        configuration["experiments"] = scenario.experiments.to_dict()
        found = cls(World((), configuration=configuration, now=START, batches_retries=scenario.batches_retries))
        # Workloads with quota come before their LocalQueue, which then takes them over, as after a restart.
        running = [object_ for object_ in scenario.objects if "status" in object_]
        queues = [object_ for object_ in scenario.objects if object_["kind"] == "LocalQueue"]
        others = [object_ for object_ in scenario.objects if object_ not in running and object_ not in queues]
        found._put([*(other for other in others if other["kind"] != "Workload"), *running, *queues], START)
        found._put([other for other in others if other["kind"] == "Workload"], START)
        # No reconcile has run yet, so all nodes are still to be checked.
        found.world.node_checks |= dict.fromkeys(found.world.kind("Node"), START)
        return found

    def apply(self, objects: bytes, *, now: int) -> None:
        """Create or update an object."""
        self._put([json.loads(objects)], now)

    def _put(self, objects: list[JsonObject], now: int) -> None:
        active = self._active()
        self.world.apply([self._stored(object_) for object_ in objects], now=now)
        for plain in objects:
            self._look_at_all_of(str(plain["kind"]), key_of(plain))
        self._look_at_queues(active ^ self._active())

    # Kueue looks at a workload when an event brings it up; the engine at once (docs/differences-from-kueue.md).
    def _active(self) -> set[str]:
        return {name for name in self.world.queues if self.world.cache.is_active(name)}

    def _look_at_queues(self, names: set[str]) -> None:
        for local_queue, each in self.world.kind("LocalQueue").items():
            if each["spec"].get("clusterQueue") in names:
                self.world.mark_dirty(local_queue)

    def _look_at_all_of(self, kind: str, key: str) -> None:
        if kind == "ClusterQueue":
            self._look_at_queues({key})
        elif kind == "Namespace":
            workloads = self.world.kind("Workload").items()
            self.world.dirty |= {
                name for name, workload in workloads if workload["metadata"].get("namespace", "") == key
            }

    def _stored(self, given: JsonObject) -> JsonObject:
        """Return what an API server would store: with a generation; an update without a status keeps the old one."""
        kind, plain = str(given["kind"]), dict[str, Any](given)
        metadata: dict[str, Any] = dict(plain["metadata"])
        plain["metadata"] = metadata
        if kind == "Workload" and not self.world.settings.on("PartialAdmission"):
            plain["spec"] = without_min_counts(plain["spec"])
        old = self.world.kind(kind).get(key_of(given))
        if old is None:
            metadata["generation"] = 1
            return plain
        before = old["metadata"]
        metadata |= {name: before[name] for name in ("creationTimestamp", "generation") if name in before}
        if kind == "Workload":
            if "status" not in given and "status" in old:
                plain["status"] = old["status"]
            if _plain_spec(plain) != _plain_spec(old):
                metadata["generation"] = before.get("generation", 0) + 1
        return plain

    def delete(self, kind: str, name: str, *, namespace: str = "", now: int) -> bool:
        """Delete an object."""
        active = self._active()
        found = self.world.delete(kind, name, namespace=namespace, now=now)
        self._look_at_all_of(kind, f"{namespace}/{name}" if namespace else name)
        self._look_at_queues(active ^ self._active())
        return found

    # The reference's decisions and events have the fields of the engine's.
    def cycle(self, now: int) -> Any:
        """Run a cycle."""
        decision = self.world.cycle(now)
        # A workload parked before others of its shape failed gets the message of a bypassed evaluation, too.
        queues = {pending.cluster_queue for pending in decision.pending if pending.is_parked}
        self.world.dirty |= {key for name in queues for key in self.world.queues[name].inadmissible}
        return decision

    def reconcile(self, now: int) -> Any:
        """Write what is written between cycles, and sample the usage of LocalQueues when due, as the engine does."""
        world = self.world
        # Stands in for a controller's timers.
        world.dirty |= {name for name, entry in world.kind("Workload").items() if _has_timers(entry)}
        events = tuple(world.reconcile(now))
        for name, queue in sorted(world.local_queues.items()):
            if world.settings.has_admission_fair_sharing and world.cache.is_active(queue):
                world.ledger.sample(name, world.admitted_in(name), now)
        return events

    def finish(self, name: str, *, namespace: str, now: int) -> bool:
        """Finish the job of a workload."""
        self.workload(name, namespace=namespace)
        return self.world.finish(name, namespace=namespace, now=now)

    def note_readiness(self, name: str, *, namespace: str, now: int, are_ready: bool) -> bool:
        """Record whether the pods of a workload are ready."""
        world = self.world
        world.advance(now)
        workload = world.owned(f"{namespace}/{name}")
        is_new = readiness.note(workload, are_ready, world.settings, now)
        if is_new:
            world.write(workload)
            world.deliver()
        return is_new

    def evict(self, name: str, *, namespace: str, now: int, reason: str) -> bool:
        """Evict a workload."""
        return self.world.evict(name, namespace=namespace, now=now, reason=reason)

    def release(self, name: str, *, namespace: str, now: int) -> bool:
        """Release an evicted workload whose job has stopped."""
        return self.world.release(name, namespace=namespace, now=now)

    def fork(self) -> ReferenceEngine:
        """Return itself: nothing continues with what the engine was forked from."""
        return self

    def workload(self, name: str, *, namespace: str) -> WorkloadState:
        """Return the state of a workload."""
        key = f"{namespace}/{name}"
        if key not in self.world.kind("Workload"):
            raise UnknownObjectError(ObjectRef("Workload", name, namespace))
        return self._state(self.world.kind("Workload")[key])

    def workloads(self) -> tuple[WorkloadState, ...]:
        """Return all workloads."""
        return tuple(self._state(item) for _, item in sorted(self.world.kind("Workload").items()))

    def _state(self, workload: dict[str, Any]) -> WorkloadState:
        status = workload.get("status") or {}
        true = {condition["type"] for condition in status.get("conditions") or () if condition["status"] == "True"}
        stage = next((stage for kind, stage in _STAGES if kind in true), Stage.PENDING)
        metadata = workload["metadata"]
        queue = workload["spec"].get("queueName", "")
        name = f"{metadata.get('namespace', '')}/{metadata['name']}"
        waiting = self.world.queues.get(self.world.local_queues.get(f"{metadata.get('namespace', '')}/{queue}", ""))
        place = None
        if waiting is not None:
            place = "active" if name in waiting.active else "inadmissible" if name in waiting.inadmissible else None
        return WorkloadState(
            metadata.get("namespace", ""), metadata["name"], stage, queue, None, 0, "", "", place, status
        )


def _plain_spec(workload: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a workload, with defaults for the fields that a history changes."""
    return {"active": True, "priority": 0, **workload["spec"]}


def _has_timers(workload: dict[str, Any]) -> bool:
    """Return whether time alone can change something about a workload."""
    return bool(workload["status"].get("requeueState")) or conditions.is_true(workload, "Admitted")
