"""Steps a run through virtual time: the extension has the clock, and this module answers for check controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import TypeAlias

from kueuecore import _core
from kueuecore._arguments import cycles_of, each, flag
from kueuecore._json import JsonObject
from kueuecore._kinds import KEPT
from kueuecore.check_controllers import CheckControllers, with_activity
from kueuecore.checks import CheckController, ObjectMaker, Review, WorkloadKey, applied_review
from kueuecore.configuration import Configuration
from kueuecore.decisions import Event
from kueuecore.engine import Engine, Objects
from kueuecore.errors import ManifestError, ObjectRef, OutOfTimeError, UnknownObjectError
from kueuecore.manifests import Manifest
from kueuecore.simulation.checkpoint import Checkpoint, CheckpointWriter, Fingerprint
from kueuecore.simulation.copies import Copies, encode_copies
from kueuecore.simulation.job_plan import JobPlan
from kueuecore.simulation.run import Happening, Operation, Progress, Run, RunEnding
from kueuecore.simulation.sampling import check_sampling
from kueuecore.simulation.scheduled import Coming, event_line, located_events
from kueuecore.simulation.stored_objects import Stored, given_objects
from kueuecore.simulation.virtual_families import VirtualFamilies
from kueuecore.states import WorkloadState
from kueuecore.submissions import Submissions, check_names, encode_submissions
from kueuecore.times import TimeLike, beginning_ns, format_time, span_ns
from kueuecore.writes import Verb, Write

__all__ = ["Stepper", "Turn"]

# Far more rounds of answers than any workload needs: a controller that still changes something contradicts itself.
_MAX_ROUNDS = 1000
_IDLE_ROUNDS = 2
_OUT_OF_TIME = "OutOfTime"
_PAUSED = "Paused"

Turn: TypeAlias = tuple[str, list[WorkloadKey]]
"""What a step was, and the Workloads to ask the controllers about."""


class Stepper:
    """An engine, its clock, and check controllers. The arguments are those of `VirtualCluster`, and some more.

    Without a log, a run only counts, and `run` returns nothing of what has happened. With a beat, each cycle begins a
    whole number of cycles after the start.

    Call `happened` once before time advances: what follows from the initial objects assigns numbers to their Workloads,
    after the numbers of everything scheduled before.
    """

    def __init__(
        self,
        objects: Objects,
        *,
        configuration: Configuration | None,
        now: TimeLike,
        checks: Sequence[CheckController],
        trusted: bool,
        cycle_seconds: float,
        max_cycles: int | None,
        eviction_seconds: float,
        messages: bool,
        cycles: bool = True,
        finished: bool = True,
        log: bool = True,
        beat: bool = False,
    ) -> None:
        self.engine = Engine(configuration)
        self.start = beginning_ns(now)
        """The time of the beginning, in nanoseconds since 1970."""
        check_sampling(self.engine.configuration)
        self._keeps_messages, self._keeps_cycles = flag("messages", messages), flag("cycles", cycles)
        self._checking = CheckControllers(checks)
        self._stored = Stored(self.engine, trusted=flag("trusted", trusted))
        self._families = VirtualFamilies(self.engine, self._stored)
        self._has_answers = self._families.is_on or bool(self._checking.controllers)
        options = (
            span_ns(cycle_seconds, "cycle_seconds"),
            cycles_of(max_cycles, "max_cycles"),
            span_ns(eviction_seconds, "eviction_seconds"),
            # Check controllers look at finished Workloads too.
            (
                self._keeps_messages,
                self._keeps_cycles,
                flag("finished", finished) or self._has_answers,
                flag("log", log) or self._keeps_messages or self._keeps_cycles,
                flag("beat", beat),
            ),
        )
        controllers = (
            [controller.controller_name for controller in self._checking.controllers] if self._has_answers else None
        )
        self.clock = _core.Simulation(self.start, options, controllers)
        """After changing the engine other than by the methods here, call `happened`."""
        self._coming = Coming()
        # Inputs besides the objects, to check when a run resumes.
        self._inputs = Fingerprint()
        self._inputs.add((self.start, options, self._stored.trusted))
        self._events: list[tuple[int, Event]] = []
        self._n_events = 0
        # How often a controller has answered at one moment without changing anything.
        self._moment = (self.start, 0)
        self._n_rounds = self._n_idle = 0
        self._is_asking = False
        self.put(objects)

    @property
    def now(self) -> int:
        """The time, in nanoseconds since 1970."""
        return self.clock.now

    @property
    def core(self) -> _core.Engine:
        """The engine of the extension."""
        return self.engine._core

    @property
    def trusted(self) -> bool:
        """Whether objects are taken as they are."""
        return self._stored.trusted

    @property
    def stored(self) -> Stored:
        """The objects, with everything that has happened to them so far."""
        self._follow_happenings()
        return self._stored

    # Outside events.

    def put(self, objects: Objects) -> None:
        """Create or replace objects, all or none of them.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        given = given_objects(objects)
        self.engine.apply(given, now=self.now, trusted=self._stored.trusted)
        self.stored.add(given, now=self.now)
        if self._has_answers:
            self._observe(self._stored.read())

    def create(self, workloads: tuple[Manifest, ...], plan: JobPlan) -> tuple[str, ...]:
        """Create Workloads whose jobs follow a plan, and do what follows from that; return their keys.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        self.put(workloads)
        refs = [self._stored.ref(workload) for workload in workloads]
        for ref in refs:
            event = Happening(at=0, op=Operation.CREATE, key=ref.key, plan=plan)
            self.clock.created(self.core, event_line(event))
        self.happened()
        return tuple(ref.key for ref in refs)

    def delete(self, ref: ObjectRef) -> bool:
        """Delete an object; return whether it existed."""
        if not self.stored.forget(ref):
            return False
        if ref.kind == "Workload":
            self.clock.delete(self.core, ref.namespace, ref.name)
        elif ref.kind in KEPT:
            self.engine.delete(ref.kind, ref.name, namespace=ref.namespace, now=self.now)
        self._forget(ref)
        return True

    def apply_review(self, state: WorkloadState, review: Review) -> bool:
        """Apply a review of a workload; return whether it changed anything."""
        status = dict(state.status)
        after = applied_review(status, review, now=format_time(self.now))
        if after is not status:
            manifest = {**self.stored.workload(state), "status": after}
            self.engine.apply(manifest, now=self.now, trusted=self._stored.trusted)
        self._carry_out(review.writes)
        if self._keeps_messages:
            self._take_events()
            self._events += ((self.now, event) for event in review.events)
        return bool(review)

    def happened(self) -> None:
        """Do what follows from a change of the engine."""
        if self._has_answers:
            self._follow_activities()
        self.clock.happened(self.core)
        self._go(self.clock.follow)

    def schedule(
        self, events: Iterable[Happening | Mapping[str, object]] = (), *, submissions: Iterable[Submissions] = ()
    ) -> None:
        """Schedule events, all or none of them; at the same time, submissions come first.

        Raises:
            ManifestError: Everything that is wrong with their objects.
            ValueError: A time or duration is invalid, or columns do not match.
        """
        given: list[Submissions] = []
        batches = []
        for rows in each("submissions", submissions):
            batches.append(encode_submissions(rows, start=self.start))
            given.append(rows)
        if batches:
            check_names(batches, self.engine.workload_keys())
        watched = [kind for controller in self._checking.controllers for kind in controller.kinds]
        happenings = list(each("events", events))
        lines = [event_line(event) for event in happenings]
        try:
            self.clock.schedule(self.core, batches, b"\n".join(lines), self._stored.trusted, watched)
        except ManifestError as error:
            raise located_events(error, happenings) from None
        self._inputs.add((batches, lines))
        self._coming.add(batches, lines)

    def schedule_copies(self, copies: Copies) -> None:
        """Schedule copies, all or none of them; at the same time, they come after everything scheduled before.

        Raises:
            ManifestError: Everything that is wrong with their templates.
            ValueError: A time or duration is invalid, or columns do not match.
        """
        rows = encode_copies(copies, start=self.start)
        lines = b"\n".join(map(event_line, copies.templates))
        self.clock.schedule_copies(self.core, lines, rows, self._stored.trusted)
        self._inputs.add((lines, rows))
        self._coming.add_copies(copies, start=self.start)

    def expect_copies(self, copies: Copies) -> None:
        """Take note of copies that were scheduled on the clock itself."""
        self._coming.add_copies(copies, start=self.start)

    # Time.

    def step(self) -> bool:
        """Do the next thing; return False if nothing is left to happen.

        Raises:
            OutOfTimeError: It would happen or end after April 2262. Nothing has changed.
        """
        self._check_that_time_may_go_by()
        return self._go(self.clock.step) in ("Cycle", "Instant")

    def advance(
        self,
        until: int | None = None,
        progress: Progress | None = None,
        *,
        writer: CheckpointWriter | None = None,
    ) -> None:
        """Do everything that happens up to a time; by default, until nothing is left to happen.

        Args:
            until: The time.
            progress: Called now and then.
            writer: Saves the run periodically.

        Raises:
            OutOfTimeError: Something would happen or end after April 2262.
        """
        self._check_that_time_may_go_by()
        watched = progress if writer is None else writer.watched(progress)
        while self._go(lambda core: self.clock.advance(core, until, watched, False)) == _PAUSED:
            if writer is not None:
                writer.save()
        if until is not None:
            self.clock.go_to(until)

    def writer(self, checkpoint: Checkpoint) -> CheckpointWriter:
        """Return the writer that saves this run, after resuming it from where it was saved.

        Raises:
            ValueError: It keeps messages or cycles, which a checkpoint cannot save.
            ManifestError: The run has check controllers; or the file belongs to another run, is damaged, or exists
                without `resume`.
        """
        if self._has_answers:
            message = "a checkpoint cannot save the state of check controllers, or of variants of workloads"
            raise ManifestError.of(message, remedy="run it without a checkpoint")
        if self._keeps_messages or self._keeps_cycles:
            raise ValueError("checkpoint: it cannot save messages and cycles; pass messages=False, cycles=False")
        self._inputs.add(self.engine.save())
        return CheckpointWriter(checkpoint, (self.clock, self.core), self._inputs.text)

    def save(self, writer: CheckpointWriter, *, until: int | None = None) -> None:
        """Save an interrupted run once its cycle is over, unless that is after a time."""
        if self._go(lambda core: self.clock.advance(core, until, None, True)) == _PAUSED:
            writer.save()

    @property
    def can_fork(self) -> bool:
        """Whether it can be copied: it has no check controllers, which may have a state, and no variants."""
        return not self._has_answers

    def fork(self) -> Stepper:
        """Return an independent copy: neither sees what happens to the other. They share memory for what is equal.

        Raises:
            ValueError: It cannot be copied.
        """
        if not self.can_fork:
            raise ValueError("a run with check controllers, or with variants of workloads, cannot be forked")
        twin = copy(self)
        twin.engine, twin.clock = self.engine.fork(), self.clock.fork()
        twin._stored = self._stored.copied(twin.engine)
        twin._families = VirtualFamilies(twin.engine, twin._stored)
        twin._coming, twin._inputs, twin._events = self._coming.copied(), self._inputs.copied(), list(self._events)
        return twin

    def go(self, go: Callable[[_core.Engine], Turn]) -> str:
        """Do what advances the clock, and ask controllers until it is done; return what the last step was.

        Raises:
            OutOfTimeError: Something would happen or end after April 2262.
        """
        self._check_that_time_may_go_by()
        return self._go(go)

    def run(self, *, is_interrupted: bool = False) -> Run:
        """Return everything that has happened so far."""
        record = self.clock.record(self.core)
        is_cut = record.ending == RunEnding.CYCLE_LIMIT
        ending = RunEnding.CYCLE_LIMIT if is_cut else RunEnding.COMPLETE
        ending = RunEnding.INTERRUPTED if is_interrupted else ending
        events = self.events() if self._keeps_messages else ()
        return Run(self.engine, ending, self.start, record.end, record.n_cycles, record, events)

    def events(self) -> tuple[tuple[int, Event], ...]:
        """Return the events so far, with their times."""
        self._take_events()
        return tuple(self._events)

    def _check_that_time_may_go_by(self) -> None:
        if self._is_asking:
            raise RuntimeError("a check controller is still deciding: step or advance the cluster after it returns")

    # Check controllers.

    def _go(self, go: Callable[[_core.Engine], Turn]) -> str:
        """Step until no controller is left to ask; return what the last step was."""
        while True:
            turn, asked = go(self.core)
            if turn == _OUT_OF_TIME:
                raise OutOfTimeError("the next event goes")
            if turn != "Ask":
                return turn
            self._answer(asked)

    def _answer(self, asked: Sequence[WorkloadKey]) -> None:
        """Apply the reviews of check controllers."""
        now = self.now
        moment = (now, self.clock.n_cycles)
        if moment != self._moment:
            self._moment, self._n_rounds, self._n_idle = moment, 0, 0
        self._n_rounds += 1
        if self._n_rounds > _MAX_ROUNDS:
            about = ", ".join("/".join(key) for key in asked[:3]) or "objects"
            raise RuntimeError(f"controllers contradict each other about {about}")
        self._follow_happenings()
        self._checking.wake(now)
        self._follow_makers()
        self._follow_activities()
        keys = sorted({*asked, *self._checking.take_asked()})
        self._is_asking = True
        try:
            has_said = [*map(self._review, keys), self._review_families(keys), self._follow_makers()]
        except BaseException:
            # After an error, ask about all of them again.
            self._checking.ask(keys)
            self.clock.answered(None, True)
            raise
        finally:
            self._is_asking = False
        # A controller that keeps asking to be called, but changed nothing twice, is not called again now.
        self._n_idle = 0 if asked or any(has_said) else self._n_idle + 1
        # The consequences of a review may be due at once.
        self._checking.wake(now)
        again = (self._checking.has_asked or self._families.has_open) and self._n_idle < _IDLE_ROUNDS
        wakes = (self._checking.next_wake(after=now), self._families.next_time())
        self.clock.answered(min((wake for wake in wakes if wake is not None), default=None), again)

    def _review(self, key: WorkloadKey) -> bool:
        """Apply the checks' review of a workload; return whether it changed anything."""
        namespace, name = key
        try:
            state = self.engine.workload(name, namespace=namespace)
        except UnknownObjectError:
            return False
        review = self._checking.review(self._stored.workload(state), now=self.now)
        return review is not None and self.apply_review(state, review)

    def _review_families(self, keys: Iterable[WorkloadKey]) -> bool:
        """Bring parents and variants of workloads into line; return whether there was anything to do."""
        self._families.touch(keys)
        has_done = False
        for key in self._families.take_due(self.now):
            changes = self._families.review(key, self.now)
            if changes.puts:
                self.put(tuple(map(Manifest, changes.puts)))
            for variant in changes.deletes:
                self._delete_variant(variant)
            if self._keeps_messages:
                self._take_events()
                self._events += ((self.now, event) for event in changes.events)
            has_done |= bool(changes.puts or changes.deletes)
        return has_done

    def _carry_out(self, writes: Iterable[Write]) -> None:
        for write in writes:
            if write.verb is Verb.DELETE:
                self.delete(write.object)
            else:
                self.put(Manifest(write.manifest))

    def _follow_makers(self) -> bool:
        """Apply the objects that check controllers made and deleted; return whether there were any."""
        makers = (controller for controller in self._checking.controllers if isinstance(controller, ObjectMaker))
        writes = [write for maker in makers for write in maker.take_writes()]
        self._carry_out(writes)
        return bool(writes)

    def _follow_activities(self) -> None:
        """Update the conditions Active of AdmissionChecks."""
        for check in self._stored.of_kind("AdmissionCheck"):
            activity = self._checking.activity(check, now=self.now)
            changed = None if activity is None else with_activity(check, activity, now=format_time(self.now))
            if changed is not None:
                self.put(Manifest(changed))

    def _follow_happenings(self) -> None:
        """Update the objects with the scheduled events that have happened."""
        for number in self.clock.take_happened():
            happening = self._coming.take(number)
            if happening.manifest is not None:
                self._stored.happen(happening.manifest, is_update=happening.is_update, now=self.now)
                if self._has_answers:
                    self._observe(self._stored.read())
            elif happening.deleted is not None and self._stored.forget(happening.deleted):
                self._forget(happening.deleted)

    def _observe(self, manifests: Iterable[JsonObject]) -> None:
        for manifest in manifests:
            self._checking.observe(manifest, now=self.now)
            self._families.observe(manifest)

    def _forget(self, ref: ObjectRef) -> None:
        self._checking.forget(ref, now=self.now)
        for variant in self._families.forget(ref):
            self._delete_variant(variant)

    def _delete_variant(self, ref: ObjectRef) -> None:
        """Delete a variant, which has no job and so is unknown to the clock."""
        if self._stored.forget(ref):
            self.engine.delete("Workload", ref.name, namespace=ref.namespace, now=self.now)
            self._forget(ref)

    def _take_events(self) -> None:
        for time, (type_, reason, key, message) in self.clock.events_since(self._n_events):
            self._events.append((time, Event(type_, reason, *key, message)))
            self._n_events += 1
