"""What a dry run keeps: its journal, its memory and its summaries, also on a disk that is full or was torn."""

from __future__ import annotations

import gzip
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import main
from kueuecore.errors import ManifestError
from kueuecore.kubernetes.dry_run.decisions_seen import Kind
from kueuecore.kubernetes.dry_run.difference_memory import DifferenceMemory, shape_of
from kueuecore.kubernetes.dry_run.journal_folder import JournalFolder
from kueuecore.kubernetes.dry_run.judge import Judged, Verdict
from kueuecore.kubernetes.dry_run.reports import Reports
from kueuecore.times import SECOND_NS
from tests.unit.kubernetes.dry_run_days import START, queues, workload

DAY = 86_400 * SECOND_NS


def judged(
    name: str = "w", *, verdict: Verdict = Verdict.DIFFERED, at: int = START, here: str = "waits: no", why: str = ""
) -> Judged:
    message = "Quota reserved in ClusterQueue a"
    reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": message}
    manifest: dict[str, Any] = {**workload(name, "a"), "status": {"conditions": [reserved]}}
    objects = (*queues(), workload(name, "a")) if verdict is Verdict.DIFFERED else ()
    return Judged(
        at, Kind.ADMISSION, verdict, ("lab", name), f"uid-{name}", "admitted in a", here, why, manifest, objects
    )


OPEN: list[JournalFolder] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def folder_at(path: Path, **options: Any) -> JournalFolder:
    OPEN.append(JournalFolder(path, **options))
    return OPEN[-1]


def reports(path: Path, *, now: int = START, **options: Any) -> Reports:
    return Reports(folder_at(path), kueue="0.19.2", now=now, **options)


def test_a_difference_is_reported_once_and_its_state_can_be_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = reports(tmp_path)
    kept.take(judged(why="here lab/x goes first"))
    kept.take(judged(at=START + SECOND_NS))
    kept.close(START + 2 * SECOND_NS)
    assert [record.levelname for record in caplog.records if record.message == "would decide otherwise"] == ["WARNING"]
    [difference] = kept.memory.differences()
    assert (difference.count, difference.why) == (2, "here lab/x goes first")
    state = tmp_path / difference.state
    assert json.loads(gzip.decompress(state.read_bytes()))["kind"] == "List"
    assert main(["explain", "-q", str(state), "lab/w"]) == 0
    assert "lab/w" in capsys.readouterr().out


def test_a_restart_remembers_the_differences_and_the_counts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = reports(tmp_path)
    first.take(judged())
    first.take(judged("v", verdict=Verdict.AGREED, here="admitted in a"))
    first.close(START)
    caplog.clear()
    second = reports(tmp_path, now=START + SECOND_NS)
    second.take(judged(at=START + SECOND_NS))
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert second.memory.counts["admission", "differed"] == 2
    assert second.memory.counts["admission", "agreed"] == 1


def test_history_reads_the_folder_also_with_a_torn_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = reports(tmp_path)
    kept.take(judged(why="here lab/x goes first"))
    kept.close(START)
    [journal] = tmp_path.glob("decisions-*.log")
    # As after kill -9.
    with journal.open("ab") as file:
        file.write(b'{"time": "2026-01-01T00:00:00.000Z", "level": "in')
    again = reports(tmp_path, now=START + 5 * SECOND_NS)
    again.take(judged(verdict=Verdict.AGREED, at=START + 5 * SECOND_NS))
    again.close(START)
    assert len([*tmp_path.glob("decisions-*.log")]) == 2
    state = next((tmp_path / "states").iterdir())
    assert main(["history", "-q", str(state), "--trusted", "lab/w", "--journal", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "gets quota in ClusterQueue a" in said
    assert "here lab/x goes first" in said


def test_the_journal_is_rotated_and_capped(tmp_path: Path) -> None:
    folder = folder_at(tmp_path, max_file_bytes=200, max_bytes=1_000, max_states=3)
    for number in range(100):
        folder.append({"number": number, "text": "x" * 40}, now=START + number * SECOND_NS)
        folder.save_state(f"s{number}", [{"kind": "Namespace"}], now=START + number * SECOND_NS)
    folder.close()
    files = [*tmp_path.glob("decisions-*.log")]
    assert len(files) > 2
    assert sum(file.stat().st_size for file in files) <= 1_300
    assert sorted(file.name.rpartition("Z-")[2] for file in (tmp_path / "states").iterdir()) == [
        "s97.json.gz",
        "s98.json.gz",
        "s99.json.gz",
    ]


def test_old_files_of_the_journal_go(tmp_path: Path) -> None:
    folder = folder_at(tmp_path, max_days=2)
    folder.append({"day": 1}, now=START)
    folder.close()
    [old] = tmp_path.glob("decisions-*.log")
    os.utime(old, ns=(START, START))
    folder.append({"day": 5}, now=START + 4 * DAY)
    assert not old.exists()


def test_a_full_disk_costs_lines_and_is_said_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = reports(tmp_path)
    assert kept.journal is not None

    def full(now: int) -> Iterator[None]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.journal, "_open_file", full)
    for number in range(30):
        kept.take(judged(f"w{number}", verdict=Verdict.AGREED, at=START + number * 4 * SECOND_NS))
    assert kept.journal.n_errors == 30
    assert [record.message for record in caplog.records].count("the journal cannot be written") == 2
    monkeypatch.undo()
    assert [*tmp_path.glob("decisions-*.log")] == []
    kept.take(judged("later", verdict=Verdict.AGREED, at=START + 200 * SECOND_NS))
    assert len([*tmp_path.glob("decisions-*.log")]) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX's")
def test_a_disk_that_fills_up_leaves_whole_lines_and_what_was_there(tmp_path: Path) -> None:
    import resource

    folder = folder_at(tmp_path)
    folder.append({"line": "precious"}, now=START)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
    try:
        # The last that fits does so in part.
        for number in range(20):
            folder.append({"line": number, "padding": "x" * 80}, now=START + number * SECOND_NS)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        before = {*tmp_path.glob("decisions-*.log")}
        for number in range(20):
            folder.append({"line": number}, now=START + (100 + number) * SECOND_NS)
        assert {*tmp_path.glob("decisions-*.log")} == before, "no empty files, before which older ones would give way"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    lines = [line for file in before for line in file.read_text().splitlines()]
    assert {json.loads(line)["line"] for line in lines} > {"precious", 0}


def test_what_cannot_be_removed_keeps_no_line_away(tmp_path: Path) -> None:
    (tmp_path / "decisions-2020.log").mkdir()
    os.utime(tmp_path / "decisions-2020.log", (0, 0))
    folder = folder_at(tmp_path, max_bytes=1)
    folder.append({"line": 1}, now=START)
    assert folder.n_errors == 0
    assert [json.loads(file.read_text()) for file in tmp_path.glob("decisions-*.log") if file.is_file()] == [
        {"line": 1}
    ]


def test_after_the_clock_went_back_summaries_are_due_again(tmp_path: Path) -> None:
    ahead = reports(tmp_path, now=START + 300 * DAY)
    ahead.take(judged(at=START + 300 * DAY))
    ahead.close(START + 300 * DAY)
    back = reports(tmp_path, now=START)
    back.tick(START + DAY)
    assert len([*tmp_path.glob("summary-*.md")]) == 1


def test_half_a_pair_of_surrogates_does_not_end_a_summary(tmp_path: Path) -> None:
    kept = reports(tmp_path)
    kept.take(judged(why="\ud800"))
    kept.tick(START + DAY)
    assert "?" in next(tmp_path.glob("summary-*.md")).read_text("utf-8")


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ManifestError, match="cannot be written"):
        JournalFolder(tmp_path / "file" / "journal")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"format": "kueuecore.dry-run/1"}',
        b'{"format": "kueuecore.dry-run/1", "since": -1}',
        b'{"format": "kueuecore.dry-run/1", "since": 10000000000000000000000000000000}',
        b'{"format": "kueuecore.dry-run/1", "since": 1, "counts": [["admission", "agreed", "x"]]}',
        b'{"format": "kueuecore.dry-run/1", "since": 1, "counts": [], "reasons": {"a": "b"}}',
        b'{"format": "kueuecore.dry-run/1", "since": 1, "counts": [], "differences": [{"kind": 1}]}',
        b'{"format": "kueuecore.dry-run/2", "since": 1, "counts": []}',
        b"[" * 100_000,
    ],
)
def test_a_memory_that_cannot_be_read_is_kept_aside(
    data: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "memory.json").write_bytes(data)
    kept = reports(tmp_path)
    assert "the memory of a dry run is damaged, and begins anew" in caplog.text
    assert (tmp_path / "memory.json.unreadable").read_bytes() == data
    kept.take(judged())
    kept.close(START)
    assert DifferenceMemory.read((tmp_path / "memory.json").read_bytes()).n_known == 1


def test_each_day_is_summed_up_at_its_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = reports(tmp_path, summary_at_ns=6 * 3_600 * SECOND_NS)
    for number in range(3):
        kept.take(judged(f"job-{number}", why=f"lab/job-{number}, alone in a cycle, would wait: {number} more needed"))
    kept.take(
        judged("v", verdict=Verdict.AGREED, why="Kueue had not seen Workload lab/v changed at 2026-01-01T00:00:00Z")
    )
    kept.note("Kueue has changed from 0.19.1 to 0.19.2", now=START)
    kept.tick(START + 5 * 3_600 * SECOND_NS)
    assert [*tmp_path.glob("summary-*")] == []
    with caplog.at_level(logging.INFO):
        kept.tick(START + 6 * 3_600 * SECOND_NS)
        kept.tick(START + 7 * 3_600 * SECOND_NS)
    [page], [data] = tmp_path.glob("summary-*.md"), tmp_path.glob("summary-*.json")
    assert page.name == "summary-2026-01-01T06-00-00Z.md"
    assert [record.said for record in caplog.records if record.message == "summary"] == [  # type: ignore[attr-defined]
        "4 decisions judged: 1 agreed, 3 differed; 0 not"
    ]
    plain = json.loads(data.read_text())
    assert plain["decisions"]["admission"] == {"agreed": 1, "differed": 3, "unjudged": 0}
    assert [(group["what"], group["count"]) for group in plain["differences"]] == [
        ("admission: Kueue admitted in a; here waits: no", 3)
    ]
    assert plain["seenLate"] == {"Kueue had not seen Workload X changed at N": 1}
    assert plain["notes"] == ["2026-01-01T00:00:00Z: Kueue has changed from 0.19.1 to 0.19.2"]
    assert "| admission | 1 | 3 | 0 |" in page.read_text()
    # The next one begins at zero, and knows the differences.
    assert (kept.memory.counts.total(), kept.memory.n_known) == (0, 3)


def test_memory_is_bounded() -> None:
    memory = DifferenceMemory(since=START)
    for number in range(3_000):
        memory.take_in(judged(f"w{number}"))
        memory.take_in(judged(verdict=Verdict.AGREED, why="reason " + "abcdefghij"[number % 10] * (number % 400)))
        memory.note(str(number))
    assert (memory.n_known, len(memory.reasons) <= 200, len(memory.notes)) == (1_000, True, 100)


def test_shapes_have_no_names_and_numbers() -> None:
    said = "lab/job-3 changed at 2026-01-01T00:00:09.5Z for 5a5a5a5a-6d2b-4cf1-9d1f-5b5bb17f3b10, 12 more"
    assert shape_of(said) == "X changed at N for N, N more"
