"""Metrics over TLS, to whom the API server allows them: its answers are those of its roles."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

from kueuecore._json import JsonObject
from kueuecore.kubernetes import Address, Api, ServeSettings
from kueuecore.kubernetes.endpoints import ProcessMetrics
from kueuecore.kubernetes.https.delegated_access import DelegatedAccess, bearer_token
from kueuecore.kubernetes.https.tls import CertificateError
from kueuecore.kubernetes.secured_metrics import serve_secured_metrics
from kueuecore.kubernetes.settings import CertificateSettings
from kueuecore.releases import Release
from kueuecore_apiserver import AccessRules, Fault, HttpApiServer, Request, refusal_of
from tests.unit.kubernetes.clusters import served
from tests.unit.kubernetes.https import HERE, Answered, ask, authority, trusting

USERS = {"us": "system:serviceaccount:kueue-system:kueuecore", "prometheus": "prometheus", "ann": "ann"}
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
users: [{{name: us, user: {{token: us}}}}]
contexts: [{{name: here, context: {{cluster: here, user: us}}}}]
"""


def role(name: str, user: str, *rules: dict[str, Any]) -> list[dict[str, Any]]:
    metadata, reference = {"name": name}, {"kind": "ClusterRole", "name": name}
    subjects = [{"kind": "User", "name": user}]
    return [
        {"kind": "ClusterRole", "metadata": metadata, "rules": [*rules]},
        {"kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": reference, "subjects": subjects},
    ]


REVIEWS = role(
    "reviews",
    USERS["us"],
    {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
    {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
)
READER = role("reader", "prometheus", {"nonResourceURLs": ["/metrics"], "verbs": ["get"]})


@contextmanager
def cluster(folder: Path, roles: list[dict[str, Any]]) -> Iterator[tuple[HttpApiServer, Api]]:
    """A cluster with roles, and a connection as kueuecore's ServiceAccount."""
    with served(access=AccessRules(users=USERS, manifests=roles)) as server:
        (folder / "kubeconfig").write_text(KUBECONFIG.format(url=server.url))
        yield server, Api.connect(kubeconfig=folder / "kubeconfig")


SETTINGS = replace(ServeSettings.of(None), certificates=CertificateSettings(secures_metrics=True))


def metrics_port(api: Api, settings: ServeSettings = SETTINGS, address: Address = HERE) -> int:
    return serve_secured_metrics(address, settings, ProcessMetrics(Release.named("0.17.3")), lambda *_: api)


UNTRUSTING = ssl.create_default_context()
UNTRUSTING.check_hostname = False
UNTRUSTING.verify_mode = ssl.CERT_NONE


def scrape(port: int, token: str = "", path: str = "/metrics", *, method: str = "GET") -> Answered:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return ask(port, path, UNTRUSTING, headers=headers, method=method)


def asked(server: HttpApiServer) -> list[str]:
    return [request.resource for request in server.requests]


def test_only_whom_the_roles_allow_reads_them(tmp_path: Path) -> None:
    with cluster(tmp_path, [*REVIEWS, *READER]) as (server, api):
        port = metrics_port(api)
        allowed = scrape(port, "prometheus")
        assert allowed.status == 200
        assert b"kueuecore_build_info" in allowed.body
        assert (scrape(port).status, scrape(port).body) == (401, b"Unauthorized\n")
        assert scrape(port, "nobody").status == 401
        refused = scrape(port, "ann")
        assert (refused.status, refused.body) == (403, b"Authorization denied for user ann\n")
        assert scrape(port, "prometheus", "/other").status == 404
        # The role allows `get` alone.
        assert scrape(port, "prometheus", method="DELETE").status == 403
        assert {request.user for request in server.requests} == {USERS["us"]}


def test_answers_are_remembered_for_a_short_time(tmp_path: Path) -> None:
    with cluster(tmp_path, [*REVIEWS, *READER]) as (server, api):
        port = metrics_port(api)
        for token in ("prometheus", "nobody", "ann") * 3:
            scrape(port, token)
        assert sorted(asked(server)) == ["subjectaccessreviews"] * 2 + ["tokenreviews"] * 3
        short = DelegatedAccess(api, known_seconds=0, allowed_seconds=0, denied_seconds=60)
        path: JsonObject = {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
        for token in ("prometheus", "ann") * 2:
            user = short.user_of(token)
            assert user is not None
            assert short.verdict(user, path).is_allowed == (token == "prometheus")
        assert sorted(asked(server)[5:]) == ["subjectaccessreviews"] * 3 + ["tokenreviews"] * 4


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        ("tokenreviews", b"Authentication failed\n"),
        ("subjectaccessreviews", b"Authorization for user prometheus failed\n"),
    ],
)
def test_a_server_that_cannot_be_asked_is_500_and_one_line_in_the_log(
    resource: str, body: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def faults(request: Request) -> Fault | None:
        return Fault(refusal=refusal_of(503)) if request.resource == resource else None

    with cluster(tmp_path, [*REVIEWS, *READER]) as (server, api):
        port = metrics_port(api)
        server.faults = faults
        for _ in range(3):
            found = scrape(port, "prometheus")
            assert (found.status, found.body) == (500, body)
        server.faults = None
        assert scrape(port, "prometheus").status == 200
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.message for record in lines] == ["cannot ask who a client is and what it may do"]
    assert lines[0].exc_info is None


def test_without_the_right_to_ask_nobody_reads_them(tmp_path: Path) -> None:
    with cluster(tmp_path, READER) as (_, api):
        assert scrape(metrics_port(api), "prometheus").status == 500


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc", "abc"),
        ("Bearer abc more", "abc"),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("Bearer a\r\n b", ""),
        ("Bearer ä", ""),
        ("Bearer " + "a" * 20_000, ""),
    ],
)
def test_tokens_are_read_as_api_servers_read_them(header: str, token: str) -> None:
    headers = Message()
    headers["Authorization"] = header
    assert bearer_token(headers) == token


def test_certificates_come_from_a_folder_and_are_read_again(tmp_path: Path) -> None:
    ca = authority()

    def write() -> None:
        pair = ca.sign(["localhost"], now=datetime.now(UTC))
        (tmp_path / "tls.crt").write_text(pair.certificate)
        (tmp_path / "tls.key").write_text(pair.key)

    write()
    with cluster(tmp_path, [*REVIEWS, *READER]) as (_, api):
        settings = replace(SETTINGS, certificates=CertificateSettings(secures_metrics=True, metrics_folder=tmp_path))
        port = metrics_port(api, settings)
        headers = {"Authorization": "Bearer prometheus"}
        assert ask(port, "/metrics", trusting(ca.certificate), headers=headers).status == 200
        write()
        assert ask(port, "/metrics", trusting(ca.certificate), headers=headers).status == 200
        missing = replace(settings, certificates=replace(settings.certificates, metrics_folder=tmp_path / "none"))
        with pytest.raises(CertificateError, match="none"):
            metrics_port(api, missing)


@pytest.mark.parametrize(
    ("host", "secures", "is_secure"),
    [
        ("127.0.0.1", None, False),
        ("localhost", None, False),
        ("", None, True),
        ("", False, False),
        ("localhost", True, True),
    ],
)
def test_what_only_this_machine_reaches_is_plain_unless_told_otherwise(
    host: str, secures: bool | None, is_secure: bool, tmp_path: Path
) -> None:
    with cluster(tmp_path, [*REVIEWS, *READER]) as (_, api):
        settings = replace(SETTINGS, certificates=CertificateSettings(secures_metrics=secures))
        port = metrics_port(api, settings, Address(host, 0))
        if is_secure:
            assert scrape(port).status == 401
        else:
            with pytest.raises(ssl.SSLError):
                scrape(port)
