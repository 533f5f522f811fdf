"""The version stands in Cargo.toml; every copy of it is the same, and `make version` writes them."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from scripts.version_copies import FIELDS, copies, main, source

ROOT = Path(__file__).parents[2]
FILES = {copy.file for copy in copies()}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that have copies, and the source."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    for name in ["Cargo.toml", *FILES]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_copy_is_that_of_the_crates() -> None:
    assert [copy for copy in copies() if copy.version != source()] == []
    assert metadata.version("kueuecore") == source()


def test_copies_are_where_tools_and_readers_look_for_them() -> None:
    assert {*FIELDS, "docs/dry-run.md", "examples/quota-repository/.gitlab-ci.yml"} <= FILES


def test_the_locks_have_it_too() -> None:
    for file in ("Cargo.lock", "fuzz/Cargo.lock"):
        packages = tomllib.loads((ROOT / file).read_text("utf-8"))["package"]
        ours = {package["name"]: package["version"] for package in packages if "source" not in package}
        ours.pop("kueuecore-fuzz", None)
        assert {*ours.values()} == {source()}, file


def test_another_version_is_written_everywhere(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = copies(checkout)
    assert main(["12.30.4"], checkout) == 0
    assert {*capsys.readouterr().out.split()} == FILES
    assert source(checkout) == "12.30.4"
    assert copies(checkout) == [copy._replace(version="12.30.4") for copy in before]
    # Back again, nothing else has changed.
    assert main([source()], checkout) == 0
    assert [name for name in FILES if (checkout / name).read_bytes() != (ROOT / name).read_bytes()] == []
    assert (checkout / "Cargo.toml").read_bytes() == (ROOT / "Cargo.toml").read_bytes()


def test_a_copy_that_was_forgotten_is_found_in_any_file(checkout: Path) -> None:
    (checkout / "docs/new.md").write_text("# New\n\n    pip install kueuecore==0.0.9\n", "utf-8")
    assert [copy for copy in copies(checkout) if copy.version == "0.0.9"] == [("docs/new.md", 3, "0.0.9")]


def test_other_names_and_other_versions_are_left_alone(checkout: Path) -> None:
    text = "kueue==0.1.0 kueuecore>=0.1.0 kueuecore==0.1.0rc1 mykueuecored==0.1.0 kueuecore:latest\n"
    (checkout / "docs/new.md").write_text(text, "utf-8")
    assert "docs/new.md" not in {copy.file for copy in copies(checkout)}


def test_a_field_that_is_gone_is_named(checkout: Path) -> None:
    (checkout / "deploy/chart/Chart.yaml").write_text("name: kueuecore\n", "utf-8")
    with pytest.raises(ValueError, match=r"^deploy/chart/Chart\.yaml has no version after .*: change FIELDS"):
        copies(checkout)


@pytest.mark.parametrize("version", ["1.2", "v1.2.3", "1.2.3rc1", ""])
def test_what_is_no_version_changes_nothing(checkout: Path, capsys: pytest.CaptureFixture[str], version: str) -> None:
    assert main([version], checkout) == 2
    assert "is no version such as 0.2.0" in capsys.readouterr().err
    assert source(checkout) == source()
