"""A whole process against servers that lie, forbid and talk nonsense: it goes on, and says what is wrong."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonObject
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, Process, decider
from kueuecore_apiserver import Fault, Request
from tests.unit.kubernetes.clusters import job, served, started, wait_for
from tests.unit.kubernetes.hostile import Answer, Asked, hostile, lines, listing
from tests.unit.kubernetes.test_process import running

FORBIDDEN = RefusedError(403, "limitranges is forbidden: nobody may list them", reason="Forbidden")
NONSENSE: list[JsonObject] = [
    {},
    {"kind": "Status", "status": "Success"},
    {"kind": "Workload", "apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "other", "namespace": "lab"}},
    {"kind": "Workload", "apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": 5},
]


def test_answers_that_are_about_nothing_of_the_kind_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decider, "_ASKS_AFTER_SECONDS", 0.01)
    n_answers: Counter[tuple[str, str]] = Counter()

    class LyingApi(Api):
        def send(self, method: str, path: str, body: JsonObject | None = None, **options: Any) -> JsonObject:
            answer = super().send(method, path, body, **options)
            n_answers[method, path] += 1
            n = n_answers[method, path]
            is_list = method == "GET" and "items" in answer
            return answer if is_list or n > len(NONSENSE) else NONSENSE[n - 1]

    with served() as server:
        process = Process(LyingApi.connect(server=server.url), configuration=Configuration())
        with running(process) as failures:
            server.load([job(f"j{n}") for n in range(4)])
            wait_for(lambda: len(started(server)) == 4, "all jobs start")
            wait_for(lambda: process.n_open == 0, "nothing is left to ask")
        assert not failures


def test_a_kind_that_may_not_be_listed_is_named_and_the_process_waits_for_it() -> None:
    is_forbidden = True

    def faults(request: Request) -> Fault | None:
        return Fault(refusal=FORBIDDEN) if is_forbidden and request.resource == "limitranges" else None

    with served(faults=faults) as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        server.load([job("j")])
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        wait_for(lambda: [*process.unready] == ["LimitRange"], "all else is listed")
        wait_for(lambda: "nobody may list them" in process.unready["LimitRange"], "it says why")
        assert started(server) == set()
        is_forbidden = False
        wait_for(lambda: started(server) == {"j"}, "it goes on once it may")
        assert process.unready == {}
        process.stop()
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b'{"items":[{}],"metadata":{"resourceVersion":"1"}}'])
def test_nonsense_is_not_asked_for_without_a_pause(body: bytes) -> None:
    def answer(it: Asked) -> Answer:
        return lines({"type": "ADDED"}) if it.is_watch else Answer(body)

    with hostile(answer) as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        ended: list[BaseException] = []

        def run() -> None:
            try:
                process.run()
            except BaseException as error:
                ended.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        time.sleep(0.7)
        process.stop()
        thread.join(10)
        # A list and a watch of each kind, and again after 0.2 and 0.4 s.
        assert max(Counter((asked.path, asked.is_watch) for asked in server.asked).values()) <= 4
        assert not ended


def test_objects_that_cannot_be_read_are_left_out_and_the_rest_is_decided_on() -> None:
    broken: list[Any] = [
        {},
        {"metadata": None},
        {"metadata": {"name": 5}},
        {"metadata": {"name": "x", "namespace": "lab", "resourceVersion": 7}},
        {"metadata": {"name": "y", "namespace": "lab", "labels": []}, "spec": "none"},
        {"metadata": {"name": "z", "namespace": "lab"}, "spec": {"template": [[[[]]]], "parallelism": "many"}},
        {"apiVersion": "batch/v9", "metadata": {"name": "v", "namespace": "lab"}, "spec": {}},
    ]

    class ForgingApi(Api):
        def get(self, path: str, query: Any = None) -> JsonObject:
            answer = super().get(path, query)
            if isinstance(items := answer.get("items"), list):
                items.extend(broken)
            return answer

    with served() as server:
        process = Process(ForgingApi.connect(server=server.url), configuration=Configuration())
        with running(process) as failures:
            server.load([job("j")])
            wait_for(lambda: started(server) == {"j"}, "the job starts")
        assert not failures


def test_a_continue_without_an_end_does_not_end_the_process() -> None:
    with hostile(lambda _: listing({"metadata": {"name": "a"}}, **{"continue": "x"})) as server:
        process = Process(Api.connect(server=server.url), configuration=Configuration())
        thread = threading.Thread(target=process.run, daemon=True)
        thread.start()
        wait_for(lambda: all("does not end" in name for name in process.unready.values()), "it says so of each kind")
        process.stop()
        thread.join(10)
        assert not thread.is_alive()
