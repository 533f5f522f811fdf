"""The kustomizations in deploy/: kubectl makes of them the objects of the files, with their image."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.deploy.charts import KUEUES, by_key
from tests.unit.kubernetes.deployed import manifests_of

Json = dict[str, Any]
FOLDERS = (".", "dry-run")
PAGE = Path("docs/run-in-a-cluster.md")


def built(folder: Path) -> list[Json]:
    """What kubectl would apply, or skips the test without it."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    ran = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    return [*yaml.safe_load_all(ran.stdout)]


def kustomization(folder: str) -> Json:
    (found,) = manifests_of(f"{folder}/kustomization.yaml")
    return found


def objects_of(files: list[str]) -> dict[tuple[str, str, str], Json]:
    """The objects of files in deploy/ with the image of the kustomizations."""
    found = by_key([entry for name in files for entry in manifests_of(name)])
    for (kind, *_), entry in found.items():
        if kind == "Deployment":
            (container,) = entry["spec"]["template"]["spec"]["containers"]
            container["image"] = f"registry.example/kueuecore:{metadata.version('kueuecore')}"
    return found


def test_a_folder_has_the_objects_of_its_files() -> None:
    base = objects_of(kustomization(".")["resources"])
    assert len(base) > 40
    assert by_key(built(Path("deploy"))) == base
    assert by_key(built(Path("deploy/dry-run"))) == objects_of(["dry-run.yaml"])


def test_the_copy_of_the_dry_run_is_one() -> None:
    names = ("dry-run.yaml", "dry-run/dry-run.yaml")
    first, second = (Path("deploy", name).read_text("utf-8") for name in names)
    assert first == second, "cp deploy/dry-run.yaml deploy/dry-run/"


@pytest.mark.parametrize("folder", FOLDERS)
def test_its_image_is_that_of_this_version(folder: str) -> None:
    (image,) = kustomization(folder)["images"]
    assert (image["newName"], image["newTag"]) == ("registry.example/kueuecore", metadata.version("kueuecore"))


def test_the_overlay_that_the_page_shows_works(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^```yaml\n(# kustomization\.yaml\n.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    # Kustomize reads no folder by an absolute path.
    shutil.copytree("deploy", tmp_path / "kueuecore/deploy", ignore=shutil.ignore_patterns("chart"))
    own = tmp_path / "own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(shown, encoding="utf-8")
    found = by_key(built(own))
    before = objects_of([*kustomization(".")["resources"], "dry-run.yaml"])
    changed = {key for key in before if found[key] != before[key]}
    assert found.keys() == before.keys()
    assert changed == {("Deployment", KUEUES, name) for name in ("kueuecore", "kueuecore-dry-run")}
    deployment = found["Deployment", KUEUES, "kueuecore"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert deployment["spec"]["replicas"] == 3
    assert container["image"] == f"registry.example.com/platform/kueuecore:{metadata.version('kueuecore')}"
    assert container["args"] == ["--config", "/etc/kueuecore/configuration.yaml", "--forecast"]
