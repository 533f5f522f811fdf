"""Updates the Workloads of a virtual cluster when the jobs behind them change (rules/10 §4)."""

from __future__ import annotations

from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem, UnknownObjectError
from kueuecore.jobs import (
    JobsConfiguration,
    Surroundings,
    integration_of,
    reconcile_job,
    update_problems,
    workloads_for,
)
from kueuecore.jobs.field_paths import with_value
from kueuecore.jobs.owned_workloads import owned_workloads
from kueuecore.manifests import Manifest, object_ref
from kueuecore.simulation.job_plan import JobPlan
from kueuecore.simulation.stepper import Stepper
from kueuecore.writes import Verb, Write

__all__ = ["SubmittedJobs"]

# A job that no longer matches is stopped, its Workload deleted and another one created.
_MAX_LOOKS = 10


class SubmittedJobs:
    """The latest version of each job, by kind, namespace and name.

    Args:
        stepper: The cluster.
    """

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        # The clock decides whether pods are ready.
        managed = JobsConfiguration.of(stepper.engine.configuration)
        self._configuration = replace(managed, waits_for_pods_ready=False)
        self._jobs: dict[ObjectRef, JsonObject] = {}

    def submit(self, given: Manifest, plan: JobPlan) -> tuple[str, ...]:
        """Submit a job and create its Workloads; return their keys.

        Raises:
            ManifestError: It is not valid, or gets no Workload.
        """
        result = workloads_for([*self._stepper.stored.others(), given], configuration=self._configuration)
        result.raise_for_problems()
        if result.waiting:
            raise ManifestError(result.waiting)
        if not result.workloads:
            why = result.ignored[0].reason if result.ignored else "not a job that Kueue manages"
            raise ManifestError([replace(ManifestError.of(why).problems[0], object=object_ref(given.object))])
        keys = self._stepper.create(result.workloads, plan)
        self._jobs |= {object_ref(job): job for job in result.jobs}
        return keys

    def update(self, given: Manifest, plan: JobPlan) -> None:
        """Change a job: its Workloads are changed, replaced or recreated as its controller does.

        Raises:
            UnknownObjectError: No such job was submitted.
            ManifestError: The change is refused.
        """
        metadata: JsonObject = {"namespace": "default", **object_at(given.object, "metadata")}
        new: JsonObject = {**given.object, "metadata": metadata}
        ref, integration = object_ref(new), integration_of(new)
        old = self._jobs.get(ref)
        if old is None:
            raise UnknownObjectError(ref, "submit it first")
        if integration is None or integration.suspend_field is None:
            detail = f"a submitted {ref.kind} cannot be changed"
            raise ManifestError([Problem(detail, field="kind", object=ref)])
        stored = self._stepper.stored
        around = stored.others()
        before, after = self._as_it_stands(old), self._as_it_stands(new)
        if problems := update_problems(before, after, around=around, configuration=self._configuration):
            raise ManifestError(problems)
        # Otherwise the old Workload would be gone before a new one is refused.
        result = workloads_for([*around, new], configuration=self._configuration)
        result.raise_for_problems()
        made, settings = result.workloads, self._stepper.engine.configuration
        Engine(settings)._check(made, now=self._stepper.now, trusted=stored.trusted)
        for number in range(_MAX_LOOKS):
            found = reconcile_job(
                self._as_it_stands(new),
                self._workloads(ref.namespace),
                now=self._stepper.now,
                around=around,
                configuration=self._configuration,
            )
            if found.waits_for and not found.writes and number == 0:
                raise ManifestError([Problem(found.waits_for, object=ref)])
            writes = [write for write in found.writes if write.kind == "Workload"]
            for write in writes:
                self._carry_out(write, plan)
            ended = {key: report.finished for key, report in found.reports.items() if report.finished is not None}
            for (namespace, name), (reason, message) in ended.items():
                self._stepper.clock.finish(self._stepper.core, namespace, name, reason, message)
            self._stepper.happened()
            if not writes and not ended:
                break
        self._jobs[ref] = new

    def delete(self, ref: ObjectRef) -> bool:
        """Delete a job and its Workloads; return whether it was there."""
        job = self._jobs.pop(ref, None)
        if job is None:
            return False
        for workload in self._owned(job):
            self._stepper.delete(object_ref(workload))
        return True

    def _carry_out(self, write: Write, plan: JobPlan) -> None:
        match write.verb:
            case Verb.CREATE:
                self._stepper.create((Manifest(write.manifest),), plan)
            case Verb.DELETE:
                self._stepper.delete(write.object)
            case _:
                self._stepper.put(Manifest(write.manifest))

    def _as_it_stands(self, job: JsonObject) -> JsonObject:
        """Return a job that runs if one of its Workloads may, and is suspended otherwise."""
        integration = integration_of(job)
        assert integration is not None, "only jobs are submitted"
        assert integration.suspend_field is not None, "others are refused"
        keys = (manifest["metadata"] for manifest in map(object_at, self._owned(job)))
        runs = any(self._stepper.clock.is_running(self._stepper.core, *_key(key)) for key in keys)
        return with_value(job, integration.suspend_field, not runs)

    def _owned(self, job: JsonObject) -> list[JsonObject]:
        workloads = self._workloads(text_at(job, "metadata", "namespace"))
        return owned_workloads(job, Surroundings(configuration=self._configuration).beside(workloads))

    def _workloads(self, namespace: str) -> list[JsonObject]:
        stored = self._stepper.stored
        return [
            stored.workload(workload)
            for workload in self._stepper.engine.workloads()
            if workload.namespace == namespace
        ]


def _key(metadata: JsonValue) -> tuple[str, str]:
    return text_at(metadata, "namespace"), text_at(metadata, "name")
