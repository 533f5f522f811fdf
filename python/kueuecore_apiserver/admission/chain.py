"""Passes writes through policies and webhooks: first those that change an object, later those that only look at it."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import text_at
from kueuecore_apiserver.admission.matching import Attributes
from kueuecore_apiserver.admission.policies import Policies
from kueuecore_apiserver.admission.webhook_calls import Outcomes, WebhookCalls
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Resource
from kueuecore_apiserver.store import Store, as_version

__all__ = ["Admission"]

# Never admitted by what they configure, or a mistake could not be repaired.
_GROUP = "admissionregistration.k8s.io"


class Admission:
    """The admission of a server, by what is configured in it. Deletions are not asked about.

    Args:
        store: Its objects.
        services: Where services are, by `namespace/name`: host and port.
    """

    def __init__(self, store: Store, services: Mapping[str, tuple[str, int]]) -> None:
        self._store = store
        self._policies, self._webhooks = Policies(store), WebhookCalls(store, services)

    def begin(self, outcomes: Outcomes) -> None:
        """Begin with a write, or begin anew.

        Args:
            outcomes: What webhooks have answered so far while it was carried out.
        """
        self._webhooks.outcomes = outcomes

    def mutated(self, request: Request, resource: Resource, new: Object, old: Object | None) -> Object:
        """Return an object after everything that may change it; what is to be repeated is invoked a second time.

        Raises:
            RefusedError: It is refused.
            PendingCall: A webhook has to be asked first.
        """
        if resource.group == _GROUP:
            return new
        first = self._attributes(request, resource, new, old)
        attributes, policies = self._policies.mutated(first)
        by_policies = attributes.new
        attributes, webhooks = self._webhooks.mutated(attributes, request.warnings)
        if attributes.new != first.new and policies:
            attributes, _ = self._policies.mutated(attributes, again=policies)
        if attributes.new != by_policies and webhooks:
            attributes, _ = self._webhooks.mutated(attributes, request.warnings, again=webhooks)
        # In the version in which it is stored.
        return {**attributes.new, "apiVersion": new["apiVersion"]}

    def check(self, request: Request, resource: Resource, new: Object, old: Object | None) -> None:
        """Ask everything that may refuse an object.

        Raises:
            RefusedError: It is refused.
            PendingCall: A webhook has to be asked first.
        """
        if resource.group != _GROUP:
            attributes = self._attributes(request, resource, new, old)
            self._policies.check(attributes)
            self._webhooks.check(attributes, request.warnings)

    def close(self) -> None:
        """Close the connections to webhooks."""
        self._webhooks.close()

    def _attributes(self, request: Request, resource: Resource, new: Object, old: Object | None) -> Attributes:
        namespace = text_at(new, "metadata", "namespace") if resource.namespaced else ""
        return Attributes(
            resource=resource,
            operation="CREATE" if old is None else "UPDATE",
            subresource=request.subresource,
            namespace=self._store.api.find("Namespace", namespace) if namespace else None,
            new=as_version(new, resource),
            old=None if old is None else as_version(old, resource),
            user=request.user,
            is_dry_run=request.is_dry_run,
        )
