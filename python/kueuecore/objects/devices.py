"""Devices that pods claim, as far as they are charged to quota (rules/09 §8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from kueuecore._json import JsonObject, JsonValue  # noqa: F401  # used at run time, through the type hints
from kueuecore.objects._fields import Value, at
from kueuecore.objects._meta import ClusterObject, NamespacedObject

__all__ = ["DeviceClass", "DeviceRequest", "ResourceClaimTemplate"]


@dataclass(frozen=True, slots=True)
class DeviceRequest(Value):
    """One request for devices in a claim.

    Args:
        name: Its name within the claim.
        device_class_name: The DeviceClass; `resources.deviceClassMappings` of the Configuration say what it counts as.
        count: Number of devices; absent: one.
        allocation_mode: `ExactCount`, or `All`, which Kueue refuses.
        admin_access: Whether it is administrative access, which is not charged.
        selectors: CEL expressions, as in the manifest. kueuecore does not decide workloads with such a claim.
        other: Every other field of `exactly`, as in the manifest.
        first_available: Alternatives, as in the manifest, instead of all the other fields; Kueue charges
            them only with gate KueueDRAIntegrationPrioritizedList.
    """

    name: str
    _: KW_ONLY
    device_class_name: str = field(default="", metadata=at("exactly"))
    count: int | None = field(default=None, metadata=at("exactly"))
    allocation_mode: str = field(default="", metadata=at("exactly"))
    admin_access: bool | None = field(default=None, metadata=at("exactly"))
    selectors: Sequence[JsonObject] = field(default=(), metadata=at("exactly"))
    other: JsonObject = field(default_factory=dict, metadata=at("exactly", rest=True))
    first_available: Sequence[JsonObject] = ()


@dataclass(frozen=True, slots=True)
class ResourceClaimTemplate(NamespacedObject):
    """What each pod claims in a pod set that names it in `resourceClaims`.

    Args:
        requests: The requests for devices.
        other: Every other field of `spec.spec.devices`, as in the manifest.

    Example:
        >>> template = ResourceClaimTemplate("two", requests=[DeviceRequest("r", device_class_name="gpu", count=2)])
        >>> template.to_manifest()["spec"]
        {'spec': {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': 'gpu', 'count': 2}}]}}}
    """

    api_version: ClassVar[str] = "resource.k8s.io/v1"

    _: KW_ONLY
    requests: Sequence[DeviceRequest] = field(default=(), metadata=at("spec.spec.devices"))
    other: JsonObject = field(default_factory=dict, metadata=at("spec.spec.devices", rest=True))


@dataclass(frozen=True, slots=True)
class DeviceClass(ClusterObject):
    """A class of devices, which may stand for an extended resource.

    Args:
        extended_resource_name: The extended resource that its devices serve.
        other: Every other field of the spec, as in the manifest.
    """

    api_version: ClassVar[str] = "resource.k8s.io/v1"

    _: KW_ONLY
    extended_resource_name: str = ""
    other: JsonObject = field(default_factory=dict, metadata=at("spec", rest=True))
