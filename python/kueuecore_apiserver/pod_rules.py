"""The defaults and rules of pods and pod templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from kueuecore._json import JsonValue, list_at, object_at, text_at
from kueuecore._names import label_problems
from kueuecore._quantities import number
from kueuecore_apiserver.refusals import Cause, forbidden
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.store import Store

__all__ = ["pod_causes", "pod_change_causes", "pod_spec_causes", "with_pod_defaults", "with_template_defaults"]

_QUANTITY = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_TOLERATED_SECONDS = 300
_CONTAINER_DEFAULTS = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_SPEC_DEFAULTS = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}
_FROZEN = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def with_template_defaults(template: Object) -> Object:
    """Return a pod or a pod template with the server's defaults in its spec."""
    if not isinstance(template.get("spec"), dict):
        return template
    spec = {**_SPEC_DEFAULTS, "securityContext": {}, **template["spec"]}
    if not spec.get("schedulingGates"):
        spec.pop("schedulingGates", None)
    for name in ("containers", "initContainers"):
        if isinstance(spec.get(name), list):
            spec[name] = [_with_container_defaults(row) if isinstance(row, dict) else row for row in spec[name]]
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    return {**template, "spec": spec}


def _with_container_defaults(container: Object) -> Object:
    image = text_at(container, "image")
    is_newest = image.endswith(":latest") or ":" not in image.rpartition("/")[2]
    result = {
        **_CONTAINER_DEFAULTS,
        "imagePullPolicy": "Always" if is_newest else "IfNotPresent",
        "resources": {},
        **container,
    }
    if isinstance(result.get("ports"), list):
        result["ports"] = [{"protocol": "TCP", **port} if isinstance(port, dict) else port for port in result["ports"]]
    return result


def with_pod_defaults(pod: Object, store: Store) -> Object:
    """Return a new pod after the server's admission.

    Raises:
        RefusedError: Its priority class does not exist (403).
    """
    if not isinstance(pod.get("spec"), dict):
        return pod
    spec = with_template_defaults(pod)["spec"]
    for name in ("containers", "initContainers"):
        if isinstance(spec.get(name), list):
            spec[name] = [_with_requests(default) if isinstance(default, dict) else default for default in spec[name]]
    spec = {"serviceAccountName": "default", "serviceAccount": "default", "enableServiceLinks": True, **spec}
    spec |= _priority(pod, spec, store)
    spec["tolerations"] = _with_default_tolerations(list_at(spec, "tolerations"))
    status: Object = {"phase": "Pending", "qosClass": _quality(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": store.time,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return {**pod, "spec": spec, "status": status}


def _with_requests(container: Object) -> Object:
    """Use limits as requests where these are missing."""
    limits = object_at(container, "resources", "limits")
    if not limits:
        return container
    requests = {**limits, **object_at(container, "resources", "requests")}
    return {**container, "resources": {**container["resources"], "requests": requests}}


def _priority(pod: Object, spec: Object, store: Store) -> Object:
    name = text_at(spec, "priorityClassName")
    if name in _SYSTEM_PRIORITIES:
        return {"priority": _SYSTEM_PRIORITIES[name], "preemptionPolicy": "PreemptLowerPriority"}
    if not name:
        found = [known for known in store.api.list("PriorityClass")[0] if known.get("globalDefault") is True]
        if not found:
            return {"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
        chosen = max(found, key=lambda letter: int(letter.get("value", 0)))
        name = chosen["metadata"]["name"]
    else:
        existing = store.api.find("PriorityClass", name)
        if existing is None:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("", "pods", text_at(pod, "metadata", "name"), why)
        chosen = existing
    policy = chosen.get("preemptionPolicy", "PreemptLowerPriority")
    return {"priorityClassName": name, "priority": chosen.get("value", 0), "preemptionPolicy": policy}


def _with_default_tolerations(tolerations: Sequence[object]) -> list[object]:
    """Add the tolerations that keep a pod for a while on a node that is not ready or not reachable."""
    there = {text_at(object_at(toleration), "key") for toleration in tolerations if isinstance(toleration, dict)}
    more: list[object] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if key not in there
    ]
    return [*tolerations, *more]


def _quality(spec: Object) -> str:
    resources = [object_at(container, "resources") for container in list_at(spec, "containers")]
    if not any(object_at(resource, "requests") or object_at(resource, "limits") for resource in resources):
        return "BestEffort"
    is_guaranteed = all(
        {"cpu", "memory"} <= object_at(resource, "limits").keys()
        and object_at(resource, "requests") == object_at(resource, "limits")
        for resource in resources
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def pod_causes(pod: Object) -> Iterator[Cause]:
    """Yield what is wrong with a pod."""
    yield from pod_spec_causes(object_at(pod, "spec"), "spec")
    if object_at(pod, "spec").get("schedulingGates") and text_at(pod, "spec", "nodeName"):
        yield Cause("spec.nodeName", "Forbidden: cannot be set until all schedulingGates have been cleared")
    gates = [text_at(gate, "name") for gate in list_at(object_at(pod, "spec"), "schedulingGates")]
    for index, gate in enumerate(gates):
        if gate in gates[:index]:
            yield Cause(f"spec.schedulingGates[{index}]", f'Duplicate value: "{gate}"')


def pod_spec_causes(spec: Object, path: str) -> Iterator[Cause]:
    """Yield what is wrong with the spec of a pod or of a template.

    Args:
        spec: The spec.
        path: Its path in the object.
    """
    containers = list_at(spec, "containers")
    if not containers:
        yield Cause(f"{path}.containers", "Required value")
    names: set[str] = set()
    for field in ("initContainers", "containers"):
        for index, container in enumerate(map(object_at, list_at(spec, field))):
            place = f"{path}.{field}[{index}]"
            yield from _container_causes(container, place)
            name = text_at(container, "name")
            if name and name in names:
                yield Cause(f"{place}.name", f'Duplicate value: "{name}"')
            names.add(name)
    policy = spec.get("restartPolicy")
    if containers and policy not in ("Always", "OnFailure", "Never"):
        yield Cause(
            f"{path}.restartPolicy",
            f'Unsupported value: {json.dumps(policy)}: supported values: "Always", "Never", "OnFailure"',
        )


def _container_causes(container: Object, path: str) -> Iterator[Cause]:
    name = text_at(container, "name")
    if not name:
        yield Cause(f"{path}.name", "Required value")
    else:
        yield from (Cause(f"{path}.name", f'Invalid value: "{name}": {problem}') for problem in label_problems(name))
    if not text_at(container, "image"):
        yield Cause(f"{path}.image", "Required value")
    for part in ("requests", "limits"):
        for resource, amount in object_at(container, "resources", part).items():
            if isinstance(amount, bool) or not _QUANTITY.fullmatch(str(amount)):
                yield Cause(
                    f"{path}.resources.{part}[{resource}]",
                    f"Invalid value: {json.dumps(amount)}: quantities must match the regular expression "
                    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
                )
            elif part == "requests" and _exceeds(amount, object_at(container, "resources", "limits").get(resource)):
                limit = object_at(container, "resources", "limits")[resource]
                why = f"must be less than or equal to {resource} limit of {limit}"
                yield Cause(f"{path}.resources.requests", f'Invalid value: "{amount}": {why}')
            elif str(amount).startswith("-"):
                message = f"Invalid value: {json.dumps(amount)}: must be greater than or equal to 0"
                yield Cause(f"{path}.resources.{part}[{resource}]", message)


def _exceeds(amount: object, limit: object) -> bool:
    """Return whether a request is larger than its limit, if both can be read."""
    one, other = number(amount), number(limit)
    return one is not None and other is not None and one > other


def pod_change_causes(new: Object, old: Object) -> Iterator[Cause]:
    """Yield the changes to a pod that are not allowed.

    Allowed are new images, more tolerations, a deadline, and the removal of scheduling gates; behind a gate also more
    node selectors and a narrower node affinity.
    """
    before, after = object_at(old, "spec"), object_at(new, "spec")
    gates_before = [text_at(gate, "name") for gate in list_at(before, "schedulingGates")]
    gates_after = [text_at(gate, "name") for gate in list_at(after, "schedulingGates")]
    if more := [gate for gate in gates_after if gate not in gates_before]:
        place = f"spec.schedulingGates[{gates_after.index(more[0])}].name"
        yield Cause(place, f"Forbidden: only deletion is allowed, but found new scheduling gate '{more[0]}'")
    tolerations = list_at(after, "tolerations")
    if any(toleration not in tolerations for toleration in list_at(before, "tolerations")):
        yield Cause(
            "spec.tolerations", "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        )
    yield from _deadline_causes(before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds"))
    was, is_now = _frozen(before), _frozen(after)
    if gates_before:
        selector = object_at(after, "nodeSelector")
        if any(selector.get(name) != value for name, value in object_at(before, "nodeSelector").items()):
            shown = json.dumps(selector, sort_keys=True, separators=(",", ":"))
            why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            yield Cause("spec.nodeSelector", f"Invalid value: {shown}: {why}")
        for spec in (was, is_now):
            spec.pop("nodeSelector", None)
            spec["affinity"] = {k: v for k, v in object_at(spec, "affinity").items() if k != "nodeAffinity"}
        yield from _affinity_causes(before, after)
    if was != is_now:
        yield Cause("spec", _FROZEN)


def _deadline_causes(before: JsonValue, after: JsonValue) -> Iterator[Cause]:
    """Allow a deadline to be set once, and to be shortened."""
    place = "spec.activeDeadlineSeconds"
    if isinstance(before, int) and after is None:
        yield Cause(place, "Invalid value: null: must not update from a positive integer to nil value")
    elif after is not None and (not isinstance(after, int) or after < 0):
        yield Cause(place, f"Invalid value: {json.dumps(after)}: must be between 0 and 2147483647, inclusive")
    elif isinstance(before, int) and isinstance(after, int) and after > before:
        yield Cause(place, f"Invalid value: {after}: must be less than or equal to previous value")


def _affinity_causes(before: Object, after: Object) -> Iterator[Cause]:
    """Behind a gate, allow each term of the node affinity to gain requirements, but not to lose any."""
    path = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    was = [object_at(term) for term in list_at(before, *path, "nodeSelectorTerms")]
    is_now = [object_at(term) for term in list_at(after, *path, "nodeSelectorTerms")]
    place = f"spec.{'.'.join(path)}.nodeSelectorTerms"
    if not was:
        return
    if len(was) != len(is_now):
        yield Cause(place, "Invalid value: no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (old, new) in enumerate(zip(was, is_now, strict=True)):
        for name in ("matchExpressions", "matchFields"):
            if any(value not in list_at(new, name) for value in list_at(old, name)):
                yield Cause(
                    f"{place}[{index}]", "Invalid value: only additions are allowed (no mutations or deletions)"
                )


def _frozen(spec: Object) -> Object:
    """Return the spec of a pod without what may always change."""
    left = {
        name: row
        for name, row in spec.items()
        if name not in ("activeDeadlineSeconds", "tolerations", "schedulingGates")
    }
    for name in ("containers", "initContainers"):
        if name in left:
            left[name] = [{k: v for k, v in object_at(value).items() if k != "image"} for value in left[name]]
    if left.get("terminationGracePeriodSeconds") == 1:
        left["terminationGracePeriodSeconds"] = -1
    return left
