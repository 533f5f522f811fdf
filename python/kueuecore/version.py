"""The version of kueuecore, and the releases of Kueue that it decides as."""

from __future__ import annotations

import os
import sys

__all__ = ["DEFAULT_RELEASE", "release_rows", "version"]

DEFAULT_RELEASE = "0.20.0"
"""What is followed unless something says otherwise: the newest release."""


def version() -> str:
    """Return the installed version of kueuecore."""
    # It is in the name of the wheel's folder of metadata, beside the package. Reading the metadata themselves takes
    # several times as long as Python takes to start.
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - importing pathlib takes longer
        except OSError:
            continue
        for name in names:
            if name.startswith("kueuecore-") and name.endswith(".dist-info"):
                return name.removeprefix("kueuecore-").removesuffix(".dist-info")
    from importlib import metadata

    return metadata.version("kueuecore")


def release_rows() -> list[dict[str, str]]:
    """Return `name`, `line` and `commit` of every release of Kueue that is followed, oldest first."""
    import json

    # `kueuecore.releases` has them as values; importing it takes as long as Python takes to start.
    with open(os.path.join(os.path.dirname(__file__), "releases", "table.json"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123
        rows: list[dict[str, str]] = json.load(file)["releases"]
    return rows
