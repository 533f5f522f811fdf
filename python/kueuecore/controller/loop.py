"""The loop of a controller without its I/O: watch events in, a turn, writes out, and their outcomes back in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from kueuecore import _arguments
from kueuecore._json import JsonObject, object_at
from kueuecore._text import logged
from kueuecore.checks import CheckController
from kueuecore.configuration import Configuration
from kueuecore.controller import validation
from kueuecore.controller.check_reviews import CheckReviews
from kueuecore.controller.controller_save import REPORT_PROBLEM, ControllerSave
from kueuecore.controller.cycle_report import Considered, considered_in
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.in_use_finalizers import InUseFinalizers
from kueuecore.controller.local_queue_usage import next_sampling, with_usage
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.object_intake import ObjectIntake
from kueuecore.controller.object_store import ObjectStore
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.pod_failures import PodFailures
from kueuecore.controller.pod_releases import PodReleases
from kueuecore.controller.queue_statuses import QueueStatuses
from kueuecore.controller.retention import Retention
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.unwritten_releases import UnwrittenReleases
from kueuecore.controller.variant_families import VariantFamilies
from kueuecore.controller.versions import Version, key_of
from kueuecore.controller.watched_kinds import OF_NODES, SOMETIMES_WATCHED, WATCHED, is_of_another_group
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.controller.write_answers import WriteAnswers
from kueuecore.controller.writes import Turn, conditions_that_hold
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs.context import JobsConfiguration
from kueuecore.jobs.job_report import JobReport
from kueuecore.manifests import object_ref
from kueuecore.times import END_NS, SECOND_NS, TimeLike, nanoseconds
from kueuecore.writes import Answer, Write

__all__ = ["Controller"]

_LOGGER = logging.getLogger("kueuecore.controller")


class Controller:
    """Decides as Kueue's scheduler and controllers do, and tracks what is written. It has no I/O and no clock.

    Pass it what you watch (`observe`, `resync`), call `turn`, send the writes of that turn, and report how each went
    (`done`). Until then nothing more is written to that Workload, and watch events about it are deferred.
    Not safe to use from several threads at a time.

    Args:
        configuration: Kueue's Configuration.
        models_readiness: Whether you call `note_readiness` for all jobs. If not, `waitForPodsReady`, which Kueue has on
            by default, only applies if the Configuration names it.
        batches_retries: Whether parked workloads are retried a second after the change that may let them in, as in a
            running Kueue, and not in the next turn (rules/05 §3.1).
        considered: Called with every head of a cycle and its outcome. Costs nothing if absent.
        metrics: Counts what is decided and written.
        checks: The controllers that decide on AdmissionChecks; other checks may be written by others. Watch `kinds`.
        schedules: Whether it schedules. If not, a turn is what Kueue's controllers do without its scheduler.
        status_delay_seconds: How long a change of a queue waits for others before its status is written, as in Kueue.
            `None`: do not write the statuses of ClusterQueues, LocalQueues and Cohorts.
        watches_nodes: Whether `kinds` includes Topologies, Nodes and Pods. Watch them if a flavor names a topology.

    Example:
        >>> controller = Controller()
        >>> controller.observe({"type": "ADDED", "object": {
        ...     "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "resourceVersion": "1"}}},
        ...     now="2026-01-01T00:00:00Z")
        True
        >>> controller.turn("2026-01-01T00:00:00Z").writes
        ()
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        *,
        models_readiness: bool = False,
        batches_retries: bool = True,
        considered: Callable[[Considered], None] | None = None,
        metrics: Metrics | None = None,
        checks: Sequence[CheckController] = (),
        schedules: bool = True,
        status_delay_seconds: int | None = 1,
        watches_nodes: bool = False,
    ) -> None:
        if not (considered is None or callable(considered)):
            raise TypeError(f"considered must be a function, not {type(considered).__name__}")
        if metrics is not None:
            _arguments.instance("metrics", metrics, Metrics)
        self.engine = Engine(configuration, models_readiness=models_readiness, batches_retries=batches_retries)
        """The engine, for reading. Make changes through the controller."""
        self._considered = considered
        self._metrics = metrics
        self._check_reviews = CheckReviews(checks)
        store = ObjectStore({**self._check_reviews.kinds, **WATCHED, **SOMETIMES_WATCHED})
        self._workloads = WorkloadRecords()
        self._writes = OpenWrites(self.engine, self._workloads)
        self._releases = UnwrittenReleases(self.engine, self._workloads, self._writes)
        self._idle_cycles = IdleCycles(self.engine)
        self._of_nodes = OF_NODES if _arguments.flag("watches_nodes", watches_nodes) else {}
        settings = self.engine.configuration
        self._families = VariantFamilies(settings, self._workloads, self._writes, self._idle_cycles)
        # In the order of their writes in a turn.
        sides: list[SideController] = [
            self._families,
            Retention(settings, self._workloads, self._writes),
            PodReleases(self._workloads, JobsConfiguration.of(settings), metrics),
            PodFailures(self.engine),
            InUseFinalizers(self.engine),
        ]
        if status_delay_seconds is not None:
            delay_ns = _arguments.number("status_delay_seconds", status_delay_seconds) * SECOND_NS
            sides.append(QueueStatuses(self.engine, store, delay_ns=delay_ns))
        self._sides = tuple(sides)
        self._objects = ObjectIntake(
            self.engine, store, self._workloads, self._check_reviews, self._idle_cycles, self._sides, metrics
        )
        # The cycles of an empty engine decide nothing.
        self._scheduler = self.engine if _arguments.flag("schedules", schedules) else Engine()
        self._answers = WriteAnswers(
            self.engine, self._workloads, self._writes, self._objects, self._idle_cycles, metrics
        )
        self._turned_at = 0

    # Watching.

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """What to list and watch, in this order, by kind: apiVersion and the plural in the path.

        These are `WATCHED`, the kinds that checks need, and with `watches_nodes` Topology, Node and Pod.
        """
        return {**self._check_reviews.kinds, **self._of_nodes, **WATCHED}

    def observe(self, event: Mapping[str, Any], *, now: TimeLike, data: bytes = b"") -> bool:
        """Take in a watch event, in any order and repeated or not.

        Args:
            event: `type` (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR; `None` as kopf gives it is ADDED) and `object`, as
                the API server sends them. The object is not copied: do not change it afterwards.
            now: The time.
            data: The object as JSON, as it came, if you still have that: it need not be written again for the engine.

        Raises:
            WatchError: The event is an error.
            ManifestError: The event has no type or no object, or the object is not valid as Kueue's API server would
                store it. Nothing has changed.
            TypeError: The event or its object is not plain data but, say, of one of the `kubernetes` client's classes.
            ValueError: The event's type does not exist.

        Returns:
            False if the object is outdated, or its kind is not watched.
        """
        at = nanoseconds(now)
        kind, manifest = validation.event_of(event)
        return self._objects.observe(kind, manifest, at, data=_arguments.instance("data", data, bytes))

    def take_answer(self, manifest: JsonObject, *, now: TimeLike) -> bool:
        """Take in an object as the API server answered with it, before a watch shows it.

        Not for the answers to this controller's own writes of Workloads, which go to `done`.

        Raises:
            ManifestError, TypeError: As `observe`. Nothing has changed.

        Returns:
            False if the object is outdated, or its kind is not watched.
        """
        at = nanoseconds(now)
        _, checked = validation.event_of({"type": "MODIFIED", "object": manifest})
        return self._objects.observe("MODIFIED", checked, at, is_answer=True)

    def resync(
        self, kind: str, objects: Iterable[JsonObject], *, now: TimeLike, resource_version: str = ""
    ) -> tuple[Problem, ...]:
        """Take in the list of all objects of a kind: objects missing from it were deleted.

        Args:
            kind: The kind, one of `WATCHED`; ResourceClaimTemplate, DeviceClass, Topology, Node and Pod are accepted
                too.
            objects: All of them. Items of an API server's list have no `kind`; it is filled in.
            now: The time.
            resource_version: `metadata.resourceVersion` of the list. Objects seen in a newer version stay.

        Returns:
            The problems of the objects that were rejected; the others were taken in.

        Raises:
            TypeError: An object is not plain data. Nothing has changed.
            ValueError: The kind is not watched, or an object is of another kind. Nothing has changed.
        """
        problems: list[Problem] = []
        at, kind = nanoseconds(now), _arguments.text("kind", kind)
        version = Version("", _arguments.text("resource_version", resource_version))
        kinds = self._objects.store.kinds
        if kind not in kinds:
            raise ValueError(f"{_arguments.shown(kind)} is not watched: the kinds are {', '.join(kinds)}")
        listed = validation.listed_objects(kind, kinds[kind][0], objects)
        for key in self._objects.versions.missing(kind, listed.keys(), version):
            self._objects.delete(key, version, at)
        for whole, index in listed.values():
            try:
                self.observe({"type": "ADDED", "object": whole}, now=at)
            except ManifestError as error:
                _LOGGER.warning("not taken: %s", logged(error))
                problems += (replace(problem, index=index) for problem in error.problems)
        self._objects.store.list_taken(kind, version, at)
        return tuple(problems)

    # Deciding.

    def turn(self, now: TimeLike) -> Turn:
        """Run one cycle, with what Kueue's workload controller does before and after it.

        Args:
            now: The time. It must not go back.

        Returns:
            The decision, and what to write.

        Raises:
            ValueError: An earlier call had a later time. Nothing has changed.
        """
        at = nanoseconds(now)
        if at < max(self._turned_at, self.engine.now):
            raise ValueError("now: time does not go back: an earlier call had a later time")
        self._turned_at = at
        self._objects.has_news = False
        # Before the cycle, which may change variants: families are reconciled as they are stored.
        family_writes = self._families.review_settled(at)
        self._reconcile(at)
        failures = self._answers.open_failures(at)
        self._releases.put_back(at)
        decision = self._scheduler.cycle(at)
        self._note(decision)
        self._workloads.hold(self._releases.without_repeats(self.engine.reconcile(at)))
        writes = self._writes.open(at)
        self._releases.note_open()
        if self._check_reviews.controllers:
            self._check_reviews.review_settled(self.engine, self._workloads, at)
            self._reconcile(at)
            writes = (*writes, *self._writes.open(at))
        beside = [write for side in self._sides for write in side.take_writes(at)]
        writes = (*family_writes, *failures, *writes, *(write for write in beside if write.number))
        self._families.note_open(writes)
        objects = (*self._check_reviews.take_writes(), *(write for write in beside if not write.number))
        return Turn(decision, writes, self._writes.take_loose_events(), objects)

    def next_wake(self, now: TimeLike) -> int | None:
        """Return when to take the next turn if nothing is observed before, in nanoseconds since 1970; `None`: never.

        That is `now` while cycles may still decide something, or something observed has not been through a turn; else
        the next backoff, timeout, maximum execution time, usage sample, status or deletion that is due.

        Args:
            now: The time.
        """
        at = nanoseconds(now)
        if self._objects.has_news or self._workloads.has_due:
            return at
        if self._scheduler.has_heads and not self._idle_cycles.are_enough:
            return at
        if any(self._workloads.is_settled(key) for key in self._check_reviews.open):
            return at
        # What arrived since the last turn does not make earlier work less due.
        since = self._turned_at
        times = [self.engine.next_wake(since=since), next_sampling(self.engine, since=since)]
        times += (self._check_reviews.next_wake(after=since), *(side.next_wake() for side in self._sides))
        return min((max(at, time) for time in times if time is not None and time < END_NS), default=None)

    # Outcomes of writes.

    def done(self, write: Write, answer: Answer, *, now: TimeLike) -> bool:
        """Report how a write went: accepted, refused, or with an unknown outcome.

        A refused write of a Workload is decided anew: quota that it would have held is free again, and it is requeued
        (rules/05 §6.4 step 12). One of a turn's `objects` is retried later, a status for the next version that a watch
        shows or after a growing pause. Skip the writes after it for the same workload and check.

        Args:
            write: The write.
            answer: How it went. An accepted write without an object is taken to be stored as it was, with the patch
                applied: right only if you store objects yourself and give no `resourceVersion`. Read the Workload after
                a conflict (409), and above all after a timeout, as the write may have been accepted.
            now: The time.

        Returns:
            False if it no longer matters: the Workload is gone, or a watch will show what was written.

        Raises:
            ManifestError: The answer is not a valid Workload as Kueue's API server would store it. Nothing has changed.
            TypeError: The answer is not plain data. Nothing has changed.
            ValueError: The answer is another object, or, if accepted, an older version. Nothing has changed.
        """
        at = nanoseconds(now)
        _arguments.instance("write", write, Write)
        if write.number:
            return self._answers.done(write, _arguments.instance("answer", answer, Answer), at)
        if not _arguments.instance("answer", answer, Answer).is_accepted:
            self._refused(write, answer, at)
        return not answer.is_accepted

    # Reports about jobs.

    def finished(
        self, name: str, *, namespace: str, reason: str = "Succeeded", message: str = "Job finished successfully"
    ) -> bool:
        """Report that the job of a Workload has ended: its quota is free once that is written, with the next turn.

        Returns:
            False if there is no such Workload.
        """
        reported = _arguments.text("reason", reason), _arguments.text("message", message)
        return self.report(name, namespace=namespace, report=JobReport(finished=reported))

    def stopped(self, name: str, *, namespace: str) -> bool:
        """Report that the job of an evicted Workload has stopped: its quota is free once that is written (rules/04 §9).

        Returns:
            False if there is no such Workload.
        """
        return self.report(name, namespace=namespace, report=JobReport(stopped=True))

    def note_readiness(self, name: str, *, namespace: str, are_ready: bool) -> bool:
        """Report whether the pods of a Workload's job are all ready (rules/07 §6).

        Returns:
            False if there is no such Workload.
        """
        are_ready = _arguments.flag("are_ready", are_ready)
        return self.report(name, namespace=namespace, report=JobReport(are_ready=are_ready))

    def report(self, name: str, *, namespace: str, report: JobReport) -> bool:
        """Report all that the job of a Workload has done, as `kueuecore.jobs.reconcile_job` found.

        Returns:
            False if there is no such Workload.
        """
        is_there = self._workloads.tell(_arguments.workload_key(namespace, name), report)
        if is_there:
            self._idle_cycles.end()
        return is_there

    # Queries.

    def workload(self, name: str, *, namespace: str) -> dict[str, Any] | None:
        """Return a Workload as the API server has it, without changes not written yet; `None` if it does not exist."""
        known = self._workloads.get(_arguments.workload_key(namespace, name))
        return None if known is None else known.data

    def objects(self, kinds: Collection[str]) -> tuple[JsonObject, ...]:
        """Return the objects of some kinds as the API server has them, in order of arrival. Do not change them.

        Args:
            kinds: Kinds that are watched.
        """
        return tuple(self._objects.store.of_kinds(kinds))

    def may_run(self, name: str, *, namespace: str) -> bool:
        """Return whether the job of a Workload may run: once Admitted is written, until its eviction or end is."""
        known = self._workloads.get(_arguments.workload_key(namespace, name))
        holds = conditions_that_hold(known.data) if known is not None else {}
        return "Admitted" in holds and "Evicted" not in holds and "Finished" not in holds

    @property
    def open_writes(self) -> tuple[Write, ...]:
        """The writes whose outcome has not been reported yet."""
        return tuple(known.write for _, known in self._workloads if known.write is not None)

    # Saving and restoring.

    def save(self) -> JsonObject:
        """Return the state as plain data for JSON, to be read by `load`.

        It holds all objects as stored, the versions seen, what jobs have done that is not written yet, and what
        LocalQueues have used (rules/09 §1.3). Lost, as in any restart: the open writes, which flavor a workload would
        try next, which workloads are parked, the preemptor of a ClusterQueue, and the penalties of admissions whose
        usage was not sampled yet.

        Example:
            >>> controller = Controller.load(Controller().save(), now="2026-01-01T00:00:00Z")
        """
        accounts = self.engine._core._local_queue_accounts()
        used = {key: account["consumed"] for key, account in accounts.items() if account["consumed"]}
        kinds = self._objects.kinds
        others = self._objects.store.of_kinds(kinds.keys() - {"Workload"})
        objects = [*(with_usage(other, used) for other in others), *self._workloads.newest()]
        return ControllerSave(objects, self._objects.versions.to_json(kinds), self._workloads.reports()).to_json()

    @classmethod
    def load(
        cls,
        saved: JsonObject,
        *,
        now: TimeLike,
        configuration: Configuration | None = None,
        models_readiness: bool = False,
        batches_retries: bool = True,
        considered: Callable[[Considered], None] | None = None,
        metrics: Metrics | None = None,
        checks: Sequence[CheckController] = (),
        schedules: bool = True,
        status_delay_seconds: int | None = 1,
        watches_nodes: bool = False,
    ) -> Self:
        """Restore a controller from what another has saved. Its watches may start where `watched` says.

        Before its first turn, let it observe all that has happened since: open writes are not saved.

        Args:
            saved: What `save` returned, in the same format version.
            now: The time.
            configuration: As for a new one; it is not saved.
            models_readiness: As for a new one.
            batches_retries: As for a new one.
            considered: As for a new one.
            metrics: As for a new one.
            checks: As for a new one; they receive every saved object.
            schedules: As for a new one.
            status_delay_seconds: As for a new one.
            watches_nodes: As for a new one.

        Raises:
            ValueError: It was saved in another format, or was changed since.
        """
        read = ControllerSave.read(saved)
        controller = cls(
            configuration,
            models_readiness=models_readiness,
            batches_retries=batches_retries,
            considered=considered,
            metrics=metrics,
            checks=checks,
            schedules=schedules,
            status_delay_seconds=status_delay_seconds,
            watches_nodes=watches_nodes,
        )
        controller._restore(read, nanoseconds(now))
        return controller

    def watched(self, kind: str) -> str:
        """Return the `resourceVersion` from which to resume watching a kind; empty: list first.

        Correct only if you pass on every event of a watch, in order.
        """
        return self._objects.versions.watched(_arguments.text("kind", kind))

    def _restore(self, saved: ControllerSave, at: int) -> None:
        """Take in what another controller has saved."""
        kinds = self._objects.kinds
        for plain in saved.objects:
            manifest = object_at(plain)
            validation.check_version(manifest)
            if is_of_another_group(manifest, kinds):
                raise ValueError(f"this is not a valid save: {object_ref(manifest)} has another apiVersion")
            self._objects.take(key_of(manifest), Version.of(manifest), manifest, at)
        try:
            self._objects.versions.remember(saved.versions)
            for (namespace, name), report in saved.reports():
                if not self.report(name, namespace=namespace, report=report):
                    raise ValueError(REPORT_PROBLEM)
        except ValueError as error:
            raise ValueError(f"this is not a valid save: {error}") from None

    # Outcomes of writes.

    def _refused(self, write: Write, answer: Answer, at: int) -> None:
        """Pass a refused write of another object on to whoever wanted it."""
        if not any(side.refused(write, answer, at=at) for side in self._sides):
            self._check_reviews.refused(write, answer, now=at)
            self._idle_cycles.end()

    # Deciding.

    def _reconcile(self, at: int) -> None:
        self._workloads.hold(self.engine.reconcile(at))

    def _note(self, decision: Decision) -> None:
        self._workloads.hold(decision.events)
        self._workloads.note_replaced(decision.replaced_slices)
        self._answers.preemptions.note(decision)
        self._idle_cycles.note(decision)
        if self._metrics is not None:
            self._metrics.count_cycle(decision)
        if self._considered is not None:
            for considered in considered_in(decision):
                self._considered(considered)
