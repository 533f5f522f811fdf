"""The smallest case that still shows a difference, without events, objects, fields and settings that it can lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kueuecore._json import JsonObject, object_at
from kueuecore.dumps.smaller import simpler, without_parts
from kueuecore.releases import Release
from kueuecore.shrinking import smallest_by
from tests.judge.gates import settled
from tests.judge.stored import stored
from tests.judge.whole import is_whole

__all__ = ["smallest_case"]

Case = dict[str, Any]
# How a job goes, if nothing is said of it. Readiness has no such default.
_JOB = ("runSeconds", "lingerSeconds", "failSeconds", "recoverSeconds")
# How the run is played, rather than what is in it.
_RUN = ("now", "cycleStepMs", "maxCycles", "quietCycles")


def smallest_case(case: Case, shows: Callable[[Case], bool], *, max_tries: int) -> Case:
    """Return the smallest case found that still shows what this one does.

    Args:
        case: A case that shows it.
        shows: Whether another case does.
        max_tries: The most cases to try.
    """
    return smallest_by(case, _candidates, lambda entry: is_whole(entry) and shows(entry), max_tries=max_tries)


def _candidates(current: Callable[[], Case]) -> Iterator[Case]:
    for events in without_parts(lambda: current()["input"]["events"]):
        yield _with_events(current(), list(events))
    for objects in without_parts(lambda: current()["objects"]):
        yield {**current(), "objects": list(objects)}
    for gates in simpler(current()["featureGates"]):
        # Kueue does not start with a gate on whose needs are off.
        if (fewer := settled(gates, Release.named(current()["kueue"]))) != current()["featureGates"]:
            yield {**current(), "featureGates": fewer}
    # Parts of a setting have defaults, which a played run does not get.
    for name in [entry for entry in current()["config"] if entry not in _RUN]:
        yield {**current(), "config": {key: entry for key, entry in current()["config"].items() if key != name}}
    yield from _simpler_objects(current)
    yield from _simpler_events(current)


def _simpler_objects(current: Callable[[], Case]) -> Iterator[Case]:
    for index in range(len(current()["objects"])):
        before = None
        while current()["objects"][index] is not before:
            before = current()["objects"][index]
            for less in _simpler_object(before):
                objects = list(current()["objects"])
                objects[index] = less
                yield {**current(), "objects": objects}
                if current()["objects"][index] is less:
                    break


def _simpler_events(current: Callable[[], Case]) -> Iterator[Case]:
    for index in range(len(current()["input"]["events"])):
        before = None
        while current()["input"]["events"][index] is not before:
            before = current()["input"]["events"][index]
            for less in _simpler_event(before):
                events = list(current()["input"]["events"])
                events[index] = less
                yield _with_events(current(), events)
                if current()["input"]["events"][index] is less:
                    break


def _simpler_event(event: JsonObject) -> Iterator[JsonObject]:
    for name in _JOB:
        if name in event:
            yield {key: entry for key, entry in event.items() if key != name}
    for less in _simpler_object(object_at(event, "object")):
        yield {**event, "object": less}


def _simpler_object(thing: JsonObject) -> Iterator[JsonObject]:
    """Simplify spec, status, labels and annotations; defaults come back, and times and UIDs stay: they decide ties."""
    for part in ("status", "spec"):
        for less in simpler(object_at(thing, part)):
            candidate = stored({**thing, part: less})
            if candidate != thing:
                yield candidate
    metadata = object_at(thing, "metadata")
    for part in ("labels", "annotations"):
        for less in simpler(object_at(metadata, part)):
            yield {**thing, "metadata": {**metadata, part: less}}


def _with_events(case: Case, events: list[Any]) -> Case:
    return {**case, "input": {**case["input"], "events": events}}
