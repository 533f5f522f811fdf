"""The connection to one worker: is it there, since when not, and when is it tried again (rules/06 §2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore._conditions import with_condition
from kueuecore._json import JsonObject
from kueuecore.multikueue.work_queue import failure_delay_ns
from kueuecore.times import backoff_ns, format_time

__all__ = ["Connection", "ConnectionReason", "establish_timeout_ns", "retry_delay_ns"]

_SECOND_NS = 1_000_000_000
_RETRY_NS = 5 * _SECOND_NS
_MOST_STEPS = 7
_FIRST_ESTABLISH_NS = 60 * _SECOND_NS
_LAST_ESTABLISH_NS = 600 * _SECOND_NS


class ConnectionReason(StrEnum):
    """Why a MultiKueueCluster is not Active."""

    BAD_KUBE_CONFIG = "BadKubeConfig"
    """The kubeconfig cannot be read."""
    INSECURE_KUBE_CONFIG = "InsecureKubeConfig"
    """It is not safe (`kubeconfig_problem`)."""
    BAD_CLUSTER_PROFILE = "BadClusterProfile"
    """The ClusterProfile cannot be read."""
    BAD_REST_CONFIG = "BadRestConfig"
    """What the ClusterProfile gives is not safe."""
    CLUSTER_PROFILE_DISABLED = "MultiKueueClusterProfileFeatureDisabled"
    """There is a ClusterProfile, and its gate is off."""
    CONNECTION_FAILED = "ClientConnectionFailed"
    """Client or watches cannot be made."""

    @property
    def is_of_configuration(self) -> bool:
        """Is it about the credentials, before anything is connected?"""
        return self is not ConnectionReason.CONNECTION_FAILED


def retry_delay_ns(n_failed: int) -> int:
    """How long to wait after this many failed attempts: 5 s, 10 s … 320 s.

    Example:
        >>> [retry_delay_ns(n) // 10**9 for n in (0, 1, 2, 7, 8)]
        [0, 5, 10, 320, 320]
    """
    return int(2 ** (min(n_failed, _MOST_STEPS) - 1) * _RETRY_NS) if n_failed else 0


def establish_timeout_ns(attempt: int) -> int:
    """How long the watches may take to come up at an attempt, from 1: a minute, two … ten.

    Example:
        >>> [establish_timeout_ns(n) // 60_000_000_000 for n in (1, 2, 4, 5)]
        [1, 2, 8, 10]
    """
    return backoff_ns(attempt, first_ns=_FIRST_ESTABLISH_NS, longest_ns=_LAST_ESTABLISH_NS)


@dataclass(slots=True)
class Connection:
    """The state of the connection to one worker.

    Args:
        lost_at: When it was lost first, kept while attempts fail; None while it is connected. One that never was
            connected counts from when it was made.
        is_connected: Are all watches up?
        n_failed: Failed attempts since it was connected, or since its credentials changed.
        n_unreadable: How often in a row its credentials could not be read.
        next_attempt: No attempt before this time.
        source: Where its credentials are, as last tried.
        waits_for_source: Were the credentials not found? Then nothing is tried before they change.
    """

    lost_at: int | None
    is_connected: bool = False
    n_failed: int = 0
    n_unreadable: int = 0
    next_attempt: int = 0
    source: JsonObject | None = None
    waits_for_source: bool = False

    def connected(self) -> None:
        """All watches are up."""
        self.is_connected, self.lost_at = True, None
        self.n_failed = self.n_unreadable = self.next_attempt = 0

    def lost(self, now: int) -> None:
        """It is not connected any more; the first loss counts."""
        self.is_connected = False
        if self.lost_at is None:
            self.lost_at = now

    def failed(self, now: int) -> None:
        """An attempt failed: wait longer each time."""
        self.lost(now)
        self.n_failed += 1
        self.next_attempt = now + retry_delay_ns(self.n_failed)

    def unreadable(self, now: int, *, is_missing: bool) -> None:
        """Its credentials are no good: read them again later, or once they are there."""
        self.lost(now)
        self.n_unreadable += 1
        self.next_attempt = now + failure_delay_ns(self.n_unreadable)
        self.waits_for_source = is_missing

    def still_pending(self, now: int) -> None:
        """An attempt before is still under way: look again soon, without counting it."""
        self.lost(now)
        self.next_attempt = now + _RETRY_NS

    def changed(self, source: JsonObject) -> None:
        """The credentials are others, or somewhere else: begin again."""
        self.source = source
        self.n_failed = self.n_unreadable = self.next_attempt = 0
        self.waits_for_source = False

    def status(self, cluster: JsonObject, reason: ConnectionReason | None, error: str, now: int) -> JsonObject:
        """The status of a MultiKueueCluster: with condition Active, and its reason and message.

        Args:
            cluster: The MultiKueueCluster as it is stored.
            reason: Why it is not Active; None if it is.
            error: What is wrong.
            now: The time.
        """
        if reason is None:
            return with_condition(cluster, "Active", is_true=True, reason="Active", message="Connected", now=now)
        message = f"load client config failed: {error}" if reason.is_of_configuration else error
        if self.n_failed:
            at = format_time(self.next_attempt // _SECOND_NS * _SECOND_NS)
            message += f"; connection attempts: {self.n_failed}, next connection attempt: {at}"
        return with_condition(cluster, "Active", is_true=False, reason=reason, message=message, now=now)
