"""Shared by all modules of this package: the configuration, the objects around a job, and names of labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, runtime_checkable

from kueuecore._arguments import instance
from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at, texts_at
from kueuecore.jobs.switches import CHANGES, GATES, absent_by_default, gates_by_default
from kueuecore.jobs.workload_names import NO_UID
from kueuecore.objects.selectors import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement
from kueuecore.releases import Release
from kueuecore.times import duration_ns

__all__ = ["INSTALLED_FRAMEWORKS", "JobsConfiguration", "Surroundings", "installed_frameworks"]

PREFIX = "kueue.x-k8s.io/"
QUEUE_LABEL = f"{PREFIX}queue-name"
PRIORITY_CLASS_LABEL = f"{PREFIX}priority-class"
MAX_EXEC_TIME_LABEL = f"{PREFIX}max-exec-time-seconds"
PREBUILT_WORKLOAD = f"{PREFIX}prebuilt-workload-name"
ELASTIC_JOB = f"{PREFIX}elastic-job"
JOB_UID_LABEL = f"{PREFIX}job-uid"
MANAGED_LABEL = f"{PREFIX}managed"
MULTIKUEUE = f"{PREFIX}multikueue"
ORIGIN_LABEL = f"{PREFIX}multikueue-origin"
ORIGIN_UID = f"{PREFIX}multikueue-origin-uid"
ADMISSION_GATED_BY = f"{PREFIX}admission-gated-by"
RAY_CLUSTER_GENERATION = f"{PREFIX}raycluster-generation"

INSTALLED_FRAMEWORKS = (
    "batch/job",
    "kubeflow.org/mpijob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "jobset.x-k8s.io/jobset",
    "workload.codeflare.dev/appwrapper",
    "trainer.kubeflow.org/trainjob",
    "pod",
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
)
"""The integrations that Kueue's newest release manifest enables; others are named in a Configuration (rules/11 §2)."""

_SINCE_0_17 = frozenset({"ray.io/rayservice"})
_BEFORE_0_19 = tuple(f"kubeflow.org/{kind}job" for kind in ("paddle", "pytorch", "tf", "xgboost", "jax"))


def installed_frameworks(release: Release) -> tuple[str, ...]:
    """Return the integrations that the manifest of a release of Kueue enables.

    Example:
        >>> "kubeflow.org/pytorchjob" in installed_frameworks(Release.named("0.18"))
        True
    """
    added = _BEFORE_0_19 if release < Release.named("0.19.0") else ()
    has_services = not release < Release.named("0.17.0")
    return (*(framework for framework in INSTALLED_FRAMEWORKS if has_services or framework not in _SINCE_0_17), *added)


# More than 32 bits can hold.
_NO_PRIORITY = 2**31
_PRIORITIES = range(-(2**31), _NO_PRIORITY)


def default_namespace_selector(kueue_namespace: str = "kueue-system") -> LabelSelector:
    """Return the selector of a Configuration without one: all namespaces except those of the system (rules/10 §2.4)."""
    system = LabelSelectorRequirement(
        "kubernetes.io/metadata.name", operator=LabelSelectorOperator.NOT_IN, values=["kube-system", kueue_namespace]
    )
    return LabelSelector(match_expressions=[system])


@runtime_checkable
class KueueConfiguration(Protocol):
    """The part of `kueuecore.Configuration` that is used here, without importing the extension."""

    def is_enabled(self, gate: str) -> bool: ...

    def has_change(self, change: str) -> bool: ...

    def to_dict(self) -> JsonObject: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsConfiguration:
    """The part of the Configuration that decides which jobs are managed, and how (rules/10 §2, rules/11).

    Args:
        frameworks: `integrations.frameworks`: the enabled integrations; by default those of Kueue's release manifest.
        external_frameworks: `integrations.externalFrameworks`: owners that others manage, as `Kind.version.group`.
        label_keys_to_copy: `integrations.labelKeysToCopy`: labels that a Workload gets from its job; with the gate
            CustomMetricLabels also those that `metrics.customLabels` uses.
        annotation_keys_to_copy: Annotations that `metrics.customLabels` uses, likewise.
        manage_jobs_without_queue_name: `manageJobsWithoutQueueName`.
        managed_jobs_namespace_selector: `managedJobsNamespaceSelector`: namespaces whose jobs are managed.
        default_namespace: The namespace of jobs without one, as with kubectl.
        feature_gates: Gates that differ from their defaults; those unrelated to jobs are ignored.
        absent_changes: Changes of Kueue that are not in effect, of those that `kueuecore.releases.changes` lists; by
            default those that the default release lacks.
        waits_for_pods_ready: `waitForPodsReady`, on by default: whether Workloads report if their pods are ready.
        follows_scheduling: Whether Workloads report if their pods have nodes: there is a
            `waitForPodsReady.unscheduledTimeout`.
        most_own_timeout_s: `waitForPodsReady.maxTimeoutOnWorkload`: the longest timeouts that a job may give itself.
        deactivated_retention_ns: `objectRetentionPolicies.workloads.afterDeactivatedByKueue`: how long to keep the job
            of a Workload that Kueue has deactivated, in nanoseconds; None: forever.
    """

    frameworks: Sequence[str] = INSTALLED_FRAMEWORKS
    external_frameworks: Sequence[str] = ()
    label_keys_to_copy: Sequence[str] = ()
    annotation_keys_to_copy: Sequence[str] = ()
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: LabelSelector = field(default_factory=default_namespace_selector)
    default_namespace: str = "default"
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    absent_changes: AbstractSet[str] = field(default_factory=absent_by_default)
    waits_for_pods_ready: bool = True
    follows_scheduling: bool = False
    most_own_timeout_s: int = 7200
    deactivated_retention_ns: int | None = None

    @classmethod
    def of(cls, configuration: KueueConfiguration | None) -> Self:
        """Return the part about jobs of a `kueuecore.Configuration`; by default, of Kueue's release manifest.

        Raises:
            TypeError: It is not a Configuration.

        Example:
            >>> from kueuecore import Configuration
            >>> JobsConfiguration.of(Configuration()).frameworks
            ('batch/job',)
        """
        if configuration is None:
            return cls()
        if not isinstance(configuration, KueueConfiguration):
            raise TypeError(f"configuration must be a Configuration, not {type(configuration).__name__}")
        settings = configuration.to_dict()
        integrations = object_at(settings, "integrations")
        retention = text_at(settings, "objectRetentionPolicies", "workloads", "afterDeactivatedByKueue")
        custom_labels = list_at(settings, "metrics", "customLabels")
        measured = [label for label in custom_labels if text_at(label, "sourceKind") == "Workload"]
        if not configuration.is_enabled("CustomMetricLabels"):
            measured = []
        annotation_keys = [key for label in measured if (key := text_at(label, "sourceAnnotationKey"))]
        label_keys = [
            text_at(label, "sourceLabelKey") or text_at(label, "name")
            for label in measured
            if not text_at(label, "sourceAnnotationKey")
        ]
        ready = object_at(settings, "waitForPodsReady")
        waits_for_pods = "waitForPodsReady" in settings and not configuration.is_enabled("DisableWaitForPodsReady")
        return cls(
            frameworks=_texts(integrations, "frameworks"),
            external_frameworks=_texts(integrations, "externalFrameworks"),
            label_keys_to_copy=[*_texts(integrations, "labelKeysToCopy"), *label_keys],
            annotation_keys_to_copy=annotation_keys,
            manage_jobs_without_queue_name=settings.get("manageJobsWithoutQueueName") is True,
            managed_jobs_namespace_selector=_selector(object_at(settings, "managedJobsNamespaceSelector")),
            feature_gates={gate: configuration.is_enabled(gate) for gate in GATES},
            absent_changes=frozenset(change for change in CHANGES if not configuration.has_change(change)),
            waits_for_pods_ready=waits_for_pods,
            follows_scheduling=waits_for_pods and duration_ns(text_at(ready, "unscheduledTimeout") or "0s") > 0,
            most_own_timeout_s=duration_ns(text_at(ready, "maxTimeoutOnWorkload") or "2h") // 10**9,
            deactivated_retention_ns=duration_ns(retention) if retention else None,
        )

    def enabled(self, gate: str) -> bool:
        """Return whether a feature gate that matters to jobs is on."""
        return self.feature_gates.get(gate, gates_by_default()[gate])

    def has(self, change: str) -> bool:
        """Return whether a change of Kueue that matters to jobs is in effect (rules/11 §4)."""
        assert change in CHANGES, f"{change} is not read from Configurations"
        return change not in self.absent_changes

    @property
    def most_pod_sets(self) -> int:
        """The most pod sets that a Workload may have (rules/10 §1)."""
        if not self.has("PodSetsUpToTen"):
            return 8
        return 18 if self.has("PodSetsUpToEighteen") else 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The configuration, and the objects besides the jobs that affect them.

    Args:
        configuration: Which jobs are managed, and how.
        frameworks: The integration of each kind of jobs, by apiVersion and kind.
        own_frameworks: Integrations that Kueue does not know, which are enabled without being named.
        namespaces: Labels by name.
        local_queues: Namespaces and names.
        multikueue_queues: Those whose ClusterQueue has a MultiKueue check.
        workload_priority_classes: Values by name.
        priority_classes: Values by name.
        default_priority_class: The PriorityClass for pods that name none.
        flavors: ResourceFlavors by name.
        multikueue_checks: Names of MultiKueue's AdmissionChecks.
        workloads: Workloads by namespace and name.
        owned: Names of the Workloads of an owner, by namespace and the owner's apiVersion, kind, name and UID.
        by_key: Every object by (apiVersion, kind, namespace, name).
        members: The pods and StatefulSets of the set in question; None: search all objects for them.
    """

    configuration: JobsConfiguration = field(default_factory=JobsConfiguration)
    frameworks: Mapping[tuple[str, str], str] = field(default_factory=dict)
    own_frameworks: AbstractSet[str] = frozenset()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    local_queues: frozenset[tuple[str, str]] = frozenset()
    multikueue_queues: frozenset[tuple[str, str]] = frozenset()
    workload_priority_classes: Mapping[str, int] = field(default_factory=dict)
    priority_classes: Mapping[str, int] = field(default_factory=dict)
    default_priority_class: str | None = None
    flavors: Mapping[str, JsonObject] = field(default_factory=dict)
    multikueue_checks: AbstractSet[str] = frozenset()
    workloads: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict)
    owned: Mapping[tuple[str, str, str, str, str], Sequence[str]] = field(default_factory=dict)
    by_key: Mapping[tuple[str, str, str, str], JsonObject] = field(default_factory=dict)
    members: Sequence[JsonObject] | None = None

    @classmethod
    def of(
        cls,
        objects: Iterable[JsonObject],
        *,
        configuration: JobsConfiguration,
        frameworks: Mapping[tuple[str, str], str],
        own_frameworks: AbstractSet[str] = frozenset(),
    ) -> Self:
        """Read all objects once."""
        namespaces: dict[str, Mapping[str, str]] = {}
        local_queues: dict[tuple[str, str], str] = {}
        checks_of: dict[str, set[str]] = {}
        multikueue_checks: set[str] = set()
        workload_classes: dict[str, int] = {}
        # Every cluster has these two.
        classes = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
        defaults: dict[str, int] = {}
        flavors: dict[str, JsonObject] = {}
        workloads: dict[tuple[str, str], JsonObject] = {}
        by_key: dict[tuple[str, str, str, str], JsonObject] = {}
        for plain in objects:
            api_version, kind, name = (
                text_at(plain, "apiVersion"),
                text_at(plain, "kind"),
                text_at(plain, "metadata", "name"),
            )
            namespace = text_at(plain, "metadata", "namespace") or configuration.default_namespace
            by_key[api_version, kind, namespace, name] = plain
            value = int_at(plain, "value", default=_NO_PRIORITY)
            match group_of(api_version), kind:
                case "", "Namespace":
                    namespaces[name] = texts_at(plain, "metadata", "labels")
                case "kueue.x-k8s.io", "LocalQueue":
                    local_queues[namespace, name] = text_at(plain, "spec", "clusterQueue")
                case "kueue.x-k8s.io", "ClusterQueue":
                    checks_of[name] = _checks(plain)
                case "kueue.x-k8s.io", "AdmissionCheck":
                    if text_at(plain, "spec", "controllerName") == MULTIKUEUE:
                        multikueue_checks.add(name)
                case "kueue.x-k8s.io", "ResourceFlavor":
                    flavors[name] = plain
                case "kueue.x-k8s.io", "Workload":
                    workloads[namespace, name] = plain
                case "kueue.x-k8s.io", "WorkloadPriorityClass" if value in _PRIORITIES:
                    workload_classes[name] = value
                case "scheduling.k8s.io", "PriorityClass" if value in _PRIORITIES:
                    classes[name] = value
                    if plain.get("globalDefault") is True:
                        defaults[name] = value
                case _:
                    pass
        return cls(
            configuration=configuration,
            frameworks=frameworks,
            own_frameworks=own_frameworks,
            namespaces=namespaces,
            local_queues=frozenset(local_queues),
            multikueue_queues=frozenset(
                key for key, queue in local_queues.items() if checks_of.get(queue, set()) & multikueue_checks
            ),
            workload_priority_classes=workload_classes,
            priority_classes=classes,
            # Of several defaults the lowest counts (rules/10 §3.3); of equal ones the alphabetically first.
            default_priority_class=min(defaults, key=lambda name: (defaults[name], name), default=None),
            flavors=flavors,
            multikueue_checks=multikueue_checks,
            workloads=workloads,
            owned=_owned(workloads),
            by_key=by_key,
        )

    def beside(
        self,
        workloads: Iterable[JsonObject],
        by_key: Mapping[tuple[str, str, str, str], JsonObject] | None = None,
        members: Sequence[JsonObject] | None = None,
    ) -> Surroundings:
        """Return the same with only these Workloads and, if given, with other objects by key.

        Args:
            workloads: The Workloads.
            by_key: All objects by key; None if they are the same.
            members: The pods and StatefulSets of the set in question, if known.
        """
        default = self.configuration.default_namespace
        found = {
            (text_at(workload, "metadata", "namespace") or default, text_at(workload, "metadata", "name")): workload
            for workload in workloads
        }
        every = self.by_key if by_key is None else by_key
        known = self.members if members is None else members
        return replace(self, workloads=found, owned=_owned(found), by_key=every, members=known)

    def enabled(self, gate: str) -> bool:
        """Return whether a feature gate that matters to jobs is on."""
        return self.configuration.enabled(gate)

    def has(self, change: str) -> bool:
        """Return whether a change of Kueue that matters to jobs is in effect."""
        return self.configuration.has(change)

    def is_enabled(self, framework: str) -> bool:
        """Return whether an integration is enabled."""
        return framework in self.configuration.frameworks or framework in self.own_frameworks

    def is_meant_for_kueue(self, job: JsonObject) -> bool:
        """Return whether a job names a queue, or need not name one."""
        return self.configuration.manage_jobs_without_queue_name or bool(labels_of(job).get(QUEUE_LABEL))

    def is_selected(self, namespace: str) -> bool:
        """Return whether the jobs of a namespace are managed."""
        return self.configuration.managed_jobs_namespace_selector.matches(self.namespace_labels(namespace))

    def namespace_labels(self, namespace: str) -> dict[str, str]:
        """Return the labels of a namespace with the one that the API server sets, even if the object is missing."""
        return {**self.namespaces.get(namespace, {}), "kubernetes.io/metadata.name": namespace}


def configuration_or_default(configuration: JobsConfiguration | None) -> JobsConfiguration:
    """Return how jobs are managed; by default as in a new installation of Kueue.

    Raises:
        TypeError: It is not a JobsConfiguration.
    """
    if configuration is None:
        return JobsConfiguration()
    return instance("configuration", configuration, JobsConfiguration)


def _texts(value: JsonValue, key: str) -> tuple[str, ...]:
    return tuple(text for text in list_at(value, key) if isinstance(text, str))


def _selector(plain: JsonObject) -> LabelSelector:
    expressions = [
        LabelSelectorRequirement(
            text_at(expression, "key"),
            operator=LabelSelectorOperator(text_at(expression, "operator")),
            values=_texts(expression, "values"),
        )
        for expression in list_at(plain, "matchExpressions")
    ]
    return LabelSelector(texts_at(plain, "matchLabels"), match_expressions=expressions)


def _owned(
    workloads: Mapping[tuple[str, str], JsonObject],
) -> dict[tuple[str, str, str, str, str], Sequence[str]]:
    """Return names of the Workloads of each owner."""
    owned: defaultdict[tuple[str, str, str, str, str], list[str]] = defaultdict(list)
    for (namespace, name), workload in workloads.items():
        for owner in list_at(workload, "metadata", "ownerReferences"):
            owned[namespace, *owner_key(owner)].append(name)
    return dict(owned)


def _checks(cluster_queue: JsonObject) -> set[str]:
    """Return names of the checks of a ClusterQueue."""
    plain = [name for name in list_at(cluster_queue, "spec", "admissionChecks") if isinstance(name, str)]
    strategy = list_at(cluster_queue, "spec", "admissionChecksStrategy", "admissionChecks")
    return {*plain, *(text_at(check, "name") for check in strategy)}


def owner_key(owner: JsonValue) -> tuple[str, str, str, str]:
    """Return what identifies the object of an owner reference."""
    return text_at(owner, "apiVersion"), text_at(owner, "kind"), text_at(owner, "name"), text_at(owner, "uid") or NO_UID


def group_of(api_version: str) -> str:
    """Return the group of an apiVersion; empty for the core group."""
    group, slash, _ = api_version.partition("/")
    return group if slash else ""


def annotations_of(job: JsonObject) -> dict[str, str]:
    """Return the annotations of an object."""
    return texts_at(job, "metadata", "annotations")


def labels_of(job: JsonObject) -> dict[str, str]:
    """Return the labels of an object."""
    return texts_at(job, "metadata", "labels")


def set_label(job: JsonObject, key: str, value: str) -> None:
    """Set a label of an object."""
    _set_text(job, "labels", key, value)


def set_annotation(job: JsonObject, key: str, value: str) -> None:
    """Set an annotation of an object."""
    _set_text(job, "annotations", key, value)


def _set_text(job: JsonObject, which: str, key: str, value: str) -> None:
    metadata = object_at(job, "metadata")
    job["metadata"] = {**metadata, which: {**object_at(metadata, which), key: value}}


def is_elastic(job: JsonObject, configuration: JobsConfiguration) -> bool:
    """Return whether the job, or the job of a Workload, gets workload slices (rules/10 §6)."""
    return annotations_of(job).get(ELASTIC_JOB) == "true" and configuration.enabled("ElasticJobsViaWorkloadSlices")
