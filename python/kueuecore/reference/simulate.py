"""Whole runs through virtual time: workloads come, run and end, and cycle follows cycle.

Around the scheduler stands what a cluster has: jobs that run as long as they are said to, that stop when they are
evicted, and admission checks that are ready at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kueuecore.reference import conditions, eviction, times
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision
from kueuecore.reference.objects import complete, key
from kueuecore.reference.settings import Json
from kueuecore.reference.world import World

# Timers of the same instant go in this order, then by key.
_STOPPED, _DONE, _SAMPLE = 0, 1, 6


@dataclass(frozen=True)
class SimulatedCycle:
    """A cycle of a run; `parked` are the keys that it set aside."""

    number: int
    time: int
    decision: Decision
    parked: tuple[str, ...]


@dataclass
class Run:
    """What came of a run. `is_cut`: it was ended by `max_cycles`."""

    world: World
    start: int
    cycles: list[SimulatedCycle] = field(default_factory=list)
    n_cycles: int = 0
    is_cut: bool = False


def simulate(
    objects: Iterable[Json],
    events: Iterable[Json] = (),
    *,
    configuration: Json | None = None,
    now: str | int,
    trusted: bool = False,
    cycle_seconds: float = 1.0,
    quiet_cycles: int | None = None,
    max_cycles: int | None = 1_000_000,
    eviction_seconds: float = 0.0,
) -> Run:
    """Run until nothing is left to happen.

    Args:
        objects: What is there from the start.
        events: What happens from outside, such as `{"at": 3, "op": "create", "object": {...}, "runSeconds": 60}`; `op`
            is create, update, finish or delete, the last two with a `key`.
        configuration: Kueue's Configuration as a dict.
        now: The time of the beginning.
        trusted: Take manifests as they are.
        cycle_seconds: How long a cycle takes.
        quiet_cycles: So many cycles without a visible change end a round; by default one more than the most flavors of
            any resource group.
        max_cycles: Stop after this many.
        eviction_seconds: How long the job of an evicted workload takes to stop.
    """
    world = World((), configuration=configuration, now=now, trusted=trusted)
    simulation = _Simulation(world, trusted, int(cycle_seconds * times.SECOND), int(eviction_seconds * times.SECOND))
    for manifest in objects:
        world.apply([manifest], trusted=trusted)
        if manifest["kind"] == "LocalQueue":
            simulation.sample(key(complete(dict(manifest))))
    world.settle(simulation.play)
    simulation.run(list(events), quiet_cycles, max_cycles)
    return simulation.result


class _Simulation:
    def __init__(self, world: World, trusted: bool, cycle_ns: int, eviction_ns: int) -> None:
        self.world, self.trusted = world, trusted
        self.cycle_ns, self.eviction_ns = cycle_ns, eviction_ns
        self.timers: dict[tuple[int, str], int] = {}
        self.run_ns: dict[str, int] = {}
        self.running: set[str] = set()
        self.result = Run(world, world.now)

    def run(self, events: list[Json], quiet_cycles: int | None, max_cycles: int | None) -> None:
        """Go from moment to moment: what happens, what is due, then cycles."""
        world, fire = self.world, {_STOPPED: self._release, _DONE: self._end, _SAMPLE: self.sample}
        happenings = [(world.now + int(event["at"] * times.SECOND), event) for event in events]
        while happenings or any(kind != _SAMPLE for kind, _ in self.timers):
            moment = min([time for time, _ in happenings[:1]] + list(self.timers.values()))
            world.now = max(world.now, moment)
            while happenings and happenings[0][0] == moment:
                self._happen(happenings.pop(0)[1])
                world.settle(self.play)
            while due := [timer for timer, time in self.timers.items() if time == moment]:
                del self.timers[min(due)]
                kind, name = min(due)
                fire[kind](name)
                world.settle(self.play)
            world.flush()
            if self._round(quiet_cycles, max_cycles):
                return

    def _round(self, quiet_cycles: int | None, max_cycles: int | None) -> bool:
        """Cycles, until they change nothing any more. Says whether there were too many."""
        world, n_quiet = self.world, 0
        groups = [g for queue in world.kind("ClusterQueue").values() for g in queue["spec"].get("resourceGroups") or ()]
        limit = quiet_cycles or 1 + max((len(group.get("flavors") or ()) for group in groups), default=0)
        while n_quiet < limit and any(
            queue.active for name, queue in world.queues.items() if world.cache.is_active(name)
        ):
            if self.result.n_cycles == max_cycles:
                self.result.is_cut = True
                return True
            before, time = self._waiting(), world.now
            decision = Cycle(world).run()
            self.result.n_cycles += 1
            were, are = ({name for _, parked in each for name in parked} for each in (before, self._waiting()))
            self.result.cycles.append(SimulatedCycle(self.result.n_cycles, time, decision, tuple(sorted(are - were))))
            world.settle(self.play)
            is_quiet = not decision.admissions and not decision.preemptions and before == self._waiting()
            n_quiet = n_quiet + 1 if is_quiet else 0
            world.flush()
            world.now += self.cycle_ns
        return False

    def _waiting(self) -> list[tuple[set[str], set[str]]]:
        """What is in each heap, and what is parked."""
        return [(set(queue.active), set(queue.inadmissible)) for queue in self.world.queues.values()]

    def _happen(self, event: Json) -> None:
        """Something from outside. What names a workload that is gone is ignored."""
        world = self.world
        match event["op"]:
            case "finish":
                self._end(event["key"])
            case "delete":
                namespace, _, name = event["key"].partition("/")
                world.delete("Workload", name, namespace=namespace)
                self.play(event["key"])
            case "update" if event["object"]["kind"] == "Workload":
                self._update(complete(event["object"], defaults=not self.trusted))
            case _:
                if event.get("runSeconds") is not None:
                    self.run_ns[key(complete(event["object"]))] = int(event["runSeconds"] * times.SECOND)
                world.apply([event["object"]], trusted=self.trusted)

    def _update(self, manifest: Json) -> None:
        """Somebody changes a Workload, but for its status."""
        if key(manifest) in self.world.kind("Workload"):
            workload = self.world.owned(key(manifest))
            given = {part: manifest["metadata"][part] for part in ("labels", "annotations")}
            generation = workload["metadata"]["generation"] + (workload["spec"] != manifest["spec"])
            metadata = {**workload["metadata"], **given, "generation": generation}
            workload |= {"metadata": metadata, "spec": manifest["spec"]}
            if "reclaimablePods" in manifest["status"]:
                workload["status"]["reclaimablePods"] = manifest["status"]["reclaimablePods"]
            self.world.write(workload)

    def _end(self, name: str) -> None:
        if name in self.world.kind("Workload"):
            self.world.end(name, "done")

    def _release(self, name: str) -> None:
        if name in self.world.kind("Workload"):
            workload = self.world.owned(name)
            if conditions.has_reservation(workload) and not conditions.is_true(workload, "Finished"):
                eviction.release(workload, self.world.now, self.world.settings)
                self.world.write(workload)

    def sample(self, name: str) -> None:
        """Look at what a LocalQueue uses, and again after a while (rules/09 §1.4)."""
        world = self.world
        queue = world.local_queues.get(name)
        if world.settings.has_admission_fair_sharing and queue is not None and world.cache.is_active(queue):
            self.timers[_SAMPLE, name] = world.ledger.sample(name, world.admitted_in(name), world.now)

    def play(self, name: str) -> None:
        """What the job of a workload and its checks do about its status."""
        workload = self.world.kind("Workload").get(name)
        is_over = workload is None or conditions.is_true(workload, "Finished")
        is_told = workload is not None and conditions.is_true(workload, "Evicted")
        if workload is None or is_over or is_told or not conditions.is_true(workload, "Admitted"):
            self.running.discard(name)
            self.timers.pop((_DONE, name), None)
        elif name not in self.running:
            self.running.add(name)
            if name in self.run_ns:
                self.timers[_DONE, name] = self.world.now + self.run_ns[name]
        if workload is None or is_over:
            # The moment at which a deleted job has stopped still comes, though nothing is left to stop.
            return
        if not is_told or not conditions.has_reservation(workload):
            self.timers.pop((_STOPPED, name), None)
        elif self.eviction_ns == 0:
            self._release(name)
        else:
            self.timers[_STOPPED, name] = conditions.since(workload, "Evicted") + self.eviction_ns
        workload = self.world.owned(name)
        waits = [check for check in conditions.check_states(workload) if check["state"] == "Pending"]
        if waits and conditions.has_reservation(workload) and not is_told:
            for check in waits:
                check |= {"state": "Ready", "message": "Ready at once"}
            self.world.write(workload)
