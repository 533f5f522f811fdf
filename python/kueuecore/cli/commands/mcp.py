"""`kueuecore mcp`: answers the questions of agents, as a server of the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore._text import quoted
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.state_file import add_state
from kueuecore.cli.state_source import source_of
from kueuecore.cli.streams import to_stderr
from kueuecore.errors import ManifestError
from kueuecore.times import duration_ns

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Answers agents over the Model Context Protocol: explain, unblock, what-if, eta, history, check and upgrade,
and pages of queues and waiting workloads, as tools. Nothing is written to the cluster. By default it talks
to the client that started it over standard input and output; with --http it listens on this machine only
and asks for a bearer token: from KUEUECORE_MCP_TOKEN or --token-file, or a new one, which it prints.
Needs the extra `mcp`. docs/agents.md says how to connect agents."""

EXAMPLES = """\
  kueuecore mcp                               the cluster of the current context
  kueuecore mcp dump.yaml --trusted           a dump
  kueuecore mcp --context prod --http         over HTTP on port 8484
"""

_PORT = 8484
_TOKEN = "KUEUECORE_MCP_TOKEN"
_MIN_TOKEN = 16
_MIN_BYTES = 5000
_MAX_SECONDS = 3600.0


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_state(add)
    serving = add.add_argument_group("server")
    help_text = f"listen on this port of 127.0.0.1 instead of standard input; {_PORT} without PORT; 0: any free one"
    serving.add_argument("--http", metavar="PORT", nargs="?", type=_port, const=_PORT, help=help_text)
    help_text = f"the bearer token of --http; by default that of {_TOKEN}, or a new one, which is printed"
    serving.add_argument("--token-file", metavar="FILE", type=Path, help=help_text)
    limits = add.add_argument_group("limits of a call")
    help_text = "how long it may take; by default 30s"
    limits.add_argument("--timeout", metavar="DURATION", type=_seconds, default=30.0, help=help_text)
    help_text = "how large an answer may be; larger ones are cut at whole rows; by default 50000"
    limits.add_argument("--max-bytes", metavar="N", type=_bytes, default=50_000, help=help_text)
    add.add_argument("-q", "--quiet", action="store_true", help="no notes and warnings on stderr")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore mcp`; returns the exit code.

    Raises:
        ManifestError: The extra `mcp` is not installed, or the state or the token cannot be read.
    """
    try:
        import mcp
        import uvicorn
    except ImportError:
        raise ManifestError.of("this needs the extra `mcp`", remedy="pip install 'kueuecore[mcp]'") from None
    del mcp, uvicorn
    from kueuecore.agents import Limits, serve_stdio, server_of

    if options.http is None and options.token_file is not None:
        raise ManifestError.of("--token-file is for --http", remedy="add --http, or leave it out")
    if options.http is None and "-" in options.paths:
        raise ManifestError.of("standard input is the connection to the client", remedy="give the state in a file")
    source = source_of(options)
    server = server_of(source, Limits(seconds=options.timeout, most_bytes=options.max_bytes))
    try:
        if options.http is not None:
            return _serve_http(server, options)
        serve_stdio(server)
        return ExitCode.OK
    finally:
        source.close()


def _serve_http(server: Server[object], options: argparse.Namespace) -> ExitCode:
    from kueuecore.agents import serve_http

    token, is_new = _token(options.token_file)

    def started(address: str) -> None:
        to_stderr(f"kueuecore mcp: listening on {address}", *([f"token: {token}"] if is_new else []))

    try:
        serve_http(server, port=options.http, token=token, started=started)
    except OSError as error:
        to_stderr(f"kueuecore mcp: cannot listen on port {options.http}: {error.strerror or error}")
        return ExitCode.UNAVAILABLE
    return ExitCode.OK


def _token(file: Path | None) -> tuple[str, bool]:
    """Return the bearer token, and whether it is a new one.

    Raises:
        ManifestError: It cannot be read, or is easy to guess.
    """
    place = str(file) if file is not None else _TOKEN
    try:
        token = file.read_text(encoding="utf-8").strip() if file is not None else os.environ.get(_TOKEN, "").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ManifestError.of(f"cannot read the token: {reason}", file=place, remedy="check --token-file") from None
    if not token and file is None:
        import secrets

        return secrets.token_urlsafe(), True
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        message = f"a token has at least {_MIN_TOKEN} characters of ASCII, and no blanks"
        raise ManifestError.of(message, file=place, remedy="write one with: openssl rand -hex 32")
    return token, False


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a port from 0 to 65535; a STATE comes before --http")
    return int(text)


def _bytes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) >= _MIN_BYTES):
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a number of bytes from {_MIN_BYTES}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = duration_ns(text) / 1e9
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not 0 < seconds <= _MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a duration above 0 and up to 1h")
    return seconds
