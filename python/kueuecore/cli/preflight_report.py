"""Shows what `kueuecore serve --preflight` has found: a table with commands, or JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

from kueuecore._text import shown
from kueuecore.api_server import RefusedError
from kueuecore.cli.documents import document_head
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import output, to_stderr, write
from kueuecore.cli.table import Cell, Painted, Style, table
from kueuecore.configuration import Configuration
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.kubernetes.preflight.look_for_obstacles import Preflight, preflight
from kueuecore.kubernetes.preflight.obstacles import Level, Obstacle

__all__ = ["run_preflight"]

_COLORS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.NOTE: "dim"}


def run_preflight(
    options: argparse.Namespace, api: Api, configuration: Configuration, lease: LeaseSettings | None
) -> int:
    """Look at a cluster, and show what was found; returns the exit code.

    Args:
        options: The options of the command.
        api: The API server.
        configuration: The Configuration that `serve` would have.
        lease: Its Lease.
    """
    try:
        found = preflight(api, configuration, lease, user=options.user or "")
    except (RefusedError, UnansweredError) as error:
        to_stderr(f"kueuecore serve: {api.host}: {shown(str(error))}")
        return ExitCode.UNAVAILABLE
    finally:
        api.close()
    if options.output == "json":
        write(json.dumps(_document(found, api.host, configuration), indent=2) + "\n")
    else:
        write("\n\n".join(_parts(found, api.host, Style.of(output()))) + "\n")
    return ExitCode.OK if found.is_clear else ExitCode.FOUND


def _parts(found: Preflight, host: str, style: Style) -> Iterator[str]:
    if found.obstacles:
        rows: list[list[Cell]] = [
            [Painted(str(obstacle.level), _COLORS[obstacle.level]), obstacle.check, obstacle.object, obstacle.message]
            for obstacle in found.obstacles
        ]
        yield table(["LEVEL", "CHECK", "OBJECT", "MESSAGE"], rows, style)
    mends = [(obstacle, mend) for obstacle in found.obstacles for mend in obstacle.mends]
    if mends:
        lines = dict.fromkeys(f"  {shown(mend)}" for _, mend in mends)
        yield "\n".join(["To mend it:", *lines])
    n_errors = sum(obstacle.level is Level.ERROR for obstacle in found.obstacles)
    errors = {0: "nothing stands", 1: "1 error stands"}.get(n_errors, f"{n_errors} errors stand")
    where = f"{shown(host)}, Kubernetes {shown(found.server_version)}, {found.n_rights} rights checked"
    yield f"{errors} in the way of kueuecore serve ({where})"


def _document(found: Preflight, host: str, configuration: Configuration) -> dict[str, object]:
    return {
        **document_head(configuration.release),
        "server": host,
        "serverVersion": found.server_version,
        "rights": found.n_rights,
        "clear": found.is_clear,
        "obstacles": [_obstacle(obstacle) for obstacle in found.obstacles],
    }


def _obstacle(obstacle: Obstacle) -> dict[str, object]:
    return {
        "level": str(obstacle.level),
        "check": obstacle.check,
        "object": obstacle.object,
        "message": obstacle.message,
        "mends": list(obstacle.mends),
    }
