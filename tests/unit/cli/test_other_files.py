"""A file that is for another command is refused, with the command that takes it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from kueuecore import Configuration, Engine
from kueuecore.cli import ExitCode, main
from kueuecore.errors import ConfigurationError
from tests.command import QUEUES

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: kueue-system}
data:
  controller_manager_config.yaml: |
    apiVersion: config.kueue.x-k8s.io/v1beta2
    kind: Configuration
    resources: {quotaCheckStrategy: IgnoreUndeclared}
"""
FILES = {
    "scenario.yaml": "{apiVersion: kueuecore/v1, kind: Scenario, until: 1h}",
    "a_test.yaml": "{apiVersion: kueuecore/v1, kind: PolicyTest, cases: []}",
    "rules.yaml": "{apiVersion: kueuecore/v1, kind: TraceRules}",
    "kueue.yaml": "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}",
    "queues.yaml": QUEUES,
    "config_map.yaml": CONFIG_MAP,
    "jobs.swf": "; Version: 2.2\n1 0 10 100 1 -1 -1 1 200 -1 1 1 1 1 1 -1 -1 -1\n",
    "copied.txt": "1 0 10 100 1 -1 -1 1 200 -1 1 1 1 1 1 -1 -1 -1\n2 1: 2\n",
    "jobs.csv": "job,submit,cpus\n1,0,4\n",
    "sacct.txt": "JobID|Submit|Start|End\n1|2026-03-01T08:00:00|Unknown|Unknown\n",
}
BYTES = {
    "log.yaml": b"job,submit,cpus\n1,0,4\n",
    "journal.json": b'{"format": "kueuecore.journal/1", "calls": []}',
    "saved": Engine().save(),
    "jobs.parquet": b"PAR1\x00\xff",
    "jobs.zst": b"\x28\xb5\x2f\xfd",
}
OF_TRACE = "this is a recorded trace, not YAML or JSON; name a trace in a scenario, at `traces[].file`, and use"
OF_ENGINE = "this is a saved engine; use `kueuecore run` or `explain`, or give manifests or a dump"


def test_an_incident_about_the_objects_beside_it_is_no_unread_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, other = "apiVersion: kueuecore/v1", "apiVersion: pager.example.org/v1, metadata: {name: a}"
    (tmp_path / "in.yaml").write_text(f"{{{ours}, kind: Incident}}\n---{QUEUES}", encoding="utf-8")
    assert main(["run", str(tmp_path / "in.yaml")]) == ExitCode.OK
    assert "not read" not in capsys.readouterr().err
    # Of another group it may be meant as anything.
    (tmp_path / "other.yaml").write_text(f"{{{other}, kind: Incident}}", encoding="utf-8")
    assert main(["run", str(tmp_path)]) == ExitCode.OK
    assert "warning: these kinds are not read: Incident (1)\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "use"),
    [
        (("run", "scenario.yaml"), "; use `kueuecore simulate` for a Scenario\n"),
        (("run", "queues.yaml", "a_test.yaml"), "; use `kueuecore test` for a PolicyTest\n"),
        (("explain", "rules.yaml", "x"), "; name TraceRules in a scenario, at `traces[].rules`, and use"),
        (("run", "kueue.yaml"), "; pass a Configuration with --config"),
        (("check", "scenario.yaml"), "; use `kueuecore simulate` for a Scenario\n"),
        (("eta", "a_test.yaml"), "; use `kueuecore test` for a PolicyTest\n"),
        (("simulate", "a_test.yaml"), "; use `kueuecore test` for a PolicyTest\n"),
        (("simulate", "queues.yaml"), "; use `kueuecore run` for the objects of a cluster\n"),
        (("plan", "kueue.yaml", "--wait", "p95<=1h"), "; pass a Configuration with --config, or name it in"),
        (("test", "scenario.yaml"), "; use `kueuecore simulate` for a Scenario\n"),
        (("sweep", "queues.yaml", "--grid", "until=[1h]"), "; use `kueuecore run` for the objects of a cluster\n"),
        (("run", "jobs.swf"), OF_TRACE),
        (("check", "jobs.csv"), OF_TRACE),
        (("simulate", "copied.txt"), OF_TRACE),
        (("simulate", "log.yaml"), OF_TRACE),
        (("check", "sacct.txt"), OF_TRACE),
        (("test", "jobs.parquet"), OF_TRACE),
        (("run", "jobs.zst"), "jobs.zst: this is compressed; unpack it first, or compress it with gzip\n"),
        (("simulate", "saved"), OF_ENGINE),
        (("test", "saved"), OF_ENGINE),
        (("plan", "journal.json", "--wait", "p95<=1h"), OF_ENGINE),
        (("run", "queues.yaml", "--config", "saved"), OF_ENGINE),
        (("run", "queues.yaml", "--config", "scenario.yaml"), "scenario.yaml: its kind is Scenario, not Configuration"),
        (("run", "queues.yaml", "--config", "queues.yaml"), "it holds no Configuration, but ResourceFlavor, Clu"),
    ],
)
def test_the_command_for_a_file_is_named(
    arguments: tuple[str, ...],
    use: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name, data in BYTES.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert (out, use in err) == ("", True), err


def test_a_directory_may_hold_files_of_other_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path)]) == ExitCode.OK
    assert (
        "these kinds are not read: ConfigMap (1), Configuration (1), PolicyTest (1), Scenario (1)"
        in capsys.readouterr().err
    )


def test_a_configuration_may_come_in_its_configmap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config_map, queues = tmp_path / "config_map.yaml", tmp_path / "queues.yaml"
    config_map.write_text(CONFIG_MAP, encoding="utf-8")
    queues.write_text(QUEUES, encoding="utf-8")
    read = Configuration.read(config_map)
    assert read.to_dict() == Configuration.parse(textwrap.dedent(CONFIG_MAP.partition("|")[2])).to_dict()
    assert main(["run", str(queues), "--config", str(config_map)]) == ExitCode.OK
    assert "ConfigMap" not in capsys.readouterr().err


def test_an_error_in_a_configmap_names_its_key(tmp_path: Path) -> None:
    path = tmp_path / "config_map.yaml"
    path.write_text(CONFIG_MAP.replace("IgnoreUndeclared", "Maybe"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"config_map.yaml, data\[controller_manager_config.yaml\]:3 "):
        Configuration.read(path)


def test_a_misspelled_kind_is_corrected_within_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    kinds = ("batch/v1, kind: Jbo", "acme.io/v1, kind: Cluster", "v1, kind: Nod")
    text = "---\n".join(f"{{apiVersion: {kind}, metadata: {{name: a, namespace: b}}}}\n" for kind in kinds)
    Path("in.yaml").write_text(text, encoding="utf-8")
    assert main(["run", "in.yaml"]) == ExitCode.OK
    hint = "; Jbo: did you mean Job?; Nod: did you mean Node?\n"
    assert capsys.readouterr().err.endswith(hint)
    Path("in.yaml").write_text("{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueu}", encoding="utf-8")
    assert main(["run", "in.yaml"]) == ExitCode.BAD_INPUT
    assert "; write ClusterQueue\n" in capsys.readouterr().err
