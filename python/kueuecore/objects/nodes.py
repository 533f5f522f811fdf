"""Nodes and pods, as far as topology-aware scheduling reads them (rules/08 §4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from kueuecore._json import JsonObject, JsonValue  # noqa: F401  # used at run time, through the type hints
from kueuecore.objects._fields import Quantity, Value, at
from kueuecore.objects._meta import ClusterObject, NamespacedObject
from kueuecore.objects.checks import ConditionStatus
from kueuecore.objects.quota import Taint
from kueuecore.objects.workloads import Container, Resources

__all__ = ["Node", "NodeCondition", "Pod"]


@dataclass(frozen=True, slots=True)
class NodeCondition(Value):
    """A condition of a node.

    Args:
        type: What it is about, such as `Ready`.
        status: Whether it holds.
        reason: Why, in one word.
        message: Why, in a sentence.
        last_transition_time: Since when, in RFC 3339.
    """

    _ignored: ClassVar[tuple[str, ...]] = ("lastHeartbeatTime",)

    type: str
    _: KW_ONLY
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


@dataclass(frozen=True, slots=True)
class Node(ClusterObject):
    """A node. It can take pods while its condition `Ready` is True; its labels say where it is.

    Args:
        unschedulable: Whether it takes no new pods.
        taints: Its taints.
        allocatable: What it offers to pods; `pods` is their number.
        conditions: Its conditions.
        other: Every other field of the spec, as in the manifest; the rest of the status is left out.

    Example:
        >>> ready = NodeCondition("Ready", status=ConditionStatus.TRUE)
        >>> node = Node("n1", labels={"rack": "r1"}, allocatable={"cpu": 8, "pods": 110}, conditions=[ready])
        >>> node.to_manifest()["status"]
        {'allocatable': {'cpu': '8', 'pods': '110'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}
    """

    api_version: ClassVar[str] = "v1"

    _: KW_ONLY
    unschedulable: bool | None = None
    taints: Sequence[Taint] = ()
    allocatable: Mapping[str, Quantity] = field(default_factory=dict, metadata=at("status"))
    conditions: Sequence[NodeCondition] = field(default=(), metadata=at("status"))
    other: JsonObject = field(default_factory=dict, metadata=at("spec", rest=True))


@dataclass(frozen=True, slots=True)
class Pod(NamespacedObject):
    """A pod. It takes up room on its node, unless it belongs to a Workload placed by topology.

    Args:
        containers: Its containers.
        init_containers: Its init containers, including sidecars, in order.
        node_name: The node that it is bound to.
        node_selector: Labels that its node must have.
        overhead: What it needs besides its containers.
        resources: Pod-level requests and limits.
        phase: `status.phase`: `Pending`, `Running`, `Succeeded` or `Failed`.
        other: Every other field of the spec, as in the manifest; the rest of the status is left out.

    Example:
        >>> Pod("p", namespace="kube-system", node_name="n1", containers=[Container(requests={"cpu": 1})]).ref
        ObjectRef(kind='Pod', name='p', namespace='kube-system')
    """

    api_version: ClassVar[str] = "v1"

    _: KW_ONLY
    containers: Sequence[Container] = (Container(),)
    init_containers: Sequence[Container] = ()
    node_name: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    overhead: Mapping[str, Quantity] = field(default_factory=dict)
    resources: Resources | None = None
    phase: str = field(default="", metadata=at("status"))
    other: JsonObject = field(default_factory=dict, metadata=at("spec", rest=True))
