"""What docs/scenarios.md shows is what the reader takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kueuecore.scenarios import read_scenario
from tests.regressions.scenarios import EXAMPLES, HEAD, JOB

PAGE = (EXAMPLES.parent / "docs/scenarios.md").read_text(encoding="utf-8")
BLOCKS = [
    pytest.param(found[1], id=f"line {PAGE.count(chr(10), 0, found.start()) + 2}")
    for found in re.finditer(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)
]
COHORT = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: all}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 1}]}]
"""
FLAVOR = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}\n"


@pytest.mark.parametrize("block", BLOCKS)
def test_every_block_is_a_scenario_or_a_part_of_one(block: str, tmp_path: Path) -> None:
    queues = (EXAMPLES / "scenario/queues.yaml").read_text(encoding="utf-8")
    files = {"job.yaml": JOB, "queues.yaml": queues + COHORT, "dump.yaml": queues, "more-queues.yaml": FLAVOR}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    part = yaml.safe_load(block)
    if "nodes" in part:
        block = "cluster:\n" + re.sub("^", "  ", block, flags=re.M)
    elif not part.keys() & {"cluster", "kind"}:
        block = f"cluster: {{objects: [queues.yaml]}}\n{block}"
    if block.count("cluster:") == 0:
        block += "cluster: {objects: [queues.yaml]}\n"
    (tmp_path / "scenario.yaml").write_text(block if "kind" in part else HEAD + block, encoding="utf-8")
    assert read_scenario(tmp_path / "scenario.yaml").work == () or "work" in part


def test_scenarios_md_has_yaml_blocks() -> None:
    assert len(BLOCKS) > 5


@pytest.mark.parametrize("span", re.findall(r"^\| `(\{[^`]*\})` \| (?:an?|the|these)\b", PAGE, re.M))
def test_every_random_span_of_the_table_can_be_written(span: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    (tmp_path / "jobs.csv").write_text("runtime\n5\n", encoding="utf-8")
    text = f"{HEAD}cluster: {{}}\nwork: [{{job: job.yaml, runs: {span}}}]\n"
    (tmp_path / "scenario.yaml").write_text(text, encoding="utf-8")
    assert read_scenario(tmp_path / "scenario.yaml").work[0].runs is not None
