"""The names that `import kueuecore` offers."""

import pkgutil
import subprocess
import sys
from importlib import import_module

import pytest

import kueuecore


@pytest.mark.parametrize("name", kueuecore.__all__)
def test_a_public_name_is_there(name: str) -> None:
    assert getattr(kueuecore, name) is not None
    assert name in dir(kueuecore)


def test_type_checkers_see_the_same_names() -> None:
    source = import_module("inspect").getsource(kueuecore)
    declared = {
        line.split(" as ")[1] for line in source.splitlines() if line.startswith("    from ") and " as " in line
    }
    assert declared == set(kueuecore.__all__) - {"__version__"}


def test_no_module_hides_a_public_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(kueuecore.__path__)}
    assert modules & set(kueuecore.__all__) == {"objects"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Enginee'"):
        kueuecore.__getattr__("Enginee")


def test_the_import_is_light() -> None:
    program = "import sys, kueuecore; print([m for m in ('kueuecore._core', 'numpy', 'yaml') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
