"""The kernels now and at another commit, in turn: `make bench-compare BASE=main`.

The benchmark itself is that of now for both. Instructions tell changes of a few per cent, also on a busy machine; the
time is the least of several rounds, in which both take turns.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches import binaries, figures  # after the path to it is known
from benches.figures import count, duration
from benches.machine import ROOT, Machine, revision


def main() -> None:
    """Build both, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="commit to compare with")
    parser.add_argument("names", nargs="*", help="parts of the names of kernels; none: all")
    parser.add_argument(
        "--rounds", type=int, default=5, help="rounds in which each takes its turn; 0: only instructions"
    )
    parser.add_argument("--seconds", type=float, default=0.2, help="for each kernel in each round")
    options = parser.parse_args()
    if not revision(options.base):
        parser.error(f"{options.base}: git knows no such commit")
    print("building both; the first time takes minutes", flush=True)
    now = binaries.build()
    with _checked_out(options.base) as root:
        try:
            # Kept from one comparison to the next, since the dependencies are the same.
            base = binaries.build(root, ROOT / ".cache/bench-compare")
        except subprocess.CalledProcessError:
            sys.exit(f"{options.base} does not build with the benchmark of now: its engine has another interface")
        _compare(base, now, options)


def _compare(base: Path, now: Path, options: argparse.Namespace) -> None:
    print(f"{revision(options.base)} and {revision()}; {Machine.read().busy()}\n")
    names = [name for name in binaries.kernel_names(now) if _is_wanted(name, options.names)]
    best: list[dict[str, float]] = [{}, {}]
    for _ in range(options.rounds):
        for side, programs in enumerate((base, now)):
            for name, figure in binaries.time_kernels(programs, seconds=options.seconds, names=names).items():
                best[side][name] = min(figure["best_ns"], best[side].get(name, float("inf")))
    rows = []
    for name in names:
        found = [binaries.counts(programs, name) for programs in (base, now)]
        counts = [None if error is None else error.instructions for error in found]
        times = [side.get(name) for side in best]
        texts = [[count(c) for c in counts], [duration(t) for t in times]]
        rows.append([name, *texts[0], change(*counts), *texts[1], change(*times)])
    head = ["one call", "base: instructions", "now", "change", "base: time", "now", "change"]
    print(figures.table(head, rows))
    if shutil.which("valgrind") is None:
        print("\nInstructions are not counted: there is no valgrind here.")


def _is_wanted(name: str, parts: list[str]) -> bool:
    return not parts or any(part in name for part in parts)


def change(before: float | None, after: float | None) -> str:
    """What changed, in per cent of what was before; `-` if one is missing."""
    return f"{(after / before - 1) * 100:+.1f} %" if before and after else "-"


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """A work tree of a commit, with the benchmark of now in it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "base"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(root), commit], check=True)
        try:
            shutil.rmtree(root / "benches/engine", ignore_errors=True)
            shutil.copytree(ROOT / "benches/engine", root / "benches/engine")
            yield root
        finally:
            subprocess.run([*git, "remove", "--force", str(root)], check=True)


if __name__ == "__main__":
    main()
