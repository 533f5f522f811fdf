"""The requests of one reconcile: each for the object as the one before has left it."""

from __future__ import annotations

from typing import Any

from kueuecore._json import JsonObject
from kueuecore.controller import JobWork
from kueuecore.errors import ObjectRef
from kueuecore.jobs import JobEvent, requests_of
from kueuecore.kubernetes import Api
from kueuecore.kubernetes.decider import Decider
from kueuecore.kubernetes.requests import Sending
from kueuecore.writes import Verb, Write
from kueuecore_apiserver import Fault, HttpApiServer
from kueuecore_apiserver import Request as HttpRequest
from tests.unit.kubernetes.clusters import job, served

SUM = ObjectRef("Job", "sum", "lab")


def patched(stored: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """A job after a write of itself, and after one of its status that builds on it."""
    labelled = {**stored, "metadata": {**stored["metadata"], "labels": {"mine": "yes"}}}
    return labelled, {**labelled, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}}


def sent(server: HttpApiServer) -> str:
    """Make two writes of a job; returns how it went."""
    stored = server.api.get("Job", "sum", namespace="lab")
    first, second = patched(stored)
    writes = [Write(Verb.UPDATE, first), Write(Verb.UPDATE, second, "status")]
    work = JobWork(SUM, requests_of(writes, lambda _: stored), (), "")
    api = Api.connect(server=server.url, kinds={"Job": ("batch/v1", "jobs")})
    went: list[str] = []
    task = Sending(api, work.requests, lambda _, answer: went.append(answer.error))
    assert task() is None
    assert len(went) == 2
    return "failed" if went[-1] else "done"


def test_requests_for_one_object_build_on_each_other() -> None:
    with served() as server:
        server.load([job("sum")])
        assert sent(server) == "done"
        stored = server.api.get("Job", "sum", namespace="lab")
        assert (stored["metadata"]["labels"]["mine"], len(stored["status"]["conditions"])) == ("yes", 1)


def test_what_another_writes_between_two_requests_for_one_object_is_kept() -> None:
    """The second would have replaced all conditions by those of before, an eviction among them."""
    theirs = [{"type": "Theirs", "status": "True", "reason": "Seen", "message": ""}]

    def overtake(request: HttpRequest) -> Fault | None:
        if request.subresource == "status":
            server.api.patch("Job", "sum", {"status": {"conditions": theirs}}, namespace="lab", subresource="status")
        return None

    with served(faults=overtake) as server:
        server.load([job("sum")])
        assert sent(server) == "failed"
        assert server.requests[-1].code == 409
        assert server.api.get("Job", "sum", namespace="lab")["status"]["conditions"] == theirs


def test_a_write_that_changes_nothing_does_not_leave_the_next_without_a_version() -> None:
    stored: dict[str, Any] = {**job("sum"), "status": {}}
    stored["metadata"] = {**stored["metadata"], "uid": "u", "resourceVersion": "7"}
    changed = {**stored, "status": {"active": 1}}
    (request,) = requests_of([Write(Verb.UPDATE, stored), Write(Verb.UPDATE, changed, "status")], lambda _: stored)
    assert (request.manifest["status"], request.preconditions) == ({"active": 1}, {"uid": "u", "resourceVersion": "7"})


def test_a_deletion_that_follows_names_the_version_too() -> None:
    request = Write(Verb.DELETE, {"kind": "Job", "metadata": {"name": "sum", "uid": "u"}})
    stored: dict[str, Any] = {"metadata": {"resourceVersion": "8"}}
    assert request.following(stored).preconditions == {"uid": "u", "resourceVersion": "8"}


def test_a_look_at_a_job_that_needs_no_request_reports_nothing_later() -> None:
    """What is reported after the next look would be taken for the outcome of that one, and its failure be forgotten."""
    tasks: list[object] = []
    events: list[JsonObject] = []
    decider = Decider(
        Api.connect(server="http://127.0.0.1:1"),
        requests=lambda _, task, _stream: tasks.append(task),
        emit=lambda _, event: events.append(event),
        call=lambda call: call(),
        now=lambda: 10**18,
    )
    reported = JobEvent(job("sum"), "Normal", "FinishedWorkload", "Workload 'lab/sum' is declared finished")
    works = [JobWork(SUM, (), (reported,), "")]
    decider.jobs.take_due = lambda now: tuple(works)  # type: ignore[method-assign]
    decider.step()
    assert (tasks, [event["reason"] for event in events]) == ([], ["FinishedWorkload"])
