"""A cluster in virtual time that can be advanced step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kueuecore._arguments import text
from kueuecore._json import JsonObject, text_at
from kueuecore.checks import CheckController, Review
from kueuecore.configuration import Configuration
from kueuecore.decisions import Event
from kueuecore.engine import Objects
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.manifests import Manifest, ManifestLike, plain_object
from kueuecore.simulation.run import Happening, NodeLoss, Operation, Run, Step, StepKind
from kueuecore.simulation.scheduled import job_plan
from kueuecore.simulation.stepper import Stepper
from kueuecore.simulation.submitted_jobs import SubmittedJobs
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["VirtualCluster"]


class VirtualCluster:
    """A cluster in virtual time: an engine, the jobs behind its workloads, and who decides on their checks.

    Around the scheduler stands what a cluster has, as in `kueuecore.simulate`, which plays by the same clock: workloads
    run as long as they are said to and then finish, evicted ones stop and wait again, and after each cycle those are
    tried again for which something may have changed.

    Nothing happens but through `step` and `advance`, and nothing depends on a clock or on chance. Several clusters go
    through one time if whoever holds them lets the one step whose `next_event_time` comes first.

    Args:
        objects: What is there from the start, in any form that `Engine.apply` takes.
        configuration: Kueue's Configuration.
        now: The time of the beginning.
        checks: Who decides on AdmissionChecks. Those on which nobody of them decides are ready at once.
        trusted: Take objects as they are, without defaults and validation.
        cycle_seconds: How long a cycle takes.
        max_cycles: No more than this many cycles; `None`: no limit.
        eviction_seconds: How long the job of an evicted workload takes to stop, holding its quota.
        messages: Keep the events of everything, and whom cycles set aside.

    Raises:
        ManifestError: Everything that is wrong with the objects.
        ConfigurationError: LocalQueues are to be sampled more often than once a second.
        ValueError: An invalid time or duration.

    Example:
        >>> from kueuecore import VirtualCluster, World, read_manifests
        >>> queues = World.of(read_manifests("examples/scenario/queues.yaml")).manifests
        >>> cluster = VirtualCluster(queues, now="2026-01-01T00:00:00Z")
        >>> container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
        >>> job = {
        ...     "apiVersion": "batch/v1", "kind": "Job",
        ...     "metadata": {"namespace": "team-a", "name": "a", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        ...     "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
        ... }
        >>> cluster.submit(job, run_seconds=60)
        ('team-a/job-a-8077b',)
        >>> [step.kind.value for step in cluster.advance()]
        ['Admitted', 'Finished']
    """

    def __init__(
        self,
        objects: Objects = (),
        *,
        configuration: Configuration | None = None,
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
            configuration=configuration,
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
        """The engine, to ask it for what it holds. What changes it goes through the cluster."""
        self.start = self._stepper.start
        """The time of the beginning, in nanoseconds since 1970."""

    # What happens from outside.

    def apply(self, objects: Objects, *, now: TimeLike | None = None) -> None:
        """Create objects, or replace them by their newer versions, as `Engine.apply` does. All or nothing.

        Args:
            objects: The objects. Workloads run for ever once they are admitted; see `submit`.
            now: When; by default, and if the cluster has gone on beyond that, its own time.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        self._go_to(now)
        self._stepper.put(objects)
        self._stepper.happened()

    def submit(
        self,
        manifest: ManifestLike,
        *,
        run_seconds: float | None = None,
        ready_seconds: Sequence[float | None] | None = None,
        fail_seconds: float | None = None,
        recover_seconds: float | None = None,
        linger_seconds: float | None = None,
        node_loss: NodeLoss = NodeLoss.RUNS_ON,
        save_seconds: float | None = None,
        ends_failed: bool = False,
        now: TimeLike | None = None,
    ) -> tuple[str, ...]:
        """A Workload or a job appears.

        Args:
            manifest: A Workload, or a job of any kind that Kueue knows.
            run_seconds: How long it runs once it is admitted; `None`: until somebody calls `finish`.
            ready_seconds: As in `Happening`.
            fail_seconds: As in `Happening`.
            recover_seconds: As in `Happening`.
            linger_seconds: As in `Happening`.
            node_loss: As in `Happening`.
            save_seconds: As in `Happening`.
            ends_failed: As in `Happening`.
            now: When; by default, and if the cluster has gone on beyond that, its own time.

        Returns:
            `namespace/name` of its Workload; of some kinds of jobs there are several.

        Raises:
            ManifestError: What is wrong with it; a job that gets no Workload is refused with the reason.
            ValueError: An invalid time or duration, or one that goes past April 2262.
        """
        happening = Happening(
            at=0,
            op=Operation.CREATE,
            run_seconds=run_seconds,
            ready_seconds=ready_seconds,
            fail_seconds=fail_seconds,
            recover_seconds=recover_seconds,
            linger_seconds=linger_seconds,
            node_loss=node_loss,
            save_seconds=save_seconds,
            ends_failed=ends_failed,
        )
        # What is refused is refused before anything happens.
        at = self.now if now is None else max(self.now, nanoseconds(now))
        plan = job_plan(happening, at=at)
        given = manifest if isinstance(manifest, Manifest) else Manifest(plain_object(manifest, "manifest"))
        self._go_to(now)
        if text_at(given.object, "kind") == "Workload":
            return self._stepper.create((given,), plan)
        return self._jobs.submit(given, plan)

    def update(self, job: ManifestLike, *, run_seconds: float | None = None, now: TimeLike | None = None) -> None:
        """A job that was submitted is changed: its Workloads follow, as `kueuecore.jobs.reconcile_job` says.

        One that waits is changed in place, an elastic job that runs grows by a new slice, and a job that no longer fits
        is stopped and queued anew.

        Args:
            job: The job as it is now.
            run_seconds: How long it runs if it gets another Workload; `None`: until somebody calls `finish`.
            now: When; by default, and if the cluster has gone on beyond that, its own time.

        Raises:
            UnknownObjectError: No such job was submitted.
            ManifestError: The change is refused.
        """
        happening = Happening(at=0, op=Operation.CREATE, run_seconds=run_seconds)
        at = self.now if now is None else max(self.now, nanoseconds(now))
        plan = job_plan(happening, at=at)
        given = job if isinstance(job, Manifest) else Manifest(plain_object(job, "job"))
        self._go_to(now)
        self._jobs.update(given, plan)

    def delete(self, kind: str, name: str, *, namespace: str = "", now: TimeLike | None = None) -> bool:
        """Delete an object, or a job that was submitted, along with its Workloads; was it there?

        Raises:
            TypeError, ValueError: Kind, name or namespace is no text, or `now` no time.
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
        """The job of a workload ends, whether it runs or not; False if it has ended before, or there is none."""
        self._go_to(now)
        found = self._stepper.clock.finish(self.engine._core, namespace, name, reason, message)
        self._stepper.happened()
        return found

    def evict(self, name: str, *, namespace: str, reason: str, message: str = "", now: TimeLike | None = None) -> bool:
        """Evict a workload; its job stops as always. False if it was evicted before.

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
        """Somebody else writes to the status of a Workload: a merge patch of one level (`None` takes a field away).

        Raises:
            UnknownObjectError: There is no such Workload.
            ManifestError: What is wrong with the status.
        """
        self._go_to(now)
        self._stepper.apply_review(self.engine.workload(name, namespace=namespace), Review(status=patch))
        self._stepper.happened()

    def schedule(self, events: Iterable[Happening | Mapping[str, object]]) -> None:
        """Things will happen: in the order of their times, and among equal times as given.

        Args:
            events: As for `kueuecore.simulate`; times count from the beginning. What is late happens at once.

        Raises:
            ManifestError: Everything that is wrong with their objects. Nothing was taken then.
            ValueError: A time or a time span that can not be.
        """
        self._stepper.schedule(events)

    # How time goes by.

    @property
    def now(self) -> int:
        """Its time, in nanoseconds since 1970.

        A cycle leaves it where it began: what is due until the cycle has taken its time happens first.
        """
        return self._stepper.now

    @property
    def next_event_time(self) -> int | None:
        """When `step` does something, in nanoseconds since 1970; `None`: nothing is left to happen.

        That LocalQueues are sampled for admission fair sharing is nothing by itself.
        """
        return self._stepper.clock.next_time(self.engine._core)

    @property
    def is_cut(self) -> bool:
        """Has it come to its limit of cycles? Then nothing goes on."""
        return self._stepper.clock.is_cut(self.engine._core)

    def step(self) -> bool:
        """Do the next thing: one cycle, or all that happens at one instant. False if nothing is left to happen.

        Raises:
            OutOfTimeError: It would happen, or end, beyond April 2262. Nothing has changed then.
        """
        return self._stepper.step()

    def advance(self, until: TimeLike | None = None) -> tuple[Step, ...]:
        """Let time go by.

        Args:
            until: Do all that happens up to this time, and stand there; by default until nothing is left to happen.

        Returns:
            What became of the workloads meanwhile.

        Raises:
            ValueError: No time; or time would go beyond April 2262 (`OutOfTimeError`).
        """
        end = None if until is None else nanoseconds(until)
        first = self._stepper.clock.n_steps
        self._stepper.advance(end)
        return self._steps_since(first)

    # What has become of it.

    @property
    def steps(self) -> tuple[Step, ...]:
        """What became of the workloads so far, in order of time."""
        return self._steps_since(0)

    @property
    def events(self) -> tuple[tuple[int, Event], ...]:
        """The events that Kueue would have emitted, with their times; with `messages` alone."""
        return self._stepper.events()

    def run(self) -> Run:
        """All that has happened so far, as `kueuecore.simulate` returns it."""
        return self._stepper.run()

    def workload(self, name: str, *, namespace: str) -> JsonObject:
        """A Workload with its status.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return self._stepper.stored.workload(self.engine.workload(name, namespace=namespace))

    def object(self, kind: str, name: str, *, namespace: str = "") -> JsonObject | None:
        """An object of any kind as it is stored; `None` if there is none."""
        if kind == "Workload":
            try:
                return self.workload(name, namespace=namespace)
            except UnknownObjectError:
                return None
        ref = ObjectRef(text("kind", kind), text("name", name), text("namespace", namespace))
        return self._stepper.stored.get(ref)

    def is_running(self, name: str, *, namespace: str) -> bool:
        """May the job of a workload run?"""
        return self._stepper.clock.is_running(self.engine._core, namespace, name)

    def _steps_since(self, index: int) -> tuple[Step, ...]:
        rows = self._stepper.clock.steps_since(index)
        return tuple(Step(time, StepKind(kind), key) for time, kind, key in rows)

    def _go_to(self, now: TimeLike | None) -> None:
        if now is not None:
            self._stepper.clock.go_to(nanoseconds(now))
