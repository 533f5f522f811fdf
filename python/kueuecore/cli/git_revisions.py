"""Files as they are in a commit of the Git repository around the current directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kueuecore.errors import ManifestError, Problem

__all__ = ["Checkout", "checked_out", "in_repository"]

_LINK = b"120000"
_SUBMODULE = b"160000"
_SHOWN_HASH = 10


@dataclass(frozen=True, slots=True)
class Checkout:
    """Files of a commit in a folder of their own.

    Args:
        revision: The commit as it was asked for.
        folder: Where its files are.
        top: The root of the repository.
    """

    revision: str
    folder: Path
    top: Path

    @property
    def name(self) -> str:
        """The commit for people: a hash is shortened."""
        is_hash = len(self.revision) >= 40 and all(letter in "0123456789abcdef" for letter in self.revision)
        return self.revision[:_SHOWN_HASH] if is_hash else self.revision

    def path(self, path: str) -> Path:
        """Return where a file of the working tree is in the commit; it may not exist there.

        Raises:
            ManifestError: The path leads out of the repository.
        """
        return self.folder / _inside(path, self.top)

    def without(self, problems: Iterable[Problem]) -> bool:
        """Remove the files that problems are about.

        Args:
            problems: The problems.

        Returns:
            Whether any were removed.
        """
        files = {Path(problem.file) for problem in problems if problem.file}
        broken = [file for file in files if file.is_relative_to(self.folder)]
        removed = False
        for file in broken:
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file)
                removed = True
            elif file.is_symlink() or file.exists():
                file.unlink()
                removed = True
        return removed

    def named(self, file: str) -> str:
        """Return the name that Git has for a file, `COMMIT:PATH`; of other files, their own."""
        path = Path(file)
        inside = bool(file) and path.is_relative_to(self.folder)
        return f"{self.name}:{path.relative_to(self.folder).as_posix()}" if inside else file

    def with_names(self, text: str) -> str:
        """Return a text with Git's names of files."""
        return text.replace(f"{self.folder}{os.sep}", f"{self.name}:")


def in_repository(path: str) -> bool:
    """Return whether a path is one of the repository around the current directory.

    Raises:
        ManifestError: There is no repository.
    """
    return _absolute(path).is_relative_to(_top())


@contextmanager
def checked_out(revision: str, paths: Sequence[str]) -> Iterator[Checkout]:
    """Check out some files of a commit, without a change to the repository, and remove them at the end.

    Args:
        revision: A branch, a tag or a hash.
        paths: Files and directories of the working tree, which the commit may lack.

    Raises:
        ManifestError: Git is missing, this is no repository, a path leads out of it, or there is no such commit.
    """
    top = _top()
    wanted = [_inside(path, top).as_posix() for path in paths]
    commit = _commit(revision, top)
    with tempfile.TemporaryDirectory(prefix="kueuecore-") as scratch:
        folder = Path(scratch).resolve() / "tree"
        folder.mkdir()
        # An index of its own: neither that of the repository nor its files change, and no hook runs.
        environment = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        _git("read-tree", commit, cwd=top, environment=environment)
        files = _files(top, [] if "." in wanted else [f":(top,literal){path}" for path in wanted], environment)
        names = b"".join(name + b"\0" for name in files)
        _git("checkout-index", "-z", "--stdin", f"--prefix={folder}/", cwd=top, environment=environment, given=names)
        yield Checkout(revision, folder, top)


def _top() -> Path:
    return Path(os.fsdecode(_git("rev-parse", "--show-toplevel").rstrip(b"\r\n")))


def _files(top: Path, wanted: Sequence[str], environment: dict[str, str]) -> list[bytes]:
    """Return the names of the files in some paths; all of the commit if a link among them may lead to others."""
    listed = _git("ls-files", "-z", "--stage", "--", *wanted, cwd=top, environment=environment).split(b"\0")
    if any(entry.startswith(_LINK) for entry in listed):
        listed = _git("ls-files", "-z", "--stage", cwd=top, environment=environment).split(b"\0")
    return [entry.partition(b"\t")[2] for entry in listed if entry and not entry.startswith(_SUBMODULE)]


def _commit(revision: str, top: Path) -> str:
    """Return the hash of a commit.

    Raises:
        ManifestError: There is none of that name.
    """
    if revision and "\0" not in revision:
        name = f"{revision}^{{commit}}"
        ran = _run("rev-parse", "--verify", "--quiet", "--end-of-options", name, cwd=top)
        if ran.returncode == 0:
            return ran.stdout.decode("ascii").strip()
    remedy = "name a branch, a tag or a hash; fetch it first if the clone is shallow: git fetch --depth=1 origin main"
    raise ManifestError.of(f"there is no commit {revision!r}", field="--against", remedy=remedy)


def _absolute(path: str) -> Path:
    # The last part may be a link: Git follows those before it alone.
    found = Path(os.path.abspath(path))  # noqa: PTH100  # `..` after a link is left to the parent's own resolution
    return found.parent.resolve() / found.name


def _inside(path: str, top: Path) -> Path:
    """Return a path relative to the root of the repository.

    Raises:
        ManifestError: It leads out of it.
    """
    found = _absolute(path)
    if path != "-" and found.is_relative_to(top):
        return found.relative_to(top)
    message = "only files of the repository have an older state"
    raise ManifestError.of(message, remedy="name files of this repository, or give both states: --before", file=path)


def _git(
    *arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None, given: bytes = b""
) -> bytes:
    """Run Git and return what it prints.

    Raises:
        ManifestError: It fails; the message is its own.
    """
    ran = _run(*arguments, cwd=cwd, environment=environment, given=given)
    if ran.returncode == 0:
        return ran.stdout
    said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
    message = f"git {arguments[0]}: {said[0] if said else f'exit code {ran.returncode}'}"
    raise ManifestError.of(message, field="--against", remedy="run it in a clone, or give both states: --before")


def _run(
    *arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    no_hooks = f"core.hooksPath={os.devnull}"
    command = ["git", "-c", no_hooks, *arguments]
    variables = {**os.environ, "LC_ALL": "C", **(environment or {})}
    try:
        return subprocess.run(command, cwd=cwd, env=variables, input=given, capture_output=True, check=False)
    except FileNotFoundError:
        remedy = "install Git, or give both states: --before"
        raise ManifestError.of("there is no git on PATH", field="--against", remedy=remedy) from None
