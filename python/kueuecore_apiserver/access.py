"""Access control: users by their tokens, and role-based rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kueuecore._json import list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore_apiserver.refusals import forbidden
from kueuecore_apiserver.requests import Object, Request
from kueuecore_apiserver.resources import Registry, Resource

__all__ = ["AccessRules"]

_SERVICE_ACCOUNT = "system:serviceaccount:"
# Readable by everybody: system:discovery and system:public-info-viewer.
_OPEN_PATHS = ("/api", "/apis", "/healthz", "/livez", "/readyz", "/openapi", "/version")
# What system:basic-user allows everybody who is known: to ask about their own rights.
_OWN_REVIEWS = ("selfsubjectaccessreviews",)
_MANIFESTS = ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


@dataclass(frozen=True, slots=True)
class _Grant:
    """Rules that apply in a namespace, or everywhere if it is empty."""

    rules: tuple[Object, ...]
    namespace: str


class AccessRules:
    """Role-based access control, from manifests of roles and their bindings.

    Args:
        users: User names by token; a ServiceAccount is `system:serviceaccount:NAMESPACE:NAME`.
        manifests: ClusterRoles, Roles, ClusterRoleBindings and RoleBindings.
        admins: Users who may do anything.

    Raises:
        ValueError: A manifest is of another kind, or a binding names a role that is missing.

    Example:
        >>> rules = AccessRules(users={"secret": "ann"}, manifests=[
        ...     {"kind": "ClusterRole", "metadata": {"name": "reader"},
        ...      "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]}]},
        ...     {"kind": "ClusterRoleBinding", "metadata": {"name": "ann"}, "roleRef": {"kind": "ClusterRole",
        ...      "name": "reader"}, "subjects": [{"kind": "User", "name": "ann"}]}])
        >>> request = Request.of("DELETE", "/apis/batch/v1/jobs", {"authorization": "Bearer secret"})
        >>> try:
        ...     rules.check(request)
        ... except RefusedError as error:
        ...     print(str(error)[:57])
        jobs.batch is forbidden: User "ann" cannot deletecollecti
    """

    def __init__(self, *, users: Mapping[str, str], manifests: Iterable[Object], admins: Iterable[str] = ()) -> None:
        self._users, self._admins = dict(users), frozenset(admins)
        listed = list(manifests)
        roles = {}
        for manifest in listed:
            kind, metadata = text_at(manifest, "kind"), object_at(manifest, "metadata")
            if kind not in _MANIFESTS:
                raise ValueError(f"manifests must be {', '.join(_MANIFESTS)}, not {kind or 'without a kind'}")
            if kind in ("ClusterRole", "Role"):
                rules = tuple(object_at(rule) for rule in list_at(manifest, "rules"))
                roles[kind, text_at(metadata, "namespace"), text_at(metadata, "name")] = rules
        self._grants: dict[str, list[_Grant]] = {}
        for manifest in listed:
            if text_at(manifest, "kind").endswith("Binding"):
                self._bind(manifest, roles)

    def _bind(self, binding: Object, roles: Mapping[tuple[str, str, str], tuple[Object, ...]]) -> None:
        namespace = text_at(binding, "metadata", "namespace") if binding["kind"] == "RoleBinding" else ""
        kind, name = text_at(binding, "roleRef", "kind"), text_at(binding, "roleRef", "name")
        rules = roles.get((kind, namespace if kind == "Role" else "", name))
        if rules is None:
            place = text_at(binding, "metadata", "name")
            raise ValueError(
                f"{binding['kind']} {place}: roleRef names {kind} {name}, which is not in manifests: add it"
            )
        for subject in map(object_at, list_at(binding, "subjects")):
            who = text_at(subject, "name")
            if text_at(subject, "kind") == "ServiceAccount":
                who = f"{_SERVICE_ACCOUNT}{text_at(subject, 'namespace') or namespace}:{who}"
            elif text_at(subject, "kind") == "Group":
                who = f"group {who}"
            self._grants.setdefault(who, []).append(_Grant(rules, namespace))

    def check(self, request: Request) -> None:
        """Identify the user, and refuse what is not allowed.

        Raises:
            RefusedError: The token is unknown (401), or nothing allows the request (403).
        """
        token = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        if token and token not in self._users:
            raise RefusedError(401, "Unauthorized")
        request.user = self._users[token] if token else "system:anonymous"
        is_open = not request.resource and request.method in ("GET", "HEAD") and request.path.startswith(_OPEN_PATHS)
        asks_about_self = request.group == "authorization.k8s.io" and request.resource in _OWN_REVIEWS and bool(token)
        if not is_open and not asks_about_self and not self.allows(request, request.user):
            raise _refusal(request)

    def check_owners(
        self, request: Request, resource: Resource, new: Object, old: Object | None, registry: Registry
    ) -> None:
        """Refuse owners that a user may not hold up, as the admission plugin OwnerReferencesPermissionEnforcement does.

        Raises:
            RefusedError: A new reference blocks the deletion of an owner whose finalizers the user may not update, or
                references of an object change that the user may not delete (403).
        """
        if not request.user or request.user in self._admins:
            return
        before, after = (list_at(row, "metadata", "ownerReferences") if row else [] for row in (old, new))
        if before == after:
            return
        name = text_at(new, "metadata", "name")
        if old is not None and not self.allows(replace(request, verb="delete", subresource=""), request.user):
            why = "cannot set an ownerRef on a resource you can't delete: , <nil>"
            raise forbidden(resource.group, resource.plural, name, why)
        blocked = [ref for ref in map(object_at, before) if ref.get("blockOwnerDeletion") is True]
        for ref in map(object_at, after):
            if ref.get("blockOwnerDeletion") is True and ref not in blocked:
                self._check_owner(request, resource, name, ref, registry)

    def _check_owner(self, request: Request, resource: Resource, name: str, ref: Object, registry: Registry) -> None:
        api_version, kind = text_at(ref, "apiVersion"), text_at(ref, "kind")
        owner = registry.of_kind(api_version, kind)
        if owner is None:
            why = (
                f"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f'{api_version} Kind {kind}: no matches for kind "{kind}" in version "{api_version}"'
            )
            raise forbidden(resource.group, resource.plural, name, why)
        asked = replace(request, verb="update", group=owner.group, resource=owner.plural, subresource="finalizers",
                        name=text_at(ref, "name"))  # fmt: skip
        if not self.allows(asked, request.user):
            why = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
                ", <nil>"
            )
            raise forbidden(resource.group, resource.plural, name, why)

    def user_of(self, token: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the user and the groups of a token; None if it is unknown."""
        user = self._users.get(token)
        return None if user is None else (user, _groups(user))

    def allows(self, request: Request, user: str, groups: Iterable[str] | None = None) -> bool:
        """Return whether a user may make a request.

        Args:
            request: The request: verb, and what it is about.
            user: The name of the user.
            groups: The groups of the user; by default those that its name implies.
        """
        if user in self._admins:
            return True
        for who in (user, *(f"group {group}" for group in (_groups(user) if groups is None else groups))):
            for grant in self._grants.get(who, ()):
                if grant.namespace in ("", request.namespace) and any(_covers(rule, request) for rule in grant.rules):
                    return True
        return False


def _groups(user: str) -> tuple[str, ...]:
    if user == "system:anonymous":
        return ("system:unauthenticated",)
    if not user.startswith(_SERVICE_ACCOUNT):
        return ("system:authenticated",)
    namespace = user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return ("system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def _covers(rule: Object, request: Request) -> bool:
    """Return whether a rule allows a request."""
    verbs = list_at(rule, "verbs")
    if request.verb not in verbs and "*" not in verbs:
        return False
    if not request.resource:
        paths = map(str, list_at(rule, "nonResourceURLs"))
        return any(
            path == request.path or (path.endswith("*") and request.path.startswith(path[:-1])) for path in paths
        )
    groups, names = list_at(rule, "apiGroups"), list_at(rule, "resourceNames")
    if request.group not in groups and "*" not in groups:
        return False
    if names and (request.verb == "create" or _name_of(request) not in names):
        return False
    whole = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    wanted = {whole, "*"} | ({f"*/{request.subresource}"} if request.subresource else set())
    return not wanted.isdisjoint(map(str, list_at(rule, "resources")))


def _name_of(request: Request) -> str:
    """Return the object's name; lists and watches of one object have it in a selector."""
    selected = request.query.get("fieldSelector", "")
    return request.name or (selected.removeprefix("metadata.name=") if selected.startswith("metadata.name=") else "")


def _refusal(request: Request) -> RefusedError:
    if not request.resource:
        message = f'forbidden: User "{request.user}" cannot {request.method.lower()} path "{request.path}"'
        return RefusedError(403, message, details={})
    whole = f"{request.resource}/{request.subresource}" if request.subresource else request.resource
    place = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
    why = f'User "{request.user}" cannot {request.verb} resource "{whole}" in API group "{request.group}" {place}'
    return forbidden(request.group, request.resource, request.name, why)
