"""Watches the jobs of a fleet as time passes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kueuecore._conditions import condition, is_true
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.errors import UnknownObjectError
from kueuecore.fleet import Fleet
from kueuecore.multikueue import MANAGER
from kueuecore.scenarios.fleet_log import ON_MANAGER, FleetLog
from kueuecore.scenarios.job_outcomes import JobOutcome
from kueuecore.scenarios.outcomes import WorkloadVersion
from kueuecore.scenarios.work import Arrival
from kueuecore.waiting_cause import message_or_cause

__all__ = ["FleetWatch"]

_JobKey = tuple[str, str]


@dataclass(slots=True)
class _Seen:
    """One job so far."""

    arrival: Arrival
    workload: JsonObject = field(default_factory=dict)
    created: int | None = None
    admitted: int | None = None
    finished: int | None = None
    has_failed: bool = False
    cluster: str = ""
    is_admitted: bool = False
    is_evicted: bool = False
    n_admissions: int = 0
    n_evictions: int = 0
    n_replacements: int = 0
    n_node_evictions: int = 0
    n_copies: int = 0
    copy_wait_ns: int = 0
    rejection: str = ""
    # When a copy was created on a worker that has not admitted it.
    waiting_copies: dict[str, int] = field(default_factory=dict)
    # By cluster, the last version of its Workload or copy there.
    placed: dict[str, JsonObject] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        """Whether it has ended or been given up."""
        return self.finished is not None or object_at(self.workload, "spec").get("active") is False

    def take(self, workload: JsonObject, now: int) -> None:
        """Take note that its Workload has changed."""
        self.workload = workload
        self.created = now if self.created is None else self.created
        is_admitted, is_evicted = is_true(workload, "Admitted"), is_true(workload, "Evicted")
        if is_admitted and not self.is_admitted:
            self.n_admissions += 1
            self.admitted = now if self.admitted is None else self.admitted
            self.cluster = text_at(workload, "status", "clusterName") or ON_MANAGER
        # Kueue resets the check after finishing the workload.
        checks = list_at(workload, "status", "admissionChecks")
        rejections = (text_at(check, "message") for check in checks if text_at(check, "state") == "Rejected")
        self.rejection = next(rejections, self.rejection)
        self.n_evictions += is_evicted and not self.is_evicted
        self.is_admitted, self.is_evicted = is_admitted, is_evicted
        if self.finished is None and is_true(workload, "Finished"):
            self.finished = now
            self.has_failed = text_at(condition(workload, "Finished"), "reason") == "Failed"

    def take_copy(self, cluster: str, happened: str, copy: JsonObject, now: int) -> None:
        """Take note that its copy on a worker has changed."""
        if happened == "ADDED":
            self.n_copies += 1
            self.waiting_copies[cluster] = now
        elif happened == "DELETED" or is_true(copy, "Admitted"):
            self.copy_wait_ns += now - self.waiting_copies.pop(cluster, now)

    def take_nodes(self, cluster: str, happened: str, workload: JsonObject) -> None:
        """Take note of nodes that its Workload or a copy of it lost or got instead."""
        before = self.placed.pop(cluster, {})
        if happened != "DELETED":
            self.placed[cluster] = workload
        for_nodes = [_is_evicted_for_nodes(entry) for entry in (before, workload)]
        self.n_node_evictions += for_nodes == [False, True]
        had_failed = bool(list_at(before, "status", "unhealthyNodes"))
        has_failed = bool(list_at(workload, "status", "unhealthyNodes"))
        if had_failed and not has_failed and is_true(workload, "Admitted") and not is_true(workload, "Evicted"):
            self.n_replacements += _places(before) != _places(workload)

    @property
    def message(self) -> str:
        """Why it waits or was given up, or that it failed; empty otherwise."""
        if self.has_failed:
            return "failed"
        if self.is_admitted or self.finished is not None:
            return ""
        if self.rejection:
            return self.rejection
        checks = list_at(self.workload, "status", "admissionChecks")
        reported = (text_at(check, "message") for check in checks if text_at(check, "state") != "Ready")
        return next(filter(None, reported), text_at(condition(self.workload, "QuotaReserved"), "message"))


class FleetWatch:
    """Watches what happens on all clusters.

    Args:
        fleet: The fleet.
        arrivals: The jobs that arrive.
        follow: Workloads or jobs, as `namespace/name` or `Kind/namespace/name`, of which all versions are kept.
    """

    def __init__(self, fleet: Fleet, arrivals: Sequence[Arrival], follow: Collection[str] = ()) -> None:
        self._fleet = fleet
        self._follow = frozenset(follow)
        self._followed: dict[str, list[WorkloadVersion]] = {}
        self.workload_keys: dict[str, str] = {}
        """The `namespace/name` of Workloads by UID, if any is followed."""
        self.log = FleetLog(fleet.nodes)
        """Where jobs waited and ran, and who used how much quota."""
        self._jobs = {(arrival.key[1], arrival.key[2]): _Seen(arrival) for arrival in arrivals}
        self._names: dict[_JobKey, _Seen] = {}
        self._versions = dict.fromkeys(fleet.nodes, -1)
        # Workloads that ask for the same wait for one cause, which takes a search to find.
        self._causes: dict[str, str] = {}

    def look(self) -> None:
        """Take note of what has happened since the last call."""
        for name, node in self._fleet.nodes.items():
            if node.api.version == self._versions[name]:
                continue
            for event in node.api.since(self._versions[name]):
                if text_at(event, "object", "kind") == "Workload":
                    self._take(name, event["type"], event["object"])
            self._versions[name] = node.api.version
            self.log.look(name, self._fleet.now)

    @property
    def versions(self) -> dict[str, tuple[WorkloadVersion, ...]]:
        """The versions of the Workloads that are followed, by `namespace/name`."""
        return {key: tuple(versions) for key, versions in self._followed.items()}

    @property
    def is_over(self) -> bool:
        """Whether all jobs have arrived and ended."""
        return all(job.is_over for job in self._jobs.values())

    def outcomes(self) -> tuple[JobOutcome, ...]:
        """Return the outcomes of the jobs that have arrived, in order."""
        return tuple(self._outcome(seen, seen.created) for seen in self._jobs.values() if seen.created is not None)

    def _take(self, cluster: str, happened: str, workload: JsonObject) -> None:
        namespace, name = text_at(workload, "metadata", "namespace"), text_at(workload, "metadata", "name")
        if self._follow:
            self._keep(cluster, f"{namespace}/{name}", happened, workload)
        if cluster != MANAGER:
            seen = self._names.get((namespace, name))
            if seen is not None:
                seen.take_nodes(cluster, happened, workload)
                seen.take_copy(cluster, happened, workload, self._fleet.now)
                self.log.take(cluster, happened, workload, seen.arrival, self._fleet.now)
            return
        owners = list_at(workload, "metadata", "ownerReferences")
        seen = self._jobs.get((namespace, text_at(owners[0], "name"))) if owners else None
        if seen is not None:
            self.log.take(cluster, happened, workload, seen.arrival, self._fleet.now)
        if seen is not None and happened != "DELETED":
            self._names[namespace, name] = seen
            seen.take_nodes(cluster, happened, workload)
            seen.take(workload, self._fleet.now)

    def _keep(self, cluster: str, key: str, happened: str, workload: JsonObject) -> None:
        """Keep a version if its Workload, or a job that owns it, is followed."""
        self.workload_keys[text_at(workload, "metadata", "uid")] = key
        names = {key, f"Workload/{key}"}
        namespace = text_at(workload, "metadata", "namespace")
        for owner in list_at(workload, "metadata", "ownerReferences"):
            job = f"{namespace}/{text_at(owner, 'name')}"
            names |= {job, f"{text_at(owner, 'kind')}/{job}"}
        if key in self._followed or names & self._follow:
            version = WorkloadVersion(
                time=self._fleet.now, cluster=cluster, object=workload, is_deleted=happened == "DELETED"
            )
            self._followed.setdefault(key, []).append(version)

    def _outcome(self, seen: _Seen, created: int) -> JobOutcome:
        kind, namespace, name = seen.arrival.key
        queue = text_at(seen.workload, "spec", "queueName")
        local_queue = self._fleet.get("LocalQueue", queue, namespace=namespace)
        return JobOutcome(
            work=seen.arrival.work,
            job=f"{kind}/{name}",
            namespace=namespace,
            workload=text_at(seen.workload, "metadata", "name"),
            cluster_queue=text_at(local_queue, "spec", "clusterQueue"),
            cluster=seen.cluster,
            created=created,
            admitted=seen.admitted,
            finished=seen.finished,
            has_failed=seen.has_failed,
            n_admissions=seen.n_admissions,
            n_evictions=seen.n_evictions,
            n_replacements=seen.n_replacements,
            n_node_evictions=seen.n_node_evictions,
            n_copies=seen.n_copies,
            copy_wait_ns=seen.copy_wait_ns + sum(self._fleet.now - copy for copy in seen.waiting_copies.values()),
            message=seen.message or self._cause(seen),
        )

    def _cause(self, seen: _Seen) -> str:
        """Return, in brackets, why a job waits on the manager where Kueue leaves the status empty."""
        if seen.is_admitted or seen.is_over:
            return ""
        asked = str(seen.workload.get("spec"))
        if asked not in self._causes:
            engine = self._fleet.nodes[MANAGER].controller.engine
            namespace, name = (
                text_at(seen.workload, "metadata", "namespace"),
                text_at(seen.workload, "metadata", "name"),
            )
            try:
                state = engine.workload(name, namespace=namespace)
            except UnknownObjectError:  # Kueue has not seen it yet
                return ""
            self._causes[asked] = message_or_cause(engine, state)
        return self._causes[asked]


def _is_evicted_for_nodes(workload: JsonObject) -> bool:
    return is_true(workload, "Evicted") and text_at(condition(workload, "Evicted"), "reason") == "NodeFailures"


def _places(workload: JsonObject) -> list[JsonValue]:
    """Return where the pods of each pod set are."""
    pod_sets = list_at(workload, "status", "admission", "podSetAssignments")
    return [object_at(pod_set).get("topologyAssignment") for pod_set in pod_sets]
