"""The package as it is installed: extension, version, licence, type marker."""

import tomllib
from importlib import metadata, resources
from pathlib import Path

import kueuecore
from kueuecore import _core


def test_the_extension_belongs_to_the_package() -> None:
    assert _core.__name__ in ("_core", "kueuecore._core")
    assert kueuecore.__doc__


def test_the_version_is_that_of_the_crates() -> None:
    workspace = tomllib.loads((Path(__file__).parents[2] / "Cargo.toml").read_text(encoding="utf-8"))
    assert metadata.version("kueuecore") == workspace["workspace"]["package"]["version"]


def test_the_api_server_for_tests_has_the_version_of_the_package_that_it_needs() -> None:
    file = Path(__file__).parents[2] / "python/kueuecore_apiserver/pyproject.toml"
    project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    version = metadata.version("kueuecore")
    assert project["version"] == version
    assert f"kueuecore=={version}" in project["dependencies"]


def test_the_core_needs_numpy_and_yaml_and_nothing_else() -> None:
    required = metadata.requires("kueuecore") or []
    core = {text.split(">")[0].strip().lower() for text in required if "extra ==" not in text}
    assert core == {"numpy", "pyyaml"}


def test_type_checkers_see_that_the_package_is_typed() -> None:
    assert resources.files("kueuecore").joinpath("py.typed").is_file()
