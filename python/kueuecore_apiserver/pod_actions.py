"""Subresources that act on pods: binding by a scheduler, and eviction when a node is drained."""

from __future__ import annotations

from kueuecore._json import list_at, object_at, text_at
from kueuecore_apiserver.deletes import Deletes
from kueuecore_apiserver.refusals import bad_request, conflict
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Resource
from kueuecore_apiserver.store import Store

__all__ = ["bound", "evicted"]

_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bound(store: Store, resource: Resource, request: Request, binding: Object) -> Object:
    """Bind a pod to a node.

    Raises:
        RefusedError: There is no such pod (404), it has a node or gates (409), or no node is named (400).
    """
    pod = store.get(resource, request)
    node = text_at(binding, "target", "name")
    if not node:
        raise bad_request("target.name: Required value")
    if there := text_at(pod, "spec", "nodeName"):
        why = f'pod {request.name} is already assigned to node "{there}"'
        raise conflict("", "pods/binding", request.name, why)
    if list_at(pod, "spec", "schedulingGates"):
        why = f"pod {request.name} has non-empty .spec.schedulingGates"
        raise conflict("", "pods/binding", request.name, why)
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": store.time}
    conditions = [it for it in list_at(pod, "status", "conditions") if text_at(it, "type") != "PodScheduled"]
    status = {**object_at(pod, "status"), "conditions": [*conditions, scheduled]}
    if not request.is_dry_run:
        store.api.replace({**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status})
    return _SUCCESS


def evicted(store: Store, deletes: Deletes, resource: Resource, request: Request, eviction: Object) -> Object:
    """Evict a pod: delete it with the options of the eviction. There are no disruption budgets here.

    Raises:
        RefusedError: There is no such pod (404), or a precondition fails (409).
    """
    store.get(resource, request)
    deletes.delete(request, resource, object_at(eviction, "deleteOptions"))
    return _SUCCESS
