"""The fields of each kind that decisions depend on, and the category of every name in them (rules/01)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.dumps.renaming import (
    HOSTNAME,
    Rule,
    Walk,
    each,
    fields,
    keep,
    mapping,
    name,
    numeric_key,
    put,
    resources,
    time,
)

__all__ = ["RULES"]

_CONDITIONS_OF_NODES = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")

# Kueue's own labels and annotations that decisions depend on, and rules for their values.
_MARKS: Mapping[str, Rule] = {
    "kueue.x-k8s.io/queue-name": name("localQueue"),
    "kueue.x-k8s.io/priority-class": name("class"),
    "kueue.x-k8s.io/job-uid": name("uid"),
    "kueue.x-k8s.io/priority-boost": keep,
    "kueue.x-k8s.io/elastic-job": keep,
    "kueue.x-k8s.io/is-group-workload": keep,
    "kueue.x-k8s.io/admission-gated-by": name("gate"),
    "kueue.x-k8s.io/workload": name("workload"),
    "kueue.x-k8s.io/podset": name("podSet"),
    "kueue.x-k8s.io/tas": keep,
    "kueue.x-k8s.io/managed": keep,
    "kueue.x-k8s.io/concurrent-admission-parent": lambda walk, it: _name_or_truth(walk, it),
    "kueue.x-k8s.io/workload-slice-replacement-for": lambda walk, it: walk.key("workload", str(it)),
    "kueue.x-k8s.io/workload-allowed-resource-flavors": lambda walk, it: ",".join(
        walk.name("flavor", flavor.strip()) for flavor in str(it).split(",")
    ),
}


def _name_or_truth(walk: Walk, value: JsonValue) -> JsonValue:
    return value if value in ("true", "false") else walk.name("workload", str(value))


def _marks(walk: Walk, value: JsonValue) -> JsonValue:
    """Keep the labels or annotations that Kueue reads; None if there are none."""
    return fields(_MARKS)(walk, value) or None


def _owner(walk: Walk, value: JsonValue) -> JsonValue:
    rest = fields({"name": name("owner"), "uid": name("uid"), "controller": keep})(walk, value)
    api_version, kind = walk.owner_type(text_at(value, "apiVersion"), text_at(value, "kind"))
    return {"apiVersion": api_version, "kind": kind, **object_at(rest)}


def _meta(category: str, *, labels: Rule = _marks) -> Rule:
    return fields(
        {
            "name": name(category),
            "namespace": name("namespace"),
            "uid": name("uid"),
            "creationTimestamp": time,
            "generation": keep,
            "deletionTimestamp": time,
            "labels": labels,
            "annotations": _marks,
            "ownerReferences": each(_owner),
        }
    )


def _labels_asked_for(walk: Walk, value: JsonValue) -> JsonValue:
    """Keep labels of nodes and namespaces that something selects by."""
    if not isinstance(value, dict):
        return None
    found: JsonObject = {
        walk.label(key): walk.label_value(key, row or "")
        for key, row in value.items()
        if isinstance(row, str | None) and (key == HOSTNAME or walk.is_asked_for(key))
    }
    return found or None


def _label_map(walk: Walk, value: JsonValue) -> JsonValue:
    """Rename labels that something selects by, with their values."""
    if not isinstance(value, dict):
        return None
    return {walk.asks_for(key): walk.label_value(key, str(row)) for key, row in value.items()}


def _requirement(walk: Walk, value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return None
    key = text_at(value, "key")
    if numeric := numeric_key(value):
        walk.numeric.add(numeric)
    values: list[JsonValue] = [walk.label_value(key, str(value)) for value in list_at(value, "values")]
    found: JsonObject = {"key": walk.asks_for(key), "operator": value.get("operator")}
    return {**found, "values": values} if "values" in value else found


def _field_requirement(walk: Walk, value: JsonValue) -> JsonValue:
    """Rename the values of a field requirement on nodes, which can only be on `metadata.name`."""
    values: list[JsonValue] = [walk.name("node", str(value)) for value in list_at(value, "values")]
    return {**object_at(value), "values": values}


_LABEL = lambda walk, it: walk.asks_for(it) if isinstance(it, str) else None  # noqa: E731
_SELECTOR = fields({"matchLabels": _label_map, "matchExpressions": each(_requirement)})
_TERM = fields({"matchExpressions": each(_requirement), "matchFields": each(_field_requirement)})


def _taint(walk: Walk, value: JsonValue) -> JsonValue:
    """Rename a taint or a toleration."""
    found: JsonObject = {}
    key = text_at(value, "key")
    for field, entry in object_at(value).items():
        match field:
            case "key":
                found[field] = walk.label(key)
            case "value":
                found[field] = walk.label_value(key, str(entry))
            case "operator" | "effect" | "tolerationSeconds":
                found[field] = entry
    return found


_TAINTS = each(_taint)
_RESOURCES = fields({"requests": resources, "limits": resources})


def _containers(walk: Walk, value: JsonValue) -> JsonValue:
    """Number the containers, and keep their requests and whether they are sidecars."""
    if not isinstance(value, list):
        return None
    rule = fields({"resources": _RESOURCES, "restartPolicy": keep})
    return [{"name": f"c{index}", **object_at(rule(walk, row))} for index, row in enumerate(value, 1)]


_POD_SPEC: Mapping[str, Rule] = {
    "initContainers": _containers,
    "containers": _containers,
    "nodeSelector": _label_map,
    "affinity": fields(
        {
            "nodeAffinity": fields(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": fields({"nodeSelectorTerms": each(_TERM)}),
                    "preferredDuringSchedulingIgnoredDuringExecution": each(
                        fields({"weight": keep, "preference": _TERM})
                    ),
                }
            )
        }
    ),
    "tolerations": _TAINTS,
    "runtimeClassName": name("runtimeClass"),
    "priorityClassName": name("priorityClass"),
    "priority": keep,
    "overhead": resources,
    "resources": _RESOURCES,
    "resourceClaims": each(
        fields(
            {
                "name": name("device"),
                "resourceClaimName": name("claim"),
                "resourceClaimTemplateName": name("claim"),
            }
        )
    ),
    "restartPolicy": keep,
    "schedulingGates": each(fields({"name": lambda walk, it: _gate(walk, it)})),
    "nodeName": name("node"),
}


def _gate(walk: Walk, value: JsonValue) -> JsonValue:
    return value if str(value).startswith("kueue.x-k8s.io/") else walk.name("gate", str(value))


def _conditions(types: tuple[str, ...] = ()) -> Rule:
    rest = fields({"status": keep, "message": put(""), "lastTransitionTime": time, "observedGeneration": keep})

    def rule(walk: Walk, value: JsonValue) -> JsonValue:
        kind, reason = walk.condition(text_at(value, "type"), text_at(value, "reason"))
        return {"type": kind, "reason": reason, **object_at(rest(walk, value))}

    return lambda walk, value: (
        [rule(walk, row) for row in value if not types or text_at(row, "type") in types]
        if isinstance(value, list)
        else None
    )


def _topology_assignment(walk: Walk, value: JsonValue) -> JsonValue:
    """Write domains one by one: the compressed form would reveal common prefixes of their names."""
    levels = [str(level) for level in list_at(value, "levels")]
    found: JsonObject = {"levels": [walk.asks_for(level) for level in levels]}
    if domains := list_at(value, "domains"):
        found["domains"] = [
            {
                **object_at(domain),
                "values": [walk.label_value(*pair) for pair in _pairs(levels, list_at(domain, "values"))],
            }
            for domain in domains
        ]
    if "slices" in object_at(value):
        found["slices"] = [_slice(walk, levels, slice_) for slice_ in list_at(value, "slices")]
    return found


def _pairs(levels: list[str], values: list[JsonValue]) -> list[tuple[str, str]]:
    return [(level, str(value)) for level, value in zip(levels, values, strict=False)]


def _slice(walk: Walk, levels: list[str], value: JsonValue) -> JsonValue:
    per_level: list[JsonValue] = []
    for level, other in zip(levels, list_at(value, "valuesPerLevel"), strict=False):
        universal, individual = object_at(other).get("universal"), object_at(other, "individual")
        if isinstance(universal, str):
            per_level.append({"universal": walk.label_value(level, universal)})
        else:
            prefix, suffix = text_at(individual, "prefix"), text_at(individual, "suffix")
            roots: list[JsonValue] = [
                walk.label_value(level, f"{prefix}{root}{suffix}") for root in list_at(individual, "roots")
            ]
            per_level.append({"individual": {"roots": roots}})
    kept = {field: entry for field, entry in object_at(value).items() if field in ("domainCount", "podCounts")}
    return {**kept, "valuesPerLevel": per_level}


_TOPOLOGY_REQUEST = fields(
    {
        "required": _LABEL,
        "preferred": _LABEL,
        "unconstrained": keep,
        "podIndexLabel": _LABEL,
        "subGroupIndexLabel": _LABEL,
        "subGroupCount": keep,
        "podSetGroupName": name("group"),
        "podSetSliceRequiredTopology": _LABEL,
        "podSetSliceSize": keep,
        "podsetSliceRequiredTopologyConstraints": each(fields({"topology": _LABEL, "size": keep})),
    }
)
_FLAVORS = mapping(
    lambda walk, entry: walk.name("resource", entry), lambda walk, _, entry: walk.name("flavor", str(entry))
)
_WORKLOAD_STATUS = fields(
    {
        "conditions": _conditions(),
        "admission": fields(
            {
                "clusterQueue": name("clusterQueue"),
                "podSetAssignments": each(
                    fields(
                        {
                            "name": name("podSet"),
                            "flavors": _FLAVORS,
                            "resourceUsage": resources,
                            "count": keep,
                            "topologyAssignment": _topology_assignment,
                            "delayedTopologyRequest": keep,
                        }
                    )
                ),
            }
        ),
        "requeueState": fields({"count": keep, "requeueAt": time}),
        "reclaimablePods": each(fields({"name": name("podSet"), "count": keep})),
        "admissionChecks": each(
            fields(
                {
                    "name": name("check"),
                    "state": keep,
                    "message": put(""),
                    "lastTransitionTime": time,
                    "requeueAfterSeconds": keep,
                    "retryCount": keep,
                    "podSetUpdates": each(
                        fields({"name": name("podSet"), "nodeSelector": _label_map, "tolerations": _TAINTS})
                    ),
                }
            )
        ),
        "resourceRequests": each(fields({"name": name("podSet"), "resources": resources})),
        "schedulingStats": fields(
            {"evictions": each(fields(dict.fromkeys(("reason", "underlyingCause", "count"), keep)))}
        ),
        "accumulatedPastExecutionTimeSeconds": keep,
        "accumulatedPastExexcutionTimeSeconds": keep,
        "clusterName": name("cluster"),
        "nominatedClusterNames": each(name("cluster")),
        "unhealthyNodes": each(fields({"name": name("node")})),
        "preemptionGates": each(fields({"name": name("gate"), "position": keep, "lastTransitionTime": time})),
    }
)


def _template_meta(walk: Walk, value: JsonValue) -> JsonValue:
    return fields({"annotations": _marks})(walk, value) or None


def _class_ref(walk: Walk, value: JsonValue) -> JsonValue:
    category = "class" if text_at(value, "kind") == "WorkloadPriorityClass" else "priorityClass"
    return fields({"group": keep, "kind": keep, "name": name(category)})(walk, value)


def _workload_spec(walk: Walk, value: JsonValue) -> JsonValue:
    category = "class" if "kueue" in text_at(value, "priorityClassSource") else "priorityClass"
    rule = fields(
        {
            "queueName": name("localQueue"),
            "priorityClassRef": _class_ref,
            "priorityClassName": name(category),
            "priorityClassSource": keep,
            "priority": keep,
            "active": keep,
            "maximumExecutionTimeSeconds": keep,
            "preemptionGates": each(fields({"name": name("gate")})),
            "podSets": each(
                fields(
                    {
                        "name": name("podSet"),
                        "count": keep,
                        "minCount": keep,
                        "template": fields({"metadata": _template_meta, "spec": fields(_POD_SPEC)}),
                        "topologyRequest": _TOPOLOGY_REQUEST,
                    }
                )
            ),
        }
    )
    return rule(walk, value)


_GROUPS = each(
    fields(
        {
            "coveredResources": each(name("resource")),
            "flavors": each(
                fields(
                    {
                        "name": name("flavor"),
                        "resources": each(
                            fields(
                                {
                                    "name": name("resource"),
                                    "nominalQuota": keep,
                                    "borrowingLimit": keep,
                                    "lendingLimit": keep,
                                }
                            )
                        ),
                    }
                )
            ),
        }
    )
)
_FAIR_SHARING = fields({"weight": keep})
_CLUSTER_QUEUE = fields(
    {
        "cohortName": name("cohort"),
        "cohort": name("cohort"),
        "queueingStrategy": keep,
        "namespaceSelector": _SELECTOR,
        "resourceGroups": _GROUPS,
        "flavorFungibility": fields(dict.fromkeys(("whenCanBorrow", "whenCanPreempt", "preference"), keep)),
        "preemption": fields(
            {
                "reclaimWithinCohort": keep,
                "withinClusterQueue": keep,
                "borrowWithinCohort": fields({"policy": keep, "maxPriorityThreshold": keep}),
            }
        ),
        "admissionChecks": each(name("check")),
        "admissionChecksStrategy": fields(
            {"admissionChecks": each(fields({"name": name("check"), "onFlavors": each(name("flavor"))}))}
        ),
        "stopPolicy": keep,
        "fairSharing": _FAIR_SHARING,
        "admissionScope": fields({"admissionMode": keep}),
        "concurrentAdmissionPolicy": fields(
            {
                "migration": fields(
                    {"mode": keep, "constraints": fields({"lastAcceptableFlavorName": name("flavor")})}
                ),
            }
        ),
    }
)
_LOCAL_QUEUE_STATUS = fields(
    {
        "fairSharing": fields(
            {
                "weightedShare": keep,
                "admissionFairSharingStatus": fields({"consumedResources": resources, "lastUpdate": time}),
            }
        )
    }
)


def _controller(walk: Walk, value: JsonValue) -> JsonValue:
    return value if str(value).startswith("kueue.x-k8s.io/") else walk.name("controller", str(value))


def _device_request(walk: Walk, value: JsonValue) -> JsonValue:
    rules: dict[str, Rule] = {
        "deviceClassName": name("deviceClass"),
        "allocationMode": keep,
        "count": keep,
        "adminAccess": keep,
        # Decisions depend on whether there are selectors, not on their content.
        "selectors": each(fields({"cel": put({"expression": "true"})})),
    }
    alternative = fields({"name": name("device"), **rules})
    listed = {"exactly": fields(rules), "firstAvailable": each(alternative)}
    return fields({"name": name("device"), **listed, **rules})(walk, value)


_DEVICES = fields({"devices": fields({"requests": each(_device_request)})})
_AMOUNTS = dict.fromkeys(("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"), resources)
_PRIORITY: Mapping[str, Rule] = {"value": keep, "globalDefault": keep}


def _of(category: str, rules: Mapping[str, Rule], *, labels: Rule = _marks) -> Rule:
    return fields({"apiVersion": keep, "kind": keep, "metadata": _meta(category, labels=labels), **rules})


RULES: Mapping[str, Rule] = {
    "ResourceFlavor": _of(
        "flavor",
        {
            "spec": fields(
                {
                    "nodeLabels": _label_map,
                    "nodeTaints": _TAINTS,
                    "tolerations": _TAINTS,
                    "topologyName": name("topology"),
                }
            )
        },
    ),
    "Topology": _of("topology", {"spec": fields({"levels": each(fields({"nodeLabel": _LABEL}))})}),
    "Cohort": _of(
        "cohort",
        {"spec": fields({"parentName": name("cohort"), "resourceGroups": _GROUPS, "fairSharing": _FAIR_SHARING})},
    ),
    "ClusterQueue": _of("clusterQueue", {"spec": _CLUSTER_QUEUE}),
    "LocalQueue": _of(
        "localQueue",
        {
            "spec": fields({"clusterQueue": name("clusterQueue"), "stopPolicy": keep, "fairSharing": _FAIR_SHARING}),
            "status": _LOCAL_QUEUE_STATUS,
        },
    ),
    "AdmissionCheck": _of(
        "check",
        {
            "spec": fields({"controllerName": _controller, "retryDelayMinutes": keep}),
            "status": fields({"conditions": _conditions(("Active",))}),
        },
    ),
    "WorkloadPriorityClass": _of("class", _PRIORITY),
    "PriorityClass": _of("priorityClass", _PRIORITY),
    "LimitRange": _of("limitRange", {"spec": fields({"limits": each(fields({"type": keep, **_AMOUNTS}))})}),
    "RuntimeClass": _of("runtimeClass", {"handler": name("runtimeClass"), "overhead": fields({"podFixed": resources})}),
    "ResourceClaimTemplate": _of("claim", {"spec": fields({"spec": _DEVICES})}),
    "DeviceClass": _of("deviceClass", {"spec": fields({"extendedResourceName": name("resource")})}),
    "Workload": _of("workload", {"spec": _workload_spec, "status": _WORKLOAD_STATUS}),
    "Pod": _of("pod", {"spec": fields(_POD_SPEC), "status": fields({"phase": keep})}),
    # Last, when it is known which of their labels something selects by.
    "Node": _of(
        "node",
        {
            "spec": fields({"unschedulable": keep, "taints": _TAINTS}),
            "status": fields({"allocatable": resources, "conditions": _conditions(_CONDITIONS_OF_NODES)}),
        },
        labels=_labels_asked_for,
    ),
    "Namespace": _of("namespace", {}, labels=_labels_asked_for),
}
"""Rules by kind, in the order in which kinds are visited."""
