"""How long the command takes to start and to answer, as ratios to another checkout: `--base /path/to/it`.

Both take turns in one run, so the ratios say more than the figures on a busy machine. CPU time of the whole command,
the least of the rounds. What takes longer than the limit is stopped and shown as such.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import figures  # after the path to it is known
from benches.answer_states import CONFIGURATION, crowded, shared_nodes, yaml
from benches.figures import duration, ratio
from benches.machine import ROOT, Machine

_FIRST_CHANGE = """
import sys
from kueuecore import Engine, World, read_manifests, settle
from kueuecore.answers import unblock
engine, now = Engine(), "2026-01-05T12:00:00Z"
World.of(read_manifests(sys.argv[1])).apply_to(engine, now=now)
settle(engine, now=now)
def stop(n_tried, found):
    if found:
        raise SystemExit
unblock(engine, sys.argv[2], namespace="ns", now=now, was_at_rest=True, progress=stop)
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A command to time.

    Args:
        name: What it answers.
        arguments: The arguments of the command.
        code: A program to run in its place, with these arguments.
    """

    name: str
    arguments: tuple[str, ...]
    code: str = ""


def main() -> None:
    """Time both in turns, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of the names of cases; none: all")
    parser.add_argument("--base", type=Path, help="another checkout, with its extension built")
    parser.add_argument("--rounds", type=int, default=3, help="rounds in which each takes its turn")
    parser.add_argument("--limit", type=float, default=120, help="seconds of CPU after which a command is stopped")
    options = parser.parse_args()
    sides = [ROOT] if options.base is None else [options.base.resolve(), ROOT]
    with tempfile.TemporaryDirectory() as folder:
        cases = [
            case for case in _cases(Path(folder)) if not options.names or any(n in case.name for n in options.names)
        ]
        best: dict[tuple[Path, str], float | str] = {}
        for _ in range(options.rounds):
            for case in cases:
                for side in sides:
                    best[side, case.name] = _less(best.get((side, case.name)), _timed(side, case, options.limit))
    print(f"CPU time; {Machine.read().busy()}\n")
    rows = [
        [case.name, *(_shown(best[side, case.name]) for side in sides), _ratio(best, sides, case)] for case in cases
    ]
    heads = ["command", *(["before"] if options.base else []), "now", "ratio"]
    print(figures.table(heads, rows))


def _cases(folder: Path) -> list[Case]:
    files = {n: folder / f"crowded-{n}.yaml" for n in (50, 100, 400)}
    for n, file in files.items():
        file.write_text(yaml(crowded(n)), encoding="utf-8")
    nodes, config = folder / "nodes.yaml", folder / "config.yaml"
    nodes.write_text(yaml(shared_nodes(300)), encoding="utf-8")
    config.write_text(CONFIGURATION, encoding="utf-8")
    small = str(ROOT / "examples/two-teams")
    eta = ("eta", "-q", str(nodes), "w290", "--config", str(config), "--workers", "1", "--seeds", "4")
    return [
        Case("--version", ("--version",)),
        Case("--help", ("--help",)),
        Case("run of a small state", ("run", "-q", small)),
        Case("explain on a small state", ("explain", "-q", small, "team-b/everything-at-once")),
        *(Case(f"check, {n} waiting", ("check", "-q", str(file))) for n, file in files.items()),
        *(
            Case(f"unblock, {n} waiting: first change", (str(file), "w90"), _FIRST_CHANGE)
            for n, file in files.items()
            if n >= 100
        ),
        *(Case(f"unblock, {n} waiting", ("unblock", "-q", str(file), "ns/w80")) for n, file in files.items()),
        Case("eta, 4 futures of 300 workloads", eta),
    ]


def _timed(root: Path, case: Case, limit: float) -> float | str:
    """Seconds of CPU; a text if it did not get that far, or has no such interface."""
    head = ["-c", case.code] if case.code else ["-m", "kueuecore"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *head, *case.arguments],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root / "python")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 1)),
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode < 0:
        return f"over {limit:g} s"
    # check ends with 1 if it finds something.
    if done.returncode not in (0, 1) or (case.code and done.returncode):
        return "-"
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def _less(one: float | str | None, other: float | str) -> float | str:
    numbers = [entry for entry in (one, other) if isinstance(entry, float)]
    return min(numbers) if numbers else other


def _shown(seconds: float | str) -> str:
    return seconds if isinstance(seconds, str) else duration(seconds * 1e9)


def _ratio(best: dict[tuple[Path, str], float | str], sides: list[Path], case: Case) -> str:
    found = [best[side, case.name] for side in sides]
    if len(found) < 2 or not all(isinstance(seconds, float) for seconds in found):
        return "-"
    before, now = found
    return ratio(now if isinstance(now, float) else None, before if isinstance(before, float) else None)


if __name__ == "__main__":
    main()
