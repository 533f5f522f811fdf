"""What every page has: a file, and a frame in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from pathlib import Path

__all__ = ["Framed"]


class Framed(ABC):
    """A page that is made when somebody looks.

    Args:
        title: Its heading.
    """

    def __init__(self, *, title: str) -> None:
        self._title = title

    @property
    @abstractmethod
    def html(self) -> str:
        """The page.

        Raises:
            ImportError: The extra `report` is not there.
        """

    def write(self, path: str | Path) -> None:
        """Write the page into a file.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            ImportError: The extra `report` is not there.
            OSError: It can not be written.
        """
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame, the style of the notebook and that of the page leave each other alone.
        frame = 'width="100%" height="800" style="border:0"'
        return f'<iframe title="{escape(self._title)}" {frame} srcdoc="{escape(self.html)}"></iframe>'
