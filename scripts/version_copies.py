"""Write the version of `Cargo.toml` wherever a file needs a copy of it: `python -m scripts.version_copies [VERSION]`.

With VERSION, `Cargo.toml` gets it first. A copy is the version after a name of ours, as in `kueuecore==0.1.0`, in any
file of the checkout, and what stands in a field of one of `FIELDS`. Lock files of crates are cargo's own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

__all__ = ["FIELDS", "Copy", "copies", "main", "source"]

ROOT = Path(__file__).parents[1]
_VERSION = r"\d+\.\d+\.\d+"
_SOURCE = re.compile(rf'(?m)^(\[workspace\.package\]\nversion = ")({_VERSION})(?=")')
# A requirement, an image, an action and a branch of kustomize.
_NAMED = re.compile(rf"(?m)(kueuecore(?:==|:|@v|//deploy\?ref=v))({_VERSION})(?![\w-]|\.\d)")
# What is no name of ours by itself: the files, and what stands before the version.
FIELDS = {
    "deploy/chart/Chart.yaml": r"^(?:version|appVersion): ",
    "deploy/dry-run/kustomization.yaml": r"^  newTag: ",
    "deploy/kustomization.yaml": r"^  newTag: ",
    "docs/agents.md": r'^  "kueuecore": "',
    "docs/in-ci.md": r"^- repo: \S+/kueuecore/kueuecore\n  rev: v",
    "docs/run-in-a-cluster.md": r"^  newTag: ",
    "python/kueuecore_apiserver/pyproject.toml": r'^version = "',
}
# Tests have versions of their own as samples, old ones stay in the history, and locks belong to their tools.
_LEFT_ALONE = ("CHANGELOG.md", "tests/", "requirements/", "fuzz/")


class Copy(NamedTuple):
    """A version in a file."""

    file: str
    line: int
    version: str


def source(root: Path = ROOT) -> str:
    """Return the version that `Cargo.toml` gives to the crates, and so to the wheel."""
    manifest = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def copies(root: Path = ROOT) -> list[Copy]:
    """Return every copy of the version, in the order of files and lines.

    Raises:
        ValueError: A field of `FIELDS` is not in its file.
    """
    found = []
    for file in _files(root):
        text = (root / file).read_text("utf-8")
        for pattern in _patterns(file):
            matches = list(pattern.finditer(text))
            if not matches and pattern is not _NAMED:
                raise ValueError(f"{file} has no version after {FIELDS[file]}: change FIELDS in {Path(__file__).name}")
            found += [Copy(file, text.count("\n", 0, match.start(2)) + 1, match[2]) for match in matches]
    return sorted(found)


def _files(root: Path) -> list[str]:
    """Return the files that may have a copy."""
    # Also new files; not those that git ignores.
    grep = ["git", "-C", str(root), "grep", "--untracked", "-IlzE", r"kueuecore(==|:|@v|//deploy\?ref=v)[0-9]"]
    named = subprocess.run(grep, check=False, capture_output=True, text=True).stdout.split("\0")
    return sorted({*FIELDS, *(name for name in named if name and not name.startswith(_LEFT_ALONE))})


def _patterns(file: str) -> list[re.Pattern[str]]:
    fields = [re.compile(f"(?m)({FIELDS[file]})({_VERSION})")] if file in FIELDS else []
    return [_NAMED, *fields]


def _write(root: Path, version: str) -> list[str]:
    """Write the version into all copies, and return the files that change."""
    changed = []
    for file in sorted({copy.file for copy in copies(root) if copy.version != version}):
        text = (root / file).read_text("utf-8")
        for pattern in _patterns(file):
            text = pattern.sub(lambda match: match[1] + version, text)
        (root / file).write_text(text, "utf-8")
        changed.append(file)
    return changed


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write the copies, and print which files have changed; returns 2 for something that is no version."""
    if arguments:
        (version,) = arguments
        if not re.fullmatch(_VERSION, version):
            print(f"{version!r} is no version such as 0.2.0", file=sys.stderr)
            return 2
        manifest = root / "Cargo.toml"
        manifest.write_text(_SOURCE.sub(lambda match: match[1] + version, manifest.read_text("utf-8")), "utf-8")
    for file in _write(root, source(root)):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
