"""Serves webhooks over TLS from every replica, with a certificate of its own or from files."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from kueuecore._json import list_at, object_at, text_at
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.jobs import JobsConfiguration
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.https.ca_bundles import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, publish_cas
from kueuecore.kubernetes.https.certificates import FileCertificates
from kueuecore.kubernetes.https.messages import Request, Response, ServerLimits
from kueuecore.kubernetes.https.secret_certificates import SecretCertificates
from kueuecore.kubernetes.https.server import HttpServer
from kueuecore.kubernetes.https.tls import KeyPairs, TlsContexts, TlsOptions
from kueuecore.kubernetes.settings import WebhookSettings
from kueuecore.kubernetes.watches import News
from kueuecore.kubernetes.webhooks.admission_reviews import AdmissionReviews
from kueuecore.kubernetes.webhooks.conversion_reviews import CONVERTED, PATH, convert
from kueuecore.kubernetes.webhooks.objects import WebhookObjects

__all__ = ["MUTATING", "VALIDATING", "WebhookServer"]

MUTATING = "kueuecore-mutating-webhooks"
"""The name of the MutatingWebhookConfiguration in deploy/webhooks.yaml."""
VALIDATING = "kueuecore-validating-webhooks"
"""The name of the ValidatingWebhookConfiguration there."""
_DEFINITION_PATHS = tuple(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}" for name in CONVERTED)
_PERIOD_SECONDS = 5.0
# As much as Kueue's library takes; an API server sends two objects of at most 3 MiB.
_LIMITS = ServerLimits(connections=128, body=7 << 20)


class WebhookServer:
    """Kueue's webhooks for the kinds of a Configuration.

    Args:
        settings: Where, and with which certificate.
        api: The API server, which has the Secret, the objects that get its CA, and owners that no watch has shown yet.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        kinds: The kinds that are watched, by apiVersion and plural; their news comes by `hear`.
        tls: Versions and cipher suites; by default those that all servers have.

    Raises:
        CertificateError: There is no certificate in the folder.
    """

    def __init__(
        self,
        settings: WebhookSettings,
        api: Api,
        *,
        configuration: Configuration | None,
        kinds: Mapping[str, tuple[str, str]],
        tls: TlsOptions | None = None,
    ) -> None:
        self._settings, self._api = settings, api
        self._objects = WebhookObjects(kinds, JobsConfiguration.of(configuration), api)
        self._reviews = AdmissionReviews(configuration, self._objects)
        self._secret: SecretCertificates | None = None
        pairs: KeyPairs
        if settings.secret:
            host = f"{settings.service}.{settings.namespace}.svc"
            pairs = self._secret = SecretCertificates(
                api, namespace=settings.namespace, name=settings.secret, names=[host], publish=self._publish
            )
        else:
            pairs = FileCertificates(settings.folder)
        self._tls = TlsContexts(pairs, options=tls or TlsOptions())
        self._server: HttpServer | None = None
        self._over = threading.Event()

    def hear(self, news: News) -> None:
        """Take in what a watch has seen."""
        self._objects.hear(news)

    def start(self) -> int:
        """Serve, and return the port.

        Raises:
            ListenError: The address is taken.
        """
        server = HttpServer(self._settings.address, self._answer, name="webhooks", tls=self._tls, limits=_LIMITS)
        self._server = server
        if self._secret is not None:
            self._secret.start()
            threading.Thread(target=self._hasten, args=(self._secret,), name="webhooks-ca", daemon=True).start()
        server.start()
        return server.port

    def stop(self) -> None:
        """Answer what was asked, and no more."""
        self._over.set()
        if self._secret is not None:
            self._secret.stop()
        if self._server is not None:
            self._server.stop()
        self._api.close()

    @property
    def unready(self) -> dict[str, str]:
        """Why webhooks cannot be answered; empty if they can."""
        missing = self._secret.missing if self._secret is not None else ""
        return {"webhooks": f"no certificate: {missing}"} if missing else {}

    def _answer(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(405, b"", headers={"Allow": "POST"})
        return convert(request) if request.path == PATH else self._reviews.answer(request)

    def _hasten(self, secret: SecretCertificates) -> None:
        """Publish the CA as soon as the configurations are applied: until then their webhooks refuse everything."""
        while not self._over.wait(_PERIOD_SECONDS):
            try:
                webhooks = list_at(self._api.get(f"{MUTATING_WEBHOOKS}/{MUTATING}"), "webhooks")
            except (RefusedError, UnansweredError):
                # Reported by whoever keeps the certificate.
                continue
            if any(not text_at(webhook, "clientConfig", "caBundle") for webhook in webhooks):
                secret.look()

    def _publish(self, cas: str) -> None:
        """Have the API server trust the certificate."""
        paths = [f"{MUTATING_WEBHOOKS}/{MUTATING}", f"{VALIDATING_WEBHOOKS}/{VALIDATING}"]
        publish_cas(self._api, cas, [*paths, *filter(self._is_converted_here, _DEFINITION_PATHS)])

    def _is_converted_here(self, path: str) -> bool:
        """Return whether a definition names this service for its conversion, rather than that of a Kueue."""
        try:
            service = object_at(self._api.get(path), "spec", "conversion", "webhook", "clientConfig", "service")
        except RefusedError as error:
            if error.code not in (403, 404):
                raise
            return False
        here = self._settings.namespace, self._settings.service
        return (text_at(service, "namespace"), text_at(service, "name")) == here
