"""The JSON Schema of policy tests beside the reader."""

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

from kueuecore.errors import ManifestError
from kueuecore.manifests import read_manifests
from kueuecore.policy_tests import policy_test_schema, read_policy_tests
from tests.policy_test_files import EXAMPLES, QUEUES, job

SCHEMA: Any = policy_test_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
JOB: Any = yaml.safe_load(job("one"))
# Every field of every part.
WHOLE: dict[str, Any] = {
    "apiVersion": "kueuecore/v1",
    "kind": "PolicyTest",
    "metadata": {"name": "a"},
    "seed": 1,
    "cycle": "1s",
    "manifests": ["queues.json"],
    "configuration": {"waitForPodsReady": {"timeout": "5m"}},
    "kueue": "0.17",
    "featureGates": {"PartialAdmission": True},
    "now": "2026-01-01T00:00:00Z",
    "until": "1d",
    "submit": [{"job": JOB, "name": "one"}],
    "timetable": [{"at": "1m", "delete": {"kind": "LocalQueue", "name": "lq", "namespace": "team"}}],
    "cases": [
        {
            "name": "a",
            "manifests": ["queues.json", JOB],
            "configuration": {},
            "kueue": "0.18.2",
            "featureGates": {"PartialAdmission": False},
            "now": "2026-01-01T00:00:00Z",
            "until": "1d",
            "submit": [{"job": JOB, "name": "two", "count": 2, "at": 1, "every": "1m", "runs": {"from": 1, "to": 2}}],
            "timetable": [
                {"apply": ["queues.json"]},
                {"every": "1m", "times": 2, "patch": {"kind": "ClusterQueue", "name": "cq", "patch": {"spec": {}}}},
                {"scale": {"clusterQueue": "cq", "flavor": "default", "resource": "cpu", "nominalQuota": 2}},
            ],
            "expect": [
                {
                    "workload": "team/one",
                    "at": "1m",
                    "count": 1,
                    "admitted": {
                        "clusterQueue": "cq",
                        "flavors": {"cpu": "default", "main": {"cpu": "default"}},
                        "nodes": ["n1"],
                        "domains": {"rack": ["r1"], "block": 1},
                    },
                    "pending": {"message": "m", "reason": "r"},
                    "finished": True,
                    "preempted": {"by": "team/two", "reason": "InClusterQueue"},
                    "waits": {"below": "5m", "atLeast": 1},
                },
                {"workload": "a", "admitted": True, "pending": True, "preempted": False},
                {"clusterQueue": "cq", "at": 1, "usage": {"f": {"cpu": 1}}, "borrowed": {"f": {"cpu": "1500m"}}},
                {"cohort": "all", "usage": {"f": {"cpu": "1"}}},
                {"settles": True, "at": "1m"},
            ],
        }
    ],
}
FREE = re.compile(r"\.(metadata|configuration|manifests\[1\]|job|patch\.patch)")
NAMED = re.compile(r"\.(featureGates|flavors|main|domains|usage|borrowed|f)$")
VALUES: list[Any] = ["zz", 7, None, [], ""]
OF_WRONG_TYPE: list[Any] = [{"zz": 1}, [[]]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    objects = [json.dumps(entry) for entry in yaml.safe_load_all(QUEUES)]
    (tmp_path / "queues.json").write_text("\n".join(objects), encoding="utf-8")
    return tmp_path


def is_read(folder: Path, document: Any) -> bool:
    (folder / "a_test.json").write_text(json.dumps(document), encoding="utf-8")
    try:
        read_policy_tests(folder / "a_test.json")
    except ManifestError:
        return False
    return True


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of everything in a document."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def text_of(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def changed(path: tuple[str | int, ...], value: Any) -> Any:
    document = copy.deepcopy(WHOLE)
    at(document, path[:-1])[path[-1]] = value
    return document


def test_the_schema_is_valid_for_its_draft() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("policy-tests/*_test.yaml")), ids=lambda path: path.name)
def test_the_examples_fit(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read_manifests(path)[0].object)] == []


def test_a_file_with_every_field_fits(folder: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(WHOLE)] == []
    assert is_read(folder, WHOLE)


def test_the_schema_accepts_whatever_the_reader_accepts(folder: Path) -> None:
    wrong = [
        (text_of(path), value)
        for path in places(WHOLE)
        if path and not FREE.search(text_of(path))
        for value in VALUES
        if not VALIDATOR.is_valid(document := changed(path, value)) and is_read(folder, document)
    ]
    assert wrong == []


def test_reader_and_schema_reject_values_of_the_wrong_type(folder: Path) -> None:
    wrong = [
        (text_of(path), value)
        for path in places(WHOLE)
        if path and not FREE.search(text_of(path)) and not NAMED.search(text_of(path))
        for value in OF_WRONG_TYPE
        if VALIDATOR.is_valid(document := changed(path, value)) or is_read(folder, document)
    ]
    assert wrong == []


def test_reader_and_schema_reject_unknown_fields(folder: Path) -> None:
    found = []
    for path in places(WHOLE):
        text = text_of(path)
        if isinstance(at(WHOLE, path), dict) and not FREE.search(text) and not NAMED.search(text):
            document = changed(path, {**at(WHOLE, path), "zz": 1}) if path else {**WHOLE, "zz": 1}
            found.append((text, VALIDATOR.is_valid(document), is_read(folder, document)))
    assert [error for error in found if error[1] or error[2]] == []
    assert len(found) > 10
