"""The decisions of a cycle that waited for pods, as one: each call of `Engine.cycle` gave a part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

from kueuecore.decisions import Decision

__all__ = ["joined"]


class _Joined:
    """Answers as a decision of the extension does: lists one after the other, counts added up."""

    def __init__(self, parts: Sequence[Decision]) -> None:
        self._parts = [part._core for part in parts]

    @property
    def cycle(self) -> int:
        return self._parts[0].cycle

    @property
    def has_changed_something(self) -> bool:
        return any(part.has_changed_something for part in self._parts)

    def waits_for_pods(self) -> tuple[str, str] | None:
        return self._parts[-1].waits_for_pods()

    def counts(self) -> tuple[int, ...]:
        return tuple(map(sum, zip(*(part.counts() for part in self._parts), strict=True)))

    def skipped_preemptions(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in self._parts:
            for queue, n in part.skipped_preemptions().items():
                found[queue] = found.get(queue, 0) + n
        return found

    def target_recomputations(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for part in self._parts:
            for queue, results in part.target_recomputations().items():
                of_queue = found.setdefault(queue, {})
                for result, n in results.items():
                    of_queue[result] = of_queue.get(result, 0) + n
        return found

    def __getattr__(self, name: str) -> Callable[[], list[Any]]:
        # All the rest are methods that give lists.
        return lambda: reduce(add, (getattr(part, name)() for part in self._parts))


def joined(parts: Sequence[Decision]) -> _Joined:
    """The parts of a decision, in their order, as one."""
    return _Joined(parts)
