"""Certificates as sockets need them: contexts that follow their source, and who a client is."""

from __future__ import annotations

import logging
import os
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from kueuecore._text import logged
from kueuecore.errors import KueuecoreError

__all__ = ["CertificateError", "KeyPair", "KeyPairs", "Peer", "TlsContexts", "TlsOptions", "check_pair", "peer_of"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")


class CertificateError(KueuecoreError):
    """A certificate cannot be read or does not belong to its key."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A server's certificate and its key.

    Args:
        certificate: The certificate, followed by those that lead to its CA, as PEM.
        key: Its private key, as PEM.
    """

    certificate: str
    key: str

    def __repr__(self) -> str:
        return "KeyPair(...)"


class KeyPairs(Protocol):
    """Where a server's certificate comes from."""

    def current(self) -> KeyPair:
        """Return the pair for new handshakes. It is called for each, so it is quick, and never fails after the first.

        Raises:
            CertificateError: There was no pair from the beginning.
        """
        ...


@dataclass(frozen=True, slots=True)
class Peer:
    """Who a client is by its certificate.

    Args:
        common_name: The common name of its subject.
        organizations: The organizations of its subject, which are groups in Kubernetes.
    """

    common_name: str
    organizations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """What a server accepts, as in `tls` of Kueue's Configuration.

    Args:
        is_newest: Whether only TLS 1.3 is spoken, not 1.2 as well.
        cipher_suites: The names of the cipher suites of TLS 1.2, as in the standard; empty: OpenSSL's.

    Example:
        >>> TlsOptions(cipher_suites=("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",)).ciphers
        'ECDHE-RSA-AES128-GCM-SHA256'
    """

    is_newest: bool = False
    cipher_suites: tuple[str, ...] = ()

    @property
    def ciphers(self) -> str:
        """The cipher suites by OpenSSL's names; those of TLS 1.3 cannot be chosen, as in Go."""
        names = (name.removeprefix("TLS_") for name in self.cipher_suites if "_WITH_" in name)
        return ":".join(map(_openssl_name, names))


def _openssl_name(name: str) -> str:
    name = name.removeprefix("RSA_WITH_").replace("_WITH_", "_").replace("CBC_SHA", "SHA")
    name = name.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("3DES_EDE_SHA", "DES_CBC3_SHA")
    if "CHACHA20" in name:
        name = name.removesuffix("_SHA256").replace("CHACHA20_POLY1305", "CHACHA20-POLY1305")
    return name.replace("_", "-")


_DEFAULT = TlsOptions()


class TlsContexts:
    """The context for each handshake, made again when the certificate or the list of CAs changes.

    Args:
        pairs: The server's certificate.
        options: What is accepted.
        client_cas: Returns the CAs of clients' certificates as PEM; empty: clients are not asked for one. A client that
            gives one of another CA is refused; one without is not.

    Raises:
        CertificateError: OpenSSL does not know the cipher suites.
    """

    def __init__(self, pairs: KeyPairs, *, options: TlsOptions = _DEFAULT, client_cas: Callable[[], str] = str) -> None:
        _bare(options)
        self._pairs, self._options, self._client_cas = pairs, options, client_cas
        self._lock = threading.Lock()
        self._made: tuple[KeyPair, str, ssl.SSLContext] | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context for a handshake.

        Raises:
            CertificateError: The certificate or the CAs cannot be used, and there were none before.
        """
        pair, cas = self._pairs.current(), self._client_cas()
        with self._lock:
            made = self._made
            if made is None or made[0] != pair or made[1] != cas:
                try:
                    made = (pair, cas, _context(pair, cas, self._options))
                except CertificateError as error:
                    if made is None:
                        raise
                    _LOGGER.warning("the last certificate is kept", extra={"error": logged(error)})
                    made = (pair, cas, made[2])
                self._made = made
            return made[2]


def check_pair(pair: KeyPair) -> None:
    """Make sure that a certificate belongs to its key.

    Raises:
        CertificateError: It does not, or one of them cannot be read.
    """
    _context(pair, "", _DEFAULT)


def peer_of(secured: ssl.SSLSocket) -> Peer | None:
    """Return who the client is, if it gave a certificate that the context's CAs have signed."""
    certificate = cast("Mapping[str, object] | None", secured.getpeercert())
    if not certificate:
        return None
    subject = cast("tuple[tuple[tuple[str, str], ...], ...]", certificate.get("subject", ()))
    pairs = [pair for part in subject for pair in part]
    names = [value for name, value in pairs if name == "commonName"]
    groups = tuple(value for name, value in pairs if name == "organizationName")
    return Peer(names[0] if names else "", groups)


def _bare(options: TlsOptions) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if options.is_newest else ssl.TLSVersion.TLSv1_2
    try:
        if options.ciphers:
            context.set_ciphers(options.ciphers)
    except ssl.SSLError:
        raise CertificateError(f"tls.cipherSuites: none of {options.ciphers} is known to OpenSSL") from None
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    return context


def _context(pair: KeyPair, cas: str, options: TlsOptions) -> ssl.SSLContext:
    context = _bare(options)
    try:
        with _file_of(pair.certificate) as certificate, _file_of(pair.key) as key:
            # Without a password, one that is encrypted would be asked for on the terminal.
            context.load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:
        raise CertificateError(f"the certificate and its key cannot be used: {_why(error)}") from None
    if cas:
        try:
            context.load_verify_locations(cadata=cas)
        except (OSError, ValueError) as error:
            raise CertificateError(f"the CAs of clients cannot be used: {_why(error)}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _why(error: Exception) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) else "") or str(error) or type(error).__name__


@contextmanager
def _file_of(text: str) -> Iterator[str]:
    """Give a text the path that OpenSSL wants, in memory where the system can: the disk may be read-only."""
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").is_dir():
        descriptor = os.memfd_create("certificate")
        try:
            with open(descriptor, "w", closefd=False) as file:
                file.write(text)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pem")
        path.touch(mode=0o600)
        path.write_text(text)
        yield str(path)
