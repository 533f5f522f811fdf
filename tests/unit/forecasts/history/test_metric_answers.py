"""Answers of Prometheus' HTTP API."""

from __future__ import annotations

import json

import pytest

from kueuecore._json import JsonValue
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.metric_answers import read_answers
from tests.unit.forecasts.history.recorded_metrics import MONDAY, matrix, series

GOOD = matrix([series("kueue_pending_workloads", [(0, 1), (60, 2)], cluster_queue="cq")])


def answer_with(sample: JsonValue) -> bytes:
    entry: JsonValue = {"metric": {"__name__": "kueue_pending_workloads"}, "values": [sample]}
    return json.dumps(matrix([entry])).encode()


def problem(data: bytes) -> str:
    with pytest.raises(ManifestError) as caught:
        read_answers(data, "p.json")
    return str(caught.value.problems[0])


@pytest.mark.parametrize(
    "text", [json.dumps(GOOD), json.dumps([GOOD, GOOD]), f"{json.dumps(GOOD)}\n{json.dumps(GOOD, indent=1)}\n"]
)
def test_one_answer_a_list_and_several_in_a_row_are_the_same(text: str) -> None:
    (found,) = read_answers(text.encode(), "p.json").series("kueue_pending_workloads")
    begin = round(MONDAY * 1e9)
    assert (found.labels, found.samples) == ({"cluster_queue": "cq"}, ((begin, 1.0), (begin + 60_000_000_000, 2.0)))


@pytest.mark.parametrize(
    ("sample", "shown"),
    [
        (["5", "1"], '["5", "1"]'),
        ([5, "one"], '[5, "one"]'),
        ([5, "1_0"], '[5, "1_0"]'),
        ([5, None], "[5, null]"),
        ([5, True], "[5, true]"),
        ([-1, "1"], '[-1, "1"]'),
        ([1e300, "1"], '[1e+300, "1"]'),
        ([5], "[5]"),
        ("5 1", '"5 1"'),
    ],
)
def test_strings_where_numbers_belong_are_named(sample: JsonValue, shown: str) -> None:
    assert problem(answer_with(sample)) == (
        "p.json: answer 1: data.result[0].values[0]: must be a time in seconds and a number in quotes, such as "
        f'[1767225600, "5"], not {shown}; save the answer as Prometheus writes it'
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"{", "p.json:1: not JSON"),
        (json.dumps(GOOD).encode()[:-9], "p.json:1: not JSON"),
        (b"[" * 100_000, "p.json:1: not JSON"),
        (b"\xff\xfe", "not JSON: invalid start byte"),
        (b"[3]", "answer 1: this is no answer of Prometheus"),
        (b'{"status": "success"}', 'its data.resultType is ""'),
        (b'{"status": "success", "data": {"resultType": "scalar", "result": [1, "2"]}}', 'resultType is "scalar"'),
        (b'{"status": "error", "errorType": "bad_data", "error": "parse error"}', "with an error: parse error"),
    ],
    ids=["empty", "brace", "cut off", "nested", "binary", "number", "no data", "scalar", "error"],
)
def test_what_is_no_answer_is_an_error(data: bytes, message: str) -> None:
    assert message in problem(data)


def test_a_series_without_a_name_may_be_anything() -> None:
    entry: JsonValue = {"metric": {"cluster_queue": "cq"}, "values": [[1, "2"]]}
    assert problem(json.dumps(matrix([entry])).encode()) == (
        "p.json: answer 1: data.result[0].metric: its metric has no label __name__, so it may be anything; ask for the "
        "metric itself, such as /api/v1/query_range?query=kueue_admitted_workloads_total"
    )


def test_native_histograms_are_refused() -> None:
    entry: JsonValue = {"metric": {"__name__": "kueue_admission_wait_time_seconds"}, "histograms": []}
    assert "is a native histogram; ask for its classic buckets" in problem(json.dumps(matrix([entry])).encode())


def test_numbers_that_no_float_holds_are_named() -> None:
    data = answer_with([5, "x"]).replace(b'"x"', b"1" * 400)
    assert "must be a time in seconds and a number in quotes" in problem(data)


def test_infinite_and_missing_values_are_counted() -> None:
    answer = matrix([series("kueue_pending_workloads", [(0, float("nan")), (60, float("inf")), (120, 2)])])
    table = read_answers(json.dumps(answer).encode(), "p.json")
    assert (table.n_without_value, table.names) == (2, ("kueue_pending_workloads",))
