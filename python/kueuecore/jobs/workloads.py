"""The Workloads of the jobs among some manifests, as Kueue's webhooks and controllers make them (rules/10 §2, §3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.integration import Integration, JobPodSet
from kueuecore.jobs.kinds import INTEGRATIONS
from kueuecore.jobs.model import (
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    labels_of,
    set_label,
)
from kueuecore.jobs.owners import FRAMEWORKS, OwnerError, has_managed_owner, managed_ancestor
from kueuecore.jobs.paths import path_text
from kueuecore.jobs.validation import common_problems, prebuilt_workload
from kueuecore.jobs.workload import new_workload, priority_of
from kueuecore.manifests import Manifest, ManifestLike, object_ref, plain_object

__all__ = ["Ignored", "JobsResult", "workloads_for"]


@dataclass(frozen=True, slots=True)
class Ignored:
    """A job that gets no Workload, and is none the worse for it.

    Args:
        job: The job.
        reason: Why it gets none.
        manifest: Its manifest.
    """

    job: ObjectRef
    reason: str
    manifest: Manifest

    def __str__(self) -> str:
        return f"{self.job}: {self.reason}"


@dataclass(frozen=True, slots=True)
class JobsResult:
    """What became of the jobs among some manifests, in their order.

    Args:
        workloads: A Workload for each job that gets one. Its source is that of the job, so errors about the Workload
            show lines of the job.
        jobs: Those jobs, as the webhooks leave them: with defaults, and suspended.
        ignored: Jobs that get none, and why. Those of integrations that are off are left out if they name no queue.
        problems: What is wrong with jobs that are rejected.
    """

    workloads: tuple[Manifest, ...]
    jobs: tuple[JsonObject, ...]
    ignored: tuple[Ignored, ...]
    problems: tuple[Problem, ...]

    def raise_for_problems(self) -> None:
        """Raise a ManifestError if a job was rejected."""
        if self.problems:
            raise ManifestError(self.problems)


class _Ignore(Exception):  # noqa: N818  # it never leaves this module
    """This job gets no Workload."""


def workloads_for(manifests: Iterable[ManifestLike], *, configuration: JobsConfiguration | None = None) -> JobsResult:
    """The Workloads of the jobs among `manifests`.

    The other objects are what the jobs stand in: LocalQueues and WorkloadPriorityClasses named `default`, priority
    classes, Namespaces for their labels, owners, and Workloads that are there already.

    Args:
        manifests: All objects, in any form.
        configuration: Which jobs are managed, and how; by default as without a Configuration.

    Returns:
        Workloads, ignored jobs and problems; nothing is raised for a job that is rejected.
    """
    configuration = configuration or JobsConfiguration()
    everything = [it if isinstance(it, Manifest) else Manifest(plain_object(it)) for it in manifests]
    surroundings = Surroundings.of((it.object for it in everything), configuration=configuration)
    names = _Names(everything, configuration.default_namespace)
    workloads, jobs, ignored, problems = [], [], [], []
    for index, manifest in enumerate(everything):
        kind = text_at(manifest.object, "kind")
        framework = FRAMEWORKS.get((text_at(manifest.object, "apiVersion"), kind))
        if kind == "CronJob" and text_at(manifest.object, "apiVersion").startswith("batch/"):
            reason = "a CronJob makes Jobs when their time comes, and none is made here"
            ignored.append(Ignored(object_ref(manifest.object), reason, manifest))
        if framework is None:
            continue
        if framework not in configuration.frameworks and QUEUE_LABEL not in labels_of(manifest.object):
            continue  # nobody means it for Kueue
        job = names.complete(manifest.object)
        try:
            found = _workload(job, framework, surroundings)
        except _Ignore as reason_to_ignore:
            ignored.append(Ignored(object_ref(job), str(reason_to_ignore), manifest))
            continue
        if isinstance(found, _Made):
            workloads.append(Manifest(found.workload, manifest.source.renamed(*_paths(found.pod_sets))))
            jobs.append(found.job)
        else:
            problems += [manifest.locate(replace(it, object=object_ref(job), index=index)) for it in found]
    return JobsResult(tuple(workloads), tuple(jobs), tuple(ignored), tuple(problems))


@dataclass(frozen=True, slots=True)
class _Made:
    workload: JsonObject
    job: JsonObject
    pod_sets: Sequence[JobPodSet]


def _workload(raw: JsonObject, framework: str, surroundings: Surroundings) -> _Made | list[Problem]:
    """The Workload and the defaulted job; or why the job is rejected.

    Raises:
        _Ignore: The job gets no Workload.
    """
    configuration = surroundings.configuration
    integration = INTEGRATIONS.get((text_at(raw, "apiVersion").rpartition("/")[0], text_at(raw, "kind")))
    unbuilt = "" if integration else f"kueuecore makes no Workloads of {text_at(raw, 'kind')}s yet"
    if framework not in configuration.frameworks:
        raise _Ignore(f"the integration {framework} is not enabled" + (f", and {unbuilt}" if unbuilt else ""))
    if integration is None:
        raise _Ignore(unbuilt)
    if text_at(raw, "metadata", "deletionTimestamp"):
        raise _Ignore("it is being deleted")
    if shape := [*_metadata_problems(raw), *integration.shape_problems(raw)]:
        return shape
    job = integration.with_defaults(raw)
    try:
        ancestor = managed_ancestor(job, surroundings)
    except OwnerError as error:
        raise _Ignore(str(error)) from None
    job = _with_webhook_defaults(job, integration, surroundings)
    pod_sets = integration.pod_sets(job, surroundings)
    problems = common_problems(job, integration, configuration)
    problems += integration.validate(job, pod_sets, surroundings)
    if problems:
        return problems
    _check_managed(job, ancestor, surroundings)
    if integration.finished(job) is not None:
        raise _Ignore("it has finished")
    built = [pod_set.to_manifest(configuration) for pod_set in pod_sets]
    workload = new_workload(job, integration, built, configuration)
    _check_existing(job, workload, surroundings)
    priority, problem = priority_of(job, built, surroundings, pod_class=integration.priority_class(job))
    if problem is not None:
        return [_renamed(problem, _paths(pod_sets))]
    workload["spec"] = {**object_at(workload, "spec"), **priority}
    return _Made(workload, job, pod_sets)


def _metadata_problems(job: JsonObject) -> list[Problem]:
    """What an API server refuses in the metadata of any job."""
    problems = []
    if not text_at(job, "metadata", "name"):
        message = "Required value: name or generateName is required"
        problems.append(Problem(message, field="metadata.name", remedy="give it a name, in quotes if it is a number"))
    labels = object_at(job, "metadata").get("labels")
    if labels is not None and not isinstance(labels, dict):
        problems.append(Problem("must be a map", field="metadata.labels", remedy="write name: value"))
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if value is not None and not isinstance(value, str):
            remedy = "write the value in quotes"
            problems.append(Problem("must be a text", field=f"metadata.labels[{key}]", remedy=remedy))
    return problems


def _with_webhook_defaults(job: JsonObject, integration: Integration, surroundings: Surroundings) -> JsonObject:
    """A new job as the mutating webhook leaves it, in its order (rules/10 §2.2)."""
    configuration = surroundings.configuration
    namespace = text_at(job, "metadata", "namespace")
    selected = _is_selected(namespace, surroundings)
    owned = has_managed_owner(job, configuration)
    if (
        (namespace, "default") in surroundings.local_queues
        and not labels_of(job).get(QUEUE_LABEL)
        and not owned
        and selected
    ):
        set_label(job, QUEUE_LABEL, "default")
    if (
        configuration.enabled("WorkloadPriorityClassDefaulting")
        and "default" in surroundings.workload_priority_classes
        and not labels_of(job).get(PRIORITY_CLASS_LABEL)
        and not owned
    ):
        set_label(job, PRIORITY_CLASS_LABEL, "default")
    managed = labels_of(job).get(QUEUE_LABEL) or (configuration.manage_jobs_without_queue_name and selected)
    if managed:
        # A job below a managed one would be left as it is, but it is ignored in the end.
        job = integration.suspend(job)
    return integration.webhook_defaults(job, configuration)


def _check_managed(job: JsonObject, ancestor: JsonObject | None, surroundings: Surroundings) -> None:
    """Whether the controller looks at the job at all (rules/10 §2.4)."""
    namespace = text_at(job, "metadata", "namespace")
    if not _is_selected(namespace, surroundings):
        raise _Ignore(f'managedJobsNamespaceSelector leaves out the namespace "{namespace}"')
    if ancestor is not None:
        raise _Ignore(f"{object_ref(ancestor)} owns it, and has the Workload")
    if not labels_of(job).get(QUEUE_LABEL) and not surroundings.configuration.manage_jobs_without_queue_name:
        raise _Ignore(f"it has no label {QUEUE_LABEL}")


def _check_existing(job: JsonObject, workload: JsonObject, surroundings: Surroundings) -> None:
    """Whether the job has a Workload already."""
    namespace, name = text_at(job, "metadata", "namespace"), text_at(job, "metadata", "name")
    prebuilt, _ = prebuilt_workload(job, surroundings.configuration)
    if prebuilt:
        found = "" if (namespace, prebuilt) in surroundings.workloads else ", which is not among the manifests"
        raise _Ignore(f'it uses the prebuilt Workload "{namespace}/{prebuilt}"{found}')
    wanted = object_at(list_at(workload, "metadata", "ownerReferences")[0])
    same = ("apiVersion", "kind", "name", "uid")
    for (other_namespace, other), existing in surroundings.workloads.items():
        owners = list_at(existing, "metadata", "ownerReferences")
        owned = any(all(text_at(owner, key) == wanted[key] for key in same) for owner in owners)
        if other_namespace == namespace and (owned or other == text_at(workload, "metadata", "name")):
            raise _Ignore(f'its Workload "{namespace}/{other}" is among the manifests (job {name})')


def _is_selected(namespace: str, surroundings: Surroundings) -> bool:
    labels = surroundings.namespace_labels(namespace)
    return surroundings.configuration.managed_jobs_namespace_selector.matches(labels)


def _paths(pod_sets: Sequence[JobPodSet]) -> Sequence[tuple[str, str]]:
    """Where the fields of the Workload come from."""
    paths = []
    for index, pod_set in enumerate(pod_sets):
        for field, path in (("template", pod_set.path), ("count", pod_set.count_path)):
            if path:
                paths.append((f"spec.podSets[{index}].{field}", path_text(path)))
    return [
        *paths,
        ("spec.queueName", f"metadata.labels[{QUEUE_LABEL}]"),
        ("spec.priorityClassRef", f"metadata.labels[{PRIORITY_CLASS_LABEL}]"),
    ]


def _renamed(problem: Problem, paths: Sequence[tuple[str, str]]) -> Problem:
    """The problem of a Workload's field as one of the job's."""
    for prefix, original in paths:
        if problem.field.startswith(prefix):
            return replace(problem, field=original + problem.field[len(prefix) :])
    return problem


class _Names:
    """Namespaces and names for jobs that leave them to the API server.

    For `generateName` that appends five random characters; here it is the lowest number that nobody has, so that the
    same manifests give the same names.
    """

    def __init__(self, manifests: Iterable[Manifest], default_namespace: str) -> None:
        self._default_namespace = default_namespace
        self._taken = {self._key(it.object, text_at(it.object, "metadata", "name")) for it in manifests}

    def _key(self, job: JsonObject, name: str) -> tuple[str, str, str]:
        namespace = text_at(job, "metadata", "namespace") or self._default_namespace
        return text_at(job, "kind"), namespace, name

    def complete(self, job: JsonObject) -> JsonObject:
        """The job with a namespace and a name."""
        metadata = dict(object_at(job, "metadata"))
        metadata["namespace"] = text_at(job, "metadata", "namespace") or self._default_namespace
        prefix = text_at(job, "metadata", "generateName")
        if prefix and not text_at(job, "metadata", "name"):
            number = 1
            while self._key(job, f"{prefix}{number:05}") in self._taken:
                number += 1
            metadata["name"] = f"{prefix}{number:05}"
            self._taken.add(self._key(job, f"{prefix}{number:05}"))
        return {**job, "metadata": metadata}
