"""Reading pages of HTML: whether tags fit, what tables say, and how well colours can be distinguished."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["Page", "contrast", "rows_of"]

# What has no end tag.
_VOID = {"meta", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects what is in them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.refers: list[str] = []
        self.headings: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        given = dict(attrs)
        self.ids += [entry for entry in [given.get("id")] if entry]
        self.refers += [attr[1:] for name, attr in attrs if name == "href" and attr and attr.startswith("#")]
        self.refers += [attr for name, attr in attrs if name == "aria-labelledby" and attr]
        assert not any(name.startswith("on") for name in given), "no scripts in attributes"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def rows_of(page: str, summary: str) -> list[list[str]]:
    """The cells of the table that belongs to a picture."""
    (table,) = re.findall(
        rf"<summary>{re.escape(summary)} as a table</summary>.*?<tbody>(.*?)</tbody>", page, re.DOTALL
    )
    return [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]


def _luminance(color: str) -> float:
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4 for channel in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, as WCAG computes it."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
