"""Cycles of a released Kueue and of the engine, in the same states: `make bench-kueue`.

Kueue is played by the program of tests/oracle, which `make oracle` builds. Both have a process of their own and take
turns; each sample is a cycle in a new state, in wall time. Both have to decide the same, or the figures mean nothing.

The figures are kept in `.benchmarks` for the page (`make performance`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import figures  # after the path to it is known
from benches.cycles import CYCLES, RELEASE, Cycle
from benches.figures import duration, ratio
from benches.machine import ROOT, Machine, revision
from tests.judge.oracle import Oracle

__all__ = ["kueue_table"]

ORACLE = ROOT / ".cache/oracle/kueue-0.19"


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of cycles; none: all")
    parser.add_argument("--samples", type=int, default=5, help="of each cycle, after one that does not count")
    parser.add_argument("--oracle", type=Path, default=ORACLE, help="the program that plays Kueue")
    parser.add_argument("--build", default="develop", help="the build profile of the extension, for the page")
    options = parser.parse_args()
    busy = Machine.read()
    print(f"{busy.cpu}, {busy.busy()}\n")
    cycles = {}
    with Oracle([str(options.oracle), "--timed"], patience=600.0) as oracle:
        for name, state in CYCLES.items():
            if not options.names or any(part in name for part in options.names):
                print(name, file=sys.stderr)
                cycles[name] = measured(oracle, name, state(), options.samples)
    print(kueue_table(cycles))
    if not options.names:
        machine = asdict(Machine.read()) | {"load": list(busy.load)}
        kept = {"release": RELEASE, "build": options.build, "samples": options.samples, "cycles": cycles}
        figures.keep("kueue", {"revision": revision(), "machine": machine, **kept})


def measured(oracle: Oracle, name: str, state: Cycle, n_samples: int) -> dict[str, float]:
    """The medians of some samples."""
    samples = [_sample(oracle, name, state) for _ in range(n_samples + 1)][1:]
    return {key: median(sample[key] for sample in samples) for key in samples[0]}


def _sample(oracle: Oracle, name: str, state: Cycle) -> dict[str, float]:
    [verdict] = oracle.plays(state.case(name), 1)
    if verdict.crash or verdict.error:
        sys.exit(f"{name}: Kueue: {verdict.crash or verdict.error}")
    engine = state.engine()
    began = time.perf_counter_ns()
    decision = engine.cycle(state.now)
    engine_ns = time.perf_counter_ns() - began
    if state.of_kueue(verdict.answer) != state.of_engine(decision):
        sys.exit(f"{name}: Kueue and the engine decide differently")
    took = verdict.times[state.number]
    return {
        "kueue_ns": took.all_ns,
        "without_store_ns": took.all_ns - took.store_ns,
        "deciding_ns": took.all_ns - took.writing_ns,
        "engine_ns": engine_ns,
    }


def kueue_table(cycles: Mapping[str, Any]) -> str:
    """What each cycle took."""
    parts = ("kueue_ns", "without_store_ns", "deciding_ns")
    rows = [
        [
            name,
            *(duration(figure[part]) for part in (*parts, "engine_ns")),
            *(ratio(figure["engine_ns"], figure[part]) for part in (parts[0], parts[-1])),
        ]
        for name, figure in cycles.items()
    ]
    head = ["one cycle", "Kueue", "without the store", "deciding", "engine", "Kueue / engine", "deciding / engine"]
    return figures.table(head, rows)


if __name__ == "__main__":
    main()
