"""Open pages are told that the state has changed; slow answers come from threads, each question once."""

from __future__ import annotations

import asyncio
import http.client
import threading
import time
from collections.abc import Callable

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from kueuecore.ui.slow_answers import GoneError, SlowAnswers
from tests.unit.ui.pages import EXAMPLES, ChangingSource, Page, served, source_at


def stream(page: Page) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    connection.request("GET", "/events", headers={"cookie": page.cookie})
    return connection, connection.getresponse()


def data(answer: http.client.HTTPResponse) -> str:
    """The next event of a stream."""
    while True:
        line = answer.readline().decode().strip()
        if line.startswith("data: "):
            return line.removeprefix("data: ")


def test_a_change_is_told_to_every_page_once_it_can_be_shown() -> None:
    source = ChangingSource(source_at(str(EXAMPLES / "two-teams")), source_at(str(EXAMPLES / "topology")))
    with served(source) as page:
        (first, one), (second, two) = stream(page), stream(page)
        assert one.getheader("content-type", "").startswith("text/event-stream")
        assert (data(one), data(two)) == ("1", "1")
        assert "team-b" in page.get("/queues").text
        source.change()
        assert (data(one), data(two)) == ("2", "2")
        got = page.get("/queues").text
        assert 'data-version="2"' in got
        assert "training" in got
        first.close()
        source.change()
        assert data(two) == "3"
        second.close()
        late, answer = stream(page)
        assert data(answer) == "3", "a page that comes later starts with the newest version"
        late.close()
    # `served` has checked that the server ends with a stream open.


def test_the_server_ends_while_pages_are_open() -> None:
    source = ChangingSource(source_at(str(EXAMPLES / "two-teams")))
    begin = time.monotonic()
    with served(source) as page:
        connection, answer = stream(page)
        data(answer)
    assert time.monotonic() - begin < 10
    connection.close()


def test_files_do_not_change_and_are_not_followed() -> None:
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        text = page.get("/").text
        assert "data-version" not in text
        assert "Pause updates" not in text


def test_a_question_is_worked_out_once_however_often_it_is_asked() -> None:
    asked: list[str] = []
    may_go = threading.Event()

    def work() -> str:
        asked.append(threading.current_thread().name)
        may_go.wait(10)
        return f"answer {len(asked)}"

    async def ask() -> None:
        answers: SlowAnswers[str] = SlowAnswers(lambda answer: answer != "answer 2")
        both = [asyncio.create_task(answers.answer("q", work)) for _ in range(2)]
        await asyncio.sleep(0.05)
        both[0].cancel()
        may_go.set()
        assert await both[1] == "answer 1", "a reader who leaves does not take it away"
        assert await answers.answer("q", work) == "answer 1"
        # What is not kept is asked again.
        assert await answers.answer("other", work) == "answer 2"
        assert await answers.answer("other", work) == "answer 3"

    asyncio.run(ask())
    assert set(asked) == {"kueuecore-ui-answer"}


def test_what_nobody_waits_for_is_not_begun() -> None:
    asked: list[str] = []
    may_go = threading.Event()

    def work(name: str) -> Callable[[], str]:
        def answer() -> str:
            asked.append(name)
            may_go.wait(10)
            return f"answer to {name}"

        return answer

    async def gone() -> bool:
        return True

    async def ask() -> None:
        answers: SlowAnswers[str] = SlowAnswers(lambda _: True, at_once=1)
        first = asyncio.create_task(answers.answer("first", work("first")))
        await asyncio.sleep(0)
        with pytest.raises(GoneError):
            await answers.answer("second", work("second"), is_gone=gone)
        may_go.set()
        assert await first == "answer to first"
        assert await answers.answer("third", work("third")) == "answer to third"

    asyncio.run(ask())
    assert asked == ["first", "third"]


def test_a_failure_is_passed_on_and_not_kept() -> None:
    def fail() -> str:
        raise ValueError("no")

    async def ask() -> None:
        answers: SlowAnswers[str] = SlowAnswers(lambda _: True)
        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                await answers.answer("q", fail)
        assert await answers.answer("q", lambda: "yes") == "yes"

    asyncio.run(ask())
