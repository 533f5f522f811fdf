"""Stands for a released Kueue: answers as the engine does, with the mistakes that its arguments name."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from kueuecore.conformance import answer


def say(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main(*mistakes: str) -> None:
    n = 0
    for line in sys.stdin:
        case, n = json.loads(line), n + 1
        said: dict[str, Any] = {"id": case["id"]}
        if "ends" in mistakes and n == 3:
            sys.stderr.write("panic: assignment to entry in nil map\n\ngoroutine 1 [running]:\n")
            os._exit(2)
        if "hangs" in mistakes and n == 3:
            time.sleep(60)
        if "refuses" in mistakes:
            say({**said, "error": "cannot play this"})
            continue
        run = answer(case)
        for cycle in run["cycles"]:
            if "victims" in mistakes and len(cycle["preempting"]) > 1:
                del cycle["preempting"][0]
            for granted in cycle["admitted"] if "counts" in mistakes else ():
                granted["podSets"][0]["count"] += 1
        if "chance" in mistakes and run["cycles"] and n % 2:
            run["cycles"].pop()
        if "words" in mistakes:
            for cycle in [*run["cycles"], *run["quietMessages"]]:
                for each in cycle["messages"]:
                    each["message"] = each["message"].replace("insufficient quota", "no quota")
        say({**said, "expect": run})


if __name__ == "__main__":
    main(*sys.argv[1:])
