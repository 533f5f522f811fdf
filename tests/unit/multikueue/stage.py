"""A manager and its workers as objects in memory, without schedulers: a test says what these would write."""

from __future__ import annotations

from typing import Any

from kueuecore.api_server import ApiServer
from kueuecore.controller import Metrics
from kueuecore.decisions import Event
from kueuecore.multikueue import (
    MANAGER,
    Connect,
    ConnectionReason,
    Dispatcher,
    Manager,
    MultiKueueSettings,
    OverflowPolicy,
)
from kueuecore.times import format_time, nanoseconds
from kueuecore.writes import Answer, Verb, Write

SECOND = 10**9
OUR_LABEL = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}
MINUTE = 60 * SECOND
START = nanoseconds("2026-01-01T00:00:00Z")
KUEUE = "kueue.x-k8s.io/v1beta2"
POD_SETS = [{"name": "main", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}]
OBJECT = dict[str, Any]


class Stage:
    """Carries every command out at once; a worker that is cut off answers nothing."""

    def __init__(
        self,
        *clusters: str,
        settings: MultiKueueSettings | None = None,
        dispatcher: Dispatcher | None = None,
        overflow: OverflowPolicy | None = None,
        metrics: Metrics | None = None,
        start: bool = True,
    ) -> None:
        self.now = START
        self.api = {name: ApiServer(now=START) for name in (MANAGER, *clusters)}
        self.seen = dict.fromkeys(self.api, 0)
        self.cut_off: set[str] = set()
        self.done: list[Write] = []
        # The next command with this verb does not arrive.
        self.loses: Verb | None = None
        self.problems: list[str] = []
        self.events: list[Event] = []
        self.settings, self.dispatcher, self.overflow = settings or MultiKueueSettings(), dispatcher, overflow
        self.metrics = metrics
        self.manager = self.process()
        for name in clusters:
            source = {"kubeConfig": {"location": f"{name}-secret", "locationType": "Secret"}}
            self.create("MultiKueueCluster", name, {"clusterSource": source})
        self.create("MultiKueueConfig", "config", {"clusters": list(clusters)})
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "config"}
        self.create("AdmissionCheck", "ac", {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters})
        if start:
            self.settle()

    # Objects.

    def create(self, kind: str, name: str, spec: OBJECT, *, cluster: str = MANAGER, **metadata: Any) -> OBJECT:
        api_version = self.manager.manager_kinds.get(kind, KUEUE)
        manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return self.api[cluster].create(manifest)

    def get(self, kind: str, name: str, *, cluster: str = MANAGER, namespace: str = "ns") -> OBJECT | None:
        return self.api[cluster].find(kind, name, namespace=namespace)

    def job(self, name: str = "job", **spec: Any) -> OBJECT:
        """A Job that MultiKueue runs, and its Workload of the same name, which has quota and a pending check."""
        template = {"spec": POD_SETS[0]["template"]["spec"]}  # type: ignore[index]
        job = self.create(
            "Job",
            name,
            {"suspend": True, "managedBy": "kueue.x-k8s.io/multikueue", "template": template} | spec,
            namespace="ns",
        )
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
        self.workload(name, owner | {"controller": True})
        return job

    def workload(self, name: str, owner: OBJECT | None, **metadata: Any) -> None:
        references: OBJECT = {"ownerReferences": [owner]} if owner is not None else {}
        self.create(
            "Workload", name, {"queueName": "lq", "podSets": POD_SETS}, namespace="ns", **references, **metadata
        )
        self.condition(MANAGER, name, "QuotaReserved")
        self.check(name, "Pending")

    def condition(self, cluster: str, name: str, kind: str, *, status: str = "True", **more: str) -> None:
        """What a scheduler writes: a condition of a Workload."""
        it = self.get("Workload", name, cluster=cluster)
        assert it is not None, f"no Workload {name} on {cluster or 'the manager'}"
        new = {"type": kind, "status": status, "reason": kind, "message": "", "lastTransitionTime": self.time} | more
        conditions = [old for old in it.get("status", {}).get("conditions", []) if old["type"] != kind]
        self.status(cluster, "Workload", name, {"conditions": [*conditions, new]})

    def check(self, name: str, state: str, *, check: str = "ac") -> None:
        it = self.get("Workload", name)
        assert it is not None
        others = [old for old in it.get("status", {}).get("admissionChecks", []) if old["name"] != check]
        new = {"name": check, "state": state, "message": "", "lastTransitionTime": self.time}
        checks = sorted([*others, new], key=lambda each: str(each["name"]))
        self.status(MANAGER, "Workload", name, {"admissionChecks": checks})

    def status(self, cluster: str, kind: str, name: str, patch: OBJECT) -> None:
        self.api[cluster].patch(kind, name, {"status": patch}, namespace="ns", subresource="status")

    def delete(self, kind: str, name: str, *, cluster: str = MANAGER) -> None:
        self.api[cluster].delete(kind, name, namespace="ns")

    @property
    def time(self) -> str:
        return format_time(self.now)

    # What can be seen.

    def check_of(self, name: str = "job") -> tuple[str, str]:
        """State and message of the check."""
        it = self.get("Workload", name)
        assert it is not None
        check = next(each for each in it["status"]["admissionChecks"] if each["name"] == "ac")
        return check["state"], check["message"]

    def active(self, kind: str, name: str) -> tuple[str, str, str]:
        """Status, reason and message of condition Active."""
        it = self.get(kind, name, namespace="")
        assert it is not None
        (found,) = [each for each in it.get("status", {}).get("conditions", []) if each["type"] == "Active"]
        return found["status"], found["reason"], found["message"]

    def copies(self, name: str = "job", kind: str = "Workload") -> list[str]:
        """The workers that have an object."""
        return [cluster for cluster in self.api if cluster and self.get(kind, name, cluster=cluster) is not None]

    def nominated(self, name: str = "job") -> list[str]:
        it = self.get("Workload", name)
        assert it is not None
        return list(it["status"].get("nominatedClusterNames", []))

    def winner(self, name: str = "job") -> str | None:
        it = self.get("Workload", name)
        assert it is not None
        found: str | None = it["status"].get("clusterName")
        return found

    # What happens.

    def settle(self, *, delay: int = 2 * SECOND) -> None:
        """Let the manager see everything and do what is due within a time."""
        end = self.now + delay
        for _ in range(200):
            self._watch()
            self._turn()
            self._watch()
            wake = self.manager.next_wake(self.now)
            if wake is None or wake > end:
                break
            self._move(max(wake, self.now))
        else:
            raise AssertionError(f"it never settles: {self.done[-5:]}, {self.problems[-3:]}")
        self._move(end)

    def wait(self, delay: int) -> None:
        """Let time pass, in which nothing happens by itself but what is due."""
        self.settle(delay=delay)

    def cut(self, cluster: str) -> None:
        """The connection to a worker breaks, and cannot be made again."""
        self.cut_off.add(cluster)
        self.manager.connection_lost(cluster, now=self.now)

    def mend(self, cluster: str) -> None:
        """It can be made again."""
        self.cut_off.discard(cluster)

    def restart(self) -> None:
        """Another process takes over the manager: it knows nothing but what it lists."""
        self.manager = self.process()
        self.seen = dict.fromkeys(self.api, self.api[MANAGER].version)
        for kind in self.manager.manager_kinds:
            objects, version = self.api[MANAGER].list(kind)
            self.manager.resync(kind, objects, resource_version=version, now=self.now)

    def process(self) -> Manager:
        """A manager that knows nothing yet."""
        return Manager(settings=self.settings, dispatcher=self.dispatcher, overflow=self.overflow, metrics=self.metrics)

    def do(self, n_commands: int) -> None:
        """Carry so many commands out, one after the other; the others of their turns are lost."""
        for _ in range(n_commands):
            self._watch()
            command = self.manager.turn(self.now).commands[0]
            assert not isinstance(command, Connect)
            self.done.append(command)
            self.carry_out(command)

    def _move(self, now: int) -> None:
        self.now = now
        for api in self.api.values():
            api.now = now

    def _watch(self) -> None:
        for cluster, api in self.api.items():
            if cluster and not self.manager.is_connected(cluster):
                continue
            for version, event in api.history:
                if version > self.seen[cluster]:
                    self.manager.observe(event, cluster=cluster, now=self.now)
            self.seen[cluster] = api.version

    def _turn(self) -> None:
        turn = self.manager.turn(self.now)
        self.problems += [problem.message for problem in turn.problems]
        for command in turn.commands:
            if isinstance(command, Connect):
                self._connect(command)
                continue
            self.done.append(command)
            if command.verb is self.loses:
                self.loses = None
                self.manager.done(command, Answer(error="lost"), now=self.now)
            else:
                self.carry_out(command)

    def _connect(self, command: Connect) -> None:
        cluster = command.cluster
        if cluster in self.cut_off:
            reason = ConnectionReason.CONNECTION_FAILED
            self.manager.connection_failed(cluster, reason, "dial tcp: connection refused", now=self.now)
            return
        for kind in self.manager.worker_kinds:
            objects, version = self.api[cluster].list(kind)
            self.manager.resync(kind, objects, cluster=cluster, resource_version=version, now=self.now)
        self.seen[cluster] = self.api[cluster].version
        self.manager.connected(cluster, now=self.now)

    def carry_out(self, write: Write) -> None:
        answer = self.api[write.cluster].carry_out(write)
        self.events += write.events if answer.is_accepted else ()
        self.manager.done(write, answer, now=self.now)


def dispatched(*clusters: str, **options: Any) -> Stage:
    """A workload with a copy on each worker."""
    stage = Stage(*(clusters or ("west", "east")), **options)
    stage.job()
    stage.settle()
    return stage


def admitted(on: str = "west", **options: Any) -> Stage:
    """A workload that a worker has won."""
    stage = dispatched(**options)
    stage.condition(on, "job", "QuotaReserved")
    stage.condition(on, "job", "Admitted")
    stage.settle()
    assert stage.check_of() == ("Ready", f'The workload was admitted on "{on}"')
    return stage


def elastic(stage: Stage, name: str, **annotations: str) -> None:
    job = stage.job(name)
    marked = {"kueue.x-k8s.io/elastic-job": "true", **annotations}
    stage.api[""].patch("Job", name, {"metadata": {"annotations": marked}}, namespace=job["metadata"]["namespace"])
    stage.api[""].patch("Workload", name, {"metadata": {"annotations": marked}}, namespace="ns")
