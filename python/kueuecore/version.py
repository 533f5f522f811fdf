"""The version of kueuecore, and the version of Kueue that it follows."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

__all__ = ["KUEUE_COMMIT", "KUEUE_VERSION", "version"]

KUEUE_VERSION: Final = "v0.20 (development)"
"""The version of Kueue whose decisions kueuecore reproduces."""
KUEUE_COMMIT: Final = "ff69552e79ad21652c36caa97038382e55625cf7"
"""The commit of Kueue whose decisions kueuecore reproduces."""


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
