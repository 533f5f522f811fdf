"""Which kinds of a cluster are not followed at the moment, and since when: what is known of them may be old."""

from __future__ import annotations

import threading
import time

from kueuecore.api_server import RefusedError

__all__ = ["LostKinds"]

_FORBIDDEN = 403


class LostKinds:
    """Kinds whose watch has ended or failed, until it is open again. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since: dict[str, tuple[float, str]] = {}

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that are not watched at the moment."""
        with self._lock:
            return frozenset(self._since)

    def lost(self, kind: str, error: Exception | None) -> None:
        """Report that a watch has ended, or failed."""
        # What may not be watched is listed again and again instead.
        is_silent = error is None or (isinstance(error, RefusedError) and error.code == _FORBIDDEN)
        with self._lock:
            since, reason = self._since.get(kind, (time.monotonic(), ""))
            self._since[kind] = since, reason if is_silent else str(error)

    def found(self, kind: str) -> None:
        """Report that a kind is watched."""
        with self._lock:
            self._since.pop(kind, None)

    def problem(self, seconds: float) -> str:
        """Return why a kind has not been followed for this long; empty if all are."""
        now = time.monotonic()
        with self._lock:
            found = (reason for since, reason in self._since.values() if reason and now - since >= seconds)
            return min(found, default="")
