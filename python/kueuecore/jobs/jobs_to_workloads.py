"""Makes the Workloads of the jobs among some manifests, as Kueue's webhooks and controllers do (rules/10 §2, §3)."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from kueuecore._arguments import each, mapping
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import quoted, shown
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.jobs.context import (
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    configuration_or_default,
    group_of,
    labels_of,
    owner_key,
)
from kueuecore.jobs.creation_validation import creation_problems
from kueuecore.jobs.enabled_kinds import why_off
from kueuecore.jobs.field_paths import path_text
from kueuecore.jobs.field_types import field_problems, unknown_fields
from kueuecore.jobs.foreign_jobs import OwnerKey, is_mini_cluster, owner_keys, why_none_is_made
from kueuecore.jobs.generated_names import GeneratedNames
from kueuecore.jobs.integration import Integration, JobPodSet, NoWorkload
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.manifest_shapes import METADATA
from kueuecore.jobs.owners import OwnerError, managed_ancestor
from kueuecore.jobs.pod import POD, TOTAL_COUNT, group_name
from kueuecore.jobs.pod_group import POD_GROUP, pod_group
from kueuecore.jobs.train_job import TRAIN_JOB
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.jobs.webhook_defaults import with_webhook_defaults
from kueuecore.jobs.workload_builder import new_workload, priority_of
from kueuecore.manifests import Manifest, ManifestLike, as_manifest, object_ref, plain_object

__all__ = ["Ignored", "JobsResult", "surroundings_of", "workloads_for"]


@dataclass(frozen=True, slots=True)
class Ignored:
    """A job that gets no Workload without being rejected.

    Args:
        job: The job.
        reason: Why it gets none.
        manifest: Its manifest.
    """

    job: ObjectRef
    reason: str
    manifest: Manifest

    def __str__(self) -> str:
        return f"{self.job}: {shown(self.reason)}"


@dataclass(frozen=True, slots=True)
class JobsResult:
    """The outcome for the jobs among some manifests, in their order.

    Args:
        workloads: A Workload for each job that gets one. Its source is that of the job, so errors about the Workload
            show lines of the job.
        positions: For each Workload, the index of its job among the manifests; for a group of pods, that of the last
            one.
        jobs: The jobs that Kueue manages, as the webhooks leave them: with defaults, and suspended. They include jobs
            that get no Workload, or have one already.
        ignored: Jobs that get none, and why; without those of disabled integrations that name no queue.
        problems: The problems of rejected jobs.
        waiting: Jobs that get no Workload until something that they name exists, and what that is: a priority class, an
            existing Workload, or a runtime.
        warnings: Unknown fields of a Job, Deployment or StatefulSet: an API server drops them with a warning.
        assumed: What was assumed to be in the cluster besides the manifests, in a sentence each: the runtimes that the
            Trainer ships, where a TrainJob names one that is not given.
    """

    workloads: tuple[Manifest, ...]
    positions: tuple[int, ...]
    jobs: tuple[JsonObject, ...]
    ignored: tuple[Ignored, ...]
    problems: tuple[Problem, ...]
    waiting: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    assumed: tuple[str, ...] = ()

    def raise_for_problems(self) -> None:
        """Raise a ManifestError if a job was rejected."""
        if self.problems:
            raise ManifestError(self.problems, self.warnings)


class _Rejected(Exception):  # noqa: N818  # it never leaves this module
    """A webhook refuses this job."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


class _Waits(Exception):  # noqa: N818  # it never leaves this module
    """The job gets no Workload until something exists."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


def workloads_for(
    manifests: Iterable[ManifestLike],
    *,
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> JobsResult:
    """Return the Workloads of the jobs among `manifests`.

    The other objects are the jobs' surroundings: LocalQueues and WorkloadPriorityClasses named `default`, priority
    classes, Namespaces with their labels, owners, and existing Workloads.

    Args:
        manifests: All objects, in any form.
        configuration: Which jobs are managed, and how; by default as in a new installation of Kueue.
        integrations: The kinds of jobs. Those that Kueue does not know are always enabled.

    Returns:
        Workloads, ignored jobs, problems and what jobs wait for; a rejected job raises nothing.
    """
    configuration = configuration_or_default(configuration)
    given = each("manifests", manifests)
    everything = [as_manifest(manifest, f"manifests[{index}]") for index, manifest in enumerate(given)]
    runtimes, assumed = _shipped_runtimes(everything)
    surroundings = surroundings_of([*everything, *runtimes], configuration, integrations)
    builder = _Builder(surroundings, integrations, GeneratedNames(everything, configuration.default_namespace))
    for index, manifest in enumerate(everything):
        builder.add(manifest, index)
    builder.add_groups()
    return replace(builder.result(), assumed=assumed)


def _shipped_runtimes(manifests: Sequence[Manifest]) -> tuple[tuple[JsonObject, ...], tuple[str, ...]]:
    """Return the shipped runtimes that TrainJobs name and the manifests lack, and a sentence that says so."""
    if all(text_at(manifest.object, "kind") != TRAIN_JOB.kind for manifest in manifests):
        return (), ()
    from kueuecore.jobs.shipped_runtimes import RELEASE, missing_runtimes

    found = missing_runtimes(manifest.object for manifest in manifests)
    names = ", ".join(text_at(runtime, "metadata", "name") for runtime in found)
    said = f"assumed the ClusterTrainingRuntimes of {RELEASE}, as none are given by these names: {names}"
    return found, ((said,) if found else ())


def surroundings_of(
    manifests: Iterable[ManifestLike],
    configuration: JobsConfiguration,
    integrations: Mapping[tuple[str, str], Integration],
) -> Surroundings:
    """Return the surroundings of jobs."""
    mapping("integrations", integrations)
    given = enumerate(each("around", manifests))
    return Surroundings.of(
        [plain_object(assignment, f"around[{index}]") for index, assignment in given],
        configuration=configuration,
        frameworks={
            (integration.api_version, integration.kind): integration.framework for integration in integrations.values()
        },
        own_frameworks={
            integration.framework
            for key, integration in integrations.items()
            if INTEGRATIONS.get(key) is not integration
        },
    )


def surroundings_with(
    around: Iterable[ManifestLike] | Surroundings,
    workloads: Iterable[JsonObject],
    configuration: JobsConfiguration,
    integrations: Mapping[tuple[str, str], Integration],
) -> Surroundings:
    """Return what a job depends on, with these Workloads."""
    if isinstance(around, Surroundings):
        return around.beside(workloads)
    return surroundings_of(chain(each("around", around), workloads), configuration, integrations)


class _Builder:
    """Takes jobs one by one, and makes groups of pods at the end."""

    def __init__(
        self, surroundings: Surroundings, integrations: Mapping[tuple[str, str], Integration], names: GeneratedNames
    ) -> None:
        self._surroundings = surroundings
        self._integrations = integrations
        self._names = names
        self._workloads: list[tuple[int, Manifest]] = []
        self._jobs: list[JsonObject] = []
        self._ignored: list[Ignored] = []
        self._problems: list[Problem] = []
        self._waiting: list[Problem] = []
        self._warnings: list[Problem] = []
        self._groups: dict[tuple[str, str], list[tuple[JsonObject, Manifest, int]]] = {}

    def result(self) -> JobsResult:
        # A group comes where its last pod does.
        workloads = sorted(self._workloads, key=lambda workload: workload[0])
        return JobsResult(
            workloads=tuple(workload for _, workload in workloads),
            positions=tuple(index for index, _ in workloads),
            jobs=tuple(self._jobs),
            ignored=tuple(self._ignored),
            problems=tuple(self._problems),
            waiting=tuple(self._waiting),
            warnings=tuple(self._warnings),
        )

    def add(self, manifest: Manifest, index: int) -> None:
        """Take an object: a job, or anything else."""
        api_version, kind = text_at(manifest.object, "apiVersion"), text_at(manifest.object, "kind")
        integration = self._integrations.get((group_of(api_version), kind))
        if integration is None:
            self._add_foreign(manifest, index)
            return
        if integration is POD_GROUP:
            return
        names_queue = QUEUE_LABEL in labels_of(manifest.object)
        if integration.api_version != api_version:
            if names_queue:
                why = f"Kueue does not know {kind} of {api_version}: write {integration.api_version}"
                self._ignored.append(Ignored(object_ref(manifest.object), why, manifest))
            return
        if reason := why_off(manifest.object, integration, self._surroundings):
            if names_queue:
                self._ignored.append(Ignored(object_ref(manifest.object), reason, manifest))
            return
        shape = {"metadata": METADATA, **integration.fields}
        if problems := field_problems(manifest.object, shape):
            self._reject(manifest.object, problems, manifest, index)
            return
        self._warnings += _about(unknown_fields(manifest.object, shape), manifest.object, manifest, index)
        # Every cluster has these, and they are only meant for Kueue if they name a queue.
        is_quiet = integration.framework in ("pod", "deployment", "statefulset") and not names_queue
        self._add_job(manifest.object, integration, manifest, index, is_quiet=is_quiet)

    def _add_foreign(self, manifest: Manifest, index: int) -> None:
        """Take an object of a kind that Kueue does not know: it may make Jobs, or have a Workload all the same."""
        plain, configuration = manifest.object, self._surroundings.configuration
        group, kind = group_of(text_at(plain, "apiVersion")), text_at(plain, "kind")
        reason, makes_job = why_none_is_made(plain, configuration), is_mini_cluster(plain)
        if not reason and not makes_job:
            return
        namespace = text_at(plain, "metadata", "namespace") or configuration.default_namespace
        if (group, kind, namespace, text_at(plain, "metadata", "name")) in self._owners and kind != "CronJob":
            return
        if reason:
            self._ignored.append(Ignored(object_ref(plain), reason, manifest))
        else:
            self._add_mini_cluster(manifest, index)

    def _add_mini_cluster(self, manifest: Manifest, index: int) -> None:
        from kueuecore.jobs.mini_cluster import job_of, mini_cluster_problems

        cluster = self._names.complete(manifest.object)
        if problems := mini_cluster_problems(cluster) or _name_problems(cluster):
            self._reject(cluster, problems, manifest, index)
        else:
            self.add(Manifest(job_of(cluster), manifest.source.without_fields()), index)

    @cached_property
    def _owners(self) -> AbstractSet[OwnerKey]:
        """The owners of all objects: what they have made is among the manifests."""
        return owner_keys(self._surroundings.by_key.values(), self._surroundings.configuration.default_namespace)

    def _add_job(
        self, raw: JsonObject, integration: Integration, manifest: Manifest, index: int, *, is_quiet: bool = False
    ) -> None:
        raw = self._names.complete(raw)
        try:
            job = self._prepared(raw, integration)
            self._jobs.append(job)
            pods = integration.pods_made(job, self._surroundings)
            group = group_name(job, self._surroundings.configuration) if integration is POD else ""
            if group:
                key = text_at(job, "metadata", "namespace"), group
                self._groups.setdefault(key, []).append((job, manifest, index))
            else:
                self._try_to_make(job, integration, manifest, index)
        except NoWorkload as reason:
            if reason.missing is not None:
                if not _has_workload(raw, self._surroundings):
                    self._waiting += _about([reason.missing], raw, manifest, index)
            elif not is_quiet:
                self._ignored.append(Ignored(object_ref(raw), str(reason), manifest))
        except (_Rejected, ManifestError) as rejected:
            self._reject(raw, rejected.problems, manifest, index)
        except _FAILURES as error:
            if INTEGRATIONS.get((integration.group, integration.kind)) is integration:
                raise
            self._reject(raw, [_failure(error)], manifest, index)
        else:
            for pod in pods:
                self._add_job(pod, POD, replace(manifest, source=manifest.source.without_fields()), index)

    def add_groups(self) -> None:
        """Make the Workloads of the groups whose pods were added."""
        for (_, name), members in self._groups.items():
            _, manifest, _ = members[0]
            last = max(index for _, _, index in members)
            group = pod_group(name, [pod for pod, _, _ in members])
            try:
                whole = replace(manifest, source=manifest.source.without_fields())
                self._try_to_make(group, POD_GROUP, whole, last)
            except NoWorkload as reason:
                self._ignored.append(Ignored(object_ref(members[0][0]), str(reason), manifest))
            except (_Rejected, ManifestError) as rejected:
                self._reject(members[0][0], rejected.problems, manifest, last)

    def _reject(self, job: JsonObject, problems: Sequence[Problem], manifest: Manifest, index: int) -> None:
        self._problems += _about(problems, job, manifest, index)

    def _prepared(self, raw: JsonObject, integration: Integration) -> JsonObject:
        """Return the job as the webhooks leave it.

        Raises:
            NoWorkload: Kueue leaves it alone.
            _Rejected: A webhook refuses it.
        """
        surroundings = self._surroundings
        if text_at(raw, "metadata", "deletionTimestamp") and TOTAL_COUNT not in annotations_of(raw):
            raise NoWorkload("it is being deleted")
        if missing := [*_name_problems(raw), *integration.shape_problems(raw)]:
            raise _Rejected(missing)
        job = integration.with_defaults(raw)
        if reason := integration.skipped(job):
            raise NoWorkload(reason)
        try:
            ancestor = None if integration.is_top_level(job) else managed_ancestor(job, surroundings)
        except OwnerError as error:
            raise NoWorkload(str(error)) from None
        job = with_webhook_defaults(job, integration, surroundings)
        pod_sets = integration.pod_sets(job, surroundings)
        if problems := creation_problems(job, integration, pod_sets, surroundings):
            raise _Rejected(problems)
        _check_managed(job, integration, ancestor, surroundings)
        return job

    def _try_to_make(self, job: JsonObject, integration: Integration, manifest: Manifest, index: int) -> None:
        """Make the Workloads of a job, unless it waits for something.

        Raises:
            NoWorkload: It gets none.
        """
        try:
            self._make(job, integration, manifest, index)
        except _Waits as waits:
            self._waiting += _about([waits.problem], job, manifest, index)

    def _make(self, job: JsonObject, integration: Integration, manifest: Manifest, index: int) -> None:
        """Make the Workloads of a job.

        Raises:
            NoWorkload: It gets none.
            _Waits: Its priority class or the Workload that it names does not exist.
        """
        surroundings, configuration = self._surroundings, self._surroundings.configuration
        if integration.finished(job) is not None:
            raise NoWorkload("it has finished")
        pod_sets = integration.pod_sets(job, surroundings)
        if len(pod_sets) > (most := configuration.most_pod_sets):
            raise NoWorkload(f"it has {len(pod_sets)} pod sets, and a Workload has at most {most}")
        built = [pod_set.to_manifest(configuration) for pod_set in pod_sets]
        source = manifest.source.renamed(*_paths(pod_sets, integration), job=object_ref(job))
        priority, problem = priority_of(job, built, surroundings, pod_class=integration.priority_class(job))
        n_workloads = integration.n_workloads(job)
        made, why_not = 0, ""
        for number in range(n_workloads):
            workload = new_workload(job, integration, built, configuration, index=number)
            if found := _existing(job, workload, integration, surroundings, is_only_one=n_workloads == 1):
                why_not = found
                continue
            if problem is not None:
                raise _Waits(source.of_job(problem))
            workload["spec"] = {**object_at(workload, "spec"), **priority}
            self._workloads.append((index, Manifest(workload, source)))
            made += 1
        if why_not and not made:
            raise NoWorkload(why_not)


def _about(problems: Sequence[Problem], job: JsonObject, manifest: Manifest, index: int) -> list[Problem]:
    """Return the problems of a job, or of what it needs, with their locations."""
    ref, found = object_ref(job), []
    for problem in problems:
        placed = replace(problem, object=problem.object or ref, index=index)
        found.append(manifest.locate(placed) if placed.object == ref else placed)
    return found


# Errors of a function that does not expect such a job.
_FAILURES = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def _failure(error: Exception) -> Problem:
    """Return the error of a function of a custom kind of jobs."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{frame.name} ({Path(frame.filename).name}:{frame.lineno})"
    remedy = "correct the job; or have the kind's shape_problems refuse such a job, before its other functions meet it"
    return Problem(f"the kind failed with {type(error).__name__} in {where}: {error}", remedy=remedy)


def _name_problems(job: JsonObject) -> list[Problem]:
    """Return what an API server refuses in any job without a name."""
    if text_at(job, "metadata", "name"):
        return []
    message = "Required value: name or generateName is required"
    return [Problem(message, field="metadata.name", remedy="give it a name")]


def _check_managed(
    job: JsonObject, integration: Integration, ancestor: JsonObject | None, surroundings: Surroundings
) -> None:
    """Check whether the controller looks at the job at all (rules/10 §2.4)."""
    namespace = text_at(job, "metadata", "namespace")
    if not integration.is_serving and not surroundings.is_selected(namespace):
        raise NoWorkload(f"managedJobsNamespaceSelector excludes the namespace {quoted(namespace)}")
    if ancestor is not None:
        raise NoWorkload(f"{object_ref(ancestor)} owns it, and has the Workload")
    if not surroundings.is_meant_for_kueue(job):
        raise NoWorkload(f"it has no label {QUEUE_LABEL}")


def _has_workload(job: JsonObject, surroundings: Surroundings) -> bool:
    """Return whether a Workload among the manifests names the job as its owner."""
    reference: JsonObject = {key: text_at(job, key) for key in ("apiVersion", "kind")}
    reference |= {key: text_at(job, "metadata", key) for key in ("name", "uid")}
    return (text_at(job, "metadata", "namespace"), *owner_key(reference)) in surroundings.owned


def _existing(
    job: JsonObject,
    workload: JsonObject,
    integration: Integration,
    surroundings: Surroundings,
    *,
    is_only_one: bool,
) -> str:
    """Return the name of the Workload that the job already has; empty if none.

    Raises:
        _Waits: It names one that does not exist.
    """
    namespace, name = text_at(job, "metadata", "namespace"), text_at(job, "metadata", "name")
    prebuilt, field = prebuilt_workload(job, surroundings.configuration)
    if prebuilt and integration.supports_prebuilt:
        ref = ObjectRef("Workload", prebuilt, namespace)
        if (namespace, prebuilt) not in surroundings.workloads:
            remedy = "add the Workload to the manifests, or correct its name"
            raise _Waits(Problem(f"{ref} not found", field=field, value=prebuilt, remedy=remedy))
        return f"it uses the prebuilt {ref}"
    owner = owner_key(list_at(workload, "metadata", "ownerReferences")[0])
    owned = surroundings.owned.get((namespace, *owner), ()) if is_only_one else ()
    for other in (*owned[:1], text_at(workload, "metadata", "name")):
        if (namespace, other) in surroundings.workloads:
            return f"its {ObjectRef('Workload', other, namespace)} is among the manifests (job {name})"
    return ""


def _paths(pod_sets: Sequence[JobPodSet], integration: Integration) -> Sequence[tuple[str, str]]:
    """Return the paths in the job that fields of the Workload come from."""
    paths = []
    for index, pod_set in enumerate(pod_sets):
        prefix = f"spec.podSets[{index}]"
        if pod_set.path == ():  # the job is the pod
            paths.append((f"{prefix}.template.", ""))
        elif pod_set.path is not None:
            paths.append((f"{prefix}.template", path_text(pod_set.path)))
        if pod_set.count_path:
            paths.append((f"{prefix}.count", path_text(pod_set.count_path)))
    of_all = integration.priority_class_field
    return [
        *paths,
        ("spec.queueName", f"metadata.labels[{QUEUE_LABEL}]"),
        ("spec.priorityClassRef", f"metadata.labels[{PRIORITY_CLASS_LABEL}]"),
        *([] if of_all is None else [("spec.priority", path_text(of_all))]),
    ]
