"""Splits a job of several nodes into equal pods."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["pods_of_nodes"]


def pods_of_nodes(nodes: npt.NDArray[np.float64], gpus: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the number of pods of each job: one on each node, or one for each GPU if nodes have different numbers.

    Args:
        nodes: How many nodes each job has, shape (n,).
        gpus: How many GPUs it has in all.

    Example:
        >>> pods_of_nodes(np.array([2.0, 2.0]), np.array([16.0, 5.0])).tolist()
        [2.0, 5.0]
    """
    return np.where(gpus % np.maximum(nodes, 1) == 0, nodes, gpus)
