"""Events are counted, combined and dropped as client-go's recorder does it."""

from __future__ import annotations

from typing import Any

from kueuecore._events import event_manifest
from kueuecore.kubernetes import Api
from kueuecore.kubernetes.event_correlator import Correlated, EventCorrelator
from kueuecore.kubernetes.requests import Emission
from kueuecore.times import SECOND_NS
from tests.unit.kubernetes.clusters import KUEUE, served

MINUTE = 60 * SECOND_NS


def event(message: str = "m", *, name: str = "w", reason: str = "Pending", now: str = "t0") -> Any:
    about: Any = {"apiVersion": KUEUE, "kind": "Workload", "namespace": "lab", "name": name, "uid": f"u-{name}"}
    return event_manifest(about, type="Normal", reason=reason, message=message, now=now)


def test_the_same_event_is_counted_up() -> None:
    correlator = EventCorrelator()
    first = correlator.correlate(event(), now=1)
    second = correlator.correlate(event(now="t1"), now=2)
    assert first is not None
    assert second is not None
    assert (first.patch, first.event["count"]) == (None, 1)
    name = first.event["metadata"]["name"]  # type: ignore[index, call-overload]
    assert name == "w.1"
    metadata = {"name": name, "namespace": "lab"}
    assert second.patch == {"count": 2, "lastTimestamp": "t1", "message": "m", "metadata": metadata}
    assert second.event["firstTimestamp"] == "t0"


def test_other_reasons_and_objects_have_events_of_their_own() -> None:
    correlator = EventCorrelator()
    found = [correlator.correlate(entry, now=7) for entry in (event(), event(reason="Other"), event(name="v"))]
    assert [entry is not None and entry.patch for entry in found] == [None, None, None]
    assert len({entry.event["metadata"]["name"] for entry in found if entry}) == 3  # type: ignore[index, call-overload]


def test_similar_events_are_combined_from_the_tenth_on() -> None:
    correlator = EventCorrelator()
    found = [correlator.correlate(event(f"m{number}"), now=number) for number in range(12)]
    messages = [entry.event["message"] for entry in found if entry]
    assert messages == [
        *(f"m{number}" for number in range(9)),
        *(f"(combined from similar events): m{number}" for number in (9, 10, 11)),
    ]
    assert [entry.patch is not None for entry in found if entry] == [False] * 10 + [True] * 2


def test_after_ten_minutes_of_silence_events_are_no_longer_similar() -> None:
    correlator = EventCorrelator()
    for number in range(10):
        correlator.correlate(event(f"m{number}"), now=number)
    later = correlator.correlate(event("new"), now=11 * MINUTE)
    assert later is not None
    assert later.event["message"] == "new"


def test_an_object_has_25_events_at_once_and_then_one_in_five_minutes() -> None:
    correlator = EventCorrelator()
    found = [correlator.correlate(event(), now=number) for number in range(40)]
    assert sum(entry is not None for entry in found) == 25
    assert correlator.correlate(event(name="other"), now=40) is not None
    assert correlator.correlate(event(), now=4 * MINUTE) is None
    assert correlator.correlate(event(), now=5 * MINUTE + 40) is not None
    assert correlator.correlate(event(), now=5 * MINUTE + 41) is None


def test_what_is_long_unused_is_forgotten() -> None:
    correlator = EventCorrelator()
    correlator.correlate(event(name="first"), now=0)
    for number in range(4096):
        correlator.correlate(event(name=f"w{number}"), now=number)
    again = correlator.correlate(event(name="first"), now=5000)
    assert again is not None
    assert again.patch is None


def sent(api: Api, written: Correlated | None) -> None:
    assert written is not None
    emission = Emission(api, written)
    while emission() is not None:
        pass


def test_one_event_remains_on_the_server_and_one_that_it_forgot_is_created_again() -> None:
    correlator = EventCorrelator()
    with served() as server:
        api = Api.connect(server=server.url, kinds={"Event": ("v1", "events")})
        for number in range(3):
            sent(api, correlator.correlate(event(now="2026-01-01T00:00:00Z"), now=number))

        def stored() -> list[Any]:
            return server.call(lambda objects: objects.list("Event")[0])

        assert [(entry["count"], entry["reason"]) for entry in stored()] == [(3, "Pending")]
        server.call(lambda objects: objects.delete("Event", "w.1", namespace="lab"))
        sent(api, correlator.correlate(event(now="2026-01-01T00:00:09Z"), now=9))
        assert [(entry["count"], entry["firstTimestamp"]) for entry in stored()] == [(4, "2026-01-01T00:00:00Z")]
