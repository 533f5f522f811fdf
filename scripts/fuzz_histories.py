"""Play random histories of faults around a controller or in a fleet, on all cores.

Each follows from a seed, which a failure names: `make fuzz-controller HISTORIES=1 SEED=...` replays it, and likewise
`make fuzz-http` and `make fuzz-fleet`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from kueuecore.trials.faults import FaultyHistory
from kueuecore.trials.fleet_histories import FleetHistory
from kueuecore.trials.http_histories import FaultyHttpHistory, FaultyHttpNodeHistory
from kueuecore.trials.job_faults import FaultyJobHistory
from kueuecore.trials.node_faults import FaultyNodeHistory


def controller_history(seed: int) -> FaultyHistory:
    """Return a history: two in three have jobs behind their Workloads, one of these with nodes that fail."""
    return (FaultyHistory, FaultyJobHistory, FaultyNodeHistory)[seed % 3](seed)


def http_history(seed: int) -> FaultyHttpHistory:
    """Return a history over HTTP: one in three has nodes that fail."""
    return FaultyHttpNodeHistory(seed, n_steps=50) if seed % 3 == 2 else FaultyHttpHistory(seed)


HISTORIES: dict[str, Callable[[int], FaultyHistory | FleetHistory]] = {
    "controller": controller_history,
    "fleet": FleetHistory,
    "http": http_history,
}
OF_A_ROUND = 20


def play_round(kind: str, first: int, n: int) -> tuple[Counter[str], dict[int, str]]:
    """Play the histories of some seeds; return what happened in them, and the failures by seed."""
    happened: Counter[str] = Counter()
    failures = {}
    for seed in range(first, first + n):
        try:
            happened += HISTORIES[kind](seed).play()
            happened["histories"] += 1
        except Exception:
            failures[seed] = traceback.format_exc()
    return happened, failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=HISTORIES, help="what to play")
    parser.add_argument("--histories", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, help="seed of the first; random by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    arguments = parser.parse_args()
    first = random.SystemRandom().randrange(10**9) if arguments.seed is None else arguments.seed
    print(f"seed {first}", flush=True)
    begun = time.time()
    happened: Counter[str] = Counter()
    n_failures = 0
    rounds = [
        (first + done, min(OF_A_ROUND, arguments.histories - done))
        for done in range(0, arguments.histories, OF_A_ROUND)
    ]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for found, failures in pool.map(partial(play_round, arguments.kind), *zip(*rounds, strict=True)):
            happened += found
            n_failures += len(failures)
            for seed, failed in failures.items():
                print(f"\n{failed}\nagain: make fuzz-{arguments.kind} HISTORIES=1 SEED={seed}\n", flush=True)
    for name, n in sorted(happened.items()):
        print(f"{n:9,}  {name}")
    print(f"{time.time() - begun:.0f} s on {arguments.jobs} cores, {n_failures} failed")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
