"""`kueuecore ui`: a page to look at a state in a browser."""

from __future__ import annotations

import argparse
import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.progress import ctrl_c_raises
from kueuecore.cli.state_file import add_state
from kueuecore.cli.state_source import source_of
from kueuecore.cli.streams import to_stderr, write
from kueuecore.errors import ManifestError

if TYPE_CHECKING:
    from kueuecore.ui.serving import PageServer
    from kueuecore.ui.timeline import Timeline

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Serves a page that shows a state in a browser: cohorts with their quotas, queues, workloads, why each
waits and what would admit it, nodes, and what would happen if something changed. It listens on
127.0.0.1 only, needs the token in the address that it prints, and changes nothing.
A YAML file of kind Scenario is run first, and shown step by step."""

EXAMPLES = """\
  kueuecore ui                                 the current cluster; the page follows it
  kueuecore ui dump.yaml --trusted --open
  kueuecore ui examples/scenario/scenario.yaml
"""

_SCENARIO = re.compile(rb"""^["']?kind["']?\s*:\s*["']?Scenario\b""", re.MULTILINE)
_READ_BYTES = 1024 * 1024
_MAX_PORT = 65535


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_state(add)
    page = add.add_argument_group("page")
    help_text = "the port to listen on; by default a free one"
    page.add_argument("--port", metavar="N", type=_port, default=0, help=help_text)
    page.add_argument("--open", action="store_true", help="open the page in a browser")
    page.add_argument("-q", "--quiet", action="store_true", help="no notes and warnings on stderr")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore ui`; returns the exit code."""
    try:
        for module in ("jinja2", "starlette", "uvicorn"):
            importlib.import_module(module)
    except ImportError as error:
        to_stderr(f"kueuecore ui: {error}: install it with pip install 'kueuecore[ui]'")
        return ExitCode.BAD_INPUT
    from kueuecore.ui.serving import serve_page

    try:
        server = _server(options)
    except OSError as error:
        reason = error.strerror or str(error)
        to_stderr(f"kueuecore ui: cannot listen on 127.0.0.1:{options.port}: {reason}; choose another --port, or none")
        return ExitCode.UNAVAILABLE
    try:
        with ctrl_c_raises():
            serve_page(server, lambda line: write(line + "\n"), opens=options.open)
    finally:
        if options.source is not None:
            options.source.close()
    return ExitCode.OK


def _server(options: argparse.Namespace) -> PageServer:
    from kueuecore.ui.serving import PageServer

    if _names_scenario(options.paths):
        return PageServer(port=options.port, run=_timeline(options))
    options.source = options.source or source_of(options)
    return PageServer(port=options.port, source=options.source)


def _names_scenario(paths: list[str]) -> bool:
    """Whether the only path is a file of kind Scenario."""
    path = Path(paths[0]) if len(paths) == 1 and paths[0] != "-" else None
    try:
        if path is None or not path.is_file():
            return False
        with path.open("rb") as file:
            return _SCENARIO.search(file.read(_READ_BYTES)) is not None
    except OSError:
        return False  # reading it as a state says why


def _timeline(options: argparse.Namespace) -> Timeline:
    import shlex

    from kueuecore.cli.kueue_release import asked_release
    from kueuecore.scenarios import read_scenario
    from kueuecore.ui.timeline import Timeline

    (path,) = options.paths
    for given, option, field in (
        (options.config, "--config", "cluster.configuration"),
        (options.now, "--now", "start"),
        (options.trusted or None, "--trusted", "cluster.objects"),
    ):
        if given is not None:
            remedy = f"set `{field}` in the scenario"
            raise ManifestError.of(f"{option} works with a state only", remedy=remedy, file=path)
    scenario = read_scenario(path, release=options.kueue, default_release=asked_release(None))
    release = ("--kueue", options.kueue.name) if options.kueue is not None else ()
    command = shlex.join(["kueuecore", "simulate", path, *release])
    if not options.quiet:
        to_stderr(f"note: running {path} first; the page is there when that is over")
    try:
        return Timeline.of_scenario(scenario, title=Path(path).name, command=command)
    except ManifestError as error:
        raise error.in_file(path) from None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= _MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {_MAX_PORT}")
    return int(text)
