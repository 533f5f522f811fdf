"""What JSON does not allow is reported with file, line, column and field, wherever it stands."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, Problem
from kueuecore.manifests import parse_manifests, to_json_lines


def problems(text: str, file: str = "a.json") -> tuple[Problem, ...]:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(text, file=file, strict=True)
    return caught.value.problems


def places(text: str, file: str = "a.json") -> list[tuple[int | None, int | None, str, str]]:
    return [(problem.line, problem.column, problem.field, problem.message) for problem in problems(text, file)]


HEAD = '{"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"},\n'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("NaN", "NaN is not valid JSON"),
        ("-Infinity", "-Infinity is not valid JSON"),
        ("1e999", "the number 1e999 is too large"),
        ("-1.5E+400", "the number -1.5E+400 is too large"),
        ("9" * 400, f"the number {'9' * 37}... is too large"),
        ('"a\\ud800b"', "unpaired surrogate"),
        ('"\\udc00\\ud83d"', "unpaired surrogate"),
    ],
)
def test_a_value_that_no_json_has_is_found_where_it_stands(value: str, message: str) -> None:
    text = HEAD + '\t"spec": {"a/b": [0, {"c d": "[{,:", "e":\n  ' + value + "}]}}"
    (problem,) = problems(text)
    assert (problem.file, problem.document, problem.line, problem.column) == ("a.json", 1, 3, 3)
    assert (problem.object, problem.field, problem.message) == (ObjectRef("A", "x"), "spec[a/b][1].e", message)
    assert problem.remedy
    if "I" not in value and "N" not in value:
        # In YAML, which has no such numbers, NaN is a text.
        assert places(text, "<stdin>") == places(text)


def test_all_of_them_are_found_at_once() -> None:
    text = HEAD + '"a": NaN, "b": [1e999, "\\ud800"], "\\udfff": 1, "a": 2} ' + HEAD + '"c": Infinity}\n{"d": }'
    assert places(text) == [
        (2, 6, "a", "NaN is not valid JSON"),
        (2, 17, "b[0]", "the number 1e999 is too large"),
        (2, 24, "b[1]", "unpaired surrogate"),
        (2, 35, "\udfff", "the key has an unpaired surrogate"),
        (2, 48, "a", "duplicate key"),
        (3, 6, "c", "Infinity is not valid JSON"),
        (4, 7, "", "this is not JSON: Expecting value"),
    ]


def test_what_only_looks_odd_is_read() -> None:
    plain = '"a": "NaN 1e999 \\\\ud800", "b": "\\ud83d\\ude00", "c": 1e308, "d": "{\\"a\\": 1, \\"a\\": 2}"}'
    (manifest,) = parse_manifests(HEAD + plain, file="a.json")
    assert [manifest.object[key] for key in "abcd"] == ["NaN 1e999 \\ud800", "😀", 1e308, '{"a": 1, "a": 2}']


def test_many_equal_keys_take_no_time() -> None:
    text = HEAD + ",".join(f'"k{number // 2}": 1' for number in range(40_000)) + "}"
    assert len(problems(text)) == 20_000


def test_lines_of_json_with_escaped_pairs_are_known() -> None:
    (manifest,) = parse_manifests(HEAD + '\t"spec": {\n\t\t"a": "\\ud83d\\ude00",\n\t\t"b": 2}}', file="a.json")
    assert manifest.object["spec"] == {"a": "😀", "b": 2}
    assert manifest.source.line_of("spec.b") == 4


def test_a_text_of_half_a_surrogate_pair_has_a_place() -> None:
    assert places("a: 1\nb: x\ud800", "a.yaml") == [(2, 5, "", "unpaired surrogate")]


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("value", ["\ud800", 10**400])
def test_what_is_given_as_data_has_its_field(value: Any, trusted: bool) -> None:
    flavor: dict[str, Any] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "f"},
    }
    flavor["spec"] = {"nodeLabels": {"a": value}}
    with pytest.raises(ManifestError) as caught:
        Engine().apply([flavor], trusted=trusted)
    (problem,) = caught.value.problems
    assert (problem.field, problem.object) == ("spec.nodeLabels.a", ObjectRef("ResourceFlavor", "f"))


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"a": [1, math.nan]}, "spec.a[1]"), ({"a/b": {1, 2}}, "spec[a/b]"), ({"a": {(1, 2): 3}}, "spec.a")],
)
def test_what_json_can_not_hold_has_its_field(spec: Any, field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        to_json_lines([{"kind": "A", "spec": spec}])
    assert caught.value.field == field
