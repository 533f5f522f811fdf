"""Opens connections to the workers of MultiKueue, with the rate of requests that Kueue allows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kueuecore._json import int_at, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.kubernetes.api import Answered, Api
from kueuecore.kubernetes.credentials import Client
from kueuecore.kubernetes.workers.credentials import WorkerCredentials
from kueuecore.kubernetes.workers.link import LinkReports, WorkerLink

__all__ = ["WorkerConnecting"]

# Those of client-go.
_QPS, _BURST = 5.0, 10


class WorkerConnecting:
    """Opens connections.

    Args:
        configuration: Kueue's Configuration.
        confirm: Called before each write; raises an error if another process may decide by now.
        died: Called with that error.
        answered: Called after each request.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        confirm: Callable[[], None],
        died: Callable[[BaseException], None],
        answered: Answered | None,
    ) -> None:
        self._confirm, self._died, self._answered = confirm, died, answered
        settings = configuration.to_dict()
        self._origin = text_at(settings, "multiKueue", "origin") or "multikueue"
        self._qps: float | None = _QPS
        self._burst = _BURST
        if configuration.is_enabled("MultiKueueReuseClientConnectionConfigForWorkers"):
            qps = object_at(settings, "clientConnection").get("qps")
            self._qps = float(qps) if isinstance(qps, int | float) and qps > 0 else None
            self._burst = int_at(settings, "clientConnection", "burst", default=1)

    def open(
        self,
        cluster: str,
        credentials: WorkerCredentials,
        kinds: Mapping[str, tuple[str, str]],
        reports: LinkReports,
    ) -> WorkerLink:
        """Begin to connect to a worker."""
        client = Client(lambda: credentials.credentials)
        api = Api(client, qps=self._qps, burst=self._burst, answered=self._answered)
        return WorkerLink(
            cluster,
            api,
            credentials,
            kinds=kinds,
            origin=self._origin,
            reports=reports,
            confirm=self._confirm,
            died=self._died,
        )
