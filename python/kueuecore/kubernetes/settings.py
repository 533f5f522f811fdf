"""Reads the process settings of Kueue's Configuration: addresses, the Lease, and the rate of requests."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.kubernetes.https.tls import TlsOptions
from kueuecore.kubernetes.snapshots import ForecastSettings
from kueuecore.times import SECOND_NS, duration_ns

__all__ = ["Address", "CertificateSettings", "ServeSettings", "WebhookSettings"]

# Where Kueue's manifests mount the certificates of others.
_METRICS_FOLDER = Path("/etc/kueue/metrics/certs")
_VISIBILITY_FOLDER = Path("/visibility")
_VISIBILITY_PORT = 8082
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

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

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
class WebhookSettings:
    """Where webhooks are served, and with which certificate.

    Args:
        address: Where to serve them.
        namespace: The namespace of their Service and Secret.
        service: The name of the Service.
        secret: The name of the Secret with a certificate that this process makes and renews; empty: it is in `folder`.
        folder: The folder with `tls.crt` and `tls.key`, which others renew.
    """

    address: Address
    namespace: str
    service: str
    secret: str
    folder: Path

    @classmethod
    def of(cls, configuration: Configuration | None) -> Self:
        """Read them from a Configuration: `webhook` and `internalCertManagement`; without one, Kueue's defaults."""
        settings = (configuration or Configuration()).to_dict()
        certificates = object_at(settings, "internalCertManagement")
        makes_own = certificates.get("enable") is not False
        return cls(
            address=Address(text_at(settings, "webhook", "host"), int_at(settings, "webhook", "port", default=9443)),
            namespace=_own_namespace() or text_at(settings, "namespace"),
            service=text_at(certificates, "webhookServiceName") or "kueue-webhook-service",
            secret=(text_at(certificates, "webhookSecretName") or "kueue-webhook-server-cert") if makes_own else "",
            folder=Path(text_at(settings, "webhook", "certDir")),
        )


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """Where certificates come from, as in `internalCertManagement` of Kueue's Configuration.

    Args:
        namespace: The namespace of the Secret and of the Service.
        visibility_secret: The Secret with the certificate of the visibility API, which this process makes. It is not
            Kueue's: its pods may go on for their webhooks.
        visibility_service: The Service of the visibility API.
        metrics_folder: The folder with the certificate of the metrics; None: a self-signed one.
        visibility_folder: The folder with that of the visibility API; None: the one in the Secret.
        secures_metrics: Whether metrics are served over TLS, to whom the API server allows it; None: unless their
            address is one of this machine alone.
        tls: What all servers accept.
    """

    namespace: str = "kueue-system"
    visibility_secret: str = "kueuecore-visibility-cert"
    visibility_service: str = "kueuecore-visibility"
    metrics_folder: Path | None = None
    visibility_folder: Path | None = None
    secures_metrics: bool | None = None
    tls: TlsOptions = field(default_factory=TlsOptions)


@dataclass(frozen=True, slots=True)
class ServeSettings:
    """The settings in the Configuration that affect the process, not its decisions.

    Args:
        metrics: Where to serve metrics.
        health: Where to serve health.
        lease: The Lease that elects the deciding replica; None: this process always decides.
        qps: `clientConnection.qps`; None: no limit.
        burst: `clientConnection.burst`.
        visibility: Where to serve the visibility API; by default in a pod alone, with gate VisibilityOnDemand.
        certificates: Where certificates come from.
        webhooks: Where to serve webhooks; None: nowhere.
        forecasts: How to forecast when workloads start; None: not at all.
    """

    metrics: Address | None
    health: Address | None
    lease: LeaseSettings | None
    qps: float | None
    burst: int
    visibility: Address | None = None
    certificates: CertificateSettings = field(default_factory=CertificateSettings)
    webhooks: WebhookSettings | None = None
    forecasts: ForecastSettings | None = None

    @classmethod
    def of(cls, configuration: Configuration | None) -> Self:
        """Read them from a Configuration; without one, from Kueue's defaults.

        Raises:
            ValueError: A bind address cannot be read, or the Lease would expire before it is renewed.
        """
        given = configuration or Configuration()
        settings = given.to_dict()
        qps = object_at(settings, "clientConnection").get("qps")
        return cls(
            metrics=_address(settings, "metrics", "bindAddress"),
            health=_address(settings, "health", "healthProbeBindAddress"),
            # Elsewhere no Service leads to it.
            visibility=_visibility(settings) if _own_namespace() and given.is_enabled("VisibilityOnDemand") else None,
            certificates=_certificates(settings, applies_tls=given.is_enabled("TLSOptions")),
            lease=_lease(settings),
            qps=float(qps) if isinstance(qps, int | float) and qps > 0 else None,
            burst=int_at(settings, "clientConnection", "burst", default=1),
        )


def _certificates(settings: JsonObject, *, applies_tls: bool) -> CertificateSettings:
    managed = object_at(settings, "internalCertManagement")
    return CertificateSettings(
        namespace=_own_namespace() or text_at(settings, "namespace"),
        metrics_folder=None if managed.get("enable") else _METRICS_FOLDER,
        visibility_folder=None if managed.get("enable") else _VISIBILITY_FOLDER,
        tls=_tls(object_at(settings, "tls")) if applies_tls else TlsOptions(),
    )


def _tls(given: JsonObject) -> TlsOptions:
    suites = tuple(map(str, list_at(given, "cipherSuites")))
    return TlsOptions(is_newest=text_at(given, "minVersion") == "VersionTLS13", cipher_suites=suites)


def _visibility(settings: JsonObject) -> Address:
    served = object_at(settings, "visibilityServer")
    return Address(text_at(served, "bindAddress"), int_at(served, "bindPort", default=_VISIBILITY_PORT))


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
