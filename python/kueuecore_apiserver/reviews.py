"""Answers questions about access: whose a token is, and what somebody may do."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import list_at, object_at, text_at
from kueuecore_apiserver.access import AccessRules
from kueuecore_apiserver.refusals import Cause, bad_request, invalid, method_not_allowed
from kueuecore_apiserver.requests import Object, Request

__all__ = ["REVIEWS", "review"]

GROUP = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
REVIEWS: Mapping[tuple[str, str], str] = {
    (_AUTHENTICATION, "tokenreviews"): "TokenReview",
    (GROUP, "selfsubjectaccessreviews"): "SelfSubjectAccessReview",
    (GROUP, "subjectaccessreviews"): "SubjectAccessReview",
}
"""The kinds of reviews by their group and plural: they are answered, and not stored."""


def review(request: Request, body: Object, access: AccessRules | None) -> Object:
    """Return a review with its status: who somebody is, or whether the user may do what it asks about.

    Args:
        request: The request, with its user.
        body: The review.
        access: The access rules; without them, everybody may do anything.

    Raises:
        RefusedError: It is not a creation (405), or the review asks about nothing (400, 422) or nobody (422).
    """
    kind = REVIEWS[request.group, request.resource]
    if request.verb != "create" or request.name:
        raise method_not_allowed()
    spec = object_at(body, "spec")
    if kind == "TokenReview":
        return _token_review(text_at(spec, "token"), access)
    asked, path = object_at(spec, "resourceAttributes"), object_at(spec, "nonResourceAttributes")
    if bool(asked) == bool(path):
        why = "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise invalid(GROUP, kind, "", [Cause("spec.resourceAttributes", why)])
    user, groups = request.user, None
    if kind == "SubjectAccessReview":
        user, groups = text_at(spec, "user"), frozenset(map(str, list_at(spec, "groups")))
        if not user and not groups:
            why = "Invalid value: at least one of user or group must be specified"
            raise invalid(GROUP, kind, "", [Cause("spec.user", why)])
    allowed = access is None or access.allows(_asked(asked or path), user, groups)
    head = {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": {}}
    return {**head, "spec": spec, "status": {"allowed": allowed}}


def _token_review(token: str, access: AccessRules | None) -> Object:
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    found = None if access is None else access.user_of(token)
    status: Object = {"user": {}, "error": "invalid bearer token"}
    if found is not None:
        user, groups = found
        # A server that authenticates by tokens alone says for whom they are: itself.
        audiences = ["https://kubernetes.default.svc"]
        status = {"authenticated": True, "user": {"username": user, "groups": [*groups]}, "audiences": audiences}
    head = {"kind": "TokenReview", "apiVersion": f"{_AUTHENTICATION}/v1", "metadata": {}}
    return {**head, "spec": {"token": token}, "status": status}


def _asked(attributes: Object) -> Request:
    """Return the request that a review asks about."""
    request = Request("", text_at(attributes, "path"), verb=text_at(attributes, "verb"))
    request.group, request.resource = text_at(attributes, "group"), text_at(attributes, "resource")
    request.subresource, request.name = text_at(attributes, "subresource"), text_at(attributes, "name")
    request.namespace = text_at(attributes, "namespace")
    return request
