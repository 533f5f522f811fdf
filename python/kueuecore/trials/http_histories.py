"""Histories like those of `job_faults` and `node_faults`, over HTTP, with a server that fails.

Each replica is what `kueuecore serve` runs, a `kueuecore.kubernetes.Decider` with a client of its own. Requests are
refused, overtaken by others, and cut off before and after they are carried out; kinds are missing for a while;
processes end before and after a write, and learn late how it went; watches end, break in the middle, and are too old.
The same must hold as in the other histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from kueuecore._json import JsonObject, text_at
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.kubernetes import Api
from kueuecore.steady_state import find_preemption_loop
from kueuecore.testing.invariants import check_invariants
from kueuecore.times import SECOND_NS
from kueuecore.trials.faults import Replica
from kueuecore.trials.http_replica import DiedError, HttpReplica, MortalApi
from kueuecore.trials.job_faults import FaultyJobHistory
from kueuecore.trials.machines import is_gated
from kueuecore.trials.node_faults import FaultyNodeHistory, hosts_of
from kueuecore.trials.strict_objects import kueue_schema
from kueuecore_apiserver import Closing, Fault, HttpApiServer, Request, refusal_of
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds

__all__ = ["FaultyHttpHistory", "FaultyHttpNodeHistory"]

_NAMESPACE = "default"
_WRITE_WAYS = ("well",) * 14 + ("409", "429", "500", "503", "404", "cut off", "unheard", "unheard", "overtaken")
_READ_WAYS = ("well",) * 14 + ("429", "500", "503", "404", "cut off")
_WATCH_WAYS = ("well",) * 3 + ("breaks", "ends", "gone", "500", "404")
_DEATHS = ("",) * 30 + ("dies before", "dies after")
_SLOWNESS = ("",) * 4 + ("requests held", "answers held")
# What may be missing for a while: group and plural.
_HIDDEN = (
    ("batch", "jobs"),
    ("", "pods"),
    ("kueue.x-k8s.io", "workloads"),
    ("kueue.x-k8s.io", "clusterqueues"),
    ("kueue.x-k8s.io", "resourceflavors"),
)
_OVERTAKEN = {"jobs": "Job", "pods": "Pod", "workloads": "Workload", "clusterqueues": "ClusterQueue"}
_MAX_LISTS = 1000
_MAX_TURNS = 240


class FaultyHttpHistory(FaultyJobHistory):
    """A history whose replicas reach the cluster only over HTTP.

    Args:
        seed: The seed from which everything follows.
        n_steps: How many steps to take before the faults end.

    Example:
        >>> happened = FaultyHttpHistory(1).play()
        >>> happened["starts"] > 0
        True
    """

    _configuration = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, pod]}
"""

    def __init__(self, seed: int, *, n_steps: int = 30) -> None:
        # There are no faults during setup and at the end.
        self._is_well = True
        self._hidden: tuple[str, str] | None = None
        self._hidden_until = 0
        # The Workload or pod that is being written, as it was before.
        self._before: dict[str, Any] | None = None
        super().__init__(seed, n_steps=n_steps)

    def _create_queues(self) -> None:
        for definition in _definitions():
            self.cluster.create(definition)
        self._server = HttpApiServer(self.cluster, schemas=_schema, faults=self._fault).start()
        self._user = Api.connect(server=self._server.url, kinds={"Job": ("batch/v1", "jobs"), "Pod": ("v1", "pods")})
        super()._create_queues()

    def play(self) -> Counter[str]:
        """Play the history; see `FaultyHistory.play`."""
        self._is_well = False
        try:
            return super().play()
        finally:
            self._server.stop()

    # Actions of users.

    def _submit(self, manifest: dict[str, Any]) -> None:
        # Over HTTP, too, but without faults: the server fills in its defaults as for anyone.
        before, self._is_well = self._is_well, True
        self._show()
        self._user.send("POST", self._user.path(manifest["kind"], manifest["metadata"]["namespace"]), manifest)
        self._is_well = before

    # Faults of requests.

    def _fault(self, request: Request) -> Fault | None:
        if self.cluster.now >= self._hidden_until:
            self._show()
        if request.verb == "watch":
            return self._watch_fault()
        if self._is_well:
            return None
        is_read = request.verb in ("get", "list")
        way = self.random.choice(_READ_WAYS if is_read else _WRITE_WAYS)
        if request.verb == "create" and way in ("409", "overtaken"):
            way = "500"
        self.happened[f"{'reads' if is_read else 'requests'} {way}"] += 1
        if way.isdecimal():
            return Fault(refusal=refusal_of(int(way)))
        if way == "cut off":
            return Fault(closing=Closing.BEFORE)
        if way == "overtaken":
            self._overtake(request)
        return Fault(closing=Closing.AFTER) if way == "unheard" else None

    def _overtake(self, request: Request) -> None:
        """Let another client write to the object first."""
        kind = _OVERTAKEN.get(request.resource, "")
        if self.cluster.find(kind, request.name, namespace=request.namespace) is None:
            return
        if kind == "Workload":
            self._write_of_another(request.name)
        else:
            labels = {"metadata": {"labels": {"touched": str(self.cluster.version)}}}
            self.cluster.patch(kind, request.name, labels, namespace=request.namespace)
        if kind in ("Workload", "Pod"):
            self._before = self.cluster.find(kind, request.name, namespace=request.namespace)

    def _watch_fault(self) -> Fault:
        way = "well" if self._is_well else self.random.choice(_WATCH_WAYS)
        self.happened[f"watches {way}"] += 1
        if way in ("500", "404"):
            return Fault(refusal=refusal_of(int(way)))
        if way == "gone":
            return Fault(watch_is_gone=True)
        if way == "well":
            return Fault(watch_ends_when_idle=True)
        return Fault(watch_ends_when_idle=True, watch_ends_after=self.random.randrange(4), watch_breaks=way == "breaks")

    def _dies(self) -> str:
        way = "" if self._is_well else self.random.choice(_DEATHS)
        self.happened[way] += bool(way)
        return way

    def _compares(self, path: str) -> Callable[[], None]:
        """Look at a Workload or pod before a request, and return a function that checks what changed."""
        kind, name = _object_of(path)
        self._before = self.cluster.find(kind, name, namespace=_NAMESPACE)

        def compare() -> None:
            before, self._before = self._before, None
            after = self.cluster.find(kind, name, namespace=_NAMESPACE)
            if before is not None and before is after:
                self._note_vain_write(before)
            if before is None or after is None or before is after:
                return
            if kind == "Workload":
                gained = {*conditions_that_hold(after)} - {*conditions_that_hold(before)}
                self.happened["evictions"] += "Evicted" in gained
                self._check_write(before, after)
            elif is_gated(before) and not is_gated(after):
                self._check_gone_gates(ObjectRef("Pod", name, _NAMESPACE))

        return compare

    def _check_gone_gates(self, pod: ObjectRef) -> None:
        """Check where a pod goes; without nodes, it may go anywhere."""

    def _note_vain_write(self, manifest: dict[str, Any]) -> None:
        """Note a Workload or pod that a write has not changed."""

    # Faults of kinds and processes.

    def _change(self) -> None:
        if self.random.random() < 0.1:
            self._hide()
        else:
            super()._change()

    def _hide(self) -> None:
        """Take away a kind for a while."""
        self._show()
        self._hidden = self.random.choice(_HIDDEN)
        self._hidden_until = self.cluster.now + self.random.choice((1, 10, 60)) * SECOND_NS
        self._server.kinds.hide(*self._hidden)
        self.happened["kinds hidden"] += 1

    def _show(self) -> None:
        if self._hidden is not None:
            self._server.kinds.show(*self._hidden)
            self._hidden = None

    def _begun(self) -> Replica:
        api = MortalApi.connect(server=self._server.url)
        api.dies, api.compares = self._dies, self._compares
        return HttpReplica(api, self.cluster, Configuration.parse(self._configuration))

    def _list(self, replica: Replica) -> None:
        """Receive news until every existing kind was listed, as `kueuecore serve` does before it decides."""
        of_http = _of_http(replica)
        for _ in range(_MAX_LISTS):
            of_http.hear()
            if not of_http.decider.unlisted or self._hidden is not None:
                return
        raise AssertionError(f"never listed: {sorted(of_http.decider.unlisted)}")

    def _resync(self) -> None:
        """Let the server forget its history, so that watches start over with lists."""
        self.happened["compactions"] += 1
        self.cluster.compact()

    def _crash(self) -> None:
        """End a process and start another."""
        self.happened["crashes"] += 1
        index = self.random.randrange(2)
        was_leader = self.replicas[index] is self.leader
        self.replicas[index] = self._started()
        if was_leader:
            self.leader = self.replicas[index]

    def _elect(self) -> None:
        """Let the other replica lead; the process that led ends, and another starts in its place."""
        self.happened["elections"] += 1
        self._show()
        index = self.replicas.index(self.leader)
        self.leader = self.replicas[1 - index]
        _of_http(self.leader).lead()
        self.replicas[index] = self._started()

    def _deliver(self) -> None:
        replica = _of_http(self.random.choice(self.replicas))
        self.happened["events heard"] += 1
        replica.hear()
        replica.check_memory()

    def _hear_all(self, replica: Replica) -> None:
        _of_http(replica).hear()

    def _hear_late(self) -> None:
        try:
            leader = _of_http(self.leader)
            leader.send()
            leader.take_answers()
        except DiedError:
            self._bury()

    def _turn(self) -> None:
        leader = _of_http(self.leader)
        if leader.decider.unlisted:
            leader.hear()
            return
        self.happened["turns"] += 1
        slow = self.random.choice(_SLOWNESS)
        self.happened[slow] += bool(slow)
        leader.holds_requests, leader.holds_answers = slow == "requests held", slow == "answers held"
        try:
            leader.decider.step()
            if not slow:
                leader.send()
                leader.take_answers()
        except DiedError:
            self._bury()
            return
        self._tell_of_jobs()

    def _bury(self) -> None:
        self.happened["deaths"] += 1
        self._restart_leader()

    def _comes_to_an_end(self) -> bool:
        self._is_well = True
        self._show()
        leader = _of_http(self.leader)
        leader.holds_requests = leader.holds_answers = False
        self._hear_late()
        assert not leader.controller.open_writes, f"nobody knows how these went: {leader.controller.open_writes}"
        return super()._comes_to_an_end()

    def _come_to_rest(self, controller: Controller) -> bool:
        leader, quiet = _of_http(self.leader), 0
        stood: Counter[frozenset[object]] = Counter()
        for _ in range(_MAX_TURNS):
            before = self.cluster.version
            self._run_jobs(sluggish=False)
            self._check_jobs()
            leader.hear()
            evictions = self._n_evicted()
            leader.decider.step()
            if self._n_evicted() > evictions:
                stood[self._standing()] += 1
            quiet = quiet + 1 if self.cluster.version == before else 0
            self.cluster.now += (400 if quiet else 1) * SECOND_NS
            if quiet == 3:
                return True
        is_circle = max(stood.values(), default=0) > 2 or find_preemption_loop(controller.engine, now=self.cluster.now)
        assert is_circle, "it does not come to rest"
        return False

    def _check_end(self, leader: Replica) -> None:
        super()._check_end(leader)
        controller = leader.controller
        stored = self._workloads()
        assert {workload.name for workload in controller.engine.workloads()} == set(stored), "who is there"
        for name, workload in stored.items():
            # Clients omit the record of which manager owns which field.
            metadata = {key: text for key, text in workload["metadata"].items() if key != "managedFields"}
            known = controller.workload(name, namespace=_NAMESPACE)
            assert known == {**workload, "metadata": metadata}, f"{name} is not as stored"
        check_invariants(controller.engine)
        self._check_statuses(controller)

    def _n_evicted(self) -> int:
        statuses: list[dict[str, Any]] = [workload.get("status", {}) for workload in self._workloads().values()]
        counts = (
            entry["count"] for status in statuses for entry in status.get("schedulingStats", {}).get("evictions", ())
        )
        return sum(counts)


class FaultyHttpNodeHistory(FaultyHttpHistory, FaultyNodeHistory):
    """A history over HTTP with nodes that fail, leave and return.

    Args:
        seed: The seed from which everything follows.
        n_steps: How many steps to take before the faults end.

    Example:
        >>> happened = FaultyHttpNodeHistory(1).play()
        >>> happened["starts"] > 0
        True
    """

    _configuration = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, pod]}
waitForPodsReady: {timeout: 240h}
"""

    def _check_gone_gates(self, pod: ObjectRef) -> None:
        self.happened["releases"] += 1
        self._check_release(pod)

    def _note_vain_write(self, manifest: dict[str, Any]) -> None:
        # Kueue's webhook refuses a second pass after some pods have ended (rules/08 §11.10, §16). Others may have got
        # the room that it gave up in the same cycle.
        if manifest["kind"] == "Workload" and manifest.get("status", {}).get("reclaimablePods"):
            self._uncharged[manifest["metadata"]["uid"]] = set(hosts_of(manifest))


_definitions = cache(crds)


def _schema(definition: JsonObject, version: str) -> CrdSchema:
    return kueue_schema(text_at(definition, "spec", "names", "kind"), version)


def _object_of(path: str) -> tuple[str, str]:
    """Return kind and name of the Workload or pod at a path; empty for anything else."""
    parts = path.split("/")
    for plural, kind in (("workloads", "Workload"), ("pods", "Pod")):
        if plural in parts[:-1]:
            return kind, parts[parts.index(plural) + 1]
    return "", ""


def _of_http(replica: Replica) -> HttpReplica:
    assert isinstance(replica, HttpReplica)
    return replica
