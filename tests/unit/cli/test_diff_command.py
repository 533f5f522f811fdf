"""`kueuecore diff`: the decisions that a change of manifests changes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main
from kueuecore.dumps import decided
from kueuecore.steady_state import Ending, Settled
from tests.command import JOB, QUEUES, Ran
from tests.git_repository import Repository

Command = Callable[..., Ran]
CONFIGURATION = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
WORKLOAD = "team/job-train-e5b0e"
LESS = QUEUES.replace("nominalQuota: 2", "nominalQuota: 1")
BAD = QUEUES.replace("nominalQuota: 2", "nominalQuota: -2")
WAITS = (
    "Pending: couldn't assign flavors to pod set main: insufficient quota for cpu in flavor default, previously "
    "considered podsets requests (0) + current podset request (2) > maximum capacity (1)"
)
ALL = ("manifests", "--work", "work", "--against", "HEAD")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no hook of Git had started the tests."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository with queues and a job of two pods; the current directory is its root."""
    found = Repository(tmp_path / "quotas").init()
    found.write("manifests/queues.yaml", QUEUES)
    found.write("work/job.yaml", JOB % ("train", 2))
    found.commit()
    monkeypatch.chdir(found.folder)
    return found


@pytest.fixture
def diff(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> Ran:
        return Ran(main(["diff", *arguments]), *capsys.readouterr())

    return run


def test_what_is_not_committed_is_compared_with_the_last_commit(repository: Repository, diff: Command) -> None:
    repository.write("manifests/queues.yaml", LESS)
    ran = diff(*ALL)
    assert ran.out.splitlines() == [
        "decisions about 1 of 1 workload change against HEAD",
        "",
        "WORKLOAD              BEFORE                    AFTER",
        f"{WORKLOAD}  Admitted in cq (default)  {WAITS}",
    ]
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert diff(*ALL, "--fail-on-difference").code == ExitCode.PENDING


def test_nothing_changes(repository: Repository, diff: Command) -> None:
    ran = diff(*ALL, "--fail-on-difference")
    assert ran == (ExitCode.OK, "decisions about 0 of 1 workload change against HEAD\n", "")


def test_the_repository_stays_as_it_is(repository: Repository, diff: Command) -> None:
    repository.write("manifests/queues.yaml", LESS)
    repository.git("add", "manifests")
    repository.write(".git/hooks/post-index-change", "#!/bin/sh\ntouch ran\n").chmod(0o755)
    repository.write("untracked", "")
    before = repository.git("status", "--porcelain"), (repository.folder / ".git/index").read_bytes()
    (repository.folder / "ran").unlink(missing_ok=True)
    assert diff(*ALL).code == ExitCode.OK
    assert not (repository.folder / "ran").exists()
    assert (repository.folder / ".git/index").read_bytes() == before[1]
    assert repository.git("worktree", "list").count("\n") == 0


@pytest.mark.parametrize("revision", ["main", "v1", "main~0", "HASH"])
def test_any_name_of_a_commit_will_do(repository: Repository, diff: Command, revision: str) -> None:
    repository.git("tag", "v1")
    commit = repository.git("rev-parse", "HEAD")
    repository.write("manifests/queues.yaml", LESS)
    revision = commit if revision == "HASH" else revision
    ran = diff("manifests", "--work", "work", "--against", revision)
    named = commit[:10] if revision == commit else revision
    assert ran.out.startswith(f"decisions about 1 of 1 workload change against {named}\n")


def test_paths_are_found_from_any_folder(
    repository: Repository, diff: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("manifests/queues.yaml", LESS)
    monkeypatch.chdir(repository.folder / "work")
    assert "1 of 1 workload change" in diff("../manifests", "--work", ".", "--against", "HEAD").out
    assert "1 of 1 workload change" in diff("..", "-R", "--against", "HEAD").out
    absolute = str(repository.folder / "manifests")
    assert "1 of 1 workload change" in diff(absolute, "--work", ".", "--against", "HEAD").out


@pytest.mark.parametrize("name", ["my quotas; touch x", "-R", "ünïcode", "$(touch x)", ":(exclude)*", "a*b", "\nlines"])
def test_any_name_of_a_file_will_do(repository: Repository, diff: Command, name: str) -> None:
    folder = f"./{name}"
    repository.write(f"{name}/queues.yaml", QUEUES)
    # `a*b` is a name, and no pattern.
    repository.write("aXb/queues.yaml", BAD)
    repository.commit()
    repository.write(f"{name}/queues.yaml", LESS)
    ran = diff(folder, "--work", "work", "--against", "HEAD")
    assert ("1 of 1 workload change" in ran.out, ran.err) == (True, "")
    assert not [*repository.folder.rglob("x")]


def test_a_link_leads_where_it_led(repository: Repository, diff: Command) -> None:
    repository.write("common/queues.yaml", QUEUES)
    (repository.folder / "manifests/queues.yaml").unlink()
    (repository.folder / "manifests/queues.yaml").symlink_to("../common/queues.yaml")
    repository.commit()
    repository.write("common/queues.yaml", LESS)
    assert "1 of 1 workload change" in diff(*ALL).out


def test_before_may_be_other_files(repository: Repository, diff: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.write("new/queues.yaml", LESS)
    monkeypatch.setenv("PATH", "")
    ran = diff("new", "--before", "manifests", "--work", "work")
    assert ran.out.startswith("decisions about 1 of 1 workload change against manifests\n")


def test_the_configuration_is_compared_too(repository: Repository, diff: Command) -> None:
    off = f"{CONFIGURATION}integrations: {{frameworks: [pod]}}\n"
    repository.write("kueue.yaml", CONFIGURATION + "integrations: {frameworks: [batch/job]}\n")
    repository.commit()
    file = repository.write("kueue.yaml", off)
    ran = diff(*ALL, "--config", "kueue.yaml", "-q")
    assert f"{WORKLOAD}  Admitted in cq (default)  not there" in ran.out
    # One outside the repository is the same on both sides.
    elsewhere = repository.folder.parent / "kueue.yaml"
    file.rename(elsewhere)
    assert "0 of 0 workloads" in diff(*ALL, "--config", str(elsewhere), "-q").out


def test_what_a_commit_lacks_is_said(repository: Repository, diff: Command) -> None:
    repository.write(
        "more/flavor.yaml", "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: x}}"
    )
    repository.write("kueue.yaml", CONFIGURATION)
    ran = diff("more", *ALL, "--config", "kueue.yaml")
    assert ran.err.splitlines() == [
        "note: HEAD has no more",
        "note: HEAD has no kueue.yaml, so Kueue's own Configuration is used for it",
    ]
    ran = diff("more", "--work", "work", "--work", "manifests", "--against", "HEAD")
    assert ran.out == "decisions about 0 of 1 workload change against HEAD\n"


def test_objects_come_and_go(repository: Repository, diff: Command) -> None:
    repository.write("manifests/more.yaml", QUEUES.replace("name: cq}\nspec", "name: other}\nspec"))
    ran = diff("manifests", "--against", "HEAD")
    assert ran.out.splitlines()[-3:] == [
        "ClusterQueue/other  not there  Active: Can admit new workloads",
        "",
        "no workload is given, so only ClusterQueues are compared; name jobs with --work",
    ]


def test_the_work_may_be_a_dump(
    repository: Repository, diff: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its queues give way to those of the manifests, and its running workloads keep their quota."""
    assert main(["run", "manifests", "work", "-o", "yaml", "-q"]) == ExitCode.OK
    dump = tmp_path / "dump.yaml"
    dump.write_text(capsys.readouterr().out, encoding="utf-8")
    more = repository.write("more.yaml", JOB % ("other", 2))
    work = ("--work", str(dump), "--work", str(more), "--against", "HEAD", "-q")
    repository.write("manifests/queues.yaml", QUEUES.replace("nominalQuota: 2", "nominalQuota: 4"))
    assert diff("manifests", *work).out.splitlines()[-1].split("  ")[1:] == ["Pending", "Admitted in cq (default)"]
    # Nobody loses quota, because nobody needs it.
    repository.write("manifests/queues.yaml", LESS)
    assert diff("manifests", *work).out.startswith("decisions about 0 of 2 workloads change")


def test_uids_are_no_difference(repository: Repository, diff: Command) -> None:
    """Another object in front moves the UIDs of those behind it, which Kueue's messages name."""
    state = QUEUES.replace(
        "namespaceSelector: {}\n", "namespaceSelector: {}\n  preemption: {withinClusterQueue: LowerPriority}\n"
    )
    low = JOB % ("low", 2) + "      priorityClassName: low\n"
    high = JOB % ("high", 2) + "      priorityClassName: high\n"
    classes = "---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d}\n"
    holding = classes % ("low", 1) + classes % ("high", 2) + low
    repository.write("manifests/queues.yaml", state)
    repository.write("work/job.yaml", holding + high)
    repository.commit()
    before = diff(*ALL, "-o", "json")
    repository.write("manifests/a.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: more}}")
    after = json.loads(diff(*ALL, "-o", "json").out)
    assert json.loads(before.out)["texts"] == after["texts"] == []


def test_a_broken_file_of_before_can_be_mended(repository: Repository, diff: Command, tmp_path: Path) -> None:
    good = (repository.folder / "manifests/queues.yaml").read_text("utf-8")
    repository.write("manifests/queues.yaml", BAD)
    repository.write("manifests/more.yaml", "kind: [\n")
    repository.write("kueue.yaml", f"{CONFIGURATION}no: such\n")
    repository.commit()
    repository.write("manifests/queues.yaml", good)
    (repository.folder / "manifests/more.yaml").unlink()
    repository.write("kueue.yaml", CONFIGURATION)
    summary = tmp_path / "summary.md"
    ran = diff(*ALL, "--config", "kueue.yaml", "--summary", str(summary))
    assert f"{WORKLOAD}  Pending    Admitted in cq (default)" in ran.out
    assert ran.out.endswith("\nHEAD has 3 problems: it is compared without the objects and files that have them\n")
    assert [line.partition(" (")[0] for line in ran.err.splitlines() if line.startswith("warning")] == [
        "warning: HEAD:manifests/more.yaml:2:1",
        "warning: HEAD:kueue.yaml:1",
        "warning: HEAD:manifests/queues.yaml:11",
    ]
    assert "HEAD has 3 problems" in summary.read_text("utf-8")
    assert ran.code == ExitCode.OK


def test_what_is_wrong_now_is_an_error(repository: Repository, diff: Command) -> None:
    repository.write("manifests/queues.yaml", BAD)
    ran = diff(*ALL, "-o", "github")
    problem = (
        'ClusterQueue "cq": spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "-2": must be '
        "greater than or equal to 0"
    )
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.out == f"::error file=manifests/queues.yaml,line=11,title=kueuecore diff::{problem}\n"


@pytest.mark.parametrize("revision", ["nowhere", "", "--help", "-x", "HEAD:manifests", "main\nmain", "a b", "@{-9}"])
def test_a_commit_that_is_not_there(repository: Repository, diff: Command, revision: str) -> None:
    ran = diff("manifests", f"--against={revision}")
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert ran.err.startswith("--against: there is no commit ")
    assert "fetch it first if the clone is shallow" in ran.err


def test_files_of_other_folders_have_no_commit(repository: Repository, diff: Command, tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    ran = diff("../queues.yaml", "--against", "HEAD")
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.err.startswith("../queues.yaml: only files of the repository have an older state; ")


def test_a_folder_that_is_no_repository(diff: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    Path("queues.yaml").write_text(QUEUES, encoding="utf-8")
    ran = diff("queues.yaml", "--against", "HEAD")
    assert ran.err.startswith("--against: git rev-parse: fatal: not a git repository")
    assert ran.code == ExitCode.BAD_INPUT
    monkeypatch.setenv("PATH", "")
    assert diff("queues.yaml", "--against", "HEAD").err.startswith("--against: there is no git on PATH; install Git")


def test_json_has_everything(repository: Repository, diff: Command) -> None:
    repository.write("manifests/queues.yaml", LESS)
    document: Any = json.loads(diff(*ALL, "-o", "json").out)
    (difference,) = document.pop("differences")
    assert {name: document[name] for name in ("against", "differs", "workloads", "changed", "texts", "leftOut")} == {
        "against": "HEAD",
        "differs": True,
        "workloads": 1,
        "changed": 1,
        "texts": [],
        "leftOut": [],
    }
    assert document["endings"] == {"before": "Settled", "after": "Settled"}
    assert (difference["key"], difference["before"]["status"], difference["after"]["status"]) == (
        WORKLOAD,
        "Admitted",
        "Pending",
    )


def test_a_pull_request_gets_a_notice_and_a_summary(repository: Repository, diff: Command, tmp_path: Path) -> None:
    repository.write("manifests/queues.yaml", LESS)
    summary = tmp_path / "summary.md"
    summary.write_text("# before\n\n", encoding="utf-8")
    ran = diff(*ALL, "-o", "github", "--summary", str(summary))
    assert ran.out == (
        "::notice title=kueuecore diff::decisions about 1 of 1 workload change against HEAD%0A"
        f"{WORKLOAD}: Admitted in cq (default) -> {WAITS}\n"
    )
    assert summary.read_text("utf-8") == (
        "# before\n\n"
        "### kueuecore diff: decisions about 1 of 1 workload change\n\n"
        "Compared with `HEAD`.\n\n"
        "| Workload | Before | After |\n"
        "| --- | --- | --- |\n"
        f"| `{WORKLOAD}` | Admitted in cq (default) | {WAITS.replace('>', chr(92) + '>')} |\n\n"
    )


def test_only_the_first_of_many_are_shown(repository: Repository, diff: Command, tmp_path: Path) -> None:
    repository.write("work/job.yaml", "".join(JOB % (f"job-{n:03}", 2) for n in range(60)))
    repository.write("manifests/queues.yaml", QUEUES.replace("nominalQuota: 2", "nominalQuota: 120"))
    summary = tmp_path / "summary.md"
    ran = diff(*ALL, "--summary", str(summary))
    assert ran.out.count("job-job-") == 20
    assert ran.out.endswith("\nand 39 more; -o wide shows all\n")
    assert summary.read_text("utf-8").count("| `team/job-job-") == 50
    assert summary.read_text("utf-8").endswith("\nand 9 more\n\n")
    assert diff(*ALL, "-o", "wide").out.count("team/job-job-") == 59


def test_text_of_messages_is_shown_wide(repository: Repository, diff: Command) -> None:
    repository.write("work/job.yaml", JOB % ("train", 9))
    repository.write("manifests/queues.yaml", LESS)
    assert diff(*ALL).out == (
        "decisions about 0 of 1 workload change against HEAD\n\n1 more has only another reason or message\n"
    )
    line = diff(*ALL, "-o", "wide").out.splitlines()[-1]
    assert "maximum capacity (2)" in line
    assert line.endswith("maximum capacity (1)")


def test_a_state_that_never_settles_has_its_own_exit_code(
    repository: Repository, diff: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write("manifests/queues.yaml", LESS)
    endings = iter([Ending.REPEATING, Ending.SETTLED])  # after, before
    monkeypatch.setattr(decided, "settle", lambda *_, **__: Settled(next(endings), (), (), ()))
    ran = diff(*ALL)
    assert ran.code == ExitCode.UNSETTLED
    assert ran.out.splitlines()[-1].split() == ["(all)", "Settled", "Repeating"]
