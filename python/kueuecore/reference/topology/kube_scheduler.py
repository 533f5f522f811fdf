"""The filters of the kube-scheduler, used with gate SchedulerLibraryIntegration (rules/08 §4.7)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore.reference.selectors import untolerated_taint
from kueuecore.reference.settings import Json
from kueuecore.reference.topology.nodes import matches_selectors

_CORDON: Json = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_ANYWHERE = "0.0.0.0"


def admits(node: Json, pod: Json, others: Iterable[Json]) -> bool:
    """Return whether a pod of this template fits a node beside other pods, without what flavors and checks add."""
    cordoned = [_CORDON] if node["spec"].get("unschedulable") else []
    taints = [*cordoned, *(node["spec"].get("taints") or ())]
    if untolerated_taint(taints, list(pod.get("tolerations") or ())) or not all(matches_selectors(node, pod)):
        return False
    taken = [port for other in others for port in _host_ports(other["spec"])]
    return not any(_collide(port, other) for port in _host_ports(pod) for other in taken)


def _host_ports(pod: Json) -> list[tuple[str, str, int]]:
    """Return address, protocol and number of each host port of a pod."""
    ports = [port for container in pod.get("containers") or () for port in container.get("ports") or ()]
    taken = [port for port in ports if port.get("hostPort")]
    return [(port.get("hostIP") or _ANYWHERE, port.get("protocol") or "TCP", port["hostPort"]) for port in taken]


def _collide(a: tuple[str, str, int], b: tuple[str, str, int]) -> bool:
    return a[1:] == b[1:] and (a[0] == b[0] or _ANYWHERE in (a[0], b[0]))
