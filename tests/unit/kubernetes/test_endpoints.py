"""The ports for metrics and health, with clients that keep them busy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from kueuecore.kubernetes.endpoints import ProcessMetrics, serve_health, serve_metrics
from kueuecore.kubernetes.https.messages import ServerLimits
from kueuecore.kubernetes.settings import Address
from kueuecore.releases import Release
from kueuecore.version import version

HERE = Address("127.0.0.1", 0)


@pytest.fixture
def idle() -> Iterator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    yield sockets
    for other in sockets:
        other.close()


def answer(port: int, path: str = "healthz") -> str:
    with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as response:
        return str(response.read().decode())


def test_clients_that_say_nothing_keep_nobody_away(idle: list[socket.socket]) -> None:
    port = serve_health(HERE, healthy=dict, ready=dict, limits=ServerLimits(connections=4))
    for _ in range(12):
        idle.append(socket.create_connection(("127.0.0.1", port), timeout=60))
        assert answer(port) == "ok"
    # The first ones have made room.
    assert idle[0].recv(1) == b""


def test_a_client_that_is_too_slow_is_cut_off(idle: list[socket.socket]) -> None:
    port = serve_metrics(HERE, ProcessMetrics(Release.named("0.17.3")), limits=ServerLimits(patience_seconds=0.05))
    idle.append(socket.create_connection(("127.0.0.1", port), timeout=60))
    idle[0].sendall(b"GET / HT")
    assert idle[0].recv(1) == b""
    text = answer(port, "metrics")
    assert f'kueuecore_build_info{{kueue_commit="",kueue_version="v0.17.3",version="{version()}"}} 1.0' in text
