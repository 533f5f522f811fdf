"""Write tests/worlds/recorded.jsonl.gz again: histories of fixed seeds, with the answers of the reference.

Of many that are drawn, those are kept in which something happens that is still rare among the kept: a text that nobody
has said, a condition, a way to be preempted. `make record-worlds` does it; the Rust tests play them.
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
# Seeds of the worlds, what may be in them (`None`: nodes), and how many are kept.
DRAWN: tuple[tuple[tuple[tuple[range, Limits | None], ...], int], ...] = (
    (((range(1, 1401), Limits()), (range(1401, 2401), Limits(fair_sharing=True, missing=False, stops=False))), 300),
    (((range(1, 1001), None),), 100),
)
# So often a thing has to happen among the kept.
OFTEN = 4


def seen(seed: int, limits: Limits | None) -> tuple[History, set[str]]:
    """The history of a seed, and what happens in it, in words: texts without their names and numbers."""
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
    texts = [f"{it[1]}: {it[3]}" for it in found.get("events", [])] + [f"{it[1]}: {it[3]}" for it in found["written"]]
    plain = {re.sub(r"\b[a-z]?\d[\w.]*", "#", text) for text in texts}
    # Who is pushed out together says more than each alone.
    reasons = sorted(it["reason"] for it in found.get("preemptions", []))
    counts = {f"{name}: {len(found.get(name, []))}" for name in ("admissions", "pending", "parked")}
    skipped = {f"skipped: {n}" for n in found.get("skippedPreemptions", {}).values()}
    again = {f"assigned again: {results}" for results in found.get("targetRecomputations", {}).values()}
    return plain | counts | skipped | again | {f"preempted: {reasons}"}


def chosen(drawn: list[tuple[History, set[str]]], n_kept: int) -> list[History]:
    """Those with what is rare among the chosen so far, in the order in which they are drawn; others to fill up."""
    said: Counter[str] = Counter()
    kept: list[int] = []
    for number, (_, words) in enumerate(drawn):
        if len(kept) < n_kept and any(said[word] < OFTEN for word in words):
            kept.append(number)
            said.update(words)
    rest = [number for number in range(len(drawn)) if number not in set(kept)]
    return [drawn[number][0] for number in sorted([*kept, *rest[: n_kept - len(kept)]])]


def record(scenario: History) -> tuple[str, str]:
    """The line of a history; or none, and how engine and reference differ in it."""
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
            drawn = [it for it in pool.map(seen, *zip(*seeds, strict=True), chunksize=20) if it[1]]
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
