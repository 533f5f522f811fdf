"""Drives the check controllers: which workloads they review, and what they want written (rules/07 §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.check_controllers import CheckControllers, with_activity
from kueuecore.checks import CheckController, Review, WorkloadKey, applied_review
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef
from kueuecore.manifests import to_json_lines
from kueuecore.times import SECOND_NS, format_time
from kueuecore.writes import Answer, Verb, Write

__all__ = ["CheckReviews"]


class CheckReviews:
    """Collects what check controllers have to review, and the writes that result.

    Args:
        controllers: The check controllers.
    """

    def __init__(self, controllers: Sequence[CheckController]) -> None:
        self._controllers = CheckControllers(controllers)
        self.controllers = self._controllers.controllers
        self._read = {"AdmissionCheck", *self.kinds} if self.controllers else set()
        self._checks: dict[str, JsonObject] = {}
        # The version of each AdmissionCheck whose status is being written.
        self._written: dict[str, JsonObject] = {}
        self._open: dict[WorkloadKey, None] = {}
        # What to report about refused writes.
        self._held: dict[WorkloadKey, Review] = {}
        self._writes: list[Write] = []

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """The kinds that the check controllers watch: apiVersion and plural by kind."""
        return {kind: other for controller in self.controllers for kind, other in controller.kinds.items()}

    def reads(self, kind: str) -> bool:
        """Return whether a check controller watches a kind other than Workloads."""
        return kind in self._read

    @property
    def open(self) -> tuple[WorkloadKey, ...]:
        """The workloads to review."""
        self._open |= dict.fromkeys(self._controllers.take_asked())
        return tuple(self._open)

    def observe(self, manifest: JsonObject, *, now: int) -> None:
        """Take in the current version of an object.

        Raises:
            ManifestError: A check controller refuses it. Nothing has changed.
        """
        if not self.controllers:
            return
        metadata = object_at(manifest, "metadata")
        if text_at(manifest, "kind") == "Workload":
            self._open[text_at(metadata, "namespace"), text_at(metadata, "name")] = None
            return
        self._controllers.observe(manifest, now=now)
        if text_at(manifest, "kind") == "AdmissionCheck":
            self._checks[text_at(metadata, "name")] = manifest

    def forget(self, ref: ObjectRef, *, now: int) -> None:
        """Take in the deletion of an object."""
        self._controllers.forget(ref, now=now)
        if ref.kind == "AdmissionCheck":
            self._checks.pop(ref.name, None)
            self._written.pop(ref.name, None)
        elif ref.kind == "Workload":
            self._open.pop((ref.namespace, ref.name), None)
            self._held.pop((ref.namespace, ref.name), None)

    def wake(self, now: int) -> None:
        """Advance time to `now`; AdmissionChecks report whether they are active."""
        self._controllers.wake(now)
        for name, check in self._checks.items():
            activity = self._controllers.activity(check, now=now)
            time = format_time(now // SECOND_NS * SECOND_NS)
            changed = None if activity is None else with_activity(check, activity, now=time)
            if changed is not None and self._written.get(name) is not check:
                self._written[name] = check
                self._writes.append(Write(Verb.UPDATE, changed, "status", check=name))

    def review(self, workload: JsonObject, *, now: int) -> Review:
        """Return the review of a workload; its writes are kept."""
        metadata = object_at(workload, "metadata")
        key = text_at(metadata, "namespace"), text_at(metadata, "name")
        self._open.pop(key, None)
        review = self._held.pop(key, None) or self._controllers.review(workload, now=now) or Review()
        self._writes += review.writes
        return replace(review, writes=())

    def review_settled(self, engine: Engine, workloads: WorkloadRecords, at: int) -> None:
        """Apply the reviews of the open Workloads that are as stored."""
        self.wake(at)
        for key in self.open:
            record = workloads.get(key)
            if record is None or not workloads.is_settled(key):
                continue
            review = self.review(record.data, now=at)
            status = object_at(record.data, "status")
            after = applied_review(status, review, now=format_time(at // SECOND_NS * SECOND_NS))
            if after is not status:
                engine.apply(to_json_lines([{**record.data, "status": after}]), now=at, trusted=True)
            workloads.hold(review.events)

    def refused(self, write: Write, answer: Answer, *, now: int) -> None:
        """Take in that a write of an object was refused."""
        if write.verb is Verb.UPDATE:
            self._written.pop(write.object.name, None)
            return
        review = self._controllers.refused(write, answer, now=now)
        if review:
            self._held[write.workload] = review
        self._open[write.workload] = None

    def take_writes(self) -> tuple[Write, ...]:
        """Take the objects to write."""
        writes, self._writes = tuple(self._writes), []
        return writes

    def next_wake(self, *, after: int) -> int | None:
        """Return when a controller next has something to say because of time alone."""
        return self._controllers.next_wake(after=after)
