"""Which jobs of the past are like a job: the same queue, name, size and time limit, or less of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from kueuecore.forecasts.past_jobs import PastJob

__all__ = ["LEVELS", "Level", "program_of"]

# What tells one run of a program from the next: a number, or the random suffix of `generateName`.
_SUFFIX = re.compile(r"[-_.](\d+|[bcdfghjklmnpqrstvwxz2456789]{5})$")


@dataclass(frozen=True, slots=True)
class Level:
    """One degree of likeness.

    Args:
        source: Whose jobs are alike: those of the `Program`, the `LocalQueue`, the `ClusterQueue`, or `All`.
        key: Returns what alike jobs have in common.
        memory: After how many newer ones a past job counts 1/e.
        is_scaled: Do time limits differ between them? Then it is the share of the limit that is alike.
    """

    source: str
    key: Callable[[PastJob], Hashable]
    memory: float
    is_scaled: bool = False


def program_of(name: str) -> str:
    """Return the name of a job without what tells one run from the next.

    Example:
        >>> program_of("train-resnet-73"), program_of("train-resnet-x7k2p"), program_of("train")
        ('train-resnet', 'train-resnet', 'train')
    """
    return _SUFFIX.sub("", name)


def _owner(job: PastJob) -> Hashable:
    return job.namespace, job.local_queue


def _size(job: PastJob) -> Hashable:
    return job.n_pods, *sorted(job.requests.items())


LEVELS: Sequence[Level] = (
    Level("Program", lambda it: (_owner(it), program_of(it.name), _size(it), it.limit_seconds, it.priority), 20),
    Level("LocalQueue", lambda it: (_owner(it), _size(it), it.limit_seconds), 20),
    Level("LocalQueue", lambda it: (_owner(it), it.limit_seconds), 20),
    Level("LocalQueue", _owner, 30, is_scaled=True),
    Level("ClusterQueue", lambda it: (it.cluster_queue, _size(it), it.limit_seconds), 100),
    Level("ClusterQueue", lambda it: (it.cluster_queue, it.limit_seconds), 300),
    Level("ClusterQueue", lambda it: it.cluster_queue, 1000, is_scaled=True),
    Level("All", lambda it: None, 1000, is_scaled=True),
)
"""From the most to the least alike."""
