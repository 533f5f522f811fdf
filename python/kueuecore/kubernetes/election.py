"""Elects the replica that decides, by a Lease and the election of the `kubernetes` client."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubernetes.client import CoordinationV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import leaderelection
from kubernetes.leaderelection.electionconfig import Config
from kubernetes.leaderelection.leaderelectionrecord import LeaderElectionRecord
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

from kueuecore._text import logged
from kueuecore.errors import KueuecoreError
from kueuecore.kubernetes.api import Api

__all__ = ["Election", "LeaseLostError", "LeaseSettings"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")


class LeaseLostError(KueuecoreError):
    """The Lease was lost: another replica may be deciding by now."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Settings of the Lease, as in `leaderElection` of Kueue's Configuration.

    Args:
        namespace: Its namespace.
        name: Its name; Kueue's own, so that the two never decide at the same time.
        identity: The name of this replica.
        duration_seconds: How long it is valid after the last renewal.
        deadline_seconds: How long the holder tries to renew it before it gives up.
        retry_seconds: How long a replica waits before it tries again.
    """

    namespace: str
    name: str
    identity: str
    duration_seconds: int = 15
    deadline_seconds: int = 10
    retry_seconds: int = 2


class Election:
    """Takes part in a leader election, in a thread of its own.

    Args:
        api: The API server.
        settings: The Lease.
        won: Called once this replica holds the Lease, in that thread.
        lost: Called with the reason when it no longer holds the Lease, or cannot get it.
    """

    def __init__(
        self,
        api: Api,
        settings: LeaseSettings,
        *,
        won: Callable[[], None],
        lost: Callable[[BaseException], None],
    ) -> None:
        self._settings, self._won, self._lost = settings, won, lost
        self._lock = _Lock(api, settings)

    def start(self) -> None:
        """Start trying to get the Lease."""
        threading.Thread(target=self._run, name="election", daemon=True).start()

    def confirm(self) -> None:
        """Make sure that this replica holds the Lease, if it is longer ago that it was renewed than the Lease lasts.

        A process that was stopped, or waited long for a processor, would decide although another has taken over.

        Raises:
            LeaseLostError: It does not, or nobody can tell.
        """
        self._lock.confirm()

    def release(self) -> None:
        """Release the Lease, so that the next replica need not wait until it expires."""
        self._lock.release()

    def _run(self) -> None:
        it = self._settings
        lease = f"Lease {it.namespace}/{it.name}"
        try:
            times = it.duration_seconds, it.deadline_seconds, it.retry_seconds
            config = Config(self._lock, *times, self._won, lambda: None)
            leaderelection.LeaderElection(config).run()
        except _ReleasedError:
            return
        except LeaseLostError as error:
            self._lost(error)
            return
        except SystemExit as error:
            # The client's election rejects these settings.
            self._lost(ValueError(f"{lease}: {error}"))
            return
        except BaseException as error:
            error.add_note(f"in the election by {lease}")
            self._lost(error)
            return
        self._lost(LeaseLostError(f"{lease} could not be renewed for {it.deadline_seconds} s"))


class _ReleasedError(BaseException):
    """The Lease was released: the election is over."""


class _Lock(LeaseLock):
    """A Lease whose unanswered requests count as refused, and are retried."""

    def __init__(self, api: Api, settings: LeaseSettings) -> None:
        super().__init__(settings.name, settings.namespace, settings.identity)  # type: ignore[no-untyped-call]
        self.api_instance: Any = _Answering(CoordinationV1Api(api.client), settings)
        self._mutex = threading.Lock()
        self._is_released = False
        self._seconds = settings.duration_seconds
        # When it was last written, on a clock that goes on while the process is stopped; None: it was not yet.
        self._written: float | None = None

    def get(self, name: str, namespace: str) -> Any:
        with self._mutex:
            self._require_held()
            return self._read()

    def create(self, name: str, namespace: str, election_record: LeaderElectionRecord) -> bool:
        with self._mutex:
            self._require_held()
            begin = time.monotonic()
            is_created = bool(super().create(name, namespace, election_record))  # type: ignore[no-untyped-call]
            return self._noted(is_created, begin)

    def update(self, name: str, namespace: str, updated_record: LeaderElectionRecord) -> bool:
        with self._mutex:
            self._require_held()
            begin = time.monotonic()
            return self._noted(self._put(updated_record), begin)

    def confirm(self) -> None:
        with self._mutex:
            begin = time.monotonic()
            if self._written is None or begin - self._written < self._seconds:
                return
            is_there, record = self._read()
            if is_there and record.holder_identity == self.identity:
                record.renew_time = str(datetime.fromtimestamp(time.time()))
                if self._noted(self._put(record), begin):
                    return
            raise LeaseLostError(f"Lease {self.namespace}/{self.name} was not renewed for {self._seconds} s")

    def release(self) -> None:
        with self._mutex:
            self._is_released = True
            is_there, record = super().get(self.name, self.namespace)  # type: ignore[no-untyped-call]
            if is_there and record.holder_identity == self.identity:
                record.holder_identity, record.lease_duration = "", "1"
                if not self._put(record):
                    _LOGGER.warning("the lease could not be given up; it ends by itself")

    def _require_held(self) -> None:
        if self._is_released:
            raise _ReleasedError

    def _read(self) -> tuple[bool, Any]:
        """Read the Lease.

        Raises:
            LeaseLostError: This replica held it, and another does now.
        """
        is_there, record = super().get(self.name, self.namespace)  # type: ignore[no-untyped-call]
        holder = record.holder_identity if is_there else ""
        if self._written is not None and holder not in ("", None, self.identity):
            raise LeaseLostError(f"Lease {self.namespace}/{self.name} is held by {holder}")
        return is_there, record

    def _noted(self, is_written: bool, begin: float) -> bool:
        if is_written:
            self._written = begin
        return is_written

    def _put(self, record: LeaderElectionRecord) -> bool:
        return bool(super().update(self.name, self.namespace, record))  # type: ignore[no-untyped-call]


class _Answering:
    """The calls of an API whose answers may be missing or unreadable; each problem is logged once."""

    def __init__(self, api: CoordinationV1Api, settings: LeaseSettings) -> None:
        self._api, self._lease = api, f"{settings.namespace}/{settings.name}"
        self._seconds = max(1, settings.deadline_seconds // 2)
        self._logged = ""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._api, name)

        def answer(*arguments: object, **options: object) -> object:
            try:
                found = call(*arguments, **options, _request_timeout=self._seconds)
            except ApiException as error:
                # A missing Lease is created, and of several replicas that write it all but one are refused.
                if error.status != 409 and not (error.status == 404 and name.startswith("read_")):
                    self._log(f"{error.status} {error.reason}: {error.body or ''}")
                raise
            # No answer, or not a Lease: what the client raises then is not documented.
            except Exception as error:
                self._log(str(error))
                raise ApiException(reason=str(error)) from error
            if not name.startswith("read_"):
                self._logged = ""
            return found

        return answer

    def _log(self, error: str) -> None:
        text = logged(error)
        if text != self._logged:
            self._logged = text
            _LOGGER.warning("the lease cannot be used, is tried again", extra={"lease": self._lease, "error": text})
