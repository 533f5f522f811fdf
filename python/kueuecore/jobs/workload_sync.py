"""Syncs the Workloads that a job has: kept, changed, replaced or recreated (rules/10 §3.4, §4.1, §6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kueuecore._arguments import each
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import quoted
from kueuecore.jobs.batch_job import is_stopping, stopped_so_far
from kueuecore.jobs.context import (
    JOB_UID_LABEL,
    JobsConfiguration,
    Surroundings,
    annotations_of,
    configuration_or_default,
    is_elastic,
)
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.injection import SLICE_NAME_ANNOTATION, SLICE_REPLACEMENT_ANNOTATION, infos_of_workload
from kueuecore.jobs.integration import Integration, NoWorkload
from kueuecore.jobs.integrations import INTEGRATIONS
from kueuecore.jobs.job_event import JobEvent
from kueuecore.jobs.job_status import has_condition
from kueuecore.jobs.jobs_to_workloads import surroundings_with
from kueuecore.jobs.lifecycle import StopReason, check_workload, known_integration
from kueuecore.jobs.own_timeouts import own_timeouts_followed
from kueuecore.jobs.owned_workloads import owned_workloads
from kueuecore.jobs.owners import OwnerError, managed_ancestor
from kueuecore.jobs.pod import POD, SERVING
from kueuecore.jobs.pod_group import POD_GROUP
from kueuecore.jobs.pod_group_sync import (
    NotMatching,
    ended_group,
    fits_group,
    match_group,
    owned_by_all,
    prepared_group,
    refused_workload,
)
from kueuecore.jobs.serving_sync import sync_serving
from kueuecore.jobs.sync_steps import Action, Sync, WorkloadStep, created, deleted, key_of, normal, warnings_of
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.jobs.workload_builder import check_priority, complete_workload, is_label_value
from kueuecore.jobs.workload_following import gates_followed, in_queue_of, priority_followed
from kueuecore.jobs.workload_matching import fits_workload
from kueuecore.jobs.workload_names import owner_reference, uid_of
from kueuecore.jobs.workload_slices import chosen_slice
from kueuecore.manifests import ManifestLike, object_ref
from kueuecore.times import TimeLike, format_time, nanoseconds
from kueuecore.writes import Verb, Write

__all__ = ["sync_workloads"]


def sync_workloads(
    job: JsonObject,
    workloads: Iterable[JsonObject],
    *,
    now: TimeLike,
    around: Iterable[ManifestLike] | Surroundings = (),
    configuration: JobsConfiguration | None = None,
    integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
) -> Sync:
    """Decide what Kueue's job controller does about the Workloads of a managed job that is new or has changed.

    It does not start or stop the job according to its Workload. Call it again after the steps are done.

    Args:
        job: The current job; for pods in a group, their `pod_group`.
        workloads: The Workloads of its namespace; those of other jobs are left alone.
        now: The time, also for new conditions.
        around: The objects around it: its owners, priority classes, ResourceFlavors, the runtime of a TrainJob, the
            RayCluster of a RayJob or RayService; for serving kinds also its pods, and for a LeaderWorkerSet its
            StatefulSets: a pod whose StatefulSet is missing is ungated.
        configuration: How jobs are managed.
        integrations: The kinds of jobs.

    Raises:
        ManifestError: The kind is unknown, or a field of the job or a Workload has the wrong type.

    Example:
        >>> job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum", "namespace": "lab"},
        ...        "spec": {"suspend": True, "template": {"spec": {"containers": [{"name": "c"}]}}}}
        >>> [step.action for step in sync_workloads(job, [], now="2026-01-01T00:00:00Z").steps]
        [<Action.CREATE: 'Create'>]
    """
    configuration, at = configuration_or_default(configuration), nanoseconds(now)
    integration = known_integration(job, integrations)
    everything = []
    for workload in each("workloads", workloads):
        check_workload(workload)
        everything.append(workload)
    surroundings = surroundings_with(around, everything, configuration, integrations)
    return sync_in(integration.with_defaults(job), integration, surroundings, now=at, integrations=integrations)


def sync_in(
    job: JsonObject,
    integration: Integration,
    surroundings: Surroundings,
    *,
    now: int,
    integrations: Mapping[tuple[str, str], Integration],
) -> Sync:
    """Do the same for a job with its defaults, in surroundings that hold its Workloads."""
    if integration.is_serving:
        return sync_serving(job, integration, surroundings, now=now)
    return _Syncing(job, integration, surroundings, now, integrations).sync()


class _Syncing:
    """One job, and the changes of its Workloads."""

    def __init__(
        self,
        job: JsonObject,
        integration: Integration,
        surroundings: Surroundings,
        now: int,
        integrations: Mapping[tuple[str, str], Integration],
    ) -> None:
        self._job = job
        self._integration = integration
        self._surroundings = surroundings
        self._configuration = surroundings.configuration
        self._now = now
        self._integrations = integrations
        self._namespace = text_at(job, "metadata", "namespace")
        self._is_elastic = is_elastic(job, self._configuration)
        self._steps: list[WorkloadStep] = []
        self._writes: list[Write] = []
        self._events: list[JobEvent] = []

    def sync(self) -> Sync:
        try:
            self._check_owners()
            prebuilt, _ = prebuilt_workload(self._job, self._configuration)
            if prebuilt and self._integration.supports_prebuilt:
                return self._with_prebuilt(prebuilt)
            if self._is_elastic and (found := self._with_slices()) is not None:
                return found
            return self._with_match()
        except NoWorkload as reason:
            self._events += warnings_of(reason, self._about)
            return self._result(None, str(reason))

    @property
    def _about(self) -> JsonObject:
        """The object of events about the job: for a group, its first pod."""
        return object_at(list_at(self._job, "items")[0]) if self._integration is POD_GROUP else self._job

    def _result(self, workload: JsonObject | None, reason: str = "") -> Sync:
        return Sync(
            workloads=() if workload is None else (workload,),
            steps=tuple(self._steps),
            writes=tuple(self._writes),
            events=tuple(self._events),
            reason=reason,
        )

    def _check_owners(self) -> None:
        """Refuse a Workload for a job below a managed one: its work would be queued twice (rules/10 §2.3)."""
        # Kueue's controller of pods never looks at their owners; its webhook does.
        if self._integration in (POD, POD_GROUP) or self._integration.is_top_level(self._job):
            return
        try:
            ancestor = managed_ancestor(self._job, self._surroundings)
        except OwnerError as error:
            raise NoWorkload(str(error), warning=error.warning, note=error.note) from None
        if ancestor is not None:
            raise NoWorkload(f"{object_ref(ancestor)} owns it, and has the Workload")

    # A Workload made by somebody else.

    def _with_prebuilt(self, name: str) -> Sync:
        workload = self._surroundings.workloads.get((self._namespace, name))
        if workload is None or self._is_of_another(workload):
            self._stop(None, "missing workload")
            return self._result(
                None, f"its prebuilt Workload {quoted(name)} is not there, or another object controls it"
            )
        if self._integration is POD_GROUP:
            workload = self._with_owners(workload)
        elif not self._controls(workload):
            workload = self._changed(workload, self._owned(workload))
        is_replacement = self._is_elastic and SLICE_REPLACEMENT_ANNOTATION in annotations_of(workload)
        if is_replacement or (self._fits(workload) and self._has_topology(workload)):
            return self._result(workload)
        message = "The prebuilt workload is out of sync with its user job"
        self._steps.append(WorkloadStep(Action.FINISH, workload, "OutOfSync", message))
        self._stop(None, "missing workload")
        return self._result(None, message)

    def _has_topology(self, workload: JsonObject) -> bool:
        """Return whether its pod sets request the topology that the job does (rules/10 §3.4)."""
        if self._integration is POD_GROUP or not self._configuration.has("PrebuiltTopologyIsCompared"):
            return True
        # The start of a job annotates its templates with a topology that the Workload does not ask for. A pod that has
        # started still counts as suspended while it waits for its node.
        has_started = not self._is_suspended() or has_condition(workload, "Admitted")
        if has_started or not self._configuration.enabled("TopologyAwareScheduling"):
            return True
        wanted = [
            pod_set.to_manifest(self._configuration)
            for pod_set in self._integration.pod_sets(self._job, self._surroundings)
        ]
        stored = [object_at(pod_set) for pod_set in list_at(workload, "spec", "podSets")]
        return [pod_set.get("topologyRequest") or None for pod_set in wanted] == [
            pod_set.get("topologyRequest") or None for pod_set in stored
        ]

    def _is_of_another(self, workload: JsonObject) -> bool:
        uid = uid_of(self._job)
        owners = list_at(workload, "metadata", "ownerReferences")
        return any(object_at(owner).get("controller") is True and text_at(owner, "uid") != uid for owner in owners)

    def _controls(self, workload: JsonObject) -> bool:
        return any(
            object_at(reference).get("controller") is True
            for reference in list_at(workload, "metadata", "ownerReferences")
        )

    def _with_owners(self, workload: JsonObject) -> JsonObject:
        owned, event = owned_by_all(self._job, workload)
        return self._changed(workload, owned, event)

    def _owned(self, workload: JsonObject) -> JsonObject:
        owners = list_at(workload, "metadata", "ownerReferences")
        reference = owner_reference(self._job, controller=True)
        workload = with_value(workload, ("metadata", "ownerReferences"), [*owners, reference])
        uid = text_at(self._job, "metadata", "uid")
        return with_value(workload, ("metadata", "labels", JOB_UID_LABEL), uid) if is_label_value(uid) else workload

    # Slices of an elastic job.

    def _with_slices(self) -> Sync | None:
        """Return the slice for the current size of the job; None if its pod sets differ."""
        live = [manifest for manifest in self._own() if not has_condition(manifest, "Finished")]
        pod_sets = self._integration.pod_sets(self._job, self._surroundings)
        annotations = self._integration.elastic_annotations(self._job, self._surroundings)
        if any(annotations_of(self._job).get(key) != text for key, text in annotations.items()):
            merged: JsonObject = {**annotations_of(self._job), **annotations}
            self._job = with_value(self._job, ("metadata", "annotations"), merged)
            self._writes.append(Write(Verb.UPDATE, self._job))
        counts = {pod_set.name.lower(): pod_set.count for pod_set in pod_sets}
        found = chosen_slice(live, counts, self._configuration)
        if not found.is_compatible:
            return None
        self._steps += found.steps
        ended = {text_at(step.workload, "metadata", "name") for step in found.steps if step.action is Action.FINISH}
        kept = [manifest for manifest in live if text_at(manifest, "metadata", "name") not in ended]
        if found.workload is None:
            return self._created(replaced=kept)
        if not self._configuration.has("SlicesFollowPriority"):
            return self._result(self._in_its_queue(found.workload))
        retained = [
            manifest
            for manifest in kept
            if has_condition(manifest, "QuotaReserved") and not has_condition(manifest, "Evicted")
        ][-1:]
        behind = [manifest for manifest in retained if text_at(manifest, "metadata", "name") != _name(found.workload)]
        workload, *_ = self._with_priority([found.workload, *behind])
        return self._result(self._in_its_queue(workload))

    # One Workload.

    def _with_match(self) -> Sync:
        match, others = self._matching()
        stale: JsonObject | None = None
        if match is None and not self._is_suspended():
            if len(others) == 1:
                message = "No matching Workload; restoring pod templates according to existent Workload"
                if not self._stop(others[0], message):
                    return self._result(None, f"its pods end first; then it gets the template of {key_of(others[0])}")
            else:
                self._stop(None, "Missing Workload; unable to restore pod templates")
        elif match is None and others and not has_condition(others[0], "QuotaReserved"):
            stale, *others = others
        for other in others:
            event = normal(self._about, "DeletedWorkload", f"Deleted not matching Workload: {key_of(other)}")
            self._steps += deleted(other, event)
        if leaving := [_name(other) for other in others if not text_at(other, "metadata", "deletionTimestamp")]:
            # The job is checked again once they are gone.
            return self._result(None, f"Workloads that do not fit it go first: {', '.join(leaving)}")
        if stale is not None:
            message = f"Updated not matching Workload for suspended job: {key_of(stale)}"
            updated = normal(self._about, "UpdatedWorkload", message)
            return self._result(self._changed(stale, self._made_of(stale), updated))
        if match is None:
            return self._created()
        if self._configuration.enabled("AdmissionGatedBy"):
            match = self._with_gates(match)
        (match,) = self._with_priority([match])
        return self._result(self._in_its_queue(match))

    def _matching(self) -> tuple[JsonObject | None, list[JsonObject]]:
        """Return the Workload that fits the job, and its other ones."""
        if self._integration is POD_GROUP:
            stored = self._surroundings.workloads.get((self._namespace, text_at(self._job, "metadata", "name")))
            if stored is None:
                return None, []
            if refused := refused_workload(self._job, stored, self._configuration):
                self._writes += refused.writes
                raise refused.reason
            try:
                found = match_group(self._job, stored, self._configuration, now=format_time(self._now))
            except NotMatching:
                return None, [stored]
            self._writes += found.writes
            self._events += found.events
            self._steps += found.steps
            return found.workload, []
        match, others = None, []
        for manifest in sorted(self._own(), key=_name):
            if match is None and self._fits(manifest):
                match = manifest
            else:
                others.append(manifest)
        return match, others

    def _own(self) -> list[JsonObject]:
        """Return the Workloads that the job owns, the oldest first."""
        return owned_workloads(self._job, self._surroundings)

    def _fits(self, workload: JsonObject) -> bool:
        if self._integration is POD_GROUP:
            return fits_group(self._job, workload, self._configuration)
        return fits_workload(
            self._job,
            workload,
            flavors=self._surroundings.flavors,
            surroundings=self._surroundings,
            integrations=self._integrations,
        )

    # Writes.

    def _is_suspended(self) -> bool:
        return self._integration.is_suspended(self._job)

    def _stop(self, workload: JsonObject | None, message: str) -> bool:
        """Stop the job, and restore its templates from a Workload; return False if it has to be kept until later."""
        if self._integration.how_ended(self._job, self._configuration) is not None:
            return True
        infos = None if workload is None else infos_of_workload(workload)
        stop = self._integration.stop(self._job, infos, reason=StopReason.NO_MATCHING_WORKLOAD, message=message)
        writes = stopped_so_far(self._job, stop)
        stopped = [self._job] if writes and not is_stopping(self._job) else []
        if self._integration is POD_GROUP:
            stopped = [write.manifest for write in writes if write.verb is Verb.DELETE]
        self._writes += writes
        self._events += [normal(manifest, "Stopped", message) for manifest in stopped]
        return not is_stopping(writes[-1].manifest if writes else self._job)

    def _made(self) -> JsonObject:
        made, problem = complete_workload(self._job, self._integration, self._surroundings)
        check_priority(problem, self._configuration)
        if len(list_at(made, "spec", "podSets")) > (most := self._configuration.most_pod_sets):
            raise NoWorkload(f"it has more than {most} pod sets")
        return made

    def _made_of(self, stale: JsonObject) -> JsonObject:
        """Return a Workload that no longer fits the job with a spec that does; whether it is active stays."""
        spec = {key: value for key, value in object_at(self._made(), "spec").items() if key != "active"}
        active = object_at(stale, "spec").get("active")
        return {**stale, "spec": spec if active is None or self._is_elastic else {**spec, "active": active}}

    def _created(self, *, replaced: Sequence[JsonObject] = ()) -> Sync:
        is_group = self._integration is POD_GROUP
        if is_group and (let_go := ended_group(self._job, self._configuration)) is not None:
            self._writes += let_go
            return self._result(None, "all of its pods are being deleted")
        if self._integration.how_ended(self._job, self._configuration) is not None:
            return self._result(None, "it has finished")
        if self._integration.is_active(self._job) and not self._is_elastic:
            return self._result(None, "it still has active pods")
        if is_group:
            prepared = prepared_group(self._job, self._configuration)
            self._job = prepared.group
            self._writes += prepared.writes
            self._events += prepared.events
        made = self._made()
        if (self._namespace, _name(made)) in self._surroundings.workloads:
            return self._result(None, f"a Workload named {quoted(_name(made))} is still there")
        if len(replaced) > 1:
            return self._result(None, f"unexpected workload-slices count: {len(replaced)}")
        for old in replaced:
            origin = annotations_of(old).get(SLICE_NAME_ANNOTATION) or _name(old)
            made = with_value(made, ("metadata", "annotations", SLICE_NAME_ANNOTATION), origin)
            made = with_value(
                made, ("metadata", "annotations", SLICE_REPLACEMENT_ANNOTATION), f"{self._namespace}/{_name(old)}"
            )
        self._steps.append(created(made, self._about))
        return self._result(made)

    def _changed(self, old: JsonObject, new: JsonObject, event: JobEvent | None = None) -> JsonObject:
        if new != old:
            self._steps.append(WorkloadStep(Action.UPDATE, new, event=event))
        return new

    def _with_gates(self, workload: JsonObject) -> JsonObject:
        gated, event = gates_followed(self._job, workload, about=self._about)
        return self._changed(workload, gated, event)

    def _with_priority(self, workloads: Sequence[JsonObject]) -> list[JsonObject]:
        """Return the Workloads with the priority class that the job names, if they follow it."""
        found = priority_followed(
            self._job,
            workloads,
            self._surroundings,
            pod_class=self._integration.priority_class(self._job),
            about=self._about,
        )
        return [self._changed(old, new, event) for old, (new, event) in zip(workloads, found, strict=True)]

    def _in_its_queue(self, workload: JsonObject) -> JsonObject:
        """Return the Workload in the queue that the job names, if it has not been admitted."""
        is_serving_group = annotations_of(self._job).get(SERVING) == "true"
        if not self._is_suspended() or has_condition(workload, "Admitted") or is_serving_group:
            return workload
        followed = own_timeouts_followed(self._job, workload, self._configuration)
        return self._changed(workload, in_queue_of(self._job, followed))


def _name(workload: JsonObject) -> str:
    return text_at(workload, "metadata", "name")
