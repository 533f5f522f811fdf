"""The page with the pictures of a run."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kueuecore import simulate
from kueuecore.cli import ExitCode, main
from kueuecore.report import Report
from kueuecore.report.figure import COLORS, FEW_AND_MANY
from kueuecore.scenarios import ScenarioOutcome, parse_edit, read_scenario, run_scenario
from tests.html_page import Page, contrast, rows_of

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

EXAMPLE = "examples/scenario/scenario.yaml"
CSS = Path(__file__).parents[3] / "python/kueuecore/report/page.css"


@pytest.fixture(scope="module")
def outcome() -> ScenarioOutcome:
    return run_scenario(read_scenario(EXAMPLE))


@cache
def page_of(outcome: ScenarioOutcome, title: str = "A title") -> str:
    assert outcome.run is not None
    return Report(outcome.run, title=title).html


def test_the_page_is_whole_needs_no_network_and_runs_nothing(outcome: ScenarioOutcome) -> None:
    text = page_of(outcome)
    page = Page(text)
    assert page.headings == ["A title", "Usage of default/cpu", "Waiting jobs", "Waits", "Jobs", "Cohorts"]
    assert not page.tags & {"script", "link", "iframe", "img", "object"}
    assert set(re.findall(r"https?://[^\"'\s<]*", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "default-src 'none'" in text
    assert len(page.ids) == len(set(page.ids))
    assert set(page.refers) <= set(page.ids)
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(picture)


def test_names_are_text_whatever_is_in_them(outcome: ScenarioOutcome) -> None:
    text = page_of(outcome, "<script>alert('x')</script>")
    assert "script" not in Page(text).tags
    assert "&lt;script&gt;" in text


def test_words_and_tables_say_what_the_pictures_show(outcome: ScenarioOutcome) -> None:
    text, run = page_of(outcome), outcome.run
    assert run is not None
    n = len(run.preemption_table)
    assert n == 13
    assert f"60 jobs, 3 of them evicted; {n} preemptions." in text
    jobs = rows_of(text, "Jobs")
    assert len(jobs) == n
    assert all(gave_way.startswith("team-b/") and to.startswith("team-a/") for gave_way, to, _ in jobs)
    (picture,) = re.findall(r'aria-label="Jobs: .*?</svg>', text, re.DOTALL)
    # A triangle for each arrow.
    assert len(re.findall(r'aria-roledescription="point"', picture)) == n
    waits = {row[0]: row[1:] for row in rows_of(text, "Waits")}
    assert waits["team-a"][0] == "50"
    assert waits["team-b"][0] == "10"
    # 4 of 8 CPUs is its own.
    usage = {row[0]: row[1:] for row in rows_of(text, "Usage of default/cpu")}
    assert usage["team-b"][1:] == ["6", "2"]


def test_the_tree_has_cohorts_with_what_is_below_them(outcome: ScenarioOutcome) -> None:
    text = page_of(outcome)
    tree = text[text.index('<h2 id="tree">') :]
    assert re.search(r"<strong>all</strong>.*<ul>.*<strong>team-a</strong>.*<strong>team-b</strong>", tree, re.DOTALL)
    assert "default/cpu: quota 4, " in tree


def test_the_same_run_gives_the_same_bytes_in_every_process(outcome: ScenarioOutcome) -> None:
    program = (
        "import sys\nfrom kueuecore.report import Report\nfrom kueuecore.scenarios import read_scenario, run_scenario\n"
        f"sys.stdout.write(Report(run_scenario(read_scenario({EXAMPLE!r})).run, title='A title').html)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert ran.stdout == page_of(outcome)


def test_many_jobs_are_counted_and_the_page_says_so() -> None:
    edits = [parse_edit("work[0].count=2500"), parse_edit("work[0].every=1")]
    many = run_scenario(read_scenario(EXAMPLE, edits=edits))
    text = page_of(many)
    assert "With more than 2,000 jobs, the chart shows how many run at once instead of a bar for each." in text
    assert len(text) < 1_000_000
    assert sum(int(row[1]) for row in rows_of(text, "Jobs")) == int(many.jobs.numbers["admissions"].sum())


def test_racks_and_lost_nodes_are_there_where_there_is_topology() -> None:
    placed = run_scenario(read_scenario("examples/lost-rack/scenario.yaml"))
    assert placed.run is not None
    text = page_of(placed)
    assert "Racks and nodes" in Page(text).headings
    lost = {int(entry) for entry in placed.run.node_table["node"]}
    assert re.search(rf"{len(lost)} nodes? (was|were) lost, the first after ", text)
    (picture,) = re.findall(r'aria-label="Racks and nodes: .*?</svg>', text, re.DOTALL)
    assert "#d0312d" in picture
    pods = sum(int(row[1]) for row in rows_of(text, "Racks and nodes"))
    assert pods == int(placed.run.placement_table["pods"].sum())


def test_a_run_without_jobs_has_a_page_without_pictures() -> None:
    empty = run_scenario(read_scenario(EXAMPLE, edits=[parse_edit("work=[]")]))
    page = Page(page_of(empty))
    assert page.headings == ["A title", "Cohorts"]


def test_a_notebook_shows_it_in_a_frame(outcome: ScenarioOutcome) -> None:
    assert outcome.run is not None
    shown = Report(outcome.run, title="A title")._repr_html_()
    assert shown.startswith('<iframe title="A title" ')
    assert "<svg" not in shown, "the page is escaped"


@pytest.mark.parametrize("theme", [0, 1])
def test_colours_have_the_contrast_of_wcag_aa(theme: int) -> None:
    css = CSS.read_text(encoding="utf-8")
    block = re.findall(r":root \{(.*?)\}", css)[theme]
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
    for text in ("text", "soft", "focus"):
        for ground in ("back", "panel"):
            assert contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
    for color in (*COLORS, *FEW_AND_MANY):
        assert contrast(color, colors["back"]) >= 3, color


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "out.html"
    assert main(["simulate", EXAMPLE, "--report", str(path)]) == ExitCode.OK
    assert f"note: wrote {path}" in capsys.readouterr().err
    assert Page(path.read_text(encoding="utf-8")).headings[0] == EXAMPLE


def test_the_command_says_where_it_cannot_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", EXAMPLE, "--report", str(tmp_path / "no" / "out.html")]) == ExitCode.BAD_INPUT
    assert "--report: cannot be written: No such file or directory" in capsys.readouterr().err


def test_without_the_extra_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    path = tmp_path / "out.html"
    assert main(["simulate", EXAMPLE, "--report", str(path)]) == ExitCode.BAD_INPUT
    assert "a report needs the extra `report`; pip install 'kueuecore[report]'" in capsys.readouterr().err
    assert not path.exists()


def test_deep_cohorts_are_nested_lists() -> None:
    group = """[{coveredResources: [cpu], flavors: [{name: main, resources: [{name: cpu, nominalQuota: 1}]}]}]"""
    kueue = "apiVersion: kueue.x-k8s.io/v1beta2"
    texts = [f"{{{kueue}, kind: ResourceFlavor, metadata: {{name: main}}}}"]
    for n in range(1500):
        parent = f"parentName: c{n - 1}, " if n else ""
        texts.append(f"{{{kueue}, kind: Cohort, metadata: {{name: c{n}}}, spec: {{{parent}resourceGroups: {group}}}}}")
    page = Report(simulate("\n---\n".join(texts), now="2026-01-01T00:00:00Z")).html
    Page(page)
    tree = page[page.index('id="tree"') :]
    assert tree.count("<li>") == tree.count("</li>") == 1500
    assert tree.count("<ul>") == tree.count("</ul>") == 1500
    assert 0 < tree.index("<strong>c0<") < tree.index("<strong>c9<") < tree.index("<strong>c1499<")


def test_a_few_jobs_with_many_runs_are_counted_too(monkeypatch: pytest.MonkeyPatch, outcome: ScenarioOutcome) -> None:
    monkeypatch.setattr("kueuecore.report.gantt._MAX_SPANS", 100)
    assert "With more than 100 waits and runs, the chart shows how many run at once" in page_of.__wrapped__(outcome)
