"""Whatever Python hands over: an exception that says what is wrong, never a panic, and the engine goes on."""

# What was refused is looked at where it is caught, as most input may be taken, too.
# ruff: noqa: PT017

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueuecore import Configuration, Engine, parse_manifests, settle, simulate
from kueuecore.errors import EngineBrokenError, KueuecoreError
from kueuecore.objects import from_manifest
from kueuecore.steady_state import find_preemption_loop
from kueuecore.testing import History, Limits, Move, MoveKind, Play, check_invariants, worlds
from tests.builders import T0, at, snapshot, workload, world
from tests.property.worlds import times

# Wrong types and wrong values; anything else would be a slip of ours.
REFUSED = (KueuecoreError, TypeError, ValueError)
# One of these is in every refusal by a type or a value: the argument, or what it is in a word.
NAMED = re.compile(
    r"\b(a time|now|kind|objects?|name|namespace|reason|message|prefix|first|queue|cluster_queue|local_queues|requests"
    r"|trusted|stopped|gone|are_ready|workload|count|priority|created|at|run_seconds|configuration|max_cycles|cycle_seconds|eviction_seconds|events?"
    r"|manifests?|is no time|64 bits|text|JSON|Workload)\b"
)


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


class _Name(str):
    """A text that is equal to nothing, and says so loudly."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __hash__(self) -> int:
        raise RuntimeError("hashed")


class _Number(int):
    """A number that does not add up."""

    def __lt__(self, other: object) -> bool:
        return True

    def __le__(self, other: object) -> bool:
        return True

    def __index__(self) -> int:
        return 10**30


class _Endless(dict[str, object]):
    """An object whose fields cannot be counted."""

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("iterated")

    def items(self) -> Any:
        raise RuntimeError("iterated")


def _breaks() -> Iterator[object]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "from-a-generator"}}
    raise RuntimeError("broken off")


class _Undecided:
    """What must be true or false."""

    def __bool__(self) -> bool:
        raise RuntimeError("asked")


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
    _Name("w"), _Number(1), _Endless(kind="Workload"), _Undecided(), Fraction(1, 2), Decimal("NaN"), 1j,
    np.array(3), np.array([1], dtype=">i8"), np.array([b"x"]), np.array([1, 2], dtype="m8[s]"), np.array([None]),
    np.arange(6)[::-2], np.ma.masked_array([1], mask=[True]), np.zeros(1, dtype=[("a", "<i8")]),
    object, _Strange(), _Strange, len, iter([1]), range(3), ..., *_cyclic(),
]  # fmt: skip
# By number, as Hypothesis hashes and compares what it samples.
odd = st.one_of(
    st.integers(0, len(ODD) - 1).map(ODD.__getitem__),
    st.text(max_size=5),
    st.integers(),
    st.floats(),
    st.binary(max_size=5),
)


def _key(value: Any) -> Any:
    """The same, or in words what no dict has as a key."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


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
        lambda: engine.submit(namespace="ns", local_queues=["lq"], queue=[0], requests={_key(a): b}, priority=c),
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
        lambda: simulate([], now=T0, eviction_seconds=a, max_cycles=c),
        lambda: parse_manifests(a),
        lambda: Configuration.parse(a),
        lambda: from_manifest(a),
        lambda: History.from_line(a),
        lambda: Engine(a),
    ]


def survives(call: Callable[[], object]) -> bool:
    """Is it taken? If not, an exception says something that helps, or one of our own comes through as it is."""
    try:
        call()
    except REFUSED as error:
        assert not isinstance(error, EngineBrokenError)
        assert "panick" not in str(error)
        assert isinstance(error, KueuecoreError) or NAMED.search(str(error)), f"{type(error).__name__}: {error}"
        assert str(error).strip()
        return False
    except RuntimeError as error:
        assert str(error) in {"compared", "hashed", "iterated", "broken off", "asked"}
        return False
    return True


@times(5)
@given(odd, odd, odd, st.integers(0, 23))
def test_an_engine_survives_every_argument(a: Any, b: Any, c: Any, number: int) -> None:
    engine = world(workload("w"))
    before, now = snapshot(engine), engine.now
    if not survives(_engine_calls(engine, a, b, c)[number]):
        assert (snapshot(engine), engine.now) == (before, now), "a call that was refused has changed something"
    check_invariants(engine)
    engine.cycle(at(10_000))


@times(4)
@given(odd, odd, odd, st.integers(0, 10))
def test_functions_survive_every_argument(a: Any, b: Any, c: Any, number: int) -> None:
    survives(_other_calls(a, b, c)[number])


def test_a_generator_that_breaks_off_has_brought_in_nothing() -> None:
    engine = world()
    before = snapshot(engine)
    with pytest.raises(RuntimeError, match="broken off"):
        engine.apply(_breaks(), now=at(5))  # type: ignore[arg-type]
    assert (snapshot(engine), engine.now) == (before, T0)


@st.composite
def arrays(draw: st.DrawFn, values: list[int]) -> npt.NDArray[Any]:
    """The values in any layout that numpy has, or something that holds others."""
    array = np.array(
        values, dtype=draw(st.sampled_from(["<i8", ">i8", "<i4", ">u2", "i1", "u1", "<u8", "O", "f8", "?", "m8[s]"]))
    )
    layout = draw(st.sampled_from(["plain", "every second", "reversed", "column", "read-only", "two", "zero"]))
    if layout == "every second":
        array = np.repeat(array, 2)[::2]
    elif layout == "reversed":
        array = array[::-1].copy()[::-1]
    elif layout == "column":
        array = np.stack([array, array], axis=1)[:, 0]
    elif layout == "read-only":
        array.flags.writeable = False
    elif layout == "two":
        array = array.reshape(1, -1)
    elif layout == "zero" and len(values) == 1:
        array = array.reshape(())
    return array


COLUMNS = ["queue", "count", "priority", "created", "cpu"]


@times(4)
@given(st.data(), st.lists(st.integers(0, 1), min_size=1, max_size=4), st.sampled_from(COLUMNS))
def test_a_column_means_its_values_whatever_its_layout(data: Any, values: list[int], name: str) -> None:
    def columns(values: Any) -> dict[str, Any]:
        taken = {"queue": [0] * n, "requests": {"cpu": 1}}
        return {**taken, **({"requests": {"cpu": values}} if name == "cpu" else {name: values})}

    n = len(values)
    array = data.draw(arrays(values))
    expected, engine = world(), world()
    expected.submit(namespace="ns", local_queues=["lq", "lq"], now=at(1), **columns(values))
    before = snapshot(engine)
    try:
        engine.submit(namespace="ns", local_queues=["lq", "lq"], now=at(1), **columns(array))
    except ValueError as error:
        assert name in str(error)
        assert array.dtype.kind not in "iu" or array.ndim == 2
        assert (snapshot(engine), engine.now) == (before, T0)
    else:
        assert array.dtype.kind in "iu"
        assert snapshot(engine) == snapshot(expected)


def test_all_calls_are_tried() -> None:
    assert len(_engine_calls(Engine(), 0, 0, 0)) == 24
    assert len(_other_calls(0, 0, 0)) == 11


@given(worlds(Limits(workloads=4)), st.lists(st.integers(0, 10), min_size=12, max_size=12))
def test_threads_at_once_break_nothing(scenario: History, what: list[int]) -> None:
    engine = Play.of(scenario).engine
    name = next((object_["metadata"]["name"] for object_ in scenario.objects if object_["kind"] == "Workload"), "w")  # type: ignore[index, call-overload]
    calls: list[Callable[[], object]] = [
        lambda: engine.cycle(at(1)),
        lambda: engine.reconcile(at(2)),
        lambda: engine.fork().cycle(at(1)),
        lambda: engine.finish(str(name), namespace="ns", now=at(1)),
        lambda: engine.evict(str(name), namespace="ns", now=at(1)),
        lambda: engine.apply(list(scenario.objects), now=at(1)),
        lambda: snapshot(engine.fork()),
        lambda: engine.submit(
            namespace="ns", local_queues=["lq"], queue=np.zeros(3, int), requests={"cpu": 1}, now=at(1)
        ),
        lambda: engine.apply(_breaks(), now=at(1)),  # type: ignore[arg-type]
        lambda: engine.delete("Workload", str(name), namespace="ns", now=at(1)),
        lambda: engine.what_if({**dict(scenario.objects[0]), "metadata": {"name": "\ud800"}}, now=at(1)),
    ]
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(survives, calls[number]) for number in what]:
            done.result()
    check_invariants(engine)
    Play(engine, seconds=10).do(Move(kind=MoveKind.CYCLE))
