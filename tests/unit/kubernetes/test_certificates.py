"""Certificates from files and from a Secret: made, shared, renewed, and kept when what comes next is broken."""

from __future__ import annotations

import base64
import logging
import ssl
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kueuecore.kubernetes import Api
from kueuecore.kubernetes.https.ca_bundles import API_SERVICES, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, publish_cas
from kueuecore.kubernetes.https.certificates import Authority, FileCertificates, OwnCertificates, ends_of, names_of
from kueuecore.kubernetes.https.secret_certificates import SecretCertificates
from kueuecore.kubernetes.https.tls import CertificateError, KeyPair, TlsContexts, check_pair
from kueuecore_apiserver import Fault, HttpApiServer, refusal_of
from tests.unit.kubernetes.clusters import served

NOW = datetime.now(UTC)
SERVICE = "kueue-webhook-service.kueue-system.svc"


def written(folder: Path, pair: KeyPair) -> Path:
    (folder / "tls.crt").write_text(pair.certificate)
    (folder / "tls.key").write_text(pair.key)
    return folder


def secret(server: HttpApiServer) -> dict[str, str]:
    found: dict[str, Any] = server.call(lambda api: api.get("Secret", "certs", namespace="kueue-system"))
    return {name: base64.b64decode(text).decode() for name, text in found["data"].items()}


def certificates(server: HttpApiServer, **options: Any) -> SecretCertificates:
    names = options.pop("names", [SERVICE])
    api = Api.connect(server=server.url)
    return SecretCertificates(api, namespace="kueue-system", name="certs", names=names, **options)


def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    ca = Authority.made("ca", now=NOW)
    first, second = ca.sign([SERVICE], now=NOW), ca.sign([SERVICE], now=NOW)
    source = FileCertificates(written(tmp_path, first))
    contexts = TlsContexts(source)
    made = contexts.context()
    assert (source.current(), contexts.context()) == (first, made)
    written(tmp_path, second)
    assert source.current() == second
    assert contexts.context() is not made


@pytest.mark.parametrize(
    "broken", ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ä"]
)
def test_a_broken_file_is_logged_once_and_the_last_pair_kept(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Authority.made("ca", now=NOW).sign([SERVICE], now=NOW)
    source = FileCertificates(written(tmp_path, pair))
    (tmp_path / "tls.crt").write_text(broken)
    assert [source.current() for _ in range(3)] == [pair] * 3
    (record,) = caplog.records
    assert (record.message, record.exc_info) == ("the last certificate is kept", None)
    assert str(tmp_path) in record.__dict__["error"]


def test_half_of_a_new_pair_is_not_used(tmp_path: Path) -> None:
    ca = Authority.made("ca", now=NOW)
    first, second = ca.sign([SERVICE], now=NOW), ca.sign([SERVICE], now=NOW)
    source = FileCertificates(written(tmp_path, first))
    (tmp_path / "tls.crt").write_text(second.certificate)
    assert source.current() == first
    (tmp_path / "tls.key").write_text(second.key)
    assert source.current() == second


def test_a_folder_without_a_pair_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"tls\.crt"):
        FileCertificates(tmp_path)


def test_own_certificates_last_and_can_be_used() -> None:
    source = OwnCertificates(["localhost"])
    pair = source.current()
    check_pair(pair)
    assert source.current() == pair
    assert names_of(pair.certificate) == {"localhost"}
    assert ends_of(pair.certificate) > NOW + timedelta(days=300)


def test_two_replicas_share_what_the_first_has_made() -> None:
    seen: list[str] = []
    with served() as server:
        one = certificates(server, publish=seen.append)
        two = certificates(server, publish=seen.append)
        one.refresh()
        two.refresh()
        one.refresh()
        held = secret(server)
        assert one.current() == two.current() == KeyPair(held["tls.crt"], held["tls.key"])
        assert seen == [held["ca.crt"]] * 3
    # What Go's clients check, too: the chain, the name and the purposes.
    ssl.create_default_context(cadata=held["ca.crt"])
    assert names_of(held["tls.crt"]) == {SERVICE}


def test_certificates_are_renewed_before_they_end_and_the_last_ca_stays_trusted() -> None:
    now = [NOW]
    seen: list[str] = []
    with served() as server:
        source = certificates(server, publish=seen.append, clock=lambda: now[0])
        source.refresh()
        first, old = source.current(), secret(server)
        now[0] = NOW + timedelta(days=200)
        source.refresh()
        assert source.current() == first
        now[0] = NOW + timedelta(days=280)
        source.refresh()
        assert source.current() != first
        assert secret(server)["ca.crt"] == old["ca.crt"]
        now[0] = NOW + timedelta(days=3600)
        source.refresh()
        renewed = secret(server)
        assert renewed["ca.crt"].endswith(old["ca.crt"])
        assert renewed["ca.crt"].count("BEGIN CERTIFICATE") == 2
        assert seen == [old["ca.crt"]] * 3 + [renewed["ca.crt"]]
        now[0] = NOW + timedelta(days=7200)
        source.refresh()
        assert secret(server)["ca.crt"].count("BEGIN CERTIFICATE") == 2, "and no longer than it lasts"
        assert old["ca.crt"] not in secret(server)["ca.crt"]


def test_names_are_added_and_never_taken_away() -> None:
    with served() as server:
        certificates(server, names=["a.svc"]).refresh()
        certificates(server, names=["b.svc"]).refresh()
        certificates(server, names=["a.svc"]).refresh()
        assert names_of(secret(server)["tls.crt"]) == {"a.svc", "b.svc"}


def rsa_authority() -> Authority:
    """A CA as Kueue makes it."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kueue-ca")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - timedelta(1), NOW + timedelta(3650))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.PEM).decode()
    return Authority(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def stored(server: HttpApiServer, data: dict[str, str]) -> None:
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}
    metadata = {"name": "certs", "namespace": "kueue-system"}
    server.load([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}])


def test_the_secret_of_a_kueue_is_taken_over() -> None:
    ca = rsa_authority()
    pair = ca.sign([SERVICE], now=NOW)
    with served() as server:
        stored(server, {"ca.crt": ca.certificate, "ca.key": ca.key, "tls.crt": pair.certificate, "tls.key": pair.key})
        source = certificates(server, names=[SERVICE, "other.svc"])
        source.refresh()
        assert secret(server)["ca.crt"] == ca.certificate
        assert names_of(source.current().certificate) == {SERVICE, "other.svc"}


@pytest.mark.parametrize(
    "change",
    [
        {"tls.crt": "nonsense"},
        {"ca.key": ""},
        {"ca.crt": "\N{SNOWMAN}"},
        {"tls.key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
        {"tls.crt": "another's", "tls.key": "another's"},
    ],
    ids=["certificate", "no key", "no text", "key", "of another CA"],
)
def test_a_spoilt_secret_is_made_anew(change: dict[str, str]) -> None:
    other = Authority.made("other", now=NOW).sign([SERVICE], now=NOW)
    with served() as server:
        certificates(server).refresh()
        before = secret(server)
        others = {"tls.crt": other.certificate, "tls.key": other.key}
        changed = {name: others[name] if text == "another's" else text for name, text in change.items()}
        server.call(lambda api: api.delete("Secret", "certs", namespace="kueue-system"))
        stored(server, before | changed | {"more": "stays"})
        source = certificates(server)
        source.refresh()
        after = secret(server)
        assert after["more"] == "stays"
        assert after["ca.crt"] != before["ca.crt"]
        assert source.current() == KeyPair(after["tls.crt"], after["tls.key"])


def test_a_certificate_that_may_not_be_renewed_is_served_and_its_ca_published() -> None:
    later = NOW + timedelta(days=300)
    seen: list[str] = []
    with served() as server:
        certificates(server).refresh()
        held = secret(server)
        server.faults = lambda request: Fault(refusal=refusal_of(403)) if request.verb == "update" else None
        restarted = certificates(server, publish=seen.append, clock=lambda: later)
        assert restarted.missing
        restarted.look()
        assert restarted.fault
        assert not restarted.missing
        assert restarted.current() == KeyPair(held["tls.crt"], held["tls.key"])
        assert seen == [held["ca.crt"]]
        assert certificates(server, clock=lambda: later).missing
        later = NOW + timedelta(days=400)
        assert restarted.missing == restarted.fault, "it has ended"


def ed25519_authority() -> Authority:
    """A CA with a key that servers' certificates are not made with here."""
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ours")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - timedelta(1), NOW + timedelta(3650))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, None).public_bytes(Encoding.PEM).decode()
    return Authority(certificate, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def test_what_a_ca_of_others_cannot_renew_here_is_made_anew_and_that_ca_stays_trusted() -> None:
    ca = ed25519_authority()
    # Any certificate that it has signed: its own serves.
    with served() as server:
        stored(server, {"ca.crt": ca.certificate, "ca.key": ca.key, "tls.crt": ca.certificate, "tls.key": ca.key})
        source = certificates(server)
        source.refresh()
        after = secret(server)
        assert names_of(source.current().certificate) == {SERVICE}
        assert after["ca.crt"].endswith(ca.certificate)
        assert after["ca.crt"].count("BEGIN CERTIFICATE") == 2


def test_without_the_extra_files_suffice_and_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = Authority.made("ca", now=NOW).sign([SERVICE], now=NOW)
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    assert FileCertificates(written(tmp_path, pair)).current() == pair
    with pytest.raises(CertificateError, match=r"pip install 'kueuecore\[serve\]'"):
        OwnCertificates(["localhost"])


def webhooks(*, bundle: str = "") -> dict[str, Any]:
    service = {"namespace": "kueue-system", "name": "w", "path": "/x"}
    client = {"service": service} | ({"caBundle": bundle} if bundle else {})
    hook = {"clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail"}
    named = [{"name": f"{name}.kueue.x-k8s.io", **hook} for name in ("a", "b")]
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": "hooks"}, "webhooks": named}


def test_cas_are_written_where_api_servers_look_once_they_differ() -> None:
    spec = {
        "group": "g",
        "version": "v1",
        "groupPriorityMinimum": 1,
        "versionPriority": 1,
        "insecureSkipTLSVerify": True,
    }
    service = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.g"}}
    with served() as server:
        server.load([webhooks(), {**service, "spec": spec}])
        api = Api.connect(server=server.url)
        paths = [f"{VALIDATING_WEBHOOKS}/hooks", f"{API_SERVICES}/v1.g", f"{MUTATING_WEBHOOKS}/none"]
        for _ in range(2):
            publish_cas(api, "pem", paths)
        hooks = api.get(paths[0])["webhooks"]
        assert hooks == webhooks(bundle="cGVt")["webhooks"]
        left = {name: value for name, value in spec.items() if name != "insecureSkipTLSVerify"}
        assert api.get(paths[1])["spec"] == {**left, "caBundle": "cGVt"}
        assert len([request for request in server.requests if request.verb == "patch"]) == 2


def test_a_secret_that_cannot_be_read_is_logged_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with served() as server:
        source = certificates(server)
        source.look()
        pair = source.current()
        server.faults = lambda _: Fault(refusal=refusal_of(503))
        for _ in range(3):
            source.look()
        assert source.fault
        assert source.current() == pair
        server.faults = None
        source.look()
    assert not source.fault
    said = [record.message for record in caplog.records if record.name == "kueuecore.kubernetes"]
    assert said == [
        "certificates made",
        "certificates cannot be stored, is tried again",
        "certificates are stored again",
    ]
