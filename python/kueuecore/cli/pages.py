"""Writes HTML pages with charts."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from kueuecore._text import shown
from kueuecore.cli.output_files import require_file
from kueuecore.cli.streams import OutputError, to_stderr
from kueuecore.errors import ManifestError
from kueuecore.report.framed import Framed

__all__ = ["require_page", "write_page"]


def require_page(path: Path | None) -> None:
    """Check before a long run that its page can be made and written.

    Args:
        path: The file; None: no page is wanted.

    Raises:
        ManifestError: The extra `report` is not installed, or the file cannot be written.
    """
    if path is None:
        return
    if any(find_spec(name) is None for name in ("altair", "jinja2", "vl_convert")):
        remedy = "pip install 'kueuecore[report]'"
        raise ManifestError.of("a report needs the extra `report`", remedy=remedy)
    require_file("--report", path)


def write_page(page: Framed, path: Path, *, quiet: bool) -> None:
    """Write a page to a file, and note it on standard error.

    Raises:
        OutputError: The file cannot be written.
    """
    try:
        page.write(path)
    except OSError as error:
        raise OutputError(error.strerror or str(error), what=str(path)) from None
    if not quiet:
        to_stderr(f"note: wrote {shown(str(path))}")
