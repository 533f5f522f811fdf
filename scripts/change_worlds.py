"""Find a small world for each change of Kueue: one that ends otherwise with the change and without it.

Draws random runs, plays each on both sides of a change, and shrinks the first that differs. Worlds that are kept in
tests/unit/releases/worlds.jsonl stay; a new change gets its world by running this again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from kueuecore.conformance import answer
from kueuecore.releases import changes
from tests.random_runs import random_run

KEPT = Path(__file__).parents[1] / "tests/unit/releases/worlds.jsonl"
NEEDED = {"now", "cycleStepMs", "maxCycles", "quietCycles", "evictionSeconds", "timers"}
Case = dict[str, Any]


def differs(case: Case, change: str) -> bool:
    """Return whether the engine answers otherwise without the change."""
    try:
        with_it = answer(case)
        return with_it != answer({**case, "changes": {change: False}})
    except Exception:
        return False


def shrunk(case: Case, is_wanted: Callable[[Case], bool]) -> Case:
    """Return the case without the objects, events and settings that it can do without."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in smaller_ones(case):
            if is_wanted(smaller):
                case, is_smaller = smaller, True
                break
    return case


def smaller_ones(case: Case) -> Iterator[Case]:
    """Yield the case without one part, large parts first."""
    for path, parts in (("objects",), case["objects"]), (("input", "events"), case["input"]["events"]):
        for size in (len(parts) // 2, len(parts) // 4, 1):
            for start in range(0, len(parts), size or 1):
                fewer = parts[:start] + parts[start + max(size, 1) :]
                if len(fewer) < len(parts):
                    yield {**case, "objects": fewer} if len(path) == 1 else {**case, "input": {"events": fewer}}
    for name in case["config"].keys() - NEEDED:
        yield {**case, "config": {key: value for key, value in case["config"].items() if key != name}}
    for name in case["featureGates"]:
        yield {**case, "featureGates": {key: value for key, value in case["featureGates"].items() if key != name}}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3000, help="random runs to try")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("names", nargs="*", help="changes; by default all without a world")
    options = parser.parse_args()
    kept = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()] if KEPT.exists() else []
    known = {line["change"] for line in kept}
    wanted = [
        change.name
        for change in changes()
        if change.name in options.names or (not options.names and change.name not in known)
    ]
    for seed in range(options.first, options.first + options.runs):
        case = random_run(seed)
        for name in [name for name in wanted if differs(case, name)]:
            small = shrunk(case, partial(differs, change=name))
            kept = [line for line in kept if line["change"] != name] + [
                {**small, "id": f"change/{name}", "change": name}
            ]
            kept.sort(key=lambda line: str(line["change"]))
            KEPT.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
            print(f"{name}: seed {seed}", flush=True)
            wanted.remove(name)
    print("no world found: " + ", ".join(wanted) if wanted else "every change has a world")
    return 0


if __name__ == "__main__":
    sys.exit(main())
