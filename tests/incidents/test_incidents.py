"""Incidents that people reported: the answer names the cause, from files as from a cluster, and what helped helps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kueuecore._json import JsonObject, text_at
from kueuecore.api_server import ApiServer
from kueuecore.cli import ExitCode, main
from kueuecore.cli.commands import parsed
from kueuecore.cli.state_source import source_of
from kueuecore.times import nanoseconds
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds
from scripts.symptoms_page import PAGE, page
from tests.incidents.incident import Incident, incidents, lacks

INCIDENTS = list(incidents())
# Objects that have no time were there before all others.
START = "2026-03-02T00:00:00Z"
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Where a finding is, and what a problem begins with: a file, or a cluster.
PLACES = ("file", "line", "index")
PLACE = re.compile(r"^(?:[^ ]*\.yaml:\d+ \(document \d+\)|http://[^ ]*): ", re.MULTILINE)

# Commands about no workload in particular: what helped changes their answer.
ABOUT_ALL = ("check", "upgrade")

each = pytest.mark.parametrize("incident", INCIDENTS, ids=[incident.name for incident in INCIDENTS])


class Asked:
    """Puts the question of an incident to a state."""

    def __init__(self, incident: Incident, capsys: pytest.CaptureFixture[str]) -> None:
        self.incident, self._capsys = incident, capsys

    def __call__(self, *state: str, options: tuple[str, ...] = ()) -> tuple[str, str]:
        """Standard output and standard error of its command on a state."""
        command, *rest = self.incident.command
        code, out, problems = self.run(command, *state, *rest, *options)
        assert code == self.incident.code, problems
        return out, problems

    def document(self, *state: str) -> Any:
        """The answer as JSON; the problems that are printed if there is none."""
        out, problems = self(*state, options=("-o", "json", "-q"))
        return json.loads(out) if out else problems

    def run(self, command: str, *arguments: str) -> tuple[int, str, str]:
        """The exit code, standard output and standard error of a command at the time of the incident."""
        now = () if command == "check" else ("--now", self.incident.now)
        code = main([command, *arguments, *now])
        said = self._capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def asked(
    incident: Incident, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Asked:
    """Asks at the time of the incident, which is also that of a cluster, and keeps nothing of clusters."""
    at = nanoseconds(incident.now)
    monkeypatch.setattr("time.time_ns", lambda: at)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Asked(incident, capsys)


def comparable(value: Any) -> Any:
    """A document without what differs between a file and a cluster: UIDs, and where something is."""
    if isinstance(value, dict):
        return {key: comparable(entry) for key, entry in value.items() if key not in PLACES}
    if isinstance(value, list):
        return list(map(comparable, value))
    return PLACE.sub("", UID.sub("UID", value)) if isinstance(value, str) else value


def tool_of(incident: Incident) -> tuple[str, dict[str, Any]] | None:
    """The tool of the server for agents that answers what a command does, and its parameters; None if there is none."""
    command, *arguments = incident.command
    words = [argument for argument in arguments if not argument.startswith("-")]
    match command:
        case "explain" | "history" | "unblock":
            return command, {"workload": words[0]}
        case "check":
            return command, {}
        case "upgrade":
            given = dict(pairwise(arguments))
            return "compare_releases", {"from": given["--from"], "to": given["--to"]}
        case "eta":
            given = dict(pairwise(arguments))
            arrivals, seeds = given["--arrivals"], int(given["--seeds"])
            asked = {"workloads": words[:1], "run_seconds": [given["--run-seconds"]]}
            return command, asked | {"arrivals": arrivals, "seeds": seeds}
    return None


@cache
def schema_of(name: str, version: str) -> CrdSchema:
    """Compiled once, for the servers of all incidents."""
    return next(CrdSchema.of(crd, version) for crd in crds() if text_at(crd, "metadata", "name") == name)


@contextmanager
def cluster(objects: tuple[JsonObject, ...]) -> Iterator[HttpApiServer]:
    """A strict API server with these objects, each with the UID and time that it has."""
    uids = {
        (text_at(plain, "kind"), text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")): uid
        for plain in objects
        if (uid := text_at(plain, "metadata", "uid"))
    }
    server = HttpApiServer(
        ApiServer(), schemas=lambda crd, version: schema_of(text_at(crd, "metadata", "name"), version)
    )
    made_up = server.api.new_uid
    assert made_up is not None
    server.api.new_uid = lambda *key: uids.get(key) or made_up(*key)
    server.load(crds())
    for plain in objects:
        server.api.now = nanoseconds(text_at(plain, "metadata", "creationTimestamp") or START)
        server.load([plain])
    with server:
        yield server


def test_the_page_of_symptoms_is_what_make_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make symptoms-page`"


@each
def test_the_answer_names_the_cause(incident: Incident, asked: Asked) -> None:
    table, problems = asked(str(incident.path))
    # However wide the columns are.
    words = " ".join((table + problems).split())
    for said in incident.says:
        assert said in words, f"{said!r} is not in\n{table}{problems}"
    if incident.document:
        assert lacks(asked.document(str(incident.path)), incident.document) == ""


@each
def test_a_cluster_gives_the_same_answer_and_is_only_read(incident: Incident, asked: Asked) -> None:
    if incident.not_live:
        pytest.skip(incident.not_live)
    with cluster(incident.objects) as server:
        before = server.call(lambda api: api.version)
        found = asked.document("--server", server.url)
        assert {request.method for request in server.requests} == {"GET"}
        assert server.call(lambda api: api.version) == before
    assert comparable(found) == comparable(asked.document(str(incident.path)))


@each
def test_an_agent_gets_the_same_answer(incident: Incident, asked: Asked) -> None:
    agents = pytest.importorskip("kueuecore.agents")
    mcp, anyio = pytest.importorskip("mcp"), pytest.importorskip("anyio")
    if incident.not_live or not (question := tool_of(incident)):
        pytest.skip(incident.not_live or "no tool for this command")
    tool, parameters = question

    async def call(url: str) -> Any:
        options = parsed(["run", "-q", "--server", url])
        options.source = options.given = None
        source = source_of(options)
        try:
            with anyio.fail_after(60):
                async with mcp.Client(agents.server_of(source)) as client:
                    return await client.call_tool(tool, parameters)
        finally:
            # Else its watches would ask for a server that is gone, for as long as tests run.
            source.close()

    with cluster(incident.objects) as server:
        result = anyio.run(call, server.url)
        assert {request.method for request in server.requests} == {"GET"}
    said = result.content[0].text
    assert result.is_error is (incident.code == ExitCode.BAD_INPUT), said
    if result.is_error:
        assert all(text in said for text in incident.says), said
    else:
        assert lacks(result.structured_content, incident.document) == ""


@each
def test_what_helped_helps(incident: Incident, asked: Asked, tmp_path: Path) -> None:
    after = tmp_path / "after.json"
    after.write_text("\n---\n".join(map(json.dumps, incident.fix.apply(incident.objects))), encoding="utf-8")
    for path, is_after in ((incident.path, False), (after, True)):
        if incident.command[0] in ABOUT_ALL:
            found = json.loads(asked.run(incident.command[0], str(path), *incident.command[1:], "-o", "json")[1])
            assert (lacks(found, incident.document) != "") is is_after
        if incident.fix.then:
            _, out, problems = asked.run("run", str(path), "-o", "json")
            statuses = {
                f"{workload['namespace']}/{workload['name']}": workload["status"]
                for workload in json.loads(out or "{}").get("workloads", ())
            }
            then = {key: statuses.get(key) for key in incident.fix.then}
            assert (then == incident.fix.then) is is_after, problems or statuses


def test_files_hold_what_a_reader_needs() -> None:
    for incident in INCIDENTS:
        assert all((incident.subject, incident.symptom, incident.cause, incident.says)), incident.name
        assert incident.document or incident.code == ExitCode.BAD_INPUT, incident.name
        assert incident.fix.then or incident.command[0] in ABOUT_ALL, incident.name
