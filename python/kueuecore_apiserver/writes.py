"""Creates, updates and patches: which part of an object a request may write, and the form in which it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueuecore._json import list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore_apiserver import metadata_rules
from kueuecore_apiserver.admission.chain import Admission
from kueuecore_apiserver.built_in import (
    check_built_in,
    check_built_in_change,
    check_built_in_status,
    with_built_in_defaults,
    with_status_as_stored,
)
from kueuecore_apiserver.managed_fields import Writer, applied, with_owners
from kueuecore_apiserver.patches import APPLY, patched_by
from kueuecore_apiserver.refusals import (
    Cause,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    no_such_resource,
    not_found,
)
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import CRD_GROUP, KUEUE_GROUP, Resource
from kueuecore_apiserver.store import Store, as_version

__all__ = ["Writes"]

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
# Fields that a new object does not bring along.
_OF_THE_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation",
                  "selfLink", "managedFields")  # fmt: skip
_MAX_NAMES_TRIED = 8


class Writes:
    """Writes objects into a store.

    Args:
        store: The store.
        admission: What policies and webhooks say.
    """

    def __init__(self, store: Store, admission: Admission) -> None:
        self._store, self._admission = store, admission

    def create(self, request: Request, resource: Resource, body: Object) -> Object:
        """Create an object.

        Raises:
            RefusedError: It must not be created.
        """
        _check_kind(resource, body)
        new = self._new(request, resource, body)
        self._check_namespace(resource, new)
        new = with_owners(None, self._checked(request, resource, new, None), self._writer(request, resource),
                          resource.shape)  # fmt: skip
        return self._created(request, resource, new)

    def _new(self, request: Request, resource: Resource, body: Object) -> Object:
        """Return what a client sends as a new object, without fields that it may not set."""
        given = object_at(body, "metadata")
        if given.get("resourceVersion"):
            raise RefusedError(500, "resourceVersion should not be set on objects to be created")
        if resource.namespaced and given.get("namespace", request.namespace) != request.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        metadata = {
            name: assignment for name, assignment in given.items() if name not in (*_OF_THE_SERVER, "namespace")
        }
        if resource.namespaced:
            metadata["namespace"] = request.namespace
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generated(resource, request.namespace, str(metadata["generateName"]))
        drops_status = resource.has_status
        parts = {
            name: entry
            for name, entry in body.items()
            if name not in ("apiVersion", "kind", "metadata") and not (drops_status and name == "status")
        }
        return {
            "apiVersion": resource.stored_api_version,
            "kind": resource.kind,
            "metadata": metadata,
            **parts,
        }

    def _generated(self, resource: Resource, namespace: str, base: str) -> str:
        for _ in range(_MAX_NAMES_TRIED):
            name = base[:58] + self._store.new_suffix()
            if self._store.find(resource, namespace, name) is None:
                break
        return name

    def _created(self, request: Request, resource: Resource, new: Object) -> Object:
        name = text_at(new, "metadata", "name")
        if self._store.find(resource, request.namespace, name) is not None:
            raise already_exists(resource.group, resource.plural, name)
        return self._store.api.create(new, kind=resource.stored_as, dry_run=request.is_dry_run)

    def _check_namespace(self, resource: Resource, new: Object) -> None:
        """Check that the namespace of a new object exists and is not being deleted."""
        if not resource.namespaced:
            return
        name = new["metadata"]["namespace"]
        namespace = self._store.api.find("Namespace", name)
        if namespace is None:
            raise not_found("", "namespaces", name)
        if "deletionTimestamp" in namespace["metadata"]:
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            raise forbidden(resource.group, resource.plural, text_at(new, "metadata", "name"), why, [dict(cause)])

    def update(self, request: Request, resource: Resource, body: Object) -> Object:
        """Replace an object, or its status.

        Raises:
            RefusedError: It must not be replaced.
        """
        old = self._store.get(resource, request)
        _check_kind(resource, body)
        given = object_at(body, "metadata")
        if text_at(given, "name") != request.name:
            found = text_at(given, "name")
            raise bad_request(f"the name of the object ({found}) does not match the name on the URL ({request.name})")
        if resource.namespaced and given.get("namespace", request.namespace) != request.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if resource.is_custom and not given.get("resourceVersion"):
            cause = Cause("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")
            raise invalid(resource.group, resource.plural, request.name, [cause])
        return self._replaced(request, resource, old, body)

    def patch(self, request: Request, resource: Resource, body: Any) -> Object:
        """Patch an object or its status, or apply a configuration.

        Raises:
            RefusedError: The patch is not allowed.
        """
        if request.content_type == APPLY:
            return self._applied(request, resource, body)
        old = self._store.get(resource, request)
        live = as_version(old, resource)
        new = patched_by(request.content_type, live, body, resource.shape, is_custom=resource.is_custom)
        _check_kind(resource, new)
        if object_at(new, "metadata").get("name") != request.name:
            why = "metadata.name: Invalid value: field is immutable"
            raise invalid(resource.group, resource.kind, request.name, [Cause("metadata.name", why.partition(": ")[2])])
        return self._replaced(request, resource, old, new)

    def _replaced(self, request: Request, resource: Resource, old: Object, body: Object) -> Object:
        """Store the client's new version of an object."""
        _check_versions(resource, old, object_at(body, "metadata"), is_update=request.verb == "update")
        new = _with_servers_metadata(old, _only_its_part(resource, request, old, body))
        if new != old:
            new = self._checked(request, resource, new, old)
        # Writes of whole objects may set field ownership, as kubectl does when it starts to use server-side apply.
        given = [] if request.subresource else list_at(body, "metadata", "managedFields")
        new = with_owners(old, new, self._writer(request, resource), resource.shape, given=given)
        return self._store.api.replace(new, kind=resource.stored_as, dry_run=request.is_dry_run)

    def _applied(self, request: Request, resource: Resource, config: Any) -> Object:
        if not isinstance(config, dict):
            raise bad_request("error decoding YAML: the configuration is no object")
        _check_kind(resource, config, says_all=True)
        given = object_at(config, "metadata")
        if given.get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        if not request.query.get("fieldManager"):
            cause = Cause("fieldManager", "Required value: is required for apply patch")
            raise invalid("meta.k8s.io", "PatchOptions", "", [cause])
        if given.get("name", request.name) != request.name:
            raise bad_request(
                f"the name of the object ({given.get('name')}) does not match the name on the URL ({request.name})"
            )
        old = self._store.find(resource, request.namespace, request.name)
        if old is None and request.subresource:
            raise not_found(resource.group, resource.plural, request.name)
        metadata = {**given, "name": request.name}
        if resource.namespaced:
            metadata["namespace"] = request.namespace
        config = {**config, "apiVersion": resource.stored_api_version, "metadata": metadata}
        config = _applied_part(resource, request, config)
        writer = self._writer(request, resource)
        new = applied(old, config, writer, resource.shape, force=request.flag("force"))
        if old is None:
            if given.get("resourceVersion") or given.get("uid"):
                raise not_found(resource.group, resource.plural, request.name)
            owners = new["metadata"].get("managedFields")
            new = self._new(request, resource, new)
            self._check_namespace(resource, new)
            new = self._checked(request, resource, new, None)
            return self._created(request, resource, _with_owners_of(new, owners))
        _check_versions(resource, old, given)
        owners = new["metadata"].get("managedFields")
        new = _with_servers_metadata(old, new)
        if {**new, "metadata": {**new["metadata"], "managedFields": owners}} != old:
            new = _with_owners_of(self._checked(request, resource, new, old), owners)
        else:
            new = old
        return self._store.api.replace(new, kind=resource.stored_as, dry_run=request.is_dry_run)

    def _checked(self, request: Request, resource: Resource, new: Object, old: Object | None) -> Object:
        """Return an object after defaults, schema, rules and webhooks."""
        metadata_rules.check(resource, new, old)
        new = metadata_rules.without_empty(new)
        is_whole = not request.subresource
        if self._store.access is not None:
            self._store.access.check_owners(request, resource, new, old, self._store.registry)
        if not resource.is_custom and is_whole:
            new = with_built_in_defaults(resource, new, old, self._store)
        elif not resource.is_custom:
            new = with_status_as_stored(resource, new)
        new = self._admission.mutated(request, resource, new, old)
        schema = self._store.schema(resource)
        if schema is not None:
            new = schema.stored(new, old, subresource="status" if request.subresource == "status" else "")
        if self._store.webhooks is not None and (is_whole or resource.group == KUEUE_GROUP):
            admitted = self._store.webhooks(new, old=old, around=self._store.around(new))
            request.warnings += getattr(admitted, "warnings", ())
            new = admitted.object
        if not resource.is_custom:
            _check_built_in(resource, new, old, is_whole=is_whole)
        self._admission.check(request, resource, new, old)
        if resource.group == CRD_GROUP:
            return _with_names(new, self._store.time)
        return new

    def _writer(self, request: Request, resource: Resource) -> Writer:
        return Writer(request.field_manager, resource.api_version, request.subresource, self._store.time)


def _check_kind(resource: Resource, body: Object, *, says_all: bool = False) -> None:
    """Check that a body is of the kind of its path; built-in kinds may omit it, except in apply."""
    kind, api_version = text_at(body, "kind"), text_at(body, "apiVersion")
    needs_all = resource.is_custom or says_all
    if needs_all and not kind:
        raise bad_request("Object 'Kind' is missing in the body of the request")
    if kind not in (resource.kind, "") or (needs_all and not api_version):
        raise bad_request(
            f'{kind} in version "{api_version}" cannot be handled as a {resource.kind}: no kind "{kind}" is registered '
            f'for version "{api_version}" at this path'
        )
    if api_version not in (resource.api_version, ""):
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )


def _check_built_in(resource: Resource, new: Object, old: Object | None, *, is_whole: bool) -> None:
    if old is None:
        check_built_in(resource, new)
    elif is_whole:
        check_built_in_change(resource, new, old)
    else:
        check_built_in_status(resource, new, old)


def _check_versions(resource: Resource, old: Object, given: Mapping[str, object], *, is_update: bool = False) -> None:
    """Check the preconditions of a write: UID and version of the object that it was made from.

    The UID is a precondition of an update; for a patch, it is a field that may not change.
    """
    uid, version = old["metadata"]["uid"], old["metadata"]["resourceVersion"]
    name = old["metadata"]["name"]
    if given.get("uid") not in (None, "", uid):
        if is_update:
            why = f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {uid}"
            raise conflict(resource.group, resource.plural, name, why)
        if given.get("resourceVersion") in (None, "", version):
            cause = Cause("metadata.uid", f'Invalid value: "{given["uid"]}": field is immutable')
            raise invalid(resource.group, resource.kind, name, [cause])
    if given.get("resourceVersion") and not str(given["resourceVersion"]).isdigit():
        raise RefusedError(500, f'strconv.ParseUint: parsing "{given["resourceVersion"]}": invalid syntax')
    if given.get("resourceVersion") not in (None, "", version):
        raise conflict(resource.group, resource.plural, name, _MODIFIED)


def _with_servers_metadata(old: Object, new: Object) -> Object:
    """Keep the fields that only the server writes."""
    alone = (*_OF_THE_SERVER, "name", "namespace", "resourceVersion")
    kept = {name: old["metadata"][name] for name in alone if name in old["metadata"]}
    free = {name: entry for name, entry in object_at(new, "metadata").items() if name not in alone}
    return {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": {**free, **kept}}


def _only_its_part(resource: Resource, request: Request, old: Object, body: Object) -> Object:
    """Return the part that a request may change: only the status through its subresource, else all but the status."""
    if request.subresource == "status":
        # For built-in kinds, a write of the status may change labels and the like; for custom ones it may not.
        metadata = old["metadata"] if resource.is_custom else body["metadata"]
        rest = {name: entry for name, entry in old.items() if name not in ("status", "metadata")}
        status = {"status": body["status"]} if body.get("status") is not None else {}
        return {**rest, "metadata": metadata, **status}
    if not resource.has_status:
        return body
    rest = {name: entry for name, entry in body.items() if name != "status"}
    return {**rest, "status": old["status"]} if "status" in old else rest


def _applied_part(resource: Resource, request: Request, config: Object) -> Object:
    """Return the part of a configuration that a request may apply."""
    names = ("apiVersion", "kind", "metadata")
    if request.subresource == "status":
        metadata = {name: config["metadata"][name] for name in ("name", "namespace") if name in config["metadata"]}
        part = {name: row for name, row in config.items() if name in ("apiVersion", "kind", "status")}
        return {**part, "metadata": metadata if resource.is_custom else config["metadata"]}
    if request.subresource:
        raise no_such_resource()
    if not resource.has_status:
        return config
    return {name: row for name, row in config.items() if name in names or name != "status"}


def _with_owners_of(new: Object, owners: object) -> Object:
    metadata = {name: row for name, row in new["metadata"].items() if name != "managedFields"}
    return {**new, "metadata": {**metadata, "managedFields": owners} if owners else metadata}


def _with_names(crd: Object, time: str) -> Object:
    """Return a CustomResourceDefinition whose names are accepted, as it is just after its creation."""
    if object_at(crd, "status").get("acceptedNames"):
        return crd
    accepted = (("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"))  # fmt: skip
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": time, "reason": reason, "message": message}
        for type_, reason, message in accepted
    ]
    stored = [
        text_at(version, "name")
        for version in map(object_at, list_at(crd, "spec", "versions"))
        if version.get("storage")
    ]
    names = object_at(crd, "spec", "names")
    singular = text_at(names, "singular") or text_at(names, "kind").lower()
    list_kind = text_at(names, "listKind") or f"{text_at(names, 'kind')}List"
    named = {**names, "singular": singular, "listKind": list_kind}
    return {
        **crd,
        "spec": {**crd["spec"], "names": named, "conversion": crd["spec"].get("conversion", {"strategy": "None"})},
        "status": {"conditions": conditions, "acceptedNames": named, "storedVersions": stored},
    }
