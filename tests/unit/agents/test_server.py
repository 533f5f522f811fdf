"""The server over its transports: what a client of the SDK sees."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import anyio
import anyio.to_thread
import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError
from mcp_types import TextContent

from kueuecore.agents import Limits, server_of
from kueuecore.agents.tools import TOOLS
from kueuecore.cli import ExitCode, main
from kueuecore.cli.state_source import StateSource
from tests.unit.agents.connections import (
    EXAMPLES,
    Listening,
    asked,
    environment,
    http_client,
    listening,
    source,
    stdio,
)

TWO_TEAMS = str(EXAMPLES / "two-teams")
WAITING = "team-b/job-benchmark-86330"
QUESTIONS: dict[str, dict[str, Any]] = {
    "queues": {},
    "pending": {"limit": 2},
    "explain": {"workload": WAITING},
    "unblock": {"workload": WAITING, "only": ["Quota"]},
    "what_if": {"set": ["ClusterQueue/team-b:spec.resourceGroups[0].flavors[0].resources[0].nominalQuota=2"]},
    "eta": {"workloads": [WAITING], "run_seconds": ["1h"], "seeds": 2},
    "check": {},
    "compare_releases": {"from": "0.17"},
    "history": {"workload": WAITING},
}


def text_of(result: Any) -> str:
    first = result.content[0]
    assert isinstance(first, TextContent)
    return first.text


async def ask_every_tool(client: Client) -> dict[str, Any]:
    """List the tools, call each, and check what it answers against the schema that it publishes."""
    found = {}
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [tool.name for tool in TOOLS]
    for tool in tools:
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.destructive_hint) == (True, False)
        result = await client.call_tool(tool.name, QUESTIONS[tool.name])
        assert not result.is_error, text_of(result)
        assert tool.output_schema is not None
        Draft202012Validator(tool.output_schema).validate(result.structured_content)
        assert text_of(result).count("\n") == 2
        assert json.loads(result.content[1].text) == result.structured_content  # type: ignore[union-attr]
        found[tool.name] = result.structured_content
    return found


async def look_around(client: Client) -> None:
    """Read what is there besides tools, and ask in wrong ways."""
    assert client.server_info is not None
    assert client.server_info.name == "kueuecore"
    assert "call `explain`" in (client.instructions or "")
    chapters = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert chapters[1] == "kueuecore://rules/02"
    templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["kueuecore://rules/{chapter}/{section}"]
    read = (await client.read_resource("kueuecore://rules/02/2.2")).contents[0]
    assert read.text.startswith("### 2.2 Available")  # type: ignore[union-attr]
    wrong = await client.call_tool("explain", {"workload": "team-b/nobody"})
    assert wrong.is_error
    assert 'there is no workload "team-b/nobody"' in text_of(wrong)
    with pytest.raises(MCPError, match='there is no tool "apply"; there are queues, pending'):
        await client.call_tool("apply", {})
    with pytest.raises(MCPError, match="there is no resource"):
        await client.read_resource("kueuecore://rules/99")


# The handshake of earlier versions of the protocol, and that of the newest.
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_answers_over_stdio(mode: str) -> None:
    async def question() -> None:
        async with stdio(TWO_TEAMS, mode=mode) as client:
            found = await ask_every_tool(client)
            assert found["explain"]["would"] == "Waits"
            await look_around(client)

    asked(question)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_answers_over_http(mode: str) -> None:
    async def question() -> None:
        async with http_client(at, mode=mode) as client:
            await ask_every_tool(client)
            await look_around(client)

    with listening(TWO_TEAMS) as at:
        asked(question)


def status_of(at: Listening, *, token: str | None = None, **headers: str) -> int:
    """The status of a request that asks for the tools."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}
    sent = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"Authorization": f"Bearer {token}"} if token is not None else {}),
        **headers,
    }
    try:
        with urlopen(Request(at.url, data=json.dumps(body).encode(), headers=sent), timeout=20) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def test_http_needs_the_token_and_refuses_other_hosts_and_origins() -> None:
    with listening(TWO_TEAMS) as at:
        assert len(at.token) > 40
        assert at.url.startswith("http://127.0.0.1:")
        assert status_of(at, token=at.token) == 200
        assert status_of(at) == 401
        assert status_of(at, token=f"{at.token}x") == 401
        assert status_of(at, token="é") == 401
        port = at.url.split(":")[2].split("/")[0]
        assert status_of(at, token=at.token, Host="evil.example") == 421
        assert status_of(at, token=at.token, Host=f"evil.example:{port}") == 421
        assert status_of(at, token=at.token, Origin="http://evil.example") == 403
        assert status_of(at, token=at.token, Origin=f"http://localhost:{port}") == 200


def test_a_signal_ends_the_server_although_clients_are_connected() -> None:
    async def question() -> None:
        with suppress(BaseExceptionGroup, MCPError):
            async with http_client(at, mode="legacy") as client:
                await client.call_tool("queues", {})
                begin = time.monotonic()
                at.process.terminate()
                await anyio.to_thread.run_sync(at.process.wait, 10)
                assert time.monotonic() - begin < 9
                ended.append(at.process.returncode)

    ended: list[int | None] = []
    with listening(TWO_TEAMS) as at:
        asked(question)
    assert len(ended) == 1


def test_http_takes_a_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    with listening(TWO_TEAMS, "--token-file", str(file), KUEUECORE_MCP_TOKEN="not this one, file wins") as at:
        assert status_of(at, token="0123456789abcdef") == 200
        assert status_of(at, token="not this one, file wins") == 401
    with listening(TWO_TEAMS, KUEUECORE_MCP_TOKEN="fedcba9876543210") as at:
        assert status_of(at, token="fedcba9876543210") == 200


def test_a_limit_on_time_answers_with_what_to_do() -> None:
    async def question() -> None:
        async with stdio(TWO_TEAMS, "--timeout", "1ms") as client:
            late = await client.call_tool("unblock", QUESTIONS["unblock"])
            assert late.is_error
            assert text_of(late) == (
                "unblock has no answer within 0.001s, the limit of this server: "
                'name kinds with `only`, such as ["Quota"], or give fewer `tries`'
            )
            assert (await client.list_tools()).tools

    asked(question)


def test_a_limit_on_size_cuts_rows_over_the_wire() -> None:
    async def question() -> None:
        async with stdio(str(EXAMPLES / "upgrade"), "--max-bytes", "5000") as client:
            found = await client.call_tool("compare_releases", {"from": "0.16"})
            assert not found.is_error
            assert len(json.dumps(found.structured_content, separators=(",", ":"))) <= 5000
            assert found.structured_content["about"]["left"]
            assert "left out, as the answer would be too large" in text_of(found)

    asked(question)


class Slow:
    """A state that takes its time."""

    def __init__(self, of: StateSource, gate: threading.Event) -> None:
        self._of = of
        self._gate = gate
        self.n_reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)

    def state(self, named: str = "") -> Any:
        self.n_reads += 1
        self._gate.wait(20)
        return self._of.state(named)


def test_a_slow_call_blocks_neither_the_others_nor_the_end() -> None:
    gate = threading.Event()
    slow = Slow(source(TWO_TEAMS), gate)
    server = server_of(slow, Limits(seconds=2, most_at_once=2))

    async def question() -> None:
        async with Client(server) as client:
            late: list[Any] = []

            async def call() -> None:
                late.append(await client.call_tool("queues", {}))

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(call)
                await anyio.sleep(0.1)
                assert len((await client.list_tools()).tools) == len(TOOLS)
                assert late == []
            assert [text_of(result) for result in late] == [
                "queues has no answer within 2s, the limit of this server: start the server with a longer --timeout"
            ] * 3
            # The third never got a thread: two are still at work.
            assert slow.n_reads == 2
            gate.set()
            with anyio.fail_after(30):
                while (await client.call_tool("queues", {})).is_error:
                    await anyio.sleep(0.05)

    try:
        asked(question)
    finally:
        gate.set()


def test_calls_at_the_same_time_get_their_own_answers() -> None:
    of = source(TWO_TEAMS)
    names = [workload.key for workload in of.state().engine.workloads()]

    async def answers(client: Client, names: Iterable[str], *, at_once: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}

        async def call(name: str, tool: str, given: dict[str, Any]) -> None:
            found[f"{tool} {name}"] = (await client.call_tool(tool, given)).structured_content

        edit = "ClusterQueue/team-b:spec.resourceGroups[0].flavors[0].resources[0].nominalQuota=2"
        async with anyio.create_task_group() as group:
            for name in names:
                for tool, given in (
                    ("explain", {"workload": name}),
                    ("unblock", {"workload": name}),
                    ("what_if", {"set": [edit], "delete": [f"Workload/{name}"]}),
                    ("pending", {}),
                ):
                    if at_once:
                        group.start_soon(call, name, tool, given)
                    else:
                        await call(name, tool, given)
        return found

    async def question() -> None:
        async with Client(server_of(of, Limits(most_at_once=8))) as client:
            alone = await answers(client, names, at_once=False)
            assert await answers(client, names, at_once=True) == alone
            assert len(alone) == 4 * len(names)

    asked(question)


def test_a_cluster_is_read_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kubernetes")
    # What was listed is kept there for the next question.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    from tests.unit.kubernetes.clusters import served

    requests = {"cpu": "9"}
    containers = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"restartPolicy": "Never", "containers": containers}}}
    workload = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"name": "big", "namespace": "lab"},
        "spec": {"queueName": "a", "podSets": [pod_set]},
    }
    changed = "ClusterQueue/a:spec.resourceGroups[0].flavors[0].resources[0].nominalQuota=20"
    questions = {
        **QUESTIONS,
        "explain": {"workload": "big"},
        "unblock": {"workload": "lab/big"},
        "history": {"workload": "lab/big"},
        "what_if": {"set": [changed], "settle": True},
        "eta": {"workloads": ["lab/big"], "run_seconds": ["1h"], "arrivals": "none", "seeds": 2},
    }

    with served(cpus=2) as server:
        server.call(lambda api: api.create(workload))
        n_before = len(server.requests)

        async def question() -> None:
            async with stdio("--server", server.url) as client:
                for name in QUESTIONS:
                    result = await client.call_tool(name, questions[name])
                    assert not result.is_error, text_of(result)
                moved = (await client.call_tool("what_if", questions["what_if"])).structured_content
                assert [move["workload"] for move in moved["settled"]["moves"]] == ["lab/big"]
                command = (await client.call_tool("explain", {"workload": "big"})).structured_content["about"][
                    "command"
                ]
                assert command == f"kueuecore explain --server {server.url} big -o json"
                assert (await client.call_tool("pending", {})).structured_content["total"] == 1
                server.call(lambda api: api.create({**workload, "metadata": {"name": "new", "namespace": "lab"}}))
                # The watch may be a moment behind.
                while (await client.call_tool("pending", {})).structured_content["total"] != 2:
                    await anyio.sleep(0.05)

        asked(question)
        asked_for = [request.method for request in server.requests][n_before:]
        assert len(asked_for) > 10
        assert set(asked_for) == {"GET"}


def test_an_unreachable_cluster_is_an_answer_and_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kubernetes")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    async def question() -> None:
        async with stdio("--server", "http://127.0.0.1:1") as client:
            found = await client.call_tool("queues", {})
            assert found.is_error
            assert "cannot be read" in text_of(found)
            assert (await client.list_tools()).tools

    asked(question)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mcp", TWO_TEAMS, "--timeout", "0s"], "'0s' is not a duration above 0"),
        (["mcp", TWO_TEAMS, "--timeout", "2h"], "is not a duration above 0 and up to 1h"),
        (["mcp", TWO_TEAMS, "--max-bytes", "10"], "is not a number of bytes from 5000"),
        (["mcp", TWO_TEAMS, "--http", "70000"], "is not a port from 0 to 65535"),
        (["mcp", TWO_TEAMS, "--token-file", "x"], "--token-file is for --http; add --http, or leave it out"),
        (["mcp", TWO_TEAMS, "--http", "0", "--token-file", "none"], "cannot read the token: No such file"),
        (["mcp", "missing.yaml"], "missing.yaml"),
        (["mcp", "-"], "standard input is the connection to the client; give the state in a file"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == ExitCode.BAD_INPUT
    assert message.replace("'", '"') in capsys.readouterr().err.replace("'", '"')


def test_a_port_in_use_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["mcp", TWO_TEAMS, "-q", "--http", str(port)]) == ExitCode.UNAVAILABLE
    assert f"kueuecore mcp: cannot listen on port {port}: Address already in use" in capsys.readouterr().err


def test_a_token_that_is_easy_to_guess_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUEUECORE_MCP_TOKEN", "secret")
    assert main(["mcp", TWO_TEAMS, "--http", "0"]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "KUEUECORE_MCP_TOKEN: a token has at least 16 characters" in said
    assert "secret" not in said


def test_without_the_extra_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", TWO_TEAMS]) == ExitCode.BAD_INPUT
    assert "pip install 'kueuecore[mcp]'" in capsys.readouterr().err


def test_the_server_ends_when_its_client_does_although_a_call_is_at_work() -> None:
    command = [sys.executable, "-m", "kueuecore", "mcp", TWO_TEAMS, "-q", "--timeout", "1m"]
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    assert started.stdin is not None
    assert started.stdout is not None
    started.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE}) + "\n")
    started.stdin.flush()
    assert json.loads(started.stdout.readline())["result"]["serverInfo"]["name"] == "kueuecore"
    call = {"name": "eta", "arguments": {"run_seconds": ["1h"], "seeds": 1000}}
    started.stdin.write(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}) + "\n")
    started.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}) + "\n")
    started.stdin.flush()
    time.sleep(0.5)
    begin = time.monotonic()
    _, said = started.communicate(timeout=30)
    assert started.returncode == 0, said
    # A forecast of a thousand futures takes longer.
    assert time.monotonic() - begin < 20
