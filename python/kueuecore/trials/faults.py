"""Histories with faults around a controller, drawn by seed, and what must hold nevertheless.

Events are lost, repeated, delayed and reordered; writes are refused, in conflict, or accepted without an answer;
processes end before and after a write; leadership moves from one replica to another. At no time is anything admitted
twice or quota given away twice; at the end no quota has leaked, and no workload is forgotten in a queue.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from kueuecore._kinds import KUEUE
from kueuecore.api_server import ApiServer
from kueuecore.controller import Controller, JobController
from kueuecore.controller.queue_statuses import with_status
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.steady_state import find_preemption_loop
from kueuecore.testing.history import START
from kueuecore.testing.invariants import amount, check_invariants
from kueuecore.times import SECOND_NS, format_time
from kueuecore.webhooks import admit
from kueuecore.writes import Answer, Verb, Write

__all__ = ["REFUSED", "FaultyHistory", "Replica"]

_NAMESPACE = "default"
# Workload sizes of which a queue has room for some but not all.
_CPUS = (1, 1, 2, 3, 4)
# Longer than any lost write waits.
_MAX_PAUSE_NS = 300 * SECOND_NS
# Enough turns for a small world to settle.
_MAX_TURNS = 60
REFUSED = Answer(error="not now")


class Replica:
    """One process: a controller and the watch events on their way to it.

    Args:
        controller: The controller.
        version: The version of the cluster up to which events were sent.
        jobs: The job controller of this process, if it has one; it observes for both.
    """

    def __init__(self, controller: Controller, version: int, jobs: JobController | None = None) -> None:
        self.controller = controller
        self.jobs = jobs
        self.observer: Controller | JobController = controller if jobs is None else jobs
        self.version = version
        self.coming: list[dict[str, Any]] = []
        # Writes that were accepted, and whose answers arrive later.
        self.late: list[tuple[Write, Answer]] = []
        # UIDs of the workloads reported as ended.
        self.ended: set[str] = set()
        self._versions: dict[str, int] = {}

    def check_memory(self) -> None:
        """Check that nothing the controller knows has become older."""
        for state in self.controller.engine.workloads():
            workload = self.controller.workload(state.name, namespace=state.namespace)
            assert workload is not None, f"{state.key} is only in the engine"
            version = int(workload["metadata"]["resourceVersion"])
            assert self._versions.get(state.name, 0) <= version, f"{state.key} is older than it was"
            self._versions[state.name] = version


class FaultyHistory:
    """A cluster, two replicas of a controller, and faults.

    Args:
        seed: The seed from which everything follows.
        make: Creates the controller of a new process.
        n_steps: How many steps to take before the faults end.

    Example:
        >>> happened = FaultyHistory(1).play()
        >>> happened["turns"] > 0
        True
    """

    _flavor: Mapping[str, Any] = {}

    def __init__(self, seed: int, *, make: Callable[[], Controller] = Controller, n_steps: int = 36) -> None:
        self.random = Random(seed)
        self._random_statuses = Random(f"statuses {seed}")
        self.make = make
        self.n_steps = n_steps
        # As strict as a server: what a server would refuse is refused here.
        self.cluster = ApiServer(now=START, webhooks=admit)
        self.happened: Counter[str] = Counter()
        self.quota: dict[str, int] = {}
        self._create_queues()
        for _ in range(self.random.randint(4, 9)):
            self._create_workload()
        self.replicas = [self._started(), self._started()]
        self.leader = self.replicas[0]

    def play(self) -> Counter[str]:
        """Play the history.

        Raises:
            AssertionError: An invariant does not hold.

        Returns:
            What happened, and how often.
        """
        happenings = [self._turn] * 10 + [self._deliver] * 8 + [self._change] * 8
        happenings += [self._resync, self._crash, self._elect, self._hear_late]
        for _ in range(self.n_steps):
            self.cluster.now += self.random.choice((0, SECOND_NS, 10 * SECOND_NS))
            self.random.choice(happenings)()
        self._end_well()
        return self.happened

    # The objects.

    def _create_queues(self) -> None:
        metadata = {"name": _NAMESPACE, "labels": {"kubernetes.io/metadata.name": _NAMESPACE}}
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self._create("ResourceFlavor", "default", self._flavor)
        shared: bool = self.random.choice((True, True, False))
        for name in ("a", "b"):
            self.quota[name] = self.random.randint(2, 5)
            self._create("ClusterQueue", name, self._queue_spec(name, shared=shared))
            self._create("LocalQueue", name, {"clusterQueue": name, "stopPolicy": "None"}, _NAMESPACE)
        self.is_shared = shared

    def _queue_spec(self, name: str, *, shared: bool) -> dict[str, Any]:
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(self.quota[name])}]}
        return {
            "namespaceSelector": {},
            "queueingStrategy": self.random.choice(("BestEffortFIFO", "BestEffortFIFO", "StrictFIFO")),
            "stopPolicy": "None",
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        } | ({"cohortName": "all"} if shared else {})

    def _create(self, kind: str, name: str, spec: Mapping[str, Any], namespace: str = "") -> None:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        self.cluster.create({"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": {**spec}})

    def _create_workload(self) -> None:
        requests = {"cpu": str(self.random.choice(_CPUS))}
        container = {"name": "c", "image": "i", "resources": {"requests": requests}}
        pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
        # Names are reused: only the UID identifies an object.
        name = f"w{self.random.randint(0, 11)}"
        spec = {
            "queueName": self.random.choice(("a", "b")),
            "active": True,
            "priority": self.random.choice((0, 0, 1, 2)),
            "podSets": [pods],
        }
        if name not in self._workloads():
            self._create("Workload", name, spec, _NAMESPACE)

    def _workloads(self) -> dict[str, dict[str, Any]]:
        return {workload["metadata"]["name"]: workload for workload in self.cluster.list("Workload")[0]}

    # Faults.

    def _started(self) -> Replica:
        replica = self._begun()
        self._list(replica)
        return replica

    def _begun(self) -> Replica:
        return Replica(self.make(), self.cluster.version)

    def _list(self, replica: Replica) -> None:
        for kind in replica.observer.kinds:
            objects, version = self.cluster.list(kind)
            problems = replica.observer.resync(kind, objects, resource_version=version, now=self.cluster.now)
            assert not problems, problems

    def _resync(self) -> None:
        self.happened["lists"] += 1
        self._list(self.random.choice(self.replicas))

    def _crash(self) -> None:
        """End a process and start another; what it had decided and not sent is never sent."""
        index = self.random.randrange(2)
        was_leader = self.replicas[index] is self.leader
        is_saved: bool = self.random.choice((True, False))
        self.happened["crashes with a save" if is_saved else "crashes"] += 1
        self.replicas[index] = self._loaded(self.replicas[index]) if is_saved else self._started()
        if was_leader:
            self.leader = self.replicas[index]

    def _loaded(self, old: Replica) -> Replica:
        """Start a process from a saved state, with the events since then, including repeats."""
        saved = json.loads(json.dumps(old.controller.save()))
        new = Replica(type(old.controller).load(saved, now=self.cluster.now), self.cluster.version)
        new.ended = old.ended
        for _, event in self.cluster.history:
            new.controller.observe(event, now=self.cluster.now)
        return new

    def _elect(self) -> None:
        """Let the other replica lead. The new leader lists first; the old one sends nothing any more."""
        self.happened["elections"] += 1
        old = self.leader
        self.leader = next(replica for replica in self.replicas if replica is not old)
        self._list(self.leader)
        old.late.clear()
        old.ended.clear()
        for write in old.controller.open_writes:
            self._refuse(old, write)

    def _deliver(self) -> None:
        """Deliver some events to a replica: in order or not; once, twice, or never."""
        replica = self.random.choice(self.replicas)
        self._put_on_the_way(replica)
        way = self.random.choice(("in order", "in order", "shuffled", "twice", "lost", "old"))
        self.happened[f"events {way}"] += 1
        events, replica.coming = replica.coming, []
        if way == "shuffled":
            self.random.shuffle(events)
        elif way == "twice":
            events += events
        elif way == "lost":
            events = [event for event in events if self.random.random() < 0.5]
        elif way == "old":
            events += [event for _, event in self.cluster.history if self.random.random() < 0.2]
        if self.random.random() < 0.2 and events:
            # The rest arrives later.
            at = self.random.randrange(len(events))
            events, replica.coming = events[:at], events[at:]
        for event in events:
            replica.observer.observe(event, now=self.cluster.now)
        replica.check_memory()

    def _put_on_the_way(self, replica: Replica) -> None:
        replica.coming += [event for version, event in self.cluster.history if version > replica.version]
        replica.version = self.cluster.version

    def _hear_late(self) -> None:
        for write, answer in self.leader.late:
            self.leader.controller.done(write, answer, now=self.cluster.now)
        self.leader.late.clear()

    def _turn(self) -> None:
        """Let the leader take a turn and write; each write meets its own fault, or none."""
        self.happened["turns"] += 1
        leader = self.leader
        turn = leader.controller.turn(self.cluster.now)
        for write in turn.writes:
            way = self.random.choice(
                ("well", "well", "well", "late", "refused", "conflict", "unheard", "before", "after")
            )
            self.happened[f"writes {way}"] += 1
            if way == "refused":
                leader.controller.done(write, REFUSED, now=self.cluster.now)
                continue
            if way == "before":
                self._restart_leader()
                return
            if way == "conflict" and write.name in self._workloads():
                self._write_of_another(write.name)
            answer = self._send(write)
            if way == "after":
                self._restart_leader()
                return
            if not answer.is_accepted or way == "unheard":
                self._refuse(leader, write)
            elif way == "late":
                leader.late.append((write, answer))
            else:
                leader.controller.done(write, answer, now=self.cluster.now)
        for item in turn.objects:
            self._turn_object(item)
            if self.leader is not leader:
                return
        self._tell_of_jobs()

    def _turn_object(self, write: Write) -> None:
        """Send the status of a queue or the deletion of a Workload; the answer may get lost."""
        way = self._random_statuses.choice(("well", "well", "well", "refused", "conflict", "unheard", "lost"))
        self.happened[f"statuses {way}"] += 1
        if way == "lost":
            return
        ref = write.object
        if way == "conflict" and self.cluster.find(ref.kind, ref.name, namespace=ref.namespace) is not None:
            labels = {"metadata": {"labels": {"version": str(self.cluster.version)}}}
            self.cluster.patch(ref.kind, ref.name, labels, namespace=ref.namespace)
        answer = REFUSED if way == "refused" else self._send_object(write)
        self.leader.controller.done(write, REFUSED if way == "unheard" else answer, now=self.cluster.now)

    def _send_object(self, write: Write) -> Answer:
        answer = self.cluster.carry_out(write)
        self.happened["deletions"] += answer.is_accepted and write.verb is Verb.DELETE
        return answer

    def _restart_leader(self) -> None:
        index = self.replicas.index(self.leader)
        self.leader = self.replicas[index] = self._started()

    def _refuse(self, replica: Replica, write: Write) -> None:
        newest = self._workloads().get(write.name)
        if newest is not None and newest["metadata"]["uid"] != write.uid:
            newest = None
        answer = Answer(newest, "refused", 404 if newest is None else 0)
        replica.controller.done(write, answer, now=self.cluster.now)

    def _send(self, write: Write) -> Answer:
        old, answer = self._workloads().get(write.name), self.cluster.carry_out(write)
        if answer.is_accepted:
            assert old is not None
            assert answer.object is not None
            self.happened["evictions"] += "Evicted" in write.gained
            self._check_write(old, answer.object)
        return answer

    def _tell_of_jobs(self) -> None:
        """Let the jobs of evicted workloads stop, sooner or later."""
        for name, workload in self._workloads().items():
            if {"Evicted", "QuotaReserved"} <= set(conditions_that_hold(workload)) and self.random.random() < 0.7:
                self.leader.controller.stopped(name, namespace=_NAMESPACE)

    def _change(self) -> None:
        """Make a change from outside."""
        names = list(self._workloads())
        what = self.random.choice(
            ("create", "create", "delete", "finish", "finish", "priority", "active", "quota", "stop")
        )
        self.happened[what] += 1
        if what == "create" or not names:
            self._create_workload()
        elif what == "quota":
            name = self.random.choice(("a", "b"))
            # Only increased: with less quota, running workloads could exceed it through no fault of the controller.
            self.quota[name] += self.random.randint(0, 1)
            self.cluster.patch("ClusterQueue", name, {"spec": self._queue_spec(name, shared=self.is_shared)})
        elif what == "stop":
            policy = self.random.choice(("None", "None", "Hold", "HoldAndDrain"))
            self.cluster.patch("ClusterQueue", self.random.choice(("a", "b")), {"spec": {"stopPolicy": policy}})
        else:
            self._change_workload(what, self.random.choice(names))

    def _write_of_another(self, name: str) -> None:
        """Let another controller write a condition of its own."""
        workload = self._workloads()[name]
        mine = {
            "type": "Mine",
            "status": "True",
            "reason": "Version",
            "message": str(self.cluster.version),
            "lastTransitionTime": format_time(self.cluster.now // SECOND_NS * SECOND_NS),
        }
        others = [
            condition for condition in workload.get("status", {}).get("conditions", ()) if condition["type"] != "Mine"
        ]
        patch = {"status": {"conditions": [*others, mine]}}
        self.cluster.patch("Workload", name, patch, namespace=_NAMESPACE, subresource="status")

    def _change_workload(self, what: str, name: str) -> None:
        if what == "delete":
            self.cluster.delete("Workload", name, namespace=_NAMESPACE)
        elif what == "finish":
            known = self.leader.controller.workload(name, namespace=_NAMESPACE)
            if known is not None and "Admitted" in conditions_that_hold(known):
                self.leader.controller.finished(name, namespace=_NAMESPACE)
                self.leader.ended.add(known["metadata"]["uid"])
        elif what == "priority":
            self.cluster.patch(
                "Workload", name, {"spec": {"priority": self.random.choice((0, 1, 2))}}, namespace=_NAMESPACE
            )
        else:
            # Kueue does not count deactivated workloads, even while their jobs still run: never activate them then.
            is_active = "QuotaReserved" not in conditions_that_hold(self._workloads()[name])
            self.cluster.patch("Workload", name, {"spec": {"active": is_active}}, namespace=_NAMESPACE)

    # Invariants.

    def _check_write(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Check that nothing is admitted twice, no quota is given away twice, and what others wrote stays."""
        before, after = conditions_that_hold(old), conditions_that_hold(new)
        assert before.get("Mine") == after.get("Mine"), "what another wrote is lost"
        if "QuotaReserved" not in after:
            return
        self.happened["reservations"] += "QuotaReserved" not in before
        if "QuotaReserved" in before:
            # Only places may change, when a node fails.
            pair = [_without_places(entry["status"]["admission"]) for entry in (old, new)]
            assert pair[0] == pair[1], f"{new['metadata']['name']} is admitted twice"
            return
        assert "Finished" not in after, "what has ended gets no quota"
        used = self._used()
        if self.is_shared:
            assert sum(used.values()) <= sum(self.quota.values()) * 1000, f"{used} of {self.quota}"
        else:
            assert all(used[name] <= quota * 1000 for name, quota in self.quota.items()), f"{used} of {self.quota}"

    def _used(self) -> Counter[str]:
        """Return the quota reserved by active workloads, by ClusterQueue, in thousandths."""
        used: Counter[str] = Counter()
        for workload in self._workloads().values():
            holds = conditions_that_hold(workload)
            if "QuotaReserved" in holds and "Finished" not in holds and workload["spec"]["active"]:
                admission = workload["status"]["admission"]
                (assigned,) = admission["podSetAssignments"]
                cpu, n_done = amount(assigned["resourceUsage"]["cpu"]), 0
                for done in workload["status"].get("reclaimablePods", ()):
                    n_done += done["count"]
                used[admission["clusterQueue"]] += cpu * (assigned["count"] - n_done) // assigned["count"]
        return used

    def _end_well(self) -> None:
        """End the faults. Nothing may have leaked, and no workload may be forgotten."""
        if not self._comes_to_an_end():
            return
        leader = self.leader
        engine = leader.controller.engine
        check_invariants(engine)
        stored = self._workloads()
        assert {workload.name for workload in engine.workloads()} == set(stored), "who is there"
        used = Counter({row.name: amount(row.usage) for row in engine.quota() if row.kind == "ClusterQueue"})
        assert used == self._used(), f"quota has leaked: {used} and not {self._used()}"
        for name, workload in stored.items():
            assert leader.controller.workload(name, namespace=_NAMESPACE) == workload, f"{name} is not as stored"
            has_ended = workload["metadata"]["uid"] in leader.ended
            assert not has_ended or "Finished" in conditions_that_hold(workload), f"that {name} has ended is forgotten"
        # A new process looks at every workload: any that it would admit has been forgotten by this one.
        fresh = self._started().controller
        admitted = [
            write.name for _ in range(6) for write in fresh.turn(self.cluster.now).writes if "Admitted" in write.gained
        ]
        assert not admitted, f"forgotten: {admitted}"
        self._check_statuses(leader.controller, fresh)
        places = {workload.name: workload.place is None for workload in engine.workloads()}
        assert places == {workload.name: workload.place is None for workload in fresh.engine.workloads()}, (
            "who is in a queue"
        )

    def _comes_to_an_end(self) -> bool:
        """Deliver late news and let every queue run; return False if preemptions go round in circles."""
        self._hear_late()
        leader = self.leader
        for write in leader.controller.open_writes:
            self._refuse(leader, write)
        for name in self.quota:
            self.cluster.patch("ClusterQueue", name, {"spec": {"stopPolicy": "None"}})
        self._list(leader)
        if self._come_to_rest(leader.controller):
            return True
        self.happened["preemption loops"] += 1
        return False

    def _check_statuses(self, *controllers: Controller) -> None:
        """Check that every queue is stored with the status that the engine reports."""
        for stored in (row for kind in ("ClusterQueue", "LocalQueue") for row in self.cluster.list(kind)[0]):
            kind, name = stored["kind"], stored["metadata"]["name"]
            for controller in controllers:
                queue = (
                    controller.engine.cluster_queue(name)
                    if kind == "ClusterQueue"
                    else controller.engine.local_queue(name, namespace=_NAMESPACE)
                )
                after = with_status(stored, queue.status, now=self.cluster.now)
                assert after is stored, f"{kind} {name} is stored with {stored.get('status')}, not {after['status']}"

    def _come_to_rest(self, controller: Controller) -> bool:
        """Take turns until nothing is written. Returns False if workloads evict each other in a circle, as in Kueue."""
        seen = self.cluster.version
        for _ in range(_MAX_TURNS):
            for version, event in self.cluster.history:
                if version > seen:
                    controller.observe(event, now=self.cluster.now)
            seen = self.cluster.version
            for name, workload in self._workloads().items():
                if {"Evicted", "QuotaReserved"} <= set(conditions_that_hold(workload)):
                    controller.stopped(name, namespace=_NAMESPACE)
            self.cluster.now += SECOND_NS
            turn = controller.turn(self.cluster.now)
            for write in turn.writes:
                answer = self._send(write)
                assert answer.is_accepted, "nobody else writes now"
                controller.done(write, answer, now=self.cluster.now)
            for item in turn.objects:
                assert self._send_object(item).is_accepted, "nobody else writes now"
            is_idle = not turn.writes and not turn.objects
            wake = controller.next_wake(self.cluster.now)
            if is_idle:
                if wake is None or wake > self.cluster.now + _MAX_PAUSE_NS:
                    return True
                # A write that got lost repeatedly waits for longer than all these turns would take.
                self.cluster.now = max(self.cluster.now, wake - SECOND_NS)
        assert find_preemption_loop(controller.engine, now=self.cluster.now), "it does not come to rest"
        return False


def _without_places(admission: dict[str, Any]) -> list[Any]:
    return [
        admission["clusterQueue"],
        *({**assignment, "topologyAssignment": None} for assignment in admission["podSetAssignments"]),
    ]
