"""A day of jobs in a cluster, printed as a timeline: sixty jobs, six queues, a lost node, and three kills.

    make day                                         a fake API server, and two replicas of `kueuecore serve`
    python -m scripts.day --kubeconfig FILE          your own cluster; its nodes are left alone

Against the fake API server, every run ends with the same admissions, evictions and statuses.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scripts.day.day import Day
from scripts.day.place import Fake, Given


def main() -> int:
    """Play the day; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", metavar="FILE", type=Path, help="play it in this cluster")
    parser.add_argument("--context", metavar="NAME", help="a context of the kubeconfig")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write the outcome as JSON without times")
    options = parser.parse_args()
    place = Given(options.kubeconfig, options.context) if options.kubeconfig else Fake()
    with place:
        outcome = Day(place, say=lambda line: print(line, flush=True)).play()
    if options.output is not None:
        options.output.write_text(json.dumps(outcome, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
