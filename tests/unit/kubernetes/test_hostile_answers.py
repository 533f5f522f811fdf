"""A server, or a proxy before it, that answers what no API server answers: nothing ends, spins, or is believed."""

from __future__ import annotations

import gc
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, News, UnansweredError, api, follow, list_all, watches
from kueuecore.kubernetes.requests import pause_after
from tests.unit.kubernetes.hostile import Answer, Asked, hostile, lines, listing, of
from tests.unit.kubernetes.test_watches import Patient

KINDS = {"Namespace": ("v1", "namespaces")}
LAB = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "lab", "resourceVersion": "11"}}
DEEP = b'{"items":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.fixture(autouse=True, scope="module")
def _no_garbage() -> Iterator[None]:
    """Nothing is finalized where the deep nesting of an answer leaves it no stack."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize(("limit", "most"), [("_MOST_BYTES", 10), ("_WHOLE_SECONDS", -1.0)])
def test_an_answer_without_an_end_is_given_up(limit: str, most: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with hostile(lambda _: listing(LAB)) as server:
        connection = Api.connect(server=server.url, kinds=KINDS)
        assert connection.get("/api/v1/namespaces")["items"] == [LAB]
        monkeypatch.setattr(api, limit, most)
        with pytest.raises(UnansweredError, match=r"/api/v1/namespaces: the answer (has|takes) more than"):
            connection.get("/api/v1/namespaces")


def test_pages_without_an_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "_MOST_OBJECTS", 5)
    n_pages = itertools.count()
    with (
        hostile(lambda _: listing(LAB, **{"continue": str(next(n_pages))})) as server,
        pytest.raises(UnansweredError, match="the list does not end"),
    ):
        list_all(Api.connect(server=server.url, kinds=KINDS), "Namespace")


def pauses_of(answer: Callable[[Asked], Answer], *, n: int = 6) -> tuple[list[float], list[News], list[str]]:
    """What a watch of Namespaces waits for, hears and finds wrong until it has ended `n` times."""
    with hostile(answer) as server:
        late, faults = Patient(), []
        api = Api.connect(server=server.url, kinds=KINDS)
        feed = follow(api, "Namespace", late=late, fault=lambda _, error: faults.append(str(error)))
        heard: list[News] = []
        n_ends = 0
        for news in itertools.islice(feed, 200):
            if news is not None:
                heard.append(news)
            else:
                n_ends += 1
                if n_ends == n:
                    break
        return late.pauses, heard, faults


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>sign in</html>",
        b"null",
        b"[]",
        b"{}",
        b'{"kind":"Status","status":"Success","code":200}',
        b'{"items":[]}',
        b'{"metadata":{"resourceVersion":"5"}}',
        b'{"metadata":{"resourceVersion":5},"items":[]}',
        b'{"metadata":{"resourceVersion":"5"},"items":{}}',
        b'{"metadata":{"resourceVersion":"5"},"items":[null]}',
        b'{"metadata":{"resourceVersion":"5"},"items":[{"kind":"Pod"}]}',
        b'{"metadata":{"resourceVersion":"5"},"items":[{"value":NaN}]}',
        b'{"metadata":{"resourceVersion":"5"},"items":[{"value":"\\ud800"}]}',
        b'{"metadata":{"resourceVersion":"5"},"items":[{"value":"\xff"}]}',
        b'{"metadata":{"resourceVersion":"5"},"items":[',
        DEEP,
    ],
    ids=lambda entry: repr(entry[:60]),
)
def test_what_is_no_list_is_not_taken_for_an_empty_one(body: bytes) -> None:
    with hostile(lambda _: Answer(body)) as server, pytest.raises(UnansweredError, match="/api/v1/namespaces: "):
        list_all(Api.connect(server=server.url, kinds=KINDS), "Namespace")


def test_a_list_without_objects_may_say_null_and_begin_with_a_mark() -> None:
    body = b'\xef\xbb\xbf{"metadata":{"resourceVersion":"5"},"items":null}'
    with hostile(lambda _: Answer(body)) as server:
        assert list_all(Api.connect(server=server.url, kinds=KINDS), "Namespace") == ([], "5")


@pytest.mark.parametrize("items", [[], [LAB]])
def test_a_list_that_leads_to_itself_ends(items: list[Any]) -> None:
    with hostile(lambda _: listing(*items, **{"continue": "x"})) as server:
        with pytest.raises(UnansweredError, match="does not end"):
            list_all(Api.connect(server=server.url, kinds=KINDS), "Namespace")
        assert len(server.asked) <= 2


def test_a_page_that_is_too_old_begins_the_list_again_after_a_pause() -> None:
    def answer(it: Asked) -> Answer:
        return of({"kind": "Status", "code": 410}, 410) if "continue" in it.query else listing(LAB, **{"continue": "x"})

    pauses, heard, _ = pauses_of(answer, n=3)
    assert (pauses, heard) == ([0.2, 0.4], [])


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"type": "ADDED"},
        {"type": "SHOUTED", "object": LAB},
        {"type": 5, "object": LAB},
        {"type": "ADDED", "object": "lab"},
        {"type": "ADDED", "object": {**LAB, "kind": "Pod"}},
        {"type": "ADDED", "object": {"metadata": {"name": "lab"}}},
        {"type": "BOOKMARK"},
        {"type": "ERROR", "object": {"code": "many"}},
        {"type": "ERROR", "object": {"code": 403, "message": "no"}},
        b'{"type":"ADDED","object":{"kind":"Namespace"\n',
        b'{"type":"ADDED"',
        b"\xff\xfe\n",
        DEEP + b"\n",
    ],
    ids=lambda entry: repr(entry)[:60],
)
def test_what_is_no_event_ends_the_watch_with_a_pause_that_grows(event: Any) -> None:
    pauses, heard, faults = pauses_of(lambda entry: lines(event) if entry.is_watch else listing(LAB), n=5)
    assert pauses == [0.2, 0.4, 0.8, 1.6]
    assert all(news.listed == [LAB] for news in heard)
    assert len([fault for fault in faults if fault != "None"]) == 5


def test_a_server_whose_watches_are_always_too_old_is_listed_with_pauses() -> None:
    error = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    pauses, heard, _ = pauses_of(lambda entry: lines(error) if entry.is_watch else listing(LAB), n=4)
    assert pauses == [0.4, 0.8, 1.6]
    assert len(heard) == 5


def test_watches_that_end_at_once_are_begun_with_pauses_that_grow() -> None:
    pauses, _, _ = pauses_of(lambda entry: lines() if entry.is_watch else listing(LAB), n=8)
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_what_fails_again_and_again_from_one_version_is_listed_again() -> None:
    def answer(it: Asked) -> Answer:
        if it.is_watch:
            return Answer(b"no JSON\n") if it.query["resourceVersion"] == "10" else lines()
        n_lists.append(it)
        return listing(LAB, version=f"{9 + len(n_lists)}")

    n_lists: list[Asked] = []
    _, heard, _ = pauses_of(answer, n=6)
    assert len(heard) == len(n_lists) == 2


def test_large_objects_and_half_lines_are_read() -> None:
    large = {**LAB, "metadata": {**LAB["metadata"], "annotations": {"a": "x" * 3_000_000}}}  # type: ignore[dict-item]
    whole = json.dumps({"type": "ADDED", "object": large}).encode()
    _, heard, _ = pauses_of(lambda entry: lines(b"\n\n", whole) if entry.is_watch else listing(), n=1)
    assert [news.event.get("object") for news in heard] == [None, large]


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_redirects_are_not_followed_and_refused(code: int) -> None:
    with hostile(lambda _: of({"items": []}, code, Location="http://elsewhere/")) as server:
        api = Api.connect(server=server.url, kinds=KINDS)
        with pytest.raises(RefusedError, match=r"redirected to http://elsewhere/, which is not followed"):
            api.get("/api/v1/namespaces")
        assert len(server.asked) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"kind":"Pod"}', DEEP, b'{"kind":"Status","message":5}'])
def test_a_refusal_without_a_status_is_one(body: bytes) -> None:
    with hostile(lambda _: Answer(body, 503)) as server, pytest.raises(RefusedError) as raised:
        Api.connect(server=server.url, kinds=KINDS).get("/api/v1/namespaces")
    assert (raised.value.code, raised.value.reason) == (503, "ServiceUnavailable")
    assert str(raised.value).startswith("GET /api/v1/namespaces: 503")


@pytest.mark.parametrize("seconds", ["9" * 9, "9" * 5000, "-5", "soon", "٣"])
def test_nobody_is_made_to_wait_for_ever(seconds: str) -> None:
    answer = of({"kind": "Status", "details": {"retryAfterSeconds": 10**30}}, 429)
    headers = {"Retry-After": seconds} if seconds.isascii() else {}

    def refuse(_: Asked) -> Answer:
        return Answer(answer.body, 429, headers)

    pauses, _, _ = pauses_of(refuse, n=2)
    assert pauses == [600.0]
    with hostile(refuse) as server, pytest.raises(RefusedError) as raised:
        Api.connect(server=server.url, kinds=KINDS).get("/api/v1/namespaces")
    assert pause_after(1, raised.value) == 600.0


def test_a_name_does_not_lead_to_another_path() -> None:
    api = Api.connect(server="http://127.0.0.1:1", kinds=KINDS)
    assert api.path("Namespace", "", "a/../b?c#d", "status") == "/api/v1/namespaces/a%2F..%2Fb%3Fc%23d/status"


def test_a_refusal_that_passes_is_forgotten() -> None:
    codes = iter([401, 401, 200])

    def answer(it: Asked) -> Answer:
        return lines() if it.is_watch else of({**json.loads(listing(LAB).body)}, next(codes, 200))

    pauses, heard, faults = pauses_of(answer, n=3)
    assert (pauses[:2], heard[0].listed, faults[-1]) == ([0.2, 0.4], [LAB], "None")
