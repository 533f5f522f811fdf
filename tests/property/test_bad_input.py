"""Whatever comes in: taken, or refused with a text that helps; never a broken engine, never a hang."""

# What was refused is looked at where it is caught, as most input may be taken, too.
# ruff: noqa: PT017
import copy
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ConfigurationError, ManifestError
from kueuecore.testing import History, Limits, worlds
from kueuecore.times import nanoseconds, newest_time
from tests.builders import T0, at, cluster_queue, flavor, snapshot, workload, world
from tests.property.worlds import Json, times

quick = times(2)
small = worlds(Limits(workloads=3, cluster_queues=2))

ODD: list[Any] = [
    None, True, 0, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**400, 0.1, 1e308, float("nan"), float("inf"),
    "", " ", "x" * 300, "\x00", "\ud800", "ä", "9E", "-9E", "1e999999999", "1e-999999999", "0" * 400, "9" * 400, "1K",
    "2026-13-01T00:00:00Z", "0000-00-00T00:00:00Z", [], {}, [None], [[]], [{}], {"": None}, {"name": {}}, [1, "x", {}],
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in plain JSON data."""
    found = [path] if path else []
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


@st.composite
def damaged(draw: st.DrawFn, objects: list[Json]) -> list[Json]:
    """The objects with odd values in a few places."""
    result: list[Json] = copy.deepcopy(objects)
    for _ in range(draw(st.integers(1, 4))):
        all_places = places(result)
        if not all_places:
            break
        path = draw(st.sampled_from(all_places))
        target: Any = result
        for key in path[:-1]:
            target = target[key]
        what = draw(st.sampled_from(["replace", "replace", "remove", "rename"]))
        if what == "replace" or isinstance(target, list):
            # A copy: what is odd itself may be damaged next, and would be odd for all that come after.
            target[path[-1]] = copy.deepcopy(draw(st.sampled_from(ODD)))
        elif what == "remove":
            del target[path[-1]]
        else:
            target[draw(st.sampled_from(["", "Name", "spec", "x" * 70]))] = target.pop(path[-1])
    return result


def offer(engine: Engine, data: bytes, trusted: bool) -> None:
    """Applies, and holds a refusal to its promises."""
    before = snapshot(engine)
    try:
        engine.apply(data, now=T0, trusted=trusted)
    except ManifestError as error:
        assert snapshot(engine) == before
        assert error.problems
        for problem in error.problems:
            assert problem.message.strip()
        assert "panick" not in str(error)
    for second in range(1, 4):
        engine.cycle(at(second))
        engine.reconcile(at(second))
    snapshot(engine)
    engine.next_wake()


@quick
@given(st.data(), small, st.booleans())
def test_damaged_objects(data: Any, small: History, trusted: bool) -> None:
    text = json.dumps(data.draw(damaged(list(small.objects)))).encode()
    offer(world(), text, trusted)


@quick
@given(st.data(), small, st.booleans())
def test_damaged_bytes(data: Any, small: History, trusted: bool) -> None:
    text = bytearray(json.dumps(small.objects).encode())
    for _ in range(data.draw(st.integers(1, 5))):
        if not text:
            break
        position = data.draw(st.integers(0, len(text) - 1))
        what = data.draw(st.sampled_from(["flip", "cut", "double", "insert"]))
        if what == "flip":
            text[position] ^= 1 << data.draw(st.integers(0, 7))
        elif what == "cut":
            del text[position : position + data.draw(st.integers(1, 40))]
        elif what == "double":
            text[position:position] = text[position : position + 40]
        else:
            text.insert(position, data.draw(st.integers(0, 255)))
    offer(world(), bytes(text), trusted)


@quick
@given(st.binary(max_size=200), st.booleans())
@example(b"", True)
@example(b"\xff\xfe", False)
@example(b"nul", False)
@example(b'{"a":1}{"a":2}', True)
def test_any_bytes(data: bytes, trusted: bool) -> None:
    offer(Engine(), data, trusted)


def container(**requests: Any) -> Json:
    return {"containers": [{"name": "c", "resources": {"requests": requests}}]}


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"[" * 100 + b"]" * 100,
        b"1" * 1_000_000,
        b"-" * 1_000_000,
        b'"' + b"\\u0000" * 100_000 + b'"',
        b'{"kind":"List","apiVersion":"v1","items":[' + b'{"kind":"List","items":[' * 1000 + b"]}" * 1001,
        json.dumps([{"kind": "ClusterQueue"}] * 10_000).encode(),
    ],
    ids=["lists", "maps", "nested", "digits", "minus", "zeros", "Lists", "nameless"],
)
def test_monstrous_bytes(data: bytes, trusted: bool) -> None:
    offer(world(), data, trusted)


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(
    "spec",
    [
        {"podSets": [{"name": f"s{i}", "count": 1, "template": {"spec": container(cpu=1)}} for i in range(20_000)]},
        {"podSets": [{"name": "main", "count": 0, "template": {"spec": container(cpu=1)}}]},
        {"podSets": [{"name": "main", "count": -1, "template": {"spec": container(cpu=1)}}]},
        {"podSets": [{"name": "main", "count": 10**30, "template": {"spec": container(cpu=1)}}]},
        {"podSets": [{"name": "main", "count": 1, "template": {"spec": container(cpu="9" * 5000)}}]},
        {"podSets": [{"name": "main", "count": 1, "template": {"spec": container(cpu="1e2147483648")}}]},
        {"podSets": [{"name": "main", "count": 2**31 - 1, "minCount": 1, "template": {"spec": container(cpu="8E")}}]},
        {"podSets": [{"name": "main", "count": 2**31 - 1, "minCount": 1, "template": {"spec": container(cpu="1n")}}]},
        {"podSets": [{"name": "main", "template": {"spec": {"containers": [{"name": "c"}] * 5000}}}]},
        {"podSets": [{"name": "main", "template": {"spec": {"nodeSelector": {f"k{i}": "v" for i in range(5000)}}}}]},
    ],
    ids=["many sets", "none", "minus one", "count", "digits", "exponent", "huge", "tiny", "containers", "selector"],
)
def test_monstrous_workloads(spec: Json, trusted: bool) -> None:
    manifest = {**workload("w").to_manifest(), "spec": {"queueName": "lq", **spec}}
    offer(world(), json.dumps(manifest).encode(), trusted)


@pytest.mark.parametrize("trusted", [True, False])
def test_numbers_that_are_none_are_refused(trusted: bool) -> None:
    text = json.dumps(cluster_queue().to_manifest()).replace('"10"', "NaN")
    with pytest.raises(ManifestError, match="line 1 column"):
        world().apply(text.encode(), trusted=trusted)


def test_of_a_key_that_stands_twice_the_last_value_counts() -> None:
    text = json.dumps(workload("w").to_manifest()).replace('"queueName":', '"queueName": "other", "queueName":')
    engine = Engine()
    engine.apply(text.encode(), now=T0)
    assert engine.workload("w", namespace="ns").local_queue == "lq"


@quick
@given(st.one_of(st.text(max_size=80), st.sampled_from(["featureGates: 3", "a: *x", "!!python/object:os.system x"])))
def test_any_configuration(text: str) -> None:
    for body in (text, f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{text}"):
        try:
            Configuration.parse(body)
        except ConfigurationError as error:
            assert all(problem.message for problem in error.problems)


FULL: Json = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "fairSharing": {"preemptionStrategies": ["LessThanInitialShare"]},
    "waitForPodsReady": {
        "timeout": "5m",
        "recoveryTimeout": "3m",
        "blockAdmission": True,
        "requeuingStrategy": {"timestamp": "Creation", "backoffLimitCount": 3, "backoffBaseSeconds": 1},
    },
    "resources": {
        "excludeResourcePrefixes": ["x/"],
        "transformations": [{"input": "a", "strategy": "Replace", "outputs": {"b": "2"}}],
    },
    "admissionFairSharing": {"usageHalfLifeTime": "10m", "usageSamplingInterval": "1m", "resourceWeights": {"cpu": 2}},
    "integrations": {"frameworks": ["batch/job"]},
    "featureGates": {"PartialAdmission": False},
}


@quick
@given(st.data())
def test_damaged_configurations(data: Any) -> None:
    (broken,) = data.draw(damaged([FULL]).filter(lambda found: isinstance(found[0], dict)))
    text = json.dumps(broken)
    try:
        configuration = Configuration.parse(text)
    except ConfigurationError as error:
        assert all(problem.message for problem in error.problems)
        return
    configuration.to_dict()
    engine = world(flavor(), workload("w"), configuration=configuration)
    engine.cycle(at(1))
    engine.reconcile(at(2))


@quick
@given(st.one_of(st.text(), st.from_regex(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,12})?(Z|[+-]\d\d:\d\d)")))
@example("2026-02-30T00:00:00Z")
@example("0001-01-01T00:00:00+23:59")
@example("9999-12-31T23:59:59-23:59")
@example("2026-01-01T00:00:60Z")
@example("2026-01-01T24:00:00Z")
@example("2026-01-01T00:00:00+99:99")
@example("٢٠٢٦-01-01T00:00:00Z")
def test_any_time(text: str) -> None:
    try:
        found = nanoseconds(text)
    except ValueError as error:
        assert repr(text) in str(error)
        assert newest_time({"a": [text]}) is None
        return
    assert -(2**63) < found < 2**63
    assert newest_time({"a": [text]}) == found


@pytest.mark.parametrize("now", [2**63, -(2**63), 2**100])
def test_a_time_that_does_not_fit_is_refused_before_anything_happens(now: int) -> None:
    engine = world(workload("w"))
    before = snapshot(engine)
    for call in (engine.cycle, engine.reconcile):
        with pytest.raises(ValueError, match="64 bits of nanoseconds"):
            call(now)
    assert (snapshot(engine), engine.now) == (before, T0)


@pytest.mark.parametrize("now", [None, 1.5, True, object()])
def test_a_time_of_another_type_is_refused(now: Any) -> None:
    with pytest.raises(TypeError, match="a time must be a datetime, an RFC 3339 string or nanoseconds"):
        nanoseconds(now)
