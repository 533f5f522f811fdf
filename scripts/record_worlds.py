"""Regenerate tests/worlds/recorded.jsonl.gz: histories from fixed seeds, with the reference's answers.

It draws many and keeps those in which something happens that is still rare among the kept ones: a new message, a
condition, a kind of preemption. `make record-worlds` runs it; the Rust tests play the result.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from kueuecore.errors import ManifestError
from kueuecore.testing import History, Limits, MoveResult, Play, random_history
from kueuecore.testing.drawn_topologies import random_topology
from kueuecore.trials.recording import recorded

FILE = Path(__file__).parent.parent / "tests" / "worlds" / "recorded.jsonl.gz"
# Seeds of the worlds, their limits (`None`: with nodes), and how many to keep.
DRAWN: tuple[tuple[tuple[tuple[range, Limits | None], ...], int], ...] = (
    (((range(1, 1401), Limits()), (range(1401, 2401), Limits(fair_sharing=True, missing=False, stops=False))), 300),
    (((range(1, 1001), None),), 100),
)
# How often a thing must happen among the kept ones.
OFTEN = 4


def seen(seed: int, limits: Limits | None) -> tuple[History, set[str]]:
    """Return the history of a seed, and what happens in it: messages without names and numbers."""
    scenario = random_topology(seed) if limits is None else random_history(seed, limits)
    words: set[str] = set()
    try:
        for result in Play.of(scenario).run(scenario.moves):
            words |= _words(result)
    except ManifestError:
        # Some worlds are refused as a whole.
        return scenario, set()
    return scenario, words


def _words(result: MoveResult) -> set[str]:
    found: dict[str, Any] = result.to_json()
    texts = [f"{event[1]}: {event[3]}" for event in found.get("events", [])] + [
        f"{row[1]}: {row[3]}" for row in found["written"]
    ]
    plain = {re.sub(r"\b[a-z]?\d[\w.]*", "#", text) for text in texts}
    # Which victims occur together says more than each alone.
    reasons = sorted(preemption["reason"] for preemption in found.get("preemptions", []))
    counts = {f"{name}: {len(found.get(name, []))}" for name in ("admissions", "pending", "parked")}
    skipped = {f"skipped: {n}" for n in found.get("skippedPreemptions", {}).values()}
    again = {f"assigned again: {results}" for results in found.get("targetRecomputations", {}).values()}
    return plain | counts | skipped | again | {f"preempted: {reasons}"}


def chosen(drawn: list[tuple[History, set[str]]], n_kept: int) -> list[History]:
    """Choose those with something rare among the chosen so far, in order; fill up with others."""
    said: Counter[str] = Counter()
    kept: list[int] = []
    for number, (_, words) in enumerate(drawn):
        if len(kept) < n_kept and any(said[word] < OFTEN for word in words):
            kept.append(number)
            said.update(words)
    rest = [number for number in range(len(drawn)) if number not in set(kept)]
    return [drawn[number][0] for number in sorted([*kept, *rest[: n_kept - len(kept)]])]


def record(scenario: History) -> tuple[str, str]:
    """Return the line of a history; or an empty one, and how engine and reference differ in it."""
    try:
        return recorded(scenario), ""
    except AssertionError as error:
        return "", f"{error}\n{scenario.to_line()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = parser.parse_args()
    n_drawn = 0
    found: list[tuple[str, str]] = []
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for ranges, n_kept in DRAWN:
            seeds = [(seed, limits) for of_these, limits in ranges for seed in of_these]
            drawn = [entry for entry in pool.map(seen, *zip(*seeds, strict=True), chunksize=20) if entry[1]]
            found += pool.map(record, chosen(drawn, n_kept), chunksize=5)
            n_drawn += len(drawn)
    lines = [line for line, _ in found if line]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_bytes(gzip.compress("\n".join([*lines, ""]).encode(), compresslevel=9, mtime=0))
    print(f"{FILE}: {len(lines)} of {n_drawn} histories, {FILE.stat().st_size} bytes")
    differences = [difference for _, difference in found if difference]
    for difference in differences:
        print(f"left out, for tests/regressions/: {difference}", file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
