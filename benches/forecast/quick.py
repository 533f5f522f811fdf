"""Check on a generated log, and on a slice of each real one that is there, that forecasts hold as well as recorded.

python -m benches.forecast.quick [LOG ...] [--record]

The same questions are asked each time and nothing is random but by seed, so figures change only with the forecasts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from benches.figures import table
from benches.forecast.asking import ETA, Part, Settings, kept_parts
from benches.forecast.logs import log_files
from benches.forecast.measure import measure, parts_of
from benches.forecast.moments import Way
from benches.forecast.synthetic import synthetic_log
from benches.forecast.tables import Judged, judged
from benches.machine import ROOT
from kueuecore.errors import ManifestError

__all__ = ["COVERAGE_TOLERANCE", "SCORE_TOLERANCE", "figures_of", "regressions"]

RECORDED = ROOT / "benches/forecast/recorded.json"
COVERAGE_TOLERANCE = 0.05
"""By how much the coverage of the 80 % interval may be farther from 80 %, and fewer medians within a factor of two."""
SCORE_TOLERANCE = 1.1
"""By which factor the interval score may be worse, compared with the best baseline's."""
# Each part is a process that begins without experience, so that most of its time would go into the past.
_SETTINGS = Settings(n_asked=60, n_futures=24, n_moments=8, n_oracle=0)
_LEVEL = 0.8

Figures: TypeAlias = Mapping[str, float]
"""Figures by name: `coverage`, `score` and `log_score` as ratios to the best baseline, `factor_two`."""


def figures_of(part: Judged) -> Figures:
    """Return what is compared of one part."""
    own = part.by[ETA]
    return {
        "coverage": round(own.coverage[_LEVEL].value, 4),
        "score": round(part.ratio().value, 4),
        "log_score": round(part.ratio(of_logs=True).value, 4),
        "factor_two": round(own.factor_two.value, 4),
    }


def regressions(now: Figures, recorded: Figures) -> list[str]:
    """Say what has become worse by more than is tolerated, in words; nothing if nothing has."""
    found = []
    off, was_off = (abs(figures["coverage"] - _LEVEL) for figures in (now, recorded))
    if off > was_off + COVERAGE_TOLERANCE:
        found.append(f"coverage {now['coverage']:.1%} is farther from 80 % than {recorded['coverage']:.1%}")
    if now["factor_two"] < recorded["factor_two"] - COVERAGE_TOLERANCE:
        found.append(f"factor 2 for {now['factor_two']:.1%} of medians instead of {recorded['factor_two']:.1%}")
    for name, words in (("score", "score"), ("log_score", "score of logs")):
        if now[name] > recorded[name] * SCORE_TOLERANCE:
            found.append(f"{words} to the best baseline {now[name]:.2f} instead of {recorded[name]:.2f}")
    return found


def main() -> int:
    """Ask, compare and print a table.

    Returns:
        The exit code: 0, 1 if something has regressed, 2 if a log is broken.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", type=Path, default=[], help="logs in SWF, or folders with some, if there")
    parser.add_argument("--record", action="store_true", help="record these figures instead of comparing")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    try:
        parts = _measured([place for place in options.logs if place.exists()], options.workers)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    now = {f"{part.kept.log}, {part.kept.way.value}": figures_of(part) for part in parts}
    recorded: dict[str, Figures] = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    if options.record:
        RECORDED.write_text(json.dumps({**recorded, **now}, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        recorded = now
    print(_table(now, recorded))
    worse = {name: regressions(figures, recorded[name]) for name, figures in now.items() if name in recorded}
    for name, lines in worse.items():
        for line in lines:
            print(f"{name}: {line}", file=sys.stderr)
    return 1 if any(worse.values()) else 0


def _measured(places: Sequence[Path], workers: int) -> list[Judged]:
    with TemporaryDirectory() as folder:
        log = Path(folder) / "synthetic.swf"
        log.write_text(synthetic_log(), encoding="utf-8")
        # Of real logs only waits at random moments: most of the time goes into these.
        parts: list[Part] = [*parts_of(log_files(places), _SETTINGS, [Way.WAITING]), *parts_of([log], _SETTINGS)]
        measure(parts, Path(folder) / "kept", workers=workers)
        return [judged(kept) for kept in kept_parts(Path(folder) / "kept")]


def _table(now: Mapping[str, Figures], recorded: Mapping[str, Figures]) -> str:
    rows = []
    for name, figures in sorted(now.items()):
        was = recorded.get(name)
        row = [name]
        for key, is_share in (("coverage", True), ("score", False), ("log_score", False), ("factor_two", True)):
            row.append(_text(figures[key], is_share=is_share))
            row.append("-" if was is None else _text(was[key], is_share=is_share))
        rows.append(row)
    head = ["log", "in 80 %", "was", "score to best", "was", "of logs", "was", "factor 2", "was"]
    return table(head, rows)


def _text(value: float, *, is_share: bool) -> str:
    return f"{100 * value:.1f} %" if is_share else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
