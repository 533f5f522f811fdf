"""The commands that a manager returns for its caller to carry out, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kueuecore._json import JsonObject
from kueuecore.writes import Write

__all__ = [
    "MANAGER",
    "Command",
    "Connect",
    "ManagerProblem",
    "ManagerTurn",
    "ObjectKey",
]

MANAGER = ""
"""The name that stands for the manager itself among the clusters."""
ObjectKey: TypeAlias = tuple[str, str, str, str]
"""Cluster, kind, namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """Connect to a worker: read the credentials, list and watch, and call `connected` once all watches are up.

    Args:
        cluster: The MultiKueueCluster.
        source: Its `spec.clusterSource`, which says where the credentials are.
        timeout_ns: How long the watches may take to come up.
        number: Number of the command, from 1.
    """

    cluster: str
    source: JsonObject
    timeout_ns: int
    number: int = 0


Command: TypeAlias = Write | Connect
"""Any command that a manager returns. Writes are answered with `done`."""


@dataclass(frozen=True, slots=True)
class ManagerProblem:
    """Something a manager could not do and will retry; Kueue logs it.

    Args:
        about: `namespace/name` of a Workload, or the name of a cluster.
        message: What is wrong.
    """

    about: str
    message: str


@dataclass(frozen=True, slots=True)
class ManagerTurn:
    """The result of one turn of a manager.

    Args:
        commands: What to carry out now, in any order or concurrently.
        problems: What could not be done.
    """

    commands: tuple[Command, ...]
    problems: tuple[ManagerProblem, ...]
