"""Input of every kind at some size and at double: time is in proportion."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as arrow
from pyarrow import parquet

from tests.attack.case import Case, Wrong
from tests.attack.doors.command import folder_of_its_own, say

__all__ = ["INPUTS", "draw"]

_KUEUE = "kueue.x-k8s.io/v1beta2"
_Files = Mapping[str, bytes]


def _object(kind: str, name: str, spec: Any = None, namespace: str = "", **metadata: Any) -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    plain = {"apiVersion": _KUEUE, "kind": kind, "metadata": {"name": name, **where, **metadata}}
    return plain if spec is None else {**plain, "spec": spec}


def _queue(name: str, *, flavors: int = 1, **spec: Any) -> dict[str, Any]:
    given = [
        {"name": "f" if n == 0 else f"f{n}", "resources": [{"name": "cpu", "nominalQuota": 9}]} for n in range(flavors)
    ]
    groups = [{"coveredResources": ["cpu"], "flavors": given}]
    return _object("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": groups, **spec})


def _job(name: str, queue: str = "lq", cpu: str = "1", **metadata: Any) -> dict[str, Any]:
    labels = {"kueue.x-k8s.io/queue-name": queue}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ns", "labels": labels, **metadata},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


_WORLD = (_object("ResourceFlavor", "f"), _queue("cq"), _object("LocalQueue", "lq", {"clusterQueue": "cq"}, "ns"))


def _lines(objects: Any) -> _Files:
    return {"in.json": b"\n".join(json.dumps(object_).encode() for object_ in objects)}


def _swf(n: int) -> bytes:
    return b"".join(
        b"%d %d 10 60 4 -1 -1 4 -1 1024 1 %d 2 -1 1 1 -1 -1\n" % (number, number, number % 50)
        for number in range(1, n + 1)
    )


def _table(n: int) -> _Files:
    rows = "".join(f"{number},60,1000,user{number}\n" for number in range(n))
    return {"t.csv": f"at,run_seconds,cpu_milli,user\n{rows}".encode(), "rules.yaml": _RULES}


def _parquet(n: int) -> _Files:
    written = io.BytesIO()
    users = [f"user{number}" for number in range(n)]
    parquet.write_table(arrow.table({"at": range(n), "run_seconds": [60] * n, "user": users}), written)
    return {"t.parquet": written.getvalue(), "rules.yaml": _RULES}


_RULES = b"{apiVersion: kueuecore/v1, kind: TraceRules, default: {queue: ns/lq}}\n"


def _with_trace(file: str) -> bytes:
    scenario = {
        "apiVersion": "kueuecore/v1",
        "kind": "Scenario",
        "cluster": {"objects": list(_WORLD)},
        "traces": [{"file": file, "rules": "rules.yaml"}],
        "until": "1s",
    }
    return json.dumps(scenario).encode()


def _scenario(**parts: Any) -> _Files:
    head = {"apiVersion": "kueuecore/v1", "kind": "Scenario", "until": "1s", "cluster": {"objects": list(_WORLD)}}
    return {"s.json": json.dumps({**head, **parts}).encode()}


def _policy_test(n: int, name: str) -> _Files:
    case = {
        "name": "a",
        "submit": [{"name": f"job-number-{number}", "job": _job("j")} for number in range(n)],
        "expect": [{"workload": f"ns/{name}-{number}", "admitted": False, "preempted": False} for number in range(n)],
    }
    head = {"apiVersion": "kueuecore/v1", "kind": "PolicyTest", "manifests": ["in.json"], "cases": [case]}
    return {"a_test.json": json.dumps(head).encode(), **_lines(_WORLD)}


INPUTS: Mapping[str, tuple[Callable[[int], _Files], int, tuple[tuple[str, ...], ...]]] = {
    "objects": (
        lambda n: _lines([*_WORLD, *(_object("ResourceFlavor", f"f{number}") for number in range(n))]),
        2_000,
        (("run", "-o", "yaml", "in.json"), ("check", "in.json")),
    ),
    "jobs": (
        lambda n: _lines([*_WORLD, *(_job(f"j{number}") for number in range(n))]),
        300,
        (("run", "in.json"), ("run", "-o", "json", "in.json"), ("check", "in.json")),
    ),
    "queues": (
        lambda n: _lines(
            [
                _WORLD[0],
                *(_queue(f"cq{number}", cohortName="all") for number in range(n)),
                *(_object("LocalQueue", f"lq{number}", {"clusterQueue": f"cq{number}"}, "ns") for number in range(n)),
            ]
        ),
        400,
        (("run", "in.json"), ("check", "in.json")),
    ),
    "dangling names": (
        lambda n: _lines(
            [
                _WORLD[0],
                *(_queue(f"a-cluster-queue-{number}") for number in range(n)),
                *(
                    _object("LocalQueue", f"lq{number}", {"clusterQueue": f"b-clutser-quene-{number}"}, "ns")
                    for number in range(n)
                ),
            ]
        ),
        300,
        (("check", "in.json"), ("run", "in.json")),
    ),
    "jobs of missing queues": (
        lambda n: _lines([*_WORLD, *(_job(f"j{number}", queue=f"qeue-with-a-name-{number}") for number in range(n))]),
        300,
        (("check", "in.json"), ("run", "in.json")),
    ),
    "unknown fields": (
        lambda n: _lines([_object("ResourceFlavor", "f", {f"unknown{number}": 1 for number in range(n)})]),
        30_000,
        (("run", "in.json"), ("check", "in.json")),
    ),
    "labels": (
        lambda n: _lines([_object("ResourceFlavor", "f", labels={f"k{number}": "v" for number in range(n)})]),
        20_000,
        (("run", "-o", "yaml", "in.json"), ("check", "in.json")),
    ),
    "a long annotation": (
        lambda n: _lines([_object("ResourceFlavor", "f", annotations={"a": "1_" * n + "x"})]),
        300_000,
        (("run", "-o", "yaml", "in.json"),),
    ),
    "a long wrong name": (
        lambda n: _lines([_object("ResourceFlavor", 'a"\\x00 ' * n)]),
        100_000,
        (("run", "in.json"), ("check", "in.json")),
    ),
    "a long wrong quantity": (
        lambda n: _lines([_WORLD[0], _queue("cq"), _job("j", cpu="1" * n + "x")]),
        300_000,
        (("run", "in.json"), ("check", "in.json")),
    ),
    "flavors of a queue": (
        lambda n: _lines(
            [*(_object("ResourceFlavor", f"f{number}") for number in range(n)), _queue("cq", flavors=min(n, 16))]
        ),
        2_000,
        (("check", "in.json"),),
    ),
    "YAML of many lines": (
        lambda n: {"in.yaml": b"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n---\n" * n},
        800,
        (("run", "in.yaml"),),
    ),
    "YAML lists": (
        lambda n: {"in.yaml": b"apiVersion: v1\nkind: List\nitems:\n" + b"- {a: 1}\n" * n},
        10_000,
        (("run", "in.yaml"),),
    ),
    "duplicate keys": (
        lambda n: {"in.yaml": b"a: 1\n" * n},
        10_000,
        (("run", "in.yaml"),),
    ),
    "an SWF comment": (
        lambda n: {
            "t.swf": b"; a: b" + b" \t" * n + b"c\n" + _swf(3),
            "rules.yaml": _RULES,
            "s.json": _with_trace("t.swf"),
        },
        400_000,
        (("simulate", "s.json"),),
    ),
    "an SWF trace": (
        lambda n: {"t.swf": _swf(n), "rules.yaml": _RULES, "s.json": _with_trace("t.swf")},
        10_000,
        (("simulate", "s.json"),),
    ),
    "a CSV trace": (lambda n: {**_table(n), "s.json": _with_trace("t.csv")}, 15_000, (("simulate", "s.json"),)),
    "a Parquet trace": (
        lambda n: {**_parquet(n), "s.json": _with_trace("t.parquet")},
        15_000,
        (("simulate", "s.json"),),
    ),
    "a timetable": (
        lambda n: _scenario(
            timetable=[{"apply": [_object("Cohort", f"c{number}")], "at": number} for number in range(n)], until="1000h"
        ),
        150,
        (("simulate", "s.json"),),
    ),
    "work": (
        lambda n: _scenario(
            work=[{"name": f"w{number}", "job": _job("j"), "runs": 1} for number in range(n)], until="1h"
        ),
        200,
        (("simulate", "s.json"), ("simulate", "-o", "json", "s.json"), ("simulate", "--report", "o.html", "s.json")),
    ),
    "wrong work": (
        lambda n: _scenario(work=[{"nmae": f"w{number}", "jbo": 1} for number in range(n)]),
        1_000,
        (("simulate", "s.json"),),
    ),
    "a policy test": (lambda n: _policy_test(n, "job-number"), 60, (("test", "a_test.json"),)),
    "wrong names in a policy test": (lambda n: _policy_test(n, "jub-munber"), 60, (("test", "a_test.json"),)),
}


def draw(rng: Random) -> Case:
    """One kind of input, and a command for it."""
    name = rng.choice(list(INPUTS))
    make, n, commands = INPUTS[name]
    command = rng.choice(commands)
    n = round(n * rng.uniform(0.7, 1.4))

    def act(n: int = n) -> None:
        with folder_of_its_own():
            for file, data in make(n).items():
                Path(file).write_bytes(data)
            said = say(*command)
        if said.code not in (0, 1, 2) or "Traceback" in said.err:
            raise Wrong(f"exit code {said.code}\n{said.err[-3000:]}")

    size = sum(map(len, make(n).values()))
    return Case(f"{' '.join(command)} with {n} {name}", act, size, twice=lambda: act(2 * n), seconds=15)
