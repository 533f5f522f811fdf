"""Arrays: `Engine.submit`."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from kueuecore import Engine
from kueuecore.objects import Namespace
from tests.attack.case import Case, Wrong
from tests.attack.doors.calls import Call, case_of
from tests.attack.doors.engine import engine_state, replays
from tests.builders import T0, at, cluster_queue, flavor, local_queue, workload

__all__ = ["draw"]

_GIVEN: dict[str, Any] = {
    "namespace": "ns",
    "local_queues": ["lq", "other"],
    "queue": [0, 1, 0],
    "requests": {"cpu": 1, "memory": [1, 2, 3]},
    "count": [1, 2, 3],
    "priority": 0,
    "created": [0, 10**9, 5 * 10**8],
    "prefix": "workload-",
    "first": 0,
    "now": at(2),
}


def draw(rng: Random) -> Case:
    """Columns of which one or two are wrong."""
    engine = Engine(keeps_journal=True)
    engine.apply(
        [Namespace("ns"), flavor(), cluster_queue(), local_queue(), workload("w"), workload("workload-7")], now=T0
    )
    engine.cycle(at(1))
    given = dict(_GIVEN)
    for name in ("queue", "count", "created"):
        if rng.random() < 0.5:
            given[name] = np.array(given[name])
    if rng.random() < 0.2:
        given["queue"] = np.zeros(rng.choice([0, 1, 10_000]), dtype=rng.choice(["u1", "<i4", ">i8", "f8", "?"]))
        given |= {"count": 1, "created": 0, "requests": {"cpu": 1}}
    before = set(engine.workload_keys())
    asked: list[dict[str, Any]] = []

    def submit(**columns: Any) -> None:
        asked.append(columns)
        engine.submit(**columns)

    def taken(_: object) -> None:
        new = [key for key in engine.workload_keys() if key is not None and key not in before]
        n_rows = np.size(asked[0]["queue"])
        if len(new) != n_rows:
            raise Wrong(f"{len(new)} workloads of {n_rows} rows")
        replays(engine)

    return case_of(rng, Call("Engine.submit", submit, given, engine_state(engine), taken, others=tuple(_GIVEN)))
