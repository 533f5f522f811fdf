"""The outcome of a run as JSON and as YAML, for programs. `docs/cli.md` describes both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kueuecore._json import JsonObject, JsonValue, int_at, object_at, text_at
from kueuecore._rows import row_of
from kueuecore.cli.outcome import Row, RunOutcome, namespaces_of
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.experiments import Experiments
from kueuecore.releases import Release
from kueuecore.states import ClusterQueueState, WorkloadState
from kueuecore.times import format_time
from kueuecore.topology import Placement
from kueuecore.version import version
from kueuecore.world import is_workload

if TYPE_CHECKING:
    from kueuecore.histories.timeline import Timeline

__all__ = [
    "checks_document",
    "cluster_queue_document",
    "document_head",
    "experiments_document",
    "json_document",
    "places_document",
    "release_document",
    "workload_document",
    "workload_head",
    "yaml_document",
    "yaml_documents",
]

_SCHEMA = 1
"""Version of the JSON document: changing or removing a field increments it, adding one does not."""


def yaml_document(plain: JsonObject, *, is_ascii: bool) -> str:
    """One object as YAML; outside ASCII escaped if it is asked for."""
    from kueuecore import _yaml_output  # only where something is written

    return _yaml_output.yaml_document(plain, is_ascii=is_ascii)


def document_head(release: Release) -> JsonObject:
    """The fields at the start of every JSON document of the command.

    Args:
        release: The release of Kueue whose decisions it shows.
    """
    return {"schema": _SCHEMA, "kueuecore": version(), "kueue": release_document(release)}


def experiments_document(experiments: Experiments) -> JsonObject:
    """The field that says with which rules that Kueue does not have something was decided; none if there are none.

    Args:
        experiments: The experiments that are on.
    """
    return {"experiments": experiments.to_dict()} if experiments else {}


def release_document(release: Release) -> JsonObject:
    """A release of Kueue in a JSON document; only one without a tag has a commit."""
    return {"version": release.tag, **({"commit": release.commit} if release.commit else {})}


def workload_head(state: WorkloadState) -> JsonObject:
    """The fields that describe the workload in every answer about one."""
    return {
        "namespace": state.namespace,
        "name": state.name,
        "status": str(state.stage),
        "clusterQueue": state.cluster_queue,
        "reason": state.reason,
        "message": state.message,
    }


def json_document(outcome: RunOutcome, timelines: Sequence[Timeline] = ()) -> str:
    """The outcome as one JSON document, with the histories of some workloads."""
    document: dict[str, object] = {
        **document_head(outcome.engine.configuration.release),
        "now": format_time(outcome.now),
        "ending": str(outcome.settled.ending),
        "cycles": len(outcome.settled.decisions),
        "nextWake": None if (wake := outcome.engine.next_wake()) is None else format_time(wake),
        "counts": dict(outcome.counts),
        "workloads": [workload_document(row) for row in outcome.workloads],
        "preemptions": [{**row_of(preemption), "why": outcome.why(preemption)} for preemption in outcome.preemptions],
        "admissionChecks": [
            {
                "name": check.name,
                "controllerName": check.controller_name,
                "active": check.active == "True",
                "reason": check.reason,
                "message": check.message,
            }
            for check in outcome.admission_checks
        ],
        "clusterQueues": [cluster_queue_document(queue) for queue in outcome.cluster_queues],
        "quota": [row_of(row) for row in outcome.quota],
        "capacity": [
            {
                "flavor": row.flavor,
                "topology": row.topology,
                "level": row.level,
                "path": list(row.path),
                "nodes": row.n_nodes,
                "resource": row.resource,
                "allocatable": row.allocatable,
                "outside": row.outside,
                "used": row.used,
                "free": row.free,
            }
            for row in outcome.capacity
        ],
        "events": [row_of(event) for event in outcome.settled.events],
    }
    if timelines:
        from kueuecore.cli.history_output import timeline_document  # few runs are asked for one

        document["histories"] = [timeline_document(timeline) for timeline in timelines]
    return json.dumps(document, indent=2) + "\n"


def cluster_queue_document(queue: ClusterQueueState) -> JsonObject:
    """A ClusterQueue of a run in a JSON document."""
    return {
        "name": queue.name,
        "active": queue.is_active,
        "reason": queue.reason,
        "message": queue.message,
        "pendingWorkloads": queue.pending_workloads,
        "reservingWorkloads": queue.reserving_workloads,
        "admittedWorkloads": queue.admitted_workloads,
    }


def workload_document(row: Row) -> JsonObject:
    """A workload of a run in a JSON document."""
    state = row.state
    assigned = state.status.get("admission", {}).get("podSetAssignments", ())
    return {
        "namespace": state.namespace,
        "name": state.name,
        "owner": row.owner or None,
        "localQueue": state.local_queue,
        "clusterQueue": state.cluster_queue,
        "priority": state.priority,
        "status": row.status,
        "place": state.place,
        "positionInClusterQueue": row.position,
        "reason": state.reason,
        "message": row.message_or_cause,
        "note": row.notes or None,
        "podSets": [
            {
                "name": assignment["name"],
                "count": assignment.get("count", 0),
                "flavors": dict(assignment.get("flavors", {})),
                "resourceUsage": dict(assignment.get("resourceUsage", {})),
                "placement": _placement(row.placement(assignment["name"])),
            }
            for assignment in assigned
        ],
        "notPlaced": places_document(row),
        "failedNodes": list(row.failed_nodes),
        "admissionChecks": checks_document(row),
    }


def places_document(row: Row) -> list[JsonValue]:
    """The pod sets of a workload that could not be placed."""
    return [
        {"podSet": placed.asked.pod_set, "asksFor": str(placed.asked), "why": placed.why} for placed in row.not_placed
    ]


def checks_document(row: Row) -> list[JsonValue]:
    """The states of a workload's admission checks."""
    return [
        {
            "name": text_at(check, "name"),
            "state": text_at(check, "state"),
            "message": text_at(check, "message"),
            "since": text_at(check, "lastTransitionTime") or None,
            "retryCount": int_at(check, "retryCount"),
        }
        for check in row.checks
    ]


def _placement(placement: Placement | None) -> JsonObject | None:
    if placement is None:
        return None
    domains: list[JsonValue] = [
        {"values": list(domain.values), "path": list(domain.path) or None, "count": domain.count}
        for domain in placement.domains
    ]
    return {"flavor": placement.flavor, "levels": list(placement.levels), "domains": domains}


def yaml_documents(outcome: RunOutcome, *, is_ascii: bool) -> str:
    """The objects with the statuses that Kueue would write, one YAML document each.

    Args:
        outcome: The outcome of a run.
        is_ascii: Escape everything outside ASCII?
    """
    return "---\n".join(yaml_document(plain, is_ascii=is_ascii) for plain in _with_statuses(outcome))


def _with_statuses(outcome: RunOutcome) -> Iterator[JsonObject]:
    for manifest in outcome.world.manifests:
        plain = manifest.object
        status = _status(outcome.engine, plain)
        generation = 0 if status is None else _generation(status)
        if generation and is_workload(plain):
            # Without it, the conditions' observedGeneration would not match the object.
            metadata = object_at(plain, "metadata")
            plain = {**plain, "metadata": {**metadata, "generation": metadata.get("generation", generation)}}
        if is_workload(plain) and not _is_active(outcome.engine, plain):
            # Kueue writes this with the eviction; read back without it, the workload would be queued again.
            plain = {**plain, "spec": {**object_at(plain, "spec"), "active": False}}
        yield plain if status is None else {**plain, "status": dict(status)}


def _is_active(engine: Engine, plain: JsonObject) -> bool:
    """Whether a Workload is active; `True` for one that the engine does not hold."""
    for namespace in namespaces_of(plain):
        with suppress(UnknownObjectError):
            return engine.workload(text_at(plain, "metadata", "name"), namespace=namespace).is_active
    return True


def _generation(status: Mapping[str, Any]) -> int:
    """The `observedGeneration` of a status; 0 if it has none."""
    return max((condition.get("observedGeneration", 0) for condition in status.get("conditions", ())), default=0)


def _status(engine: Engine, plain: JsonObject) -> Mapping[str, Any] | None:
    """The status that Kueue would write; `None` for objects whose status it does not write."""
    kind, name = text_at(plain, "kind"), text_at(plain, "metadata", "name")
    if not text_at(plain, "apiVersion").startswith("kueue.x-k8s.io/"):
        return None
    for namespace in namespaces_of(plain):
        with suppress(UnknownObjectError):
            match kind:
                case "Workload":
                    return engine.workload(name, namespace=namespace).status
                case "LocalQueue":
                    return engine.local_queue(name, namespace=namespace).status
                case "ClusterQueue":
                    return engine.cluster_queue(name).status
    return None
