"""The connection to one worker: whether it is up, since when it is down, and when to retry (rules/06 §2)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueuecore._conditions import with_condition
from kueuecore._json import JsonObject
from kueuecore.multikueue.work_queue import failure_delay_ns
from kueuecore.times import SECOND_NS, backoff_ns, format_time

__all__ = ["Connection", "ConnectionReason", "establish_timeout_ns", "retry_delay_ns"]

_RETRY_NS = 5 * SECOND_NS
_MAX_STEPS = 7
_FIRST_ESTABLISH_NS = 60 * SECOND_NS
_LAST_ESTABLISH_NS = 600 * SECOND_NS


class ConnectionReason(StrEnum):
    """Why a MultiKueueCluster is not Active."""

    BAD_KUBE_CONFIG = "BadKubeConfig"
    """The kubeconfig cannot be read."""
    INSECURE_KUBE_CONFIG = "InsecureKubeConfig"
    """The kubeconfig is not safe (`kubeconfig_problem`)."""
    BAD_CLUSTER_PROFILE = "BadClusterProfile"
    """The ClusterProfile cannot be read."""
    BAD_REST_CONFIG = "BadRestConfig"
    """The credentials that the ClusterProfile yields are not safe."""
    CLUSTER_PROFILE_DISABLED = "MultiKueueClusterProfileFeatureDisabled"
    """The cluster uses a ClusterProfile, but the gate is off."""
    CONNECTION_FAILED = "ClientConnectionFailed"
    """The client or its watches cannot be created."""

    @property
    def is_of_configuration(self) -> bool:
        """Whether the reason is about the credentials, before any connection is made."""
        return self is not ConnectionReason.CONNECTION_FAILED


def retry_delay_ns(n_failed: int) -> int:
    """Return how long to wait after this many failed attempts: 5 s, 10 s … 320 s.

    Example:
        >>> [retry_delay_ns(n) // 10**9 for n in (0, 1, 2, 7, 8)]
        [0, 5, 10, 320, 320]
    """
    return int(2 ** (min(n_failed, _MAX_STEPS) - 1) * _RETRY_NS) if n_failed else 0


def establish_timeout_ns(attempt: int) -> int:
    """Return how long the watches may take to come up at this attempt (from 1): one minute, two … ten.

    Example:
        >>> [establish_timeout_ns(n) // 60_000_000_000 for n in (1, 2, 4, 5)]
        [1, 2, 8, 10]
    """
    return backoff_ns(attempt, first_ns=_FIRST_ESTABLISH_NS, longest_ns=_LAST_ESTABLISH_NS)


@dataclass(slots=True)
class Connection:
    """The state of the connection to one worker.

    Args:
        lost_at: When it was first lost, kept while attempts fail; None while it is connected. A connection that was
            never up counts as lost from its creation.
        is_connected: Whether all watches are up.
        n_failed: Failed attempts since it was last connected, or since its credentials changed.
        n_unreadable: How often in a row its credentials could not be read.
        next_attempt: Time before which no attempt is made.
        source: Where its credentials were when last tried.
        waits_for_source: Whether the credentials were missing. Then nothing is tried until they change.
    """

    lost_at: int | None
    is_connected: bool = False
    n_failed: int = 0
    n_unreadable: int = 0
    next_attempt: int = 0
    source: JsonObject | None = None
    waits_for_source: bool = False

    def connected(self) -> None:
        """Note that all watches are up."""
        self.is_connected, self.lost_at = True, None
        self.n_failed = self.n_unreadable = self.next_attempt = 0

    def lost(self, now: int) -> None:
        """Note that the connection is lost; the first loss sets the time."""
        self.is_connected = False
        if self.lost_at is None:
            self.lost_at = now

    def failed(self, now: int) -> None:
        """Note that an attempt failed, and wait longer each time."""
        self.lost(now)
        self.n_failed += 1
        self.next_attempt = now + retry_delay_ns(self.n_failed)

    def unreadable(self, now: int, *, is_missing: bool) -> None:
        """Note that its credentials are unusable: read them again later, or once they exist."""
        self.lost(now)
        self.n_unreadable += 1
        self.next_attempt = now + failure_delay_ns(self.n_unreadable)
        self.waits_for_source = is_missing

    def still_pending(self, now: int) -> None:
        """Note that an earlier attempt is still under way: retry soon, without counting it."""
        self.lost(now)
        self.next_attempt = now + _RETRY_NS

    def changed(self, source: JsonObject) -> None:
        """Note that the credentials or their location have changed, and start over."""
        self.source = source
        self.n_failed = self.n_unreadable = self.next_attempt = 0
        self.waits_for_source = False

    def status(
        self,
        cluster: JsonObject,
        reason: ConnectionReason | None,
        error: str,
        now: int,
        *,
        tells_next_attempt: bool = True,
    ) -> JsonObject:
        """Return the status of a MultiKueueCluster: condition Active with its reason and message.

        Args:
            cluster: The stored MultiKueueCluster.
            reason: Why it is not Active; None if it is.
            error: What is wrong.
            now: The time.
            tells_next_attempt: Whether the message counts the attempts, and says when the next one is.
        """
        if reason is None:
            return with_condition(cluster, "Active", is_true=True, reason="Active", message="Connected", now=now)
        message = f"load client config failed: {error}" if reason.is_of_configuration else error
        if self.n_failed and tells_next_attempt:
            at = format_time(self.next_attempt // SECOND_NS * SECOND_NS)
            message += f"; connection attempts: {self.n_failed}, next connection attempt: {at}"
        return with_condition(cluster, "Active", is_true=False, reason=reason, message=message, now=now)
