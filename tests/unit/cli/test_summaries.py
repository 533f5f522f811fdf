"""`--summary` and `-o github`: what CI systems show of a run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode
from kueuecore.cli.markdown import code, details, fenced, markdown_table, more_rows, plain, report_summary
from tests.command import JOB, QUEUES, Ran

Command = Callable[..., Ran]
TEST = """\
apiVersion: kueuecore/v1
kind: PolicyTest
manifests: [in.yaml]
cases:
- name: two pods | fit
  submit: [{job: job.yaml}]
  expect: [{workload: team/train, admitted: %s}]
- name: nothing else
  submit: [{job: job.yaml}]
  expect: [{workload: team/train, preempted: false}]
"""
WRONG = QUEUES.replace("nominalQuota: 2", "nominalQuota: -2")
INVALID = (
    'ClusterQueue "cq": spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "-2": must be '
    "greater than or equal to 0"
)
UNUSED = QUEUES + "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}\n"


@pytest.fixture
def summary(tmp_path: Path) -> Callable[[], str]:
    return lambda: (tmp_path / "summary.md").read_text("utf-8")


def write_test(admitted: str) -> None:
    Path("job.yaml").write_text(JOB % ("train", 2), encoding="utf-8")
    Path("a_test.yaml").write_text(TEST % admitted, encoding="utf-8")


def test_findings_are_summarised_the_worst_first(any_command: Command, summary: Callable[[], str]) -> None:
    ran = any_command("check", "in.yaml", "--summary", "summary.md", text=UNUSED + JOB % ("train", 9))
    assert ran.code == ExitCode.FOUND
    lines = summary().splitlines()
    assert lines[:4] == [
        "### kueuecore check: 1 warning, 1 note",
        "",
        "| Severity | Finding | Object | Where | What is wrong, and what to do |",
        "| --- | --- | --- | --- | --- |",
    ]
    assert lines[4] == (
        "| warning | KC101 unused-flavor | `ResourceFlavor/spot` | `in.yaml:18` | metadata.name: no ClusterQueue has "
        "quota in it, so no workload gets it; add it to the resourceGroups of a ClusterQueue, or delete it |"
    )
    assert [line.split(" | ")[0] for line in lines[5:]] == ["| note", ""]


def test_no_finding_is_a_summary_too(any_command: Command, summary: Callable[[], str]) -> None:
    ran = any_command("check", "in.yaml", "--select", "KC1", "--summary", "summary.md", text=QUEUES)
    assert (ran.code, ran.out, summary()) == (0, "nothing found\n", "### kueuecore check: nothing found\n\n")


def test_many_findings_are_cut(any_command: Command, summary: Callable[[], str]) -> None:
    flavor = "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f%d}}\n"
    text = QUEUES + "".join(flavor % n for n in range(60))
    any_command("check", "in.yaml", "--select", "KC101", "--summary", "summary.md", text=text)
    assert summary().count("| warning |") == 50
    assert summary().endswith("\n\nand 10 more\n\n")


def test_failed_policy_tests_are_annotated_and_summarised(any_command: Command, summary: Callable[[], str]) -> None:
    write_test("false")
    ran = any_command("test", "a_test.yaml", "-o", "github", "--summary", "summary.md", text=QUEUES)
    told = "team/train%0A  expected: is not admitted%0A  got:      admitted in cq"
    assert ran.code == ExitCode.FOUND
    assert ran.out.startswith(f"::error file=a_test.yaml,line=7,title=two pods | fit::{told}")
    assert summary() == (
        "### kueuecore test: 1 failed, 1 passed\n\n"
        "**two pods \\| fit** in `a_test.yaml`\n\n"
        "```text\n"
        "a_test.yaml:7: team/train\n  expected: is not admitted\n  got:      admitted in cq with cpu: default\n"
        "```\n\n"
        "<details><summary>1 passed</summary>\n\n- a\\_test.yaml::nothing else\n\n</details>\n\n"
    )


def test_passed_policy_tests_annotate_nothing(any_command: Command, summary: Callable[[], str]) -> None:
    write_test("true")
    ran = any_command("test", "a_test.yaml", "-o", "github", "--summary", "summary.md", text=QUEUES)
    assert ran == (ExitCode.OK, "", "")
    assert summary().startswith("### kueuecore test: 2 passed\n\n<details>")


def test_commands_append_to_one_summary(any_command: Command, summary: Callable[[], str]) -> None:
    write_test("true")
    any_command("check", "in.yaml", "--select", "KC1", "--summary", "summary.md", text=QUEUES)
    any_command("test", "a_test.yaml", "--summary", "summary.md", text=QUEUES)
    assert re.findall("^### (.*)", summary(), re.M) == ["kueuecore check: nothing found", "kueuecore test: 2 passed"]


@pytest.mark.parametrize("command", ["check", "test"])
def test_wrong_input_is_annotated_and_summarised(
    any_command: Command, summary: Callable[[], str], command: str
) -> None:
    write_test("true")
    path = "in.yaml" if command == "check" else "a_test.yaml"
    ran = any_command(command, path, "-o", "github", "--summary", "summary.md", text=WRONG)
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.out == f"::error file=in.yaml,line=11,title=kueuecore {command}::{INVALID}\n"
    assert "1 problem, nothing was decided" in ran.err
    assert summary() == (
        f"### kueuecore {command}: 1 problem, nothing was decided\n\n"
        f"```text\nin.yaml:11 (document 2): {INVALID}\n```\n\n"
    )


def test_an_upgrade_is_summarised_by_its_report(any_command: Command, summary: Callable[[], str]) -> None:
    options = ("upgrade", "in.yaml", "--from", "0.18", "--to", "0.18.1", "-o", "github", "--summary", "summary.md")
    same = "Nothing changes: Kueue v0.18.6 and Kueue v0.18.1 decide the same about 1 workload"
    ran = any_command(*options, "-q", text=QUEUES + JOB % ("train", 1))
    assert ran.out == f"::notice title=kueuecore upgrade::{same}\n"
    assert summary() == f"### kueuecore upgrade: {same}\n\n"
    other = "Kueue v0.18.6 -> v0.19.2: the same decisions about 1 workload"
    any_command(
        "upgrade",
        "in.yaml",
        "--from",
        "0.18",
        "--to",
        "0.19",
        "--summary",
        "summary.md",
        text=QUEUES + JOB % ("train", 1),
    )
    assert f"### kueuecore upgrade: {plain(other)}\n\n```text\nDEFAULT " in summary()


@pytest.mark.parametrize("place", [".", "absent/summary.md", "in.yaml/x"])
@pytest.mark.parametrize("command", ["check", "test"])
def test_a_summary_that_cannot_be_written_is_refused_before_the_run(
    any_command: Command, command: str, place: str
) -> None:
    write_test("true")
    path = "in.yaml" if command == "check" else "a_test.yaml"
    ran = any_command(command, path, "--summary", place, text=QUEUES)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert ran.err.startswith(f"{place}: --summary: cannot be written: ")
    assert "; name a file in a writable folder" in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said_after_the_findings(any_command: Command) -> None:
    ran = any_command("check", "in.yaml", "--select", "KC1", "--summary", "/dev/full", text=QUEUES)
    assert (ran.code, ran.out) == (ExitCode.UNWRITABLE, "nothing found\n")
    assert ran.err == "kueuecore: cannot write /dev/full: No space left on device\n"


HOSTILE = "a|b `c` <img src=x onerror=alert(1)> [link](http://x) *bold* ``` @team $x$ ~~s~~ \x1b[31m\n## no"


def test_any_text_stays_text() -> None:
    for written in (plain(HOSTILE), code(HOSTILE)):
        assert "\n" not in written
        assert "\x1b" not in written
        # Every character with a meaning is escaped, so nothing is left that starts a tag, a link, code or a column.
        assert re.findall(r"(?<!\\)[|`<>\[\]*@$~]", written) == []


def test_a_block_is_not_ended_by_what_is_in_it() -> None:
    block = fenced("a\n```\n## b\n`````\nc")
    assert block.splitlines()[0] == "``````text"
    assert block.splitlines()[-1] == "``````"


def test_the_parts_of_a_summary() -> None:
    assert markdown_table(["A", "B"], [["1", "2"]]) == "| A | B |\n| --- | --- |\n| 1 | 2 |"
    assert details("<b> & c", "text") == "<details><summary>&lt;b> &amp; c</summary>\n\ntext\n\n</details>"
    assert report_summary("kueuecore x: 1 > 0", "text\n") == "### kueuecore x: 1 \\> 0\n\n```text\ntext\n```"
    assert (more_rows(50), more_rows(51)) == ("", "and 1 more")
