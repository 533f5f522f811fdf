"""Decides which requests a policy or a webhook is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kueuecore._json import list_at, object_at, text_at, texts_at
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.resources import Resource

__all__ = ["Attributes", "is_about", "selects"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """A write that is to be admitted.

    Args:
        resource: The kind.
        operation: `CREATE` or `UPDATE`.
        subresource: The subresource; empty for the object itself.
        namespace: The namespace as stored; None for an object without one.
        new: The object.
        old: The stored object, for an update.
        user: The user, if the server knows users.
        is_dry_run: Whether nothing will be stored.
    """

    resource: Resource
    operation: str
    subresource: str
    namespace: Object | None
    new: Object
    old: Object | None
    user: str = ""
    is_dry_run: bool = False

    @property
    def name(self) -> str:
        """The name of the object."""
        return text_at(self.new, "metadata", "name")

    def of(self, new: Object) -> Attributes:
        """Return the same write after a change of the object."""
        return replace(self, new=new)

    def request(self) -> Object:
        """Return it as a policy sees it in `request`, and a webhook in an AdmissionReview, without the objects."""
        its = self.resource
        kind = {"group": its.group, "version": its.version, "kind": its.kind}
        resource = {"group": its.group, "version": its.version, "resource": its.plural}
        found: Object = {
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.name,
            "operation": self.operation,
            "userInfo": {"username": self.user},
            "dryRun": self.is_dry_run,
        }
        if self.subresource:
            found |= {"subResource": self.subresource, "requestSubResource": self.subresource}
        if self.namespace is not None:
            found["namespace"] = text_at(self.namespace, "metadata", "name")
        return found


def is_about(constraints: Object, rules: str, attributes: Attributes) -> bool:
    """Return whether rules and selectors of a policy or a webhook match a write.

    Args:
        constraints: The selectors, and the rules.
        rules: The name of the rules: `resourceRules` of a policy, `rules` of a webhook.
        attributes: The write.
    """
    if not any(_covers(rule, attributes) for rule in map(object_at, list_at(constraints, rules))):
        return False
    if any(_covers(rule, attributes) for rule in map(object_at, list_at(constraints, "excludeResourceRules"))):
        return False
    if attributes.namespace is not None:
        labels = texts_at(attributes.namespace, "metadata", "labels")
        if not selects(object_at(constraints, "namespaceSelector"), labels):
            return False
    selector = object_at(constraints, "objectSelector")
    versions = (attributes.new, attributes.old or {})
    return any(selects(selector, texts_at(version, "metadata", "labels")) for version in versions)


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector selects labels."""
    if any(labels.get(key) != value for key, value in texts_at(selector, "matchLabels").items()):
        return False
    return all(_meets(row, labels) for row in map(object_at, list_at(selector, "matchExpressions")))


def _meets(row: Object, labels: Mapping[str, str]) -> bool:
    found = labels.get(text_at(row, "key"))
    match text_at(row, "operator"):
        case "In":
            return found in list_at(row, "values")
        case "NotIn":
            return found is None or found not in list_at(row, "values")
        case "Exists":
            return found is not None
        case _:
            return found is None


def _covers(rule: Object, attributes: Attributes) -> bool:
    its = attributes.resource
    resource = "/".join(filter(None, (its.plural, attributes.subresource)))
    scope = "Namespaced" if its.namespaced else "Cluster"
    return (
        _has(rule, "apiGroups", its.group)
        and _has(rule, "apiVersions", its.version)
        and _has(rule, "operations", attributes.operation)
        and bool({resource, f"{its.plural}/*"} & {*list_at(rule, "resources")} if attributes.subresource else
                 {resource, "*"} & {*list_at(rule, "resources")})
        and text_at(rule, "scope") in ("", "*", scope)
    )  # fmt: skip


def _has(rule: Object, name: str, value: str) -> bool:
    return not {"*", value}.isdisjoint(map(str, list_at(rule, name)))
