"""The examples in the docstrings give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import kueuecore
import kueuecore_apiserver

_MODULES = [
    module.name
    for package in (kueuecore, kueuecore_apiserver)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if module.name != "kueuecore._core" and not module.name.endswith("__main__")
]


@pytest.mark.parametrize("name", ["kueuecore", "kueuecore_apiserver", *_MODULES])
def test_examples_of_module(name: str) -> None:
    module = importlib.import_module(name)
    # Lazy names of a package are in no namespace until somebody asks for them.
    names = {public: getattr(module, public) for public in getattr(module, "__all__", ())}
    results = doctest.testmod(module, globs={**vars(module), **names})
    assert results.failed == 0
