"""What each kind of jobs has to have beside its `Integration`; a new kind learns here what it lacks."""

from __future__ import annotations

import json
import re
from pathlib import Path

from kueuecore import Configuration
from kueuecore.jobs import INTEGRATIONS
from kueuecore.jobs.pod_group import POD_GROUP
from tests.jobs import ALL_KINDS

KINDS = {integration.kind for integration in INTEGRATIONS.values()} - {POD_GROUP.kind}


def test_tests_have_a_smallest_job_of_each_kind() -> None:
    assert KINDS - ALL_KINDS.keys() == set(), "add it to MORE_KINDS in tests/jobs.py"


def test_a_configuration_may_enable_each_kind() -> None:
    frameworks = sorted({integration.framework for integration in INTEGRATIONS.values()})
    file = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": frameworks},
    }
    Configuration.parse(json.dumps(file))


def test_the_page_on_jobs_has_each_kind() -> None:
    page = Path("docs/jobs.md").read_text("utf-8")
    words = {
        word for line in page.splitlines() if line.startswith("| ") for word in re.findall(r"\w+", line.split("|")[1])
    }
    assert KINDS - words == set(), "add a row to docs/jobs.md"
