"""Columns of workloads, times and limits that cannot be what was meant: refused by name, and nothing has changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from kueuecore import settle, simulate
from kueuecore._rows import json_name
from kueuecore.checks import CheckController
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError
from kueuecore.objects import LocalQueue, Namespace
from kueuecore.provisioning import ProvisioningController
from kueuecore.simulation import Happening, JobPlan, Operation, VirtualCluster
from kueuecore.steady_state import find_preemption_loop
from kueuecore.submissions import Submissions
from tests.builders import T0, at, cluster_queue, flavor, local_queue, snapshot, workload, world

QUEUES = [Namespace("ns"), flavor(), cluster_queue(), local_queue()]
ROWS: dict[str, Any] = {"namespace": "ns", "local_queues": ["lq"], "queue": [0, 0], "requests": {"cpu": 1000}}
# With checks, a run goes through a VirtualCluster.
RUNS = pytest.mark.parametrize("checks", [(), (ProvisioningController(),)], ids=["simulate", "VirtualCluster"])


def masked(*values: float) -> Any:
    return np.ma.masked_array(values, mask=[value < 0 for value in values])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"queue": masked(0, -1)}, r"^queue: has masked values"),
    ({"count": masked(1, -1)}, r"^count: has masked values"),
    ({"priority": np.ma.masked}, r"^priority: has masked values"),
    ({"requests": {"cpu": masked(-1, 1)}}, r"^requests\['cpu'\]: has masked values"),
    ({"requests": {"cpu": [np.ma.masked_array(1, mask=True), 1]}}, r"^requests\['cpu'\]: has masked values"),
    ({"prefix": "\0"}, r"^prefix: '\\x00': a lowercase RFC 1123 subdomain"),
    ({"prefix": "-"}, r"^prefix: '-': a lowercase"),
    ({"prefix": "Job-"}, r"^prefix: 'Job-': a lowercase"),
    ({"prefix": "x" * 252, "first": 9}, r"^prefix: 'x+\.\.\.: must be no more than 253 characters$"),
    ({"namespace": ""}, r"^namespace: '': a lowercase RFC 1123 label"),
    ({"namespace": "a.b"}, r"^namespace: 'a.b': must not contain dots"),
    ({"namespace": "x" * 64}, r"^namespace: 'x+': must be no more than 63 characters$"),
    ({"local_queues": ["lq", ""]}, r"^local_queues\[1\]: '': a lowercase"),
    ({"local_queues": ["\0"]}, r"^local_queues\[0\]: '\\x00': a lowercase"),
    ({"requests": {"pods": 1}}, r"^requests\['pods'\]: Kueue counts the pods itself"),
    ({"queue": np.broadcast_to(np.int64(0), 10**8)}, r"^queue: has 100000000 values; submit at most 10000000"),
    ({"count": np.broadcast_to(np.int64(1), 10**8)}, r"^count: must be a scalar or have the shape \(2,\)"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_columns_that_can_not_be_are_refused_by_name(change: dict[str, Any], message: str) -> None:
    engine = world()
    before = snapshot(engine)
    with pytest.raises(ValueError, match=message):
        engine.submit(**(ROWS | change), now=at(1))
    assert (snapshot(engine), engine.now) == (before, T0)


@RUNS
@pytest.mark.parametrize(
    ("change", "message"),
    [
        *REFUSED,
        ({"at": -1}, "^at: must be greater than or equal to 0"),
        ({"at": masked(1.0, -1.0)}, "^at: has masked values"),
        ({"run_seconds": [1, -1]}, "^run_seconds: must be greater than or equal to 0"),
        ({"run_seconds": math.nan}, "^run_seconds: must be greater than or equal to 0"),
        ({"run_seconds": masked(1.0, -1.0)}, "^run_seconds: has masked values"),
        ({"ends_failed": [1, 0]}, "^ends_failed: must be bools, not int64"),
        ({"ends_failed": ["no", "no"]}, "^ends_failed: must be bools, not <U2"),
        ({"ends_failed": [True] * 3}, r"^ends_failed: must be a scalar or have the shape \(2,\)"),
    ],
)
def test_submissions_that_can_not_be_are_refused_by_name(
    change: dict[str, Any], message: str, checks: tuple[CheckController, ...]
) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(QUEUES, submissions=[Submissions(**(ROWS | change))], now=T0, checks=checks)


def test_masks_that_hide_nothing_are_taken() -> None:
    engine = world()
    engine.submit(**(ROWS | {"queue": np.ma.masked_array([0, 0]), "count": masked(1, 2)}), now=at(1))
    assert len(engine) == 2


@pytest.mark.parametrize("local_queues", [{"lq"}, {"lq": 1}, "lq", 5])
def test_local_queues_have_an_order(local_queues: Any) -> None:
    with pytest.raises(TypeError, match="local_queues must be a sequence of names, not"):
        Engine().submit(**(ROWS | {"local_queues": local_queues}))


def test_a_name_that_exists_is_refused_and_its_workload_stays() -> None:
    engine = world(workload("workload-1", 3))
    engine.cycle(at(1))
    before = snapshot(engine)
    with pytest.raises(ValueError, match=r"^prefix: Workload ns/workload-1 already exists; change prefix or first"):
        engine.submit(**ROWS, now=at(2))
    assert (snapshot(engine), engine.now) == (before, at(1))
    engine.submit(**ROWS, first=2, now=at(2))
    assert [other.name for other in engine.workloads()] == ["workload-1", "workload-2", "workload-3"]


@RUNS
def test_a_name_of_submissions_that_is_there_from_the_start_is_refused(checks: tuple[CheckController, ...]) -> None:
    rows = Submissions(**ROWS, prefix="w0", first=9)
    with pytest.raises(ValueError, match=r"^prefix: Workload ns/w010 already exists"):
        simulate([*QUEUES, workload("w010")], submissions=[rows], now=T0, checks=checks)
    for other in ("w10", "w0010", "w011", "w0", "w"):
        simulate([*QUEUES, workload(other)], submissions=[rows], now=T0, checks=checks, max_cycles=1)


@RUNS
@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        (("w", 0), ("w", 1), "w1"),
        (("w", 98), ("w9", 8), "w98"),
        (("w", 99), ("w10", 0), "w100"),
        (("w1", 9), ("w11", 0), "w110"),
        (("w0", 0), ("w00", 0), ""),
        (("w", 8), ("w", 10), ""),
        (("w", 98), ("w09", 8), ""),
        (("a9", 1), ("b9", 1), ""),
    ],
)
def test_a_name_that_two_submissions_have_is_refused(
    one: tuple[str, int], other: tuple[str, int], name: str, checks: tuple[CheckController, ...]
) -> None:
    rows = [Submissions(**ROWS, prefix=prefix, first=first) for prefix, first in (other, one)]
    if not name:
        assert len(simulate(QUEUES, submissions=iter(rows), now=T0, checks=checks).engine) == 4  # type: ignore[arg-type]
        return
    with pytest.raises(ValueError, match=rf"^prefix: two submissions create Workload ns/{name};"):
        simulate(QUEUES, submissions=rows, now=T0, checks=checks)


@pytest.mark.parametrize("seconds", [-1, -0.5, math.nan, math.inf, 1e300])
@pytest.mark.parametrize("name", ["at", "run_seconds", "fail_seconds", "recover_seconds", "ready_seconds"])
def test_events_in_spans_that_can_not_be_are_refused_by_name(name: str, seconds: float) -> None:
    given: Any = [seconds] if name == "ready_seconds" else seconds
    plan = {} if name == "at" else {name: given}
    at_seconds: Any = given if name == "at" else 0
    made = workload("a").to_manifest()
    happening = Happening(at=at_seconds, op=Operation.CREATE, object=made, plan=JobPlan(**plan))
    written = {
        "at": at_seconds,
        "op": "create",
        "object": made,
        **{json_name(key): entry for key, entry in plan.items()},
    }
    for event in (happening, written):
        with pytest.raises(ValueError, match=rf"{name}|{name.split('_')[0]}Seconds"):
            simulate(QUEUES, [event], now=T0)
    cluster = VirtualCluster(QUEUES, now=T0)
    if name != "at":
        with pytest.raises(ValueError, match=name):
            cluster.submit(workload("a"), JobPlan(**plan), now=at(5))
    assert (len(cluster.engine), cluster.now, cluster.steps) == (0, T0, ())


@RUNS
def test_a_workload_without_a_namespace_runs_in_default(checks: tuple[CheckController, ...]) -> None:
    manifest: dict[str, Any] = dict(workload("a").to_manifest())
    manifest["metadata"] = {"name": "a"}
    objects = [
        Namespace("default"),
        flavor(),
        cluster_queue(),
        LocalQueue("lq", namespace="default", cluster_queue="cq"),
    ]
    events: list[dict[str, Any]] = [
        {"at": 0, "op": "create", "object": manifest, "runSeconds": 5},
        {"at": 1, "op": "update", "object": {**manifest, "metadata": {"name": "a", "labels": {"x": "y"}}}},
    ]
    run = simulate(objects, events, now=T0, checks=checks)
    assert [(step.kind.value, step.key) for step in run.steps] == [
        ("Created", "default/a"),
        ("Admitted", "default/a"),
        ("Finished", "default/a"),
    ]


def test_events_beyond_64_bits_are_refused() -> None:
    with pytest.raises(ManifestError, match=r"at: .*before April 2262"):
        simulate(QUEUES, [{"at": 9e9, "op": "finish", "key": "ns/a"}], now=T0)


@pytest.mark.parametrize("event", [5, None, "x", ["at", 1]])
def test_an_event_is_a_happening_or_a_dict(event: Any) -> None:
    with pytest.raises(TypeError, match="an event must be a Happening or a dict, not"):
        simulate(QUEUES, [event], now=T0)


@pytest.mark.parametrize(
    ("limit", "error"), [(math.nan, ValueError), (-1, ValueError), (1.5, TypeError), ("9", TypeError)]
)
def test_a_limit_of_cycles_is_a_number_of_cycles(limit: Any, error: type[Exception]) -> None:
    engine = world(workload("w"))
    before = snapshot(engine)
    with pytest.raises(error, match="max_cycles"):
        settle(engine, now=at(1), max_cycles=limit)
    with pytest.raises(error, match="max_cycles"):
        find_preemption_loop(engine, now=at(1), max_cycles=limit)
    with pytest.raises(error, match="max_cycles"):
        simulate(QUEUES, now=T0, max_cycles=limit)
    assert (snapshot(engine), engine.now) == (before, T0)
    assert settle(engine, now=at(1), max_cycles=None).ending == "Settled"


def test_what_happens_at_a_time_has_one() -> None:
    engine = world(workload("w"))
    none: Any = None
    for call in (
        lambda: engine.cycle(none),
        lambda: engine.reconcile(none),
        lambda: engine.finish("w", namespace="ns", now=none),
        lambda: engine.evict("w", namespace="ns", now=none),
        lambda: engine.release("w", namespace="ns", now=none),
        lambda: engine.forget("w", namespace="ns", now=none),
        lambda: engine.note_readiness("w", namespace="ns", now=none, are_ready=True),
    ):
        with pytest.raises(
            TypeError, match="a time must be a datetime, an RFC 3339 string or nanoseconds, not NoneType"
        ):
            call()
    assert engine.now == T0
