"""How time and memory grow with the cluster, and single steps with their sizes: `make bench-growth`.

One size is changed and the others stay; each point of a cluster is a process of its own. The slope is that of the
logarithms over the larger half of the points: 1 is linear, 0 does not grow.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import binaries, figures  # after the path to it is known
from benches.figures import duration
from benches.growing import SERIES, growing_table
from benches.machine import Machine, revision
from benches.plots import Line, log_log
from benches.slopes import larger_half, signed, slope

# What is changed, what it is called, its values, and the other sizes.
SIZES: dict[str, tuple[str, list[int], dict[str, int]]] = {
    "pending": ("pending workloads", [100, 1_000, 10_000, 100_000, 1_000_000], {"queues": 100, "cohort": 10}),
    "queues": ("ClusterQueues", [10, 100, 1_000, 10_000], {"pending": 100_000, "cohort": 10}),
    "cohort": ("ClusterQueues of a cohort", [10, 100, 1_000, 10_000], {"pending": 30_000, "queues": 10_000}),
    "depth": ("cohorts above each other", [1, 2, 3, 4, 5, 6], {"pending": 10_000, "queues": 1_000, "cohort": 10}),
    "flavors": ("flavors", [1, 2, 4, 8, 16, 32, 64], {"pending": 10_000, "queues": 100, "cohort": 10}),
    "heads": ("heads in one cohort", [10, 30, 100, 300, 1_000, 3_000, 10_000], {}),
}
# Key and title.
COLUMNS = {
    "load_ns_per_workload": "load, a workload",
    "bytes_per_workload": "bytes a workload",
    "cycle_ns": "cycle",
    "head_ns": "cycle, a head",
    "finish_ns_per_workload": "finish, a workload",
}
# Nodes for which memory is counted: just above powers of two tables have the most room to spare.
N_NODES = [2_500, 10_000, 33_000, 40_000]
FOOTPRINT = {
    "bytes_per_leaf": "bytes a leaf and flavor",
    "bytes_per_leaf_and_kind": "and for each kind of pods",
    "bytes_per_domain": "bytes a domain assigned",
}


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="of each point, of which the least counts")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each point of single steps")
    options = parser.parse_args()
    programs = binaries.build()
    machine = Machine.read()
    print(f"{machine.cpu}, {machine.busy()}")
    series = []
    for fair in (False, True):
        for dimension in SIZES:
            points = [_point(programs, dimension, value, fair, options.runs) for value in SIZES[dimension][1]]
            series.append({"dimension": dimension, "fair": fair, "points": points, "slopes": _slopes(points)})
            print(f"\n{series_table(series[-1])}", flush=True)
    footprint = list(binaries.lines(programs / "footprint", *map(str, N_NODES)))
    print(f"\n{footprint_table(footprint)}", flush=True)
    steps = binaries.time_kernels(programs, seconds=options.seconds, growing=True)
    for those in SERIES.values():
        print(f"\n{growing_table(steps, those)}")
    measured = {"series": series, "footprint": footprint, "steps": steps}
    figures.keep("growth", {"revision": revision(), "machine": asdict(machine), **measured})


def _point(programs: Path, dimension: str, value: int, fair: bool, runs: int) -> dict[str, Any]:
    sizes = SIZES[dimension][2] | {dimension: value}
    if (heads := sizes.pop("heads", None)) is not None:
        sizes = {"pending": 3 * heads, "queues": heads, "cohort": heads}
    arguments = [text for name, size in sizes.items() for text in (f"--{name}", str(size))]
    # A large state is measured once: it takes long, and its noise is small.
    n_runs = runs if sizes["pending"] <= 100_000 else 1
    every = [
        line for _ in range(n_runs) for line in binaries.lines(programs / "growth", *arguments, *["--fair"] * fair)
    ]
    point: dict[str, Any] = {"size": value}
    for key in COLUMNS:
        if key != "head_ns":
            found = [line[key] for line in every if line[key] is not None]
            point[key] = min(found, default=None)
    # Memory is taken in pages: too coarse to measure a few workloads.
    if sizes["pending"] < 100_000:
        point["bytes_per_workload"] = None
    point["share_ns"] = every[0]["share_ns"]
    point["head_ns"] = point["cycle_ns"] / every[0]["heads"] if point["cycle_ns"] else None
    return point


def _slopes(points: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    return {key: slope([(p["size"], p[key]) for p in larger_half(points) if p[key]]) for key in COLUMNS}


def plot(dimension: str, series: Sequence[Mapping[str, Any]], head_ns: float) -> str:
    """What grows with a size as an SVG file, with and without fair sharing.

    Args:
        dimension: The size that is changed.
        series: All that was measured.
        head_ns: What Kueue takes for a head without fair sharing.
    """
    plain, fair = sorted(
        (one_series for one_series in series if one_series["dimension"] == dimension),
        key=lambda one_series: bool(one_series["fair"]),
    )
    lines = [_line("cycle", plain, "cycle_ns"), _line("cycle, fair sharing", fair, "cycle_ns")]
    if dimension == "heads":
        lines.append(kueues_tournament(fair["points"], head_ns))
    else:
        lines += [_line(COLUMNS[key], plain, key) for key in ("load_ns_per_workload", "finish_ns_per_workload")]
    title = SIZES[dimension][0]
    return log_log(f"Time over {title}", title, lines)


def _line(name: str, series: Mapping[str, Any], key: str) -> Line:
    slope, points = series["slopes"][key], series["points"]
    reported = "" if slope is None else f", slope {signed(slope)}"
    return Line(name + reported, [(point["size"], point[key]) for point in points if point[key]])


def kueues_tournament(points: Sequence[Mapping[str, Any]], head_ns: float) -> Line:
    """A model: Kueue works out the shares of all heads that are left again for each decision (`computeDRS`).

    Each share takes what it takes here, and all else what Kueue takes without fair sharing.
    """
    share_ns = min(point["share_ns"] for point in points)
    modelled = [(n, n * head_ns + n * (n + 1) / 2 * share_ns) for n in (point["size"] for point in points)]
    return Line(f"Kueue, modelled, slope {signed(slope(larger_half(modelled)))}", modelled, is_model=True)


def series_table(series: Mapping[str, Any]) -> str:
    """The points of one series, and their slopes below."""
    title = SIZES[series["dimension"]][0] + (", fair sharing" if series["fair"] else "")
    rows = [[f"{p['size']:,}", *(_cell(key, p[key]) for key in COLUMNS)] for p in series["points"]]
    rows.append(["slope", *(signed(series["slopes"][key]) for key in COLUMNS)])
    return figures.table([title, *COLUMNS.values()], rows, n_left=0)


def footprint_table(points: Sequence[Mapping[str, Any]]) -> str:
    """What nodes and places take of memory."""
    rows = [[f"{point['nodes']:,}", *(f"{point[key]:,.0f}" for key in FOOTPRINT)] for point in points]
    return figures.table(["nodes", *FOOTPRINT.values()], rows, n_left=0)


def _cell(key: str, value: float | None) -> str:
    if key == "bytes_per_workload":
        return "-" if value is None else f"{value:,.0f}"
    return duration(value)


if __name__ == "__main__":
    main()
