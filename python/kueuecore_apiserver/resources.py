"""The kinds that are served: built-in ones, and those that CustomResourceDefinitions add and remove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kueuecore._json import list_at, object_at, text_at
from kueuecore_apiserver.requests import Object
from kueuecore_apiserver.shapes import ANY, Shape, built_in_shape, shape_of_schema

__all__ = ["BUILT_IN", "CRD_GROUP", "KUEUE_GROUP", "Registry", "Resource"]

CRD_GROUP = "apiextensions.k8s.io"
KUEUE_GROUP = "kueue.x-k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind in one version, as it is served.

    Args:
        group: API group, empty for core.
        version: Version in the group.
        plural: The name in paths.
        kind: The name in objects.
        namespaced: Whether its objects are namespaced.
        singular: The singular in commands.
        short_names: Short names in commands.
        categories: The categories to which it belongs, as in `kubectl get all`.
        has_status: Whether the status is a subresource.
        stored_as: Its kind in the in-memory server.
        storage_version: The version in which it is stored.
        crd: The CustomResourceDefinition that created it; `None` if it is built in.
        shape: How its lists and maps merge.
        selectable: Fields of custom objects that field selectors may use.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    has_status: bool = False
    stored_as: str = ""
    storage_version: str = ""
    crd: Object | None = None
    shape: Shape = ANY
    selectable: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def stored_api_version(self) -> str:
        """The `apiVersion` in which its objects are stored."""
        return f"{self.group}/{self.storage_version}" if self.group else self.storage_version

    @property
    def words(self) -> str:
        """Its name in messages: `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def is_custom(self) -> bool:
        """Whether it comes from a CustomResourceDefinition."""
        return self.crd is not None

    @property
    def is_behind_webhook(self) -> bool:
        """Whether its objects need conversion by a webhook, because they are stored in another version."""
        is_stored = self.version == self.storage_version
        strategy = text_at(self.crd, "spec", "conversion", "strategy")
        # Kueue's kinds have different fields in each version, even if a definition leaves the webhook out.
        return not is_stored and (strategy == "Webhook" or self.group == KUEUE_GROUP)

    @property
    def subresources(self) -> tuple[str, ...]:
        """The subresources with which it is served."""
        own = ("finalize",) if (self.group, self.kind) == ("", "Namespace") else ()
        return (*(("status",) if self.has_status else ()), *own)


_RBAC = ("rbac.authorization.k8s.io", "v1")
_DEVICES = ("resource.k8s.io", "v1")
_ADMISSION = ("admissionregistration.k8s.io", "v1")


def _built_in(
    group_version: tuple[str, str],
    plural: str,
    kind: str,
    short_names: str = "",
    *,
    cluster: bool = False,
    status: bool = False,
    categories: tuple[str, ...] = (),
) -> Resource:
    group, version = group_version
    return Resource(
        group=group,
        version=version,
        plural=plural,
        kind=kind,
        namespaced=not cluster,
        singular=kind.lower(),
        short_names=tuple(short_names.split()),
        categories=categories,
        has_status=status,
        stored_as=kind,
        storage_version=version,
        shape=built_in_shape(group, kind),
    )


_CORE, _APPS = ("", "v1"), ("apps", "v1")
_ALL = ("all",)
BUILT_IN: tuple[Resource, ...] = (
    _built_in(_CORE, "configmaps", "ConfigMap", "cm"),
    _built_in(_CORE, "events", "Event", "ev"),
    _built_in(_CORE, "limitranges", "LimitRange", "limits"),
    _built_in(_CORE, "namespaces", "Namespace", "ns", cluster=True, status=True),
    _built_in(_CORE, "nodes", "Node", "no", cluster=True, status=True),
    _built_in(_CORE, "pods", "Pod", "po", status=True, categories=_ALL),
    _built_in(_CORE, "podtemplates", "PodTemplate"),
    _built_in(_CORE, "resourcequotas", "ResourceQuota", "quota", status=True),
    _built_in(_CORE, "secrets", "Secret"),
    _built_in(_CORE, "serviceaccounts", "ServiceAccount", "sa"),
    _built_in(_CORE, "services", "Service", "svc", status=True, categories=_ALL),
    _built_in((CRD_GROUP, "v1"), "customresourcedefinitions", "CustomResourceDefinition", "crd crds", cluster=True,
              status=True, categories=("api-extensions",)),
    _built_in(_ADMISSION, "mutatingadmissionpolicies", "MutatingAdmissionPolicy", cluster=True,
              categories=("api-extensions",)),
    _built_in(_ADMISSION, "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", cluster=True,
              categories=("api-extensions",)),
    _built_in(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", cluster=True, status=True,
              categories=("api-extensions",)),
    _built_in(_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", cluster=True,
              categories=("api-extensions",)),
    _built_in(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", cluster=True,
              categories=("api-extensions",)),
    _built_in(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", cluster=True,
              categories=("api-extensions",)),
    _built_in(("apiregistration.k8s.io", "v1"), "apiservices", "APIService", cluster=True, status=True,
              categories=("api-extensions",)),
    _built_in(_APPS, "deployments", "Deployment", "deploy", status=True, categories=_ALL),
    _built_in(_APPS, "replicasets", "ReplicaSet", "rs", status=True, categories=_ALL),
    _built_in(_APPS, "statefulsets", "StatefulSet", "sts", status=True, categories=_ALL),
    _built_in(("batch", "v1"), "jobs", "Job", status=True, categories=_ALL),
    _built_in(("coordination.k8s.io", "v1"), "leases", "Lease"),
    _built_in(("discovery.k8s.io", "v1"), "endpointslices", "EndpointSlice"),
    _built_in(("node.k8s.io", "v1"), "runtimeclasses", "RuntimeClass", cluster=True),
    _built_in(_RBAC, "clusterroles", "ClusterRole", cluster=True),
    _built_in(_RBAC, "clusterrolebindings", "ClusterRoleBinding", cluster=True),
    _built_in(_RBAC, "roles", "Role"),
    _built_in(_RBAC, "rolebindings", "RoleBinding"),
    _built_in(_DEVICES, "deviceclasses", "DeviceClass", cluster=True),
    _built_in(_DEVICES, "resourceclaims", "ResourceClaim", status=True),
    _built_in(_DEVICES, "resourceclaimtemplates", "ResourceClaimTemplate"),
    _built_in(_DEVICES, "resourceslices", "ResourceSlice", cluster=True),
    _built_in(("scheduling.k8s.io", "v1"), "priorityclasses", "PriorityClass", "pc", cluster=True),
)  # fmt: skip
"""The built-in kinds that this server knows."""


class Registry:
    """The kinds that are currently served."""

    def __init__(self) -> None:
        self._of_path: dict[tuple[str, str, str], Resource] = {}
        self._hidden: set[tuple[str, str]] = set()
        self._names: dict[tuple[str, str], str] = {}
        for resource in BUILT_IN:
            self._of_path[resource.group, resource.version, resource.plural] = resource

    def __iter__(self) -> Iterator[Resource]:
        """Yield all that are served and not hidden, in the order of group, version and plural."""
        for key in sorted(self._of_path):
            if (key[0], key[2]) not in self._hidden:
                yield self._of_path[key]

    @property
    def all(self) -> Iterable[Resource]:
        """Return all kinds, including hidden ones."""
        return tuple(self._of_path.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the kind of a path, if it is served."""
        if self._hidden and (group, plural) in self._hidden:
            return None
        return self._of_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the kind of an object, including hidden kinds."""
        found = (entry for entry in self._of_path.values() if entry.kind == kind and entry.api_version == api_version)
        return next(found, None)

    def stored(self, stored_as: str) -> Resource | None:
        """Return the kind, in its storage version, that the in-memory server stores under a name."""
        for entry in self._of_path.values():
            if entry.stored_as == stored_as and entry.version == entry.storage_version:
                return entry
        return None

    def hide(self, group: str, plural: str) -> None:
        """Answer 404 for a kind, as a starting server does for a moment."""
        self._hidden.add((group, plural))

    def show(self, group: str, plural: str) -> None:
        """Serve a hidden kind again."""
        self._hidden.discard((group, plural))

    def add(self, crd: Object) -> None:
        """Serve the versions of a CustomResourceDefinition, in place of its earlier ones."""
        self.remove(crd)
        for resource in _of_crd(crd, self._stored_as(crd)):
            self._of_path[resource.group, resource.version, resource.plural] = resource

    def remove(self, crd: Object) -> None:
        """Stop serving the kind of a CustomResourceDefinition."""
        place = text_at(crd, "spec", "group"), text_at(crd, "spec", "names", "plural")
        for key in [key for key in self._of_path if (key[0], key[2]) == place and self._of_path[key].is_custom]:
            del self._of_path[key]

    def _stored_as(self, crd: Object) -> str:
        """Return the kind, with its group if another group had the name first. It stays, as objects carry it."""
        group, kind = text_at(crd, "spec", "group"), text_at(crd, "spec", "names", "kind")
        if (group, kind) not in self._names:
            is_taken = kind in self._names.values() or any(resource.kind == kind for resource in BUILT_IN)
            self._names[group, kind] = f"{kind}.{group}" if is_taken else kind
        return self._names[group, kind]


def _of_crd(crd: Object, stored_as: str) -> Iterable[Resource]:
    spec, names = object_at(crd, "spec"), object_at(crd, "spec", "names")
    versions = [object_at(version) for version in list_at(spec, "versions")]
    storage = next((text_at(version, "name") for version in versions if version.get("storage")), "")
    for version in versions:
        if not version.get("served"):
            continue
        subresources = object_at(version, "subresources")
        yield Resource(
            group=text_at(spec, "group"),
            version=text_at(version, "name"),
            plural=text_at(names, "plural"),
            kind=text_at(names, "kind"),
            namespaced=text_at(spec, "scope") == "Namespaced",
            singular=text_at(names, "singular") or text_at(names, "kind").lower(),
            short_names=tuple(map(str, list_at(names, "shortNames"))),
            categories=tuple(map(str, list_at(names, "categories"))),
            has_status="status" in subresources,
            stored_as=stored_as,
            storage_version=storage,
            crd=crd,
            shape=shape_of_schema(object_at(version, "schema", "openAPIV3Schema")),
            selectable=tuple(
                text_at(field, "jsonPath").removeprefix(".") for field in list_at(version, "selectableFields")
            ),
        )
