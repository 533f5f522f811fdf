"""Objects of drawn worlds as an API server stores them: with defaults, UIDs and creation times.

A released Kueue is asked without its API server, so nobody else fills these in.
"""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.testing.history import START, key_of
from kueuecore.times import format_time

__all__ = ["ELASTIC", "SLICE_OF", "stored", "with_defaults"]

ELASTIC = "kueue.x-k8s.io/elastic-job"
SLICE_OF = "kueue.x-k8s.io/workload-slice-replacement-for"
_LONG_AGO = format_time(START - 3600 * 1_000_000_000)
_NEVER: JsonObject = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}
_FUNGIBILITY: JsonObject = {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"}
_ACTIVE: JsonObject = {
    "type": "Active",
    "status": "True",
    "reason": "Active",
    "message": "ok",
    "lastTransitionTime": _LONG_AGO,
}


def stored(manifest: JsonObject) -> JsonObject:
    """Return an object as Kueue would read it back."""
    kind, name = text_at(manifest, "kind"), key_of(manifest)
    metadata = {"uid": f"{kind}-{name}".lower(), "creationTimestamp": _LONG_AGO, **object_at(manifest, "metadata")}
    spec = object_at(manifest, "spec")
    found: JsonObject = {**manifest, "metadata": metadata}
    match kind:
        case "ClusterQueue":
            found["spec"] = _cluster_queue(spec)
        case "LocalQueue":
            found["spec"] = {"stopPolicy": "None", **spec}
        case "AdmissionCheck":
            found["status"] = {"conditions": [_ACTIVE]}
        case "Workload":
            metadata["generation"] = 1
            pod_sets = [{"name": "main", "count": 1, **object_at(pod_set)} for pod_set in list_at(spec, "podSets")]
            found["spec"] = {"active": True, "priority": 0, **spec, "podSets": list(pod_sets)}
        case "Node":
            found["spec"] = spec
            found["status"] = _node_status(object_at(manifest, "status"))
        case "Cohort" | "ResourceFlavor":
            found["spec"] = spec
    return found


def with_defaults(wait: JsonObject) -> JsonObject:
    """Return `waitForPodsReady` of a Configuration with its defaults: a played run gets none.

    Without a limit of retries there is none in Kueue, but a run in which pods are never ready would not end.
    """
    timeout = wait.get("timeout", "5m")
    strategy: JsonObject = {
        "timestamp": "Eviction",
        "backoffBaseSeconds": 60,
        "backoffMaxSeconds": 3600,
        "backoffLimitCount": 3,
    }
    return {
        "timeout": timeout,
        "recoveryTimeout": timeout,
        "blockAdmission": False,
        **wait,
        "requeuingStrategy": {**strategy, **object_at(wait, "requeuingStrategy")},
    }


def _cluster_queue(spec: JsonObject) -> JsonObject:
    preemption = {**_NEVER, **object_at(spec, "preemption")}
    preemption["borrowWithinCohort"] = {"policy": "Never", **object_at(preemption, "borrowWithinCohort")}
    return {
        "queueingStrategy": "BestEffortFIFO",
        "stopPolicy": "None",
        **spec,
        "preemption": preemption,
        "flavorFungibility": {**_FUNGIBILITY, **object_at(spec, "flavorFungibility")},
    }


def _node_status(status: Mapping[str, JsonValue]) -> JsonObject:
    plain = dict(status)
    conditions: list[JsonValue] = [
        {"reason": "x", "message": "x", **object_at(condition)} for condition in list_at(plain, "conditions")
    ]
    return {**plain, "capacity": plain.get("allocatable", {}), "conditions": conditions}
