"""A cluster in virtual time that can be advanced step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kueuecore._arguments import text
from kueuecore._json import JsonObject, text_at
from kueuecore.checks import CheckController, Review
from kueuecore.configuration import Configuration, configuration_for
from kueuecore.decisions import Event
from kueuecore.engine import Objects
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.manifests import Manifest, ManifestLike, plain_object
from kueuecore.releases import Release
from kueuecore.simulation.job_plan import JobPlan, check_plan
from kueuecore.simulation.run import Happening, Run, Step, StepKind
from kueuecore.simulation.stepper import Stepper
from kueuecore.simulation.submitted_jobs import SubmittedJobs
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["VirtualCluster"]


class VirtualCluster:
    """A cluster in virtual time: an engine, the jobs behind its workloads, and the controllers of their checks.

    It simulates the rest of a cluster around the scheduler as `kueuecore.simulate` does, with the same clock: workloads
    run for their run time and then finish, evicted ones stop and wait again, and after each cycle workloads for which
    something may have changed are tried again.

    Things happen only in `step` and `advance`, and depend on no real clock and no randomness. To run several clusters
    on one timeline, always step the one with the earliest `next_event_time`.

    Args:
        objects: The initial objects, in any form that `Engine.apply` takes.
        configuration: Kueue's Configuration.
        release: The release of Kueue that decides, such as `0.17` or `0.17.3`; by default that of the Configuration.
        now: The start time.
        checks: Controllers of AdmissionChecks. Checks that none of them controls are ready at once.
        trusted: Take objects as they are, without defaults and validation.
        cycle_seconds: How long a cycle takes.
        max_cycles: The most cycles to run; `None`: no limit.
        eviction_seconds: How long the job of an evicted workload takes to stop, holding its quota.
        messages: Keep all events, and the workloads that cycles parked.

    Raises:
        ManifestError: Everything that is wrong with the objects.
        ConfigurationError: LocalQueues would be sampled more often than once a second.
        ValueError: An invalid time or duration, or the Configuration is for another release.
        UnknownReleaseError: There is no such release.

    Example:
        >>> from kueuecore import VirtualCluster, World, read_manifests
        >>> from kueuecore.simulation import JobPlan
        >>> queues = World.of(read_manifests("examples/scenario/queues.yaml")).manifests
        >>> cluster = VirtualCluster(queues, now="2026-01-01T00:00:00Z")
        >>> container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
        >>> job = {
        ...     "apiVersion": "batch/v1", "kind": "Job",
        ...     "metadata": {"namespace": "team-a", "name": "a", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        ...     "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
        ... }
        >>> cluster.submit(job, JobPlan(run_seconds=60))
        ('team-a/job-a-8077b',)
        >>> [step.kind.value for step in cluster.advance()]
        ['Admitted', 'Finished']
    """

    def __init__(
        self,
        objects: Objects = (),
        *,
        configuration: Configuration | None = None,
        release: str | Release | None = None,
        now: TimeLike,
        checks: Sequence[CheckController] = (),
        trusted: bool = False,
        cycle_seconds: float = 1.0,
        max_cycles: int | None = None,
        eviction_seconds: float = 0.0,
        messages: bool = False,
    ) -> None:
        self._stepper = Stepper(
            objects,
            configuration=configuration_for(configuration, release),
            now=now,
            checks=checks,
            trusted=trusted,
            cycle_seconds=cycle_seconds,
            max_cycles=max_cycles,
            eviction_seconds=eviction_seconds,
            messages=messages,
        )
        self._stepper.happened()
        self._jobs = SubmittedJobs(self._stepper)
        self.engine = self._stepper.engine
        """The engine, for reading. Make changes through the cluster."""
        self.start = self._stepper.start
        """The start time, in nanoseconds since 1970."""

    # Outside events.

    def apply(self, objects: Objects, *, now: TimeLike | None = None) -> None:
        """Create or replace objects as `Engine.apply` does, all or none of them.

        Args:
            objects: The objects. Workloads run forever once admitted; see `submit`.
            now: When; by default, or if that is past, the cluster's own time.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        self._go_to(now)
        self._stepper.put(objects)
        self._stepper.happened()

    def submit(
        self, manifest: ManifestLike, plan: JobPlan | None = None, *, now: TimeLike | None = None
    ) -> tuple[str, ...]:
        """Submit a Workload or a job.

        Args:
            manifest: A Workload, or a job of any kind that Kueue knows.
            plan: What it does once admitted; by default it runs until you call `finish`.
            now: When; by default, or if that is past, the cluster's own time.

        Returns:
            `namespace/name` of its Workload; some kinds of jobs have several.

        Raises:
            ManifestError: It is not valid, or is a job that gets no Workload; the message says why.
            ValueError: A time or duration is invalid, or goes past April 2262.
        """
        # Refuse before anything happens.
        plan = self._checked_plan(plan, now)
        given = manifest if isinstance(manifest, Manifest) else Manifest(plain_object(manifest, "manifest"))
        self._go_to(now)
        if text_at(given.object, "kind") == "Workload":
            return self._stepper.create((given,), plan)
        return self._jobs.submit(given, plan)

    def update(self, job: ManifestLike, plan: JobPlan | None = None, *, now: TimeLike | None = None) -> None:
        """Change a submitted job: its Workloads follow, as `kueuecore.jobs.reconcile_job` decides.

        The Workload of a waiting job is changed in place, a running elastic job grows by a new slice, and a job that no
        longer matches its Workload is stopped and queued again.

        Args:
            job: The new version of the job.
            plan: What it does if it gets another Workload; by default it runs until you call `finish`.
            now: When; by default, or if that is past, the cluster's own time.

        Raises:
            UnknownObjectError: No such job was submitted.
            ManifestError: The change is refused.
        """
        plan = self._checked_plan(plan, now)
        given = job if isinstance(job, Manifest) else Manifest(plain_object(job, "job"))
        self._go_to(now)
        self._jobs.update(given, plan)

    def delete(self, kind: str, name: str, *, namespace: str = "", now: TimeLike | None = None) -> bool:
        """Delete an object, or a submitted job and its Workloads; return whether it existed.

        Raises:
            TypeError, ValueError: Kind, name or namespace is not a string, or `now` not a time.
        """
        ref = ObjectRef(text("kind", kind), text("name", name), text("namespace", namespace))
        self._go_to(now)
        found = self._stepper.delete(ref) or self._jobs.delete(ref)
        self._stepper.happened()
        return found

    def finish(
        self,
        name: str,
        *,
        namespace: str,
        reason: str = "Succeeded",
        message: str = "Job finished successfully",
        now: TimeLike | None = None,
    ) -> bool:
        """End the job of a workload, running or not; return False if it ended before or does not exist."""
        self._go_to(now)
        found = self._stepper.clock.finish(self.engine._core, namespace, name, reason, message)
        self._stepper.happened()
        return found

    def evict(self, name: str, *, namespace: str, reason: str, message: str = "", now: TimeLike | None = None) -> bool:
        """Evict a workload; its job stops as always. Return False if it was evicted before.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        self._go_to(now)
        found = self.engine.evict(
            name, namespace=namespace, now=self.now, reason=reason, message=message, stopped=False
        )
        self._stepper.happened()
        return found

    def write_status(self, name: str, *, namespace: str, patch: JsonObject, now: TimeLike | None = None) -> None:
        """Patch the status of a Workload as another controller would: a one-level merge patch (`None` removes a field).

        Raises:
            UnknownObjectError: There is no such Workload.
            ManifestError: The new status is not valid.
        """
        self._go_to(now)
        self._stepper.apply_review(self.engine.workload(name, namespace=namespace), Review(status=patch))
        self._stepper.happened()

    def schedule(self, events: Iterable[Happening | Mapping[str, object]]) -> None:
        """Schedule events, in order of time; events at the same time happen in the order given.

        Args:
            events: As for `kueuecore.simulate`; times count from the start. Events in the past happen at once.

        Raises:
            ManifestError: Everything that is wrong with their objects. Nothing has been scheduled.
            ValueError: A time or duration is invalid.
        """
        self._stepper.schedule(events)

    # Time.

    @property
    def now(self) -> int:
        """The cluster's time, in nanoseconds since 1970.

        A cycle does not advance it: whatever is due while the cycle takes its time happens first.
        """
        return self._stepper.now

    @property
    def next_event_time(self) -> int | None:
        """When `step` will do something, in nanoseconds since 1970; `None`: nothing is left to happen.

        Sampling LocalQueues for admission fair sharing does not count by itself.
        """
        return self._stepper.clock.next_time(self.engine._core)

    @property
    def is_cut(self) -> bool:
        """Whether it has reached its limit of cycles. Then nothing more happens."""
        return self._stepper.clock.is_cut(self.engine._core)

    def step(self) -> bool:
        """Do the next thing: one cycle, or everything at one instant. Return False if nothing is left to happen.

        Raises:
            OutOfTimeError: It would happen or end after April 2262. Nothing has changed.
        """
        return self._stepper.step()

    def advance(self, until: TimeLike | None = None) -> tuple[Step, ...]:
        """Advance time to `until`, or until nothing is left to happen.

        Args:
            until: The time to advance to; by default until nothing is left to happen.

        Returns:
            What happened to workloads meanwhile.

        Raises:
            ValueError: `until` is not a time, or time would go past April 2262 (`OutOfTimeError`).
        """
        end = None if until is None else nanoseconds(until)
        first = self._stepper.clock.n_steps
        self._stepper.advance(end)
        return self._steps_since(first)

    # Results.

    @property
    def steps(self) -> tuple[Step, ...]:
        """What has happened to workloads so far, in order of time."""
        return self._steps_since(0)

    @property
    def events(self) -> tuple[tuple[int, Event], ...]:
        """The events that Kueue would have emitted, with their times; only with `messages`."""
        return self._stepper.events()

    def run(self) -> Run:
        """Return everything that has happened so far, as `kueuecore.simulate` does."""
        return self._stepper.run()

    def workload(self, name: str, *, namespace: str) -> JsonObject:
        """Return a Workload with its status.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return self._stepper.stored.workload(self.engine.workload(name, namespace=namespace))

    def object(self, kind: str, name: str, *, namespace: str = "") -> JsonObject | None:
        """Return a stored object of any kind; `None` if there is none."""
        if kind == "Workload":
            try:
                return self.workload(name, namespace=namespace)
            except UnknownObjectError:
                return None
        ref = ObjectRef(text("kind", kind), text("name", name), text("namespace", namespace))
        return self._stepper.stored.get(ref)

    def is_running(self, name: str, *, namespace: str) -> bool:
        """Return whether the job of a workload may run."""
        return self._stepper.clock.is_running(self.engine._core, namespace, name)

    def _steps_since(self, index: int) -> tuple[Step, ...]:
        rows = self._stepper.clock.steps_since(index)
        return tuple(Step(time, StepKind(kind), key) for time, kind, key in rows)

    def _checked_plan(self, plan: JobPlan | None, now: TimeLike | None) -> JobPlan:
        plan = JobPlan() if plan is None else plan
        check_plan(plan, at=self.now if now is None else max(self.now, nanoseconds(now)))
        return plan

    def _go_to(self, now: TimeLike | None) -> None:
        if now is not None:
            self._stepper.clock.go_to(nanoseconds(now))
