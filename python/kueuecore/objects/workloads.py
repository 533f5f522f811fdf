"""Workloads, their pods, and the classes that give them priority (rules/01 §5-7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import ClassVar

from kueuecore._json import JsonObject, JsonValue
from kueuecore.objects._check_state import CheckState
from kueuecore.objects._fields import Quantity, Value, at
from kueuecore.objects._meta import ClusterObject, NamespacedObject
from kueuecore.objects.checks import Condition
from kueuecore.objects.quota import Toleration

__all__ = [
    "Admission",
    "AdmissionCheckState",
    "CheckState",
    "Container",
    "LimitRange",
    "LimitRangeItem",
    "Namespace",
    "PodSet",
    "PodSetAssignment",
    "PodTemplate",
    "PreemptionGate",
    "PriorityClass",
    "PriorityClassRef",
    "ReclaimablePod",
    "RequeueState",
    "Resources",
    "RuntimeClass",
    "SliceConstraint",
    "TopologyRequest",
    "Workload",
    "WorkloadPriorityClass",
    "WorkloadStatus",
]

_JSON = (JsonValue,)  # the type hints below need the name at run time


@dataclass(frozen=True, slots=True)
class Resources(Value):
    """What a container or a whole pod requests.

    Args:
        requests: Resource to amount.
        limits: Resource to amount; a resource with a limit and no request requests its limit.
    """

    requests: Mapping[str, Quantity] = field(default_factory=dict)
    _: KW_ONLY
    limits: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Container(Value):
    """A container of a pod, abridged.

    Args:
        name: Name.
        image: Image.
        requests: `resources.requests`.
        limits: `resources.limits`.
        claims: `resources.claims`.
        restart_policy: `Always` makes an init container a sidecar.
        other: Everything else, as in the manifest.
    """

    name: str = "main"
    _: KW_ONLY
    image: str = ""
    requests: Mapping[str, Quantity] = field(default_factory=dict, metadata=at("resources"))
    limits: Mapping[str, Quantity] = field(default_factory=dict, metadata=at("resources"))
    claims: Sequence[JsonObject] = field(default=(), metadata=at("resources"))
    restart_policy: str = ""
    other: JsonObject = field(default_factory=dict, metadata=at("/", rest=True))


@dataclass(frozen=True, slots=True)
class PodTemplate(Value):
    """The pod template of a pod set: what scheduling reads has a field, everything else is in `other`.

    Args:
        containers: The containers.
        labels: `metadata.labels`.
        annotations: `metadata.annotations`.
        init_containers: The init containers, including sidecars, in order.
        node_selector: Labels that the nodes must have.
        tolerations: Taints that the nodes may have.
        affinity: Affinity, as in the manifest.
        priority_class_name: PriorityClass.
        runtime_class_name: RuntimeClass, which may add overhead.
        overhead: What a pod needs besides its containers.
        resources: Pod-level requests and limits.
        other: Every other field of the pod spec, as in the manifest.
    """

    _place: ClassVar[str] = "spec"
    _ignored: ClassVar[tuple[str, ...]] = ("metadata",)

    containers: Sequence[Container] = (Container(),)
    _: KW_ONLY
    labels: Mapping[str, str] = field(default_factory=dict, metadata=at("metadata"))
    annotations: Mapping[str, str] = field(default_factory=dict, metadata=at("metadata"))
    init_containers: Sequence[Container] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Toleration] = ()
    affinity: JsonObject | None = None
    priority_class_name: str = ""
    runtime_class_name: str | None = None
    overhead: Mapping[str, Quantity] = field(default_factory=dict)
    resources: Resources | None = None
    other: JsonObject = field(default_factory=dict, metadata=at("spec", rest=True))


@dataclass(frozen=True, slots=True)
class SliceConstraint(Value):
    """One layer of slices of a pod set (rules/08).

    Args:
        topology: The level in which each slice stays.
        size: Pods of a slice.
    """

    topology: str
    _: KW_ONLY
    size: int


@dataclass(frozen=True, slots=True)
class TopologyRequest(Value):
    """How close to each other the pods of a pod set must be (rules/08).

    Args:
        required: The level at which all pods must share one domain.
        preferred: The level at which all pods should share one domain.
        unconstrained: Whether any placement will do.
        pod_index_label: The label with the index of a pod.
        sub_group_index_label: The label with the index of a group of pods.
        sub_group_count: How many such groups there are.
        pod_set_group_name: Pod sets with the same name are placed together.
        pod_set_slice_required_topology: The level in which each slice stays.
        pod_set_slice_size: Pods of a slice.
        podset_slice_required_topology_constraints: Several layers of slices, the widest first.
    """

    _: KW_ONLY
    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: int | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: int | None = None
    podset_slice_required_topology_constraints: Sequence[SliceConstraint] = ()


@dataclass(frozen=True, slots=True)
class PodSet(Value):
    """Pods of one shape.

    Args:
        name: Name, unique in the workload.
        count: How many pods.
        min_count: The fewest pods to start with (partial admission); absent: all.
        template: The shape of the pods.
        topology_request: How close to each other they must be.
        requests: Instead of a template: the requests of each pod's only container.

    Example:
        >>> PodSet("main", count=3, requests={"cpu": 1, "memory": "200Mi"}).template.containers[0].requests
        {'cpu': '1', 'memory': '200Mi'}
    """

    name: str = "main"
    _: KW_ONLY
    count: int = 1
    min_count: int | None = None
    template: PodTemplate = PodTemplate()
    topology_request: TopologyRequest | None = None
    requests: InitVar[Mapping[str, Quantity] | None] = None

    def __post_init__(self, requests: Mapping[str, Quantity] | None) -> None:
        if requests is not None:
            if not isinstance(self.template, PodTemplate):
                raise TypeError(f"PodSet.template must be a PodTemplate, not {type(self.template).__name__}")
            if self.template != PodTemplate():
                raise ValueError("PodSet: pass requests or a template, not both")
            object.__setattr__(self, "template", PodTemplate([Container(requests=requests)]))
        Value.__post_init__(self)


@dataclass(frozen=True, slots=True)
class PriorityClassRef(Value):
    """The class that gives a workload its priority.

    Args:
        name: Its name.
        group: `kueue.x-k8s.io` or `scheduling.k8s.io`.
        kind: `WorkloadPriorityClass` or `PriorityClass`.
    """

    name: str
    _: KW_ONLY
    group: str = "kueue.x-k8s.io"
    kind: str = "WorkloadPriorityClass"


@dataclass(frozen=True, slots=True)
class PreemptionGate(Value):
    """A gate that prevents a workload from preempting (rules/06).

    Args:
        name: Its name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class PodSetAssignment(Value):
    """The quota assigned to a pod set.

    Args:
        name: The pod set.
        flavors: Resource to flavor.
        resource_usage: Resource to amount, for all its pods together.
        count: How many pods; absent: as many as the pod set has.
        topology_assignment: The placement of the pods, as in the manifest.
        delayed_topology_request: `Pending` or `Ready`, if the placement comes later.
    """

    name: str = "main"
    _: KW_ONLY
    flavors: Mapping[str, str] = field(default_factory=dict)
    resource_usage: Mapping[str, Quantity] = field(default_factory=dict)
    count: int | None = None
    topology_assignment: JsonObject | None = None
    delayed_topology_request: str | None = None


@dataclass(frozen=True, slots=True)
class Admission(Value):
    """The quota that a workload has reserved.

    Args:
        cluster_queue: The ClusterQueue.
        pod_set_assignments: The assignment of each pod set, in order.
    """

    cluster_queue: str
    _: KW_ONLY
    pod_set_assignments: Sequence[PodSetAssignment] = ()


@dataclass(frozen=True, slots=True)
class RequeueState(Value):
    """How often a workload was evicted because its pods did not become ready, and until when it waits.

    Args:
        count: How often.
        requeue_at: Until when, in RFC 3339.
    """

    _: KW_ONLY
    count: int | None = None
    requeue_at: str | None = None


@dataclass(frozen=True, slots=True)
class ReclaimablePod(Value):
    """Pods that are done and no longer need quota.

    Args:
        name: The pod set.
        count: How many of its pods.
    """

    name: str
    _: KW_ONLY
    count: int


@dataclass(frozen=True, slots=True)
class AdmissionCheckState(Value):
    """What an admission check says about a workload.

    Args:
        name: The check.
        state: Its answer.
        message: Why.
        last_transition_time: Since when, in RFC 3339.
        requeue_after_seconds: How long a retry waits, in seconds.
        retry_count: How often it was tried.
        pod_set_updates: What it adds to the pods, as in the manifest.
    """

    name: str
    _: KW_ONLY
    state: CheckState
    message: str = ""
    last_transition_time: str | None = None
    requeue_after_seconds: int | None = None
    retry_count: int | None = None
    pod_set_updates: Sequence[JsonObject] = ()


@dataclass(frozen=True, slots=True)
class WorkloadStatus(Value):
    """The status of a workload; set it to start from a cluster in which workloads already run.

    Args:
        conditions: Conditions, such as QuotaReserved and Admitted.
        admission: The reserved quota; there must be a condition QuotaReserved with it.
        requeue_state: Evictions because pods did not become ready.
        reclaimable_pods: Pods that are done.
        admission_checks: What the checks say.
        other: Every other field, as in the manifest.
    """

    _: KW_ONLY
    conditions: Sequence[Condition] = ()
    admission: Admission | None = None
    requeue_state: RequeueState | None = None
    reclaimable_pods: Sequence[ReclaimablePod] = ()
    admission_checks: Sequence[AdmissionCheckState] = ()
    other: JsonObject = field(default_factory=dict, metadata=at("/", rest=True))


@dataclass(frozen=True, slots=True)
class Workload(NamespacedObject):
    """What is queued: the pods of a job (rules/01 §6).

    Args:
        pod_sets: Its pods.
        queue_name: The LocalQueue.
        priority_class_ref: The class that its priority comes from.
        priority: Its priority; absent: 0.
        active: Whether it may be admitted.
        maximum_execution_time_seconds: How long it may run, in seconds.
        preemption_gates: Gates that prevent it from preempting.
        status: Its status so far.

    Example:
        >>> workload = Workload("job-a", namespace="team-a", queue_name="user-queue",
        ...                     pod_sets=[PodSet(count=3, requests={"cpu": "500m"})])
        >>> workload.to_manifest()["spec"]["podSets"][0]["template"]["spec"]
        {'containers': [{'name': 'main', 'resources': {'requests': {'cpu': '500m'}}}]}
        >>> PodSet(requests={"cpu": 0.5})
        Traceback (most recent call last):
        TypeError: Container.requests['cpu']: a float is not exact; write Decimal('0.5') or '0.5', not 0.5
    """

    _ignored: ClassVar[tuple[str, ...]] = ("metadata",)

    _: KW_ONLY
    pod_sets: Sequence[PodSet]
    queue_name: str = ""
    priority_class_ref: PriorityClassRef | None = None
    priority: int | None = None
    active: bool = True
    maximum_execution_time_seconds: int | None = None
    preemption_gates: Sequence[PreemptionGate] = ()
    status: WorkloadStatus | None = field(default=None, metadata=at("/"))


@dataclass(frozen=True, slots=True)
class WorkloadPriorityClass(ClusterObject):
    """A priority of workloads (rules/01 §5).

    Args:
        value: The priority.
        description: What it is for.
    """

    _place: ClassVar[str] = "/"

    _: KW_ONLY
    value: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class PriorityClass(ClusterObject):
    """A priority of pods.

    Args:
        value: The priority.
        global_default: Whether pods that name no class have this one.
        description: What it is for.
        preemption_policy: `Never` or `PreemptLowerPriority`; Kueue ignores it.
    """

    api_version: ClassVar[str] = "scheduling.k8s.io/v1"
    _place: ClassVar[str] = "/"

    _: KW_ONLY
    value: int
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None


@dataclass(frozen=True, slots=True)
class Namespace(ClusterObject):
    """A namespace; selectors match its labels."""

    api_version: ClassVar[str] = "v1"
    _ignored: ClassVar[tuple[str, ...]] = ("metadata", "spec", "status")


@dataclass(frozen=True, slots=True)
class LimitRangeItem(Value):
    """The limits for one type: containers, pods or volume claims.

    Args:
        type: `Container`, `Pod` or `PersistentVolumeClaim`.
        max: The largest amounts.
        min: The smallest amounts.
        default: Limits of containers that have none.
        default_request: Requests of containers that have none.
        max_limit_request_ratio: The largest ratios of limit to request.
    """

    type: str
    _: KW_ONLY
    max: Mapping[str, Quantity] = field(default_factory=dict)
    min: Mapping[str, Quantity] = field(default_factory=dict)
    default: Mapping[str, Quantity] = field(default_factory=dict)
    default_request: Mapping[str, Quantity] = field(default_factory=dict)
    max_limit_request_ratio: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LimitRange(NamespacedObject):
    """The limits of a namespace (rules/01 §7.3, §7.6).

    Args:
        limits: The limits.
    """

    api_version: ClassVar[str] = "v1"

    _: KW_ONLY
    limits: Sequence[LimitRangeItem]


@dataclass(frozen=True, slots=True)
class RuntimeClass(ClusterObject):
    """A way to run pods, which may add overhead (rules/01 §7.3).

    Args:
        handler: Its handler.
        pod_fixed: `overhead.podFixed`: what a pod needs besides its containers.
    """

    api_version: ClassVar[str] = "node.k8s.io/v1"
    _place: ClassVar[str] = "/"
    _ignored: ClassVar[tuple[str, ...]] = ("metadata", "scheduling")

    _: KW_ONLY
    handler: str = ""
    pod_fixed: Mapping[str, Quantity] = field(default_factory=dict, metadata=at("overhead"))
