"""Wrong values, and data that are damaged with them."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

__all__ = ["Damage", "Hostile", "arguments", "damaged", "plain_value", "python_value", "text"]

TEXTS = [
    # Names, and what is nearly one.
    "", " ", "a", "A", "-", ".", "/", "a/b", "a/b/c", "a b", "default", "main", "lq", "cq", "x" * 64, "x" * 254, "*",
    "~",
    # What has a hold on terminals, logs and paths.
    "\n", "a\nforged.yaml:1: all is well", "\x1b[2J", "\x1b]0;t\x07", "\x7f", "\x9b31m", "\u2028", "\u202e",
    "\u200b", "\ufeff", "\0", "\t", "\\", '"', "'", "`", "%s", "{}", "{{ .Values.x }}", "$(x)", "../../etc/passwd",
    "os:system",
    # Letters of all widths.
    "é", "e\u0301", "世界", "🚀", "\U000e0041",
    # Words and numbers that some format reads as something else.
    "null", "true", "no", "yes", "NaN", "-0", "0", "1", "-1", "01", "0x1f", "1e3", "1e400", "1e-400", "1_000",
    "1:30", "+1", "1.", ".5", "1e", "1Ei", "1n", "1m", "1k", "1Ki", "1K", "1.5Gi", "0.0000000001", "9" * 19,
    "9" * 30, "9" * 400, str(2**31), str(2**63), "-9E", "1e999999999", "1e-999999999",
    # Times and spans.
    "2026-01-01T00:00:00Z", "1677-01-01T00:00:00Z", "2262-04-11T23:47:17Z", "9999-12-31T23:59:59Z",
    "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+23:59", "2026-01-01", "1.2.3s", ".s", "9999999999999h", "-5s",
    "5s5", "1ns", "0s", "1m30", "5µs",
    # Words of the API, at the wrong place.
    "BestEffortFIFO", "Any", "Never", "HoldAndDrain", "kueue.x-k8s.io/v1beta2", "batch/v1", "v1", "Workload", "List",
    "kueue.x-k8s.io/managed", "kueue.x-k8s.io/multikueue",
]  # fmt: skip

PLAIN: list[Any] = [
    None, True, False, 0, 1, -1, 2, 127, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1,
    10**30, 0.5, -0.5, -0.0, 1e21, 1e308, 5e-324, [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"": None},
    [1, "a", None, {}], ["a", "a"], [{"name": "a"}, {"name": "a"}], {"a": {"b": [{"c": 1}]}}, {"name": {}},
    {"metadata": None}, {"items": [5]},
]  # fmt: skip
# Valid JSON values of another size than anybody expects. They are drawn rarely: most of them cost more than a case.
LARGE: list[Callable[[], Any]] = [
    lambda: "x" * 1_000_000,
    lambda: "x y\n" * 100_000,
    lambda: [1] * 20_000,
    lambda: [{"name": f"n{n}"} for n in range(5_000)],
    lambda: {f"k{n}": "v" for n in range(20_000)},
    lambda: nested(150, list),
    lambda: nested(300, list),
    lambda: nested(300, dict),
    lambda: 10**308,
    lambda: -(10**400),
]
_DEEPEST = 400

KEYS = [
    "", "a", "name", "namespace", "generateName", "labels", "uid", "creationTimestamp", "deletionTimestamp",
    "ownerReferences", "spec", "status", "kind", "apiVersion", "items", "metadata", "a.b", "a/b", "a[0]", "\x1b[1m",
    "\n", "x" * 3000, "generation", "conditions", "admission", "finalizers",
]  # fmt: skip


def nested(depth: int, kind: type) -> Any:
    """A value of so many levels."""
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


def text(rng: Random) -> str:
    """A text where another one belongs."""
    return rng.choice(TEXTS) + (rng.choice(TEXTS) if rng.random() < 0.1 else "")


def plain_value(rng: Random) -> Any:
    """A value as JSON has them."""
    if rng.random() < 0.02:
        return rng.choice(LARGE)()
    return text(rng) if rng.random() < 0.6 else copied(rng.choice(PLAIN))


@dataclass(frozen=True, slots=True)
class Damage:
    """What is wrong with data.

    Args:
        value: The data.
        names: Keys and indexes on the way to what was changed: an error has to name one of them.
        what: What was done.
    """

    value: Any
    names: tuple[str, ...]
    what: str


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in plain data but the whole."""
    items: Any = ()
    # No other class, whatever it is derived from; and a list may hold itself.
    if len(path) > _DEEPEST:
        return
    if type(value) is dict:
        items = value.items()
    elif type(value) is list:
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def copied(value: Any, depth: int = 0) -> Any:
    """A copy of plain data; what else is in it stays the same object."""
    if depth > _DEEPEST:
        return value
    if type(value) is dict:
        return {key: copied(row, depth + 1) for key, row in value.items()}
    return [copied(row, depth + 1) for row in value] if type(value) is list else value


def damaged(
    rng: Random,
    value: Any,
    *,
    parts: tuple[Any, ...] = (),
    most: int = 3,
    wrong: Callable[[Random], Any] = plain_value,
) -> Damage:
    """Data of which some places are replaced, removed, renamed, repeated or taken from elsewhere.

    Args:
        rng: Chance.
        value: The data; they are copied.
        parts: Other data, parts of which are put in.
        most: So many places at most.
        wrong: What draws a wrong value.
    """
    value = copied(value)
    names: list[str] = []
    reported: list[str] = []
    for _ in range(rng.choice([1, 1, 1, *range(2, most + 1)])):
        path = _drawn(rng, value)
        if path is None:
            break
        parent = value
        for step in path[:-1]:
            parent = parent[step]
        last = path[-1]
        what = rng.random()
        if what < 0.6:
            parent[last] = wrong(rng)
            reported.append(f"{_path(path)} = {short(parent[last])}")
        elif what < 0.7:
            del parent[last]
            reported.append(f"{_path(path)} removed")
        elif what < 0.85 and isinstance(parent, dict):
            key = rng.choice(KEYS)
            parent[key] = parent.pop(last) if what < 0.77 else wrong(rng)
            names.append(key)
            reported.append(f"{_path(path[:-1])}[{key[:20]!r}] = {short(parent[key])}")
        elif what < 0.92 and isinstance(parent, list):
            parent.extend(copied(parent[: rng.choice([1, 2, 20])]))
            reported.append(f"{_path(path[:-1])} repeated")
        else:
            other = rng.choice([*parts, value])
            part, steps = other, _drawn(rng, other)
            for step in steps or ():
                part = part[step]
            parent[last] = copied(part)
            reported.append(f"{_path(path)} = {short(part)}")
        names += map(str, path)
    return Damage(value, tuple(names), "; ".join(reported))


def _drawn(rng: Random, value: Any) -> tuple[Any, ...] | None:
    found = list(places(value))
    return rng.choice(found) if found else None


def _path(path: tuple[Any, ...]) -> str:
    return "".join(f"[{step!r:.40}]" for step in path)


def short(value: object) -> str:
    """A value for the eyes."""
    try:
        written = repr(value)
    except BaseException as error:  # whatever it raises
        written = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
    return written if len(written) <= 60 else f"{written[:57]}...({len(written)})"


# Values that only Python has.


class Hostile(Exception):  # noqa: N818
    """Raised by the attacker's own objects, and may come through as it is."""


class _OddText(str):
    def __eq__(self, other: object) -> bool:
        raise Hostile

    __hash__ = str.__hash__

    def __str__(self) -> str:
        raise Hostile

    def encode(self, *_: object, **__: object) -> bytes:
        raise Hostile


class _OddNumber(int):
    def __index__(self) -> int:
        return 10**30

    def __int__(self) -> int:
        return 10**40

    def __lt__(self, other: object) -> bool:
        return True


class _OddDict(dict[str, Any]):
    def items(self) -> Any:
        raise Hostile

    def __iter__(self) -> Any:
        raise Hostile

    def get(self, *_: object) -> Any:
        raise Hostile


class _Growing(Mapping[str, Any]):
    """Grows while somebody looks at it."""

    def __init__(self) -> None:
        self._inner: dict[str, Any] = {"kind": "Workload"}

    def __getitem__(self, key: str) -> Any:
        return self._inner[key]

    def __iter__(self) -> Iterator[str]:
        self._inner[f"x{len(self._inner)}"] = 1
        return iter(list(self._inner))

    def __len__(self) -> int:
        return len(self._inner)


class _Unanswerable:
    def __bool__(self) -> bool:
        raise Hostile

    def __repr__(self) -> str:
        raise Hostile


class _Manifestable:
    def __init__(self, manifest: object) -> None:
        self._manifest = manifest

    def to_manifest(self) -> object:
        if self._manifest is Hostile:
            raise Hostile
        return self._manifest


def _raising() -> Iterator[Any]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "from-a-generator"}}
    raise Hostile


def _itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def _cyclic() -> dict[str, Any]:
    value: dict[str, Any] = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}}
    value["spec"] = {"podSets": [value]}
    return value


# Without a zone.
_NAIVE = datetime.datetime.fromisoformat("2026-01-01T00:00:00")
_SCALARS: list[Any] = [
    _NAIVE,
    10**5000, float("nan"), float("inf"), -float("inf"), 1j, "\ud800", "\udcff", b"", b"\0", b"\xff", b"{}", b"[[[",
    object(), bytearray(b"{}"), memoryview(b"abcd")[::2], (), set(), frozenset(), {1: 2}, {None: None}, {"a": {1}},
    {"a": b"x"}, {"a": object()}, {"a": float("nan")}, {"\ud800": 1}, {"a": "\ud800"}, {"a": np.int64(1)}, object,
    len, Ellipsis, range(3), datetime.datetime(9999, 12, 31, tzinfo=datetime.UTC),
    datetime.date(2026, 1, 1), datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=23))),
    datetime.timedelta(1), range(10**12), fractions.Fraction(1, 2), decimal.Decimal("NaN"), decimal.Decimal(1),
    types.MappingProxyType({"kind": "Workload"}), np.int64(7), np.int32(-1), np.uint64(2**64 - 1), np.float64("nan"),
    np.float32(1), np.bool_(True), np.str_("w"), np.bytes_(b"x"), np.datetime64("2026-01-01"), np.datetime64("NaT"),
    np.timedelta64(1, "s"), np.float16(1), np.ma.masked, collections.UserDict(kind="Workload"),
    collections.ChainMap({"kind": "Workload"}), types.SimpleNamespace(kind="Workload"), _OddText("w"),
    _OddText("ns"), _OddNumber(1), _OddDict(kind="Workload"), _Growing(), _Unanswerable(), _Manifestable(None),
    _Manifestable({}), _Manifestable(Hostile), _Manifestable([]),
]  # fmt: skip
_ARRAYS: list[Any] = [
    np.array(3), np.array([0, 1]), np.array([[1]]), np.array([]), np.array(["x"]), np.array([None]),
    np.arange(6)[::-2], np.array([2**63], dtype=np.uint64), np.array([1], dtype=">i8"),
    np.zeros(1, dtype=[("a", "<i8")]), np.zeros((0, 3)), np.array([1.5]), np.array([np.nan]), np.array([True]),
    np.array([1j]), np.array([b"x"]), np.array([1, 2], dtype="m8[s]"), np.ma.masked_array([1], mask=[True]),
    np.ma.masked_array([0, 0]), np.array([_OddNumber(0)], dtype=object), np.array([-1]), np.array([2**31]),
    np.array([2**62, 2**62]), np.array([0, 0], dtype=np.uint8), np.array([0.0, -0.0]),
]  # fmt: skip
_MADE: list[Callable[[], Any]] = [
    _raising, _itself, _cyclic, lambda: iter([1]), lambda: iter([]), lambda: {1, "a"},
]  # fmt: skip


def python_value(rng: Random) -> Any:
    """A value as Python has them: plain ones too, arrays, and objects that do what they should not."""
    what = rng.random()
    if what < 0.35:
        return plain_value(rng)
    if what < 0.45:
        return rng.choice(_MADE)()
    if what < 0.6:
        return rng.choice(_ARRAYS)
    return rng.choice(_SCALARS)


def arguments(rng: Random, given: Mapping[str, Any], *, parts: tuple[Any, ...] = ()) -> Damage:
    """Arguments of a call, of which one or two are wrong as a whole, or, if they are plain data, inside."""
    changed = dict(given)
    names: list[str] = []
    reported: list[str] = []
    for name in rng.sample(sorted(given), k=min(len(given), rng.choice([1, 1, 1, 2]))):
        names.append(name)
        if isinstance(given[name], (dict, list)) and given[name] and rng.random() < 0.8:
            wrong = plain_value if rng.random() < 0.5 else python_value
            inside = damaged(rng, given[name], parts=parts, wrong=wrong)
            changed[name] = inside.value
            names += inside.names
            reported.append(f"{name}: {inside.what}")
        else:
            changed[name] = python_value(rng)
            reported.append(f"{name} = {short(changed[name])}")
    return Damage(changed, tuple(names), "; ".join(reported))
