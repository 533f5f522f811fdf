"""Commands for GitHub Actions, which annotate lines of a pull request."""

from __future__ import annotations

from os.path import normpath

__all__ = ["github_command"]


def github_command(level: str, message: str, *, title: str, file: str = "", line: int | None = None) -> str:
    r"""Write a command that annotates a line.

    Args:
        level: `error`, `warning` or `notice`.
        message: The text.
        title: Its title.
        file: The file; empty, or not one on disk such as `<stdin>`, for none.
        line: The line, from 1; None or 0 for none.

    Example:
        >>> github_command("notice", "50 %\nof it", title="a: b", file="a.yaml", line=3)
        '::notice file=a.yaml,line=3,title=a%3A b::50 %25%0Aof it'
    """
    # GitHub knows no `tests/../manifests`.
    path = "" if not file or file.startswith("<") else normpath(file)
    properties = {"file": path, "line": str(line or ""), "title": title}
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{level} {written}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
