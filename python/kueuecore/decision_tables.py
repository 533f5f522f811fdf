"""Decisions as arrays: numbers stand for names, and rows cost no Python objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["NONE", "Names"]

NONE = 2**32 - 1
"""The number that stands for no ClusterQueue."""

ADMISSIONS = (("workload", "<u4"), ("cluster_queue", "<u4"), ("is_admitted", "?"), ("time", "<i8"))
FLAVORS = (
    ("admission", "<u4"),
    ("pod_set", "<u4"),
    ("count", "<i4"),
    ("resource", "<u4"),
    ("flavor", "<u4"),
    ("amount", "<i8"),
)
PREEMPTIONS = (("workload", "<u4"), ("cluster_queue", "<u4"), ("preemptor", "<u4"), ("reason", "u1"))
PENDING = (("workload", "<u4"), ("cluster_queue", "<u4"), ("reason", "u1"), ("is_parked", "?"))


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


def table(rows: bytes, columns: Sequence[tuple[str, str]]) -> npt.NDArray[np.void]:
    """Return rows of the extension as a read-only structured array with these columns."""
    import numpy as np  # slow: most programs need no arrays

    return np.frombuffer(rows, np.dtype(list(columns)))
