"""A large cluster from Python: apply all workloads, run cycles until nothing changes, print what it took.

Times are those that the processor spent on it, so that other programs on a busy machine do not count.

Run it as `python benches/load.py [--queues 1000] [--cohorts 100] [--pending 100] [--trusted]`, with an extension built
for release.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import figures  # after the path to it is known
from benches.worlds import T0, World
from kueuecore.engine import Engine


def main() -> None:
    """Run it once and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", type=int, default=1000, help="ClusterQueues")
    parser.add_argument("--cohorts", type=int, default=100, help="cohorts; 0: none")
    parser.add_argument("--pending", type=int, default=100, help="pending workloads of each ClusterQueue")
    parser.add_argument("--trusted", action="store_true", help="apply without validation")
    parser.add_argument("--keep", action="store_true", help="keep the figures for `make performance`")
    options = parser.parse_args()
    world = World(options.queues, options.cohorts, n_pending=options.pending)

    began = time.process_time()
    cluster, workloads = world.cluster(), world.workloads()
    generated = time.process_time()
    engine = Engine()
    engine.apply(cluster, now=T0, trusted=options.trusted)
    engine.apply(workloads, now=T0, trusted=options.trusted)
    applied = time.process_time()
    cycles, admissions, slowest = 0, 0, 0.0
    while True:
        before = time.process_time()
        decision = engine.cycle(T0 + cycles * 1_000_000_000)
        slowest = max(slowest, time.process_time() - before)
        if decision.cycle == 0:
            break
        cycles += 1
        admissions += len(decision.admissions)
        if not decision.has_changed_something:
            break
    quiet = time.process_time()

    print(f"{len(engine)} workloads in {options.queues} ClusterQueues, {options.cohorts} cohorts")
    print(f"generate  {generated - began:8.2f} s  {len(cluster) + len(workloads):,} bytes")
    print(f"apply     {applied - generated:8.2f} s  {len(engine) / (applied - generated):,.0f} workloads/s")
    rate = admissions / (quiet - applied)
    print(f"cycle     {quiet - applied:8.2f} s  {cycles} cycles, {admissions} admissions, {rate:,.0f} admissions/s")
    print(f"slowest   {slowest * 1000:8.1f} ms")
    # Linux counts kilobytes.
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory    {peak_mib:8.0f} MiB at the peak")
    if options.keep:
        kept = {
            "workloads": len(engine),
            "queues": options.queues,
            "cohorts": options.cohorts,
            "apply_s": applied - generated,
            "cycles": cycles,
            "admissions": admissions,
            "cycles_s": quiet - applied,
            "slowest_s": slowest,
            "peak_mib": peak_mib,
        }
        figures.keep("load-trusted" if options.trusted else "load-validated", kept)


if __name__ == "__main__":
    main()
