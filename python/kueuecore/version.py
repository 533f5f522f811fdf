"""Which kueuecore this is, and whose decisions it makes."""

from __future__ import annotations

from importlib import metadata
from typing import Final

__all__ = ["KUEUE_COMMIT", "KUEUE_VERSION", "version"]

KUEUE_VERSION: Final = "v0.20 (development)"
"""The version of Kueue whose decisions these are."""
KUEUE_COMMIT: Final = "ff69552e79ad21652c36caa97038382e55625cf7"
"""The commit of Kueue whose decisions these are."""


def version() -> str:
    """The version of kueuecore that is installed."""
    return metadata.version("kueuecore")
