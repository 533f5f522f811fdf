"""Whatever Python hands over: an exception that says what is wrong, never a panic, and the engine goes on."""

# What was refused is looked at where it is caught, as most input may be taken, too.
# ruff: noqa: PT017

from __future__ import annotations

import datetime
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kueuecore import Configuration, Engine, find_preemption_loop, parse_manifests, settle, simulate
from kueuecore.errors import KueuecoreError
from kueuecore.objects import from_manifest
from kueuecore.testing import Limits, Move, MoveKind, Play, Scenario, check_invariants, worlds
from tests.builders import T0, at, snapshot, workload, world
from tests.property.worlds import times

# Wrong types and wrong values; anything else would be a slip of ours.
REFUSED = (KueuecoreError, TypeError, ValueError)


class _Deep(list[Any]):
    """A list of lists that is too deep to print."""

    def __repr__(self) -> str:
        return "<deep>"


def _cyclic() -> list[Any]:
    inner: dict[str, Any] = {"kind": "Workload", "apiVersion": "kueue.x-k8s.io/v1beta2"}
    inner["spec"] = {"podSets": [inner]}
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = _Deep()
    for _ in range(3000):
        deep = _Deep([deep])
    return [inner, endless, {"metadata": inner}, deep]


class _Strange:
    """Neither a manifest nor anything else."""

    def __repr__(self) -> str:
        return "<strange>"


ODD: list[Any] = [
    None, True, 0, -1, 1, 2**31, 2**32, 2**63 - 1, 2**63, -(2**63), -(2**64), 10**400, 0.0, -0.5, 1e308,
    float("nan"), float("inf"), "", " ", "x", "ns", "w", "\x00", "\ud800", "x" * 70_000, "2026-01-01T00:00:00Z",
    "Workload", b"", b"\xff", b"{}", b"[[[", bytearray(b"null"), memoryview(b"{}"), [], {}, set(), (), [None], [[]],
    [{}], {1: 2}, {"kind": "Workload"}, {"kind": 3},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": float("nan")}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": b"x"}}, {"a": {1, 2}}, {"a": _Strange()},
    datetime.datetime(2026, 1, 1), datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC), datetime.date(2026, 1, 1),
    np.int64(7), np.float32(0.5), np.array([1, 2]), np.array([[1.5]]), np.array(["x"]),
    np.array([2**63], dtype=np.uint64),
    object, _Strange(), _Strange, len, iter([1]), range(3), ..., *_cyclic(),
]  # fmt: skip
odd = st.one_of(st.sampled_from(ODD), st.text(max_size=5), st.integers(), st.floats(), st.binary(max_size=5))


def _engine_calls(engine: Engine, a: Any, b: Any, c: Any) -> list[Callable[[], object]]:
    return [
        lambda: engine.apply(a, now=b),
        lambda: engine.apply(a, now=b, trusted=c),
        lambda: engine.apply([a, b]),
        lambda: engine.delete(a, b, namespace=c),
        lambda: engine.delete("Workload", a, namespace=b, now=c),
        lambda: engine.cycle(a),
        lambda: engine.reconcile(a),
        lambda: engine.finish(a, namespace=b, now=c),
        lambda: engine.finish("w", namespace="ns", now=T0, reason=a, message=b),
        lambda: engine.evict("w", namespace="ns", now=a, reason=b, message=c),
        lambda: engine.evict(a, namespace=b, now=at(1), stopped=c),
        lambda: engine.release(a, namespace=b, now=c),
        lambda: engine.forget(a, namespace=b, now=c),
        lambda: engine.forget("w", namespace="ns", now=a, gone=b),
        lambda: engine.workload(a, namespace=b),
        lambda: engine.pending(a),
        lambda: engine.cluster_queue(a),
        lambda: engine.local_queue(a, namespace=b),
        lambda: engine.submit(namespace=a, local_queues=b, queue=c, requests={"cpu": 1}),
        lambda: engine.submit(namespace="ns", local_queues=["lq"], queue=a, requests=b, count=c),
        lambda: engine.submit(namespace="ns", local_queues=["lq"], queue=[0], requests={a: b}, priority=c),
        lambda: engine.submit(namespace="ns", local_queues=["lq"], queue=[0], requests={}, created=a, first=b),
        lambda: settle(engine, now=a, max_cycles=3),
        lambda: find_preemption_loop(engine, now=a, max_cycles=3),
    ]  # fmt: skip


def _other_calls(a: Any, b: Any, c: Any) -> list[Callable[[], object]]:
    return [
        lambda: simulate(a, now=b, max_cycles=5),
        lambda: simulate([], [a, b], now=T0, max_cycles=5),
        lambda: simulate([], [{"at": a, "op": b, "key": c}], now=T0, max_cycles=5),
        lambda: simulate([], [{"at": 0, "op": "create", "object": a, "runSeconds": b}], now=T0, max_cycles=5),
        lambda: simulate([], now=T0, cycle_seconds=a, max_cycles=3),
        lambda: simulate([], now=T0, eviction_seconds=a, quiet_cycles=b, max_cycles=c),
        lambda: parse_manifests(a),
        lambda: Configuration.parse(a),
        lambda: from_manifest(a),
        lambda: Scenario.from_line(a),
        lambda: Engine(a),
    ]


def survives(call: Callable[[], object]) -> None:
    """It is taken, or refused with an exception that says something."""
    try:
        call()
    except REFUSED as error:
        assert str(error).strip()
        assert "panick" not in str(error)


@times(6)
@given(odd, odd, odd, st.integers(0, 23))
def test_an_engine_survives_every_argument(a: Any, b: Any, c: Any, number: int) -> None:
    engine = world(workload("w"))
    survives(_engine_calls(engine, a, b, c)[number])
    check_invariants(engine)
    engine.cycle(at(10_000))


@times(4)
@given(odd, odd, odd, st.integers(0, 10))
def test_functions_survive_every_argument(a: Any, b: Any, c: Any, number: int) -> None:
    survives(_other_calls(a, b, c)[number])


def test_all_calls_are_tried() -> None:
    assert len(_engine_calls(Engine(), 0, 0, 0)) == 24
    assert len(_other_calls(0, 0, 0)) == 11


@given(worlds(Limits(workloads=4)), st.lists(st.integers(0, 6), min_size=8, max_size=8))
def test_threads_at_once_break_nothing(scenario: Scenario, what: list[int]) -> None:
    engine = Play.of(scenario).engine
    name = next((it["metadata"]["name"] for it in scenario.objects if it["kind"] == "Workload"), "w")  # type: ignore[index, call-overload]
    calls: list[Callable[[], object]] = [
        lambda: engine.cycle(at(1)),
        lambda: engine.reconcile(at(2)),
        lambda: engine.fork().cycle(at(1)),
        lambda: engine.finish(str(name), namespace="ns", now=at(1)),
        lambda: engine.evict(str(name), namespace="ns", now=at(1)),
        lambda: engine.apply(list(scenario.objects), now=at(1)),
        lambda: snapshot(engine.fork()),
    ]
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(survives, calls[number]) for number in what]:
            done.result()
    check_invariants(engine)
    Play(engine, seconds=10).do(Move(kind=MoveKind.CYCLE))
