"""Keeps the lists of a large cluster in the user's cache folder, so that the next question asks only for changes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kueuecore._json import JsonObject
from kueuecore._replaced_files import replaced
from kueuecore.version import version

__all__ = ["CachedCluster", "ClusterCache"]

_FORMAT = "kueuecore.cluster/1"
# No server remembers changes for longer.
_MAX_AGE_SECONDS = 3600.0
_MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class CachedCluster:
    """A cluster at one time.

    Args:
        versions: `resourceVersion` up to which each large kind was read.
        objects: All objects but Workloads, by kind.
        engine: A saved engine that holds all objects, before any cycle.
        written_at: When it was written, in seconds since 1970.
    """

    versions: Mapping[str, str]
    objects: Mapping[str, Sequence[JsonObject]]
    engine: bytes
    written_at: float


class ClusterCache:
    """A file of one cluster that only its owner can read. A damaged file counts as none.

    Args:
        host: URL of the API server.
        context: The context, as its user may see other objects than another one.
        namespace: The namespace of the questions.
        folder: Where it is; by default the user's cache folder.
    """

    def __init__(self, host: str, context: str, namespace: str, *, folder: Path | None = None) -> None:
        name = hashlib.sha256("\0".join((host, context, namespace, version())).encode()).hexdigest()[:32]
        self.path = (folder or _user_folder()) / "clusters" / name

    def read(self, *, now: float) -> CachedCluster | None:
        """Return what was written; None if it is missing or unusable.

        Args:
            now: The time in seconds since 1970.
        """
        try:
            with self.path.open("rb") as file:
                if not _is_private(os.fstat(file.fileno())):
                    return None
                data = file.read(_MAX_BYTES)
            head, _, rest = data.partition(b"\n")
            objects, _, engine = rest.partition(b"\n")
            read = json.loads(head)
            if read["format"] != _FORMAT or not 0 <= now - read["writtenAt"] < _MAX_AGE_SECONDS:
                return None
            return CachedCluster(read["versions"], json.loads(objects), engine, read["writtenAt"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, cluster: CachedCluster) -> None:
        """Replace the file; failure is no error."""
        head = {"format": _FORMAT, "versions": dict(cluster.versions), "writtenAt": cluster.written_at}
        lines = [json.dumps(head), json.dumps(cluster.objects, separators=(",", ":"))]
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replaced(self.path, mode=0o600) as file:
                file.write("".join(f"{line}\n" for line in lines).encode())
                file.write(cluster.engine)


def _is_private(found: os.stat_result) -> bool:
    """Whether the user owns it and nobody else can write it; Windows has other rights."""
    if sys.platform == "win32":
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _user_folder() -> Path:
    """The system's folder for caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "kueuecore"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kueuecore"
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "kueuecore"
