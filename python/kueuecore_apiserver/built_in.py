"""The defaults and rules of built-in kinds, as far as they matter to a controller of jobs."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import object_at, text_at
from kueuecore_apiserver.job_rules import check_job_types, job_causes, job_change_causes, with_job_defaults
from kueuecore_apiserver.job_status_rules import job_status_causes, without_zeros
from kueuecore_apiserver.pod_rules import (
    pod_causes,
    pod_change_causes,
    pod_spec_causes,
    with_pod_defaults,
    with_template_defaults,
)
from kueuecore_apiserver.record_rules import check_micro_times, event_causes, lease_causes
from kueuecore_apiserver.refusals import Cause, invalid
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.resources import Resource
from kueuecore_apiserver.store import Store

__all__ = [
    "check_built_in",
    "check_built_in_change",
    "check_built_in_status",
    "with_built_in_defaults",
    "with_status_as_stored",
]

_WITH_TEMPLATES = ("Deployment", "ReplicaSet", "StatefulSet")
# Fields that never change, of workloads made of pods.
_IMMUTABLE = {
    "Deployment": ("selector",),
    "ReplicaSet": ("selector",),
    "StatefulSet": ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
}
_IMMUTABLE_FIELDS = {
    "PriorityClass": ("value", "preemptionPolicy"),
    "RuntimeClass": ("handler",),
    "RoleBinding": ("roleRef",),
    "ClusterRoleBinding": ("roleRef",),
    "ResourceClaimTemplate": ("spec",),
}


def with_built_in_defaults(resource: Resource, new: Object, old: Object | None, store: Store) -> Object:
    """Return an object of a built-in kind with the server's defaults."""
    match resource.kind:
        case "Namespace":
            return _with_namespace_defaults(new, old)
        case "Pod":
            return with_pod_defaults(new, store) if old is None else with_template_defaults(new)
        case "Job":
            its = new["metadata"]
            uid = store.next_uid("Job", text_at(its, "namespace"), text_at(its, "name")) if old is None else its["uid"]
            check_job_types(new)
            return without_zeros(with_job_defaults(new, uid))
        case kind if kind in _WITH_TEMPLATES and isinstance(new.get("spec"), dict):
            spec = {"replicas": 1, **new["spec"]}
            return {**new, "spec": {**spec, "template": with_template_defaults(object_at(spec, "template"))}}
        case "CustomResourceDefinition" if isinstance(new.get("spec"), dict):
            return {**new, "spec": {"conversion": {"strategy": "None"}, **new["spec"]}}
        case "PriorityClass":
            return {"preemptionPolicy": "PreemptLowerPriority", **new}
        case _:
            return new


def with_status_as_stored(resource: Resource, new: Object) -> Object:
    """Return an object of a built-in kind whose status was written, without what a server leaves out."""
    return without_zeros(new) if resource.kind == "Job" else new


def _with_namespace_defaults(new: Object, old: Object | None) -> Object:
    metadata = new["metadata"]
    labels = {**object_at(metadata, "labels"), "kubernetes.io/metadata.name": metadata["name"]}
    named = {**new, "metadata": {**metadata, "labels": labels}}
    if old is not None:
        # Finalizers of a namespace are removed via the subresource.
        return {**named, "spec": old["spec"]} if "spec" in old else named
    return {**named, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def check_built_in(resource: Resource, new: Object) -> None:
    """Check a new object of a built-in kind.

    Raises:
        RefusedError: It is not allowed (422), or a time in it cannot be read (400).
    """
    _refuse(resource, new, _causes(resource, new))


def _causes(resource: Resource, new: Object) -> Iterable[Cause]:
    match resource.kind:
        case "Pod":
            return pod_causes(new)
        case "Job":
            return job_causes(new)
        case kind if kind in _WITH_TEMPLATES:
            return _template_causes(new)
        case "CustomResourceDefinition":
            return _crd_causes(new)
        case "Event":
            check_micro_times(new)
            return event_causes(new)
        case "Lease":
            check_micro_times(new)
            return lease_causes(new)
        case "PriorityClass":
            value = new.get("value", 0)
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            return () if is_whole else [Cause("value", f"Invalid value: {value}: must be a whole number")]
        case _:
            return ()


def _template_causes(new: Object) -> Iterable[Cause]:
    spec = object_at(new, "spec")
    selector = object_at(spec, "selector", "matchLabels")
    labels = object_at(spec, "template", "metadata", "labels")
    if not selector and not object_at(spec, "selector"):
        yield Cause("spec.selector", "Required value")
    elif any(labels.get(name) != value for name, value in selector.items()):
        yield Cause(
            "spec.template.metadata.labels",
            "Invalid value: `selector` does not match template `labels`",
        )
    yield from pod_spec_causes(object_at(spec, "template", "spec"), "spec.template.spec")


def _crd_causes(new: Object) -> Iterable[Cause]:
    spec = object_at(new, "spec")
    wanted = f"{text_at(spec, 'names', 'plural')}.{text_at(spec, 'group')}"
    if text_at(new, "metadata", "name") != wanted:
        shown = text_at(new, "metadata", "name")
        yield Cause("metadata.name", f'Invalid value: "{shown}": must be spec.names.plural+"."+spec.group')
    if text_at(spec, "scope") not in ("Namespaced", "Cluster"):
        shown = text_at(spec, "scope")
        yield Cause("spec.scope", f'Unsupported value: "{shown}": supported values: "Cluster", "Namespaced"')
    versions = spec.get("versions")
    listed = [object_at(version) for version in versions] if isinstance(versions, list) else []
    if sum(version.get("storage") is True for version in listed) != 1:
        yield Cause("spec.versions", "Invalid value: must have exactly one version marked as storage version")


def check_built_in_change(resource: Resource, new: Object, old: Object) -> None:
    """Check a changed object of a built-in kind.

    Raises:
        RefusedError: The object is not allowed, or the change is not (422).
    """
    causes = [*_causes(resource, new), *_change_causes(resource, new, old)]
    _refuse(resource, new, list(dict.fromkeys(causes)))


def check_built_in_status(resource: Resource, new: Object, old: Object) -> None:
    """Check a changed status of an object of a built-in kind.

    Raises:
        RefusedError: The change is not allowed (422).
    """
    if resource.kind == "Job":
        _refuse(resource, new, job_status_causes(new, old))


def _change_causes(resource: Resource, new: Object, old: Object) -> Iterable[Cause]:
    match resource.kind:
        case "Pod":
            yield from pod_change_causes(new, old)
        case "Job":
            yield from job_change_causes(new, old)
        case kind if kind in _IMMUTABLE:
            before, after = object_at(old, "spec"), object_at(new, "spec")
            for name in _IMMUTABLE[kind]:
                if before.get(name) != after.get(name):
                    yield Cause(f"spec.{name}", "Invalid value: field is immutable")
        case kind if kind in _IMMUTABLE_FIELDS:
            for name in _IMMUTABLE_FIELDS[kind]:
                if old.get(name) != new.get(name):
                    yield Cause(name, "Invalid value: field is immutable")
        case _:
            pass
    if old.get("immutable") is True and (old.get("data"), True) != (new.get("data"), new.get("immutable")):
        yield Cause("data", "Forbidden: field is immutable when `immutable` is set")


def _refuse(resource: Resource, new: Object, causes: Iterable[Cause]) -> None:
    listed = list(causes)
    if listed:
        raise invalid(resource.group, resource.kind, text_at(new, "metadata", "name"), listed)
