"""The base of every page: it can be written to a file and shown in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from pathlib import Path

from kueuecore._replaced_files import replaced

__all__ = ["Framed"]


class Framed(ABC):
    """A page that is rendered on demand.

    Args:
        title: Its heading.
    """

    def __init__(self, *, title: str) -> None:
        self._title = title

    @property
    @abstractmethod
    def html(self) -> str:
        """The page as HTML.

        Raises:
            ImportError: The extra `report` is not installed.
        """

    def write(self, path: str | Path) -> None:
        """Write the page to a file.

        Args:
            path: The file; an existing one is replaced.

        Raises:
            ImportError: The extra `report` is not installed.
            OSError: The file cannot be written.
        """
        page = self.html.encode()
        with replaced(Path(path)) as file:
            file.write(page)

    def _repr_html_(self) -> str:
        # A frame keeps the styles of notebook and page apart.
        frame = 'width="100%" height="800" style="border:0"'
        return f'<iframe title="{escape(self._title)}" {frame} srcdoc="{escape(self.html)}"></iframe>'
