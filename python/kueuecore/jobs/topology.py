"""Reads the topology request in the annotations of a pod template, and reports its problems (rules/10 §5.14, §7)."""

from __future__ import annotations

import json

from kueuecore._json import JsonObject, JsonValue
from kueuecore._names import label_key_problems
from kueuecore._text import quoted
from kueuecore.errors import Problem
from kueuecore.jobs.context import JobsConfiguration
from kueuecore.jobs.rejections import forbidden, go_bool, go_int, invalid, required

__all__ = [
    "POD_INDEX_OFFSET",
    "PREFERRED",
    "REQUIRED",
    "slice_size_problems",
    "topology_problems",
    "topology_request",
]

REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_TOPOLOGY = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
CONSTRAINTS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
GROUP_NAME = "kueue.x-k8s.io/podset-group-name"
POD_INDEX_OFFSET = "kueue.x-k8s.io/pod-index-offset"

_MAX_LAYERS = 3


def topology_request(
    annotations: dict[str, str],
    configuration: JobsConfiguration,
    *,
    pod_index_label: str | None = None,
    sub_group_index_label: str | None = None,
    sub_group_count: int | None = None,
) -> JsonObject | None:
    """Return the `topologyRequest` of a pod set, or None if it requests nothing.

    Args:
        annotations: Annotations of the pod template, free of `topology_problems`.
        configuration: Has the feature gates.
        pod_index_label: The label with the index of a pod of this kind.
        sub_group_index_label: The label with the index of a pod's group.
        sub_group_count: How many such groups there are.
    """
    if not configuration.enabled("TopologyAwareScheduling"):
        return None
    result: JsonObject = {}
    if REQUIRED in annotations:
        result["required"] = annotations[REQUIRED]
    elif PREFERRED in annotations:
        result["preferred"] = annotations[PREFERRED]
    elif UNCONSTRAINED in annotations:
        result["unconstrained"] = go_bool(annotations[UNCONSTRAINED])
    else:
        sliced = (SLICE_TOPOLOGY in annotations and SLICE_SIZE in annotations) or CONSTRAINTS in annotations
        if not sliced and pod_index_label is None and sub_group_index_label is None and sub_group_count is None:
            return None
    if CONSTRAINTS in annotations and configuration.enabled("TASMultiLayerTopology"):
        result["podsetSliceRequiredTopologyConstraints"] = _constraints(annotations[CONSTRAINTS])
    elif SLICE_TOPOLOGY in annotations and SLICE_SIZE in annotations:
        result["podSetSliceRequiredTopology"] = annotations[SLICE_TOPOLOGY]
        result["podSetSliceSize"] = go_int(annotations[SLICE_SIZE], bits=32)[0]
    if pod_index_label is not None:
        result["podIndexLabel"] = pod_index_label
    if sub_group_index_label is not None:
        result["subGroupIndexLabel"] = sub_group_index_label
    if sub_group_count is not None:
        result["subGroupCount"] = sub_group_count
    if GROUP_NAME in annotations and (REQUIRED in annotations or PREFERRED in annotations):
        result["podSetGroupName"] = annotations[GROUP_NAME]
    return result


def topology_problems(path: str, annotations: dict[str, str], configuration: JobsConfiguration) -> list[Problem]:
    """Return what is wrong with the annotations of one pod template, in Kueue's order.

    Args:
        path: Field path of the annotations, such as `spec.template.metadata.annotations`.
        annotations: The annotations.
        configuration: Has the feature gates.
    """
    problems: list[Problem] = []
    if sum(key in annotations for key in (REQUIRED, PREFERRED, UNCONSTRAINED)) > 1:
        names = f'["{REQUIRED}", "{PREFERRED}", "{UNCONSTRAINED}"]'
        problems.append(invalid(path, None, f"must not contain more than one topology annotation: {names}"))
    for key in (REQUIRED, PREFERRED, SLICE_TOPOLOGY):
        if key in annotations:
            value = annotations[key]
            problems += [invalid(f"{path}[{key}]", value, detail) for detail in label_key_problems(value)]
    problems += _group_problems(path, annotations, configuration)
    if UNCONSTRAINED in annotations:
        field = f"{path}[{UNCONSTRAINED}]"
        is_true = go_bool(annotations[UNCONSTRAINED])
        if is_true is None:
            problems.append(invalid(field, annotations[UNCONSTRAINED], "must be a boolean value"))
        elif not is_true and configuration.enabled("TASRejectFalseUnconstrainedTopology"):
            problems.append(invalid(field, annotations[UNCONSTRAINED], "must be true"))
    problems += _slice_problems(path, annotations)
    problems += _constraints_problems(path, annotations, configuration)
    return problems


def slice_size_problems(
    path: str, annotations: dict[str, str], count: int, configuration: JobsConfiguration
) -> list[Problem]:
    """Return the problem of slices that are too large, or with further layers do not divide the pod set.

    Args:
        path: Field path of the annotations.
        annotations: The annotations, free of `topology_problems`.
        count: The number of pods.
        configuration: Has the feature gates.
    """
    detail = f"must not be greater than pod set count {count}"
    if SLICE_SIZE in annotations:
        size, _ = go_int(annotations[SLICE_SIZE], bits=32)
        if size is not None and size > count:
            return [invalid(f"{path}[{SLICE_SIZE}]", annotations[SLICE_SIZE], detail)]
    if CONSTRAINTS in annotations:
        layers = _constraints(annotations[CONSTRAINTS]) or []
        size = _size(layers[0]) if layers else 0
        if size > count:
            return [invalid(f"{path}[{CONSTRAINTS}]", size, detail)]
        if len(layers) > 1 and size > 0 and count % size and configuration.enabled("TASPartialSlices"):
            detail = f"must evenly divide pod set count {count} when more than one layer is specified"
            return [invalid(f"{path}[{CONSTRAINTS}]", size, detail)]
    return []


def _group_problems(path: str, annotations: dict[str, str], configuration: JobsConfiguration) -> list[Problem]:
    if GROUP_NAME not in annotations:
        return []
    name, field = annotations[GROUP_NAME], f"{path}[{GROUP_NAME}]"
    problems = []
    if name.isascii() and name.isdigit() and int(name) < 2**64:
        problems.append(invalid(field, name, "must not be a number"))
    problems += [
        forbidden(field, f"may not be set when '{key}' is specified")
        for key in (SLICE_SIZE, SLICE_TOPOLOGY)
        if key in annotations and not configuration.enabled("TASGroupedPodSetSlicing")
    ]
    if REQUIRED not in annotations and PREFERRED not in annotations:
        problems.append(forbidden(field, f"may not be set when neither '{PREFERRED}' nor '{REQUIRED}' is specified"))
    return problems


def _slice_problems(path: str, annotations: dict[str, str]) -> list[Problem]:
    field = f"{path}[{SLICE_SIZE}]"
    problems = []
    if SLICE_SIZE in annotations:
        size, why = go_int(annotations[SLICE_SIZE], bits=32)
        if why or size is None:
            problems.append(invalid(field, annotations[SLICE_SIZE], "must be a numeric value"))
        elif size < 1:
            problems.append(invalid(field, annotations[SLICE_SIZE], "must be greater than or equal to 1"))
    if SLICE_TOPOLOGY in annotations and SLICE_SIZE not in annotations:
        problems.append(required(field, f"must be set when '{SLICE_TOPOLOGY}' is specified"))
    if SLICE_SIZE in annotations and SLICE_TOPOLOGY not in annotations:
        problems.append(forbidden(field, f"may not be set when '{SLICE_TOPOLOGY}' is not specified"))
    return problems


def _constraints_problems(path: str, annotations: dict[str, str], configuration: JobsConfiguration) -> list[Problem]:
    if CONSTRAINTS not in annotations:
        return []
    text, field = annotations[CONSTRAINTS], f"{path}[{CONSTRAINTS}]"
    if not configuration.enabled("TASMultiLayerTopology"):
        return [forbidden(field, "the TASMultiLayerTopology feature gate must be enabled to use this annotation")]
    problems = [
        forbidden(field, f"may not be set when '{key}' is specified")
        for key in (SLICE_TOPOLOGY, SLICE_SIZE)
        if key in annotations
    ]
    if GROUP_NAME in annotations and not configuration.enabled("TASGroupedPodSetSlicing"):
        problems.append(forbidden(f"{path}[{GROUP_NAME}]", f"may not be set when '{CONSTRAINTS}' is specified"))
    layers = _constraints(text)
    if layers is None:
        return [*problems, invalid(field, text, "must be a valid JSON array: a list of {topology, size}")]
    if not 1 <= len(layers) <= _MAX_LAYERS:
        return [*problems, invalid(field, text, "topology constraints must contain between 1 and 3 entries")]
    topologies = [_topology(layer) for layer in layers]
    sizes = [_size(layer) for layer in layers]
    for index, (topology, size) in enumerate(zip(topologies, sizes, strict=True)):
        entry = f"{field}[{index}]"
        problems += [invalid(f"{entry}.topology", topology, detail) for detail in label_key_problems(topology)]
        if size < 1:
            problems.append(invalid(f"{entry}.size", size, "must be greater than or equal to 1"))
    for index, topology in enumerate(topologies):
        first = topologies.index(topology)
        if first < index:
            message = f"Duplicate value: {quoted(f'{topology} (also at index {first})')}"
            problems.append(Problem(message, field=f"{field}[{index}].topology", value=topology))
    for index in range(1, len(sizes)):
        above, size = sizes[index - 1], sizes[index]
        # Go's remainder has the sign of the dividend; it is zero for the same pairs as here.
        if size > 0 and above % size != 0:
            problems.append(
                invalid(f"{field}[{index}].size", size, f"must evenly divide the parent layer size {above}")
            )
    return problems


def _constraints(text: str) -> list[JsonValue] | None:
    """Return the layers, or None if the text is not a list of mappings with a text and a 32-bit number."""
    try:
        layers = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if layers is None:
        return []
    if not isinstance(layers, list):
        return None
    for layer in layers:
        fits = isinstance(layer, dict) and isinstance(layer.get("topology", ""), str)
        size = layer.get("size", 0) if isinstance(layer, dict) else None
        if not fits or isinstance(size, bool) or not isinstance(size, int) or not -(2**31) <= size < 2**31:
            return None
    return layers


def _topology(layer: JsonValue) -> str:
    topology = layer.get("topology") if isinstance(layer, dict) else None
    return topology if isinstance(topology, str) else ""


def _size(layer: JsonValue) -> int:
    size = layer.get("size") if isinstance(layer, dict) else None
    return size if isinstance(size, int) else 0
