"""The engine against the reference model, move by move: what both decide, write, count and queue must be the same."""

from __future__ import annotations

import copy
import json
from typing import Any, Self, cast

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, UnknownObjectError
from kueuecore.reference.objects import local_queue_key
from kueuecore.reference.world import World
from kueuecore.states import Stage, WorkloadState
from kueuecore.testing.invariants import amount
from kueuecore.testing.play import Observation, Play, Told, first_difference, holds_quota
from kueuecore.testing.scenario import START, Move, Scenario, key_of

__all__ = ["Comparison", "ReferenceEngine", "compare"]

_UNLIMITED = 2**63 - 1


class ReferenceEngine:
    """The reference model with what a play asks of an engine, and an API server that stores its objects."""

    def __init__(self, world: World) -> None:
        self.world = world

    @classmethod
    def of(cls, scenario: Scenario) -> Self:
        """The reference with the objects of a scenario."""
        found = cls(World((), configuration=scenario.configuration, now=START))
        # What holds quota is there before its LocalQueue, which takes it over then, as after a restart.
        running = [it for it in scenario.objects if "status" in it]
        queues = [it for it in scenario.objects if it["kind"] == "LocalQueue"]
        others = [it for it in scenario.objects if it not in running and it not in queues]
        found._put([*(it for it in others if it["kind"] != "Workload"), *running, *queues], START)
        found._put([it for it in others if it["kind"] == "Workload"], START)
        return found

    def apply(self, objects: bytes, *, now: int) -> None:
        """Create an object, or take over another version of it."""
        self._put([json.loads(objects)], now)

    def _put(self, objects: list[JsonObject], now: int) -> None:
        self.world.apply([self._stored(copy.deepcopy(it)) for it in objects], now=now)

    def _stored(self, given: JsonObject) -> JsonObject:
        """What an API server would store: a generation, and of an update what only a status update changes."""
        metadata = object_at(given, "metadata")
        old: JsonObject | None = self.world.kind(text_at(given, "kind")).get(key_of(given))
        if old is None:
            metadata["generation"] = 1
            return given
        before = object_at(old, "metadata")
        metadata |= {name: before[name] for name in ("creationTimestamp", "generation") if name in before}
        if text_at(given, "kind") == "Workload":
            if "status" not in given and "status" in old:
                given["status"] = copy.deepcopy(old["status"])
            generation = before.get("generation", 0)
            if _plain_spec(given) != _plain_spec(old) and isinstance(generation, int):
                metadata["generation"] = generation + 1
        return given

    def delete(self, kind: str, name: str, *, namespace: str = "", now: int) -> bool:
        """Delete an object. What waits in a ClusterQueue that is gone is looked at at once, as the engine does."""
        if kind == "ClusterQueue":
            orphans = {key for key, to in self.world.local_queues.items() if to == name}
            workloads = self.world.kind("Workload").items()
            self.world.dirty |= {key for key, it in workloads if local_queue_key(it) in orphans}
        return self.world.delete(kind, name, namespace=namespace, now=now)

    # The reference's decisions and events have the fields of the engine's.
    def cycle(self, now: int) -> Any:
        """Run a cycle."""
        return self.world.cycle(now)

    def reconcile(self, now: int) -> Any:
        """Write what is written between cycles."""
        return tuple(self.world.reconcile(now))

    def finish(self, name: str, *, namespace: str, now: int) -> bool:
        """The job of a workload ends."""
        self.workload(name, namespace=namespace)
        return self.world.finish(name, namespace=namespace, now=now)

    def evict(self, name: str, *, namespace: str, now: int, reason: str) -> bool:
        """Evict a workload."""
        return self.world.evict(name, namespace=namespace, now=now, reason=reason)

    def release(self, name: str, *, namespace: str, now: int) -> bool:
        """The job of an evicted workload has stopped."""
        return self.world.release(name, namespace=namespace, now=now)

    def fork(self) -> ReferenceEngine:
        """A copy."""
        return ReferenceEngine(self.world.fork())

    def workload(self, name: str, *, namespace: str) -> WorkloadState:
        """Where a workload stands."""
        key = f"{namespace}/{name}"
        if key not in self.world.kind("Workload"):
            raise UnknownObjectError(ObjectRef("Workload", name, namespace))
        return self._state(self.world.kind("Workload")[key])

    def workloads(self) -> tuple[WorkloadState, ...]:
        """All workloads."""
        return tuple(self._state(it) for _, it in sorted(self.world.kind("Workload").items()))

    def _state(self, workload: JsonObject) -> WorkloadState:
        status = object_at(workload, "status")
        conditions = status.get("conditions") or []
        assert isinstance(conditions, list)
        true = {text_at(it, "type") for it in conditions if text_at(it, "status") == "True"}
        stages = (("Finished", Stage.FINISHED), ("Admitted", Stage.ADMITTED), ("QuotaReserved", Stage.QUOTA_RESERVED))
        stage = next((stage for kind, stage in stages if kind in true), Stage.PENDING)
        namespace, name = text_at(workload, "metadata", "namespace"), text_at(workload, "metadata", "name")
        return WorkloadState(
            namespace, name, stage, text_at(workload, "spec", "queueName"), None, 0, "", "", None, status
        )


def _plain_spec(workload: JsonObject) -> JsonObject:
    """The spec of a workload with the defaults of what a history changes."""
    return {"active": True, "priority": 0, **object_at(workload, "spec")}


class _Echo:
    """Applies what a cycle has written, as a watch brings it to a controller: Kueue hears of its own writes, too."""

    def __init__(self, scenario: Scenario) -> None:
        self._objects = {key_of(it): it for it in scenario.objects if it.get("kind") == "Workload"}

    def before(self, engine: Engine, move: Move) -> None:
        """Nothing is written yet."""

    def after(self, engine: Engine, told: Told) -> None:
        """Bring back what the cycle has written."""
        given = told.move.object
        if given is not None and given.get("kind") == "Workload" and not told.refused:
            self._objects[key_of(given)] = given
        if told.decision is not None:
            for written in (*told.decision.admissions, *told.decision.preemptions):
                status = dict(engine.workload(written.name, namespace=written.namespace).status)
                generation = max(it.get("observedGeneration", 0) for it in status["conditions"])
                plain = self._objects[written.key]
                metadata = {**object_at(plain, "metadata"), "generation": generation}
                written_object = {**plain, "metadata": metadata, "status": status}
                try:
                    engine.apply(written_object, now=told.time)
                except ManifestError:
                    # A saturated usage is no multiple of the count, which those who write statuses may not write.
                    engine.apply(written_object, now=told.time, trusted=True)

    def settled(self, engine: Engine) -> None:
        """All is written."""


class Comparison:
    """An engine and the reference, on which the same is played.

    Args:
        scenario: Their objects and Configuration; its moves are not played yet.

    Example:
        >>> from kueuecore.testing import Move, MoveKind, Scenario
        >>> Comparison(Scenario(())).do(Move(kind=MoveKind.CYCLE)).decision
        <Decision of cycle 0: 0 admitted, 0 preempted, 0 pending>
    """

    def __init__(self, scenario: Scenario) -> None:
        self.play = Play.of(scenario, watchers=[_Echo(scenario)])
        # It has all that a play asks for.
        self.reference: Play = Play(cast(Engine, ReferenceEngine.of(scenario)))

    def do(self, move: Move) -> Told:
        """Play a move on both, and compare all that can be seen.

        Raises:
            AssertionError: They differ; it says where first, the engine's before the reference's.
        """
        told = self.play.do(move)
        if told.refused:
            # The reference checks nothing.
            self.reference.pass_by(move)
        else:
            answer = self.reference.do(move)
            difference = first_difference(_sorted(told.to_json()), _sorted(answer.to_json()))
            assert difference is None, f"after {move}, the engine and the reference differ: {difference}"
        difference = first_difference(_seen_of_engine(self.play.engine), self._seen_of_reference())
        assert difference is None, f"after {move}, the states of engine and reference differ: {difference}"
        return told

    def _seen_of_reference(self) -> Observation:
        engine: object = self.reference.engine
        assert isinstance(engine, ReferenceEngine)
        world = engine.world
        usage = {}
        for row in world.quota():
            if row["usage"]:
                factor = 1 if row["resource"] == "cpu" else 1000
                cell = f"{row['kind']} {row['name']}: {row['resource']} of {row['flavor']}"
                usage[cell] = row["usage"] * factor
        return {
            "statuses": {it.key: _status(it) for it in engine.workloads()},
            "usage": dict(sorted(usage.items())),
            "order": {name: world.pending(name) for name in sorted(world.queues)},
        }


def compare(scenario: Scenario) -> None:
    """Play a scenario on the engine and on the reference, and compare after every move.

    Raises:
        AssertionError: They differ; a bug of one of them.

    Example:
        >>> from kueuecore.testing import Scenario
        >>> compare(Scenario(()))
    """
    comparison = Comparison(scenario)
    for move in scenario.moves:
        comparison.do(move)


def _seen_of_engine(engine: Engine) -> Observation:
    usage = {
        f"{row.kind} {row.name}: {row.resource} of {row.flavor}": amount(row.usage)
        for row in engine.quota()
        if amount(row.usage)
    }
    return {
        "statuses": {it.key: _status(it) for it in engine.workloads()},
        "usage": dict(sorted(usage.items())),
        "order": {name: [(it.key, it.place) for it in engine.pending(name)] for name in engine.cluster_queues()},
    }


def _status(workload: WorkloadState) -> JsonValue:
    """A status, its conditions by type: their order says nothing."""
    status = dict(workload.status)
    conditions = status.pop("conditions", None) or []
    status["conditions"] = {it["type"]: {k: v for k, v in it.items() if k != "type"} for it in conditions}
    status["holds"] = holds_quota(workload)
    return {name: value for name, value in status.items() if value not in ({}, [], None)}


def _sorted(told: Observation) -> Observation:
    """Events and pending heads in an order of their own: Kueue has several threads, and takes heads in any order."""
    pending = sorted(told.get("pending", []), key=lambda it: str(it["key"]))
    return {**told, "events": sorted(told.get("events", [])), "pending": pending}
