"""Processes of `kueuecore serve` in a cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kueuecore._json import text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import UnansweredError
from scripts.clusters.place import ROOT, Cluster, wait_for
from scripts.clusters.processes import end, free_port, start

__all__ = ["CONFIGURATION", "Replica", "Replicas"]

# A killed leader is noticed after three seconds, not fifteen.
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 1s}
clientConnection: {qps: 300, burst: 500}
integrations: {frameworks: [batch/job, pod]}
"""
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases/c1f6bfd2.kueue.x-k8s.io"
_RENEWED = 4.0


class Replica:
    """A process of `kueuecore serve`.

    Args:
        name: Its name in the Lease.
        cluster: Where it works.
        configuration: The file of its Configuration.
        folder: Where its log goes.
    """

    def __init__(self, name: str, cluster: Cluster, configuration: Path, folder: Path) -> None:
        self.name, self.log = name, folder / f"{name}.log"
        self._ports = free_port(), free_port()
        metrics, health = (f"127.0.0.1:{port}" for port in self._ports)
        command = [sys.executable, "-m", "kueuecore", "serve", "--config", str(configuration),
                   "--kubeconfig", str(cluster.serve_kubeconfig), "--metrics-address", metrics,
                   "--health-address", health]  # fmt: skip
        environment = {"POD_NAME": name, "PYTHONPATH": str(ROOT / "python")}
        self.process: subprocess.Popen[bytes] = start(command, log=self.log, environment=environment)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def unready(self) -> str:
        """Return why it is not ready, as /readyz says it; empty if it is."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[1]}/readyz", timeout=5):
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode() or str(error.code)
        except OSError as error:
            return str(error)

    def listens(self) -> bool:
        """Whether it answers."""
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self._ports[1]}/healthz", timeout=5).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def metrics(self) -> str:
        """Return its metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._ports[0]}/metrics", timeout=10) as page:
            return str(page.read().decode())

    def logged(self) -> Iterator[dict[str, Any]]:
        """Yield what it has logged."""
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("{"):
                try:
                    yield json.loads(line)
                except ValueError:  # It was killed while it wrote.
                    continue


class Replicas:
    """Two processes of `kueuecore serve`, of which one leads.

    Args:
        cluster: Where they work.
        folder: Where their logs go.
        n: How many there are.
        configuration: Their Configuration.
    """

    def __init__(self, cluster: Cluster, folder: Path, *, n: int = 2, configuration: str = CONFIGURATION) -> None:
        self._cluster, self._folder, self._n, self._api = cluster, folder, n, cluster.api()
        self._configuration = folder / "configuration.yaml"
        self._configuration.write_text(configuration, encoding="utf-8")
        self.all: list[Replica] = []
        """All that were started, also those that have ended."""
        for _ in range(n):
            self.add()

    def add(self) -> Replica:
        """Start one more."""
        replica = Replica(f"replica-{len(self.all) + 1}", self._cluster, self._configuration, self._folder)
        self.all.append(replica)
        return replica

    def holder(self) -> str:
        """Return the name that the Lease has; empty: none, or the server does not answer."""
        try:
            return text_at(self._api.get(_LEASE), "spec", "holderIdentity")
        except (RefusedError, UnansweredError):
            return ""

    def leader(self) -> Replica | None:
        """Return the replica that holds the Lease, if it is alive."""
        name = self.holder().rpartition("_")[0]
        return next((replica for replica in self.all if replica.is_alive and replica.name == name), None)

    def wait_for_leader(self, *, seconds: float = 60.0) -> Replica:
        """Return the leader, once there is one that is alive.

        Raises:
            AssertionError: There is none in time.
        """
        until = time.monotonic() + seconds
        while (found := self.leader()) is None:
            assert time.monotonic() < until, f"no replica leads: see {self._folder}"
            self.tend()
            time.sleep(0.1)
        return found

    def kill_leader(self) -> Replica:
        """Kill the leader, start another replica, and return the next leader."""
        leader = self.wait_for_leader()
        leader.process.kill()
        leader.process.wait()
        return self.wait_for_leader()

    def stop_leader(self, *, seconds: float) -> Replica:
        """Stop the leader for a while, then let it go on; return it."""
        leader = self.wait_for_leader()
        leader.process.send_signal(signal.SIGSTOP)
        try:
            wait_for(
                lambda: self.holder().rpartition("_")[0] not in ("", leader.name), "another leads", seconds=seconds
            )
        finally:
            leader.process.send_signal(signal.SIGCONT)
        return leader

    def tend(self) -> None:
        """Start others in the place of those that have ended, as a Deployment does."""
        for _ in range(self._n - sum(replica.is_alive for replica in self.all)):
            self.add()

    def close(self) -> None:
        """End all, once those that have just been added listen, and so heed signals.

        Raises:
            AssertionError: One did not end with exit code 0.
        """
        wait_for(lambda: all(it.listens() for it in self.all if it.is_alive), "all replicas listen")
        codes = {replica.name: end(replica.process, seconds=30) for replica in self.all if replica.is_alive}
        assert not any(codes.values()), f"replicas ended with {codes}: see {self._folder}"

    def kill(self) -> None:
        """Kill all."""
        for replica in self.all:
            if replica.is_alive:
                replica.process.kill()
            replica.process.wait()
