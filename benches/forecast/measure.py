"""Measure all logs in processes side by side, with a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path

from benches.forecast.asking import Part, Settings, ask_all
from benches.forecast.moments import Way
from kueuecore.cli.progress import run_progress
from kueuecore.studies.running import processes

__all__ = ["measure", "parts_of"]

_EVERY_SECONDS = 1.0


def parts_of(files: Sequence[Path], settings: Settings, ways: Sequence[Way] = tuple(Way)) -> list[Part]:
    """Return what to measure: the largest logs first, so that the last part to end is a short one."""
    ordered = sorted(files, key=lambda file: (-file.stat().st_size, str(file)))
    return [Part(file=str(file), way=way, settings=settings) for file in ordered for way in ways]


def measure(parts: Sequence[Part], folder: Path, *, workers: int = 2, quiet: bool = False) -> list[Path]:
    """Ask for all forecasts, and write them into a folder.

    Args:
        parts: What to measure.
        folder: Where the answers go, a file for each part.
        workers: How many processes; a part stays in one, in order of time.
        quiet: Whether to show no bar.
    """
    paths = [part.path(folder) for part in parts]
    for path in paths:
        path.unlink(missing_ok=True)
    n_all = sum(part.settings.n_asked for part in parts)
    with processes(workers) as executor, run_progress(quiet=quiet) as report:
        if executor is None:
            for done, part in enumerate(parts, 1):
                ask_all(part, folder)
                if report is not None:
                    report(done, len(parts))
            return paths
        left: set[Future[Path]] = {executor.submit(ask_all, part, folder) for part in parts}
        while left:
            done_now, left = wait(left, timeout=_EVERY_SECONDS, return_when=FIRST_COMPLETED)
            for future in done_now:
                path = future.result()
                if report is None and not quiet:
                    print(f"{path.stem}: {_n_answers(path):,} answers", file=sys.stderr)
            if report is not None:
                report(sum(map(_n_answers, paths)), n_all)
    return paths


def _n_answers(path: Path) -> int:
    if not path.exists():
        return 0
    with path.open("rb") as lines:
        return max(sum(1 for _ in lines) - 1, 0)
