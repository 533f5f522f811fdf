"""A Workload with its copies: the input of one reconcile, and its result (rules/06 §4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kueuecore._conditions import check_state, condition, is_true, transition_time, with_check_state
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._patches import merge_patch
from kueuecore.decisions import Event
from kueuecore.jobs.context import ELASTIC_JOB, annotations_of
from kueuecore.multikueue.adapters import Adapter, SyncContext, is_owned
from kueuecore.multikueue.attempts import with_attempt
from kueuecore.multikueue.commands import MANAGER, Command
from kueuecore.multikueue.dispatcher_protocol import Attempt, AttemptOutcome, Dispatch, Dispatcher
from kueuecore.multikueue.kueue_dispatchers import is_kueues
from kueuecore.multikueue.settings import ORIGIN_LABEL, MultiKueueSettings
from kueuecore.writes import Verb, Write, patch_of, reference

__all__ = [
    "Group",
    "Result",
    "Worker",
    "delete",
    "event",
    "ownership_problem",
    "patch",
    "replaced_name",
    "status_patch",
    "update",
]

_FINALIZER = "kueue.x-k8s.io/resource-in-use"
_REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
_MAX_EVENT = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What one connected worker has of a Workload.

    Args:
        workload: The copy; None if there is none.
        jobs: The jobs on it, by name, whoever created them.
        foreign: A Workload of that name that somebody else created; it is left alone.
    """

    workload: JsonObject | None
    jobs: Mapping[str, JsonObject] = field(default_factory=dict)
    foreign: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A Workload, its job, and what is known of both on the workers.

    Args:
        local: The Workload on the manager.
        check_name: Its MultiKueue check.
        adapter: How its kind of jobs is delegated.
        jobs: Its jobs on the manager: one, or the pods of a group. Empty if they are gone.
        workers: The connected workers, in the order of the config.
        unavailable: The other workers, in that order, each with the time since when it is unreachable.
        components: All Workloads of its job if it has several, including this one.
        n_components: How many there should be; None if its job does not have several.
        dispatch: The input of the dispatcher.
        dispatcher: The dispatcher.
        settings: The settings of the manager.
        now: The time.
        has_lost_quota: Whether it has lost its quota since it was last clean. It may have regained it since.
        read: A worker whose jobs were read, and the version of its copy at that time.
        predecessor: The slice that it is to replace; None if there is none.
    """

    local: JsonObject
    check_name: str
    adapter: Adapter
    jobs: tuple[JsonObject, ...]
    workers: Mapping[str, Worker]
    unavailable: Mapping[str, int | None]
    components: tuple[JsonObject, ...] = ()
    n_components: int | None = None
    dispatch: Dispatch
    dispatcher: Dispatcher
    settings: MultiKueueSettings
    now: int
    has_lost_quota: bool = False
    read: tuple[str, str] | None = None
    predecessor: JsonObject | None = None

    @property
    def state(self) -> str:
        """State of the check."""
        return text_at(check_state(self.local, self.check_name), "state")

    @property
    def cluster(self) -> str:
        """The worker that has won (`status.clusterName`); empty if none has."""
        return text_at(self.local, "status", "clusterName")

    @property
    def is_finished(self) -> bool:
        """Whether the Workload has finished."""
        return is_true(self.local, "Finished")

    @property
    def is_elastic(self) -> bool:
        """Whether its job has workload slices."""
        return self.settings.has_elastic_jobs and annotations_of(self.local).get(ELASTIC_JOB) == "true"

    @property
    def is_left_over(self) -> bool:
        """Whether workers hold anything from before it lost its quota, with which it could win again, in a loop."""
        return self.has_lost_quota and not self.shares_its_job and bool(self.removals())

    @property
    def is_larger_slice(self) -> bool:
        """Whether it is a slice that is to replace another one."""
        return bool(replaced_name(self.local))

    @property
    def shares_its_job(self) -> bool:
        """Whether the job on the workers is still that of the slice which it is to replace (rules/06 §5.4)."""
        if not (self.is_elastic and self.is_larger_slice):
            return False
        is_dispatched = any(worker.workload is not None for worker in self.workers.values())
        if not self.settings.removes_evicted_slices or not is_dispatched:
            return True
        return self.predecessor is not None and not is_true(self.predecessor, "Finished")

    @property
    def sync(self) -> SyncContext:
        """The context in which its job is copied."""
        return SyncContext(workload=text_at(self.local, "metadata", "name"), settings=self.settings, now=self.now)

    def first_with(self, kind: str, *, workers: Mapping[str, Worker] | None = None) -> str:
        """Return the worker whose copy has had a condition longest; ties go to the first in the config; empty if none.

        Args:
            kind: Type of the condition.
            workers: The workers to consider; by default all that are connected.
        """
        times = [
            (transition_time(condition(worker.workload, kind)), index, name)
            for index, (name, worker) in enumerate((self.workers if workers is None else workers).items())
            if is_true(worker.workload, kind)
        ]
        return min(times)[2] if times else ""

    @property
    def winner(self) -> str:
        """The first worker that admits it; empty if none does.

        Until a worker has won, only nominated ones can: the server refuses every other `clusterName` (rules/06 §6).
        An older copy, on a worker that was unreachable, is nominated again or removed first. An eviction clears both
        fields, and still concerns the worker that runs the job.
        A worker that stops its job because it has evicted its copy wins nothing, or a manager that is faster than the
        worker would go in circles. If there is no job, nothing would free the quota of such a copy: it gets a job.
        """
        able = {
            name: worker
            for name, worker in self.workers.items()
            if self._may_win(name) and (not worker.jobs or not is_true(worker.workload, "Evicted"))
        }
        return self.first_with(self.settings.win_condition, workers=able)

    def _may_win(self, cluster: str) -> bool:
        has_won_before = bool(self.cluster) or is_true(self.local, "Evicted")
        return has_won_before or self.is_larger_slice or cluster in self.dispatch.nominated

    def copy_on(self, cluster: str) -> JsonObject:
        """Return the copy on a worker that has one."""
        copy = self.workers[cluster].workload
        assert copy is not None
        return copy

    def removal(self, cluster: str) -> list[Command]:
        """Return the next commands that clean up a worker: they delete first jobs, then the copy (rules/06 §4.2)."""
        worker = self.workers[cluster]
        jobs = [job for _, job in sorted(worker.jobs.items()) if is_owned(job, self.settings.origin)]
        if jobs:
            return [delete(cluster, job) for job in jobs]
        if worker.workload is None:
            return []
        finalizers = list_at(worker.workload, "metadata", "finalizers")
        if _FINALIZER in finalizers:
            kept = [finalizer for finalizer in finalizers if finalizer != _FINALIZER]
            return [patch(cluster, worker.workload, {"metadata": {"finalizers": kept}})]
        if text_at(worker.workload, "metadata", "deletionTimestamp"):
            return []
        return [delete(cluster, worker.workload)]

    def reading(self, cluster: str) -> Result | None:
        """Read the current jobs on a worker; None if they were read for this version of its copy."""
        seen = cluster, text_at(self.copy_on(cluster), "metadata", "resourceVersion")
        jobs = self.workers[cluster].jobs.values()
        return Result([_read(cluster, job) for job in jobs], reads=seen) if jobs and self.read != seen else None

    def removals(self, *, but: str = "") -> list[Command]:
        """Return the next commands that remove everything from all connected workers but one."""
        return [command for name in self.workers if name != but for command in self.removal(name)]

    def retry(self, message: str, outcome: AttemptOutcome, *, event_type: str = "") -> Result:
        """Hand the Workload back to the manager's scheduler: the check becomes Retry; the message has its old state."""
        return self.set_check("Retry", f'{message}, Previously: "{self.state}"', outcome, event_type=event_type)

    def set_check(
        self, state: str, message: str, outcome: AttemptOutcome | None = None, *, event_type: str = ""
    ) -> Result:
        """Set the state of the check, optionally with an event of the same message."""
        status = with_check_state(self.local, self.check_name, state, message, self.now)
        if outcome is not None:
            status = self.after(status, self.cluster, outcome)
        shown = text_at(check_state({"status": status}, self.check_name), "message")
        command = status_patch(
            MANAGER, self.local, status, (event(self.local, event_type, shown),) if event_type else ()
        )
        return Result([command] if command is not None else [])

    def after(self, status: JsonObject, cluster: str, outcome: AttemptOutcome) -> JsonObject:
        """Return a status that also records how the attempt on a worker ended, unless the dispatcher is Kueue's own."""
        if not cluster or is_kueues(self.dispatcher):
            return status
        return with_attempt({**self.local, "status": status}, Attempt(cluster, outcome, self.now), self.now)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one reconcile of a Workload.

    Args:
        commands: What to carry out. Each is independent; the Workload is reconciled again afterwards.
        wake_in_ns: When to look again if nothing happens before; None: no need to.
        problem: What could not be done.
        admits: The worker for which the last command makes the check Ready; empty if none does.
        nominates: Whether one of the commands is the nomination of the dispatcher.
        wakes_components: Whether to reconcile the other Workloads of the job, too.
        forgets_round: Whether the round of the dispatcher has ended.
        reads: If jobs are read: the worker, and the version of its copy.
    """

    commands: list[Command] = field(default_factory=list)
    wake_in_ns: int | None = None
    problem: str = ""
    admits: str = ""
    nominates: bool = False
    wakes_components: bool = False
    forgets_round: bool = False
    reads: tuple[str, str] | None = None

    def also_in(self, delay_ns: int | None) -> Result:
        """Return the same result, but look again after this delay if that is sooner."""
        times = [entry for entry in (self.wake_in_ns, delay_ns) if entry is not None]
        return replace(self, wake_in_ns=min(times, default=None))


def replaced_name(workload: JsonObject) -> str:
    """Return the namespace and name of the slice that a slice is to replace, as `namespace/name`; empty if none."""
    return annotations_of(workload).get(_REPLACES, "")


def event(workload: JsonObject, kind: str, message: str) -> Event:
    """Return an event of MultiKueue about a Workload."""
    namespace, name = text_at(workload, "metadata", "namespace"), text_at(workload, "metadata", "name")
    encoded = message.encode()
    if len(encoded) > _MAX_EVENT:
        message = encoded[: _MAX_EVENT - 4].decode(errors="ignore") + " ..."
    return Event(kind, "MultiKueue", namespace, name, message)


def patch(
    cluster: str,
    stored: JsonObject,
    changes: JsonObject,
    *,
    subresource: str = "",
    events: tuple[Event, ...] = (),
    is_of_version: bool = True,
) -> Write:
    """Return the write that changes an object in the version that was seen."""
    manifest = patch_of(stored, changes, is_of_version=is_of_version)
    return Write(Verb.PATCH, manifest, subresource, cluster=cluster, events=events)


def status_patch(cluster: str, stored: JsonObject, status: JsonObject, events: tuple[Event, ...] = ()) -> Write | None:
    """Return the write that changes the status of an object; None if it has that status already."""
    changes = merge_patch(object_at(stored, "status"), status)
    return patch(cluster, stored, {"status": changes}, subresource="status", events=events) if changes else None


def update(cluster: str, stored: JsonObject, wanted: JsonObject) -> Write | None:
    """Return the write that changes an object except for its status; None if it is as wanted already."""
    kept = {key: value for key, value in stored.items() if key != "status"}
    changes = merge_patch(kept, {key: value for key, value in wanted.items() if key != "status"})
    return patch(cluster, stored, changes) if changes else None


def ownership_problem(manifest: JsonObject, origin: str) -> str:
    """Return why an object on a worker is left alone; empty if this manager created it (rules/06 §4.3 rule 4)."""
    if is_owned(manifest, origin):
        return ""
    key = f"{text_at(manifest, 'metadata', 'namespace')}/{text_at(manifest, 'metadata', 'name')}"
    expected = f'expected "{ORIGIN_LABEL}"="{origin}" on *v1.PartialObjectMetadata "{key}"'
    return f"remote object is not owned by MultiKueue: {expected}"


def delete(cluster: str, manifest: JsonObject, *, is_of_version: bool = False) -> Write:
    """Return the write that deletes an object: not a new one of the same name."""
    return Write(Verb.DELETE, reference(manifest, is_of_version=is_of_version), cluster=cluster)


def _read(cluster: str, manifest: JsonObject) -> Write:
    return Write(Verb.GET, reference(manifest), cluster=cluster)
