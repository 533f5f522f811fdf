"""What the first page of the site shows before its lists: who uses what, as the README says, and the tour."""

from __future__ import annotations

import re

__all__ = ["front_page"]


def front_page(readme: str, tour: str) -> str:
    """Return Markdown for docs/index.md: the README's table, and the questions of the tour with their commands.

    Args:
        readme: The text of README.md.
        tour: The text of docs/tour.md.

    Raises:
        ValueError: One of them has lost what is shown.
    """
    table = re.search(r"^\| you are \|.*?\n(?=\n)", readme, re.M | re.S)
    stops = re.findall(r"^## ([^\n]*\?)\n.*?^```sh\n(kueuecore [^\n]*)\n```", tour, re.M | re.S)
    if table is None or not stops:
        raise ValueError("README.md has no table `you are`, or docs/tour.md no question with a command")
    rows = [f"| [{question}](tour.md#{_anchor(question)}) | `{command}` |" for question, command in stops]
    return "\n".join(
        [
            table[0].replace("](docs/", "]("),
            "The same state, asked by each command: [all of it in two minutes](tour.md).",
            "",
            "| question | command |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
