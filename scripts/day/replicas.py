"""Two replicas of `kueuecore serve`, each in its own process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kueuecore._json import text_at
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes import Api

__all__ = ["Replicas"]

# Notice a killed leader after three seconds, not fifteen.
_CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 1s}
clientConnection: {qps: -1}
health: {healthProbeBindAddress: "0"}
integrations: {frameworks: [batch/job]}
"""
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases/c1f6bfd2.kueue.x-k8s.io"


class Replicas:
    """Starts two replicas, kills the leader, and starts another replica in its place.

    Args:
        api: The API server, to read the Lease.
        place: Arguments that point to that server.
        folder: The folder for their logs.
    """

    def __init__(self, api: Api, place: Sequence[str], folder: Path) -> None:
        self._api, self._place, self._folder = api, place, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._configuration = folder / "configuration.yaml"
        self._configuration.write_text(_CONFIGURATION)
        self._running: list[subprocess.Popen[bytes]] = []
        self._metrics: dict[int, str] = {}
        self._n_started = 0
        self.start()
        self.start()

    def start(self) -> None:
        """Start one more."""
        self._n_started += 1
        name = f"replica-{self._n_started}"
        metrics = f"127.0.0.1:{_free_port()}"
        command = [sys.executable, "-m", "kueuecore", "serve", "--config", str(self._configuration), *self._place]
        command += ["--metrics-address", metrics]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log, env={**os.environ, "POD_NAME": name})
        self._running.append(process)
        self._metrics[process.pid] = f"http://{metrics}/metrics"

    def leader(self) -> subprocess.Popen[bytes] | None:
        """Return the replica that holds the Lease, if it is alive."""
        try:
            holder = text_at(self._api.get(_LEASE), "spec", "holderIdentity")
        except RefusedError:
            return None
        pid = holder.rpartition("_")[2]
        return next(
            (manifest for manifest in self._running if str(manifest.pid) == pid and manifest.poll() is None), None
        )

    def wait_for_leader(self, *, seconds: float = 60.0) -> None:
        """Wait until there is a leader.

        Raises:
            TimeoutError: There is none in time.
        """
        until = time.monotonic() + seconds
        while self.leader() is None:
            ended = [manifest.returncode for manifest in self._running if manifest.poll() is not None]
            if ended:
                raise RuntimeError(f"a replica has ended with {ended[0]}: see {self._folder}")
            if time.monotonic() > until:
                raise TimeoutError(f"no replica leads: see {self._folder}")
            time.sleep(0.1)

    def catch_up(self) -> None:
        """Wait until the leader has processed all events and decided on them."""
        leader = self.leader()
        if leader is None:
            return
        for _ in range(2):
            # The deciding thread renders this page in turn, so the second page follows a decision.
            with suppress(OSError), urllib.request.urlopen(self._metrics[leader.pid], timeout=10) as page:
                page.read()

    def replace_dead(self) -> None:
        """Start another replica for each that was killed."""
        for process in [manifest for manifest in self._running if manifest.poll() is not None]:
            self._running.remove(process)
            self.start()

    def stop(self) -> None:
        """Ask all replicas to stop.

        Raises:
            RuntimeError: One did not stop cleanly.
        """
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        codes = [process.wait(timeout=30) for process in self._running]
        if any(codes):
            raise RuntimeError(f"replicas ended with {codes}: see {self._folder}")

    def kill(self) -> None:
        """Kill all replicas."""
        for process in self._running:
            process.kill()
            process.wait()


def log_folder() -> Path:
    """Make a folder for logs that is not deleted."""
    return Path(tempfile.mkdtemp(prefix="kueuecore-day-"))


def _free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port: int = it.getsockname()[1]
        return port
