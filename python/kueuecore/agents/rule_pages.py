"""The rules that answers cite, chapter by chapter and section by section."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["SCHEME", "SECTION_TEMPLATE", "RulePage", "page_at", "rule_pages", "rule_uri"]

SCHEME = "kueuecore://rules/"
SECTION_TEMPLATE = f"{SCHEME}{{chapter}}/{{section}}"
# A link to docs/rules in a checkout, copies of the pages in a wheel.
_FOLDER = Path(__file__).with_name("rules")
_HEADING = re.compile(r"^(#{2,4}) (\d+(?:\.\d+)*)\.? ", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RulePage:
    """A chapter of the rules.

    Args:
        chapter: Its number, such as `02`.
        title: Its heading.
        text: All of it, in Markdown.
    """

    chapter: str
    title: str
    text: str

    @property
    def uri(self) -> str:
        """The address of the whole chapter."""
        return f"{SCHEME}{self.chapter}"

    def section(self, number: str) -> str:
        """Return a section, or the smallest one around it that has a heading; empty if there is none.

        Args:
            number: Its number, such as `2.2`.
        """
        headings = list(_HEADING.finditer(self.text))
        while number:
            for index, heading in enumerate(headings):
                if heading[2] == number:
                    deeper = len(heading[1])
                    ends = (after.start() for after in headings[index + 1 :] if len(after[1]) <= deeper)
                    return self.text[heading.start() : next(ends, len(self.text))].rstrip() + "\n"
            number = number.rpartition(".")[0]
        return ""


@cache
def rule_pages() -> tuple[RulePage, ...]:
    """Return the chapters by number; none where the package came without them."""
    if not _FOLDER.is_dir():
        return ()
    found = []
    for path in sorted(_FOLDER.glob("[0-9][0-9]-*.md")):
        text = path.read_text(encoding="utf-8")
        title = _TITLE.search(text)
        found.append(RulePage(path.name[:2], title[1] if title else path.stem, text))
    return tuple(found)


def rule_uri(rule: str) -> str:
    """Return the address of a rule that an answer cites.

    Example:
        >>> rule_uri("02 §2.2")
        'kueuecore://rules/02/2.2'
    """
    chapter, _, section = rule.partition(" ")
    number = section.removeprefix("§").partition(" ")[0]
    return f"{SCHEME}{chapter}/{number}" if number else f"{SCHEME}{chapter}"


def page_at(uri: str) -> str | None:
    """Return the text at an address: a chapter, or a section of one; None if there is no such rule."""
    if not uri.startswith(SCHEME):
        return None
    chapter, _, section = uri.removeprefix(SCHEME).partition("/")
    for page in rule_pages():
        if page.chapter == chapter:
            return (page.section(section) or None) if section else page.text
    return None
