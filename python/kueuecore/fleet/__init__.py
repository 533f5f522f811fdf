"""A MultiKueue manager and its workers, simulated in one process and one virtual time, with faults between them.

Example:
    >>> fleet = Fleet(["west", "east"], now="2026-01-01T00:00:00Z")
    >>> sorted(fleet.nodes)
    ['', 'east', 'west']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.errors import UnsettledError
    from kueuecore.fleet.fleet import Fleet
    from kueuecore.fleet.kubectl_tables import table
    from kueuecore.fleet.links import MAX_MS, Link, LinkSettings
    from kueuecore.fleet.node import Node
    from kueuecore.fleet.node_settings import NodeSettings
    from kueuecore.fleet.pods import ENDS_FAILED, KINDS, RUN_SECONDS, is_job, run_ns

__all__ = [
    "ENDS_FAILED",
    "KINDS",
    "MAX_MS",
    "RUN_SECONDS",
    "Fleet",
    "Link",
    "LinkSettings",
    "Node",
    "NodeSettings",
    "UnsettledError",
    "is_job",
    "run_ns",
    "table",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.errors": "UnsettledError",
        "kueuecore.fleet.fleet": "Fleet",
        "kueuecore.fleet.kubectl_tables": "table",
        "kueuecore.fleet.links": "MAX_MS Link LinkSettings",
        "kueuecore.fleet.node": "Node",
        "kueuecore.fleet.node_settings": "NodeSettings",
        "kueuecore.fleet.pods": "ENDS_FAILED KINDS RUN_SECONDS is_job run_ns",
    },
)
