"""The server behind webhooks, metrics and visibility, with clients good and bad, over real TLS sockets."""

from __future__ import annotations

import http.client
import logging
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kueuecore.kubernetes.https.certificates import FileCertificates
from kueuecore.kubernetes.https.messages import Request, Response, ServerLimits
from kueuecore.kubernetes.https.server import HttpServer, ListenError
from kueuecore.kubernetes.https.tls import CertificateError, KeyPair, Peer, TlsContexts, TlsOptions
from kueuecore.kubernetes.settings import Address
from tests.unit.kubernetes.https import HERE, Fixed, ask, authority, client_pair, connect, serving, trusting

CA = authority()
TRUSTING = trusting(CA.certificate)


def echo(request: Request) -> Response:
    if request.path == "/fails":
        raise RuntimeError("a fault of its own")
    if request.path == "/slow":
        time.sleep(0.5)
    said = f"{request.method} {request.path} {sorted(request.query.items())} {request.body!r} {request.peer}"
    return Response.text(200, said)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(echo, ca=CA, limits=ServerLimits(body=1000)) as port:
        yield port


def test_requests_share_a_connection(port: int) -> None:
    with closing(http.client.HTTPSConnection("localhost", port, context=TRUSTING)) as connection:
        sockets = set()
        for n in range(3):
            connection.request("POST", f"/a%20b?limit={n}&limit=x&empty=", body=b"b" * n)
            sockets.add(connection.sock)
            answer = connection.getresponse()
            said = f"POST /a b [('empty', ['']), ('limit', ['{n}', 'x'])] {b'b' * n!r} None"
            assert (answer.status, answer.read().decode()) == (200, said)
        assert len(sockets) == 1
        assert connection.sock.version() == "TLSv1.3"


def test_a_head_has_no_body(port: int) -> None:
    found = ask(port, "/x", TRUSTING, method="HEAD")
    assert (found.status, found.body, found.headers["Content-Length"]) == (200, b"", str(len("HEAD /x [] b'' None")))


def test_a_client_of_old_tls_is_refused(port: int) -> None:
    context = trusting(CA.certificate)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with connect(port, context) as secured:
        assert secured.version() == "TLSv1.2"
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        connect(port, context)


# What Go 1.26 has for TLS 1.2.
SUITES = {
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}


@pytest.mark.parametrize("suite", SUITES)
def test_cipher_suites_have_the_names_of_the_standard(suite: str) -> None:
    context = TlsContexts(
        Fixed(CA.sign(["localhost"], now=datetime.now(UTC))), options=TlsOptions(cipher_suites=(suite,))
    )
    chosen = [row["name"] for row in context.context().get_ciphers() if row["protocol"] != "TLSv1.3"]
    assert chosen == [SUITES[suite]]


def test_a_suite_that_openssl_does_not_know_is_an_error_that_names_the_field() -> None:
    options = TlsOptions(cipher_suites=("TLS_ECDHE_RSA_WITH_NOTHING",))
    with pytest.raises(CertificateError, match=r"^tls\.cipherSuites: "):
        TlsContexts(Fixed(CA.sign(["localhost"], now=datetime.now(UTC))), options=options)


def test_with_the_newest_alone_tls_1_2_is_refused() -> None:
    tls = TlsContexts(Fixed(CA.sign(["localhost"], now=datetime.now(UTC))), options=TlsOptions(is_newest=True))
    server = HttpServer(HERE, echo, name="test", tls=tls)
    server.start()
    assert ask(server.port, "/", TRUSTING).status == 200
    context = trusting(CA.certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        connect(server.port, context)
    server.stop()


def test_a_certificate_of_the_list_names_the_client(tmp_path: Path) -> None:
    theirs, others = authority("theirs"), authority("others")
    good, bad = client_pair(theirs, "proxy", groups=["a", "b"]), client_pair(others, "proxy")
    late = client_pair(theirs, "proxy", now=datetime.now(UTC) - timedelta(days=2))
    with serving(echo, ca=CA, clients=theirs.certificate) as port:
        found = ask(port, "/", trusting(CA.certificate, client=good, folder=tmp_path))
        assert found.body.decode() == f"GET / [] b'' {Peer('proxy', ('a', 'b'))}"
        assert ask(port, "/", TRUSTING).body.decode() == "GET / [] b'' None"
        for wrong in (bad, late):
            with pytest.raises(OSError, match=r"alert|EOF|reset|closed|Broken"):
                ask(port, "/", trusting(CA.certificate, client=wrong, folder=tmp_path))


def test_new_handshakes_use_a_new_certificate_and_old_connections_go_on(tmp_path: Path) -> None:
    other = authority("other")

    def write(pair: KeyPair) -> None:
        (tmp_path / "tls.crt").write_text(pair.certificate)
        (tmp_path / "tls.key").write_text(pair.key)

    write(CA.sign(["localhost"], now=datetime.now(UTC)))
    server = HttpServer(HERE, echo, name="test", tls=TlsContexts(FileCertificates(tmp_path)))
    server.start()
    with closing(http.client.HTTPSConnection("localhost", server.port, context=TRUSTING)) as connection:
        connection.request("GET", "/old")
        connection.getresponse().read()
        write(other.sign(["localhost"], now=datetime.now(UTC)))
        assert ask(server.port, "/new", trusting(other.certificate)).status == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(server.port, "/new", TRUSTING)
        connection.request("GET", "/old")
        assert connection.getresponse().status == 200
    server.stop()


def raw(port: int, sent: bytes) -> bytes:
    """What comes back for bytes inside of TLS."""
    with connect(port, TRUSTING) as secured:
        secured.sendall(sent)
        found = b""
        while chunk := secured.recv(4096):
            found += chunk
        return found


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"BREW / HTTP/1.1\r\n\r\n", 501),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\na: " + b"b" * 70_000 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: \xc2\xb2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"GET /?" + b"a&" * 200 + b" HTTP/1.1\r\n\r\n", 400),
    ],
)
def test_a_bad_request_is_refused_in_plain_text_and_the_connection_closed(port: int, sent: bytes, status: int) -> None:
    head, _, body = raw(port, sent).partition(b"\r\n\r\n")
    assert head.split()[1:2] == [str(status).encode()], head
    assert b"Content-Type: text/plain" in head
    assert b"<" not in body


def test_a_body_is_asked_for_once_it_is_known_to_be_small_enough(port: int) -> None:
    sent = b"POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\nConnection: close\r\n\r\nab"
    found = raw(port, sent)
    assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert found.endswith(b"POST / [] b'ab' None")


def test_a_handlers_own_fault_is_logged_and_answered(port: int, caplog: pytest.LogCaptureFixture) -> None:
    assert ask(port, "/fails", TRUSTING).status == 500
    (record,) = caplog.records
    assert (record.message, record.__dict__["path"]) == ("a request is not answered", "/fails")


def test_garbage_leaves_no_trace_in_the_log_and_does_not_end_it(port: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = random.Random(7)
    for _ in range(60):
        garbage = rng.randbytes(rng.choice((1, 5, 50, 3000)))
        with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
            plain.sendall(rng.choice((b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n")) + garbage)
        with connect(port, TRUSTING) as secured:
            secured.sendall(
                rng.choice((b"", b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n")) + garbage
            )
    assert ask(port, "/", TRUSTING).status == 200
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG]


def test_clients_that_never_shake_hands_keep_nobody_away() -> None:
    with serving(echo, ca=CA, limits=ServerLimits(connections=4)) as port:
        idle = []
        for _ in range(12):
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=30))
            assert ask(port, "/", TRUSTING).status == 200
        assert idle[0].recv(1) == b"", "the first has made room"
        for other in idle:
            other.close()


def test_a_client_that_sends_a_byte_at_a_time_is_cut_off() -> None:
    with (
        serving(echo, ca=CA, limits=ServerLimits(body=1000, patience_seconds=0.3)) as port,
        connect(port, TRUSTING) as secured,
    ):
        secured.sendall(b"POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")
        n_sent = 0
        with suppress(OSError):
            while n_sent < 200:
                secured.sendall(b"x")
                time.sleep(0.05)
                n_sent += 1
        assert n_sent < 100


def test_a_client_that_does_not_read_is_cut_off() -> None:
    page = b"x" * (64 << 20)
    with (
        serving(lambda _: Response(200, page), ca=CA, limits=ServerLimits(patience_seconds=0.3)) as port,
        connect(port, TRUSTING) as secured,
    ):
        secured.sendall(b"GET / HTTP/1.1\r\n\r\n")
        time.sleep(1)
        n_read = 0
        with suppress(ConnectionResetError):
            while chunk := secured.recv(1 << 20):
                n_read += len(chunk)
        assert n_read < len(page)


def test_an_idle_connection_is_closed_in_time() -> None:
    limits = ServerLimits(idle_seconds=0.2)
    with serving(echo, ca=CA, limits=limits) as port, connect(port, TRUSTING) as secured:
        secured.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert secured.recv(4096).startswith(b"HTTP/1.1 200 OK")
        assert secured.recv(1) == b""


def test_stop_lets_an_answer_end_and_closes_what_waits() -> None:
    answers: list[int] = []
    with serving(echo, ca=CA) as port:
        waits = connect(port, TRUSTING)
        thread = threading.Thread(target=lambda: answers.append(ask(port, "/slow", TRUSTING).status))
        thread.start()
        time.sleep(0.2)
    thread.join(30)
    assert answers == [200]
    with waits:
        assert waits.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_taken_address_is_an_error_that_names_it(port: int) -> None:
    with pytest.raises(ListenError, match=f"things cannot be served at 127.0.0.1:{port}: "):
        HttpServer(Address("127.0.0.1", port), echo, name="things")
