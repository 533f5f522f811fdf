"""Runs a world through virtual time: workloads come, run and end, and cycle follows cycle.

Everything acts when it is due: a cycle takes some time, and what is due until its end happens first, each at its own
time; only then does the next cycle begin. Kueue's recorded runs follow another rule: what is due waits for the end of a
round of cycles.

Around the scheduler there is what a cluster has: jobs that run for a given time, stop when they are evicted, and whose
pods linger on failed nodes; and admission checks that are ready at once or after a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kueuecore.reference import conditions, eviction, readiness, times
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Decision
from kueuecore.reference.objects import complete, key
from kueuecore.reference.played_pods import PlayedPods
from kueuecore.reference.settings import Json
from kueuecore.reference.topology import watch
from kueuecore.reference.topology.nodes import is_ready
from kueuecore.reference.world import World

# Timers of the same instant go in this order, then by key.
_STOPPED, _DONE, _CHECKED, _READY, _FAILED, _LOOK, _SAMPLE = range(7)


_OF_THE_CLUSTER = ("Node", "Pod", "ResourceFlavor", "Topology")


@dataclass(frozen=True)
class SimulatedCycle:
    """A cycle of a run; `parked` are the keys that it set aside."""

    number: int
    time: int
    decision: Decision
    parked: tuple[str, ...]


@dataclass
class Run:
    """The result of a run. `is_cut`: it was ended by `max_cycles`."""

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
    admission_checks: Mapping[str, Json] | None = None,
    cuts_at_once: bool = False,
) -> Run:
    """Run until nothing is left to happen.

    Args:
        objects: The initial objects.
        events: External events, such as `{"at": 3, "op": "create", "object": {...}, "runSeconds": 60}`; `op` is create,
            update, finish or delete, the last two with a `key`, and `kind` if it is not a Workload. With waiting for
            pods, `readySeconds` says when they are ready after each admission, `failSeconds` and `recoverSeconds` when
            one fails and when it is ready again. `lingerSeconds`: how long pods stay on a node that has failed.
        configuration: Kueue's Configuration as a dict.
        now: The initial time.
        trusted: Take manifests as they are.
        cycle_seconds: How long a cycle takes.
        quiet_cycles: How many cycles without a visible change end a round; by default one more than the largest number
            of flavors in any resource group.
        max_cycles: The maximum number of cycles.
        eviction_seconds: How long the job of an evicted workload takes to stop.
        after_rounds: Whether what is due waits for the end of a round of cycles, as in Kueue's recorded runs.
        admission_checks: By name, after how many `seconds` a check is ready, and which `nodeSelector` it adds to pods.
        cuts_at_once: Whether the last of `max_cycles` ends the run, rather than the first beyond.
    """
    world = World((), configuration=configuration, now=now, trusted=trusted)
    simulation = _Simulation(world, trusted, int(cycle_seconds * times.SECOND), int(eviction_seconds * times.SECOND))
    simulation.after_rounds, simulation.checks = after_rounds, admission_checks or {}
    simulation.cuts_at_once = cuts_at_once
    for manifest in objects:
        if manifest["kind"] in _OF_THE_CLUSTER:
            simulation.change("create", manifest)
        else:
            world.apply([manifest], trusted=trusted)
        simulation.begin_samples()
    world.settle(simulation.play)
    simulation.run(list(events), quiet_cycles, max_cycles)
    return simulation.result


class _Simulation:
    def __init__(self, world: World, trusted: bool, cycle_ns: int, eviction_ns: int) -> None:
        self.world, self.trusted = world, trusted
        self.cycle_ns, self.eviction_ns = cycle_ns, eviction_ns
        self.timers: dict[tuple[int, str], int] = {}
        self.jobs: dict[str, Json] = {}
        self.checks: Mapping[str, Json] = {}
        # Nodes to check once pods have left them, and when.
        self.pods, self.node_timers = PlayedPods(world, self.jobs), set[tuple[int, str]]()
        self.running: set[str] = set()
        # With waiting for pods: whose are ready, whose have been since they started, and how often each started.
        self.ready: set[str] = set()
        self.were_ready: set[str] = set()
        # Whose pods are on a lost node or gone from there, and of whom some have gone since all were there last.
        self.missing: set[str] = set()
        self.gone: set[str] = set()
        self.n_starts: dict[str, int] = {}
        self.happenings: list[tuple[int, Json]] = []
        self.result = Run(world, world.now)
        self.after_rounds = self.cuts_at_once = False
        # When the scheduler is free for the next cycle.
        self.free_at = world.now

    def run(self, events: list[Json], quiet_cycles: int | None, max_cycles: int | None) -> None:
        """Go from moment to moment: events first, then what is due, then cycles."""
        self.happenings = [(self.world.now + int(event["at"] * times.SECOND), event) for event in events]
        while self._comes_more():
            self._moment()
            self.world.flush()
            if self._round(quiet_cycles, max_cycles):
                break
        self.world.now = max(self.world.now, self.free_at)

    def _comes_more(self) -> bool:
        """Return whether anything but samples is still to happen."""
        is_busy = bool(self.happenings) or any(kind != _SAMPLE for kind, _ in self.timers)
        others = (self.world.second_passes.next(), self.world.next_ring())
        return is_busy or any(time is not None for time in others) or bool(self._node_timers())

    def _node_timers(self) -> set[tuple[int, str]]:
        """Return when to check which nodes again."""
        return self.node_timers | {(time, name) for name, time in self.world.node_checks.items()}

    def _next(self) -> int | None:
        """Return when something is due next."""
        others = (self.world.second_passes.next(), self.world.next_ring())
        moments = [time for time, _ in self.happenings[:1]] + list(self.timers.values())
        moments += [time for time, _ in self._node_timers()] + [time for time in others if time is not None]
        return min(moments, default=None)

    def _moment(self) -> None:
        """Advance to the next moment, and do everything due then."""
        world, happenings = self.world, self.happenings
        moment = self._next()
        assert moment is not None, "something is due"
        world.now = max(world.now, moment)
        while happenings and happenings[0][0] == moment:
            self._happen(happenings.pop(0)[1])
            self.begin_samples()
            world.settle(self.play)
        while self._fire(moment):
            world.settle(self.play)
        world.ring()

    def _fire(self, moment: int) -> bool:
        """Do one thing that is due. Returns whether there was one."""
        fire = {_STOPPED: self._release, _DONE: self._end, _LOOK: self._look, _SAMPLE: self.sample}
        fire |= {_READY: self._pods_ready, _FAILED: self._pod_failed, _CHECKED: self._pass_checks}
        if due := [timer for timer, time in self.timers.items() if time == moment]:
            kind, name = min(due)
            del self.timers[kind, name]
            fire[kind](name)
        elif self.world.second_passes.next() == moment:
            self.world.second_passes.advance(moment)
        elif nodes := sorted(name for time, name in self._node_timers() if time == moment):
            self.node_timers.discard((moment, nodes[0]))
            watch.look(self.world, nodes[0])
        else:
            return False
        return True

    def _wait(self) -> None:
        """Sleep until all pods are ready; earlier writes of the scheduler itself do not wake it (rules/07 §6)."""
        self.world.settle(self.play)
        while self._comes_more():
            self._moment()
            if self.world.cache.are_pods_ready():
                return

    def _round(self, quiet_cycles: int | None, max_cycles: int | None) -> bool:
        """Run cycles until they change nothing any more. Returns whether `max_cycles` ended the run."""
        world, n_quiet = self.world, 0
        limit = self._patience(quiet_cycles)
        while n_quiet < limit and self._has_heads():
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
            world.flush()
            retried = self._waiting()
            decision = Cycle(world, wait=self._wait).run()
            self.result.n_cycles += 1
            were, are = ({name for _, parked in each for name in parked} for each in (retried, self._waiting()))
            self.result.cycles.append(SimulatedCycle(self.result.n_cycles, time, decision, tuple(sorted(are - were))))
            world.settle(self.play)
            decided = (decision.admissions, decision.placements, decision.preemptions, decision.evictions)
            is_quiet = not any(decided) and before == self._waiting()
            n_quiet = n_quiet + 1 if is_quiet else 0
            world.flush()
            self.free_at = world.now + self.cycle_ns
            if self.after_rounds:
                world.now = self.free_at
                world.second_passes.advance(world.now)
            if self.cuts_at_once and self.result.n_cycles == max_cycles:
                self.result.is_cut = True
                return True
        return False

    def _has_heads(self) -> bool:
        queues = self.world.queues.items()
        is_any = any(queue.active for name, queue in queues if self.world.cache.is_active(name))
        rings_at = self.world.next_ring()
        is_any |= rings_at is not None and rings_at <= self.world.now
        return is_any or bool(self.world.second_passes.ready)

    def _patience(self, quiet_cycles: int | None) -> int:
        """Return how many cycles without a visible change end a round."""
        groups = [
            g for queue in self.world.kind("ClusterQueue").values() for g in queue["spec"].get("resourceGroups") or ()
        ]
        return quiet_cycles or 1 + max((len(group.get("flavors") or ()) for group in groups), default=0)

    def _waiting(self) -> list[tuple[set[str], set[str]]]:
        """Return what is in each heap, and what is parked."""
        return [(set(queue.active), set(queue.inadmissible)) for queue in self.world.queues.values()]

    def _happen(self, event: Json) -> None:
        """Apply an external event. One that names a missing workload is ignored."""
        world = self.world
        match event["op"]:
            case "finish":
                self._end(event["key"])
            case "delete":
                self._delete(event.get("kind", "Workload"), event["key"])
            case "update" if event["object"]["kind"] == "Workload":
                self._update(complete(event["object"], defaults=not self.trusted))
            case "create" | "update" if event["object"]["kind"] in _OF_THE_CLUSTER:
                self.change(event["op"], event["object"])
            case _:
                self.jobs[key(complete(event["object"]))] = event
                world.apply([event["object"]], trusted=self.trusted)

    def _delete(self, kind: str, name: str) -> None:
        if kind == "Node":
            self._note_node(name, None)
        namespace, _, own = name.rpartition("/")
        self.world.delete(kind, own, namespace=namespace)
        if kind == "Workload":
            self.play(name)

    def change(self, op: str, manifest: Json) -> None:
        """Create a node, a pod or a topology, or update it if it exists."""
        new = complete(dict(manifest))
        kind, name = new["kind"], key(new) if new["metadata"]["namespace"] else new["metadata"]["name"]
        if op == "create" or name in self.world.kind(kind):
            if kind == "Node":
                self._note_node(name, new)
            self.world.apply([manifest], trusted=self.trusted)

    def _note_node(self, name: str, node: Json | None) -> None:
        """Note that a node is about to change. After a failure, it is checked again when pods have left it."""
        was_bad = name in self.pods.bad_since
        has_turned = self.pods.note(name, node)
        if has_turned and self.world.settings.waits_for_pods:
            # Jobs report their pods before Kueue looks at the node.
            self.world.dirty |= {workload for workload, _ in self.pods.on(name)}
            self.world.settle(self.play)
        if name not in self.pods.bad_since:
            self.node_timers = {(time, other) for time, other in self.node_timers if other != name}
        elif not was_bad and self._is_looked_at(node):
            self.node_timers |= {(time, name) for time in self.pods.ends(name)}

    def _is_looked_at(self, node: Json | None) -> bool:
        """Return whether Kueue looks at a node that has become bad (rules/08 §13.1)."""
        on = self.world.settings.on
        by_readiness = node is not None and not is_ready(node)
        return on("TASFailedNodeReplacement") and (by_readiness or on("TASReplaceNodeOnNodeTaints"))

    def _update(self, manifest: Json) -> None:
        """Update a Workload as a user does, without its status."""
        if key(manifest) in self.world.kind("Workload"):
            workload = self.world.owned(key(manifest))
            given = {part: manifest["metadata"][part] for part in ("labels", "annotations")}
            generation = workload["metadata"]["generation"] + (workload["spec"] != manifest["spec"])
            metadata = {**workload["metadata"], **given, "generation": generation}
            workload |= {"metadata": metadata, "spec": manifest["spec"]}
            if "reclaimablePods" in manifest["status"]:
                workload["status"]["reclaimablePods"] = manifest["status"]["reclaimablePods"]
            # Without a change there is no event.
            if workload != self.world.kind("Workload")[key(manifest)]:
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

    def begin_samples(self) -> None:
        """Begin to sample LocalQueues that are new, go on, or whose ClusterQueue has become active."""
        for name in sorted(self.world.local_queues):
            if (_SAMPLE, name) not in self.timers:
                self.sample(name)

    def sample(self, name: str) -> None:
        """Sample the usage of a LocalQueue, and again after a while (rules/09 §1.4)."""
        world = self.world
        queue = world.local_queues.get(name)
        if world.settings.has_admission_fair_sharing and queue is not None and world.cache.is_active(queue):
            self.timers[_SAMPLE, name] = world.ledger.sample(name, world.admitted_in(name), world.now)

    def _after(self, kind: int, name: str, seconds: float | None) -> None:
        """Set a timer; None: its event never happens."""
        self.timers.pop((kind, name), None)
        if seconds is not None:
            self.timers[kind, name] = self.world.now + int(seconds * times.SECOND)

    def _start(self, name: str) -> None:
        """Start the job of a workload; if nothing waits for its pods, they are ready at once."""
        self.n_starts[name] = self.n_starts.get(name, -1) + 1
        for names in (self.were_ready, self.missing, self.gone):
            names.discard(name)
        self._note_pods(name)
        self._start_pods(name)

    def _start_pods(self, name: str) -> None:
        """Start the pods of a job, or those that replace lost ones."""
        moments = self.jobs.get(name, {}).get("readySeconds") if self.world.settings.waits_for_pods else None
        if moments:
            self.ready.discard(name)
            self._after(_READY, name, moments[min(self.n_starts[name], len(moments) - 1)])
        else:
            self._pods_ready(name)

    def _note_pods(self, name: str) -> None:
        """Note which pods are missing: none is ready on a lost node, nor until it is replaced (rules/07 §6)."""
        workload = self.world.kind("Workload")[name]
        if not self.world.settings.waits_for_pods:
            return
        if workload["status"].get("unhealthyNodes"):
            self.gone.add(name)
        if self.pods.are_missing(workload):
            self.missing.add(name)
        else:
            self.missing.discard(name)

    def _follow_pods(self, name: str) -> None:
        were_missing = name in self.missing
        self._note_pods(name)
        if name in self.missing or not were_missing:
            return
        if name in self.gone:
            self.gone.discard(name)
            self._start_pods(name)
        elif name in self.ready:
            self._pods_ready(name)

    def _pods_ready(self, name: str) -> None:
        self.ready.add(name)
        if name not in self.were_ready and name not in self.missing:
            self.were_ready.add(name)
            job = self.jobs.get(name, {})
            # The pods of a job that has ended may still become ready, and fail; it does not end again.
            if not conditions.is_finished(self.world.owned(name)):
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
        """Write whether the pods are ready, if something waits for them. Returns whether that is news."""
        workload = self.world.owned(name)
        if not self.world.settings.waits_for_pods or conditions.is_finished(workload):
            return False
        is_new = readiness.note(workload, name in self.ready - self.missing, self.world.settings, self.world.now)
        if is_new:
            self.world.write(workload)
        return is_new

    def play(self, name: str) -> None:
        """Let the job of a workload and its checks react to its status."""
        workload = self.world.kind("Workload").get(name)
        is_over = workload is None or conditions.is_finished(workload)
        is_told = workload is not None and conditions.is_true(workload, "Evicted")
        if workload is None or is_over or is_told or not conditions.is_true(workload, "Admitted"):
            # Pending events of the pods of a job that has ended still occur, though they change nothing.
            ended = (_DONE,) if workload is not None and is_over else (_DONE, _READY, _FAILED)
            if name in self.running or workload is None:
                self.timers = {
                    timer: at for timer, at in self.timers.items() if timer not in [(k, name) for k in ended]
                }
            self.running.discard(name)
        elif name not in self.running:
            self.running.add(name)
            self._start(name)
        if name in self.running:
            self._follow_pods(name)
        look = None
        if workload is not None:
            is_elsewhere = self.world.runs_elsewhere(workload)
            look = readiness.next_look(workload, self.world.settings, self.world.now, is_elsewhere=is_elsewhere)
        self.timers.pop((_LOOK, name), None)
        if look is not None:
            self.timers[_LOOK, name] = look
        if workload is None or is_over:
            self.timers.pop((_CHECKED, name), None)
            # The stop of a deleted job still occurs, though nothing is left to stop.
            return
        if self._tell(name):
            # The rest follows once the change is observed.
            return
        if not is_told or not conditions.has_reservation(workload):
            self.timers.pop((_STOPPED, name), None)
        elif self.eviction_ns == 0:
            self._release(name)
        else:
            self.timers[_STOPPED, name] = conditions.since(workload, "Evicted") + self.eviction_ns
        self._wait_for_checks(name)

    def _pending_checks(self, workload: Json) -> list[Json]:
        """Return the checks that should answer now that the workload holds quota."""
        is_asked = conditions.has_reservation(workload) and not conditions.is_true(workload, "Evicted")
        return [check for check in conditions.check_states(workload) if check["state"] == "Pending" and is_asked]

    def _wait_for_checks(self, name: str) -> None:
        """Make checks ready at once, or all together after the longest of their times."""
        workload = self.world.kind("Workload")[name]
        waits = self._pending_checks(workload)
        self.timers.pop((_CHECKED, name), None)
        longest = max((self.checks.get(check["name"], {}).get("seconds", 0) for check in waits), default=0)
        at = conditions.since(workload, "QuotaReserved") + int(longest * times.SECOND)
        if waits and at > self.world.now:
            self.timers[_CHECKED, name] = at
        elif waits:
            self._pass_checks(name)

    def _pass_checks(self, name: str) -> None:
        workload = self.world.owned(name)
        for check in self._pending_checks(workload):
            check |= {"state": "Ready", "message": "Ready at once"}
            if selector := self.checks.get(check["name"], {}).get("nodeSelector"):
                updates = [{"name": p["name"], "nodeSelector": selector} for p in workload["spec"]["podSets"]]
                check["podSetUpdates"] = updates
        self.world.write(workload)
