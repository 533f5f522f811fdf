"""What the Configuration says of the process."""

from __future__ import annotations

import pytest

from kueuecore import Configuration
from kueuecore.kubernetes import Address, ServeSettings


def of(text: str) -> ServeSettings:
    return ServeSettings.of(
        Configuration.parse(f"{{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, {text}}}")
    )


def test_without_a_file_it_is_what_kueue_has() -> None:
    settings = ServeSettings.of(None)
    lease = settings.lease
    assert (settings.metrics, settings.health) == (Address("", 8443), Address("", 8081))
    assert (settings.qps, settings.burst) == (1000.0, 1000)
    assert lease is not None
    assert (lease.namespace, lease.name) == ("kueue-system", "c1f6bfd2.kueue.x-k8s.io")
    assert (lease.duration_seconds, lease.deadline_seconds, lease.retry_seconds) == (15, 10, 2)


def test_the_file_counts() -> None:
    settings = of(
        "leaderElection: {leaderElect: true, resourceName: mine, resourceNamespace: lab, leaseDuration: 1m0s}, "
        "clientConnection: {qps: 5, burst: 2}, metrics: {bindAddress: '127.0.0.1:9'}, "
        "health: {healthProbeBindAddress: '[::1]:0'}"
    )
    assert (settings.metrics, settings.health) == (Address("127.0.0.1", 9), Address("::1", 0))
    assert (settings.qps, settings.burst) == (5.0, 2)
    assert settings.lease is not None
    assert (settings.lease.namespace, settings.lease.name, settings.lease.duration_seconds) == ("lab", "mine", 60)


def test_no_election_no_lease_and_no_limit_no_pace() -> None:
    settings = of("leaderElection: {leaderElect: false}, clientConnection: {qps: -1}, metrics: {bindAddress: '0'}")
    assert (settings.lease, settings.qps, settings.metrics) == (None, None, None)


@pytest.mark.parametrize("text", ["8080", "host", ":port", ":70000"])
def test_an_address_that_is_none_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="write HOST:PORT or :PORT, or 0 for none"):
        Address.parse(text)
