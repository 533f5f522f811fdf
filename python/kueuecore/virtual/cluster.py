"""A cluster in virtual time that can be advanced step by step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kueuecore._arguments import cycles_of, each, flag
from kueuecore._json import JsonObject, text_at
from kueuecore.check_controllers import CheckControllers, with_activity
from kueuecore.checks import CheckController, ObjectWriteKind, Review, applied_review
from kueuecore.configuration import Configuration
from kueuecore.controller.local_queue_usage import next_sampling
from kueuecore.decisions import Decision, Event
from kueuecore.engine import Engine, Objects
from kueuecore.errors import ManifestError, ObjectRef, OutOfTimeError, UnknownObjectError
from kueuecore.jobs import workloads_for
from kueuecore.manifests import Manifest, ManifestLike, object_ref, plain_object
from kueuecore.runs import Happening, Operation, Run, RunEnding, Step, StepKind
from kueuecore.states import WorkloadState
from kueuecore.times import END_NS, TimeLike, beginning_ns, format_time, nanoseconds, span_ns
from kueuecore.virtual.happenings import happening_of, job_plan
from kueuecore.virtual.jobs import JobPlan
from kueuecore.virtual.record import Record
from kueuecore.virtual.running import Running, has_quota
from kueuecore.virtual.sampling import check_sampling
from kueuecore.virtual.stored import Stored, manifests_of
from kueuecore.world import jobs_configuration

__all__ = ["VirtualCluster"]

# Far more rounds of answers than any workload needs: whoever still has something to say contradicts himself.
_MOST_ROUNDS = 1000
_IDLE_ROUNDS = 2


class VirtualCluster:
    """A cluster in virtual time: an engine, the jobs behind its workloads, and who decides on their checks.

    Around the scheduler stands what a cluster has, as in `kueuecore.simulate`: workloads run as long as they are said
    to and then finish, evicted ones stop and wait again, and after each cycle those are tried again for which something
    may have changed. Without check controllers the two tell the same to the step, where neither `waitForPodsReady` nor
    maximum execution times are used: Kueue's own timers are acted on here when they are due, also between two cycles
    that follow one another, where `simulate` ends the round of cycles first.

    Nothing happens but through `step` and `advance`, and nothing depends on a clock or on chance. Several clusters go
    through one time if whoever holds them lets the one step whose `next_event_time` comes first.

    Args:
        objects: What is there from the start, in any form that `Engine.apply` takes.
        configuration: Kueue's Configuration.
        now: The time of the beginning.
        checks: Who decides on AdmissionChecks. Those on which nobody of them decides are ready at once.
        trusted: Take objects as they are, without defaults and validation.
        cycle_seconds: How long a cycle takes.
        quiet_cycles: So many cycles in a row without a visible change end a round; by default one more than the most
            flavors in any resource group.
        max_cycles: No more than this many cycles; `None`: no limit.
        eviction_seconds: How long the job of an evicted workload takes to stop, holding its quota.
        messages: Keep the events of everything, and whom cycles set aside.

    Raises:
        ManifestError: Everything that is wrong with the objects.
        ConfigurationError: LocalQueues are to be sampled more often than once a second.
        ValueError: An invalid time or duration.

    Example:
        >>> cluster = VirtualCluster('''
        ... {apiVersion: v1, kind: Namespace, metadata: {name: ns}}
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default-flavor}}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: ClusterQueue
        ... metadata: {name: cluster-queue}
        ... spec:
        ...   namespaceSelector: {}
        ...   resourceGroups:
        ...   - coveredResources: [cpu]
        ...     flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 4}]}]
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: ns, name: lq},
        ...  spec: {clusterQueue: cluster-queue}}
        ... ''', now="2026-01-01T00:00:00Z")
        >>> container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
        >>> job = {
        ...     "apiVersion": "batch/v1", "kind": "Job",
        ...     "metadata": {"namespace": "ns", "name": "a", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        ...     "spec": {"template": {"spec": {"containers": [container], "restartPolicy": "Never"}}},
        ... }
        >>> cluster.submit(job, run_seconds=60)
        ('ns/job-a-8077b',)
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
        quiet_cycles: int | None = None,
        max_cycles: int | None = None,
        eviction_seconds: float = 0.0,
        messages: bool = False,
    ) -> None:
        self.engine = Engine(configuration)
        """The engine, to ask it for what it holds. What changes it goes through the cluster."""
        self.start = beginning_ns(now)
        """The time of the beginning, in nanoseconds since 1970."""
        settings = self.engine.configuration
        check_sampling(settings)
        self._now = self._reconciled_at = self.start
        self._samples_usage = "admissionFairSharing" in settings.to_dict()
        self._cycle_ns = span_ns(cycle_seconds, "cycle_seconds")
        self._quiet_cycles = cycles_of(quiet_cycles, "quiet_cycles")
        self._max_cycles = cycles_of(max_cycles, "max_cycles")
        self._messages = flag("messages", messages)
        self._record = Record(self._messages)
        self._running = Running(self.engine, self._record, eviction_ns=span_ns(eviction_seconds, "eviction_seconds"))
        self._events: list[tuple[int, Event]] = []
        self._stored = Stored(self.engine, trusted=flag("trusted", trusted))
        self._checking = CheckControllers(checks)
        self._has_checks = bool(self._checking.controllers)
        self._happenings: deque[tuple[int, Happening, JobPlan, int | None]] = deque()
        self._n_quiet = 0
        # Decisions of the cycle that waits for pods, and when it began.
        self._parts: list[Decision] = []
        self._began = self.start
        # Whoever asks first is told nothing; from then on all is told.
        self.engine.take_written()
        self._put(manifests_of(objects))
        self._happened()

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
        self._put(manifests_of(objects))
        self._happened()

    def submit(
        self,
        manifest: ManifestLike,
        *,
        run_seconds: float | None = None,
        ready_seconds: Sequence[float | None] | None = None,
        fail_seconds: float | None = None,
        recover_seconds: float | None = None,
        now: TimeLike | None = None,
    ) -> tuple[str, ...]:
        """A Workload or a job appears.

        Args:
            manifest: A Workload, or a job of any kind that Kueue knows.
            run_seconds: How long it runs once it is admitted; `None`: until somebody calls `finish`.
            ready_seconds: As in `Happening`.
            fail_seconds: As in `Happening`.
            recover_seconds: As in `Happening`.
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
        )
        # What is refused is refused before anything happens.
        at = self._now if now is None else max(self._now, nanoseconds(now))
        plan = job_plan(happening, waits_for_pods=self._running.waits_for_pods, at=at)
        self._go_to(now)
        given = manifest if isinstance(manifest, Manifest) else Manifest(plain_object(manifest, "manifest"))
        made = (given,) if text_at(given.object, "kind") == "Workload" else self._workloads_of(given)
        keys = self._create(made, plan, None)
        self._happened()
        return keys

    def delete(self, kind: str, name: str, *, namespace: str = "", now: TimeLike | None = None) -> bool:
        """Delete an object; was it there?"""
        self._go_to(now)
        found = self._delete(ObjectRef(kind, name, namespace))
        self._happened()
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
        found = self._running.finish(f"{namespace}/{name}", reason, message, now=self._now)
        self._happened()
        return found

    def evict(self, name: str, *, namespace: str, reason: str, message: str = "", now: TimeLike | None = None) -> bool:
        """Evict a workload; its job stops as always. False if it was evicted before.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        self._go_to(now)
        found = self.engine.evict(
            name, namespace=namespace, now=self._now, reason=reason, message=message, stopped=False
        )
        self._happened()
        return found

    def write_status(self, name: str, *, namespace: str, patch: JsonObject, now: TimeLike | None = None) -> None:
        """Somebody else writes to the status of a Workload: a merge patch of one level (`None` takes a field away).

        Raises:
            UnknownObjectError: There is no such Workload.
            ManifestError: What is wrong with the status.
        """
        self._go_to(now)
        self._apply_review(self.engine.workload(name, namespace=namespace), Review(status=patch))
        self._happened()

    def schedule(self, events: Iterable[Happening | Mapping[str, object]]) -> None:
        """Things will happen: in the order of their times, and among equal times as given.

        Args:
            events: As for `kueuecore.simulate`; times count from the beginning. What is late happens at once.

        Raises:
            ManifestError: Everything that is wrong with their objects. Nothing was taken then.
            ValueError: A time or a time span that can not be.
        """
        taken = [happening_of(event, start=self.start) for event in each("events", events)]
        for _, happening in taken:
            if happening.object is not None and not self._stored.trusted:
                Engine(self.engine.configuration).apply(happening.object, now=self.start)
        waits = self._running.waits_for_pods
        planned = [(at, it, job_plan(it, waits_for_pods=waits, at=at)) for at, it in taken]
        new = [(*it, self._record.reserve() if _creates_workload(it[1]) else None) for it in planned]
        self._happenings = deque(sorted((*self._happenings, *new), key=lambda entry: entry[0]))

    # How time goes by.

    @property
    def now(self) -> int:
        """Its time, in nanoseconds since 1970. Cycles that follow one another take it beyond the last event."""
        return self._now

    @property
    def next_event_time(self) -> int | None:
        """When `step` does something, in nanoseconds since 1970; `None`: nothing is left to happen.

        That LocalQueues are sampled for admission fair sharing is nothing by itself.
        """
        if self.is_cut:
            return None
        return self._now if self._wants_cycle() else self._next_time()

    @property
    def is_cut(self) -> bool:
        """Has it come to its limit of cycles? Then nothing goes on."""
        return self._record.n_cycles == self._max_cycles and self._wants_cycle()

    def step(self) -> bool:
        """Do the next thing: one cycle, or all that happens at one instant. False if nothing is left to happen.

        Raises:
            OutOfTimeError: It would happen, or end, beyond April 2262. Nothing has changed then.
        """
        if self.is_cut:
            return False
        if self._wants_cycle():
            if self._now + self._cycle_ns >= END_NS:
                raise OutOfTimeError("the next cycle leads")
            self._began = self._now
            self._record.n_cycles += 1
            self._running.has_released = False
            self._take(self.engine.cycle(self._now))
            return True
        time = self._next_time()
        if time is not None and time >= END_NS:
            raise OutOfTimeError("what happens next leads")
        if time is not None:
            self._instant(time)
        if self._parts:
            # A cycle waits for pods; if nothing happens any more, it has waited in vain.
            self._take(self.engine.cycle(self._now), gives_up=time is None)
        elif time is not None:
            self._begin_round()
        return time is not None

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
        first = self._record.n_steps
        while (time := self.next_event_time) is not None and (end is None or time <= end):
            if not self.step():
                break
        if end is not None:
            self._now = max(self._now, end)
        return tuple(Step(*step) for step in self._record.steps_since(first))

    # What has become of it.

    @property
    def steps(self) -> tuple[Step, ...]:
        """What became of the workloads so far, in order of time."""
        return tuple(Step(*step) for step in self._record.steps_since(0))

    @property
    def events(self) -> tuple[tuple[int, Event], ...]:
        """The events that Kueue would have emitted, with their times; with `messages` alone."""
        return tuple(self._events)

    def run(self) -> Run:
        """All that has happened so far, as `kueuecore.simulate` tells it."""
        ending = RunEnding.CYCLE_LIMIT if self.is_cut else RunEnding.COMPLETE
        return Run(self.engine, ending, self.start, self._now, self._record.n_cycles, self._record)

    def workload(self, name: str, *, namespace: str) -> JsonObject:
        """A Workload with its status.

        Raises:
            UnknownObjectError: There is no such Workload.
        """
        return self._stored.workload(self.engine.workload(name, namespace=namespace))

    def object(self, kind: str, name: str, *, namespace: str = "") -> JsonObject | None:
        """An object of any kind as it is stored; `None` if there is none."""
        if kind == "Workload":
            try:
                return self.workload(name, namespace=namespace)
            except UnknownObjectError:
                return None
        return self._stored.get(ObjectRef(kind, name, namespace))

    def is_running(self, name: str, *, namespace: str) -> bool:
        """May the job of a workload run?"""
        return self._running.is_running(f"{namespace}/{name}")

    # Objects.

    def _go_to(self, now: TimeLike | None) -> None:
        if now is not None:
            self._now = max(self._now, nanoseconds(now))

    def _happened(self) -> None:
        """What follows from something that has happened from outside."""
        self._settle()
        if not self._parts:
            self._begin_round()

    def _put(self, manifests: tuple[Manifest, ...]) -> tuple[Manifest, ...]:
        """Store objects; what came of each."""
        stored = self._stored.apply(manifests, now=self._now)
        for manifest in stored:
            self._checking.observe(manifest.object, now=self._now)
        return stored

    def _workloads_of(self, job: Manifest) -> tuple[Manifest, ...]:
        others = self._stored.others()
        result = workloads_for([*others, job], configuration=jobs_configuration(self.engine.configuration))
        result.raise_for_problems()
        if not result.workloads:
            why = result.ignored[0].reason if result.ignored else "no job that Kueue manages"
            raise ManifestError([replace(ManifestError.of(why).problems[0], object=object_ref(job.object))])
        return result.workloads

    def _create(self, workloads: tuple[Manifest, ...], plan: JobPlan, number: int | None) -> tuple[str, ...]:
        """Workloads appear; their keys."""
        keys = tuple(object_ref(it.object).key for it in self._put(workloads))
        for key in keys:
            self._running.add(key, plan)
            if number is not None:
                self._record.note_number(key, number)
            self._record.note(self._now, StepKind.CREATED, key)
        return keys

    def _delete(self, ref: ObjectRef) -> bool:
        if not self._stored.delete(ref, now=self._now):
            return False
        if ref.kind == "Workload":
            self._record.note(self._now, StepKind.DELETED, ref.key)
            self._running.remove(ref.key)
        self._checking.forget(ref, now=self._now)
        return True

    # Instants.

    def _next_time(self) -> int | None:
        times = [
            self._happenings[0][0] if self._happenings else None,
            self._running.next_time(),
            self.engine.next_wake(since=self._reconciled_at),
            self._checking.next_wake(after=self._reconciled_at),
        ]
        time = min((it for it in times if it is not None), default=None)
        # Samples alone do not lead to the end of time.
        if time is not None and time < END_NS and self._samples_usage:
            sample = next_sampling(self.engine, since=self._reconciled_at)
            return time if sample is None else min(time, sample)
        return time

    def _instant(self, time: int) -> None:
        """All that happens at `time`: from outside, then by timers, then what was waited for."""
        self._now = max(self._now, time)
        while self._happenings and self._happenings[0][0] == time:
            _, happening, plan, number = self._happenings.popleft()
            self._happen(happening, plan, number)
            self._settle()
        while self._running.ring(time, now=self._now):
            self._settle()
        self._settle()

    def _happen(self, happening: Happening, plan: JobPlan, number: int | None) -> None:
        """Something from outside. What names a workload that is gone is ignored."""
        given = None if happening.object is None else manifests_of((happening.object,))[0]
        match happening.op:
            case Operation.FINISH:
                self._running.finish(happening.key or "", "Succeeded", "done", now=self._now)
            case Operation.DELETE:
                namespace, _, name = (happening.key or "").partition("/")
                self._delete(ObjectRef("Workload", name, namespace))
            case Operation.UPDATE if given is not None:
                changed = self._stored.updated(given)
                self._put(() if changed is None else (changed,))
            case Operation.CREATE if given is not None and text_at(given.object, "kind") == "Workload":
                self._create((given,), plan, number)
            case Operation.CREATE if given is not None:
                self._put((given,))

    # Cycles.

    def _begin_round(self) -> None:
        self.engine._core._flush(self._now)
        self._n_quiet = 0

    def _wants_cycle(self) -> bool:
        """Is another cycle of this round to be run, and none that waits?"""
        patience = self._stored.patience() if self._quiet_cycles is None else self._quiet_cycles
        return not self._parts and self._n_quiet < patience and self.engine.has_heads

    def _take(self, decision: Decision, *, gives_up: bool = False) -> None:
        """A cycle, or a part of one that waits for pods, has come to this."""
        self._parts.append(decision)
        for admission in decision.admissions:
            self.engine.confirm(admission.name, namespace=admission.namespace)
        self._note_events(decision.events if self._messages else ())
        self._settle()
        if decision.waits_for_pods is not None and not gives_up:
            return
        parts, self._parts = tuple(self._parts), []
        has_changed = self._running.has_released or any(it.has_changed_something for it in parts)
        self._n_quiet = 0 if has_changed else self._n_quiet + 1
        self._record.note_cycle(self._began, parts)
        self.engine._core._flush(self._now)
        self._now += self._cycle_ns

    # What follows.

    def _settle(self) -> None:
        """Controllers, checks and jobs do what follows from changes, until nothing follows any more."""
        n_idle = 0
        for _ in range(_MOST_ROUNDS):
            self._checking.wake(self._now)
            self._follow_activities()
            self._reconciled_at = self._now
            events = self.engine.reconcile(self._now)
            self._note_events(events if self._messages else ())
            found = {(it.namespace, it.name): it for it in self.engine.take_written()}
            has_changed = bool(found)
            for namespace, name in self._checking.take_asked():
                if self._stored.get(ObjectRef("Workload", name, namespace)) is not None:
                    found.setdefault((namespace, name), self.engine.workload(name, namespace=namespace))
            has_said = [self._play(found[key]) for key in sorted(found)]
            # Who only asks to be asked, and has said nothing twice, is not asked again now.
            n_idle = 0 if has_changed or any(has_said) else n_idle + 1
            if not found or n_idle == _IDLE_ROUNDS:
                return
        raise RuntimeError(f"controllers contradict each other about {', '.join(map('/'.join, sorted(found)[:3]))}")

    def _follow_activities(self) -> None:
        """AdmissionChecks say whether they are active."""
        for check in self._stored.of_kind("AdmissionCheck") if self._has_checks else ():
            activity = self._checking.activity(check, now=self._now)
            changed = None if activity is None else with_activity(check, activity, now=format_time(self._now))
            if changed is not None:
                self._put((Manifest(changed),))

    def _note_events(self, events: Iterable[Event]) -> None:
        self._events += ((self._now, event) for event in events)

    def _play(self, state: WorkloadState) -> bool:
        """What the job of a workload and its checks do about its status; has a check said anything?"""
        if self._running.follow(state, now=self._now):
            # The rest follows when the controllers have seen that.
            return False
        if has_quota(state) and self._apply_review(state, self._checking.at_once(dict(state.status))):
            return True
        review = self._checking.review(self._stored.workload(state), now=self._now) if self._has_checks else None
        return review is not None and self._apply_review(state, review)

    def _apply_review(self, state: WorkloadState, review: Review) -> bool:
        """Do what somebody has to say about a workload; was it anything?"""
        status = dict(state.status)
        after = applied_review(status, review, now=format_time(self._now))
        if after is not status:
            self._stored.write_status(state, after, now=self._now)
        for write in review.writes:
            if write.kind is ObjectWriteKind.DELETE:
                self._delete(write.object)
            else:
                self._put((Manifest(write.manifest),))
        self._note_events(review.events if self._messages else ())
        return bool(review)


def _creates_workload(happening: Happening) -> bool:
    if happening.op is not Operation.CREATE or happening.object is None:
        return False
    return text_at(manifests_of((happening.object,))[0].object, "kind") == "Workload"
