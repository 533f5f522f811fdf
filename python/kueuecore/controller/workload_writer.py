"""Makes the write that takes a Workload from what is stored to what it should be."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kueuecore._conditions import OF_WORKLOADS
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._patches import merge_patch, transplanted, whole_seconds
from kueuecore.checks import check_states
from kueuecore.configuration import Configuration
from kueuecore.controller.versions import key_of
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.decisions import Event
from kueuecore.engine import Engine
from kueuecore.jobs.job_report import JobReport
from kueuecore.states import WorkloadState
from kueuecore.writes import Verb, Write, patch_of

__all__ = ["WorkloadWriter"]


class WorkloadWriter:
    """Makes and numbers writes.

    Args:
        configuration: Has the feature gates.
    """

    def __init__(self, configuration: Configuration | None) -> None:
        # An engine without queues renders a stored status, so that only real changes differ.
        self._engine = Engine(configuration)
        self._applies = configuration is None or not configuration.is_enabled("WorkloadRequestUseMergePatch")
        self._n_writes = 0

    def write(self, stored: JsonObject, state: WorkloadState, events: Sequence[Event] = ()) -> Write | None:
        """Return the write that brings a stored Workload to a state; `None` if it is there already."""
        rendered = self._rendered(stored)
        spec: JsonObject = {}
        if rendered.is_active != state.is_active:
            spec["active"] = state.is_active
        if rendered.priority != state.priority:
            spec["priority"] = state.priority
        write = self._next_write(stored)
        if spec:
            return write({"spec": spec})
        before, wanted = object_at(stored, "status"), whole_seconds(dict(state.status))
        assert isinstance(wanted, dict)
        if self._applies and "admissionChecks" in wanted:
            wanted["admissionChecks"] = _with_retry_counts(list_at(wanted, "admissionChecks"), check_states(stored))
        if "conditions" in wanted:
            wanted["conditions"] = _with_those_of_others(list_at(wanted, "conditions"), dict(rendered.status))
        after = transplanted(before, dict(rendered.status), wanted)
        return self._status_write(write, stored, after, events) if before != after else None

    def change(self, stored: JsonObject, changed: JsonObject, events: Sequence[Event]) -> Write:
        """Return the next write that brings a stored Workload in line: `spec.active` first, then the status."""
        write, is_active = self._next_write(stored), object_at(changed, "spec").get("active")
        if is_active != object_at(stored, "spec").get("active"):
            return write({"spec": {"active": is_active}}, events=tuple(events))
        return self._status_write(write, stored, object_at(changed, "status"), events)

    def label(self, stored: JsonObject, name: str) -> Write:
        """Return the write that sets a label of a stored Workload to `true`."""
        return self._next_write(stored)({"metadata": {"labels": {name: "true"}}})

    def _status_write(
        self, write: Callable[..., Write], stored: JsonObject, after: JsonObject, events: Sequence[Event]
    ) -> Write:
        patch: JsonObject = {"status": merge_patch(object_at(stored, "status"), after)}
        held, holds = conditions_that_hold(stored), conditions_that_hold({"status": after})
        gained = tuple(kind for kind in holds if kind not in held)
        lost = tuple(kind for kind in held if kind not in holds)
        return write(patch, subresource="status", gained=gained, lost=lost, events=tuple(events))

    def _next_write(self, stored: JsonObject) -> Callable[..., Write]:
        self._n_writes += 1
        number = self._n_writes

        def write(patch: JsonObject, **more: Any) -> Write:
            return Write(Verb.PATCH, patch_of(stored, patch), number=number, **more)

        return write

    def without_finalizer(self, stored: JsonObject, finalizer: str) -> Write:
        """Return the write that removes a finalizer from a stored Workload."""
        kept = [other for other in list_at(stored, "metadata", "finalizers") if other != finalizer]
        return self._next_write(stored)({"metadata": {"finalizers": kept}})

    def after_job(self, stored: JsonObject, report: JobReport, at: int) -> WorkloadState:
        """Return a stored Workload after its job's report; nothing else knows of it before it is written."""
        _, namespace, name = key_of(stored)

        def act(engine: Engine) -> None:
            if report.are_scheduled is not None:
                engine.note_scheduling(name, namespace=namespace, now=at, are_scheduled=report.are_scheduled)
            if report.are_ready is not None:
                engine.note_readiness(name, namespace=namespace, now=at, are_ready=report.are_ready)
            if report.stopped:
                engine.release(name, namespace=namespace, now=at)
            if report.finished is not None:
                reason, message = report.finished
                engine.finish(name, namespace=namespace, now=at, reason=reason, message=message)

        return self._rendered(stored, act)

    def _rendered(self, stored: JsonObject, act: Callable[[Engine], object] | None = None) -> WorkloadState:
        _, namespace, name = key_of(stored)
        self._engine.apply(json.dumps(stored).encode(), trusted=True)
        if act is not None:
            act(self._engine)
        state = self._engine.workload(name, namespace=namespace)
        self._engine.delete("Workload", name, namespace=namespace)
        return state


def _with_retry_counts(entries: list[JsonValue], stored: Mapping[str, JsonObject]) -> list[JsonValue]:
    """Return checks with the retry counts that are stored.

    Kueue leaves the count out of a check that restarts after anything but Retry. Its server-side apply does not remove
    what the check's own controller has also applied (rules/07 §3).
    """
    kept: list[JsonValue] = []
    for entry in entries:
        count = stored.get(text_at(entry, "name"), {}).get("retryCount") if isinstance(entry, dict) else None
        kept.append({"retryCount": count, **entry} if isinstance(entry, dict) and count is not None else entry)
    return kept


def _with_those_of_others(wanted: list[JsonValue], rendered: JsonObject) -> list[JsonValue]:
    """Return the wanted conditions, with those that Kueue does not write as they are stored.

    A second pass starts from an older copy of the Workload (rules/08 §11.10), in which they may differ.
    """
    ours = [value for value in wanted if text_at(value, "type") in OF_WORKLOADS]
    return [
        *ours,
        *(condition for condition in list_at(rendered, "conditions") if text_at(condition, "type") not in OF_WORKLOADS),
    ]
