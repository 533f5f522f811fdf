"""YAML is converted as kubectl converts it: compared with recorded answers of its library (tests/yaml_scalars)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore import _yaml
from kueuecore._documents import yaml_documents
from kueuecore.errors import Problem

FOLDER = Path(__file__).resolve().parents[1] / "yaml_scalars"
RECORDED = [json.loads(line) for line in (FOLDER / "recorded.jsonl").read_text().splitlines()]


def read(text: str) -> tuple[object, tuple[Problem, ...]]:
    """The value of a text of at most one document, and its problems."""
    (document,) = yaml_documents(text, "a.yaml") or (None,)
    return (None, ()) if document is None else (document.value, document.problems)


def typed(value: object) -> object:
    """A value in which 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return {key: typed(it) for key, it in value.items()}
    if isinstance(value, list):
        return [typed(it) for it in value]
    return type(value), value


def test_the_table_is_large() -> None:
    scalars = [it for it in (FOLDER / "scalars.txt").read_text().split("\n") if it]
    assert len(set(scalars)) == len(scalars) >= 150
    assert sum(it["as"] == "value" for it in RECORDED) == sum(it["as"] == "key" for it in RECORDED) == len(scalars)


@pytest.mark.parametrize("recorded", RECORDED, ids=[repr(it["yaml"]) for it in RECORDED])
def test_yaml_is_read_as_kubectl_reads_it(recorded: dict[str, Any]) -> None:
    value, problems = read(recorded["yaml"])
    if "error" in recorded:
        assert problems
        assert problems[0].remedy
    else:
        assert problems == ()
        assert typed(value) == typed(recorded["json"])


def test_the_pure_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    monkeypatch.setattr(_yaml, "Loader", _yaml._loader())
    read_well = [it for it in RECORDED if "error" not in it]
    assert [read(it["yaml"])[0] for it in read_well] == [it["json"] for it in read_well]
