"""Workloads by the million pass through an engine that holds ten thousand: what memory does it keep?

Every workload is submitted, waits, gets quota, finishes and is deleted; each asks for another amount of memory, and has
a name and a UID of its own. Memory is that of the whole process: `python benches/endurance.py [--workloads 10000000]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from kueuecore.times import SECOND_NS

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import figures  # after the path to it is known
from benches.machine import Machine, resident_bytes, revision
from benches.worlds import T0, World
from kueuecore.engine import Engine

N_QUEUES = 100
N_HELD = 10_000
N_RUNNING = 9_000
# So many leave and so many come at a time.
N_BATCH = 1_000
_QUEUES = [f"queue-{queue:05}" for queue in range(N_QUEUES)]


def submit(engine: Engine, first: int, n: int, now: int) -> None:
    """So many new workloads, one queue after the other."""
    numbers = np.arange(first, first + n)
    requests = {"cpu": np.full(n, 1000), "memory": 2**20 + numbers % 10_007}
    engine.submit(
        namespace="ns",
        local_queues=_QUEUES,
        queue=numbers % N_QUEUES,
        requests=requests,
        created=T0 + numbers,
        first=first,
        now=now,
    )


def admit(engine: Engine, now: int) -> int:
    """How many get quota in the cycles until nothing changes."""
    admitted = 0
    while (decision := engine.cycle(now)).has_changed_something:
        admitted += len(decision.admission_table)
    return admitted


def pass_through(n_workloads: int) -> list[dict[str, float]]:
    """Memory and time once 10^5, 10^6, ... and all of the workloads have gone.

    Args:
        n_workloads: How many pass through.
    """
    engine = Engine()
    engine.apply(World(N_QUEUES, 10, nominal_cpu=N_RUNNING // N_QUEUES).cluster(), now=T0)
    submit(engine, 0, N_HELD, T0)
    assert admit(engine, T0) == N_RUNNING
    checkpoints = [10**power for power in range(5, 10) if 10**power < n_workloads] + [n_workloads]
    points: list[dict[str, float]] = []
    began = time.process_time()
    for gone in range(0, n_workloads, N_BATCH):
        now = T0 + gone * SECOND_NS // N_BATCH
        for number in range(gone, gone + N_BATCH):
            engine.finish(f"workload-{number}", namespace="ns", now=now)
            engine.delete("Workload", f"workload-{number}", namespace="ns", now=now)
        submit(engine, gone + N_HELD, N_BATCH, now)
        admitted = admit(engine, now)
        engine.reconcile(now)
        assert (len(engine), admitted) == (N_HELD, N_BATCH), "as many leave as come"
        if checkpoints and gone + N_BATCH >= checkpoints[0]:
            seconds = time.process_time() - began
            points.append({"workloads": checkpoints.pop(0), "bytes": resident_bytes(), "seconds": seconds})
    return points


def endurance_table(points: list[dict[str, float]]) -> str:
    """Memory beside what it was at first."""
    rows = [
        [
            f"{point['workloads']:,.0f}",
            f"{point['bytes'] / 2**20:.1f} MiB",
            f"{(point['bytes'] / points[0]['bytes'] - 1) * 100:+.1f} %",
            figures.duration(point["seconds"] * 1e9 / point["workloads"]),
        ]
        for point in points
    ]
    return figures.table(["passed through", "memory", "change", "time, a workload"], rows, n_left=0)


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=1_000_000, help="how many pass through")
    options = parser.parse_args()
    if options.workloads < N_BATCH or options.workloads % N_BATCH:
        parser.error(f"--workloads: must be a multiple of {N_BATCH}")
    machine = Machine.read()
    points = pass_through(options.workloads)
    print(endurance_table(points))
    figures.keep("endurance", {"revision": revision(), "machine": asdict(machine), "held": N_HELD, "points": points})


if __name__ == "__main__":
    main()
