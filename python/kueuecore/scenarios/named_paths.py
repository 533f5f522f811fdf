"""Reads names of files in scenarios."""

from __future__ import annotations

from pathlib import Path

from kueuecore._fields import Fields, shown

__all__ = ["named_path"]


def named_path(section: Fields, name: str, entry: str, folder: Path) -> Path | None:
    """Return the file or directory that a field names; None, after reporting it, if its value is not a name.

    Args:
        section: The fields that it is among.
        name: The field.
        entry: Its value.
        folder: The folder that file names are relative to.
    """
    if not entry or any(ord(row) < ord(" ") for row in entry):
        section.complain(name, f"Invalid value: {shown(entry)}", "name a file or a directory")
        return None
    return folder / entry
