"""Writing pages with pictures."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from kueuecore._text import shown
from kueuecore.cli.streams import to_stderr
from kueuecore.errors import ManifestError
from kueuecore.report.framed import Framed

__all__ = ["require_pages", "write_page"]


def require_pages() -> None:
    """Find out before a long run whether its page can be made.

    Raises:
        ManifestError: The extra is not there.
    """
    if any(find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
        remedy = "pip install 'kueuecore[report]'"
        raise ManifestError.of("a report takes the extra `report`", remedy=remedy)


def write_page(page: Framed, path: Path, *, quiet: bool) -> None:
    """Write a page into a file, and say so.

    Raises:
        ManifestError: The file can not be written.
    """
    try:
        page.write(path)
    except OSError as error:
        raise ManifestError.of(f"the report can not be written: {error}", remedy="name another file") from None
    if not quiet:
        to_stderr(f"note: wrote {shown(str(path))}")
