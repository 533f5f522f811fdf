"""Carries out MutatingAdmissionPolicies and ValidatingAdmissionPolicies.

Left out: patches by `ApplyConfiguration`, the authorizer, audit annotations, the types that a server checks when a
policy is created, and limits of cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

import jsonpatch

from kueuecore._json import list_at, object_at, text_at, texts_at
from kueuecore.api_server import RefusedError
from kueuecore_apiserver.admission.expressions import ExpressionError, Variables
from kueuecore_apiserver.admission.matching import Attributes, is_about, selects
from kueuecore_apiserver.refusals import forbidden
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.store import Store

__all__ = ["Policies"]

_CODES = {"Forbidden": 403, "Invalid": 422, "Unauthorized": 401, "RequestEntityTooLarge": 413}


Key: TypeAlias = tuple[str, str, str]
"""The names of a policy, its binding and its parameter."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A policy with one of its bindings, and one of its parameters."""

    policy: Object
    binding: Object
    params: Object | None

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        params = text_at(self.params, "metadata", "name")
        return text_at(self.policy, "metadata", "name"), text_at(self.binding, "metadata", "name"), params

    @property
    def is_strict(self) -> bool:
        """Whether a failure to evaluate it refuses the write."""
        return text_at(self.policy, "spec", "failurePolicy") != "Ignore"

    def variables(self, attributes: Attributes) -> Variables:
        """Return what its expressions see."""
        given: dict[str, Any] = {
            "object": attributes.new,
            "oldObject": attributes.old,
            "request": attributes.request(),
            "namespaceObject": attributes.namespace,
            "params": self.params,
        }
        rows = map(object_at, list_at(self.policy, "spec", "variables"))
        return Variables(given, {text_at(row, "name"): text_at(row, "expression") for row in rows})

    def meets(self, variables: Variables) -> bool:
        """Return whether all its conditions are met."""
        conditions = map(object_at, list_at(self.policy, "spec", "matchConditions"))
        return all(variables.holds(text_at(condition, "expression")) for condition in conditions)


class Policies:
    """The policies of a server.

    Args:
        store: Its objects.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutated(self, attributes: Attributes, *, again: AbstractSet[Key] | None = None) -> tuple[Attributes, set[Key]]:
        """Return a write after the policies that mutate, and those to invoke again if something else changes it.

        Args:
            attributes: The write.
            again: The policies to invoke once more; None: this is the first time, and each is invoked.

        Raises:
            RefusedError: A policy cannot be carried out.
        """
        repeated = set()
        for bound in self._bound("Mutating", attributes):
            if again is not None and bound.key not in again:
                continue
            if not self._meets(bound, bound.variables(attributes)):
                continue
            attributes = self._mutated(bound, attributes)
            if text_at(bound.policy, "spec", "reinvocationPolicy") == "IfNeeded":
                repeated.add(bound.key)
        return attributes, repeated

    def check(self, attributes: Attributes) -> None:
        """Ask the policies that validate.

        Raises:
            RefusedError: One of them refuses the write.
        """
        for bound in self._bound("Validating", attributes):
            actions = list_at(bound.binding, "spec", "validationActions")
            variables = bound.variables(attributes)
            if "Deny" not in actions or not self._meets(bound, variables):
                continue
            for rule in map(object_at, list_at(bound.policy, "spec", "validations")):
                try:
                    if variables.holds(text_at(rule, "expression")):
                        continue
                    message = _message(rule, variables)
                except ExpressionError as error:
                    if not bound.is_strict:
                        continue
                    message = str(error)
                raise _denied(bound, attributes, message, text_at(rule, "reason") or "Invalid")

    def _meets(self, bound: _Bound, variables: Variables) -> bool:
        try:
            return bound.meets(variables)
        except ExpressionError as error:
            if bound.is_strict:
                raise RefusedError(422, f"policy '{bound.key[0]}' cannot be matched: {error}") from None
            return False

    def _mutated(self, bound: _Bound, attributes: Attributes) -> Attributes:
        for mutation in map(object_at, list_at(bound.policy, "spec", "mutations")):
            try:
                patch = bound.variables(attributes).value(text_at(mutation, "jsonPatch", "expression"))
                attributes = attributes.of(jsonpatch.apply_patch(attributes.new, patch))
            except (ExpressionError, jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
                if bound.is_strict:
                    name, binding, _ = bound.key
                    message = f"policy '{name}' with binding '{binding}' denied request: {error}"
                    raise RefusedError(422, message) from None
        return attributes

    def _bound(self, family: str, attributes: Attributes) -> Iterator[_Bound]:
        """Yield the policies that are about a write, by name."""
        policies = self._store.api.list(f"{family}AdmissionPolicy")[0]
        bindings = self._store.api.list(f"{family}AdmissionPolicyBinding")[0] if policies else []
        for policy in policies:
            if not is_about(object_at(policy, "spec", "matchConstraints"), "resourceRules", attributes):
                continue
            for binding in bindings:
                resources = object_at(binding, "spec", "matchResources")
                if text_at(binding, "spec", "policyName") != text_at(policy, "metadata", "name"):
                    continue
                if resources and not is_about(
                    {"resourceRules": [_EVERYTHING], **resources}, "resourceRules", attributes
                ):
                    continue
                for params in self._params(policy, binding, attributes):
                    yield _Bound(policy, binding, params)

    def _params(self, policy: Object, binding: Object, attributes: Attributes) -> list[Object | None]:
        kind, ref = object_at(policy, "spec", "paramKind"), object_at(binding, "spec", "paramRef")
        if not kind or not ref:
            return [None]
        resource = self._store.registry.of_kind(text_at(kind, "apiVersion"), text_at(kind, "kind"))
        found: list[Object | None] = []
        if resource is not None:
            own = text_at(attributes.namespace, "metadata", "name")
            namespace = (text_at(ref, "namespace") or own) if resource.namespaced else ""
            name, selector = text_at(ref, "name"), object_at(ref, "selector")
            found = [
                row
                for row in self._store.objects(resource, namespace)
                if (
                    text_at(row, "metadata", "name") == name
                    if name
                    else selects(selector, texts_at(row, "metadata", "labels"))
                )
            ]
        if not found and text_at(ref, "parameterNotFoundAction") == "Deny":
            names = text_at(policy, "metadata", "name"), text_at(binding, "metadata", "name")
            message = (
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
            )
            its = attributes.resource
            raise forbidden(
                its.group, its.plural, attributes.name, f"policy '{names[0]}' with binding '{names[1]}' {message}"
            )
        return found


_EVERYTHING: Object = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*", "*/*"]}


def _message(rule: Object, variables: Variables) -> str:
    source = text_at(rule, "messageExpression")
    if source:
        try:
            found = variables.value(source)
        except ExpressionError:
            found = None
        # A server does not take other texts.
        if isinstance(found, str) and found.strip() and "\n" not in found:
            return found.strip()
    return text_at(rule, "message") or f"failed expression: {text_at(rule, 'expression').strip()}"


def _denied(bound: _Bound, attributes: Attributes, message: str, reason: str) -> RefusedError:
    policy, binding, _ = bound.key
    its = attributes.resource
    why = f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"
    refusal = forbidden(its.group, its.plural, attributes.name, why)
    return RefusedError(_CODES.get(reason, 422), str(refusal), reason=reason)
