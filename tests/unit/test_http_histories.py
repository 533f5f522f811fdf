"""Over HTTP, whatever goes wrong: nothing is admitted twice, no quota leaks, and nobody is forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kueuecore._patches import patched
from kueuecore.api_server import RefusedError
from kueuecore.controller import JobWork
from kueuecore.kubernetes import Api, News, decider, follow, requests
from kueuecore.kubernetes.requests import Sending
from kueuecore.trials import http_replica
from kueuecore.trials.http_histories import FaultyHttpHistory, FaultyHttpNodeHistory
from kueuecore.trials.http_replica import HttpReplica
from kueuecore.writes import Answer, Write

# Shorter ones than `make fuzz-http` plays.
N_STEPS = {FaultyHttpHistory: 14, FaultyHttpNodeHistory: 20}
N_HISTORIES = {FaultyHttpHistory: 55, FaultyHttpNodeHistory: 40}
FAULTS = (
    *(f"requests {way}" for way in ("404", "409", "429", "500", "503", "cut off", "unheard", "overtaken")),
    *(f"reads {way}" for way in ("404", "429", "500", "503", "cut off")),
    *(f"watches {way}" for way in ("404", "500", "breaks", "ends", "gone")),
    *("dies before", "dies after", "requests held", "answers held"),
    *("crashes", "elections", "compactions", "kinds hidden"),
)


def play(kind: type[FaultyHttpHistory], part: int) -> Counter[str]:
    happened: Counter[str] = Counter()
    n_histories = N_HISTORIES[kind]
    for seed in range(part * n_histories, (part + 1) * n_histories):
        try:
            happened += kind(seed, n_steps=N_STEPS[kind]).play()
        except Exception as error:
            error.add_note(f"in history {seed}")
            raise
    return happened


@pytest.mark.parametrize("part", range(2))
def test_55_histories(part: int) -> None:
    happened = play(FaultyHttpHistory, part)
    assert {name: happened[name] for name in FAULTS if happened[name] <= 8} == {}
    assert min(happened[name] for name in ("reservations", "starts", "deaths", "evictions")) > 8


def test_40_histories_with_nodes() -> None:
    happened = play(FaultyHttpNodeHistory, 0)
    assert {name: happened[name] for name in FAULTS if happened[name] <= 8} == {}
    assert happened["releases"] > 100
    assert happened["nodes recorded as failed"] > 0
    assert happened["pods lost"] > 0


class BelievesInSilence(Sending):
    """What got no answer counts as accepted."""

    def _attempt(self, write: Write) -> Answer:
        answer = super()._attempt(write)
        if answer.is_accepted or answer.code or answer.object is None:
            return answer
        return Answer(patched(answer.object, write.manifest))


def test_a_write_without_an_answer_that_counts_as_accepted_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decider, "Sending", BelievesInSilence)
    assert is_noticed(first=45)


def test_a_refused_request_that_counts_as_done_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    request_done = decider.Decider._request_done

    def swallow(self: decider.Decider, work: JobWork, request: Write, answer: Answer) -> None:
        request_done(self, work, request if answer.is_accepted else work.requests[-1], Answer(answer.object))

    monkeypatch.setattr(decider.Decider, "_request_done", swallow)
    assert is_noticed()


def test_a_watch_that_goes_on_after_410_without_a_list_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_on(api: Api, kind: str, **named: Any) -> Iterator[News | None]:
        is_listed = False
        for news in follow(api, kind, **named):
            if news is not None and news.version:
                if is_listed:
                    continue  # as if it had gone on from the newest version
                is_listed = True
            yield news

    monkeypatch.setattr(http_replica, "follow", goes_on)
    assert is_noticed(first=2)


def test_a_leader_that_does_not_look_at_the_workloads_first_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpReplica, "lead", lambda self: None)
    assert is_noticed(first=132)


def test_who_takes_a_missing_kind_for_a_missing_object_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_gone(error: Exception) -> bool:
        return isinstance(error, RefusedError) and error.code == 404

    monkeypatch.setattr(requests, "is_gone", is_gone)
    assert is_noticed(first=1)


def is_noticed(*, first: int = 0) -> bool:
    """Does any history notice it? The first that did when this was written is played first."""
    for seed in (first, *range(200)):
        try:
            FaultyHttpHistory(seed, n_steps=28).play()
        except AssertionError:
            return True
    return False
