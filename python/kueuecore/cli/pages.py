"""Writes HTML pages with charts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from kueuecore._text import shown
from kueuecore.cli.streams import to_stderr
from kueuecore.errors import ManifestError
from kueuecore.report.framed import Framed

__all__ = ["require_pages", "write_page"]


def require_pages() -> None:
    """Check before a long run that its page can be made.

    Raises:
        ManifestError: The extra `report` is not installed.
    """
    if any(find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
        remedy = "pip install 'kueuecore[report]'"
        raise ManifestError.of("a report needs the extra `report`", remedy=remedy)


def write_page(page: Framed, path: Path, *, quiet: bool) -> None:
    """Write a page to a file, and note it on standard error.

    Raises:
        ManifestError: The file cannot be written.
    """
    try:
        page.write(path)
    except OSError as error:
        raise ManifestError.of(f"the report cannot be written: {error}", remedy="name another file") from None
    if not quiet:
        to_stderr(f"note: wrote {shown(str(path))}")
