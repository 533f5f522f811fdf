"""`kueuecore convert`, and the refusal of v1beta1 by Kueue 0.20 that asks for it (rules/01 §8)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine, ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.manifests import parse_manifests
from kueuecore.webhooks import RefusedError, admit

OLD = """\
apiVersion: kueue.x-k8s.io/v1beta1  # an old one
kind: ClusterQueue
metadata: {name: team}
spec:
  cohort: all
  admissionChecks: [prov]
  flavorFungibility: {whenCanBorrow: Borrow}
---
apiVersion: v1
kind: Namespace
metadata: {name: ns}
"""
NEW: list[dict[str, Any]] = [
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "team"},
        "spec": {
            "cohortName": "all",
            "admissionChecksStrategy": {"admissionChecks": [{"name": "prov"}]},
            "flavorFungibility": {"whenCanBorrow": "MayStopSearch"},
        },
    },
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}},
]


def objects(text: str) -> list[Any]:
    return [manifest.object for manifest in parse_manifests(text)]


def test_objects_are_written_in_the_newest_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(OLD, encoding="utf-8")
    assert main(["convert", str(file)]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert objects(out) == NEW
    assert err == "note: 1 of 2 objects were in an older version\n"
    # What is new stays as it is.
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.encode())))
    assert main(["convert", "-q", "-"]) == ExitCode.OK
    again, err = capsys.readouterr()
    assert (objects(again), err) == (NEW, "")


def test_a_directory_is_converted_file_by_file(tmp_path: Path) -> None:
    given, out = tmp_path / "given", tmp_path / "out"
    (given / "more").mkdir(parents=True)
    (given / "a.yml").write_text(OLD, encoding="utf-8")
    (given / "more" / "b.json").write_text('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}')
    assert main(["convert", "-R", str(given), "--output-dir", str(out)]) == ExitCode.OK
    assert objects((out / "a.yaml").read_text(encoding="utf-8")) == NEW
    assert [
        object_["metadata"]["name"] for object_ in objects((out / "more" / "b.yaml").read_text(encoding="utf-8"))
    ] == ["b"]


def test_two_files_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.yaml").write_text(OLD, encoding="utf-8")
    paths = [str(tmp_path / folder / "x.yaml") for folder in ("a", "b")]
    assert main(["convert", *paths, "-o", str(tmp_path / "out")]) == ExitCode.BAD_INPUT
    assert "would both be written to" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_version_that_is_gone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text("{apiVersion: kueue.x-k8s.io/v1alpha2, kind: ClusterQueue, metadata: {name: q}}", encoding="utf-8")
    assert main(["convert", str(file)]) == ExitCode.BAD_INPUT
    assert 'no matches for kind "ClusterQueue" in version "kueue.x-k8s.io/v1alpha2"' in capsys.readouterr().err


def test_kueue_0_20_does_not_serve_the_old_version(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(OLD, encoding="utf-8")
    assert main(["run", "--kueue", "0.20.0", str(file)]) == ExitCode.BAD_INPUT
    err = capsys.readouterr().err
    assert 'no matches for kind "ClusterQueue" in version "kueue.x-k8s.io/v1beta1"' in err
    assert f"kueuecore convert {file}" in err
    assert main(["run", "--kueue", "0.20.0-devel", str(file)]) == ExitCode.OK
    old = objects(OLD)[0]
    now = Configuration(release="0.20.0")
    with pytest.raises(ManifestError, match="no matches for kind"):
        Engine(now).apply([old], now=0)
    with pytest.raises(RefusedError) as refused:
        admit(old, configuration=now)
    assert refused.value.code == 404
    stored = admit(old, configuration=Configuration(release="0.19"))
    assert stored.object["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    # What an upgraded server has stored is read.
    Engine(now).apply([old], now=0, trusted=True)
