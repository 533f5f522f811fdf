"""Whole runs through virtual time: workloads come, run and end, and cycle follows cycle.

Whatever is due acts when it is due: a cycle takes its time, what is due until then happens first, each at its own
moment, and only then does the next cycle begin. Kueue's runs were recorded by another rule: there it waits for the end
of a round of cycles.

Around the scheduler stands what a cluster has: jobs that run as long as they are said to, that stop when they are
evicted, and admission checks that are ready at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kueuecore.reference import conditions, eviction, readiness, times
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision
from kueuecore.reference.objects import complete, key
from kueuecore.reference.settings import Json
from kueuecore.reference.world import World

# Timers of the same instant go in this order, then by key.
_STOPPED, _DONE, _READY, _FAILED, _LOOK, _SAMPLE = 0, 1, 3, 4, 5, 6


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
    after_rounds: bool = False,
) -> Run:
    """Run until nothing is left to happen.

    Args:
        objects: What is there from the start.
        events: What happens from outside, such as `{"at": 3, "op": "create", "object": {...}, "runSeconds": 60}`; `op`
            is create, update, finish or delete, the last two with a `key`. Where pods are waited for, `readySeconds`
            says when they are ready after each admission, `failSeconds` and `recoverSeconds` when one fails and when
            it is ready again.
        configuration: Kueue's Configuration as a dict.
        now: The time of the beginning.
        trusted: Take manifests as they are.
        cycle_seconds: How long a cycle takes.
        quiet_cycles: So many cycles without a visible change end a round; by default one more than the most flavors of
            any resource group.
        max_cycles: Stop after this many.
        eviction_seconds: How long the job of an evicted workload takes to stop.
        after_rounds: What is due waits for the end of a round of cycles, as in Kueue's recorded runs.
    """
    world = World((), configuration=configuration, now=now, trusted=trusted)
    simulation = _Simulation(world, trusted, int(cycle_seconds * times.SECOND), int(eviction_seconds * times.SECOND))
    simulation.after_rounds = after_rounds
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
        self.jobs: dict[str, Json] = {}
        self.running: set[str] = set()
        # Where pods are waited for: whose are ready, whose have been since they started, and how often each started.
        self.ready: set[str] = set()
        self.were_ready: set[str] = set()
        self.n_starts: dict[str, int] = {}
        self.happenings: list[tuple[int, Json]] = []
        self.result = Run(world, world.now)
        self.after_rounds = False
        # When the scheduler is free for the next cycle.
        self.free_at = world.now

    def run(self, events: list[Json], quiet_cycles: int | None, max_cycles: int | None) -> None:
        """Go from moment to moment: what happens, what is due, then cycles."""
        self.happenings = [(self.world.now + int(event["at"] * times.SECOND), event) for event in events]
        while self._comes_more():
            self._moment()
            self.world.flush()
            if self._round(quiet_cycles, max_cycles):
                break
        self.world.now = max(self.world.now, self.free_at)

    def _comes_more(self) -> bool:
        """Is anything to happen but samples?"""
        return bool(self.happenings) or any(kind != _SAMPLE for kind, _ in self.timers)

    def _next(self) -> int | None:
        """When something is due."""
        return min([time for time, _ in self.happenings[:1]] + list(self.timers.values()), default=None)

    def _moment(self) -> None:
        """What happens next, and what is due then."""
        world, happenings = self.world, self.happenings
        fire = {_STOPPED: self._release, _DONE: self._end, _LOOK: self._look, _SAMPLE: self.sample}
        fire |= {_READY: self._pods_ready, _FAILED: self._pod_failed}
        moment = self._next()
        assert moment is not None, "something is due"
        world.now = max(world.now, moment)
        while happenings and happenings[0][0] == moment:
            self._happen(happenings.pop(0)[1])
            world.settle(self.play)
        while due := [timer for timer, time in self.timers.items() if time == moment]:
            del self.timers[min(due)]
            kind, name = min(due)
            fire[kind](name)
            world.settle(self.play)

    def _wait(self) -> None:
        """A scheduler sleeps until all pods are ready; what it did itself before does not wake it (rules/07 §6)."""
        self.world.settle(self.play)
        while self._comes_more():
            self._moment()
            if self.world.cache.are_pods_ready():
                return

    def _round(self, quiet_cycles: int | None, max_cycles: int | None) -> bool:
        """Cycles, until they change nothing any more. Says whether there were too many."""
        world, n_quiet = self.world, 0
        limit = self._patience(quiet_cycles)
        while n_quiet < limit and any(
            queue.active for name, queue in world.queues.items() if world.cache.is_active(name)
        ):
            due = self._next()
            if not self.after_rounds and due is not None and due <= max(world.now, self.free_at):
                self._moment()
                world.flush()
                n_quiet, limit = 0, self._patience(quiet_cycles)
                continue
            if self.result.n_cycles == max_cycles:
                self.result.is_cut = True
                return True
            world.now = max(world.now, self.free_at)
            before, time = self._waiting(), world.now
            decision = Cycle(world, wait=self._wait).run()
            self.result.n_cycles += 1
            were, are = ({name for _, parked in each for name in parked} for each in (before, self._waiting()))
            self.result.cycles.append(SimulatedCycle(self.result.n_cycles, time, decision, tuple(sorted(are - were))))
            world.settle(self.play)
            is_quiet = not decision.admissions and not decision.preemptions and before == self._waiting()
            n_quiet = n_quiet + 1 if is_quiet else 0
            world.flush()
            self.free_at = world.now + self.cycle_ns
            if self.after_rounds:
                world.now = self.free_at
        return False

    def _patience(self, quiet_cycles: int | None) -> int:
        """How many cycles without a visible change end a round."""
        groups = [
            g for queue in self.world.kind("ClusterQueue").values() for g in queue["spec"].get("resourceGroups") or ()
        ]
        return quiet_cycles or 1 + max((len(group.get("flavors") or ()) for group in groups), default=0)

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
                self.jobs[key(complete(event["object"]))] = event
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
        self.ready.discard(name)
        if name in self.world.kind("Workload"):
            workload = self.world.owned(name)
            if conditions.has_reservation(workload) and not conditions.is_finished(workload):
                eviction.release(workload, self.world.now, self.world.settings)
                self.world.write(workload)

    def sample(self, name: str) -> None:
        """Look at what a LocalQueue uses, and again after a while (rules/09 §1.4)."""
        world = self.world
        queue = world.local_queues.get(name)
        if world.settings.has_admission_fair_sharing and queue is not None and world.cache.is_active(queue):
            self.timers[_SAMPLE, name] = world.ledger.sample(name, world.admitted_in(name), world.now)

    def _after(self, kind: int, name: str, seconds: float | None) -> None:
        """Set a timer; None: what it is for never comes."""
        self.timers.pop((kind, name), None)
        if seconds is not None:
            self.timers[kind, name] = self.world.now + int(seconds * times.SECOND)

    def _start(self, name: str) -> None:
        """The job of a workload starts; its pods are ready at once where nobody waits for them."""
        moments = self.jobs.get(name, {}).get("readySeconds") if self.world.settings.waits_for_pods else None
        index = self.n_starts[name] = self.n_starts.get(name, -1) + 1
        self.were_ready.discard(name)
        if moments:
            self.ready.discard(name)
            self._after(_READY, name, moments[min(index, len(moments) - 1)])
        else:
            self._pods_ready(name)

    def _pods_ready(self, name: str) -> None:
        self.ready.add(name)
        if name not in self.were_ready:
            self.were_ready.add(name)
            job = self.jobs.get(name, {})
            self._after(_DONE, name, job.get("runSeconds"))
            if self.world.settings.waits_for_pods:
                self._after(_FAILED, name, job.get("failSeconds"))
        self._tell(name)

    def _look(self, name: str) -> None:
        self.world.dirty.add(name)

    def _pod_failed(self, name: str) -> None:
        self.ready.discard(name)
        self._after(_READY, name, self.jobs.get(name, {}).get("recoverSeconds"))
        self._tell(name)

    def _tell(self, name: str) -> bool:
        """Write whether the pods are ready, where somebody waits for them. Says whether it is anything new."""
        workload = self.world.owned(name)
        if not self.world.settings.waits_for_pods or conditions.is_finished(workload):
            return False
        is_new = readiness.note(workload, name in self.ready, self.world.now)
        if is_new:
            self.world.write(workload)
        return is_new

    def play(self, name: str) -> None:
        """What the job of a workload and its checks do about its status."""
        workload = self.world.kind("Workload").get(name)
        is_over = workload is None or conditions.is_finished(workload)
        is_told = workload is not None and conditions.is_true(workload, "Evicted")
        if workload is None or is_over or is_told or not conditions.is_true(workload, "Admitted"):
            # What the pods of a job that has ended were about to do still comes, though it changes nothing.
            ended = (_DONE,) if workload is not None and is_over else (_DONE, _READY, _FAILED)
            if name in self.running or workload is None:
                self.timers = {
                    timer: at for timer, at in self.timers.items() if timer not in [(k, name) for k in ended]
                }
            self.running.discard(name)
        elif name not in self.running:
            self.running.add(name)
            self._start(name)
        look = None if workload is None else readiness.next_look(workload, self.world.settings, self.world.now)
        self.timers.pop((_LOOK, name), None)
        if look is not None:
            self.timers[_LOOK, name] = look
        if workload is None or is_over:
            # The moment at which a deleted job has stopped still comes, though nothing is left to stop.
            return
        if self._tell(name):
            # The rest follows when that is seen.
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
