"""Reads the process settings of Kueue's Configuration: addresses, the Lease, and the rate of requests."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kueuecore._json import JsonObject, int_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.times import SECOND_NS, duration_ns

__all__ = ["Address", "ServeSettings"]

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on.

    Args:
        host: A host name or address; empty: all addresses.
        port: The port; 0: any free one.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `HOST:PORT` or `:PORT`; None if it is `0` or empty: do not listen.

        Raises:
            ValueError: It is not an address.

        Example:
            >>> Address.parse(":8080")
            Address(host='', port=8080)
        """
        if text in ("", "0"):
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            raise ValueError(f"{text!r} is no address to listen at: write HOST:PORT or :PORT, or 0 for none")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The settings in the Configuration that affect the process, not its decisions.

    Args:
        metrics: Where to serve metrics.
        health: Where to serve health.
        lease: The Lease that elects the deciding replica; None: this process always decides.
        qps: `clientConnection.qps`; None: no limit.
        burst: `clientConnection.burst`.
    """

    metrics: Address | None
    health: Address | None
    lease: LeaseSettings | None
    qps: float | None
    burst: int

    @classmethod
    def of(cls, configuration: Configuration | None) -> Self:
        """Read them from a Configuration; without one, from Kueue's defaults.

        Raises:
            ValueError: A bind address cannot be read, or the Lease would expire before it is renewed.
        """
        settings = (configuration or Configuration()).to_dict()
        qps = object_at(settings, "clientConnection").get("qps")
        return cls(
            metrics=_address(settings, "metrics", "bindAddress"),
            health=_address(settings, "health", "healthProbeBindAddress"),
            lease=_lease(settings),
            qps=float(qps) if isinstance(qps, int | float) and qps > 0 else None,
            burst=int_at(settings, "clientConnection", "burst", default=1),
        )


def _lease(settings: JsonObject) -> LeaseSettings | None:
    election = object_at(settings, "leaderElection")
    if not election.get("leaderElect"):
        return None

    def seconds(name: str, default: int) -> int:
        text = text_at(election, name)
        return max(1, round(duration_ns(text) / SECOND_NS)) if text else default

    lease = LeaseSettings(
        namespace=text_at(election, "resourceNamespace") or _own_namespace() or text_at(settings, "namespace"),
        name=text_at(election, "resourceName"),
        identity=f"{os.environ.get('POD_NAME') or socket.gethostname()}_{os.getpid()}",
        duration_seconds=seconds("leaseDuration", 15),
        deadline_seconds=seconds("renewDeadline", 10),
        retry_seconds=seconds("retryPeriod", 2),
    )
    if lease.duration_seconds <= lease.deadline_seconds:
        raise ValueError(
            f"leaderElection.leaseDuration: Invalid value: {lease.duration_seconds}s: must be longer than "
            f"renewDeadline, which is {lease.deadline_seconds}s"
        )
    # The client waits up to a fifth longer.
    if lease.deadline_seconds <= 1.2 * lease.retry_seconds:
        raise ValueError(
            f"leaderElection.renewDeadline: Invalid value: {lease.deadline_seconds}s: must be longer than 1.2 times "
            f"retryPeriod, which is {lease.retry_seconds}s"
        )
    return lease


def _address(settings: JsonObject, *path: str) -> Address | None:
    try:
        return Address.parse(text_at(settings, *path))
    except ValueError as error:
        raise ValueError(f"{'.'.join(path)}: {error}") from None


def _own_namespace() -> str:
    """Return the namespace of the pod in which this runs; empty outside of a cluster."""
    return _NAMESPACE_FILE.read_text().strip() if _NAMESPACE_FILE.is_file() else ""
