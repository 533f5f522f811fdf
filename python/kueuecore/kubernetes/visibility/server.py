"""Runs the visibility API: its port, its certificate, and what it follows of the API server."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kueuecore._json import object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.endpoints import Health
from kueuecore.kubernetes.https.ca_bundles import API_SERVICES, publish_cas
from kueuecore.kubernetes.https.certificates import FileCertificates
from kueuecore.kubernetes.https.delegated_access import DelegatedAccess
from kueuecore.kubernetes.https.front_proxy import FrontProxy
from kueuecore.kubernetes.https.messages import ServerLimits
from kueuecore.kubernetes.https.secret_certificates import SecretCertificates
from kueuecore.kubernetes.https.server import HttpServer
from kueuecore.kubernetes.https.tls import KeyPairs, TlsContexts
from kueuecore.kubernetes.settings import Address, CertificateSettings
from kueuecore.kubernetes.visibility.api import Pending, VisibilityApi
from kueuecore.kubernetes.visibility.documents import GROUP, VERSIONS

__all__ = ["VisibilityServer"]

# Each forwarded request may be a connection of its own.
_LIMITS = ServerLimits(connections=100)
# As servers behind the aggregation layer remember: shorter than metrics do, for people change their roles and try.
_REMEMBERED_SECONDS = 10.0


class VisibilityServer:
    """Serves the visibility API until it is stopped.

    Args:
        address: Where to listen.
        certificates: Where its certificate comes from.
        connect: Makes a connection to the API server.
        pending: Finds pending workloads.
        healthy: As for `serve_health`.
        ready: As for `serve_health`; pending workloads are not shown before.

    Raises:
        ListenError: It cannot listen on the address.
        CertificateError: There is no certificate, or the extra for making one is not installed.
    """

    def __init__(
        self,
        address: Address,
        certificates: CertificateSettings,
        connect: Callable[[], Api],
        pending: Pending,
        *,
        healthy: Health,
        ready: Health,
    ) -> None:
        api = connect()
        self._api, self._service = api, (certificates.namespace, certificates.visibility_service)
        self._secret: SecretCertificates | None = None
        pairs: KeyPairs
        if certificates.visibility_folder is not None:
            pairs = FileCertificates(certificates.visibility_folder)
        else:
            host = f"{certificates.visibility_service}.{certificates.namespace}.svc"
            pairs = self._secret = SecretCertificates(
                api,
                namespace=certificates.namespace,
                name=certificates.visibility_secret,
                names=[host, f"{host}.cluster.local"],
                publish=self._publish,
            )
        self._proxy = FrontProxy(api)
        seconds = _REMEMBERED_SECONDS
        access = DelegatedAccess(api, known_seconds=seconds, allowed_seconds=seconds, denied_seconds=seconds)
        answers = VisibilityApi(pending, access, self._proxy, healthy=healthy, ready=ready)
        tls = TlsContexts(pairs, options=certificates.tls, client_cas=self._proxy.client_cas)
        self._server = HttpServer(address, answers.answer, name="visibility", tls=tls, limits=_LIMITS)
        self.port = self._server.port
        """Where it listens."""

    def start(self) -> None:
        """Serve, and follow the Secret and the settings of the API server in threads."""
        # Not here: nothing may answer yet.
        threading.Thread(target=self._follow, name="visibility-follow", daemon=True).start()
        self._server.start()

    def _follow(self) -> None:
        self._proxy.start()
        if self._secret is not None:
            self._secret.start()

    def _publish(self, cas: str) -> None:
        """Have the aggregation layer trust the certificate, where it comes here and not to a Kueue."""
        paths = [f"{API_SERVICES}/{version}.{GROUP}" for version in VERSIONS]
        publish_cas(self._api, cas, filter(self._comes_here, paths))

    def _comes_here(self, path: str) -> bool:
        try:
            service = object_at(self._api.get(path), "spec", "service")
        except RefusedError as error:
            if error.code != 404:
                raise
            return False
        return (text_at(service, "namespace"), text_at(service, "name")) == self._service

    def stop(self) -> None:
        """End all of it."""
        self._server.stop()
        self._proxy.stop()
        if self._secret is not None:
            self._secret.stop()
        self._api.close()
