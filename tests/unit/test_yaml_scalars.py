"""YAML is converted as kubectl converts it: compared with recorded answers of its library (tests/yaml_scalars)."""

from __future__ import annotations

import pytest
import yaml

from kueuecore import _yaml
from kueuecore._documents import yaml_documents
from kueuecore.errors import Problem
from tests.recorded_yaml import Recorded, recorded, scalars


def read(text: str) -> tuple[object, tuple[Problem, ...]]:
    """The value of a text of at most one document, and its problems."""
    (document,) = yaml_documents(text, "a.yaml") or (None,)
    return (None, ()) if document is None else (document.value, document.problems)


def typed(value: object) -> object:
    """A value in which 1, 1.0 and true differ."""
    if isinstance(value, dict):
        return {key: typed(row) for key, row in value.items()}
    if isinstance(value, list):
        return [typed(row) for row in value]
    return type(value), value


def test_the_table_is_large() -> None:
    assert len(set(scalars())) == len(scalars()) >= 150
    for form in ("value", "key"):
        assert sum(other.form == form for other in recorded()) == len(scalars())


@pytest.mark.parametrize("answer", recorded(), ids=lambda entry: repr(entry.text))
def test_yaml_is_read_as_kubectl_reads_it(answer: Recorded) -> None:
    value, problems = read(answer.text)
    if answer.error:
        assert problems
        assert problems[0].remedy
    else:
        assert problems == ()
        assert typed(value) == typed(answer.json)


def test_the_pure_loader_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    monkeypatch.setattr(_yaml, "Loader", _yaml._loader())
    read_well = [other for other in recorded() if not other.error]
    assert [read(other.text)[0] for other in read_well] == [other.json for other in read_well]
