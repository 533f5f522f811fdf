"""Lists and watches over HTTP: where they break, and where they go on."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kueuecore._json import object_at, text_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.kubernetes import Api, LateKinds, News, UnansweredError, follow, list_all
from kueuecore.kubernetes.api import _object_in
from kueuecore_apiserver import Closing, Fault, FaultKind, HttpApiServer, Request, SeededFaults, refusal_of

KINDS = {
    "Namespace": ("v1", "namespaces"),
    "Node": ("v1", "nodes"),
    "Gadget": ("example.com/v1", "gadgets"),
}


class Patient(LateKinds):
    """Notes for how long it is asked to wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, pause_ns: int, *, for_kinds: bool) -> None:
        self.pauses.append(pause_ns / 10**9)


@pytest.fixture
def server() -> Iterator[HttpApiServer]:
    with HttpApiServer(ApiServer(), faults=idle) as it:
        yield it


def idle(request: Request) -> Fault | None:
    return Fault(watch_ends_when_idle=True) if request.verb == "watch" else None


def namespace(server: HttpApiServer, name: str) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    server.call(lambda api: api.create(made))


def names(news: News | None) -> list[str] | str | None:
    if news is None:
        return None
    if news.listed is not None:
        return [text_at(object_, "metadata", "name") for object_ in news.listed]
    return f"{news.event['type']} {text_at(news.event, 'object', 'metadata', 'name')}"


def until_quiet(feed: Iterator[News | None]) -> list[Any]:
    return [names(news) for news in itertools.takewhile(lambda news: news is not None, feed)]


def test_a_list_then_what_happens(server: HttpApiServer) -> None:
    namespace(server, "a")
    api = Api.connect(server=server.url, kinds=KINDS)
    feed = follow(api, "Namespace", late=Patient())
    first = until_quiet(feed)
    namespace(server, "b")
    assert [row for row in first if isinstance(row, list) or not row.startswith("BOOKMARK")] == [["a"]]
    assert [row for row in until_quiet(feed) if not row.startswith("BOOKMARK")] == ["ADDED b"]


def test_a_list_comes_in_pages(server: HttpApiServer) -> None:
    for number in range(1203):
        namespace(server, f"n{number:04}")
    objects, version = list_all(Api.connect(server=server.url, kinds=KINDS), "Namespace")
    assert (len(objects), version) == (1203, str(server.api.version))
    assert len([request for request in server.requests if request.verb == "list"]) == 3


def test_a_watch_that_is_too_old_lists_again(server: HttpApiServer) -> None:
    namespace(server, "a")
    feed = follow(Api.connect(server=server.url, kinds=KINDS), "Namespace", late=Patient())
    until_quiet(feed)
    namespace(server, "b")
    server.compact()
    assert until_quiet(feed)[0] == ["a", "b"]


@pytest.mark.parametrize(
    "kind", [entry for entry in FaultKind if entry not in (FaultKind.CONFLICT, FaultKind.CLOSED_AFTER)]
)
def test_whatever_breaks_everything_is_heard_of(kind: FaultKind) -> None:
    drawn = SeededFaults(seed=7, rates={kind: 0.4}, slow_seconds=0.001)

    def faults(request: Request) -> Fault | None:
        fault = drawn(request)
        return replace(fault or Fault(), watch_ends_when_idle=True) if request.verb == "watch" else fault

    with HttpApiServer(ApiServer(), faults=faults) as server:
        late = Patient()
        feed = follow(Api.connect(server=server.url, kinds=KINDS), "Namespace", is_needed=True, late=late)
        heard: set[str] = set()
        for number in range(25):
            namespace(server, f"n{number}")
            for row in until_quiet(feed):
                heard |= {*row} if isinstance(row, list) else {row.rpartition(" ")[2]}
        for index in itertools.chain.from_iterable(until_quiet(feed) for _ in range(40)):
            heard |= {*index} if isinstance(index, list) else {index.rpartition(" ")[2]}
        assert heard - {""} == {f"n{number}" for number in range(25)}
        assert drawn.n_drawn[kind] > 3


def test_pauses_grow_and_end_with_the_faults() -> None:
    is_well = False

    def faults(request: Request) -> Fault | None:
        return idle(request) if is_well else Fault(refusal=refusal_of(500))

    with HttpApiServer(ApiServer(), faults=faults) as server:
        late = Patient()
        reported: list[tuple[str, str]] = []
        api = Api.connect(server=server.url, kinds=KINDS)
        feed = follow(api, "Namespace", late=late, fault=lambda kind, error: reported.append((kind, str(error)[:22])))
        assert [next(feed) for _ in range(12)] == [None] * 12
        is_well = True
        assert until_quiet(feed)[0] == []
        assert late.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0, 60.0, 60.0]
        assert reported == [*[("Namespace", "Internal error occurre")] * 12, ("Namespace", "None")]


def test_the_server_says_how_long_to_wait() -> None:
    def faults(_: Request) -> Fault:
        return Fault(refusal=refusal_of(429), retry_after_seconds=9)

    with HttpApiServer(ApiServer(), faults=faults) as server:
        late = Patient()
        feed = follow(Api.connect(server=server.url, kinds=KINDS), "Namespace", late=late)
        assert (next(feed), next(feed)) == (None, None)
        assert late.pauses == [9.0]


def test_a_kind_that_is_not_there_is_empty_once_that_is_sure_and_found_when_it_comes(server: HttpApiServer) -> None:
    late = Patient()
    faults: list[Exception | None] = []
    api = Api.connect(server=server.url, kinds=KINDS)
    feed = follow(api, "Gadget", late=late, fault=lambda _, error: faults.append(error))
    assert [names(next(feed)) for _ in range(4)] == [None, None, [], None]
    assert faults == [None]
    names_ = {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "names": names_, "scope": "Cluster", "versions": [version]},
    }
    server.load([definition, {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "one"}}])
    assert ["one"] in until_quiet(feed)


def test_a_kind_that_is_needed_is_never_taken_for_empty(server: HttpApiServer) -> None:
    late = Patient()
    feed = follow(Api.connect(server=server.url, kinds=KINDS), "Gadget", is_needed=True, late=late)
    assert [next(feed) for _ in range(8)] == [None] * 8


def test_heartbeats_of_nodes_are_left_out(server: HttpApiServer) -> None:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [ready]}}
    server.call(lambda api: api.create(node))
    feed = follow(Api.connect(server=server.url, kinds=KINDS), "Node", late=Patient())
    until_quiet(feed)

    def beat(at: str, status: str) -> None:
        condition = {**ready, "lastHeartbeatTime": at, "status": status}
        server.call(lambda api: api.patch("Node", "n", {"status": {"conditions": [condition]}}, subresource="status"))

    beat("2026-01-01T00:00:10Z", "True")
    assert [row for row in until_quiet(feed) if not row.startswith("BOOKMARK")] == []
    beat("2026-01-01T00:00:20Z", "False")
    assert [row for row in until_quiet(feed) if not row.startswith("BOOKMARK")] == ["MODIFIED n"]


def test_a_write_is_sent_once_and_says_who_writes(server: HttpApiServer) -> None:
    api = Api.connect(server=server.url, kinds=KINDS)
    made = api.send("POST", api.path("Namespace"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    stored = server.call(lambda api: api.get("Namespace", "a"))
    (entry,) = stored["metadata"]["managedFields"]
    assert (entry["manager"], "managedFields" in object_at(made, "metadata")) == ("kueuecore", False)
    server.faults = lambda _: Fault(closing=Closing.AFTER)
    with pytest.raises(UnansweredError):
        api.send("POST", api.path("Namespace"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}})
    assert [request.verb for request in server.requests] == ["create", "create"]
    assert all(request.user_agent.startswith("kueuecore/") for request in server.requests)
    assert server.call(lambda api: api.find("Namespace", "b")) is not None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type":"ADDED","object":{"kind":"Namespace"}}\n', b'{"kind":"Namespace"}'),
        (b'{"type":"MODIFIED","object":{"object":{"type":"a"}}}', b'{"object":{"type":"a"}}'),
        (b'{"object":{"kind":"Namespace"},"type":"ADDED"}', b""),
        (b'{"type":"ADDED","object":{"kind":"Namespace"},"more":1}', b""),
        (b'{"type": "ADDED", "object": {"kind": "Namespace"}}', b' {"kind": "Namespace"}'),
        (b'{"type":{"object":{}},"object":{}}', b""),
    ],
)
def test_the_json_of_an_object_is_the_end_of_its_line(line: bytes, expected: bytes) -> None:
    assert _object_in(line, json.loads(line)) == expected


def test_a_kind_that_is_absent_stays_so_while_the_server_cannot_be_asked() -> None:
    answers = itertools.chain([404] * 3, [0] * 4, [404] * 4)
    faults: list[str] = []

    class Down(Api):
        def get(self, path: str, query: Any = None) -> Any:
            code = next(answers)
            if not code:
                raise UnansweredError("no answer")
            raise RefusedError(code, "the server could not find the requested resource")

    api = Down.connect(server="http://127.0.0.1:1", kinds=KINDS)
    late = Patient()
    feed = follow(api, "Gadget", late=late, fault=lambda _, error: faults.append("" if error is None else str(error)))
    seen = [news for _, news in zip(range(12), feed, strict=False)]
    # The empty list comes once, and nobody is told of a fault.
    assert [names(news) for news in seen if news is not None] == [[]]
    assert set(faults) == {""}


def test_all_wait_no_longer_once_one_kind_is_watched_again() -> None:
    late = LateKinds()
    begin = time.monotonic()
    waiting = threading.Thread(target=lambda: late.wait(60 * 10**9, for_kinds=False))
    waiting.start()
    while waiting.is_alive() and time.monotonic() - begin < 30:
        late.recovered()
        waiting.join(0.01)
    assert not waiting.is_alive()
