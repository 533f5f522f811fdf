"""Measure how well forecasts hold on logs of real machines, and write docs/forecast.md.

python -m benches.forecast [LOG ...] [--asked 1000] [--futures 40] [--oracles 200] [--workers 2] [--page]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benches.forecast.asking import Settings, kept_parts
from benches.forecast.logs import log_files
from benches.forecast.measure import measure, parts_of
from benches.forecast.moments import Way
from benches.forecast.page import write_page
from benches.forecast.tables import summary
from benches.machine import ROOT
from kueuecore.errors import ManifestError

FOLDER = ROOT / "target/forecast"
PAGE = ROOT / "docs/forecast.md"
PICTURES = ROOT / "docs/forecast"


def main() -> int:
    """Measure, unless only the page is wanted; print the tables, and write the page.

    Returns:
        The exit code: 0, or 2 if there is no log or one is broken.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", type=Path, default=[], help="logs in SWF, or folders with some")
    parser.add_argument("--asked", type=int, default=1000, help="forecasts per log and way of asking")
    parser.add_argument("--futures", type=int, default=40, help="futures per forecast")
    parser.add_argument("--oracles", type=int, default=200, help="how many of them to ask the oracles too")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--way", choices=[*Way], action="append", type=Way, help="by default both")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=FOLDER, help="where answers are kept")
    parser.add_argument("--page", action="store_true", help="only write the page from the answers that are kept")
    parser.add_argument("--no-page", action="store_true", help="only print the tables")
    options = parser.parse_args()
    settings = Settings(n_asked=options.asked, n_futures=options.futures, n_oracle=options.oracles, seed=options.seed)
    try:
        files = [] if options.page else log_files(options.logs)
        measure(parts_of(files, settings, options.way or tuple(Way)), options.keep, workers=options.workers)
    except ManifestError as error:
        print(error, file=sys.stderr)
        return 2
    kept = [part for part in kept_parts(options.keep) if part.asked]
    if not kept:
        print(f"no answers: name a log in SWF, or a folder with some; none is kept in {options.keep}", file=sys.stderr)
        return 2
    print(summary(kept))
    if not options.no_page:
        write_page(kept, PAGE, PICTURES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
