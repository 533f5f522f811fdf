"""The table of kinds that are read, except jobs.

It has a line for each line of the engine's own table (`rust/core/src/objects/kind.rs`), in an order in which objects
can be applied one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["KEPT", "KINDS", "KUEUE", "NAMESPACED", "Kind", "Watched"]

KUEUE = "kueue.x-k8s.io/v1beta2"
"""The group of Kueue's kinds, and their newest version."""
_KUEUE_ALPHA = "kueue.x-k8s.io/v1alpha1"
_DEVICES = "resource.k8s.io/v1"


class Watched(StrEnum):
    """When a controller watches a kind."""

    ALWAYS = "Always"
    SOMETIMES = "Sometimes"
    """If pods claim devices."""
    WITH_NODES = "WithNodes"
    """If flavors name a topology."""
    NEVER = "Never"
    """Never by the controller itself, but a check controller or a MultiKueue manager may."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Args:
        name: The `kind` field.
        api_version: The group and the newest version that is read.
        plural: Its name in an API server's paths.
        is_namespaced: Whether its objects are namespaced.
        is_kept: Whether an engine keeps its objects, and so can delete them.
        is_given_back: Whether an engine keeps enough of its objects to return them.
        watched: When a controller watches it.
    """

    name: str
    api_version: str
    plural: str
    is_namespaced: bool = False
    is_kept: bool = True
    is_given_back: bool = False
    watched: Watched = Watched.NEVER


_ALWAYS, _SOMETIMES, _WITH_NODES = Watched.ALWAYS, Watched.SOMETIMES, Watched.WITH_NODES
KINDS: tuple[Kind, ...] = (
    Kind("Namespace", "v1", "namespaces", is_given_back=True, watched=_ALWAYS),
    Kind("LimitRange", "v1", "limitranges", is_namespaced=True, watched=_ALWAYS),
    Kind("RuntimeClass", "node.k8s.io/v1", "runtimeclasses", watched=_ALWAYS),
    Kind("ResourceClaimTemplate", _DEVICES, "resourceclaimtemplates", is_namespaced=True, watched=_SOMETIMES),
    Kind("DeviceClass", _DEVICES, "deviceclasses", watched=_SOMETIMES),
    Kind("ResourceFlavor", KUEUE, "resourceflavors", is_given_back=True, watched=_ALWAYS),
    Kind("Topology", KUEUE, "topologies", is_given_back=True, watched=_WITH_NODES),
    Kind("Node", "v1", "nodes", is_given_back=True, watched=_WITH_NODES),
    Kind("AdmissionCheck", KUEUE, "admissionchecks", is_given_back=True, watched=_ALWAYS),
    Kind("ProvisioningRequestConfig", KUEUE, "provisioningrequestconfigs", is_kept=False),
    Kind("MultiKueueConfig", KUEUE, "multikueueconfigs", is_kept=False),
    Kind("MultiKueueCluster", KUEUE, "multikueueclusters", is_kept=False),
    Kind("PreemptionConfig", _KUEUE_ALPHA, "preemptionconfigs", is_kept=False),
    Kind("WorkloadPriorityClass", KUEUE, "workloadpriorityclasses", is_given_back=True, watched=_ALWAYS),
    Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", is_kept=False),
    Kind("Cohort", KUEUE, "cohorts", is_given_back=True, watched=_ALWAYS),
    Kind("ClusterQueue", KUEUE, "clusterqueues", is_given_back=True, watched=_ALWAYS),
    Kind("LocalQueue", KUEUE, "localqueues", is_namespaced=True, is_given_back=True, watched=_ALWAYS),
    Kind("Workload", KUEUE, "workloads", is_namespaced=True, is_given_back=True, watched=_ALWAYS),
    Kind("Pod", "v1", "pods", is_namespaced=True, watched=_WITH_NODES),
)
"""Every kind that is read, except jobs."""

NAMESPACED = frozenset(kind.name for kind in KINDS if kind.is_namespaced)
"""The namespaced kinds."""
KEPT = frozenset(kind.name for kind in KINDS if kind.is_kept)
"""The kinds that an engine keeps and can delete."""
