"""Two engines in two threads against two engines in two processes: how much of the work the GIL lets through.

Each engine takes in a cluster, then cycles until nothing changes, as often as there is time. Wall time counts, so run
it on a quiet machine with two cores or more: `python benches/threads.py [--seconds 10]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches.worlds import T0, World  # after the path to it is known
from kueuecore.engine import Engine

N_ENGINES = 2
_WORLD = World(200, 20, n_pending=50)


def work(until: float) -> int:
    """Workloads that were taken in and decided on until then."""
    cluster, workloads = _WORLD.cluster(), _WORLD.workloads()
    done = 0
    while time.time() < until:
        engine = Engine()
        engine.apply(cluster, now=T0)
        engine.apply(workloads, now=T0, trusted=True)
        while engine.cycle(T0).has_changed_something:
            pass
        done += len(engine)
    return done


def rate(kind: type[Executor], seconds: float) -> float:
    """Workloads a second of all engines together."""
    with kind(N_ENGINES) as executor:  # type: ignore[call-arg]  # both kinds take the number of workers
        # All are there before the time begins.
        list(executor.map(work, [0.0] * N_ENGINES))
        began = time.time()
        done = sum(executor.map(work, [began + seconds] * N_ENGINES))
        return done / (time.time() - began)


def main() -> None:
    """Measure both in turn and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each kind in each of three rounds")
    options = parser.parse_args()
    rates = [(rate(ThreadPoolExecutor, options.seconds), rate(ProcessPoolExecutor, options.seconds)) for _ in range(3)]
    threads, processes = (max(column) for column in zip(*rates, strict=True))
    print(f"{N_ENGINES} threads    {threads:12,.0f} workloads/s")
    print(f"{N_ENGINES} processes  {processes:12,.0f} workloads/s")
    print(f"threads reach {threads / processes:.0%} of what processes reach")


if __name__ == "__main__":
    main()
