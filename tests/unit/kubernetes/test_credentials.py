"""Who asks: kubeconfigs with tokens, files, plugins and certificates, and a pod. What ends is read again."""

from __future__ import annotations

import json
import shlex
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import CoordinationV1Api
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, incluster_config

from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api, UnansweredError, credentials
from tests.unit.kubernetes.hostile import Answer, Asked, Hostile, hostile, listing, of

LATER = "2100-01-01T00:00:00Z"
BEFORE = "2000-01-01T00:00:00Z"
CHOSEN = "current-context: a, contexts: [{name: a, context: {cluster: a}}]"


@pytest.fixture
def server() -> Iterator[Hostile]:
    with hostile(lambda _: listing()) as it:
        yield it


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read and plugins run as often as there is a reason."""
    monkeypatch.setattr(credentials, "_LEAST_SECONDS", 0.0)
    monkeypatch.setattr(credentials, "_FILE_SECONDS", 0.0)


def kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    file = folder / "kubeconfig"
    context = {"name": "here", "context": {"cluster": "c", "user": "u"}}
    clusters = [{"name": "c", "cluster": {"server": server, **cluster}}]
    file.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [context],
                "clusters": clusters,
                "users": [{"name": "u", "user": user}],
            }
        )
    )
    return file


def of_context(context: str, *, current: str = "a", more: str = "") -> str:
    server = f"{{name: a, cluster: {{server: 'http://127.0.0.1:1', {more}}}}}"
    return f"{{current-context: {current}, contexts: [{context}], clusters: [{server}], users: []}}"


def plugin(folder: Path, *statuses: dict[str, str], version: str = "v1") -> dict[str, Any]:
    """An exec plugin that gives these one after the other, then fails."""
    api_version = f"client.authentication.k8s.io/{version}"
    for number, status in enumerate(statuses):
        credential = {"apiVersion": api_version, "kind": "ExecCredential", "status": status}
        (folder / f"credential{number}").write_text(json.dumps(credential))
    script = folder / "plugin"
    here = shlex.quote(str(folder))
    script.write_text(
        f"#!/bin/sh\ncd {here}; n=$(cat runs 2>/dev/null || echo 0)\necho $((n + 1)) >runs\ncat credential$n\n"
    )
    script.chmod(0o755)
    return {"exec": {"apiVersion": api_version, "command": str(script), "interactiveMode": "Never"}}


def tokens(server: Hostile) -> list[str]:
    return [asked.headers.get("authorization", "") for asked in server.asked]


def ask(api: Api, n: int = 1) -> None:
    for _ in range(n):
        api.get("/api/v1/namespaces")


def test_a_token(server: Hostile, tmp_path: Path) -> None:
    ask(Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, {"token": "abc"})))
    assert tokens(server) == ["Bearer abc"]


@pytest.mark.usefixtures("at_once")
def test_a_file_with_a_token_is_read_again_and_may_end_with_a_newline(server: Hostile, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, {"tokenFile": "token"}))
    ask(api)
    file.write_text("two\n")
    ask(api)
    assert tokens(server) == ["Bearer one", "Bearer two"]


def test_a_file_with_a_token_is_not_read_at_each_request(server: Hostile, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, {"tokenFile": "token"}))
    ask(api)
    file.write_text("two")
    ask(api)
    assert tokens(server) == ["Bearer one", "Bearer one"]


@pytest.mark.usefixtures("at_once")
def test_the_token_of_a_pod_is_read_again_and_survives_a_file_that_is_missing(
    server: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one")
    authority.write_text("-")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", server.url.rpartition(":")[2])
    assert credentials.credentials_at().configuration.host.startswith("https://127.0.0.1:")

    def read() -> credentials.Credentials:
        found = credentials.credentials_at()
        # There is nobody to talk TLS with.
        found.configuration.host, found.configuration.ssl_ca_cert = server.url, None
        return found

    api = Api(credentials.Client(read))
    ask(api)
    token.write_text("two")
    ask(api)
    token.unlink()
    token.with_name("other").write_text("three")
    ask(api)
    token.with_name("other").rename(token)
    ask(api)
    assert tokens(server) == [f"bearer {name}" for name in ("one", "two", "two", "three")]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_plugin_runs_again_when_its_token_ends(server: Hostile, tmp_path: Path, version: str) -> None:
    statuses = [{"token": f"t{n}", "expirationTimestamp": entry} for n, entry in enumerate([BEFORE, BEFORE, LATER])]
    api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, plugin(tmp_path, *statuses, version=version)))
    ask(api, 4)
    assert tokens(server) == ["Bearer t1", "Bearer t2", "Bearer t2", "Bearer t2"]


@pytest.mark.usefixtures("at_once")
def test_a_plugin_that_fails_later_leaves_the_old_token_and_is_logged(
    server: Hostile, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user = plugin(tmp_path, {"token": "t0", "expirationTimestamp": BEFORE})
    api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, user))
    ask(api)
    assert tokens(server) == ["Bearer t0"]
    assert "credentials cannot be read again" in caplog.messages
    assert any("credential1" in message for message in caplog.messages)


@pytest.mark.usefixtures("at_once")
def test_after_a_401_a_plugin_runs_again_for_every_kind_of_request(tmp_path: Path) -> None:
    def answer(it: Asked) -> Answer:
        return of({"kind": "Status", "code": 401}, 401) if it.headers["authorization"] != "Bearer t2" else listing()

    with hostile(answer) as server:
        user = plugin(tmp_path, *({"token": f"t{n}"} for n in range(3)))
        api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, user))
        with pytest.raises(RefusedError):
            ask(api)
        with pytest.raises(ApiException):
            CoordinationV1Api(api.client).read_namespaced_lease("one", "lab")
        ask(api, 2)
        assert tokens(server) == [f"Bearer t{n}" for n in (0, 1, 2, 2)]


def test_a_server_that_refuses_each_token_does_not_have_a_plugin_run_each_time(tmp_path: Path) -> None:
    with hostile(lambda _: of({}, 401)) as server:
        api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, plugin(tmp_path, {"token": "t0"})))
        for _ in range(5):
            with pytest.raises(RefusedError):
                ask(api)
    assert (tmp_path / "runs").read_text() == "1\n"


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such"}},
            "the exec plugin of user u",
        ),
        ({"token": "a\nb"}, "the token has characters that no token has"),
        ({"token": "a\u4e2d"}, "the token has characters that no token has"),
        ({"tokenFile": "missing"}, "No such file or directory"),
        ({"client-certificate": "missing"}, "File does not exist"),
    ],
)
def test_a_user_without_credentials_is_refused_at_the_start(tmp_path: Path, user: dict[str, Any], why: str) -> None:
    file = kubeconfig(tmp_path, "https://127.0.0.1:1", user)
    with pytest.raises(ConfigException, match=why) as raised:
        Api.connect(kubeconfig=file)
    assert str(raised.value).startswith(f"{file}: ")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "file is empty"),
        ("a: [", "it is no kubeconfig"),
        ("text", "it is no kubeconfig"),
        ("[1]", "it is no kubeconfig"),
        ("\x00", "it is no kubeconfig"),
        ("{contexts: [], clusters: []}", "current-context"),
        (f"{{{CHOSEN}, clusters: [{{name: a}}]}}", "Expected key cluster"),
        (f"{{{CHOSEN}, clusters: [{{name: a, cluster: {{x: 1}}}}]}}", "cluster a has no server"),
        (f"{{{CHOSEN}, clusters: [{{name: a, cluster: {{server: a}}}}]}}", "'a' is no URL of an API server"),
        (of_context("{name: a, context: {cluster: a, namespace: 5}}"), "the namespace of context a is no string"),
        (of_context("{name: a, context: {cluster: a, namespace: [b]}}"), "the namespace of context a is no string"),
        (of_context("{name: 5, context: {cluster: a}}", current="5"), "the name of context 5 is no string"),
        (of_context("{name: a, context: {cluster: a}}", more="proxy-url: socks5://b"), "proxy-url is no URL of an HT"),
    ],
)
def test_a_file_that_is_no_kubeconfig_is_refused_with_its_name(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(ConfigException, match=why) as raised:
        Api.connect(kubeconfig=file)
    assert str(raised.value).startswith(f"{file}: ")


@pytest.mark.parametrize("url", ["host", "ftp://host", "http://", "http://host:99999", "http://host/?a=b", "//host"])
def test_what_is_no_url_is_refused_with_what_to_write(url: str) -> None:
    with pytest.raises(ConfigException, match=r"is no URL of an API server: write https://HOST:PORT"):
        Api.connect(server=url)


def test_a_password_in_a_url_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigException, match="has a user, which is not sent") as raised:
        Api.connect(server="https://bob:secret@host")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("user", [{"client-certificate-data": "Zm9v", "client-key-data": "Zm9v"}, {}])
@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_certificates_that_are_none_are_a_fault_of_each_request(
    tmp_path: Path, user: dict[str, str], name: str
) -> None:
    with hostile(lambda _: listing()) as server:
        url = f"https://{name}:{server.url.rpartition(':')[2]}"
        file = kubeconfig(tmp_path, url, user, **{"certificate-authority-data": "Zm9v"})
        with pytest.raises(UnansweredError):
            ask(Api.connect(kubeconfig=file))


@pytest.mark.usefixtures("at_once")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")
def test_a_plugin_may_give_certificates_and_runs_again_when_they_end(tmp_path: Path) -> None:
    authority = certificate(tmp_path, "ca")
    own = certificate(tmp_path, "server", "subjectAltName=IP:127.0.0.1", by="ca")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority[0])
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(*own)
    statuses = []
    for name, end in (("ann", BEFORE), ("bob", BEFORE), ("cas", LATER)):
        files = certificate(tmp_path, name, by="ca")
        given = {"clientCertificateData": files[0].read_text(), "clientKeyData": files[1].read_text()}
        statuses.append({**given, "expirationTimestamp": end})
    with hostile(lambda _: listing(), tls=tls) as server:
        user = plugin(tmp_path, *statuses)
        file = kubeconfig(tmp_path, server.url, user, **{"certificate-authority": str(authority[0])})
        ask(Api.connect(kubeconfig=file), 3)
    assert [asked.subject for asked in server.asked] == ["bob", "cas", "cas"]


@pytest.mark.usefixtures("at_once")
@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")
def test_files_with_certificates_are_read_again(tmp_path: Path) -> None:
    authority = certificate(tmp_path, "ca")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority[0])
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_cert_chain(*certificate(tmp_path, "server", "subjectAltName=IP:127.0.0.1", by="ca"))
    ann, bob = certificate(tmp_path, "ann", by="ca"), certificate(tmp_path, "bob", by="ca")
    with hostile(lambda _: listing(), tls=tls) as server:
        user = {"client-certificate": "ann.crt", "client-key": "ann.key"}
        api = Api.connect(kubeconfig=kubeconfig(tmp_path, server.url, user, **{"certificate-authority": "ca.crt"}))
        ask(api)
        for old, new in zip(ann, bob, strict=True):
            new.replace(old)
        ask(api)
    assert [asked.subject for asked in server.asked] == ["ann", "bob"]


def certificate(folder: Path, name: str, *extensions: str, by: str = "") -> tuple[Path, Path]:
    """Make a certificate and its key; without `by` one that signs others."""
    files = folder / f"{name}.crt", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", f"/CN={name}", "-out", str(files[0]), "-keyout", str(files[1])]
    for extension in extensions or ("keyUsage=critical,keyCertSign,digitalSignature",):
        command += ["-addext", extension]
    if by:
        command += ["-CA", str(folder / f"{by}.crt"), "-CAkey", str(folder / f"{by}.key")]
    subprocess.run(command, check=True, capture_output=True)
    return files
