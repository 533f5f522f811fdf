"""The version of kueuecore, and the version of Kueue that it follows."""

from __future__ import annotations

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
    from importlib import metadata  # slow

    return metadata.version("kueuecore")
