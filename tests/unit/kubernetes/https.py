"""Clients of the servers of `kueuecore serve`, over TLS."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from kueuecore.kubernetes.https.certificates import Authority
from kueuecore.kubernetes.https.messages import Handler, ServerLimits
from kueuecore.kubernetes.https.server import HttpServer
from kueuecore.kubernetes.https.tls import KeyPair, TlsContexts
from kueuecore.kubernetes.settings import Address

HERE = Address("127.0.0.1", 0)


class Fixed(NamedTuple):
    """A certificate that stays."""

    pair: KeyPair

    def current(self) -> KeyPair:
        return self.pair


class Answered(NamedTuple):
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def authority(name: str = "ca") -> Authority:
    return Authority.made(name, now=datetime.now(UTC))


@contextmanager
def serving(handler: Handler, *, ca: Authority, clients: str = "", limits: ServerLimits | None = None) -> Iterator[int]:
    """A server on a port of its own, with a certificate for localhost."""
    tls = TlsContexts(Fixed(ca.sign(["localhost"], now=datetime.now(UTC))), client_cas=lambda: clients)
    server = HttpServer(HERE, handler, name="test", tls=tls, limits=limits)
    server.start()
    try:
        yield server.port
    finally:
        server.stop()


def client_pair(ca: Authority, name: str, *, groups: Sequence[str] = (), now: datetime | None = None) -> KeyPair:
    """A client's certificate that a CA has signed, for a day."""
    begin = now or datetime.now(UTC)
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*parts, x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    issuer = x509.load_pem_x509_certificate(ca.certificate.encode()).subject
    times = begin - timedelta(hours=1), begin + timedelta(days=1)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), *times)
    usage = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH])
    signs = load_pem_private_key(ca.key.encode(), None)
    assert isinstance(signs, ec.EllipticCurvePrivateKey)
    certificate = builder.add_extension(usage, critical=False).sign(signs, SHA256())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(certificate.public_bytes(Encoding.PEM).decode(), pem.decode())


def trusting(ca: str, *, client: KeyPair | None = None, folder: Path | None = None) -> ssl.SSLContext:
    """A client's context, which trusts a CA and maybe brings a certificate."""
    context = ssl.create_default_context(cadata=ca)
    if client is not None:
        assert folder is not None
        (folder / "client.pem").write_text(client.certificate + client.key)
        context.load_cert_chain(folder / "client.pem")
    return context


def connect(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    raw = socket.create_connection(("127.0.0.1", port), timeout=30)
    return context.wrap_socket(raw, server_hostname="localhost")


def ask(
    port: int,
    path: str,
    context: ssl.SSLContext,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answered:
    """The answer to one request on a connection of its own."""
    with closing(http.client.HTTPSConnection("localhost", port, timeout=30, context=context)) as connection:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        answer = connection.getresponse()
        return Answered(answer.status, dict(answer.getheaders()), answer.read())
