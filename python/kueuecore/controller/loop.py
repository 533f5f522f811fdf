"""The loop of a controller without its I/O: watch events in, a turn, writes out, and how they went back in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from kueuecore import _arguments
from kueuecore._json import JsonObject, object_at
from kueuecore.checks import CheckController, ObjectWrite, ObjectWriteKind
from kueuecore.configuration import Configuration
from kueuecore.controller import validation
from kueuecore.controller.check_reviews import CheckReviews
from kueuecore.controller.controller_save import REPORT_PROBLEM, ControllerSave
from kueuecore.controller.cycle_report import Considered, considered_in
from kueuecore.controller.idle_cycles import IdleCycles
from kueuecore.controller.local_queue_usage import next_sampling, with_usage
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.object_intake import ObjectIntake
from kueuecore.controller.open_writes import OpenWrites
from kueuecore.controller.pod_failures import PodFailures
from kueuecore.controller.pod_releases import PodReleases
from kueuecore.controller.queue_statuses import QueueStatuses
from kueuecore.controller.retention import Retention
from kueuecore.controller.topology_finalizers import TopologyFinalizers
from kueuecore.controller.variant_families import VariantFamilies
from kueuecore.controller.versions import Version, key_of
from kueuecore.controller.watched_kinds import OF_NODES, WATCHED, is_of_another_group
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.controller.write_answers import WriteAnswers
from kueuecore.controller.writes import Turn, WorkloadWrite, conditions_that_hold
from kueuecore.decisions import Decision
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs.job_report import JobReport
from kueuecore.manifests import object_ref
from kueuecore.times import END_NS, TimeLike, nanoseconds

__all__ = ["Controller"]

_LOGGER = logging.getLogger("kueuecore.controller")
_SECOND_NS = 1_000_000_000


class Controller:
    """What a controller that schedules Workloads has to remember and to decide. It does no I/O and has no clock.

    Whoever embeds it brings what a watch says (`observe`, `resync`), asks for a `turn`, sends the writes of that turn,
    and says how each went (`confirm`, `refuse`). Until then nothing more is written to that Workload, and what a watch
    says of it is put off. Not safe to use from several threads at a time.

    Args:
        configuration: Kueue's Configuration.
        models_readiness: Is `note_readiness` called for all jobs? Otherwise `waitForPodsReady`, which Kueue has on by
            default, only counts if the Configuration names it.
        considered: Called with every head of a cycle and its outcome. Costs nothing if there is none.
        metrics: Counts what is decided and written.
        checks: Who decides on AdmissionChecks; somebody else may write what other checks say. Watch `kinds`.
        schedules: Does it schedule? Otherwise a turn is what Kueue's controllers do without its scheduler.
        status_delay_seconds: How long a change of a queue waits for others before its status is written, as in Kueue.
            `None`: the statuses of ClusterQueues, LocalQueues and Cohorts are not written.
        watches_nodes: Are Topologies, Nodes and Pods in `kinds`, too? Watch them if a flavor names a topology.

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
        self.engine = Engine(configuration, models_readiness=models_readiness)
        """The engine, to ask it for what it holds. What changes it goes through the controller."""
        self._considered = considered
        self._metrics = metrics
        self._check_reviews = CheckReviews(checks)
        self._workloads = WorkloadRecords()
        self._writes = OpenWrites(self.engine, self._workloads)
        self._idle_cycles = IdleCycles(self.engine)
        self._families = VariantFamilies(self.engine.configuration, self._workloads, self._writes)
        delay = status_delay_seconds
        delay_ns = None if delay is None else _arguments.number("status_delay_seconds", delay) * _SECOND_NS
        self._statuses = QueueStatuses(self.engine, delay_ns=delay_ns)
        self._pod_failures = PodFailures(self.engine)
        self._of_nodes = OF_NODES if _arguments.flag("watches_nodes", watches_nodes) else {}
        self._releases = PodReleases(self._workloads, metrics)
        self._topologies = TopologyFinalizers()
        self._retention = Retention(self.engine.configuration, self._workloads, self._writes.writer)
        self._objects = ObjectIntake(
            self.engine,
            self._workloads,
            self._check_reviews,
            self._families,
            self._idle_cycles,
            self._statuses,
            self._pod_failures,
            self._retention,
            self._releases,
            self._topologies,
            metrics,
        )
        # Its cycles decide on nothing.
        self._scheduler = self.engine if _arguments.flag("schedules", schedules) else Engine()
        self._answers = WriteAnswers(
            self.engine, self._workloads, self._writes, self._objects, self._idle_cycles, metrics
        )
        self._turned_at = 0

    # What is watched.

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """What to list and watch, in this order, by kind: apiVersion and the plural in the path.

        That is `WATCHED`, what checks need, and with `watches_nodes` Topology, Node and Pod.
        """
        return {**self._check_reviews.kinds, **self._of_nodes, **WATCHED}

    def observe(self, event: Mapping[str, Any], *, now: TimeLike) -> bool:
        """Take in a watch event, in any order, as often as it comes.

        Args:
            event: `type` (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR; `None` as kopf gives it is ADDED) and `object`, as
                the API server sends them. The object is not copied: do not change it afterwards.
            now: The time.

        Raises:
            WatchError: The event is an error.
            ManifestError: The event has no type or no object, or the object is not what the API server of a Kueue would
                hold. Nothing has changed.
            TypeError: The event or its object is no plain data, such as one of the `kubernetes` client's classes.
            ValueError: There is no such type of events.

        Returns:
            False if that is old news, or of a kind that nobody here looks at.
        """
        at = nanoseconds(now)
        kind, manifest = validation.event_of(event)
        validation.check_version(manifest)
        return self._objects.observe(kind, manifest, at)

    def take_answer(self, manifest: JsonObject, *, now: TimeLike) -> bool:
        """Take in an object as the API server has answered with it, before a watch shows it.

        Not for the answers to this controller's own writes of Workloads, which go to `confirm` and `refuse`.

        Raises:
            ManifestError, TypeError: As `observe`. Nothing has changed.

        Returns:
            False if that is old news, or of a kind that nobody here looks at.
        """
        at = nanoseconds(now)
        _, checked = validation.event_of({"type": "MODIFIED", "object": manifest})
        validation.check_version(checked)
        return self._objects.observe("MODIFIED", checked, at, is_answer=True)

    def resync(
        self, kind: str, objects: Iterable[JsonObject], *, now: TimeLike, resource_version: str = ""
    ) -> tuple[Problem, ...]:
        """Take in the list of all objects of a kind: what is not in it has gone.

        Args:
            kind: The kind, one of `WATCHED`; ResourceClaimTemplate, DeviceClass, Topology, Node and Pod are taken in,
                too.
            objects: All of them. What an API server lists has no `kind` of its own, which is filled in.
            now: The time.
            resource_version: `metadata.resourceVersion` of the list. What was seen in a newer version stays as it is.

        Returns:
            What is wrong with objects that were not taken; the others were.

        Raises:
            TypeError: An object is no plain data. Nothing has changed.
            ValueError: Nobody looks at this kind, or an object is of another. Nothing has changed.
        """
        problems: list[Problem] = []
        at, kind = nanoseconds(now), _arguments.text("kind", kind)
        version = Version("", _arguments.text("resource_version", resource_version))
        kinds = self._objects.kinds
        if kind not in kinds:
            raise ValueError(f"{_arguments.shown(kind)} is not watched: the kinds are {', '.join(kinds)}")
        listed = validation.listed_objects(kind, kinds[kind][0], objects)
        for key in self._objects.versions.missing(kind, listed.keys(), version):
            self._objects.delete(key, version, at)
        for whole, index in listed.values():
            try:
                self.observe({"type": "ADDED", "object": whole}, now=at)
            except ManifestError as error:
                _LOGGER.warning("not taken: %s", error)
                problems += (replace(it, index=index) for it in error.problems)
        self._objects.versions.list_taken(kind, version)
        return tuple(problems)

    # What is decided.

    def turn(self, now: TimeLike) -> Turn:
        """Run one cycle, and what Kueue's workload controller does before and after it.

        Args:
            now: The time. May not go back.

        Returns:
            The decision, and what is to be written.

        Raises:
            ValueError: There was a later turn.
        """
        at = nanoseconds(now)
        if at < self._turned_at:
            raise ValueError("time does not go back: there was a later turn")
        self._turned_at = at
        self._objects.has_news = False
        # Before the cycle, which may change variants: families are reconciled as they are stored.
        family_writes = self._families.review_settled(at)
        self._reconcile(at)
        failures = self._answers.open_failures(at)
        decision = self._scheduler.cycle(at)
        self._note(decision)
        self._reconcile(at)
        writes = self._writes.open(at)
        if self._check_reviews.controllers:
            self._check_reviews.review_settled(self.engine, self._workloads, at)
            self._reconcile(at)
            writes = (*writes, *self._writes.open(at))
        last_writes, deletions = self._retention.take_writes(at)
        writes = (*family_writes, *failures, *writes, *last_writes)
        self._families.note_open(writes)
        events = self._writes.take_loose_events() + self._retention.take_events()
        objects = (*self._check_reviews.take_writes(), *self._families.take_objects(), *deletions)
        objects = (*objects, *self._releases.take_writes(at), *self._pod_failures.take_writes(at))
        objects = (*objects, *self._topologies.take_writes(at), *self._statuses.take_writes(at))
        return Turn(decision, writes, events, objects)

    def next_wake(self, now: TimeLike) -> int | None:
        """When to take the next turn if nothing is observed before, in nanoseconds since 1970; `None`: never.

        That is `now` while cycles may still come to something, and while something was observed that no turn has looked
        at; else the first backoff, timeout, maximum execution time, sampling of usage, status or deletion that is due.

        Args:
            now: The time.
        """
        at = nanoseconds(now)
        if self._objects.has_news or self._workloads.has_due or self._families.has_due:
            return at
        if self._scheduler.has_heads and not self._idle_cycles.are_enough:
            return at
        if any(self._workloads.is_settled(key) for key in self._check_reviews.open):
            return at
        # What came since the last turn does not make what was due before less due.
        since = self._turned_at
        times = [self.engine.next_wake(since=since), next_sampling(self.engine, since=since)]
        times += (self._check_reviews.next_wake(after=since), self._families.next_time())
        times += (self._releases.next_wake(), self._pod_failures.next_wake(), self._topologies.next_wake())
        times += (self._statuses.next_wake(), self._retention.next_wake())
        return min((max(at, it) for it in times if it is not None and it < END_NS), default=None)

    # How the writes went.

    def confirm(self, write: WorkloadWrite, answer: JsonObject | None = None, *, now: TimeLike) -> bool:
        """A write was accepted.

        Args:
            write: The write.
            answer: The object as the API server answered with it. Without one it is taken for what the patch makes of
                the stored object: right only if you store it yourself and give no `resourceVersion`.
            now: The time.

        Returns:
            False if it does not matter any more, because the Workload has gone.

        Raises:
            ManifestError: The answer is no Workload as the API server of a Kueue would hold it. Nothing has changed.
            TypeError: The answer is no plain data. Nothing has changed.
            ValueError: The answer is another object, or an older version. Nothing has changed.
        """
        return self._answers.confirm(write, answer, nanoseconds(now))

    def refuse(
        self, write: WorkloadWrite, newest: JsonObject | None = None, *, now: TimeLike, gone: bool = False
    ) -> bool:
        """A write was refused, or nobody knows what became of it: the Workload is as the API server has it.

        Quota that it would have held is free again, and it is queued again (rules/05 §6.4 step 12).

        Args:
            write: The write.
            newest: The object as it is now. Get it after a conflict (409), and above all after a timeout, where the
                write may have been accepted.
            now: The time.
            gone: Is there no such object any more (404)?

        Returns:
            False if it does not matter any more, because the Workload has gone.

        Raises:
            ManifestError: `newest` is no Workload as the API server of a Kueue would hold it. Nothing has changed.
            TypeError: `newest` is no plain data. Nothing has changed.
            ValueError: `newest` has another name. Nothing has changed.
        """
        return self._answers.refuse(write, newest, nanoseconds(now), gone=_arguments.flag("gone", gone))

    def refuse_object(self, write: ObjectWrite, error: str, *, now: TimeLike, is_there: bool = False) -> None:
        """Report that one of a turn's `objects` was refused, or got no answer: it is retried later.

        Leave out what follows it among the objects of that workload for its check. A status is sent again for the next
        version that a watch shows, or after a growing pause.

        Args:
            write: The write.
            error: Why, in the words of the API server.
            now: The time.
            is_there: Is it a conflict (409)? Then a watch may not have shown yet which object of that name is there.
        """
        _arguments.instance("write", write, ObjectWrite)
        why, is_known = _arguments.text("error", error), _arguments.flag("is_there", is_there)
        ref, at = write.object, nanoseconds(now)
        if ref.kind in ("ClusterQueue", "LocalQueue", "Cohort"):
            self._statuses.refused(write, at)
        elif ref.kind == "Topology":
            self._topologies.refused(write, at)
        elif write.kind is ObjectWriteKind.PATCH:
            self._releases.refused(write, at, is_there=is_known)
        elif ref.kind == "Pod":
            self._pod_failures.refused(write, at)
        elif ref.kind == "Workload" and write.workload == (ref.namespace, ref.name):
            self._retention.refused(write, at)
        else:
            about = self._families if ref.kind == "Workload" else self._check_reviews
            about.refused(write, why, is_there=is_known, now=at)
            self._idle_cycles.end()

    # What jobs do.

    def finished(
        self, name: str, *, namespace: str, reason: str = "Succeeded", message: str = "Job finished successfully"
    ) -> bool:
        """The job of a Workload has ended: its quota is free once that is written, with the next turn.

        Returns:
            False if there is no such Workload.
        """
        reported = _arguments.text("reason", reason), _arguments.text("message", message)
        return self.report(name, namespace=namespace, report=JobReport(finished=reported))

    def stopped(self, name: str, *, namespace: str) -> bool:
        """The job of an evicted Workload has stopped: its quota is free once that is written (rules/04 §9).

        Returns:
            False if there is no such Workload.
        """
        return self.report(name, namespace=namespace, report=JobReport(stopped=True))

    def note_readiness(self, name: str, *, namespace: str, are_ready: bool) -> bool:
        """The pods of a Workload's job are all ready, or not any more (rules/07 §6).

        Returns:
            False if there is no such Workload.
        """
        are_ready = _arguments.flag("are_ready", are_ready)
        return self.report(name, namespace=namespace, report=JobReport(are_ready=are_ready))

    def report(self, name: str, *, namespace: str, report: JobReport) -> bool:
        """The job of a Workload has done all of this, as `kueuecore.jobs.reconcile_job` found.

        Returns:
            False if there is no such Workload.
        """
        is_there = self._workloads.tell(_arguments.workload_key(namespace, name), report)
        if is_there:
            self._idle_cycles.end()
        return is_there

    # What is known.

    def workload(self, name: str, *, namespace: str) -> dict[str, Any] | None:
        """A Workload as the API server has it: what is not written yet is not in it. `None`: there is none."""
        known = self._workloads.get(_arguments.workload_key(namespace, name))
        return None if known is None else known.data

    def may_run(self, name: str, *, namespace: str) -> bool:
        """May the job of a Workload run? That is so once Admitted is written, and until an eviction or its end is."""
        known = self._workloads.get(_arguments.workload_key(namespace, name))
        holds = conditions_that_hold(known.data) if known is not None else {}
        return "Admitted" in holds and "Evicted" not in holds and "Finished" not in holds

    @property
    def open_writes(self) -> tuple[WorkloadWrite, ...]:
        """The writes of which nobody has said yet how they went."""
        return tuple(known.write for _, known in self._workloads if known.write is not None)

    # Across a restart.

    def save(self) -> JsonObject:
        """What it knows, as plain data for JSON: read again by `load`.

        Kept are all objects as they are stored, in which versions they were seen, what jobs have done and is not
        written yet, and what LocalQueues have used (rules/09 §1.3). Not kept, as after any restart: the open writes,
        which flavor a workload would try next, which are parked, the preemptor of a ClusterQueue, and the penalties of
        admissions whose usage was not sampled yet.

        Example:
            >>> controller = Controller.load(Controller().save(), now="2026-01-01T00:00:00Z")
        """
        accounts = self.engine._core._local_queue_accounts()
        used = {key: account["consumed"] for key, account in accounts.items() if account["consumed"]}
        objects = [with_usage(it, used) for it in self._objects.others.values()]
        objects += self._workloads.newest()
        return ControllerSave(objects, self._objects.versions.to_json(), self._workloads.reports()).to_json()

    @classmethod
    def load(
        cls,
        saved: JsonObject,
        *,
        now: TimeLike,
        configuration: Configuration | None = None,
        models_readiness: bool = False,
        considered: Callable[[Considered], None] | None = None,
        metrics: Metrics | None = None,
        checks: Sequence[CheckController] = (),
        schedules: bool = True,
        status_delay_seconds: int | None = 1,
        watches_nodes: bool = False,
    ) -> Self:
        """A controller that goes on with what another had saved. Its watches may begin where `watched` says.

        Let it observe all that has happened since, before its first turn: open writes are not in what was saved.

        Args:
            saved: What `save` gave. Its own format is the only one that is read.
            now: The time.
            configuration: As for a new one; it is not in what is saved.
            models_readiness: As for a new one.
            considered: As for a new one.
            metrics: As for a new one.
            checks: As for a new one; they receive every saved object.
            schedules: As for a new one.
            status_delay_seconds: As for a new one.
            watches_nodes: As for a new one.

        Raises:
            ValueError: It was saved in another format, or is not what was saved.
        """
        read = ControllerSave.read(saved)
        controller = cls(
            configuration,
            models_readiness=models_readiness,
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
        """The `resourceVersion` up to which a kind was watched, to watch on from; empty if there is none: list then.

        Correct only if you hand over every event of a watch, in order.
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

    # How writes went.

    # What is decided.

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
