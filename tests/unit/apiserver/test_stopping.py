"""The end of a server: no connection outlives it."""

from __future__ import annotations

import gc
import socket
import warnings
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver import server as server_module


def test_a_client_that_does_not_read_loses_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_STOP_SECONDS", 0.1)
    server = HttpApiServer(ApiServer())
    # More than the kernel holds for a client, so that the rest waits in the server.
    metadata = ({"name": f"n{n}", "annotations": {"text": "x" * 200_000}} for n in range(40))
    server.load({"apiVersion": "v1", "kind": "Namespace", "metadata": entry} for entry in metadata)
    with server, socket.socket() as client:
        address = urlsplit(server.url)
        client.connect((address.hostname, address.port))
        client.sendall(b"GET /api/v1/namespaces HTTP/1.1\r\nHost: here\r\n\r\n")
        assert client.recv(8) == b"HTTP/1.1"
        server.stop()
        # A connection that is left open warns once it is collected, which fails whatever test runs then.
        gc.collect()
        client.settimeout(5)
        received = 0
        while chunk := client.recv(2**20):
            received += len(chunk)
    assert received < 8_000_000


def test_connections_accepted_at_the_last_moment_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = HttpApiServer(ApiServer()).start()
    loop, stopping, address = server._loop, server._stopping, urlsplit(server.url)
    assert loop is not None
    assert stopping is not None
    clients: list[socket.socket] = []

    def comes_and_ends() -> None:
        clients.extend(socket.create_connection((address.hostname, address.port)) for _ in range(5))
        # The loop accepts them in its next turn, hears of the end in the same, and makes the connections after that.
        loop.call_soon(stopping.set)

    asked = loop.call_soon_threadsafe
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda _: asked(comes_and_ends))
    server.stop()
    assert len(clients) == 5
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(warning.message) for warning in seen] == []
    for client in clients:
        with client:
            client.settimeout(10)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
