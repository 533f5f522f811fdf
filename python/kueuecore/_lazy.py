"""Lets a package import what its names need when somebody asks for them (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    A name that is also the name of a module of the package cannot be lazy: once that module is imported, it is the
    attribute.

    Args:
        package: The `__name__` of the package.
        modules: By module, the names that it has, with blanks between them.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def found(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(homes[name]), name)

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return found, listed
