"""Deletions: at once, after finalizers, with dependents, and of whole collections."""

from __future__ import annotations

from kueuecore._json import list_at, object_at, text_at
from kueuecore_apiserver.refusals import bad_request, conflict
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Resource
from kueuecore_apiserver.selectors import selector_of
from kueuecore_apiserver.store import Store

__all__ = ["CRD_FINALIZER", "FOREGROUND", "ORPHAN", "Deletes"]

FOREGROUND = "foregroundDeletion"
"""An object with it waits for its dependents."""
ORPHAN = "orphan"
"""An object with it leaves its dependents behind."""
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
"""A CustomResourceDefinition with it waits for its objects."""
_POLICIES = {"Foreground": (FOREGROUND,), "Orphan": (ORPHAN,), "Background": ()}


class Deletes:
    """Deletes objects from a store.

    Args:
        store: The store.
        waits_for_kubelets: Whether pods on nodes stay, marked as deleted, until they are deleted without grace.
    """

    def __init__(self, store: Store, *, waits_for_kubelets: bool) -> None:
        self._store, self._waits_for_kubelets = store, waits_for_kubelets

    def delete(self, request: Request, resource: Resource, options: Object) -> tuple[Object, bool]:
        """Delete an object.

        Args:
            request: The request.
            resource: The kind.
            options: The body, `DeleteOptions`; query parameters have the same meaning.

        Returns:
            The object, in its last or current version, and whether it is gone.

        Raises:
            RefusedError: It does not exist (404), a precondition fails (409), or an option is unknown (400).
        """
        found = self._store.get(resource, request)
        return self.delete_found(resource, found, _with_parameters(request, options), is_dry_run=request.is_dry_run)

    def delete_many(self, request: Request, resource: Resource, options: Object) -> list[Object]:
        """Delete the objects that a request selects.

        Returns:
            The objects as they were before.

        Raises:
            RefusedError: A selector is malformed, or an option is unknown (400).
        """
        labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
        select = selector_of(resource.group, resource.plural, labels, fields, resource.selectable)
        options = _with_parameters(request, options)
        objects = self._store.objects(resource, request.namespace)
        chosen = [object_ for object_ in objects if select is None or select(object_)]
        for object_ in chosen:
            self.delete_found(resource, object_, options, is_dry_run=request.is_dry_run)
        return chosen

    def delete_all(self, resource: Resource, namespace: str = "") -> None:
        """Delete all objects of a kind, in one namespace or in all."""
        for object_ in self._store.objects(resource, namespace):
            self.delete_found(resource, object_, {"propagationPolicy": "Background"})

    def delete_found(
        self, resource: Resource, found: Object, options: Object, *, is_dry_run: bool = False
    ) -> tuple[Object, bool]:
        """Delete an object that was found already.

        Returns:
            The object, in its last or current version, and whether it is gone.

        Raises:
            RefusedError: A precondition fails (409), or an option is unknown (400).
        """
        metadata = found["metadata"]
        self._check(resource, found, object_at(options, "preconditions"))
        if is_dry_run:
            return found, not metadata.get("finalizers")
        if "deletionTimestamp" in metadata or resource.kind != "Job":
            options = {"propagationPolicy": "Background", **options}
        finalizers = list(_finalizers_of(options, resource))
        if resource.kind == "Namespace" and not resource.group:
            return self._terminate_namespace(found), False
        if resource.kind == "CustomResourceDefinition" and self._has_objects(found):
            finalizers.append(CRD_FINALIZER)
        api = self._store.api
        place = {"namespace": metadata.get("namespace", "")}
        if self._is_graceful(resource, found, options):
            if "deletionTimestamp" in metadata:
                return found, False
            seconds = options.get("gracePeriodSeconds")
            if seconds is None:
                seconds = object_at(found, "spec").get("terminationGracePeriodSeconds", 30)
            marked = {"deletionTimestamp": self._store.time, "deletionGracePeriodSeconds": seconds}
            return api.mark_deleted(resource.stored_as, metadata["name"], marked, **place), False
        result = api.delete(resource.stored_as, metadata["name"], finalizers=finalizers, **place)
        has_gone = api.find(resource.stored_as, metadata["name"], **place) is None
        if resource.kind == "CustomResourceDefinition" and not has_gone:
            self._delete_objects_of(found)
            has_gone = self.finish_crd(metadata["name"])
        return result, has_gone

    def _check(self, resource: Resource, found: Object, preconditions: Object) -> None:
        for name, title in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            wanted, there = preconditions.get(name), found["metadata"][name]
            if wanted and wanted != there:
                why = (
                    f"the {title} in the precondition ({wanted}) does not match the {title} in record ({there}). "
                    "The object might have been deleted and then recreated"
                )
                # The kind here, its plural elsewhere.
                raise conflict("", resource.kind, found["metadata"]["name"], why)

    def _is_graceful(self, resource: Resource, found: Object, options: Object) -> bool:
        """Return whether a pod must be killed by its node first."""
        return (
            self._waits_for_kubelets
            and resource.kind == "Pod"
            and bool(text_at(found, "spec", "nodeName"))
            and text_at(found, "status", "phase") not in ("Succeeded", "Failed")
            and options.get("gracePeriodSeconds") != 0
        )

    def _terminate_namespace(self, found: Object) -> Object:
        """Mark a namespace as terminating; the garbage collection ends it once it is empty."""
        name = found["metadata"]["name"]
        if "deletionTimestamp" in found["metadata"]:
            return found
        marked = {"deletionTimestamp": self._store.time}
        terminating = {"status": {**object_at(found, "status"), "phase": "Terminating"}}
        return self._store.api.mark_deleted("Namespace", name, marked, changed=terminating)

    def _objects_of(self, crd: Object) -> Resource | None:
        group, plural = text_at(crd, "spec", "group"), text_at(crd, "spec", "names", "plural")
        return next(
            (resource for resource in self._store.registry.all if (resource.group, resource.plural) == (group, plural)),
            None,
        )

    def _has_objects(self, crd: Object) -> bool:
        resource = self._objects_of(crd)
        return resource is not None and bool(self._store.objects(resource, ""))

    def _delete_objects_of(self, crd: Object) -> None:
        resource = self._objects_of(crd)
        if resource is not None:
            self.delete_all(resource)

    def finish_crd(self, name: str) -> bool:
        """Remove a deleted CustomResourceDefinition once none of its objects is left. Returns whether it is gone."""
        crd = self._store.api.find("CustomResourceDefinition", name)
        if crd is None or "deletionTimestamp" not in crd["metadata"] or self._has_objects(crd):
            return crd is None
        finalizers = [finalizer for finalizer in list_at(crd, "metadata", "finalizers") if finalizer != CRD_FINALIZER]
        metadata = {**crd["metadata"], "finalizers": finalizers}
        self._store.api.replace({**crd, "metadata": metadata})
        return not finalizers


def _with_parameters(request: Request, options: Object) -> Object:
    """Return the options of the body, completed by those of the query."""
    query: Object = {}
    if policy := request.query.get("propagationPolicy"):
        query["propagationPolicy"] = policy
    if "gracePeriodSeconds" in request.query:
        query["gracePeriodSeconds"] = request.number("gracePeriodSeconds", 0)
    if "orphanDependents" in request.query:
        query["orphanDependents"] = request.flag("orphanDependents")
    return {**query, **options}


def _finalizers_of(options: Object, resource: Resource) -> tuple[str, ...]:
    if options.get("orphanDependents") is True:
        return _POLICIES["Orphan"]
    # A Job leaves its pods behind, unless the client says otherwise.
    unsaid = "Orphan" if (resource.group, resource.kind) == ("batch", "Job") else "Background"
    if options.get("orphanDependents") is False:
        unsaid = "Background"
    policy = options.get("propagationPolicy") or unsaid
    if policy not in _POLICIES:
        raise bad_request(
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "{policy}": '
            'supported values: "Foreground", "Background", "Orphan", "nil"'
        )
    return _POLICIES[policy]
