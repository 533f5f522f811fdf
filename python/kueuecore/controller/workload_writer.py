"""From what is stored of a Workload and what it is to be to the write between the two."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._patches import merge_patch, transplanted, whole_seconds
from kueuecore.configuration import Configuration
from kueuecore.controller.versions import key_of
from kueuecore.controller.writes import WorkloadWrite, conditions_that_hold
from kueuecore.decisions import Event
from kueuecore.engine import Engine
from kueuecore.jobs.job_report import JobReport
from kueuecore.states import WorkloadState

__all__ = ["WorkloadWriter"]


class WorkloadWriter:
    """Makes writes, and numbers them.

    Args:
        configuration: Whose gates count.
    """

    def __init__(self, configuration: Configuration | None) -> None:
        # An engine without queues renders a stored status, so that only what has changed is a change.
        self._engine = Engine(configuration)
        self._n_writes = 0

    def write(self, stored: JsonObject, state: WorkloadState, events: Sequence[Event] = ()) -> WorkloadWrite | None:
        """What makes a stored Workload what it is to be; `None` if it is that already."""
        rendered = self._rendered(stored)
        spec: JsonObject = {}
        if rendered.is_active != state.is_active:
            spec["active"] = state.is_active
        if rendered.priority != state.priority:
            spec["priority"] = state.priority
        write = self._next_write(stored)
        if spec:
            return write("", {"metadata": _guard(stored), "spec": spec})
        before, wanted = object_at(stored, "status"), whole_seconds(dict(state.status))
        assert isinstance(wanted, dict)
        after = transplanted(before, dict(rendered.status), wanted)
        patch = merge_patch(before, after)
        if not patch:
            return None
        held, holds = conditions_that_hold(stored), conditions_that_hold({"status": after})
        gained = tuple(kind for kind in holds if kind not in held)
        lost = tuple(kind for kind in held if kind not in holds)
        return write("status", {"metadata": _guard(stored), "status": patch}, gained, lost, tuple(events))

    def label(self, stored: JsonObject, name: str) -> WorkloadWrite:
        """What gives a stored Workload a label with the value `true`."""
        metadata: JsonObject = {**_guard(stored), "labels": {name: "true"}}
        return self._next_write(stored)("", {"metadata": metadata})

    def _next_write(self, stored: JsonObject) -> Callable[..., WorkloadWrite]:
        _, namespace, name = key_of(stored)
        self._n_writes += 1
        return partial(WorkloadWrite, namespace, name, text_at(stored, "metadata", "uid"), self._n_writes)

    def after_job(self, stored: JsonObject, told: JobReport, at: int) -> WorkloadState:
        """What a stored Workload is after what its job has done; nobody else hears of it before that is written."""
        _, namespace, name = key_of(stored)

        def act(engine: Engine) -> None:
            if told.are_ready is not None:
                engine.note_readiness(name, namespace=namespace, now=at, are_ready=told.are_ready)
            if told.stopped:
                engine.release(name, namespace=namespace, now=at)
            if told.finished is not None:
                reason, message = told.finished
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


def _guard(stored: JsonObject) -> JsonObject:
    """Others may be quicker; then a write is refused."""
    metadata = object_at(stored, "metadata")
    return {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
