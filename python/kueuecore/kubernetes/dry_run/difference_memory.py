"""What a dry run remembers across restarts: the differences that it has reported, and the counts since a summary."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Self

from kueuecore._json import JsonObject, JsonValue, int_at, object_at, text_at
from kueuecore.kubernetes.dry_run.decisions_seen import Kind
from kueuecore.kubernetes.dry_run.judge import Judged, Verdict

__all__ = ["Difference", "DifferenceMemory", "shape_of"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_FORMAT = "kueuecore.dry-run/1"
_MOST_DIFFERENCES = 1_000
_MOST_REASONS = 200
_TEXTS = ("kind", "workload", "uid", "kueue", "here", "why", "state")
_TIMES = range(2**63)
_NUMBERS = ("first", "last", "count")
_VARYING = re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\d{4}-\d\d-\d\dT[\d:.]+Z|\d+")
_NAMES = re.compile(r"\b[\w.-]+/[\w.-]+\b")


@dataclass(slots=True)
class Difference:
    """A difference, as often as it was found.

    Args:
        kind: The kind of the decision.
        workload: `namespace/name`.
        uid: UID of the Workload.
        kueue: What Kueue decided.
        here: What the engine decides.
        why: Why they differ.
        first: When it was found first, in nanoseconds since 1970.
        last: When it was found last.
        count: How often.
        state: The saved state, as a path in the folder; empty: none.
    """

    kind: str
    workload: str
    uid: str
    kueue: str
    here: str
    why: str
    first: int
    last: int
    count: int = 1
    state: str = ""

    @classmethod
    def read(cls, plain: JsonValue) -> Self:
        """Read what `asdict` returned.

        Raises:
            ValueError: It is malformed.
        """
        row = object_at(plain)
        kind, workload, uid, kueue, here, why, state = (text_at(row, name) for name in _TEXTS)
        first, last, count = (int_at(row, name) for name in _NUMBERS)
        if row.keys() != {*_TEXTS, *_NUMBERS} or not count or not (first in _TIMES and last in _TIMES):
            raise ValueError(f"each difference must have {', '.join((*_TEXTS, *_NUMBERS))}")
        return cls(kind, workload, uid, kueue, here, why, first, last, count, state)

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same difference."""
        return self.kind, self.uid or self.workload, self.kueue, self.here

    @property
    def shape(self) -> str:
        """What it has in common with others, for groups."""
        return f"{self.kind}: Kueue {shape_of(self.kueue)}; here {shape_of(self.here)}"


class DifferenceMemory:
    """Counts decisions by kind and verdict, and keeps the differences. It is bounded.

    Args:
        since: The time from which it counts, in nanoseconds since 1970.
    """

    def __init__(self, *, since: int) -> None:
        self.since = since
        """The time since which it counts: the last summary."""
        self.counts: Counter[tuple[str, str]] = Counter()
        """How many decisions, by kind and verdict."""
        self.reasons: Counter[str] = Counter()
        """On which states they agreed, if not on that seen here, and why others could not be judged."""
        self.notes: list[str] = []
        """What happened to Kueue and the watches."""
        self._differences: dict[tuple[str, ...], Difference] = {}

    def take_in(self, judged: Judged) -> tuple[Difference | None, bool]:
        """Count a decision.

        Returns:
            The difference if it is one, and whether it was not known.
        """
        self.counts[judged.kind.value, judged.verdict.value] += 1
        if judged.verdict is not Verdict.DIFFERED:
            if judged.why and (len(self.reasons) < _MOST_REASONS or shape_of(judged.why) in self.reasons):
                self.reasons[shape_of(judged.why)] += 1
            return None, False
        found = Difference(
            judged.kind.value,
            "/".join(judged.workload),
            judged.uid,
            judged.kueue,
            judged.here,
            judged.why,
            judged.at,
            judged.at,
        )
        known = self._differences.pop(found.key, None)
        if known is not None:
            known.last, known.count = judged.at, known.count + 1
        self._differences[found.key] = known or found
        if len(self._differences) > _MOST_DIFFERENCES:
            self._differences.pop(next(iter(self._differences)))
        return known or found, known is None

    def note(self, text: str) -> None:
        """Note for the next summary what happened to Kueue or the watches."""
        self.notes = [*self.notes, text][-100:]

    @property
    def n_known(self) -> int:
        """How many differences are known."""
        return len(self._differences)

    def differences(self, *, since: int = 0) -> list[Difference]:
        """Return the differences found since a time, the latest last."""
        return [other for other in self._differences.values() if other.last >= since]

    def begin(self, since: int) -> None:
        """Count anew, after a summary; the differences stay known."""
        self.since = since
        self.counts.clear()
        self.reasons.clear()
        self.notes = []

    def to_json(self) -> bytes:
        """Return it as a file."""
        plain = {
            "format": _FORMAT,
            "since": self.since,
            "counts": [[*key, count] for key, count in sorted(self.counts.items())],
            "reasons": dict(sorted(self.reasons.items())),
            "notes": self.notes,
            "differences": [asdict(other) for other in self._differences.values()],
        }
        return json.dumps(plain, indent=1).encode()

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Read what `to_json` returned.

        Raises:
            ValueError: It is not that.
        """
        try:
            plain: JsonObject = object_at(json.loads(data))
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        since, counts, reasons, notes, rows = (
            plain.get(name) for name in ("since", "counts", "reasons", "notes", "differences")
        )
        if plain.get("format") != _FORMAT or type(since) is not int or since not in _TIMES:
            raise ValueError(f"it must have the format {_FORMAT} and since")
        memory = cls(since=since)
        for row in counts if isinstance(counts, list) else [counts]:
            match row:
                case [str(kind), str(verdict), int(number)] if kind in [*Kind] and verdict in [*Verdict]:
                    memory.counts[kind, verdict] = number
                case _:
                    raise ValueError("each of counts must be a kind, a verdict and a number")
        for reason, count in object_at(reasons).items():
            if type(count) is not int:
                raise ValueError("each of reasons must be a number")
            memory.reasons[reason] = count
        memory.notes = [str(text) for text in notes][-100:] if isinstance(notes, list) else []
        for found in map(Difference.read, rows if isinstance(rows, list) else [rows]):
            memory._differences[found.key] = found
        return memory


def shape_of(text: str) -> str:
    """Return a text without names and numbers, so that texts about the same rule are the same.

    Example:
        >>> shape_of("insufficient unused quota for cpu in flavor default, 3 more needed")
        'insufficient unused quota for cpu in flavor default, N more needed'
    """
    return _NAMES.sub("X", _VARYING.sub("N", text))
