"""Serves metrics as Kueue does, over TLS to whom the API server allows it; on a loopback address over plain HTTP."""

from __future__ import annotations

from collections.abc import Callable

from kueuecore.kubernetes.api import Answered, Api
from kueuecore.kubernetes.endpoints import ProcessMetrics, serve_metrics
from kueuecore.kubernetes.https.certificates import FileCertificates, OwnCertificates
from kueuecore.kubernetes.https.delegated_access import DelegatedAccess
from kueuecore.kubernetes.https.tls import KeyPairs, TlsContexts
from kueuecore.kubernetes.settings import Address, ServeSettings

__all__ = ["serve_secured_metrics"]


def serve_secured_metrics(
    address: Address,
    settings: ServeSettings,
    metrics: ProcessMetrics,
    connect: Callable[[Answered, float | None, int], Api],
) -> int:
    """Serve metrics in threads; return the port.

    Args:
        address: Where to listen.
        settings: Whether over TLS, and the certificates.
        metrics: What to show.
        connect: Makes the `Api` that is asked about clients.

    Raises:
        ListenError: Cannot listen on the address.
        CertificateError: There is no certificate, or the extra for making one is not installed.
    """
    wanted = settings.certificates
    is_secure = not address.is_loopback if wanted.secures_metrics is None else wanted.secures_metrics
    if not is_secure:
        return serve_metrics(address, metrics)
    folder = wanted.metrics_folder
    pairs: KeyPairs = OwnCertificates(["localhost"]) if folder is None else FileCertificates(folder)
    access = DelegatedAccess(connect(metrics.count_request, settings.qps, settings.burst))
    return serve_metrics(address, metrics, tls=TlsContexts(pairs, options=wanted.tls), access=access)
