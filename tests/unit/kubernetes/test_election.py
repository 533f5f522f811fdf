"""The election by Lease against servers that answer nonsense."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace

import pytest
from kubernetes.leaderelection import leaderelection

from kueuecore.kubernetes import Api, Election, LeaseSettings
from tests.unit.kubernetes.clusters import wait_for
from tests.unit.kubernetes.hostile import Answer, Asked, hostile

SETTINGS = LeaseSettings("lab", "one", "me", duration_seconds=15, deadline_seconds=10, retry_seconds=2)
NONSENSE = [
    Answer(),
    Answer(b"<html>"),
    Answer(b"[]"),
    Answer(b"{}"),
    Answer(b'{"kind":"Status"}'),
    Answer(b'{"spec":5}'),
    Answer(b'{"spec":{"renewTime":"soon"}}'),
    Answer(b'{"spec":{"holderIdentity":5,"leaseDurationSeconds":"long"}}'),
    Answer(b"\xff"),
    Answer(b"<html>", 404),
    Answer(b"", 302, {"Location": "http://elsewhere/"}),
    Answer(b"", 500),
]


def test_nonsense_is_no_answer_and_the_lease_is_won_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hurried = SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.002))
    monkeypatch.setattr(leaderelection, "time", hurried)
    left = iter(NONSENSE)
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one", "namespace": "lab"}}

    def answer(it: Asked) -> Answer:
        if it.method != "GET":
            return Answer(b"", 409) if next(left, None) else Answer(json.dumps(lease).encode())
        return next(left, Answer(json.dumps(lease).encode()))

    with hostile(answer) as server:
        won, lost = threading.Event(), list[BaseException]()
        election = Election(Api.connect(server=server.url), SETTINGS, won=won.set, lost=lost.append)
        election.start()
        wait_for(lambda: won.is_set() or bool(lost), "it is over")
        election.release()
    assert (won.is_set(), lost) == (True, [])
    assert next(left, None) is None


def test_a_lease_that_cannot_be_written_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hurried = SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.002))
    monkeypatch.setattr(leaderelection, "time", hurried)
    missing = {"kind": "Status", "code": 404, "reason": "NotFound", "message": 'namespaces "lab" not found'}
    with hostile(lambda _: Answer(json.dumps(missing).encode(), 404)) as server:
        election = Election(Api.connect(server=server.url), SETTINGS, won=lambda: None, lost=lambda _: None)
        election.start()
        wait_for(lambda: len(server.asked) > 10, "it goes on trying")
        election.release()
    (record,) = [record for record in caplog.records if record.message == "the lease cannot be used, is tried again"]
    assert vars(record)["lease"] == "lab/one"
    assert 'namespaces \\"lab\\" not found' in vars(record)["error"]


def test_settings_that_the_election_does_not_take_end_it_with_the_reason() -> None:
    lost: list[BaseException] = []
    settings = LeaseSettings("lab", "one", "me", duration_seconds=5, deadline_seconds=10, retry_seconds=2)
    Election(Api.connect(server="http://127.0.0.1:1"), settings, won=lambda: None, lost=lost.append).start()
    wait_for(lambda: bool(lost), "it ends")
    assert isinstance(lost[0], ValueError)
    assert "Lease lab/one: lease_duration must be greater than renew_deadline" in str(lost[0])
