"""The election by Lease against servers that answer nonsense."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from kubernetes.leaderelection import leaderelection

from kueuecore.kubernetes import Api, Election, LeaseLostError, LeaseSettings, Process
from kueuecore_apiserver import HttpApiServer
from tests.unit.kubernetes.clusters import job, served, wait_for
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


def taken(server: HttpApiServer, holder: str) -> None:
    """Another replica writes the Lease."""
    patch = {"spec": {"holderIdentity": holder}}
    server.call(lambda api: api.patch("Lease", "kueue", patch, namespace="kueue-system"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> LeaseSettings:
    hurried = SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.01))
    monkeypatch.setattr(leaderelection, "time", hurried)
    return LeaseSettings("kueue-system", "kueue", "me", duration_seconds=15, deadline_seconds=10, retry_seconds=2)


def test_a_leader_leaves_as_soon_as_it_reads_another_holder(quick: LeaseSettings) -> None:
    with served() as server:
        won, lost = threading.Event(), list[BaseException]()
        Election(Api.connect(server=server.url), quick, won=won.set, lost=lost.append).start()
        wait_for(won.is_set, "it leads")
        taken(server, "other")
        wait_for(lambda: bool(lost), "it leaves", seconds=5)
    assert isinstance(lost[0], LeaseLostError)
    assert str(lost[0]) == "Lease kueue-system/kueue is held by other"


class TestAfterAGap:
    @pytest.fixture
    def stopped(
        self, quick: LeaseSettings, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[tuple[HttpApiServer, Election]]:
        """A leader whose thread that renews the Lease does not run again, as in a process that was stopped."""
        with served() as server:
            won, asleep = threading.Event(), threading.Event()

            def sleep(_: float) -> None:
                asleep.set()
                threading.Event().wait()

            monkeypatch.setattr(leaderelection, "time", SimpleNamespace(time=time.time, sleep=sleep))
            election = Election(Api.connect(server=server.url), quick, won=won.set, lost=lambda _: None)
            election.start()
            wait_for(won.is_set, "it leads")
            # It renews the Lease once more before it sleeps.
            wait_for(asleep.is_set, "the thread stops")
            election.confirm()
            begin = time.monotonic()
            monkeypatch.setattr("kueuecore.kubernetes.election.time.monotonic", lambda: begin + 100)
            yield server, election
            monkeypatch.undo()

    def test_it_reads_the_lease_before_it_goes_on(self, stopped: tuple[HttpApiServer, Election]) -> None:
        server, election = stopped
        before = len(server.requests)
        election.confirm()
        assert [request.verb for request in list(server.requests)[before:]] == ["get", "update"]
        election.confirm()
        assert len(server.requests) == before + 2

    def test_it_does_not_go_on_if_another_has_taken_over(self, stopped: tuple[HttpApiServer, Election]) -> None:
        server, election = stopped
        taken(server, "other")
        with pytest.raises(LeaseLostError, match="is held by other"):
            election.confirm()


def test_a_process_that_cannot_confirm_its_lead_writes_nothing() -> None:
    def confirm() -> None:
        raise LeaseLostError("it is held by other")

    with served() as server:
        server.load([job("j")])
        process = Process(Api.connect(server=server.url), leads=False)
        thread = threading.Thread(target=lambda: process.lead(confirm=confirm))
        thread.start()
        with pytest.raises(LeaseLostError):
            process.run()
        thread.join()
        assert {request.method for request in server.requests if request.user_agent.startswith("kueuecore/")} == {"GET"}
