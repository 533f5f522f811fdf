"""The commands that pages show, and what they say that these print."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CUT", "PAGES", "ROOT", "Command", "arguments", "commands", "is_as_shown", "page_name"]

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
CUT = "..."
"""A line of an output that stands for any number of lines."""

_FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)(?P=ticks)$", re.M | re.S)
# Lines that make the command be there.
_SETUP = ("pip install ", "make dev ")
# What a shell has between commands.
_OPERATORS = frozenset("|<>&;")


@dataclass(frozen=True, slots=True)
class Command:
    """What a reader can type.

    Args:
        page: The page, from the root of the repository.
        line: The line of its first word.
        script: One command after a prompt, or a block without prompts, which may have several.
        printed: What the page says that it prints; None: nothing.
    """

    page: str
    line: int
    script: str
    printed: str | None

    @property
    def name(self) -> str:
        """The first line that is not about installing."""
        lines = [line for line in self.script.splitlines() if not line.startswith(_SETUP)]
        return lines[0].partition("  #")[0].strip() if lines else self.script.splitlines()[0]

    @property
    def calls(self) -> list[list[str]] | None:
        """The arguments of each call of `kueuecore`, if it is nothing else; None: it needs a shell."""
        lines = self.script.replace("\\\n", " ").splitlines()
        rest = [line for line in lines if not line.startswith(_SETUP)]
        found = arguments(self.script)
        return found if len(found) == len(rest) and not any(map(_needs_shell, rest)) else None


def _needs_shell(line: str) -> bool:
    return any(set(word) <= _OPERATORS for word in _words(line))


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    return list(lexer)


def page_name(page: Path) -> str:
    """Return a page from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def commands(page: Path) -> list[Command]:
    """Return the commands of a page.

    A block `console` has prompts, each with its output. A block `sh` has none; the block `text` after the word
    `prints` is its output.
    """
    text, name = page.read_text(encoding="utf-8"), page_name(page)
    found = []
    for block in _FENCE.finditer(text):
        line = text.count("\n", 0, block.start()) + 2
        body = re.sub(f"^{block['indent']}", "", block["text"], flags=re.M)
        if block["kind"] == "console":
            found += [
                Command(name, line + body.count("\n", 0, shown.start()), shown[1], shown[2])
                for shown in re.finditer(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", body, re.M)
            ]
        elif block["kind"] == "sh":
            output = re.match(r"\n\nprints\n\n```text\n(.*?)^```$", text[block.end() :], re.M | re.S)
            found.append(Command(name, line, body, output[1] if output else None))
    return found


def arguments(script: str) -> list[list[str]]:
    """Return the arguments of each line that calls `kueuecore`, up to a pipe or the like, without comments."""
    calls = []
    for line in script.replace("\\\n", " ").splitlines():
        words = _words(line) if line.startswith("kueuecore ") else []
        end = next((at for at, word in enumerate(words) if set(word) <= _OPERATORS), len(words))
        calls += [words[1:end]] if words else []
    return calls


def is_as_shown(printed: str, shown: str) -> bool:
    """Whether an output is as shown, where a line of three dots stands for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line == CUT else re.escape(f"{line}\n") for line in shown.splitlines())
    return re.fullmatch(pattern, printed) is not None
