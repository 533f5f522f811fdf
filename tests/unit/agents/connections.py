"""Clients of `kueuecore mcp`, and states to ask about."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from kueuecore.cli.commands import parsed
from kueuecore.cli.state_source import StateSource, source_of

__all__ = ["EXAMPLES", "ROOT", "Listening", "asked", "closed", "http_client", "listening", "source", "stdio"]

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
SECONDS = 60.0
# The command of this checkout, wherever it was imported from.
_COMMAND = [sys.executable, "-m", "kueuecore", "mcp"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def asked(question: Callable[[], Awaitable[Any]]) -> Any:
    """Run an asynchronous test, which must not hang."""

    async def bounded() -> Any:
        with anyio.fail_after(SECONDS):
            return await question()

    return anyio.run(bounded)


@asynccontextmanager
async def stdio(*arguments: str, mode: str = "auto") -> AsyncIterator[Client]:
    """A client of a process of its own, over standard input and output."""
    started = StdioServerParameters(command=_COMMAND[0], args=[*_COMMAND[1:], *arguments], env=environment())
    async with Client(stdio_client(started), mode=mode) as client:
        yield client


class Listening(NamedTuple):
    """A process that serves HTTP."""

    url: str
    token: str
    process: subprocess.Popen[str]


@contextmanager
def listening(*arguments: str, **variables: str) -> Iterator[Listening]:
    """A process that serves HTTP on a free port."""
    command = [*_COMMAND, *arguments, "--http", "0"]
    started = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**environment(), **variables})
    assert started.stderr is not None
    try:
        said = ""
        while (address := re.search(r"listening on (\S+)\n", said)) is None:
            line = started.stderr.readline()
            assert line, said
            said += line
        token = variables.get("KUEUECORE_MCP_TOKEN", "")
        if not token:
            token = started.stderr.readline().removeprefix("token: ").strip()
        yield Listening(address[1], token, started)
    finally:
        started.terminate()
        started.wait(10)
        started.stderr.close()


@asynccontextmanager
async def http_client(at: Listening, *, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client over streamable HTTP."""
    sent = {"Authorization": f"Bearer {at.token}"} | headers
    async with (
        create_mcp_http_client(headers=sent) as http,
        Client(streamable_http_client(at.url, http_client=http), mode=mode) as client,
    ):
        yield client


def source(*arguments: str) -> StateSource:
    """The state that arguments of a command name."""
    options = parsed(["run", "-q", *arguments])
    options.source = options.given = None
    return source_of(options)


def closed(schema: Any) -> Any:
    """A schema that allows no fields beyond those that it names, so that a forgotten one is seen."""
    if isinstance(schema, list):
        return [closed(row) for row in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: closed(value) for name, value in schema.items()}
    return inner if "properties" not in schema else {"additionalProperties": False, **inner}
