"""The JSON Schema of a scenario beside the reader."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from kueuecore._fields import Fields
from kueuecore.errors import ManifestError
from kueuecore.manifests import read_manifests
from kueuecore.scenarios import read_scenario, scenario_schema
from tests.regressions.scenarios import EXAMPLES, JOB

SCHEMA: Any = scenario_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
HEAD = {"apiVersion": "kueuecore/v1", "kind": "Scenario", "metadata": {"name": "a"}, "seed": 1, "until": "5d"}
QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "ClusterQueue",
    "metadata": {"name": "cq"},
    "spec": {
        "cohortName": "all",
        "resourceGroups": [
            {
                "coveredResources": ["cpu"],
                "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": 4}]}],
            }
        ],
    },
}
LOCAL_QUEUE = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "LocalQueue",
    "metadata": {"name": "lq", "namespace": "team-a"},
    "spec": {"clusterQueue": "cq"},
}
NODES = {
    "name": "n",
    "levels": [{"name": "rack", "count": 2, "label": "rack", "value": "{group}-r{rack}"}, {"name": "node", "count": 2}],
    "capacity": {"cpu": 8, "memory": "32Gi"},
    "labels": {"pool": "a"},
    "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    "failures": [
        {"at": 5, "every": {"mean": "1h"}, "times": 2, "nodes": 1, "domain": "n-r1", "lasts": "10m"},
        {"node": "n-r1-node1", "becomes": "Tainted", "taint": {"key": "a", "effect": "NoExecute"}},
    ],
}
CLUSTER = {
    "objects": ["queue.json", QUEUE],
    "configuration": {"waitForPodsReady": {"timeout": "5m"}},
    "kueue": "0.17",
    "capacity": {
        "tokyo": {
            "amounts": {"cpu": 8, "memory": "1Gi"},
            "delay": {"from": 1, "to": 2},
            "refused": 0.5,
            "patience": "1h",
            "booking": "10m",
        }
    },
    "nodes": [NODES],
}
EMPTY: dict[str, Any] = {"objects": [], "configuration": {}, "kueue": 0.19, "capacity": {}, "nodes": []}
# Every field of every part.
ONE_CLUSTER: dict[str, Any] = {
    **HEAD,
    "start": "2026-01-01T00:00:00Z",
    "cluster": {**CLUSTER, "cycle": "1s"},
    "present": {"runs": "10m", "waitingRuns": {"from": 1, "to": "2m"}},
    "timetable": [
        {"at": "2h", "apply": ["queue.json", {**QUEUE, "metadata": {"name": "other"}}]},
        {"at": "3h", "every": "1d", "times": 2, "delete": {"kind": "LocalQueue", "name": "lq", "namespace": "team-a"}},
        {"at": 1, "patch": {"kind": "ClusterQueue", "name": "cq", "patch": {"spec": {"stopPolicy": "Hold"}}}},
        {
            "scale": {
                "clusterQueue": "cq",
                "flavor": "f",
                "resource": "cpu",
                "nominalQuota": 20,
                "borrowingLimit": None,
                "lendingLimit": "3",
            }
        },
    ],
    "work": [
        {
            "name": "a",
            "job": "job.json",
            "count": 3,
            "at": 5,
            "every": {"lognormal": {"median": "5m", "sigma": 1}},
            "runs": {"weibull": {"shape": 0.5, "scale": 60}},
            "lingers": "1m",
            "nodeLoss": "Waits",
            "fails": {"share": 0.5, "after": {"gamma": {"shape": 2, "scale": 30}}},
            "varies": [{"field": "spec.parallelism", "values": [1], "weights": [1], "inOrder": False}],
        },
        {
            "name": "b",
            "job": yaml.safe_load(JOB),
            "arrivals": {"perHour": 2, "byHour": [1] * 24, "byWeekday": [1] * 7, "until": "1d"},
            "runs": {"values": [1, "2m"], "weights": [1, 2], "inOrder": False},
        },
        {"name": "c", "job": "job.json", "runs": {"file": "runs.csv", "column": "runtime", "inOrder": True}},
        {"name": "d", "job": "job.json", "runs": {"lognormal": {"mean": "5m", "p95": "10m"}}},
    ],
}
FLEET: dict[str, Any] = {
    **HEAD,
    "fleet": {
        "manager": dict(EMPTY),
        "workers": {
            "east": {
                **EMPTY,
                "startsPods": True,
                "link": {
                    "leastMs": 1,
                    "mostMs": 2,
                    "lostRequests": 1,
                    "lostAnswers": 1,
                    "repeatedEvents": 1,
                    "timeoutMs": 1000,
                },
            }
        },
        "disconnections": [{"worker": "east", "at": 1, "lasts": "5m"}],
        "policy": {
            "choose": "weight",
            "values": {"east": 2},
            "resource": "cpu",
            "prefersRoom": True,
            "stepSize": 1,
            "round": "5m",
            "constraints": True,
            "admitWithin": "5m",
            "startWithin": "5m",
            "excludeFor": "5m",
            "mostAttempts": 3,
            "overrides": {"east": [{"op": "add", "path": "/metadata/labels", "value": {}}]},
        },
        "overflow": {"queues": {"a": "b"}, "patience": "5m"},
    },
    "work": [{"job": "job.json"}],
}
PARTS = pytest.mark.parametrize("whole", [ONE_CLUSTER, FLEET], ids=["cluster", "fleet"])
# What stands there is described elsewhere: objects, Configurations, patches, and names that anybody chooses.
FREE = re.compile(
    r"\.(metadata|configuration|objects\[1\]|apply\[1\]|job|patch\.patch|overrides\.east\[0\]|by\w+\[[1-9]\d*\])"
)
NAMED = re.compile(
    r"\.(amounts|capacity|policy\.values|labels|workers\.east|values\.east|queues\.a|overrides\.east|capacity\.(cpu|memory))$"
)
# One and the same value is right in one place and wrong in another.
VALUES: list[Any] = ["zz", 7, None, [], ""]
OF_WRONG_TYPE: list[Any] = [{"zz": 1}, [[]], True]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs.csv").write_text("runtime\n5\n", encoding="utf-8")
    (tmp_path / "queue.json").write_text(json.dumps(LOCAL_QUEUE), encoding="utf-8")
    (tmp_path / "job.json").write_text(json.dumps(yaml.safe_load(JOB)), encoding="utf-8")
    return tmp_path


def is_read(folder: Path, document: Any) -> bool:
    (folder / "scenario.json").write_text(json.dumps(document), encoding="utf-8")
    try:
        read_scenario(folder / "scenario.json")
    except ManifestError:
        return False
    return True


def is_described(document: Any) -> bool:
    return bool(VALIDATOR.is_valid(document))


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of everything in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def text_of(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)


def changed(whole: Any, path: tuple[str | int, ...], value: Any) -> Any:
    document = copy.deepcopy(whole)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return document


def at(whole: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        whole = whole[key]
    return whole


def test_the_schema_is_one_of_its_draft() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/scenario.yaml")), ids=lambda path: path.parent.name)
def test_the_examples_fit(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read_manifests(path)[0].object)] == []


@PARTS
def test_a_scenario_with_every_field_fits(whole: Any, folder: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(whole)] == []
    assert is_read(folder, whole)


@PARTS
def test_what_the_reader_takes_the_schema_takes(whole: Any, folder: Path) -> None:
    wrong = [
        (text_of(path), value)
        for path in places(whole)
        if path and not FREE.search(text_of(path))
        for value in VALUES
        if not is_described(document := changed(whole, path, value)) and is_read(folder, document)
    ]
    assert wrong == []


@PARTS
def test_a_value_of_the_wrong_type_is_refused_by_both(whole: Any, folder: Path) -> None:
    wrong = [
        (text_of(path), value)
        for path in places(whole)
        if path and not FREE.search(text_of(path)) and not NAMED.search(text_of(path))
        for value in OF_WRONG_TYPE
        if not (value is True and isinstance(at(whole, path), bool))
        if is_described(document := changed(whole, path, value)) != is_read(folder, document)
    ]
    assert wrong == []


@PARTS
def test_an_unknown_field_is_refused_by_both(whole: Any, folder: Path) -> None:
    found = []
    for path in places(whole):
        text = text_of(path)
        free = FREE.search(text) or re.search(r"\.(amounts|labels|capacity|workers|queues|values|overrides)$", text)
        if isinstance(at(whole, path), dict) and not free:
            document = changed(whole, path, {**at(whole, path), "zz": 1}) if path else {**whole, "zz": 1}
            found.append((text, is_described(document), is_read(folder, document)))
    assert [error for error in found if error[1] or error[2]] == []
    assert len(found) > 8


@PARTS
def test_the_schema_names_every_field_that_the_reader_asks_for(
    whole: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[tuple[str, str]] = set()
    end = Fields.end

    def noting_end(self: Fields) -> None:
        asked.update((self.path, name) for name in self._known)
        end(self)

    monkeypatch.setattr(Fields, "end", noting_end)
    assert is_read(folder, whole)
    unknown = [(path, name) for path, name in asked if name not in _described(path)]
    assert unknown == []
    assert len(asked) > 40


def _described(path: str) -> set[str]:
    """The fields that the schema knows in a mapping of the scenario."""
    nodes = [SCHEMA]
    for key in re.findall(r"[^.\[\]]+|\[\d+\]", path):
        steps = [row for node in nodes for row in _resolved(node)]
        if key.startswith("["):
            nodes = [step["items"] for step in steps if "items" in step]
        else:
            named = [step["properties"][key] for step in steps if key in step.get("properties", ())]
            others = [
                step["additionalProperties"] for step in steps if isinstance(step.get("additionalProperties"), dict)
            ]
            nodes = named or others
    return {name for node in nodes for row in _resolved(node) for name in row.get("properties", ())}


def _resolved(node: Any) -> list[Any]:
    if "$ref" in node:
        return _resolved(SCHEMA["$defs"][node["$ref"].rpartition("/")[2]])
    return [node, *(found for entry in node.get("anyOf", ()) for found in _resolved(entry))]
