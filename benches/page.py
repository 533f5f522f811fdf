"""Write docs/performance.md from the figures of the last `make bench`, `bench-growth` and `bench-kueue`.

`make performance` does it. If there are only figures of `bench-kueue`, its section of the page is written anew.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import figures  # after the path to it is known
from benches.endurance import endurance_table
from benches.figures import count, duration, ratio
from benches.growing import SERIES, growing_plot, growing_table
from benches.growth import SIZES, footprint_table, plot, series_table
from benches.kueue import kueue_table
from benches.machine import ROOT
from benches.measure import COUNTED, NO_COPY, run_table, views
from benches.shapes import shapes_of

PAGE = ROOT / "docs/performance.md"
PLOTS = ROOT / "docs/performance"

_INTRODUCTION = """\
# Performance

How long the engine takes, the goals, and how long Kueue's own scheduler took in the same states.

Written by `make performance` from figures of {date}. Do not edit it: run the commands at the end again.

- Measured at commit {revision}, on {cpu}, {n_cores} cores, {memory_gib} GiB, {system}; load average while
  measuring: {load}. {busy}
- Times are CPU time: other programs on a busy machine take its caches, but their time does not count.
- **best** is the shortest of several samples, **median** the middle one.
- **instructions** is what one call executes, as counted by valgrind: it is the same on a busy machine, so use it to
  compare commits. **D1 misses** and **I1 misses** are data and instruction accesses that miss first-level caches of
  32 KiB each in valgrind's model: time that instruction counts hide. **allocations** is how often one call allocates
  memory.
- **Kueue** is a figure recorded with Kueue at commit {kueue}, on another day and machine; take a ratio to it as an
  order of magnitude. Machine: {kueue_machine}.
"""

_BUSY = "Other work ran on the same cores and took their caches: an idle machine is faster."
_QUIET = "The machine was otherwise idle."

_KERNELS = """\
## Single steps

Each row checks that its decisions are Kueue's. **off** is the best sample divided by the goal.

{shapes}

**From Python** is the same state through the package: a cycle, or `Engine.what_if` about the same head, which reads
the Workload as JSON, assigns flavors, looks for victims and writes the answer.
"""

_HEADS = """\
Per head of these cycles:
"""

_RUNS = """\
## Whole runs

15,000 workloads in 30 ClusterQueues (baseline) and 50,000 in 1,000 (large), all created at once (t0) or over time
(interval), through virtual time until all have finished. The numbers of cycles, admissions and preemptions equal
Kueue's; `make conformance` compares them one by one. Times exclude reading the manifests; peak memory includes it.
"""

_KUEUE_TITLE = "## Beside Kueue itself\n"

_KUEUE = """\
`make bench-kueue`: one cycle of Kueue {release} (its scheduler, caches, queues and controllers, which the program of
`tests/oracle` plays) and of the engine, in the same states, on one machine, in one process each, which take turns. All
times are wall time, medians of {samples} cycles, each in a new state. Both have to decide the same, or the command
fails: who gets quota, with which flavors, on which nodes, who is preempted, and who waits until something changes.

- **Kueue** is all of `schedule()`. What it sends to an API server goes to a store in memory: there is no network. The
  status patches of admissions, which a cluster's Kueue writes in goroutines beside its cycles, are written in it.
- **without the store** is that less the time in the store.
- **deciding** is that less the status patches of admissions: what a cycle takes if they are free. Patches of other
  workloads are still prepared in it, and metrics counted, which the engine leaves to its caller. Kueue's log is off.
- **engine** is `Engine.cycle`, called from Python. It writes statuses, too, but in its own memory; to read decisions as
  Python objects takes longer, as rows below say.

The last column is the fairest: it compares deciding with deciding. In a cluster, requests to the API server take longer
than either. Kueue may use all cores, and collects garbage a tenth as often as by default; the engine has one thread.

Before a placement is measured, such pods have been placed once: the engine keeps what it knows of nodes from then on.
Kueue 0.19 builds its tree of nodes anew for each cycle, unless its gate TASCacheTopologyTree, off by default, is on.

Measured on {date} at commit {revision}, with the build profile `{build}`, on {cpu}, {n_cores} cores; load average
before: {load}. {busy}
"""

_PYTHON = """\
## From Python

`benches/load.py`: {workloads:,} pending workloads in {queues:,} ClusterQueues and {cohorts} cohorts, applied as JSON,
then cycles until nothing changes. Trusted JSON is read without an API server's checks.
"""

_SINGLE = """\
Single calls; the reference model states the same rules in plain Python.
"""

_GROWTH = """\
## Growth

Eight shapes and three priorities, two resources; all heads of a cycle fit, in the last flavor. One size grows, the
others stay:

{others}

The slope is that of the logarithms over the larger half of the points: 0 is constant, 1 is linear. Bytes are what the
process takes from the system, so they are shown from 100,000 workloads on. With fair sharing each cycle holds a
tournament. Both axes of the plots are logarithmic, so a power is a straight line.

Measured at commit {revision}; load average {load}.
"""

_FOOTPRINT = """\
### Memory of nodes and places

Bytes that the engine allocates, counted exactly: for a node as a leaf in a flavor's tree, for what fits there for one
kind of pods, and for each domain assigned to a workload, here a whole host.
"""

_STEPS = """\
## Growth of single steps

Shapes whose time could grow faster than the work. Slopes are again over the larger half of the points; the slope of the
time per unit is one less.
"""

_TOURNAMENT = """\
With fair sharing every decision goes to the winner of a tournament among the remaining heads. Kueue {kueue}
recomputes all their shares for each decision, n(n + 1)/2 shares for n heads. Its line is a **model**, not a
measurement, and a lower bound: its time per head without fair sharing (recorded, `Cycle/fit`), plus those shares, each
in the time that one takes here. Over these sizes a line that grows with n log n has a slope of 1.1, not 1.
"""

_ENDURANCE = """\
## Memory over time

Workloads pass through an engine that holds {held:,}, from Python: each is submitted, waits, gets quota, finishes and is
deleted, with a unique name and unique requests. Memory is that of the whole process.

Measured at commit {revision}; load average {load}.
"""

_REPEAT = """\
## Reproduce it

```sh
make bench                        # all but growth; the whole runs need the recorded scenarios
make bench-growth THROUGH=10000000
make bench-kueue                  # Kueue itself, and the engine
make performance DATE={date}
make bench-compare BASE=main      # what a change has done: instructions, and time in turns
```
"""


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("date", help="day of the measurements, as YYYY-MM-DD")
    options = parser.parse_args()
    engine, kueue = figures.kept("engine"), figures.kept("kueue")
    if engine is not None:
        PAGE.write_text("\n".join(_parts(engine, options.date)), encoding="utf-8")
        _write_plots(figures.kept("growth"))
    elif kueue is not None:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(replaced(page, _KUEUE_TITLE, "\n".join(_kueue(kueue, options.date))), encoding="utf-8")
    else:
        parser.error("no figures: run `make bench` first")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def replaced(page: str, title: str, section: str) -> str:
    """A page with another text in place of the section of this title."""
    pattern = re.compile(rf"^{re.escape(title)}.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
    if not pattern.search(page):
        raise ValueError(f"no section {title.strip()!r}")
    return pattern.sub(lambda _: f"{section}\n", page, count=1)


def _kueue(kueue: Mapping[str, Any], date: str) -> Iterator[str]:
    yield _KUEUE_TITLE
    machine = kueue["machine"]
    busy = _BUSY if machine["load"][0] > 1 else _QUIET
    yield _KUEUE.format(**kueue | machine | {"load": _load(machine), "date": date, "busy": busy})
    yield kueue_table(kueue["cycles"]) + "\n"


def _write_plots(growth: Mapping[str, Any] | None) -> None:
    if growth is not None:
        PLOTS.mkdir(exist_ok=True)
        # What Kueue takes for a head, of a thousand that fit.
        head_ns = figures.recorded()["kernels_ns"]["Cycle/fit"] / 1000
        for dimension in SIZES:
            (PLOTS / f"{dimension}.svg").write_text(plot(dimension, growth["series"], head_ns), encoding="utf-8")
        for name, steps in SERIES.items():
            (PLOTS / f"{name}.svg").write_text(growing_plot(growth["steps"], steps), encoding="utf-8")


def _parts(engine: Mapping[str, Any], date: str) -> Iterator[str]:
    recorded, machine = figures.recorded(), engine["machine"]
    yield _INTRODUCTION.format(
        **machine | {"load": _load(machine)},
        date=date,
        revision=engine["revision"],
        busy=_BUSY if machine["load"][0] > 1 else _QUIET,
        kueue=recorded["commit"],
        kueue_machine=recorded["machine"],
    )
    kernels = engine["kernels"]
    yield _KERNELS.format(shapes=shapes_of([*kernels, *views(recorded["kernels_ns"])]))
    yield kernels_table(kernels, figures.goals()["kernels_ns"], recorded["kernels_ns"], _steps()) + "\n"
    yield _HEADS
    yield heads_table(kernels) + "\n"
    if engine["runs"]:
        yield _RUNS
        yield run_table(engine["runs"], recorded["runs"]) + "\n"
        yield _run_goals(engine["runs"], figures.goals()["runs_s"])
    kueue = figures.kept("kueue")
    if kueue is not None:
        yield from _kueue(kueue, date)
    yield from _python()
    growth = figures.kept("growth")
    if growth is not None:
        yield _GROWTH.format(revision=growth["revision"], load=_load(growth["machine"]), others=_others())
        for dimension, (title, *_) in SIZES.items():
            yield f"### {title[0].upper()}{title[1:]}\n"
            yield f"![Time over {title}]({PLOTS.name}/{dimension}.svg)\n"
            if dimension == "heads":
                yield _TOURNAMENT.format(kueue=recorded["commit"])
            for series in growth["series"]:
                if series["dimension"] == dimension:
                    yield series_table(series) + "\n"
        yield _FOOTPRINT
        yield footprint_table(growth["footprint"]) + "\n"
        yield _STEPS
        for name, steps in SERIES.items():
            yield f"### {steps.title[0].upper()}{steps.title[1:]}\n"
            yield f"{shapes_of(steps.lines.values())}\n"
            yield f"![Time over {steps.title}]({PLOTS.name}/{name}.svg)\n"
            yield growing_table(growth["steps"], steps) + "\n"
    endurance = figures.kept("endurance")
    if endurance is not None:
        load = _load(endurance["machine"])
        yield _ENDURANCE.format(held=endurance["held"], revision=endurance["revision"], load=load)
        yield endurance_table(endurance["points"]) + "\n"
    yield _REPEAT.format(date=date)


def _others() -> str:
    words = {"pending": "pending workloads", "queues": "ClusterQueues", "cohort": "of them in a cohort"}
    reported = []
    for dimension, (title, _, others) in SIZES.items():
        if dimension == "heads":
            reported.append(
                f"- {title} grow: as many ClusterQueues, all in that cohort, with three pending workloads each"
            )
            continue
        sizes = ", ".join(f"{others[name]:,} {words[name]}" for name in words if name in others)
        reported.append(f"- {title} grow: {sizes}{'' if dimension == 'flavors' else ', one flavor'}")
    return "\n".join(reported)


def _load(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{load:.1f}" for load in machine["load"])


def kernels_table(
    kernels: Mapping[str, Any], goals: Mapping[str, float], recorded: Mapping[str, float], steps: Mapping[str, float]
) -> str:
    """What each kernel takes, beside its goal and what Kueue takes."""
    if missing := goals.keys() - kernels:
        sys.exit(f"goals.json: no kernel {min(missing)} was measured")
    rows = []
    for name, figure in kernels.items():
        best, goal, theirs = figure["best_ns"], goals.get(name), recorded.get(name)
        cells = [duration(goal), duration(best), _off(best, goal), duration(figure["median_ns"])]
        counted = [*(count(figure[key]) for key in COUNTED), duration(steps.get(name))]
        rows.append([f"`{name}`", *cells, *counted, duration(theirs), ratio(best, theirs)])
    for name, theirs in views(recorded).items():
        rows.append([f"`{name}`", "-", NO_COPY, "-", "-", *["0"] * len(COUNTED), "-", duration(theirs), "-"])
    head = ["one call", "goal", "best", "off", "median", *COUNTED.values(), "from Python", "Kueue", "Kueue / best"]
    return figures.table(head, rows)


def heads_table(kernels: Mapping[str, Any]) -> str:
    """What the cycles among the kernels take for each of their heads."""
    rows = []
    for name, figure in kernels.items():
        if n_heads := figure["heads"]:
            each = [None if figure[key] is None else figure[key] / n_heads for key in COUNTED]
            rows.append([f"`{name}`", f"{n_heads:,}", duration(figure["best_ns"] / n_heads), *map(count, each)])
    return figures.table(["a head of", "heads", "best", *COUNTED.values()], rows)


def _calls() -> list[Any]:
    """What pytest-benchmark has measured."""
    return list((figures.kept("python") or {}).get("benchmarks", ()))


def _steps() -> dict[str, float]:
    """Nanoseconds of the single steps through Python, by name."""
    return {call["param"]: call["stats"]["min"] * 1e9 for call in _calls() if call["name"].startswith("test_step[")}


def _off(reached: float, goal: float | None) -> str:
    if goal is None:
        return "-"
    return "reached" if reached <= goal else f"{reached / goal:.1f}x"


def _run_goals(runs: Mapping[str, Any], goals: Mapping[str, float]) -> str:
    reported = [
        f"{name} in {duration(goal * 1e9)} ({_off(runs[name]['run_s'], goal)})"
        for name, goal in goals.items()
        if name in runs
    ]
    return f"The goals, and the factor to them: {', '.join(reported)}.\n" if reported else ""


def _python() -> Iterator[str]:
    loads = {"with validation": figures.kept("load-validated"), "trusted": figures.kept("load-trusted")}
    found = {name: load for name, load in loads.items() if load is not None}
    if found:
        yield _PYTHON.format(**next(iter(found.values())))
        head = ["applied", "apply", "workloads/s", "cycles", "admissions", "all cycles", "slowest cycle", "peak"]
        rows = [
            [
                name,
                duration(load["apply_s"] * 1e9),
                f"{load['workloads'] / load['apply_s']:,.0f}",
                f"{load['cycles']:,}",
                f"{load['admissions']:,}",
                duration(load["cycles_s"] * 1e9),
                duration(load["slowest_s"] * 1e9),
                f"{load['peak_mib']:.0f} MiB",
            ]
            for name, load in found.items()
        ]
        yield figures.table(head, rows) + "\n"
    calls = {call["name"]: call["stats"] for call in _calls() if not call["name"].startswith("test_step[")}
    if calls:
        yield _SINGLE
        goals = figures.goals()["calls_ns"]
        rows = []
        for name, stats in calls.items():
            best, goal = stats["min"] * 1e9, goals.get(name)
            dull = calls.get(name.replace("_engine_", "_reference_")) if "_engine_" in name else None
            times = ratio(stats["min"], dull["min"]) if dull else "-"
            cells = [duration(goal), duration(best), _off(best, goal), duration(stats["median"] * 1e9), times]
            rows.append([_words(name), *cells])
        yield figures.table(["call", "goal", "best", "off", "median", "reference / best"], rows) + "\n"


def _words(name: str) -> str:
    """`test_cycle_with_100_heads[fits]` as words."""
    return name.removeprefix("test_").replace("[", ": ").rstrip("]").replace("_", " ")


if __name__ == "__main__":
    main()
