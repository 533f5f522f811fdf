"""Checks what must always hold in a fleet: no job runs twice, none is lost, and objects of others stay untouched."""

from __future__ import annotations

from enum import StrEnum

from kueuecore._conditions import condition
from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.fleet.fleet import Fleet
from kueuecore.fleet.node import Node
from kueuecore.fleet.pods import KINDS
from kueuecore.jobs.pod import GROUP_NAME
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.manifests import object_ref
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.settings import ORIGIN_LABEL
from kueuecore.times import SECOND_NS

__all__ = ["FleetInvariants", "Invariant", "InvariantError"]

_QUEUE = "kueue.x-k8s.io/queue-name"


class Invariant(StrEnum):
    """The invariants of a fleet."""

    STARTS_ONCE = "no job starts twice"
    NONE_LOST = "no job is lost"
    NOTHING_LEFT = "nothing is left"
    OTHERS_UNTOUCHED = "nothing of anybody else is touched"


class InvariantError(AssertionError):
    """Raised if an invariant does not hold.

    Args:
        invariant: The invariant.
        message: What was observed.
    """

    def __init__(self, invariant: Invariant, message: str) -> None:
        self.invariant = invariant
        super().__init__(f"{invariant}, but {message}")


class FleetInvariants:
    """Checks the invariants of a fleet after each step (`Fleet(watch=...)`), and at its end.

    1. **No job starts twice**, nor half of a group of pods on each of two workers. When the pods of a job start on a
       worker that the manager can reach, none of the same job run on another reachable worker. A worker that has been
       unreachable for `workerLostTimeout` may still run them, and start them again: Kueue gives such a worker up. Once
       it is reachable again, they end within the grace period.
    2. **No job is lost.** At the end each job has finished, or waits and reports why (`check_end`).
    3. **Nothing is left over.** At the end workers hold nothing of ours for finished or deleted jobs (`check_end`).
    4. **Objects of others stay untouched**: objects on workers with another origin, or none, stay as they were created.

    Args:
        origin: The origin of the manager.
        grace_seconds: How long the manager may take to notice and clean up, including timeouts of lost messages.

    Raises:
        InvariantError: An invariant does not hold.
    """

    def __init__(self, *, origin: str = "multikueue", grace_seconds: float = 60.0) -> None:
        self._origin = origin
        self._grace_ns = int(grace_seconds * SECOND_NS)
        self._running: dict[str, frozenset[ObjectRef]] = {}
        self._reachable_since: dict[str, int] = {}
        # Workers that the manager had reached and lost; nothing unknown to it can run on the others.
        self._was_lost: set[str] = set()
        # The version of each worker's API server up to which it was checked.
        self._seen: dict[str, int] = {}
        self._theirs: dict[tuple[str, ObjectRef], JsonObject] = {}

    def __call__(self, fleet: Fleet) -> None:
        """Check the current state of the fleet."""
        self._note_reach(fleet)
        self._check_others(fleet)
        self._check_runs(fleet)

    def check_end(self, fleet: Fleet) -> None:
        """Check a fleet in which nothing has gone wrong, and nobody has submitted anything, for a while."""
        self(fleet)
        for job in (object_ for kind in KINDS for object_ in fleet.objects(kind)):
            if _QUEUE not in texts_at(job, "metadata", "labels"):
                continue
            workload = _workload_of(fleet, job)
            if workload is None:
                raise InvariantError(Invariant.NONE_LOST, f"{object_ref(job)} has no Workload")
            reported = f"{object_ref(job)}: {workload.get('status')}, problems {fleet.problems[-3:]}"
            is_finished = "Finished" in conditions_that_hold(workload)
            if not is_finished and (KINDS[text_at(job, "kind")].finished(job) or not _why_it_waits(fleet, workload)):
                raise InvariantError(Invariant.NONE_LOST, reported)
        self._check_left(fleet)

    # Where jobs run.

    def _note_reach(self, fleet: Fleet) -> None:
        for name, link in fleet.links.items():
            if link.is_cut or fleet.nodes[MANAGER].is_down or not fleet.manager.is_connected(name):
                if self._reachable_since.pop(name, None) is not None:
                    self._was_lost.add(name)
            else:
                self._reachable_since.setdefault(name, fleet.now if name in self._was_lost else 0)

    def _check_runs(self, fleet: Fleet) -> None:
        running = {name: frozenset(_job_of(node, ref) for ref in node.running()) for name, node in fleet.nodes.items()}
        for name, jobs in running.items():
            if not self._is_known(fleet, name, self._grace_ns):
                # It may still run, and even start, what the manager gave up while it was unreachable.
                continue
            for key in jobs:
                has_started = key not in self._running.get(name, frozenset())
                grace_ns = 0 if has_started else self._grace_ns
                others = [row for row in running if row != name and key in running[row]]
                known = [other for other in others if self._is_known(fleet, other, grace_ns)]
                if known:
                    raise InvariantError(Invariant.STARTS_ONCE, f"{key} runs on {name} and on {known[0]}")
        self._running = running

    def _is_known(self, fleet: Fleet, cluster: str, longer_than_ns: int) -> bool:
        """Return whether the manager has been able to reach a worker for longer than this time."""
        since = self._reachable_since.get(cluster)
        return since is not None and fleet.now - since > longer_than_ns

    # Objects of others.

    def _check_others(self, fleet: Fleet) -> None:
        for cluster in fleet.links:
            api = fleet.nodes[cluster].api
            for event in api.since(self._seen.get(cluster, 0)):
                manifest, ref = event["object"], object_ref(event["object"])
                key = cluster, ref
                if ref.kind not in ("Workload", *KINDS) or (key not in self._theirs and self._is_ours(manifest)):
                    continue
                made = self._theirs.setdefault(key, manifest)
                is_same = texts_at(made, "metadata", "labels") == texts_at(manifest, "metadata", "labels")
                if event["type"] == "DELETED" or not is_same:
                    reported = f"{ref} on {cluster} belongs to somebody else: {event['type']}"
                    raise InvariantError(Invariant.OTHERS_UNTOUCHED, reported)
            self._seen[cluster] = api.version

    def _is_ours(self, manifest: JsonObject) -> bool:
        return texts_at(manifest, "metadata", "labels").get(ORIGIN_LABEL) == self._origin

    # The end.

    def _check_left(self, fleet: Fleet) -> None:
        needed: set[ObjectRef] = set()
        for workload in fleet.objects("Workload"):
            if "Finished" not in conditions_that_hold(workload):
                needed |= {object_ref(workload), *_owners(workload)}
        for cluster in fleet.links:
            for manifest in (
                object_ for kind in ("Workload", *KINDS) for object_ in fleet.objects(kind, cluster=cluster)
            ):
                ref = object_ref(manifest)
                if self._is_ours(manifest) and ref not in needed:
                    raise InvariantError(Invariant.NOTHING_LEFT, f"{ref} is left on {cluster}")


def _why_it_waits(fleet: Fleet, workload: JsonObject) -> str:
    """Return why a Workload has not finished, in a word; empty if it has, or if nothing reports why."""
    cluster = text_at(workload, "status", "clusterName")
    if cluster:
        return "Running" if fleet.nodes[cluster].running() & _owners(workload) else ""
    if text_at(condition(workload, "QuotaReserved"), "status") != "True":
        return _place(fleet, MANAGER, workload)
    nominated = [str(name) for name in list_at(workload, "status", "nominatedClusterNames")]
    places = [_place(fleet, name, workload) for name in nominated]
    if places:
        return "WaitsOnWorkers" if all(places) else ""
    return "RunsHere" if fleet.nodes[MANAGER].running() & _owners(workload) else ""


def _job_of(node: Node, ref: ObjectRef) -> ObjectRef:
    """Return the job that runs as a whole: for a pod in a group, the group."""
    pod = node.get(ref.kind, ref.name, namespace=ref.namespace) if ref.kind == "Pod" else None
    group = texts_at(pod, "metadata", "annotations").get(GROUP_NAME, "")
    return ObjectRef(POD_GROUP.kind, group, ref.namespace) if group else ref


def _workload_of(fleet: Fleet, job: JsonObject) -> JsonObject | None:
    uid = text_at(job, "metadata", "uid")
    for workload in fleet.objects("Workload"):
        if any(text_at(reference, "uid") == uid for reference in list_at(workload, "metadata", "ownerReferences")):
            return workload
    return None


def _place(fleet: Fleet, cluster: str, workload: JsonObject) -> str:
    """Return where a Workload or its copy is queued on a cluster, or why it is not; empty if neither applies."""
    name, namespace = text_at(workload, "metadata", "name"), text_at(workload, "metadata", "namespace")
    stored = fleet.get("Workload", name, namespace=namespace, cluster=cluster)
    if stored is None:
        return ""
    if object_at(stored, "spec").get("active") is False:
        return "Deactivated"
    state = fleet.nodes[cluster].controller.engine.workload(name, namespace=namespace)
    return state.place or ""


def _owners(workload: JsonObject) -> set[ObjectRef]:
    namespace = text_at(workload, "metadata", "namespace")
    owners = list_at(workload, "metadata", "ownerReferences")
    return {ObjectRef(text_at(owner, "kind"), text_at(owner, "name"), namespace) for owner in owners}
