"""What goes wrong on request."""

from __future__ import annotations

import http.client
import time

import pytest

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import Closing, Fault, FaultKind, HttpApiServer, Request, SeededFaults, refusal_of
from tests.unit.apiserver.wire import MAPS, Client, cluster, config_map


@pytest.mark.parametrize("code", [404, 409, 429, 500, 503, 504])
def test_a_request_is_refused_before_anything_happens(code: int) -> None:
    fault = Fault(refusal=refusal_of(code), retry_after_seconds=3 if code == 429 else None)
    with cluster(faults=lambda request: fault if request.verb == "create" else None) as client:
        reply = client.post(MAPS, config_map())
        assert client.get(f"{MAPS}/cm").code == 404
        assert client.server.requests[0].code == code
    assert (reply.code, reply.body["code"], reply.body["kind"]) == (code, code, "Status")
    assert reply.headers.get("Retry-After") == ("3" if code == 429 else None)


@pytest.mark.parametrize(("closing", "code"), [(Closing.BEFORE, 404), (Closing.AFTER, 200)])
def test_a_connection_breaks_before_or_after_the_write(closing: Closing, code: int) -> None:
    fault = Fault(closing=closing)
    with cluster(faults=lambda request: fault if request.verb == "create" else None) as client:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            client.post(MAPS, config_map())
        client.connection.close()
        assert client.get(f"{MAPS}/cm").code == code


def test_an_answer_is_slow_and_the_write_is_done() -> None:
    fault = Fault(answer_delay_seconds=0.5)
    with cluster(faults=lambda request: fault if request.verb == "create" else None) as client:
        hasty = http.client.HTTPConnection(client.host, timeout=0.05)
        hasty.request("POST", MAPS, '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}')
        until = time.monotonic() + 5
        while client.get(f"{MAPS}/cm").code != 200:
            assert time.monotonic() < until
        with pytest.raises(TimeoutError):
            hasty.getresponse()
        hasty.close()


def test_a_request_may_be_carried_out_late() -> None:
    fault = Fault(delay_seconds=0.05)
    with cluster(faults=lambda request: fault if request.verb == "create" else None) as client:
        began = time.monotonic()
        client.post(MAPS, config_map())
        assert time.monotonic() - began > 0.05


def drawn(seed: int) -> list[int]:
    rates = {FaultKind.CONFLICT: 0.2, FaultKind.UNAVAILABLE: 0.2, FaultKind.NO_SUCH_KIND: 0.1}
    faults = SeededFaults(seed=seed, rates=rates)
    with cluster(faults=faults) as client:
        codes = [client.post(MAPS, config_map(f"m{index}")).code for index in range(40)]
    assert sum(faults.n_drawn.values()) == 40 - codes.count(201)
    return codes


def test_a_seed_draws_the_same_faults_again() -> None:
    one = drawn(1)
    assert one == drawn(1) != drawn(2)
    assert {201, 404, 409, 503} == set(one)


def test_faults_happen_to_requests_that_they_fit() -> None:
    everything = SeededFaults(seed=0, rates=dict.fromkeys(FaultKind, 1.0))
    ask = [
        Request.of(*entry, {}) for entry in (("GET", MAPS), ("POST", MAPS), ("GET", f"{MAPS}?watch=1"), ("GET", "/api"))
    ]
    kinds = [everything(entry) for entry in ask]
    assert [None if kind is None or kind.refusal is None else kind.refusal.code for kind in kinds] == [
        429,
        409,
        429,
        None,
    ]
    watches = SeededFaults(seed=0, rates={FaultKind.WATCH_IS_GONE: 1.0})
    assert [watches(entry) is not None for entry in ask] == [False, False, True, False]


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_rates_are_between_0_and_1(rate: float) -> None:
    with pytest.raises(ValueError, match=r"^rates\[slow\] must be between 0 and 1"):
        SeededFaults(seed=0, rates={FaultKind.SLOW: rate})


def test_bugs_of_the_server_come_out_when_it_stops() -> None:
    def webhooks(*_: object, **__: object) -> object:
        raise ZeroDivisionError

    server = HttpApiServer(ApiServer(), webhooks=webhooks)  # type: ignore[arg-type]  # a webhook with a bug
    server.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
    server.start()
    client = Client(server)
    assert client.post(MAPS, config_map()).code == 500
    client.connection.close()
    with pytest.raises(ExceptionGroup, match="bugs of its own"):
        server.stop()


def test_the_world_is_reached_between_two_requests() -> None:
    with cluster() as client:
        assert client.server.call(lambda api: api.version) == 1
        with pytest.raises(KeyError):
            client.server.call(lambda api: {"a": 1}["none"])


def test_a_taken_port_is_an_error() -> None:
    with cluster() as client, pytest.raises(OSError, match="address already in use"):
        HttpApiServer(port=int(client.host.rpartition(":")[2])).start()
