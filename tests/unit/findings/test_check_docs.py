"""docs/check.md lists every finding and shows what is printed; the examples have the findings that they should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kueuecore import read_manifests
from kueuecore.cli import ExitCode, main
from kueuecore.findings import RULES, check

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
# The findings of each example; of `multikueue` those of one cluster, and no notes about nodes that nobody gave.
EXPECTED: dict[str, list[str]] = {
    "controller": ["inactive-check"],
    "eta": [],
    "experiments-month": [],
    "fair-sharing-month": [],
    "how-much-quota": [],
    "kinds-of-jobs": ["unmanaged-job"],
    "lost-rack": ["nodes-not-given"],
    "multikueue/manager.yaml": ["inactive-check"],
    "multikueue/east.yaml": [],
    "multikueue-regions/manager.yaml": ["inactive-check"],
    "multikueue-regions/region.yaml": [],
    "queued-provisioning": [],
    "quota-repository": [],
    "rendered": [],
    "scenario": [],
    "taking-back": ["starvation"],
    "topology": ["domain-too-small"],
    "two-flavors": [],
    "two-teams": ["never-fits"],
    "upgrade": [
        "never-fits",
        "never-fits",
        "never-fits",
        "unmatched-node-labels",
        "unmatched-node-labels",
        "never-fits",
        "never-fits",
        "unmatched-node-labels",
        "unmatched-node-labels",
    ],
    "what-happened": ["starvation"],
    "what-if": ["unshared-flavor", "starvation"],
    "without-kubernetes": [],
    "working-week": [],
    "zero-quota": [],
}


def test_the_table_has_every_finding() -> None:
    rows = re.findall(r"^\| (KC\d+) \| `([\w-]+)` \| (\w+) \| (.*) \|$", PAGE, re.M)
    assert rows == [(rule.code, rule.name, str(rule.severity), rule.summary) for rule in RULES]


def test_the_page_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    world = next(found for found in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S) if "kind: Workload" in found)
    Path("starvation.yaml").write_text(world, encoding="utf-8")
    shown = re.findall(r"^\$ kueuecore (.*)\n((?:(?!\$ |```).*\n)*)", PAGE, re.M)
    assert len(shown) == 3
    for arguments, expected in shown:
        assert main(arguments.split()) in (ExitCode.OK, ExitCode.FOUND)
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize("example", EXPECTED)
def test_an_example_has_the_findings_that_it_should(example: str) -> None:
    assert [finding.name for finding in check(read_manifests(ROOT / "examples" / example))] == EXPECTED[example]


def test_every_example_is_checked() -> None:
    """Those without queues aside, and `mistakes`, whose README shows its findings."""
    folders = {
        path.relative_to(ROOT / "examples").parts[0]
        for path in (ROOT / "examples").rglob("*.yaml")
        if "kind: ClusterQueue" in path.read_text("utf-8")
    }
    assert folders - {"mistakes"} == {name.partition("/")[0] for name in EXPECTED}
