"""The table of `make bench`: kernels, whole runs, and what was recorded of Kueue beside them.

The figures are kept in `.benchmarks` for the page (`make performance`).
"""

from __future__ import annotations

import argparse
import gzip
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import binaries, figures  # after the path to it is known
from benches.figures import count, duration, ratio
from benches.machine import Machine, revision

# Key and title.
COUNTS = {"instructions": "instructions", "d1_misses": "D1 misses", "i1_misses": "I1 misses"}
COUNTED = COUNTS | {"allocations": "allocations"}
NO_COPY = "nothing (no copy)"
"""A cycle works on the state itself, under a journal."""


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of kernels; none: all")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each kernel")
    parser.add_argument("--scenarios", type=Path, help="folder with recorded scenarios (.jsonl.gz)")
    parser.add_argument("--runs", type=int, default=3, help="of each scenario, of which the fastest counts")
    parser.add_argument("--no-instructions", action="store_true", help="do not count instructions and misses")
    options = parser.parse_args()
    recorded = figures.recorded()
    programs = binaries.build()
    busy = Machine.read()
    print(f"{busy.cpu}, {busy.busy()}\n")

    kernels = binaries.time_kernels(programs, seconds=options.seconds, names=options.names)
    allocations = binaries.allocations(programs, options.names)
    for name, figure in kernels.items():
        counted = None if options.no_instructions else binaries.counts(programs, name)
        figure |= dict.fromkeys(COUNTS) if counted is None else asdict(counted)
        figure["allocations"] = allocations[name]
    print(kernel_table(kernels, recorded["kernels_ns"]))
    if not options.no_instructions and any(figure["instructions"] is None for figure in kernels.values()):
        print("\nInstructions and misses are not counted: there is no valgrind here.")

    runs = {}
    with _scenarios(options.scenarios) as scenarios:
        for path in scenarios:
            every = [
                line for _ in range(options.runs) for line in binaries.lines(programs / "scenario", "--json", path)
            ]
            runs[every[0]["name"]] = min(every, key=lambda line: float(line["run_s"]))
    print(f"\n{run_table(runs, recorded['runs'])}" if runs else "\nNo recorded scenarios at hand: no whole runs.")
    print(f"\nKueue's figures are recorded, of another day and another machine: {recorded['machine']}.")
    if not options.names:
        machine = asdict(Machine.read()) | {"load": list(busy.load)}
        figures.keep("engine", {"revision": revision(), "machine": machine, "kernels": kernels, "runs": runs})


@contextmanager
def _scenarios(folder: Path | None) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as plain:
        paths = []
        for packed in sorted(folder.glob("*.jsonl.gz")) if folder else []:
            path = Path(plain) / packed.name.replace(".jsonl.gz", ".json")
            path.write_bytes(gzip.decompress(packed.read_bytes()))
            paths.append(str(path))
        yield paths


def kernel_table(kernels: Mapping[str, Any], recorded: Mapping[str, float]) -> str:
    """Time of a call, what is counted of it, and what Kueue took."""
    rows = [
        [
            name,
            duration(figure["best_ns"]),
            duration(figure["median_ns"]),
            *(count(figure[key]) for key in COUNTED),
            duration(recorded.get(name)),
            ratio(figure["best_ns"], recorded.get(name)),
        ]
        for name, figure in kernels.items()
    ]
    nothing = ["0"] * len(COUNTED)
    rows += [[name, NO_COPY, "-", *nothing, duration(theirs), "-"] for name, theirs in views(recorded).items()]
    return figures.table(["one call", "best", "median", *COUNTED.values(), "Kueue", "ratio"], rows)


def views(recorded: Mapping[str, float]) -> dict[str, float]:
    """What Kueue took for a consistent view of its state: a copy. The engine takes none."""
    return {name: ns for name, ns in recorded.items() if name.startswith("View/")}


def run_table(runs: Mapping[str, Any], recorded: Mapping[str, Any]) -> str:
    """Time of a whole run without reading its manifests, and what Kueue took."""
    rows = []
    for name, run in runs.items():
        seconds, theirs = run["run_s"], recorded.get(name, {})
        same = all(theirs.get(key, run[key]) == run[key] for key in ("cycles", "admissions", "preemptions"))
        rows.append(
            [
                name if same else f"{name} (other decisions!)",
                duration(seconds * 1e9),
                f"{run['cycles'] / seconds:,.0f}",
                f"{run['admissions'] / seconds:,.0f}",
                f"{run['peak_bytes'] / 2**20:.0f} MiB",
                duration(theirs.get("seconds", 0) * 1e9 or None),
                f"{theirs['peak_mib']} MiB" if "peak_mib" in theirs else "-",
                ratio(seconds, theirs.get("seconds")),
            ]
        )
    head = ["whole run", "best", "cycles/s", "admissions/s", "peak", "Kueue", "Kueue's peak", "ratio"]
    return figures.table(head, rows)


if __name__ == "__main__":
    main()
