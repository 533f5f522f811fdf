"""A Git repository for tests, which reads no settings of the machine."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import kueuecore

__all__ = ["LIBRARY", "Repository"]

LIBRARY = str(Path(kueuecore.__file__).parents[1])
"""Where the library is that the tests import, for PYTHONPATH of their processes in other folders."""

_VARIABLES = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@dataclass(frozen=True)
class Repository:
    """A repository.

    Args:
        folder: Its root.
    """

    folder: Path

    def git(self, *arguments: str) -> str:
        """Run Git; returns what it prints."""
        variables = {**os.environ, **_VARIABLES}
        ran = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=variables, capture_output=True, text=True, check=True
        )
        return ran.stdout.strip()

    def init(self) -> Repository:
        """Create it, with the branch `main`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        return self

    def write(self, name: str, text: str) -> Path:
        """Write a file."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def commit(self) -> str:
        """Commit everything; returns the hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "a change")
        return self.git("rev-parse", "HEAD")
