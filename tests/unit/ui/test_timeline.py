"""A run step by step: that of a scenario, or of a state that is played forward."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from kueuecore.errors import ManifestError
from kueuecore.scenarios import read_scenario
from kueuecore.ui.timeline import Timeline
from tests.unit.ui.pages import EXAMPLES, Page, served, source_at
from tests.unit.ui.test_state_pages import command, words

SCENARIO = EXAMPLES / "scenario" / "scenario.yaml"


@pytest.fixture(scope="module")
def run() -> Timeline:
    return Timeline.of_scenario(
        read_scenario(str(SCENARIO)), title="scenario.yaml", command="kueuecore simulate s.yaml"
    )


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(source_at(str(EXAMPLES / "two-teams"))) as page:
        yield page


def test_steps_say_usage_queues_and_what_has_happened(run: Timeline) -> None:
    first, last = run.at(0), run.at(10**6)
    assert (first.after, first.time) == ("0s", "2026-01-01T00:00:00Z")
    assert last.index == run.last
    assert [queue.usage for queue in last.queues] == ["0", "0"]
    moments = [run.at(index) for index in range(run.last + 1)]
    assert max(moment.pending for moment in moments) >= 3
    counts = {"Created": 0, "Admitted": 0, "Finished": 0, "Stopped": 0}
    for moment in moments:
        for kind, n in moment.happened:
            counts[kind] += n
    # As `kueuecore simulate` counts them: each job that is evicted is admitted again.
    assert (counts["Created"], counts["Finished"]) == (60, 60)
    assert counts["Admitted"] == 60 + counts["Stopped"]
    borrowed = next(moment for moment in moments for queue in moment.queues if queue.borrowed != "0")
    busy = next(queue for queue in borrowed.queues if queue.borrowed != "0")
    assert busy.within + busy.beyond == 1000
    assert busy.limit == busy.within


def test_a_scenario_has_its_timeline_and_nothing_else(run: Timeline) -> None:
    with served(run=run) as page:
        for path in ("/", "/timeline"):
            text = page.get(path, {"at": "3"}).text
            assert "step 4 of" in words(text)
            assert command(text) == ["kueuecore simulate s.yaml"]
            assert "Play forward" not in text
        assert page.get("/workloads").status == 404
        assert "step 1 of" in words(page.get("/timeline", {"at": "nonsense"}).text)


def test_a_fleet_has_no_timeline() -> None:
    with pytest.raises(ManifestError, match="this is a fleet; run it with kueuecore simulate"):
        Timeline.of_scenario(read_scenario(str(EXAMPLES / "multikueue" / "scenario.yaml")), title="", command="")


def test_a_state_is_played_forward_as_its_command_does(page: Page, tmp_path: Path) -> None:
    form = page.get("/timeline").text
    assert "What runs goes on for" in words(form)
    assert "step 1 of" not in words(form)
    text = page.get("/timeline", {"ask": "1", "runs": "1h", "waits": "2h", "until": "5h"}).text
    assert "4 created 4 admitted" in words(text) or "7 created 4 admitted" in words(text)
    (name,) = set(re.findall(r'name="run" value="(\w+)"', text))
    (last,) = re.findall(r'max="(\d+)"', text)
    end = words(page.get("/timeline", {"run": name, "at": last}).text)
    assert "5h00m00s after the start" in end
    assert "1 job waiting" in end
    # The command, in a folder of its own.
    script = command(text)[0].replace("kueuecore ", f"{sys.executable} -m kueuecore ") + " -o json -q"
    ran = subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    jobs = {job["workload"]: job for job in json.loads(ran.stdout)["jobs"]}
    assert jobs["job-benchmark-86330"]["waitSeconds"] == 3600


def test_what_is_wrong_stands_beside_its_field(page: Page) -> None:
    text = page.get("/timeline", {"ask": "1", "runs": "soon", "waits": "1h", "until": "-1"}).text
    assert re.search(r'id="runs-wrong"><li>[^<]*present.runs: [^<]*soon', text)
    assert re.search(r'id="until-wrong"><li>[^<]*until', text)
    assert 'id="waits-wrong"' not in text
    assert "This run is not kept any more: play it again." in page.get("/timeline", {"run": "gone", "at": "1"}).text
