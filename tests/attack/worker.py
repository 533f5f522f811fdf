"""The process in which cases run. What it finds goes to the file descriptor it is given, a JSON line for each case."""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import warnings
from dataclasses import asdict
from random import Random

from kueuecore.__main__ import FEW_COLLECTIONS
from tests.attack.doors import DOORS
from tests.attack.judging import judged

_ADDRESS_SPACE = 6 * 2**30
_ADDRESS_SPACE_OF_PAGES = 80 * 2**30
"""What draws pictures reserves addresses for 64 GiB of memory, and uses little of it."""
_DOORS_WITH_PAGES = ("reports", "sizes")


def main(door: str, seed: str, first: str, count: str, until: str, descriptor: str) -> None:
    """Run `count` cases of a door from the number `first`, or until that time."""
    most = _ADDRESS_SPACE_OF_PAGES if door in _DOORS_WITH_PAGES else _ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # As in the process of a command.
    gc.set_threshold(FEW_COLLECTIONS)
    warnings.simplefilter("ignore")
    with os.fdopen(int(descriptor), "w", buffering=1, encoding="utf-8") as reported:
        for number in range(int(first), int(first) + int(count)):
            if time.time() > float(until):
                return
            # What begins is written down first: a case may end the process.
            reported.write(f'{{"begins": {number}}}\n')
            case = DOORS[door](Random(f"{seed} {door} {number}"))
            reported.write(json.dumps({"title": case.title[:2000], "size": case.size}) + "\n")
            reported.write(json.dumps(asdict(judged(case))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
