"""Certificates and keys for a cluster that lives as long as a test."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "write_key_pair"]

_LIFE = datetime.timedelta(days=1)


class Authority:
    """A certificate authority, which signs certificates of servers on loopback and of users.

    Args:
        folder: Where its files go.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cluster")])
        builder = _builder(name, name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._certificate = builder.sign(self._key, hashes.SHA256())
        self.file = folder / "ca.crt"
        """The certificate of the authority."""
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, organization: str = "") -> tuple[Path, Path]:
        """Sign a certificate for a server or a user.

        Args:
            name: Its common name, which is also the name of its files.
            organization: Its organization, which is a group of users.

        Returns:
            The files of the certificate and of its key.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        if organization:
            names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _builder(x509.Name(names), self._certificate.subject, key.public_key())
        builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        paths = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        paths[1].write_bytes(_pem(key))
        return paths


def write_key_pair(folder: Path) -> tuple[Path, Path]:
    """Make the keys that sign the tokens of ServiceAccounts.

    Args:
        folder: Where they go.

    Returns:
        The files of the public and of the private key.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    paths: Sequence[Path] = (folder / "sa.pub", folder / "sa.key")
    paths[0].write_bytes(public)
    paths[1].write_bytes(_pem(key))
    return paths[0], paths[1]


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + _LIFE)
    )


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
