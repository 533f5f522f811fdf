"""The steps of reconciling a Workload and its copies: the first step with something to do ends it (rules/06 §4.2).

Kueue runs several of them with live reads and writes in between. Here, a reconcile ends with the first commands, and
the next begins when those are done; the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Callable

from kueuecore._conditions import condition, has_quota, is_true, with_check_state, with_condition
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._patches import merge_patch, patched
from kueuecore.decisions import Event
from kueuecore.multikueue.adapters import Status
from kueuecore.multikueue.commands import MANAGER, Command
from kueuecore.multikueue.copies import has_changed_priority, is_in_sync, job_override
from kueuecore.multikueue.dispatcher_protocol import AttemptOutcome, RecallingDispatcher
from kueuecore.multikueue.nomination import nominate
from kueuecore.multikueue.preemption_gates import open_gate
from kueuecore.multikueue.workload_group import Group, Result, event, ownership_problem, patch, status_patch, update
from kueuecore.writes import Verb, Write

__all__ = ["reconcile"]


def reconcile(group: Group) -> Result:
    """Reconcile a Workload that exists, has a MultiKueue check, and whose job is delegated."""
    for step in _STEPS:
        result = step(group)
        if result is not None:
            return result
    return _dispatch(group)


def _leave_slices(group: Group) -> Result | None:
    """1. Leave a replaced slice, whose copy is taken over, and one that waits for quota to replace one that runs."""
    if not group.is_elastic:
        return None
    replaced = group.is_finished and text_at(condition(group.local, "Finished"), "reason") == "WorkloadSliceReplaced"
    waiting = not group.is_finished and not has_quota(group.local) and group.shares_its_job
    return Result() if replaced or waiting else None


def _clean_up(group: Group) -> Result | None:
    """2. Remove everything from the workers for a Workload that finished, has no quota, or had none for a moment."""
    if not group.is_finished and has_quota(group.local) and not group.is_left_over:
        return None
    wake = group.settings.worker_lost_timeout_ns if group.unavailable else None
    return Result(group.removals(), wake, forgets_round=True)


def _finish(group: Group) -> Result | None:
    """3. Finish what finished on a worker."""
    cluster = group.first_with("Finished")
    if not cluster:
        return None
    ended = condition(group.copy_on(cluster), "Finished")
    reason, message = text_at(ended, "reason"), text_at(ended, "message")
    is_without_owner = reason == "OwnerNotFound" and group.settings.retries_without_owner
    if (reason == "OutOfSync" or is_without_owner) and not group.is_elastic:
        if group.state != "Ready":
            return Result()
        what = "has lost" if is_without_owner else "is out of sync with"
        reported = f'Remote workload on worker cluster "{cluster}" {what} its user job'
        return group.retry(f"{reported}, resetting for re-dispatch", AttemptOutcome.OUT_OF_SYNC, event_type="Warning")
    if problem := _foreign_job(group, cluster):
        return Result(problem=problem)
    # Its last status may not have arrived yet.
    if reading := group.reading(cluster):
        return reading
    commands, _ = _synced(group, cluster, creates=False)
    if not commands:
        status = with_condition(group.local, "Finished", is_true=True, reason=reason, message=message, now=group.now)
        finished = status_patch(MANAGER, group.local, status)
        commands = [finished] if finished is not None else []
    return Result(commands)


def _drop_latecomers(group: Group) -> Result | None:
    """Stop a worker that was unreachable from winning a workload back from the one that runs it now.

    Kueue takes the worker that admitted it first, rather than the one in `clusterName`, and then fails forever.
    """
    if group.state != "Ready" or not group.cluster:
        return None
    removals = group.removals(but=group.cluster)
    return Result(removals) if removals else None


def _handle_eviction(group: Group) -> Result | None:
    """4. Dispatch anew what a worker evicted, unless it did so because the manager had evicted it."""
    cluster = group.first_with("Evicted")
    if not cluster:
        return None
    if is_true(group.local, "Evicted"):
        if problem := _foreign_job(group, cluster):
            return Result(problem=problem)
        commands, is_deferred = _synced(group, cluster)
        return Result(commands, group.settings.deferred_sync_ns if is_deferred else None)
    if group.state != "Ready":
        return None
    reported = f'Workload evicted on worker cluster: "{group.cluster}", resetting for re-admission.'
    return group.set_check("Retry", f'{reported} Previously: "Ready"', AttemptOutcome.EVICTED, event_type="Normal")


def _mend_copies(group: Group) -> Result | None:
    """5. Update a copy that differs from its original if it can be changed; otherwise remove it."""
    commands: list[Command] = []
    for name, worker in group.workers.items():
        if worker.workload is None or is_in_sync(group.local, worker.workload):
            continue
        spec = _mended_spec(group, worker.workload)
        wanted = update(name, worker.workload, {**worker.workload, "spec": spec}) if spec is not None else None
        commands += [wanted] if wanted is not None else group.removal(name)
    return Result(commands) if commands else None


def _mended_spec(group: Group, copy: JsonObject) -> JsonObject | None:
    """Return the spec for a copy that can stay: of an elastic job that shrank, or with another priority."""
    if job_override(copy):
        return None
    wanted: JsonObject = object_at(group.local, "spec")
    spec: JsonObject | None = None
    if group.is_elastic and _has_shrunk(group.local, copy):
        spec = wanted
    if has_changed_priority(group.local, copy):
        spec = {**(spec or object_at(copy, "spec"))}
        for key in ("priorityClassRef", "priority"):
            spec.pop(key, None)
            if key in wanted:
                spec[key] = wanted[key]
    if spec is None:
        return None
    own = {key: value for key, value in object_at(copy, "spec").items() if key == "preemptionGates"}
    return {**{key: value for key, value in spec.items() if key != "preemptionGates"}, **own}


def _has_shrunk(workload: JsonObject, copy: JsonObject) -> bool:
    wanted, there = (
        {text_at(pod_set, "name"): object_at(pod_set).get("count", 1) for pod_set in list_at(each, "spec", "podSets")}
        for each in (workload, copy)
    )
    if wanted.keys() != there.keys():
        return False
    pairs = [(wanted[name], there[name]) for name in wanted]
    changes = [new - old for new, old in pairs if isinstance(new, int) and isinstance(old, int)]
    return any(change < 0 for change in changes) and all(change <= 0 for change in changes)


def _retry_lost(group: Group) -> Result | None:
    """6a. Retry if the worker that had won is unreachable or no longer has the Workload (rules/06 §4.4)."""
    if group.state != "Ready" or group.winner:
        return None
    if group.cluster in group.unavailable:
        lost_at = group.unavailable[group.cluster]
        left = group.settings.worker_lost_timeout_ns - (group.now - (group.now if lost_at is None else lost_at))
        return Result(wake_in_ns=left) if left > 0 else group.retry("Admitting remote lost", AttemptOutcome.LOST)
    if not group.cluster:
        reported = "Admission check is Ready but no admitting cluster is recorded; this is unexpected, please report it"
        return group.retry(reported, AttemptOutcome.GONE)
    return group.retry("Admitting remote no longer exists", AttemptOutcome.GONE)


def _settle(group: Group) -> Result | None:
    """6b. Let the first worker that admits it win: all others lose it, then the job goes there (rules/06 §4.3)."""
    winner = group.winner
    if not winner:
        return None
    if losers := group.removals(but=winner):
        return Result(losers)
    evicted = condition(group.local, "Evicted")
    if evicted is not None and text_at(evicted, "status") == "True":
        return _hand_eviction_on(group, winner, text_at(evicted, "message"))
    if problem := _foreign_job(group, winner):
        return Result(problem=problem)
    commands, is_deferred = _synced(group, winner)
    if any(isinstance(command, Write) and command.verb is Verb.CREATE for command in commands):
        # The job exists before the check says so.
        return Result(commands)
    wake = group.settings.deferred_sync_ns if is_deferred else group.settings.worker_lost_timeout_ns
    recalled = _recalled(group, winner)
    return recalled if recalled.commands else _accepted(group, winner, commands, wake).also_in(recalled.wake_in_ns)


def _accepted(group: Group, winner: str, commands: list[Command], wake: int) -> Result:
    """Set the check to Ready and record which worker has won."""
    if group.cluster not in ("", winner):
        changing = f'attempting to change immutable ClusterName from "{group.cluster}" to "{winner}"'
        return Result(commands, problem=changing)
    status = _with_topology_ready(object_at(group.local, "status"), group.copy_on(winner))
    events: tuple[Event, ...] = ()
    admits = ""
    if group.state not in ("Retry", "Rejected"):
        message = f'The workload was admitted on "{winner}"'
        state = "Pending" if group.adapter.keeps_check_pending else "Ready"
        status = with_check_state({"status": status}, group.check_name, state, message, group.now)
        if state == "Ready":
            status = {key: value for key, value in status.items() if key != "nominatedClusterNames"}
            status["clusterName"] = winner
            admits = winner if group.state != "Ready" else ""
        events = (event(group.local, "Normal", message),)
    accepted = status_patch(MANAGER, group.local, status, events)
    if accepted is None:
        return Result(commands, wake)
    return Result([*commands, accepted], wake, admits=admits, wakes_components=True)


def _with_topology_ready(status: JsonObject, copy: JsonObject) -> JsonObject:
    """Mark pod sets that waited here for placements as ready, once the worker has found them (rules/06 §10)."""
    placed = {
        text_at(assignment, "name")
        for assignment in list_at(copy, "status", "admission", "podSetAssignments")
        if object_at(assignment).get("topologyAssignment") is not None
    }
    admission = object_at(status, "admission")
    assignments: list[JsonValue] = []
    for assignment in list_at(admission, "podSetAssignments"):
        waits = text_at(assignment, "delayedTopologyRequest") == "Pending" and text_at(assignment, "name") in placed
        assignments.append({**object_at(assignment), "delayedTopologyRequest": "Ready"} if waits else assignment)
    if assignments == list_at(admission, "podSetAssignments"):
        return status
    return {**status, "admission": {**admission, "podSetAssignments": assignments}}


def _hand_eviction_on(group: Group, winner: str, message: str) -> Result:
    """Pass an eviction by the manager on to the worker while the Workload holds quota (rules/06 §4.3 rule 3)."""
    copy = group.copy_on(winner)
    reported = f"Evicted on manager: {message}"
    reason = "EvictedOnManagerCluster"
    status = with_condition(copy, "DeactivationTarget", is_true=True, reason=reason, message=reported, now=group.now)
    command = status_patch(winner, copy, status)
    return Result([command] if command is not None else [])


def _recalled(group: Group, winner: str) -> Result:
    """Take the workload back if the dispatcher says so; without commands if it does not."""
    if not isinstance(group.dispatcher, RecallingDispatcher) or group.state != "Ready":
        return Result()
    recall = group.dispatcher.recall(group.dispatch, winner)
    if recall.message:
        return group.retry(recall.message, AttemptOutcome.RECALLED, event_type="Normal")
    return Result(wake_in_ns=group.settings.wake_in_ns(recall.look_again, group.now))


def _dispatch(group: Group) -> Result:
    """7, 8, 9. Let one worker preempt, if preemption is orchestrated; then nominate workers and make copies."""
    command, wake = open_gate(group) if group.settings.has_orchestrated_preemption else (None, None)
    if command is not None:
        return Result([command], wake)
    if group.state != "Pending" or (group.cluster and not group.is_elastic):
        return Result(wake_in_ns=wake)
    return nominate(group).also_in(wake)


def _foreign_job(group: Group, cluster: str) -> str:
    """Return why the job on a worker is left alone; empty if it is ours, or missing."""
    problems = (ownership_problem(job, group.settings.origin) for job in group.workers[cluster].jobs.values())
    return next((problem for problem in problems if problem), "")


def _synced(group: Group, cluster: str, *, creates: bool = True) -> tuple[list[Command], bool]:
    """Return the commands that sync the jobs here and there, and whether a status is deferred.

    Args:
        group: The group.
        cluster: The worker.
        creates: Whether to create missing jobs.
    """
    commands: list[Command] = []
    is_deferred = False
    there = group.workers[cluster].jobs
    for local in group.jobs:
        remote = there.get(text_at(local, "metadata", "name"))
        if remote is None:
            if creates:
                copy = patched(group.adapter.copy(local, group.sync), job_override(group.copy_on(cluster)))
                commands.append(Write(Verb.CREATE, copy, cluster=cluster))
            continue
        status = group.adapter.status(local, remote, group.sync)
        is_deferred |= status.is_deferred
        commands += _status_commands(local, status)
        wanted = update(cluster, remote, group.adapter.update(local, remote, group.sync))
        commands += [wanted] if wanted is not None else []
    return commands, is_deferred


def _status_commands(local: JsonObject, status: Status) -> list[Command]:
    if status.status is None or status.status == object_at(local, "status"):
        return []
    changes = merge_patch(object_at(local, "status"), object_at(status.status))
    # Concurrent writers of a job do not write its status, so no resourceVersion is needed.
    return [patch(MANAGER, local, {"status": changes}, subresource="status", is_of_version=False)]


_STEPS: tuple[Callable[[Group], Result | None], ...] = (
    _leave_slices,
    _clean_up,
    _finish,
    _drop_latecomers,
    _handle_eviction,
    _mend_copies,
    _retry_lost,
    _settle,
)
