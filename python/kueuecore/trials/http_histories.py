"""Histories like those of `job_faults`, over HTTP: what `kueuecore serve` runs, against a server that fails.

Each replica is a `kueuecore.kubernetes.Decider` with its own client. Requests are refused (409, 429, 500, 503), cut
off before and after the write, and answered with a 404 for a kind that is there; processes end before and after a
write; watches end, break in the middle, and are too old. What has to hold is what has to hold in the other histories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from kueuecore.configuration import Configuration
from kueuecore.controller import Controller
from kueuecore.kubernetes import Api
from kueuecore.steady_state import find_preemption_loop
from kueuecore.testing.api_server import Closing, Fault, HttpApiServer, Request, refusal_of
from kueuecore.testing.crd_schema import CrdSchema
from kueuecore.testing.crds import crds
from kueuecore.trials.faults import Replica
from kueuecore.trials.http_replica import DiedError, HttpReplica, MortalApi
from kueuecore.trials.job_faults import FaultyJobHistory

__all__ = ["FaultyHttpHistory"]

_SECOND_NS = 1_000_000_000
_CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations: {frameworks: [batch/job, pod]}
"""
_WRITE_WAYS = ("well",) * 14 + ("409", "429", "500", "503", "404", "cut off", "unheard", "dies before", "dies after")
_READ_WAYS = ("well",) * 14 + ("429", "500", "503", "404", "cut off")
_WATCH_WAYS = ("well",) * 6 + ("breaks", "ends", "gone", "500", "404")
_MOST_TURNS = 240


class FaultyHttpHistory(FaultyJobHistory):
    """A history whose replicas reach the cluster over HTTP alone.

    Args:
        seed: Everything follows from it.
        n_steps: How many things happen before all is well again.

    Example:
        >>> happened = FaultyHttpHistory(1).play()
        >>> happened["starts"] > 0
        True
    """

    def __init__(self, seed: int, *, n_steps: int = 30) -> None:
        # Before all is set up, and in the end, nothing goes wrong.
        self._is_well = True
        super().__init__(seed, n_steps=n_steps)

    def _create_queues(self) -> None:
        for definition in crds():
            self.cluster.create(definition)
        self._server = HttpApiServer(self.cluster, schemas=CrdSchema.of, faults=self._fault).start()
        self._user = Api.connect(server=self._server.url, kinds={"Job": ("batch/v1", "jobs"), "Pod": ("v1", "pods")})
        super()._create_queues()

    def play(self) -> Counter[str]:
        """Play it; see `FaultyHistory.play`."""
        self._is_well = False
        try:
            return super().play()
        finally:
            self._server.stop()

    # What users do.

    def _submit(self, manifest: dict[str, Any]) -> None:
        # Over HTTP, too: the server fills in what it would for others, and nothing goes wrong.
        before, self._is_well = self._is_well, True
        self._user.send("POST", self._user.path(manifest["kind"], manifest["metadata"]["namespace"]), manifest)
        self._is_well = before

    # What goes wrong.

    def _fault(self, request: Request) -> Fault | None:
        if request.verb == "watch":
            return self._watch_fault()
        if self._is_well:
            return None
        ways = _READ_WAYS if request.verb in ("get", "list") else _WRITE_WAYS
        way = self.random.choice(ways)
        self.happened[f"requests {way}"] += 1
        if way == "409" and request.verb in ("create",):
            way = "500"
        if way.isdecimal():
            return Fault(refusal=refusal_of(int(way)))
        if way == "cut off":
            return Fault(closing=Closing.BEFORE)
        return Fault(closing=Closing.AFTER) if way == "unheard" else None

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
        return "" if self._is_well else self.random.choice(("",) * 40 + ("dies before", "dies after"))

    def _compares(self, path: str) -> Callable[[], None]:
        """Looks at a Workload before a request, and checks what has become of it after that."""
        parts = path.split("/")
        name = parts[parts.index("workloads") + 1] if "workloads" in parts[:-1] else ""
        old = self._workloads().get(name)

        def compare() -> None:
            new = self._workloads().get(name)
            if old is not None and new is not None and old is not new:
                self._check_write(old, new)

        return compare

    # What replicas do.

    def _begun(self) -> Replica:
        api = MortalApi.connect(server=self._server.url)
        api.dies, api.compares = self._dies, self._compares
        return HttpReplica(api, self.cluster, Configuration.parse(_CONFIGURATION))

    def _list(self, replica: Replica) -> None:
        of_http = _of_http(replica)
        of_http.relist()
        self._hear_until_listed(of_http)

    def _hear_until_listed(self, replica: HttpReplica) -> None:
        for _ in range(1000):
            replica.hear()
            if not replica.decider.unlisted:
                return
        raise AssertionError(f"never listed: {sorted(replica.decider.unlisted)}")

    def _deliver(self) -> None:
        replica = _of_http(self.random.choice(self.replicas))
        self.happened["events heard"] += 1
        if self.random.random() < 0.1:
            self.cluster.compact()
        replica.hear()
        replica.check_memory()

    def _put_on_the_way(self, replica: Replica) -> None:
        """Nothing is on its way but what watches say."""

    def _hear_all(self, replica: Replica) -> None:
        _of_http(replica).hear()

    def _hear_late(self) -> None:
        """Answers come at once, or never."""

    def _turn(self) -> None:
        self.happened["turns"] += 1
        try:
            _of_http(self.leader).decider.step()
        except DiedError:
            self.happened["deaths"] += 1
            self._restart_leader()
            return
        self._tell_of_jobs()

    def _end_well(self) -> None:
        self._is_well = True
        super()._end_well()

    def _come_to_rest(self, controller: Controller) -> bool:
        leader, quiet = _of_http(self.leader), 0
        stood: Counter[frozenset[object]] = Counter()
        for _ in range(_MOST_TURNS):
            before = self.cluster.version
            self._run_jobs(sluggish=False)
            self._check_jobs()
            leader.hear()
            evictions = self._n_evicted()
            leader.decider.step()
            if self._n_evicted() > evictions:
                stood[self._standing()] += 1
            quiet = quiet + 1 if self.cluster.version == before else 0
            self.cluster.now += (400 if quiet else 1) * _SECOND_NS
            if quiet == 3:
                return True
        is_circle = max(stood.values(), default=0) > 2 or find_preemption_loop(controller.engine, now=self.cluster.now)
        assert is_circle, "it does not come to rest"
        return False

    def _n_evicted(self) -> int:
        statuses: list[dict[str, Any]] = [it.get("status", {}) for it in self._workloads().values()]
        counts = (entry["count"] for it in statuses for entry in it.get("schedulingStats", {}).get("evictions", ()))
        return sum(counts)


def _of_http(replica: Replica) -> HttpReplica:
    assert isinstance(replica, HttpReplica)
    return replica
