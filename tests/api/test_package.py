"""The package as it is installed: extension, dependencies, type marker. test_version.py has its version."""

from importlib import metadata, resources

import kueuecore
from kueuecore import _core


def test_the_extension_belongs_to_the_package() -> None:
    assert _core.__name__ in ("_core", "kueuecore._core")
    assert kueuecore.__doc__


def test_the_core_needs_numpy_and_yaml_and_nothing_else() -> None:
    required = metadata.requires("kueuecore") or []
    core = {text.split(">")[0].strip().lower() for text in required if "extra ==" not in text}
    assert core == {"numpy", "pyyaml"}


def test_type_checkers_see_that_the_package_is_typed() -> None:
    assert resources.files("kueuecore").joinpath("py.typed").is_file()
