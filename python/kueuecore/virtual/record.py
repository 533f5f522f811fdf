"""What a virtual cluster has seen, in the form in which a `Run` is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from kueuecore import _core
from kueuecore.decisions import Decision
from kueuecore.runs import StepKind
from kueuecore.virtual.joined import joined

__all__ = ["Record"]

_KINDS = tuple(StepKind)


@dataclass(slots=True)
class Record:
    """Steps and cycles as they come; what the tables of a `Run` are made of.

    Args:
        keeps_messages: Is every cycle told that says anything, and who was parked?
    """

    keeps_messages: bool = False
    n_cycles: int = 0
    _steps: list[tuple[int, int, int]] = field(default_factory=list)
    _cycles: list[tuple[int, int, tuple[Decision, ...], int, list[str]]] = field(default_factory=list)
    _keys: list[str | None] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def reserve(self) -> int:
        """A number for a workload that is to come."""
        self._keys.append(None)
        return len(self._keys) - 1

    def note_number(self, key: str, number: int) -> None:
        """A workload that comes has this number, unless it has one."""
        self._numbers.setdefault(key, number)

    def note(self, time: int, kind: StepKind, key: str) -> None:
        """Something became of a workload."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.reserve()
        self._keys[number] = self._keys[number] or key
        self._steps.append((time, _KINDS.index(kind), number))
        if kind is StepKind.DELETED:
            # Whoever has the name next is another.
            del self._numbers[key]

    def note_cycle(self, time: int, decisions: tuple[Decision, ...]) -> None:
        """A cycle is over; of one that waited for pods there are several decisions."""
        parked = sorted({key for it in decisions for key in (*(p.key for p in it.pending if p.is_parked), *it.parked)})
        has_come_to_something = any(it.admissions or it.preemptions for it in decisions)
        is_told = self.keeps_messages and any(it.events for it in decisions)
        if is_told or parked or has_come_to_something:
            told = parked if self.keeps_messages else []
            self._cycles.append((self.n_cycles, time, decisions, len(parked), told))

    @property
    def n_steps(self) -> int:
        """Number of steps so far."""
        return len(self._steps)

    def steps_since(self, index: int) -> list[tuple[int, StepKind, str]]:
        """The steps from a number on: time, kind and key."""
        return [(time, _KINDS[kind], self._keys[number] or "") for time, kind, number in self._steps[index:]]

    # As the record of the extension.

    def n_told(self) -> int:
        """Number of cycles that are told."""
        return len(self._cycles)

    def cycle(self, index: int) -> tuple[int, int, _core.Decision, int, list[str]]:
        """A cycle that is told: number, time, decision, how many workloads it parked, and their keys."""
        number, time, decisions, n_parked, parked = self._cycles[index]
        # The joined one answers as one of the extension does.
        core = decisions[0]._core if len(decisions) == 1 else cast(_core.Decision, joined(decisions))
        return number, time, core, n_parked, parked

    def step_columns(self) -> tuple[bytes, bytes, bytes]:
        """Times (i64), kinds (u8) and workloads (u32) of the steps."""
        steps = np.array(self._steps, dtype=np.int64).reshape(-1, 3)
        return (
            steps[:, 0].astype("<i8").tobytes(),
            steps[:, 1].astype("u1").tobytes(),
            steps[:, 2].astype("<u4").tobytes(),
        )

    def cycle_columns(self) -> bytes:
        """Number, time, admissions, preemptions and parked workloads of the told cycles, row by row (i64)."""
        rows = [
            (number, time, sum(len(it.admissions) for it in told), sum(len(it.preemptions) for it in told), n_parked)
            for number, time, told, n_parked, _ in self._cycles
        ]
        return np.array(rows, dtype="<i8").tobytes()

    def n_workloads(self) -> int:
        """How many workloads have a number."""
        return len(self._keys)

    def keys(self) -> list[str | None]:
        """`namespace/name` by number; `None`: it never appeared."""
        return list(self._keys)

    def steps(self) -> tuple[list[int], list[str], list[str]]:
        """Times, kinds and keys of the steps."""
        told = self.steps_since(0)
        return [time for time, _, _ in told], [kind.value for _, kind, _ in told], [key for _, _, key in told]
