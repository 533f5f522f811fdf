"""Makes certificates, and reads those in a folder again when they change."""

from __future__ import annotations

import importlib
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore._text import logged
from kueuecore.kubernetes.https.tls import CertificateError, KeyPair, check_pair

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

__all__ = ["Authority", "FileCertificates", "OwnCertificates", "ends_of", "names_of", "require_cryptography"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_CA_DAYS = 3650
_SERVER_DAYS = 365
# Clocks differ.
_BEFORE = timedelta(hours=1)


class FileCertificates:
    """A certificate in files, as cert-manager or a mounted Secret has them. New handshakes use what is there.

    Args:
        folder: The folder.
        certificate: The name of the certificate's file.
        key: The name of the key's file.

    Raises:
        CertificateError: There is no pair that can be used.
    """

    def __init__(self, folder: Path, *, certificate: str = "tls.crt", key: str = "tls.key") -> None:
        self._paths = (folder / certificate, folder / key)
        self._lock = threading.Lock()
        self._seen = self._signs()
        self._pair = self._read()

    def current(self) -> KeyPair:
        """Return the last pair that could be used."""
        with self._lock:
            signs = self._signs()
            if signs != self._seen:
                self._seen = signs
                try:
                    self._pair = self._read()
                    _LOGGER.info("certificate read", extra={"file": str(self._paths[0])})
                except CertificateError as error:
                    # The files are replaced one after the other, or by hand.
                    _LOGGER.warning("the last certificate is kept", extra={"error": logged(error)})
            return self._pair

    def _signs(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Return what changes with the files."""

        def signs(path: Path) -> tuple[int, int, int] | None:
            try:
                found = path.stat()
            except OSError:
                return None
            return found.st_ino, found.st_size, found.st_mtime_ns

        return tuple(signs(path) for path in self._paths)

    def _read(self) -> KeyPair:
        try:
            pair = KeyPair(*(path.read_text("ascii") for path in self._paths))
        except (OSError, ValueError) as error:
            raise CertificateError(f"{self._paths[0].parent}: {error}") from None
        try:
            check_pair(pair)
        except CertificateError as error:
            raise CertificateError(f"{self._paths[0]}, {self._paths[1].name}: {error}") from None
        return pair


class OwnCertificates:
    """A certificate that this process makes for itself, and signs itself: it encrypts, but proves nothing.

    Args:
        names: The DNS names of the server.

    Raises:
        CertificateError: The extra is not installed.
    """

    def __init__(self, names: Sequence[str]) -> None:
        require_cryptography()
        self._names = tuple(names)
        self._lock = threading.Lock()
        self._made: tuple[KeyPair, datetime] | None = None

    def current(self) -> KeyPair:
        """Return the pair, made again when two thirds of its time are over."""
        now = datetime.now(UTC)
        with self._lock:
            if self._made is None or now > self._made[1]:
                self._made = (_self_signed(self._names, now), now + timedelta(days=_SERVER_DAYS * 2 // 3))
            return self._made[0]


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA.

    Args:
        certificate: Its certificate, as PEM.
        key: Its private key, as PEM.
    """

    certificate: str
    key: str

    @classmethod
    def made(cls, name: str, *, now: datetime) -> Authority:
        """Make one.

        Args:
            name: Its common name.
            now: When it begins; it lasts ten years.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        builder = _begun(subject, subject, key.public_key(), now, _CA_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(is_ca=True), critical=True)
        return cls(*_signed(builder, key, key))

    def has_signed(self, pair: KeyPair) -> bool:
        """Return whether it has signed a certificate.

        Raises:
            CertificateError: One of them cannot be read.
        """
        from cryptography.exceptions import InvalidSignature

        try:
            _certificate(pair.certificate).verify_directly_issued_by(_certificate(self.certificate))
        except (InvalidSignature, ValueError, TypeError):
            return False
        return True

    def sign(self, names: Sequence[str], *, now: datetime) -> KeyPair:
        """Make a server's certificate.

        Args:
            names: The DNS names of the server.
            now: When it begins; it lasts a year.

        Raises:
            CertificateError: The CA cannot be read, or its key is not its own.
        """
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        issuer, key = _loaded(self.certificate, self.key)
        own = ec.generate_private_key(ec.SECP256R1())
        builder = _server(names, issuer.subject, own, now)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())  # type: ignore[arg-type]
        return KeyPair(*_signed(builder.add_extension(authority, critical=False), own, key))


def require_cryptography() -> None:
    """Make sure that certificates can be made. Those in files can be used without.

    Raises:
        CertificateError: The extra is not installed.
    """
    try:
        importlib.import_module("cryptography.x509")
    except ImportError as error:
        raise CertificateError(f"{error}: install it with pip install 'kueuecore[serve]'") from None


def ends_of(certificate: str) -> datetime:
    """Return when the first certificate of a text ends.

    Raises:
        CertificateError: There is none.
    """
    return _certificate(certificate).not_valid_after_utc


def names_of(certificate: str) -> frozenset[str]:
    """Return the DNS names of the first certificate of a text.

    Raises:
        CertificateError: There is none.
    """
    from cryptography import x509

    try:
        found = _certificate(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return frozenset()
    except ValueError as error:
        raise CertificateError(f"the certificate cannot be read: {error}") from None
    return frozenset(found.value.get_values_for_type(x509.DNSName))


def _certificate(text: str) -> x509.Certificate:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(text.encode())
    except ValueError as error:
        raise CertificateError(f"the certificate cannot be read: {error}") from None


def _loaded(certificate: str, key: str) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey]:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _certificate(certificate)
    try:
        private = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the CA's key cannot be read: {error}") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise CertificateError("the CA's key is of a kind that is not used for servers")
    if found.public_key() != private.public_key():
        raise CertificateError("the CA's key is not its own")
    return found, private


def _self_signed(names: Sequence[str], now: datetime) -> KeyPair:
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    return KeyPair(*_signed(_server(names, None, key, now), key, key))


def _server(
    names: Sequence[str], issuer: x509.Name | None, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    from cryptography import x509

    # A common name has at most 64 characters, and clients look at the others alone.
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0][:64])])
    builder = _begun(subject, issuer or subject, key.public_key(), now, _SERVER_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(is_ca=False), critical=True)
    server = x509.ExtendedKeyUsage([x509.oid.ExtendedKeyUsageOID.SERVER_AUTH])
    builder = builder.add_extension(server, critical=False)
    return builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    from cryptography import x509

    builder = x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number())
    builder = builder.not_valid_before(now - _BEFORE).not_valid_after(now + timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    signs: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
) -> tuple[str, str]:
    """Return the certificate and its key as PEM."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    certificate = builder.sign(signs, SHA256()).public_bytes(Encoding.PEM).decode()
    return certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
