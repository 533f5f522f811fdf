"""Nominates workers for a Workload, and makes the copies (rules/06 §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.jobs.context import annotations_of
from kueuecore.multikueue.commands import MANAGER, Command
from kueuecore.multikueue.copies import copy_of
from kueuecore.multikueue.dispatcher_protocol import AttemptOutcome, Nomination, Override
from kueuecore.multikueue.workload_group import Group, Result, ownership_problem, status_patch
from kueuecore.writes import Verb, Write

__all__ = ["nominate"]

_INDEX = "kueue.x-k8s.io/component-workload-index"


def nominate(group: Group) -> Result:
    """Write the nomination if it has changed; otherwise bring the copies in line with it."""
    nomination: Nomination | None = None
    result = Result()
    if not group.dispatcher.waits_for_checks:
        nomination = _asked(group)
        if nomination.rejection:
            return _rejected(group, nomination.rejection)
        result = _written(group, nomination)
    is_complete = group.n_components is None or len(group.components) >= group.n_components
    if result.commands or not _are_others_ready(group) or not is_complete:
        return result
    return _of_job(group, nomination)


def _of_job(group: Group, nomination: Nomination | None) -> Result:
    """Send the Workloads of one job where the first of them goes (rules/06 §5.3)."""
    others = [component for component in group.components if _name(component) != _name(group.local)]
    clusters = list(dict.fromkeys(name for other in others if (name := text_at(other, "status", "clusterName"))))
    if len(clusters) > 1:
        apart = f'component workloads assigned to different clusters: "{clusters[0]}" and "{clusters[1]}"'
        return Result(problem=f"checking component workloads: {apart}")
    if clusters:
        return _to_one(group, clusters[0])
    if others and not _is_primary(group.local, others):
        return Result()
    if group.is_elastic and group.cluster:
        # A slice goes where the slice is that it replaces.
        return _copies(group, [group.cluster])
    nomination = nomination or _asked(group)
    if nomination.rejection:
        return _rejected(group, nomination.rejection)
    written = _written(group, nomination)
    if written.commands:
        return written
    copies = _copies(group, nomination.clusters, nomination.overrides)
    problem = "; ".join(entry for entry in (written.problem, copies.problem) if entry)
    return replace(written, commands=copies.commands, problem=problem)


def _asked(group: Group) -> Nomination:
    return instance("what the dispatcher nominates", group.dispatcher.nominate(group.dispatch), Nomination)


def _rejected(group: Group, reason: str) -> Result:
    """Reject the check, as no worker can ever run it; the manager's scheduler then ends the workload (rules/07 §3)."""
    return group.set_check("Rejected", f'{reason}, Previously: "{group.state}"', event_type="Warning")


def _written(group: Group, nomination: Nomination) -> Result:
    """Write what the dispatcher returned, if the set of clusters has changed."""
    wake = group.settings.wake_in_ns(nomination.look_again, group.now)
    command = None
    if set(nomination.clusters) != set(group.dispatch.nominated):
        loses = nomination.withdrawn in group.dispatch.nominated and nomination.withdrawn not in nomination.clusters
        command = _nomination(group, nomination.clusters, withdrawn=nomination.withdrawn if loses else "")
    return Result([command] if command is not None else [], wake, nomination.problem, nominates=command is not None)


def _to_one(group: Group, cluster: str) -> Result:
    """Send a Workload to the worker that already has another Workload of its job, without a preemption gate."""
    if cluster not in group.workers:
        return Result(problem=f'assigned worker cluster "{cluster}" is not available')
    if cluster not in group.dispatch.nominated:
        command = _nomination(group, [cluster])
        return Result([command] if command is not None else [])
    return _copies(group, [cluster], is_gated=False)


def _nomination(group: Group, clusters: Sequence[str], *, withdrawn: str = "") -> Command | None:
    status = {key: entry for key, entry in object_at(group.local, "status").items() if key != "nominatedClusterNames"}
    if clusters:
        status["nominatedClusterNames"] = list(clusters)
    status = group.after(status, withdrawn, AttemptOutcome.RECALLED)
    return status_patch(MANAGER, group.local, status)


def _copies(
    group: Group,
    nominated: Sequence[str],
    overrides: Mapping[str, Override] | None = None,
    *,
    is_gated: bool = True,
) -> Result:
    """Create a copy on each nominated worker, and remove all others."""
    commands: list[Command] = []
    absent = [name for name in nominated if name not in group.workers]
    problems = [f"cluster {name}: no remote client for nominated cluster" for name in absent]
    for name, worker in group.workers.items():
        if name not in nominated:
            commands += group.removal(name) if worker.workload is not None else []
        elif worker.foreign is not None:
            problems.append(ownership_problem(worker.foreign, group.settings.origin))
        elif worker.workload is None:
            override = (overrides or {}).get(name)
            copy = copy_of(group.local, group.settings, is_gated=is_gated, override=override)
            commands.append(Write(Verb.CREATE, copy, cluster=name))
    return Result(commands, problem="; ".join(problems))


def _are_others_ready(group: Group) -> bool:
    checks = list_at(group.local, "status", "admissionChecks")
    return all(text_at(check, "state") == "Ready" for check in checks if text_at(check, "name") != group.check_name)


def _is_primary(workload: JsonObject, others: Sequence[JsonObject]) -> bool:
    """Return whether it has the lowest index of the Workloads of its job; without an index it never has."""
    index = _index(workload)
    return index >= 0 and not any(0 <= _index(other) < index for other in others)


def _index(workload: JsonObject) -> int:
    text = annotations_of(workload).get(_INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else -1


def _name(workload: JsonObject) -> str:
    return text_at(workload, "metadata", "name")
