"""What is recognised as which source, and what is none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kueuecore._json import JsonValue
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history import HistoryKind, history_of
from kueuecore.forecasts.history.kinds import kind_of
from kueuecore.forecasts.history.metric_rates import Ask
from kueuecore.times import nanoseconds
from tests.unit.forecasts.history.recorded_metrics import matrix, series

NOW = nanoseconds("2026-06-01T00:00:00Z")
SWF = "; a log\n1 0 10 60 4 -1 -1 4 3600 1024 1 7 2 -1 1 1 -1 -1\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SWF, HistoryKind.TRACE),
        ("JobID|Submit|Start|End|Elapsed|State|ReqTRES\n", HistoryKind.TRACE),
        ("at,run_seconds,kind\n", HistoryKind.TRACE),
        ('[{"status": "Pass", "vc": "a", "jobid": "b", "attempts": []}]', HistoryKind.TRACE),
        ("# a dump\napiVersion: v1\nkind: List\nitems: []\n", HistoryKind.DUMP),
        ("---\nkind: Workload\n", HistoryKind.DUMP),
        ('{"apiVersion": "v1", "kind": "List"}', HistoryKind.DUMP),
        ('{"kind":"Workload"}\n{"kind":"Workload"}', HistoryKind.DUMP),
        ('[{"kind": "Workload"}]', HistoryKind.DUMP),
        ('{"format": "kueuecore.journal/1", "calls": []}', HistoryKind.JOURNAL),
        ('{"time": "2026-01-01T00:00:00Z", "level": "info", "message": "event"}\n', HistoryKind.LOG),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', HistoryKind.PROMETHEUS),
        ('[\n {"status": "error", "errorType": "bad_data"}]', HistoryKind.PROMETHEUS),
        ("\ufeff" + '{"apiVersion": "v1"}', HistoryKind.DUMP),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_what_it_contains(tmp_path: Path, text: str, kind: HistoryKind, *, packed: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert kind_of(path) == kind


def test_a_kind_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(SWF.replace("; a log\n", ""))
    (job,) = history_of([f"swf={path}"], now=NOW).jobs
    assert job.run_seconds == 60.0


def test_an_equals_sign_may_be_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "year=2026.swf"
    path.write_text(SWF)
    assert len(history_of([str(path)], now=NOW).jobs) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"hello\n", "cannot see from its name or first bytes what it is; say what it is: swf=FILE"),
        (b'{"a": 1}', "cannot see what this JSON is; say what it is, such as sacct=FILE; the kinds are trace, dump"),
        (b"\x1f\x8b" + b"\xff" * 90, "the compressed file is damaged"),
        (b"PK\x03\x04" + b"\0" * 90, "it is a zip archive; unpack it"),
    ],
    ids=["empty", "text", "JSON", "damaged", "zip"],
)
def test_what_may_be_anything_is_an_error(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(ManifestError) as caught:
        history_of([str(path)], now=NOW)
    assert str(caught.value.problems[0]).startswith(f"{path}: {message}")


@pytest.mark.parametrize("source", ["nowhere.swf", "sacct=nowhere.txt", "dump=nowhere.yaml", "log=nowhere", "a\0b"])
def test_a_file_that_is_not_there_is_an_error(source: str) -> None:
    with pytest.raises(ManifestError) as caught:
        history_of([source], now=NOW)
    assert caught.value.problems[0].file == source.partition("=")[2] or source


def test_an_address_is_asked_and_shown_without_its_password() -> None:
    asked: list[str] = []

    def ask(address: str) -> Ask:
        asked.append(address)
        return answered

    def answered(query: str, begin: int, end: int, step: int) -> JsonValue:
        return matrix([series("kueue_pending_workloads", [(0, 1), (3600, 2)], cluster_queue="cq")])

    found = history_of(["prometheus=https://ann:secret@host/x"], now=NOW, ask=ask)
    assert asked == ["https://ann:secret@host/x"]
    assert [rates.cluster_queue for rates in found.rates] == ["cq"]
    assert found.notes[-1].startswith("https://host/x: 1 ClusterQueue taken")


@pytest.mark.parametrize("source", ["https://ann:secret@host", "sacct=https://ann:secret@host"])
def test_an_address_that_cannot_be_asked_is_an_error_without_its_password(source: str) -> None:
    with pytest.raises(ManifestError) as caught:
        history_of([source], now=NOW)
    assert str(caught.value.problems[0]).startswith("https://host: it is the address of a server, which is not asked")


def test_several_sources_are_one_history_in_order_of_time(tmp_path: Path) -> None:
    for name, start in (("late", 1_700_000_000), ("early", 1_600_000_000)):
        (tmp_path / f"{name}.swf").write_text(f"; UnixStartTime: {start}\n{SWF}")
    answer = matrix([series("kueue_admitted_workloads_total", [(0, 1), (3600, 2)], cluster_queue="cq")])
    (tmp_path / "p.json").write_text(json.dumps(answer))
    found = history_of([str(tmp_path / name) for name in ("late.swf", "p.json", "early.swf")], now=NOW)
    assert [job.created for job in found.jobs] == [1_600_000_000 * 10**9, 1_700_000_000 * 10**9]
    assert (len(found.rates), len(found.notes)) == (1, 4)
