"""A version of Kueue's kinds that no API server has any more: every way in says the same (rules/01)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore import Engine, ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.manifests import parse_manifests, to_json_lines
from tests.command import JOB, QUEUES

SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
cluster: {objects: [in.yaml]}
work:
- {job: job.yaml, runs: 1m}
"""
UNSERVED = [(kind, "v1alpha1") for kind in ("Cohort", "Topology", "MultiKueueConfig")] + [("ClusterQueue", "v1alpha2")]
SUPPORTED = 'supported values: "kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1"; write kueue.x-k8s.io/v1beta2'


def text_of(kind: str, version: str) -> str:
    return f"{{apiVersion: kueue.x-k8s.io/{version}, kind: {kind}, metadata: {{name: old}}}}"


def refusal(kind: str, version: str) -> str:
    return f'{kind} "old": apiVersion: Unsupported value: "kueue.x-k8s.io/{version}": {SUPPORTED}'


@pytest.mark.parametrize(("kind", "version"), UNSERVED)
@pytest.mark.parametrize(
    "arguments",
    ["run in.yaml", "run --trusted in.yaml", "check in.yaml", "explain in.yaml job/a", "simulate scenario.yaml"],
)
def test_commands_refuse_it_with_the_version_to_write(
    kind: str,
    version: str,
    arguments: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.yaml").write_text(f"{QUEUES}---\n{text_of(kind, version)}\n", encoding="utf-8")
    Path("job.yaml").write_text((JOB % ("a", 1)).removeprefix("\n---\n"), encoding="utf-8")
    Path("scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    assert main(arguments.split()) == ExitCode.BAD_INPUT
    assert refusal(kind, version) in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "version"), UNSERVED)
@pytest.mark.parametrize("trusted", [False, True])
def test_an_engine_refuses_it_in_any_form_and_from_anybody(kind: str, version: str, trusted: bool) -> None:
    manifests = parse_manifests(text_of(kind, version))
    for objects in (manifests, manifests[0].object, text_of(kind, version), to_json_lines(manifests)):
        with pytest.raises(ManifestError) as error:
            Engine().apply(objects, now=0, trusted=trusted)
        assert refusal(kind, version) in str(error.value)
