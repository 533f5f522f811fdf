"""Decisions as arrays: numbers stand for names, and rows cost no Python objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["NONE", "Names"]

NONE = 2**32 - 1
"""The number that stands for no ClusterQueue."""

ADMISSIONS = np.dtype([("workload", "<u4"), ("cluster_queue", "<u4"), ("is_admitted", "?"), ("time", "<i8")])
FLAVORS = np.dtype(
    [
        ("admission", "<u4"),
        ("pod_set", "<u4"),
        ("count", "<i4"),
        ("resource", "<u4"),
        ("flavor", "<u4"),
        ("amount", "<i8"),
    ]
)
PREEMPTIONS = np.dtype([("workload", "<u4"), ("cluster_queue", "<u4"), ("preemptor", "<u4"), ("reason", "u1")])
PENDING = np.dtype([("workload", "<u4"), ("cluster_queue", "<u4"), ("reason", "u1"), ("is_parked", "?")])


@dataclass(frozen=True, slots=True)
class Names:
    """The names that an engine has seen, each at the index that is its number. Names are only ever appended.

    Args:
        cluster_queues: Names of ClusterQueues, including deleted ones and ones that exist only as references.
        flavors: Names of ResourceFlavors.
        resources: Names of resources.
        reasons: The reasons of pending workloads and of preemptions, the same for every engine.
    """

    cluster_queues: tuple[str, ...]
    flavors: tuple[str, ...]
    resources: tuple[str, ...]
    reasons: tuple[str, ...]


def table(rows: bytes, dtype: np.dtype[np.void]) -> npt.NDArray[np.void]:
    """Return rows of the extension as a read-only structured array."""
    return np.frombuffer(rows, dtype)
