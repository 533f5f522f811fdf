"""Regenerate the state in examples/eta: a simulated cluster after some hours.

python -m scripts.eta_example [FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from kueuecore import Configuration
from scripts.calibrate_eta import CONFIGURATION, HOUR, Family, Stream, exponential, history_of, lognormal, workloads_of

QUEUES = Path("examples/eta/queues.yaml")
_HOURS = 5


def example() -> str:
    """Return the finished, running and pending Workloads as JSON lines."""
    train = Stream(
        queue="jobs",
        namespace="vision",
        name="train",
        per_hour=4.5,
        cpus=(2, 4),
        runs=lognormal(2400, 0.8),
        priorities=(0,),
    )
    evaluate = Stream(
        queue="jobs",
        namespace="vision",
        name="evaluate",
        per_hour=5,
        cpus=(1,),
        runs=exponential(900),
        priorities=(10,),
    )
    decode = Stream(
        queue="jobs", namespace="speech", name="decode", per_hour=6, cpus=(1, 2, 3), runs=lognormal(1200, 0.5)
    )
    family = Family(queues=QUEUES.read_text(encoding="utf-8"), streams=(train, evaluate, decode))
    history = history_of(family, Random("examples/eta"), Configuration.parse(CONFIGURATION), _HOURS * HOUR)
    history.advance(history.start + round(_HOURS * HOUR) * 10**9)
    return "".join(f"---\n{json.dumps(workload.object)}\n" for workload in workloads_of(history))


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "examples/eta/workloads.yaml").write_text(example(), encoding="utf-8")
