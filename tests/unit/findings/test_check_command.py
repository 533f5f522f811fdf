"""`kueuecore check`: what it prints, in each form, and what it exits with."""

from __future__ import annotations

import io
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, parse_manifests
from kueuecore.cli import ExitCode, main
from kueuecore.findings import RULES, Severity, check
from tests.command import Ran
from tests.quota_manifests import flavor, local_queue, queue, workload

SPOT = flavor("spot")
ODD = flavor() + SPOT + queue("a", "nominalQuota: 4, borrowingLimit: 9", cohort="all") + local_queue("b")
ODD += queue("b", cohort="all") + local_queue("a")
CLEAN = flavor() + queue("a") + local_queue("a")
LINE = (
    'in.yaml:9 (document 2): warning KC101 unused-flavor: ResourceFlavor "spot": metadata.name: no ClusterQueue has '
    "quota in it, so no workload gets it; add it to the resourceGroups of a ClusterQueue, or delete it"
)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore check` on a text."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *arguments: str) -> Ran:
        Path("in.yaml").write_text(text, encoding="utf-8")
        return Ran(main(["check", "in.yaml", *arguments]), *capsys.readouterr())

    return run


def test_each_finding_is_one_line(command: Callable[..., Ran]) -> None:
    ran = command(flavor() + SPOT + queue("a") + local_queue("a"))
    assert ran == (1, f"{LINE}\n1 warning\n", "")


def test_it_says_so_if_there_are_no_findings(command: Callable[..., Ran]) -> None:
    assert command(CLEAN) == (0, "nothing found\n", "")


def test_findings_are_coloured_by_severity(command: Callable[..., Ran]) -> None:
    out = command(ODD, "--color", "always").out
    assert "\x1b[33mwarning\x1b[0m KC101" in out
    assert "\x1b[36mnote\x1b[0m KC201" in out
    assert command(ODD, "--color", "never").out == command(ODD).out.replace("\x1b", "")


@pytest.mark.parametrize(
    ("fail_on", "ignored", "code"),
    [("error", "", 0), ("warning", "", 1), ("warning", "KC101", 0), ("note", "KC101", 1), ("note", "KC101,KC2", 0)],
)
def test_the_exit_code_depends_on_the_severity(
    command: Callable[..., Ran], fail_on: str, ignored: str, code: int
) -> None:
    assert command(ODD, "--fail-on", fail_on, *(["--ignore", ignored] if ignored else [])).code == code


def test_findings_are_selected_by_code_prefix_or_name(command: Callable[..., Ran]) -> None:
    def codes(*arguments: str) -> list[str]:
        return [finding["code"] for finding in json.loads(command(ODD, "-o", "json", *arguments).out)["findings"]]

    assert codes() == ["KC101", "KC201"]
    assert codes("--select", "KC2") == codes("--ignore", "unused-flavor") == ["KC201"]
    assert codes("--select", "KC101", "--select", "KC201", "--ignore", "loose-borrowing-limit") == ["KC101"]


def test_an_unknown_id_is_an_error(command: Callable[..., Ran]) -> None:
    ran = command(ODD, "--ignore", "unusd-flavor")
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert ran.err.startswith('ignore: no finding has the id "unusd-flavor"; did you mean unused-flavor?\n')
    assert "`kueuecore check --list` lists them" in command(ODD, "--select", "whatever").err


def test_what_an_api_server_rejects_is_an_error_and_not_a_finding(command: Callable[..., Ran]) -> None:
    ran = command(flavor() + queue("a", "nominalQuota: 4, borrowingLimit: 1"))
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert "borrowingLimit must be nil when cohort is empty" in ran.err


def test_an_annotation_silences_findings_about_its_object(command: Callable[..., Ran]) -> None:
    silent = ODD.replace("{name: spot}", "{name: spot, annotations: {check.kueuecore/ignore: 'KC5, unused-flavor'}}")
    assert command(silent, "--ignore", "KC2").out == "nothing found\n"
    other = ODD.replace("{name: a}", "{name: a, annotations: {check.kueuecore/ignore: unused-flavor}}", 1)
    assert "KC101" in command(other).out


def test_an_annotation_of_a_job_silences_findings_about_its_workload() -> None:
    job = """---
apiVersion: batch/v1
kind: Job
metadata: {name: big, namespace: team, labels: {kueue.x-k8s.io/queue-name: a}, annotations: {x: z}}
spec:
  parallelism: 5
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
"""
    assert [finding.name for finding in check(parse_manifests(CLEAN + job))] == ["never-fits"]
    assert check(parse_manifests(CLEAN + job.replace("x: z", "check.kueuecore/ignore: never-fits"))) == ()


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As from `kustomize build` or `helm template`, whose other kinds are of no interest."""
    text = f"{ODD}---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: web}}, spec: {{}}}}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["check", "-"]) == ExitCode.FOUND
    assert capsys.readouterr().out.startswith("<stdin>:9 (document 2): warning KC101 unused-flavor")


def test_json_has_everything(command: Callable[..., Ran]) -> None:
    document: Any = json.loads(command(ODD, "-o", "json").out)
    assert document["counts"] == {"error": 0, "warning": 1, "note": 1}
    assert document["findings"][0] == {
        "code": "KC101",
        "name": "unused-flavor",
        "severity": "warning",
        "object": {"kind": "ResourceFlavor", "namespace": None, "name": "spot"},
        "file": "in.yaml",
        "line": 9,
        "field": "metadata.name",
        "message": "no ClusterQueue has quota in it, so no workload gets it",
        "remedy": "add it to the resourceGroups of a ClusterQueue, or delete it",
        "world": [],
    }


def test_sarif_names_every_rule_and_each_place(command: Callable[..., Ran]) -> None:
    document: Any = json.loads(command(ODD, "-o", "sarif").out)
    assert (document["version"], document["$schema"]) == ("2.1.0", "https://json.schemastore.org/sarif-2.1.0.json")
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in RULES]
    assert {rule["defaultConfiguration"]["level"] for rule in rules} == {"error", "warning", "note"}
    first, second = run["results"]
    assert [rules[entry["ruleIndex"]]["id"] for entry in (first, second)] == [first["ruleId"], second["ruleId"]]
    assert first["level"] == "warning"
    assert first["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "in.yaml"}, "region": {"startLine": 9}},
            "logicalLocations": [{"fullyQualifiedName": "ResourceFlavor/spot", "name": "spot", "kind": "object"}],
        }
    ]
    assert first["message"]["text"].startswith("metadata.name: no ClusterQueue has quota in it")


def test_sarif_writes_file_names_as_uris(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my queues.yaml"
    file.write_text(ODD, encoding="utf-8")
    main(["check", str(file), "-o", "sarif"])
    document: Any = json.loads(capsys.readouterr().out)
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == file.as_uri()
    assert "%20" in uri


def test_github_gets_a_command_for_each_finding(command: Callable[..., Ran]) -> None:
    warning, note = command(ODD, "-o", "github").out.splitlines()
    assert warning.startswith(
        '::warning file=in.yaml,line=9,title=KC101 unused-flavor::ResourceFlavor "spot": metadata.name: no ClusterQueue'
    )
    assert note.startswith("::notice file=in.yaml,line=22,title=KC201 loose-borrowing-limit::")
    assert command(CLEAN, "-o", "github").out == ""


def test_characters_special_to_github_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a,b:100%.yaml"
    file.write_text(ODD, encoding="utf-8")
    main(["check", str(file), "-o", "github"])
    assert "/a%2Cb%3A100%25.yaml,line=9," in capsys.readouterr().out


def test_the_list_has_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--list"]) == ExitCode.OK
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(row[0], row[1], row[2]) for row in rows] == [(rule.code, rule.name, str(rule.severity)) for rule in RULES]


def test_write_worlds_writes_files_that_run_reads(
    command: Callable[..., Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    text = CLEAN + workload("s1", "a", 2) + workload("s2", "a", 2) + workload("big", "a", 4) + SPOT
    ran = command(text, "--write-worlds", "worlds", "--select", "KC6")
    assert ran.err == "note: wrote worlds/starvation-1.yaml\n"
    assert main(["run", "worlds/starvation-1.yaml", "-o", "json"]) == ExitCode.OK
    document: Any = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"Pending": 1, "Admitted": 2}
    written, target = Path("worlds/starvation-1.yaml"), Path("target")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    written.unlink()
    target.write_text("precious")
    written.symlink_to(target.resolve())
    assert command(text, "--write-worlds", "worlds", "-q").err == ""
    assert (target.read_text(), written.is_symlink()) == ("precious", False)


def test_an_unwritable_folder_is_an_error(command: Callable[..., Ran]) -> None:
    ran = command(CLEAN, "--write-worlds", "in.yaml")
    assert ran.code == ExitCode.BAD_INPUT
    assert "in.yaml: cannot write it" in ran.err


def test_the_configuration_affects_findings(command: Callable[..., Ran]) -> None:
    """Pods that ask for what is left out by the Configuration fit."""
    asks = workload("w", "a", 1).replace("cpu: 1", "example.com/x: 1, cpu: 1")
    assert "KC602 never-fits" in command(CLEAN + asks).out
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, resources: "
    text += "{excludeResourcePrefixes: [example.com]}}"
    Path("config.yaml").write_text(text, encoding="utf-8")
    assert command(CLEAN + asks, "--config", "config.yaml").code == ExitCode.OK
    assert check(parse_manifests(CLEAN + asks), configuration=Configuration.parse(text)) == ()


def test_the_same_objects_give_the_same_bytes(command: Callable[..., Ran]) -> None:
    assert command(ODD, "-o", "sarif") == command(ODD, "-o", "sarif")


def test_findings_are_sorted_by_file_and_line(tmp_path: Path) -> None:
    first, second = (parse_manifests(text, file=name) for name, text in (("b.yaml", ODD), ("a.yaml", flavor("gpu"))))
    places = [(finding.problem.file, finding.problem.line) for finding in check([*first, *second])]
    assert places == [("b.yaml", 9), ("b.yaml", 22), ("a.yaml", 4)]


def test_severities_are_ordered() -> None:
    assert sorted(Severity, key=lambda entry: entry.rank) == [Severity.NOTE, Severity.WARNING, Severity.ERROR]


def test_feature_gates_of_the_command_line_affect_findings(command: Callable[..., Ran]) -> None:
    # Four pods and no less: with partial admission two of them fit.
    pods = workload("w", "a", 4).replace("count: 4", "count: 4\n    minCount: 2")
    text = flavor() + queue("a", "nominalQuota: 2") + local_queue("a") + pods
    assert "minCount" in text
    assert command(text, "--select", "KC6").out == "nothing found\n"
    assert "KC6" in command(text, "--select", "KC6", "--feature-gates", "PartialAdmission=false").out


def test_an_unknown_feature_gate_is_an_error(command: Callable[..., Ran]) -> None:
    ran = command(CLEAN, "--feature-gates", "PartialAdmision=true")
    assert ran.code == ExitCode.BAD_INPUT
    assert ran.err.startswith("--feature-gates: Invalid value:")
    assert "; write PartialAdmission\n" in ran.err


def test_progress_reports_how_many_rules_have_run() -> None:
    heard: list[tuple[int, int]] = []
    check(parse_manifests(ODD), select=["KC1", "KC2"], progress=lambda *it: heard.append(it))
    n_rules = sum(rule.code.startswith(("KC1", "KC2")) for rule in RULES)
    assert heard == [(n, n_rules) for n in range(n_rules + 1)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_progress_bar(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    assert command(CLEAN).out == "nothing found\n"
    assert "rule" in stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", quiet := Terminal())
    assert command(CLEAN, "-q").out == "nothing found\n"
    assert quiet.getvalue() == ""
