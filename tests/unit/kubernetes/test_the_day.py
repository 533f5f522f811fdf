"""`make day`, twice: two processes of `kueuecore serve`, killed three times, come to the same in the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_two_days_end_with_the_same_admissions_evictions_and_statuses(tmp_path: Path) -> None:
    days = [
        subprocess.Popen(
            [sys.executable, "-m", "scripts.day", "--output", tmp_path / f"{number}.json"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    pages = [day.communicate(timeout=400)[0] for day in days]
    assert [day.returncode for day in days] == [0, 0], pages
    one, other = (json.loads((tmp_path / f"{number}.json").read_text()) for number in range(2))
    assert one["jobs"] == other["jobs"]
    assert one["statuses"] == other["statuses"]
    # It was a day worth its name.
    stories: dict[str, list[str]] = one["jobs"]
    assert len(stories) == 60
    assert all(story[-1] == "finished" for story in stories.values())
    assert sum("evicted Preempted" in story for story in stories.values()) > 3
    assert sum(sum(entry.startswith("admitted") for entry in story) > 1 for story in stories.values()) > 3
    for page in pages:
        assert page.count("killed") == 3
        assert "node gpu-1 is lost" in page
    assert gpu_jobs_avoid(one["statuses"], "gpu-1")


def gpu_jobs_avoid(statuses: dict[str, Any], node: str) -> bool:
    """No Workload stands on a node that it has lost."""
    found = [status for name, status in statuses.items() if name.startswith("Workload")]
    return not any(node in item.get("unhealthyNodes", ()) for item in found)
