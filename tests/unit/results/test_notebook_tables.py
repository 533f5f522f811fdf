"""What a notebook shows of outcomes, comparisons and sweeps, and `kueuecore.run`."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import kueuecore
from kueuecore import ManifestError
from kueuecore.results import Results
from kueuecore.scenarios import JobOutcome, JobOutcomes, parse_edit, parse_target, read_scenario, run_scenario
from kueuecore.studies import Axis, compare, grid_points, sweep
from kueuecore.times import SECOND_NS
from tests.html_page import Page

EXAMPLE = "examples/scenario/scenario.yaml"
FEW = ["work[0].count=3", "work[1].count=1"]
FLEET = "examples/multikueue/scenario.yaml"


def test_run_does_as_reading_and_running_do() -> None:
    outcome = kueuecore.run(Path(EXAMPLE), seed=3, edits=[FEW[0], parse_edit(FEW[1])], release="0.17")
    read = read_scenario(EXAMPLE, seed=3, edits=[*map(parse_edit, FEW)], release="0.17")
    assert outcome == run_scenario(read) == kueuecore.run(read)
    assert outcome.run is not None
    assert outcome.results == Results.of(outcome.run)
    assert outcome.results is outcome.results
    assert pickle.loads(pickle.dumps(outcome)) == outcome


def test_run_names_the_file_and_what_is_wrong() -> None:
    with pytest.raises(ManifestError, match=r"nope\.yaml: there is no such file"):
        kueuecore.run("nope.yaml")
    with pytest.raises(TypeError, match="scenario must be a path or a Scenario, not int"):
        kueuecore.run(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="the scenario has been read: pass seed"):
        kueuecore.run(read_scenario(EXAMPLE), seed=3)


@pytest.mark.parametrize(
    ("scenario", "remedy"),
    [
        ("examples/two-teams/queues.yaml", "name the objects in a scenario, at `cluster.objects`, or use `kueuecore.s"),
        ("examples/scenario", 'give its file alone: "examples/scenario/scenario.yaml"'),
        ("apiVersion: kueuecore/v1\nkind: Scenario\n", "write the scenario to a file, next to those that it names"),
    ],
)
def test_what_is_no_scenario_to_run_is_refused_in_terms_of_python(scenario: str, remedy: str) -> None:
    with pytest.raises(ManifestError) as caught:
        kueuecore.run(scenario)
    assert caught.value.remedy.startswith(remedy)


def test_a_job_table_has_what_the_outcomes_have() -> None:
    known = JobOutcome(work="w", job="Job/a", namespace="n", workload="job-a", created=0, admitted=2 * SECOND_NS)
    gone = replace(known, job="Job/b", workload="", admitted=None, has_failed=True, n_evictions=4, message="waits")
    table = JobOutcomes.of([known, gone]).table()
    assert table["job"].to_list() == ["Job/a", "Job/b"]
    assert table["workload"].to_list() == ["job-a", None]
    assert table["cluster"].to_list() == [None, None]
    assert table["wait_seconds"].to_list() == [2.0, None]
    assert table["failed"].to_list() == [False, True]
    assert table["evictions"].to_list() == [0, 4]
    assert table["message"].to_list() == [None, "waits"]
    assert table.texts(0, 2)[table.names.index("admitted")] == ["1970-01-01T00:00:02.000000000Z", ""]
    assert len(JobOutcomes.of([]).table()) == 0


def test_a_fleet_has_a_job_table_and_results_of_its_own() -> None:
    outcome = kueuecore.run(FLEET)
    table = outcome.jobs.table()
    assert table["cluster"].to_list() == [job.cluster or None for job in outcome.jobs]
    assert sum(table["copies"].to_list()) == outcome.all.n_copies > 0
    assert "<caption>waits by ClusterQueue</caption>" in outcome._repr_html_()
    assert outcome.fleet is not None
    assert outcome.fleet.jobs == table
    with pytest.raises(ValueError, match=r"for a fleet use outcome\.fleet"):
        _ = outcome.results
    assert kueuecore.run(EXAMPLE, edits=FEW).fleet is None


def test_an_outcome_is_shown_with_its_first_jobs_and_a_count_of_the_rest() -> None:
    outcome = kueuecore.run(EXAMPLE)
    page = outcome._repr_html_()
    assert page.startswith("<p>60 jobs; Complete after ")
    assert page.endswith("<p>40 more of 60 rows</p>")
    assert page.count("<tr>") == (1 + 3) + (1 + 20)
    Page(page)


def test_names_of_jobs_are_text_in_a_notebook() -> None:
    job = JobOutcome(work="<script>", job="Job/&", namespace="n", created=0, message="\x1b[2J")
    page = JobOutcomes.of([job])._repr_html_()
    assert "<td>&lt;script&gt;</td><td>Job/&amp;</td>" in page
    assert "\\x1b[2J" in page


def test_a_comparison_is_shown_with_the_numbers_of_the_command() -> None:
    a = read_scenario(EXAMPLE, edits=[*map(parse_edit, FEW)])
    b = read_scenario(EXAMPLE, edits=[*map(parse_edit, [*FEW, "cluster.cycle=30s"])])
    page = compare(a, b, seeds=range(2))._repr_html_()
    assert page.startswith("<p>2 seeds, 8 jobs: ")
    assert '<th scope="col">95% INTERVAL</th>' in page
    assert "<td>mean wait</td>" in page
    assert "<td>large</td><td>team-b</td><td>2</td>" in page


def test_a_sweep_is_shown_with_a_row_for_each_point() -> None:
    points = grid_points([Axis(parse_target("work[0].count"), (1, 2))])
    found = sweep(lambda edits: read_scenario(EXAMPLE, edits=[parse_edit(FEW[1]), *edits]), points)
    page = found._repr_html_()
    assert page.startswith("<p>2 points, 1 seed each</p>")
    assert "<tr><td>1</td>" in page
    assert "<tr><td>2</td>" in page
    assert "<p>VALUE: work[0].count</p>" in page
