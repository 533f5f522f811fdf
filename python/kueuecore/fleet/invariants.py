"""What always holds in a fleet: no job runs twice, none is lost, and nothing of anybody else is touched."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at, object_at, text_at, texts_at
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.fleet.fleet import Fleet
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.conditions import condition
from kueuecore.multikueue.settings import MULTIKUEUE, ORIGIN_LABEL

__all__ = ["FleetInvariants"]

_Key = tuple[str, str]
_SECOND_NS = 1_000_000_000


class FleetInvariants:
    """Shown a fleet after everything that happens (`Fleet(watch=...)`), and at its end.

    1. **No job starts twice.** When the pods of a job start on a worker that the manager can reach, none of the same
       job run on another one that it can reach. One that it could not reach for `workerLostTimeout` may still run them,
       and start them again: that is how Kueue gives a worker up. Once it can be reached they end within the grace.
    2. **No job is lost.** In the end each job has finished, or waits and says why (`check_end`).
    3. **Nothing is left.** In the end workers have nothing of ours for jobs that finished or went (`check_end`).
    4. **Nothing of anybody else is touched**: objects on workers with another origin, or none, stay as they were made.

    Args:
        origin: The origin of the manager.
        grace_seconds: How long the manager may take to find out and to clean up, timeouts of lost messages included.

    Raises:
        AssertionError: Something does not hold.
    """

    def __init__(self, *, origin: str = "multikueue", grace_seconds: float = 60.0) -> None:
        self._origin = origin
        self._grace_ns = int(grace_seconds * _SECOND_NS)
        self._running: dict[str, frozenset[_Key]] = {}
        self._reachable_since: dict[str, int] = {}
        # Workers that the manager had reached and lost; of the others nothing can run that it does not know.
        self._was_lost: set[str] = set()
        self._version = -1
        self._theirs: dict[tuple[str, str, str, str], JsonObject] = {}

    def __call__(self, fleet: Fleet) -> None:
        """Look at the fleet as it is now."""
        self._note_reach(fleet)
        version = sum(node.api.version for node in fleet.nodes.values())
        # Overlaps are looked at as time passes; all else only changes with an object.
        if version != self._version:
            self._version = version
            self._check_others(fleet)
        self._check_runs(fleet)

    def check_end(self, fleet: Fleet) -> None:
        """Look at a fleet in which all has been well for a while, and nobody has come any more."""
        self(fleet)
        for job in fleet.objects("Job"):
            if text_at(job, "spec", "managedBy") != MULTIKUEUE:
                continue
            workload = _workload_of(fleet, job)
            assert workload is not None, f"{_shown(job)} has no Workload"
            if BATCH_JOB.finished(job) is None:
                why = self._why_it_waits(fleet, workload)
                assert why, f"{_shown(job)} is lost: {workload.get('status')}, problems {fleet.problems[-3:]}"
            else:
                assert "Finished" in conditions_that_hold(workload), f"{_shown(job)} ended, and nobody wrote it down"
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
        running = {name: node.running() for name, node in fleet.nodes.items()}
        for name, jobs in running.items():
            if not self._is_known(fleet, name, self._grace_ns):
                # It may still run, and even start, what was given up while nobody could tell it.
                continue
            for key in jobs:
                has_started = key not in self._running.get(name, frozenset())
                grace_ns = 0 if has_started else self._grace_ns
                others = [it for it in running if it != name and key in running[it]]
                known = [it for it in others if self._is_known(fleet, it, grace_ns)]
                assert not known, f"{'/'.join(key)} runs on {name} and on {known[0]}"
        self._running = running

    def _is_known(self, fleet: Fleet, cluster: str, longer_than_ns: int) -> bool:
        """Has the manager been able to reach a worker for longer than a time?"""
        since = self._reachable_since.get(cluster)
        return since is not None and fleet.now - since > longer_than_ns

    # What belongs to others.

    def _check_others(self, fleet: Fleet) -> None:
        for cluster in fleet.links:
            for kind in ("Workload", "Job"):
                for manifest in fleet.objects(kind, cluster=cluster):
                    if self._is_ours(manifest):
                        continue
                    key = (
                        cluster,
                        kind,
                        text_at(manifest, "metadata", "namespace"),
                        text_at(manifest, "metadata", "name"),
                    )
                    self._theirs.setdefault(key, manifest)
        for (cluster, kind, namespace, name), made in self._theirs.items():
            now = fleet.get(kind, name, namespace=namespace, cluster=cluster)
            assert now is not None, f"{kind} {name} on {cluster} belongs to somebody else, and has gone"
            labels = [texts_at(it, "metadata", "labels") for it in (made, now)]
            assert labels[0] == labels[1], f"{kind} {name} on {cluster} belongs to somebody else, and was changed"

    def _is_ours(self, manifest: JsonObject) -> bool:
        return texts_at(manifest, "metadata", "labels").get(ORIGIN_LABEL) == self._origin

    # The end.

    def _why_it_waits(self, fleet: Fleet, workload: JsonObject) -> str:
        """Why a Workload has not finished, in a word; empty if that is not so, or nobody says."""
        cluster = text_at(workload, "status", "clusterName")
        if cluster:
            key = text_at(workload, "metadata", "namespace"), _owner(workload)
            return "Running" if key in fleet.nodes[cluster].running() else ""
        if text_at(condition(workload, "QuotaReserved"), "status") != "True":
            return _place(fleet, MANAGER, workload)
        nominated = [str(it) for it in list_at(workload, "status", "nominatedClusterNames")]
        places = [_place(fleet, it, workload) for it in nominated]
        return "WaitsOnWorkers" if places and all(places) else ""

    def _check_left(self, fleet: Fleet) -> None:
        needed = {
            (text_at(it, "metadata", "namespace"), text_at(it, "metadata", "name"), _owner(it))
            for it in fleet.objects("Workload")
            if "Finished" not in conditions_that_hold(it)
        }
        for cluster in fleet.links:
            for kind, index in (("Workload", 1), ("Job", 2)):
                for manifest in fleet.objects(kind, cluster=cluster):
                    key = text_at(manifest, "metadata", "namespace"), text_at(manifest, "metadata", "name")
                    is_needed = any(key == (it[0], it[index]) for it in needed)
                    assert is_needed or not self._is_ours(manifest), f"{kind} {'/'.join(key)} is left on {cluster}"


def _workload_of(fleet: Fleet, job: JsonObject) -> JsonObject | None:
    uid = text_at(job, "metadata", "uid")
    for workload in fleet.objects("Workload"):
        if any(text_at(it, "uid") == uid for it in list_at(workload, "metadata", "ownerReferences")):
            return workload
    return None


def _place(fleet: Fleet, cluster: str, workload: JsonObject) -> str:
    """Where a Workload, or its copy, is queued on a cluster, or why it is not; empty if neither is so."""
    name, namespace = text_at(workload, "metadata", "name"), text_at(workload, "metadata", "namespace")
    stored = fleet.get("Workload", name, namespace=namespace, cluster=cluster)
    if stored is None:
        return ""
    if object_at(stored, "spec").get("active") is False:
        return "Deactivated"
    state = fleet.nodes[cluster].controller.engine.workload(name, namespace=namespace)
    return state.place or ""


def _owner(workload: JsonObject) -> str:
    owners = list_at(workload, "metadata", "ownerReferences")
    return text_at(owners[0], "name") if owners else ""


def _shown(job: JsonObject) -> str:
    return f"Job {text_at(job, 'metadata', 'namespace')}/{text_at(job, 'metadata', 'name')}"
