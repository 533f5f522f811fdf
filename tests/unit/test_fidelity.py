"""The page that says how faithful we are says what its command found; what was not asked is not right."""

from collections import Counter
from pathlib import Path

import pytest

from scripts import fidelity
from scripts.fidelity import SIDES, VERDICTS, Case, Result, Row, page, rows_of

RECORDED = fidelity.ROOT.parent / "shared/conformance"


def table(text: str) -> dict[str, list[str]]:
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in rows}


def written() -> str:
    return fidelity.PAGE.read_text(encoding="utf-8")


def test_a_row_counts_each_verdict_of_each_side_and_says_what_the_rest_is_about() -> None:
    cases = [Case("whole/available", {"id": f"available/{name}"}) for name in "abc"]
    results = {
        "engine": {"available/a": Result("passed"), "available/b": Result("passed"), "available/c": Result("passed")},
        "reference": {
            "available/a": Result("passed"),
            "available/b": Result("failed", "cpu: want 1, got 2"),
            "available/c": Result("not run", "no time was left for it"),
        },
    }
    rows = rows_of(cases, results, {}, [("available/b*", "a limit")])
    found = table(page(rows, {}, revision="commit abc", kueue="def", worlds="none"))
    assert found["`whole/available`"] == ["3", *["3", "", "", ""], *["1", "1", "", "1"], found["`whole/available`"][-1]]
    assert found["`whole/available`"][-1] == "reference: a limit; reference: no time was left for it"
    assert found["**Quota**"][:2] == ["**3**", "**3**"]
    assert "**Topology**" not in found


def test_a_case_without_a_verdict_cannot_be_written() -> None:
    row = Row(2, {"engine": Counter(passed=2), "reference": Counter(passed=1)}, [])
    with pytest.raises(AssertionError):
        row.cells("suite")


def test_an_unexplained_difference_is_reported() -> None:
    case = Case("whole/available", {"id": "available/a"})
    assert fidelity.reason_of(case, Result("failed", "cpu: want 1, got 2"), {}, []) == "cpu: want 1, got 2"


def test_the_page_is_what_its_command_writes() -> None:
    assert fidelity.HEAD in written()
    before, _, after = written().partition("## What release")
    assert "## What release" + after == "\n".join([*fidelity.without_recordings(), ""]), (
        "run `python scripts/fidelity.py --without-recordings`"
    )
    rows = table(before)
    assert rows["**all**"]
    for name, cells in rows.items():
        if name not in ("suite", "---") and not set(name) <= {"-"}:
            n_cases, *counts = (int(cell.strip("*") or 0) for cell in cells[: 1 + len(SIDES) * len(VERDICTS)])
            for side in range(len(SIDES)):
                assert sum(counts[side * len(VERDICTS) : (side + 1) * len(VERDICTS)]) == n_cases, name


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded cases here")
def test_the_page_has_every_suite() -> None:
    recorded: set[Path] = {path for folder in ("whole", "scale") for path in (RECORDED / folder).glob("*.jsonl*")}
    names = {f"`{path.parent.name}/{path.name.split('.')[0]}`" for path in recorded}
    assert names
    assert names <= set(table(written()))


def test_without_recorded_cases_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = written()
    monkeypatch.setattr("sys.argv", ["fidelity.py", "--recorded", str(tmp_path)])
    assert fidelity.main() == 0
    assert "no recorded cases" in capsys.readouterr().out
    assert written() == before
