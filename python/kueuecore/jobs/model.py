"""What the modules of this package share: the configuration, the objects around a job, and names of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore.errors import Problem
from kueuecore.objects import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement

__all__ = ["Integration", "JobsConfiguration", "Surroundings"]

PREFIX = "kueue.x-k8s.io/"
QUEUE_LABEL = f"{PREFIX}queue-name"
PRIORITY_CLASS_LABEL = f"{PREFIX}priority-class"
MAX_EXEC_TIME_LABEL = f"{PREFIX}max-exec-time-seconds"
PREBUILT_WORKLOAD = f"{PREFIX}prebuilt-workload-name"
ELASTIC_JOB = f"{PREFIX}elastic-job"
ADMISSION_GATED_BY = f"{PREFIX}admission-gated-by"

# Of the feature gates, those that are read here, with their defaults (rules/11 §4.1).
_GATES = {
    "AdmissionGatedBy": True,
    "ElasticJobsViaWorkloadSlices": True,
    "PartialAdmission": True,
    "ShortWorkloadNames": False,
    "SkipAncestorCheckForDeletedWorkloads": True,
    "TASMultiLayerTopology": True,
    "TopologyAwareScheduling": True,
    "WorkloadIdentifierAnnotations": True,
    "WorkloadPriorityClassDefaulting": True,
}


def default_namespace_selector(kueue_namespace: str = "kueue-system") -> LabelSelector:
    """The selector of a Configuration that has none: all namespaces but those of the system (rules/10 §2.4)."""
    system = LabelSelectorRequirement(
        "kubernetes.io/metadata.name", operator=LabelSelectorOperator.NOT_IN, values=["kube-system", kueue_namespace]
    )
    return LabelSelector(match_expressions=[system])


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsConfiguration:
    """The part of the Configuration that says which jobs are managed, and how (rules/10 §2, rules/11).

    Args:
        frameworks: `integrations.frameworks`: the enabled integrations.
        external_frameworks: `integrations.externalFrameworks`: owners that somebody else manages, `Kind.version.group`.
        label_keys_to_copy: `integrations.labelKeysToCopy`: labels that a Workload gets from its job.
        manage_jobs_without_queue_name: `manageJobsWithoutQueueName`.
        managed_jobs_namespace_selector: `managedJobsNamespaceSelector`: namespaces whose jobs are managed.
        default_namespace: The namespace of jobs that name none, as with kubectl.
        feature_gates: Gates that are not at their defaults; those that have nothing to do with jobs are ignored.
    """

    frameworks: Sequence[str] = ("batch/job",)
    external_frameworks: Sequence[str] = ()
    label_keys_to_copy: Sequence[str] = ()
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector = field(default_factory=default_namespace_selector)
    default_namespace: str = "default"
    feature_gates: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate that matters to jobs is on."""
        return self.feature_gates.get(gate, _GATES[gate])


@dataclass(frozen=True, slots=True, kw_only=True)
class Integration:
    """How jobs of one kind become pod sets. All functions are pure; they get the job with its defaults filled in.

    Args:
        framework: The name in `integrations.frameworks`.
        api_version: Group and version of the kind.
        kind: The kind.
        with_defaults: A copy of a raw manifest with the defaults of the API server.
        shape_problems: What is missing or of the wrong type in a raw manifest, so that nothing else can be asked.
        pod_sets: The pod sets, as in `spec.podSets` of a Workload.
        validate: What the webhook of the kind rejects, beside what it rejects for all kinds.
        suspend: Set the field that suspends the job.
        finished: Whether the job is done.
        template_paths: Where each pod set's template stands in the job: pairs of a field path in the Workload and
            one in the job.
    """

    framework: str
    api_version: str
    kind: str
    with_defaults: Callable[[JsonObject], JsonObject]
    shape_problems: Callable[[JsonObject], list[Problem]]
    pod_sets: Callable[[JsonObject, JobsConfiguration], list[JsonObject]]
    validate: Callable[[JsonObject, JobsConfiguration], list[Problem]]
    suspend: Callable[[JsonObject], None]
    finished: Callable[[JsonObject], bool]
    template_paths: Callable[[JsonObject], Sequence[tuple[str, str]]]

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_of(self.api_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The objects beside the jobs that decide what becomes of them.

    Args:
        namespaces: Name to labels.
        local_queues: Namespace and name.
        workload_priority_classes: Name to value.
        priority_classes: Name to value.
        default_priority_class: The PriorityClass for pods that name none.
        workloads: Namespace and name, and the Workload.
        by_key: Every object by (apiVersion, kind, namespace, name).
    """

    namespaces: Mapping[str, Mapping[str, str]]
    local_queues: frozenset[tuple[str, str]]
    workload_priority_classes: Mapping[str, int]
    priority_classes: Mapping[str, int]
    default_priority_class: str | None
    workloads: Mapping[tuple[str, str], JsonObject]
    by_key: Mapping[tuple[str, str, str, str], JsonObject]

    @classmethod
    def of(cls, objects: Iterable[JsonObject], default_namespace: str) -> Self:
        """Look through all objects once."""
        namespaces: dict[str, Mapping[str, str]] = {}
        local_queues: set[tuple[str, str]] = set()
        workload_classes: dict[str, int] = {}
        # These two are in every cluster.
        classes = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
        defaults: dict[str, int] = {}
        workloads: dict[tuple[str, str], JsonObject] = {}
        by_key: dict[tuple[str, str, str, str], JsonObject] = {}
        for plain in objects:
            api_version, kind, name = (
                text_at(plain, "apiVersion"),
                text_at(plain, "kind"),
                text_at(plain, "metadata", "name"),
            )
            namespace = text_at(plain, "metadata", "namespace") or default_namespace
            by_key[api_version, kind, namespace, name] = plain
            value = plain.get("value")
            match group_of(api_version), kind:
                case "", "Namespace":
                    namespaces[name] = texts_at(plain, "metadata", "labels")
                case "kueue.x-k8s.io", "LocalQueue":
                    local_queues.add((namespace, name))
                case "kueue.x-k8s.io", "Workload":
                    workloads[namespace, name] = plain
                case "kueue.x-k8s.io", "WorkloadPriorityClass" if isinstance(value, int):
                    workload_classes[name] = value
                case "scheduling.k8s.io", "PriorityClass" if isinstance(value, int):
                    classes[name] = value
                    if plain.get("globalDefault") is True:
                        defaults[name] = value
                case _:
                    pass
        return cls(
            namespaces=namespaces,
            local_queues=frozenset(local_queues),
            workload_priority_classes=workload_classes,
            priority_classes=classes,
            # Of several defaults the lowest counts (rules/10 §3.3); of equal ones the first in the alphabet.
            default_priority_class=min(defaults, key=lambda name: (defaults[name], name), default=None),
            workloads=workloads,
            by_key=by_key,
        )

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        """Labels of a namespace, with the one that the API server sets, also if there is no object of it."""
        return {**self.namespaces.get(namespace, {}), "kubernetes.io/metadata.name": namespace}


def group_of(api_version: str) -> str:
    """The group of an apiVersion; empty for the core group."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def annotations_of(job: JsonObject) -> dict[str, str]:
    """The annotations of an object."""
    return texts_at(job, "metadata", "annotations")


def labels_of(job: JsonObject) -> dict[str, str]:
    """The labels of an object."""
    return texts_at(job, "metadata", "labels")


def set_label(job: JsonObject, key: str, value: str) -> None:
    """Set a label of an object."""
    metadata = object_at(job, "metadata")
    job["metadata"] = {**metadata, "labels": {**object_at(metadata, "labels"), key: value}}


def is_elastic(job: JsonObject) -> bool:
    """Whether the job asks for workload slices (rules/10 §6)."""
    return annotations_of(job).get(ELASTIC_JOB) == "true"
