"""Two answers to a case, compared as recorded runs are: decisions, then statuses, then messages."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import Any

__all__ = ["FAILED", "Difference", "Level", "Parts", "closest", "differing", "parts"]

# Lists whose order means nothing.
_UNORDERED = {"conditions", "messages", "admissionChecks", "evictions", "resourceRequests"}
_RANKS = ("key", "type", "name", "reason", "message", "underlyingCause")
# Texts that are never amounts.
_NAMES = {"key", "name", "clusterQueue", "preemptor", "reason", "message", "type", "status", "state", "levels"}
_QUANTITY = re.compile(r"^([+-]?[0-9]*\.?[0-9]+)(?:[eE]([+-]?[0-9]+))?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|)$")
_SUFFIXES = {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_SUFFIXES |= {name: Decimal(1000) ** power for power, name in enumerate("kMGTPE", start=1)}
_SUFFIXES |= {name + "i": Decimal(1024) ** power for power, name in enumerate("KMGTPE", start=1)}


class Level(StrEnum):
    """How deep a difference is. Once decisions part, all else follows."""

    DECISIONS = "decisions"
    STATUSES = "statuses"
    MESSAGES = "messages"


Parts = dict[Level, Any]
"""What is compared of an answer, without what is as good as absent; a text for its decisions: why there are none."""
FAILED = "failed"
"""The path of a difference to someone who has no answer."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two answers part.

    Args:
        level: How deep it is.
        path: Where in the answer, such as `cycles[2].admitted`.
        told: What Kueue says there, and what we say.
    """

    level: Level
    path: str
    told: str

    @property
    def kind(self) -> str:
        """What differences of the same sort have in common: names and numbers are left out."""
        path = re.sub(r"\[\d+\]|[a-z0-9-]+/[\w-]+|\b\w*\d\w*\b", "", self.path)
        return f"{self.level} {re.sub('[.]+', '.', path).strip('.')}".strip()

    def __str__(self) -> str:
        return f"{self.level}: {self.path}: {self.told}"


def parts(run: dict[str, Any], max_cycles: int = 0) -> Parts:
    """Return what is compared of an answer, by level.

    Args:
        run: The answer.
        max_cycles: How many cycles the run may have; 0: any number. How a run ends that has so many is not compared:
            recordings are of two loops, which stop at the last cycle or before the next one.
    """
    cycles, final = run.get("cycles") or [], run.get("final") or {}
    if max_cycles and final.get("cycles", 0) >= max_cycles:
        final = {}
    spoken = [*cycles, *(run.get("quietMessages") or [])]
    return {
        Level.DECISIONS: {
            "cycles": [_plain({k: v for k, v in cycle.items() if k != "messages"}) for cycle in cycles],
            # When a run ends is a matter of timers that are left, which no decision follows.
            "final": _plain({k: v for k, v in final.items() if k not in ("t", "cycles", "statuses")}),
        },
        Level.STATUSES: _plain(final.get("statuses", {})),
        Level.MESSAGES: {
            str(cycle["n"]): _plain(cycle["messages"], "messages") for cycle in spoken if cycle.get("messages")
        },
    }


def differing(want: Parts, got: Parts, left_out: Collection[str] = ()) -> Difference | None:
    """Return the first difference between two answers; `None`: they are the same.

    Args:
        want: What Kueue answers.
        got: What is compared with it.
        left_out: Levels that chance decides.
    """
    for level in Level:
        if level not in left_out and want[level] != got[level]:
            if isinstance(got[level], str):
                return Difference(level, FAILED, got[level])
            path, told = next(_first(want[level], got[level], ""))
            return Difference(level, path.removeprefix("."), told)
    return None


def closest(plays: Sequence[Parts], got: Parts) -> Parts | None:
    """Return what Kueue may answer, as near to another answer as its own plays of the case allow.

    Chance decides what the plays disagree about: each status, and what each cycle says of each workload, may be that of
    any play with the same decisions.

    Args:
        plays: Several answers of Kueue to one case.
        got: What is compared with them.

    Returns:
        An answer to compare with; `None` if the plays decide differently, and none as `got` does.
    """
    alike = [play for play in plays if play[Level.DECISIONS] == got[Level.DECISIONS]]
    if not alike:
        return None if any(play[Level.DECISIONS] != plays[0][Level.DECISIONS] for play in plays) else plays[0]
    statuses = _any_of([play[Level.STATUSES] for play in alike], got[Level.STATUSES])
    by_workload = _any_of([_by_workload(play[Level.MESSAGES]) for play in alike], _by_workload(got[Level.MESSAGES]))
    messages: dict[str, list[Any]] = {}
    for (cycle, _), said in by_workload.items():
        messages.setdefault(cycle, []).extend(said)
    return {
        Level.DECISIONS: got[Level.DECISIONS],
        Level.STATUSES: statuses,
        Level.MESSAGES: {cycle: sorted(said, key=_in_rank) for cycle, said in messages.items()},
    }


def _any_of(plays: Sequence[Mapping[Any, Any]], got: Mapping[Any, Any]) -> dict[Any, Any]:
    found = dict(plays[0])
    for name in {name for play in plays for name in play} | got.keys():
        if any(play.get(name) == got.get(name) for play in plays):
            found[name] = got.get(name)
    return {name: play for name, play in found.items() if play is not None}


def _by_workload(messages: Mapping[str, Sequence[Any]]) -> dict[tuple[str, str], list[Any]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for cycle, said in messages.items():
        for each in said:
            found.setdefault((cycle, each["key"]), []).append(each)
    return found


def _plain(value: Any, name: str = "") -> Any:
    """Return a value without empty fields, with amounts in one spelling."""
    if isinstance(value, dict):
        return {k: each for k, v in value.items() if (each := _plain(v, k)) and each != "0"}
    if isinstance(value, list):
        rows = [_plain(row, name) for row in value]
        return sorted(rows, key=_in_rank) if name in _UNORDERED and len(rows) > 1 else rows
    return _amount(value) if name not in _NAMES and isinstance(value, str) else value


def _in_rank(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple([str(row.get(rank, "")) for rank in _RANKS])


@lru_cache(maxsize=4096)
def _amount(text: str) -> str:
    match = _QUANTITY.match(text)
    if match is None:
        return text
    number = Decimal(match[1]) * _SUFFIXES[match[3]] * Decimal(10) ** int(match[2] or 0)
    return format(number.normalize(), "f")


def _first(want: Any, got: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(want, dict) and isinstance(got, dict):
        for name in sorted(want.keys() | got.keys(), key=_in_order):
            if want.get(name) != got.get(name):
                yield from _first(want.get(name), got.get(name), f"{path}.{name}")
    elif isinstance(want, list) and isinstance(got, list):
        for number, (one, other) in enumerate(zip(want, got, strict=False)):
            if one != other:
                yield from _first(one, other, f"{path}[{number}]")
        if len(want) != len(got):
            longer = want if len(want) > len(got) else got
            more = [_short(entry) for entry in longer[min(len(want), len(got)) :]]
            yield path, f"Kueue has {len(want)}, not {len(got)}; {'lacks' if longer is got else 'also'}: {more[0]}"
    else:
        yield path, f"Kueue says {_short(want)}, we say {_short(got)}"


def _in_order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (0, name)


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 400 else text[:400] + " ..."
