"""Queries to a Prometheus over HTTP, and servers that are none."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from kueuecore._json import JsonObject, list_at, texts_at
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history import history_of
from kueuecore.kubernetes import prometheus
from kueuecore.kubernetes.prometheus import connected
from tests.unit.forecasts.history.recorded_metrics import HOUR, MONDAY, Job, Pod, matrix, range_answer

NOW = round((MONDAY + 86_400) * 1e9)


class Request(BaseHTTPRequestHandler):
    """One request."""

    answer: Callable[[Request], tuple[int, dict[str, str], bytes]]

    def do_GET(self) -> None:
        code, headers, body = type(self).answer(self)
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving(answer: Callable[[Request], tuple[int, dict[str, str], bytes]]) -> Iterator[str]:
    handler = type("Handler", (Request,), {"answer": staticmethod(answer)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ok(answer: JsonObject) -> tuple[int, dict[str, str], bytes]:
    return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()


def refusal(address: str) -> str:
    with pytest.raises(ManifestError) as caught:
        connected(address)("up", 0, 10**12, 60)
    return str(caught.value.problems[0])


def test_a_server_with_a_path_and_a_password_tells_of_the_queues() -> None:
    jobs = [Job(at * 600, at * 600 + 60, at * 600 + 1260) for at in range(140)]
    recorded = range_answer(jobs, [Pod("a", 0, 90_000)], [hour * HOUR for hour in range(25)])
    asked: list[tuple[str, str | None, dict[str, list[str]]]] = []

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        parts = urlsplit(request.path)
        query = parse_qs(parts.query)
        asked.append((parts.path, request.headers["Authorization"], query))
        metric = query["query"][0].rpartition("(")[2].rstrip(")")
        found: list[JsonObject] = []
        for entry in list_at(recorded, "data", "result"):
            labels = texts_at(entry, "metric")
            # Of the two statuses of what waits, the other is 0.
            if labels.pop("__name__") == metric and labels.pop("status", "") != "inadmissible":
                found.append({"metric": {**labels}, "values": list_at(entry, "values")})
        return ok(matrix([*found]))

    with serving(answer) as address:
        named = f"{address.replace('//', '//ann:s%40fe@')}/prom/"
        found = history_of([named], now=NOW, ask=connected)
    (rates,) = found.rates
    # Samples by the hour: what starts and ends in between does not show, but the counters have it.
    assert rates.mean_run_seconds == pytest.approx(1200, rel=0.1)
    assert [round(window.arrivals or 0) for window in rates.windows[1:22]] == [6] * 21
    secret = f"Basic {base64.b64encode(b'ann:s@fe').decode()}"
    assert {(path, authorization) for path, authorization, _ in asked} == {("/prom/api/v1/query_range", secret)}
    assert (asked[0][2]["step"], asked[0][2]["end"]) == (["3600"], [f"{NOW / 1e9:.3f}"])
    assert found.notes[-1].startswith(f"{address}/prom/: 1 ClusterQueue taken, 24 hours on average")


def test_an_error_of_prometheus_is_told() -> None:
    body = json.dumps({"status": "error", "errorType": "execution", "error": "too many samples"}).encode()
    with serving(lambda _: (422, {}, body)) as address, pytest.raises(ManifestError) as caught:
        history_of([address], now=NOW, ask=connected)
    assert "kueue_admitted_workloads_total: Prometheus answered with an error: too many samples" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "headers", "body", "message"),
    [
        (200, {}, b"<html>Grafana</html>", "its answer is none of Prometheus; give the address of Prometheus itself"),
        (200, {}, b'{"kind": "Status"}', "its answer is none of Prometheus"),
        (200, {}, b"[" * 100_000, "its answer is none of Prometheus"),
        (404, {}, b"not found", "it answers 404 Not Found"),
        (503, {}, b"", "it answers 503 Service Unavailable"),
        (401, {}, b"{}", "it refuses: 401 Unauthorized; give the address as https://USER:PASSWORD@HOST"),
        (403, {}, b"", "it refuses: 403 Forbidden"),
        (
            302,
            {"Location": "https://elsewhere/"},
            b"",
            'it redirects to "https://elsewhere/", which is not followed; give that address, if it is the one',
        ),
    ],
)
def test_what_is_no_prometheus_is_an_error(code: int, headers: dict[str, str], body: bytes, message: str) -> None:
    with serving(lambda _: (code, headers, body)) as address:
        assert refusal(address).startswith(f"{address}: {message}")


def test_a_redirect_is_not_followed_with_the_password() -> None:
    reached: list[str | None] = []

    def elsewhere(request: Request) -> tuple[int, dict[str, str], bytes]:
        reached.append(request.headers["Authorization"])
        return ok(matrix([]))

    with serving(elsewhere) as other, serving(lambda _: (307, {"Location": other}, b"")) as address:
        assert "which is not followed" in refusal(address.replace("//", "//ann:secret@"))
    assert reached == []


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://", "it is no address of a server"),
        ("http://[::1", "it is no address: Invalid IPv6 URL"),
        ("http://host:port", "it is no address: Port could not be cast"),
        ("http://host:99999", "it is no address: Port out of range"),
        ("http://host/?a=b", "it is an address with a query"),
        ("http://ann:secret@host#x", "it is an address with a query"),
        (f"http://{'a' * 70}.example", "it is no address"),
        ("http://no-such-host.invalid", "cannot be reached"),
        ("http://127.0.0.1:1/a b", "it is no address"),
        ("http://a b/", "it is no address"),
    ],
)
def test_what_is_no_address_is_an_error(address: str, message: str) -> None:
    found = refusal(address)
    assert message in found
    assert "secret" not in found


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert refusal(f"http://127.0.0.1:{port}").startswith(
        f"http://127.0.0.1:{port}: cannot be reached: Connection refused; check the address, such as "
    )


@contextmanager
def speaking(*said: bytes) -> Iterator[str]:
    """Something that listens, says this whatever is asked, and then nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                for part in said:
                    connection.sendall(part)
                stop.wait(10)

        stop = threading.Event()
        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


def test_another_protocol_is_an_error() -> None:
    with speaking(b"SSH-2.0-OpenSSH_9.6\r\n") as address:
        assert "it does not speak HTTP" in refusal(address)


def test_https_to_a_port_of_http_is_an_error() -> None:
    with speaking(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
        assert "no TLS with it" in refusal(address.replace("http:", "https:"))


def test_silence_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_SILENT_SECONDS", 0.2)
    with speaking() as address:
        assert "cannot be reached: it does not answer in time" in refusal(address)


def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "_MOST_BYTES", 1 << 20)
    with speaking(b"HTTP/1.1 200 OK\r\n\r\n", b" " * (1 << 20) + b"more") as address:
        assert "its answer has more than 1 MiB" in refusal(address)
