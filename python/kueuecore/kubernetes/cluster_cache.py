"""Keeps the lists of a large cluster in the user's cache folder, so that the next question asks only for changes."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kueuecore._json import JsonObject, text_at
from kueuecore._replaced_files import replaced
from kueuecore.api_server import RefusedError
from kueuecore.errors import ObjectRef, Problem
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.cluster_objects import Listing
from kueuecore.version import version

__all__ = ["CachedCluster", "ClusterCache", "is_of"]

_FORMAT = "kueuecore.cluster/2"
# No server remembers changes for longer.
_MAX_AGE_SECONDS = 3600.0
_MAX_BYTES = 1 << 30
_NAMESPACE = "Namespace"
# As long as there is a cluster, nobody can delete it.
_FIXED = "kube-system"
_LONGEST_VERSION = 20


@dataclass(frozen=True, slots=True)
class CachedCluster:
    """A cluster at one time.

    Args:
        versions: `resourceVersion` up to which each large kind was read.
        objects: All objects but Workloads, by kind.
        engine: A saved engine that holds all objects, before any cycle.
        written_at: When it was written, in seconds since 1970.
        refused: What is wrong with objects of large kinds that the engine does not take.
    """

    versions: Mapping[str, str]
    objects: Mapping[str, Sequence[JsonObject]]
    engine: bytes
    written_at: float
    refused: tuple[Problem, ...] = ()


def is_of(cached: CachedCluster, listing: Listing, api: Api) -> bool:
    """Return whether a cluster may have become what is listed; not if another one has its address, or an old backup.

    Args:
        cached: The cluster as it was.
        listing: What is listed now.
        api: Its server, for what is not.
    """
    uid = _uid(cached.objects.get(_NAMESPACE, ()))
    if uid and _NAMESPACE in cached.versions:
        with suppress(RefusedError):
            if _uid([api.get(f"/api/v1/namespaces/{_FIXED}")]) not in ("", uid):
                return False
    elif uid and _NAMESPACE in listing.kinds and _uid(listing.kinds[_NAMESPACE].objects) not in ("", uid):
        return False
    # Versions only grow; a server that is asked for what follows a later one just waits.
    newest = max((_number(listed.version) for listed in listing.kinds.values()), default=0)
    return not newest or max(map(_number, cached.versions.values()), default=0) <= newest


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
        folder = folder or _user_folder()
        self.path = None if folder is None else folder / "clusters" / name
        """The file; None: the system has no place for it."""

    def read(self, *, now: float) -> CachedCluster | None:
        """Return what was written; None if it is missing or unusable.

        Args:
            now: The time in seconds since 1970.
        """
        try:
            # Opening a pipe would wait for its other end.
            if self.path is None or not self.path.is_file():
                return None
            with self.path.open("rb") as file:
                if not _is_private(os.fstat(file.fileno())):
                    return None
                data = file.read(_MAX_BYTES)
            head, _, rest = data.partition(b"\n")
            objects, _, engine = rest.partition(b"\n")
            read = json.loads(head)
            if read["format"] != _FORMAT or not 0 <= now - read["writtenAt"] < _MAX_AGE_SECONDS:
                return None
            if read["crc32"] != zlib.crc32(rest):
                return None
            refused = tuple(map(_problem, read["refused"]))
            return CachedCluster(read["versions"], json.loads(objects), engine, read["writtenAt"], refused)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def write(self, cluster: CachedCluster) -> None:
        """Replace the file; failure is no error."""
        if self.path is None:
            return
        rest = json.dumps(cluster.objects, separators=(",", ":")).encode() + b"\n" + cluster.engine
        head = {
            "format": _FORMAT,
            "versions": dict(cluster.versions),
            "writtenAt": cluster.written_at,
            "refused": [asdict(problem) for problem in cluster.refused],
            "crc32": zlib.crc32(rest),
        }
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replaced(self.path, mode=0o600) as file:
                file.write(json.dumps(head).encode() + b"\n")
                file.write(rest)


def _uid(namespaces: Iterable[JsonObject]) -> str:
    found = (text_at(plain, "metadata", "uid") for plain in namespaces if text_at(plain, "metadata", "name") == _FIXED)
    return next(found, "")


def _number(version: str) -> int:
    return int(version) if version.isascii() and version.isdigit() and len(version) <= _LONGEST_VERSION else 0


def _problem(plain: JsonObject) -> Problem:
    values: Any = {**plain, "object": None}
    about: Any = plain["object"]
    return replace(Problem(**values), object=about and ObjectRef(**about))


def _is_private(found: os.stat_result) -> bool:
    """Whether the user owns it and nobody else can write it; Windows has other rights."""
    if sys.platform == "win32":
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _user_folder() -> Path | None:
    """The system's folder for caches; None if the user has no home, as in some pods."""
    try:
        return _folder_of_system()
    except RuntimeError:
        return None


def _folder_of_system() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "kueuecore"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kueuecore"
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else Path.home() / ".cache") / "kueuecore"
