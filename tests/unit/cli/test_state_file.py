"""STATE at the command line: manifests, standard input, saved engines and journals come to one and the same state."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path

import pytest

from kueuecore import Configuration, Engine
from kueuecore.cli.configured import read_configuration
from kueuecore.cli.state_file import SettledState, add_state, read_state
from kueuecore.errors import ManifestError
from kueuecore.manifests import parse_manifests
from kueuecore.releases import DEFAULT_RELEASE, Release
from kueuecore.world import World
from tests.command import QUEUES

WORKLOAD = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: %s, namespace: team, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  queueName: lq
  podSets: [{name: main, count: %d, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}]
"""
TEXT = QUEUES + WORKLOAD % ("a", 2) + WORKLOAD % ("b", 1)
NOW = "2026-01-01T00:00:00Z"
NEWEST = Release.named(DEFAULT_RELEASE)


def state(*arguments: str) -> SettledState:
    parser = argparse.ArgumentParser()
    add_state(parser)
    parser.set_defaults(quiet=True)
    return read_state(parser.parse_args(arguments, argparse.Namespace(source=None, given=None)))


def stages(of: SettledState) -> dict[str, str]:
    return {workload.name: str(workload.stage) for workload in of.engine.workloads()}


def an_engine(configuration: Configuration, *, keeps_journal: bool = False) -> Engine:
    engine = Engine(configuration, keeps_journal=keeps_journal)
    World.of(parse_manifests(TEXT), configuration=configuration).apply_to(engine, now=NOW)
    return engine


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("in.yaml").write_text(TEXT, encoding="utf-8")
    return tmp_path


def test_manifests_stdin_a_saved_engine_and_a_journal_settle_alike(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"a": "Admitted", "b": "Pending"}
    of_files = state("in.yaml")
    monkeypatch.setattr(sys, "stdin", io.StringIO(TEXT))
    of_stream = state("-")
    engine = an_engine(read_configuration(None, [], NEWEST), keeps_journal=True)
    (folder / "engine").write_bytes(engine.save())
    (folder / "journal.json").write_text(json.dumps(engine.journal()), encoding="utf-8")
    read = [of_files, of_stream, state("engine"), state("journal.json")]
    assert [stages(manifest) for manifest in read] == [expected] * 4
    assert len({manifest.now for manifest in read}) == 1
    assert len({str((manifest.engine.workloads(), manifest.engine.quota())) for manifest in read}) == 1


def test_a_saved_engine_from_a_stream_keeps_its_configuration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = Configuration.parse(
        "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {PartialAdmission: false}}"
    )

    class Stdin:
        closed = False
        buffer = io.BytesIO(an_engine(configuration).save())

    monkeypatch.setattr(sys, "stdin", Stdin)
    read = state("-")
    assert stages(read) == {"a": "Admitted", "b": "Pending"}
    assert not read.engine.configuration.is_enabled("PartialAdmission")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["engine", "in.yaml"], "engine: a saved engine is a complete state"),
        (["engine", "--trusted"], "engine: a saved engine has already accepted its objects"),
        (["engine", "--feature-gates", "PartialAdmission=false"], "had another Configuration"),
        (["cut"], "cut: this is not a whole save"),
        (["changed.json"], "changed.json: "),
        (["none.yaml"], "none.yaml: there is no such file"),
    ],
)
def test_bad_states_are_errors_with_a_reason(folder: Path, arguments: list[str], message: str) -> None:
    engine = an_engine(Configuration(), keeps_journal=True)
    (folder / "engine").write_bytes(engine.save())
    (folder / "cut").write_bytes(engine.save()[:-5])
    (folder / "changed.json").write_text(json.dumps({**engine.journal(), "now": 1}), encoding="utf-8")
    with pytest.raises(ManifestError) as caught:
        state(*arguments)
    assert message in str(caught.value)


def test_a_saved_engine_cannot_be_set_back(folder: Path) -> None:
    (folder / "engine").write_bytes(an_engine(read_configuration(None, [], NEWEST)).save())
    assert stages(state("engine", "--now", "2026-01-01T00:00:01Z"))["a"] == "Admitted"
    with pytest.raises(ManifestError, match="--now is before 2026-01-01T00:00:00Z, the time of this saved engine"):
        state("engine", "--now", "2025-12-31T23:59:59Z")
