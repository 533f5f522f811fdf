"""Fixtures of the tests of scenario files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.scenarios import Scenario, read_scenario
from tests.regressions.scenarios import HEAD, JOB, Read


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads the text of a scenario, beside a file with a job."""
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")

    def read(text: str) -> Scenario:
        (tmp_path / "scenario.yaml").write_text(HEAD + text, encoding="utf-8")
        return read_scenario(tmp_path / "scenario.yaml")

    return read
