"""Looks at the Kueue beside a dry run every few seconds: its release, its Lease, and whether it was replaced."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from urllib.parse import quote

from kueuecore._json import object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.configuration import Configuration
from kueuecore.errors import KueuecoreError, ManifestError
from kueuecore.kubernetes.api import Api, UnansweredError

__all__ = ["KueueWatch", "lease_path"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# A Lease that was not renewed in as many looks has no holder.
_STALE_LOOKS = 3


class KueueWatch:
    """Asks for Kueue's Deployment and Lease; one that may not be read, or does not exist, is not missed.

    Args:
        api: The API server.
        configuration: The Configuration that decisions are judged by.
        configure: Reads the Configuration of the Kueue in the cluster anew; raises an error if its release is unknown.
        changed: Called with another Configuration and what has happened.
        paused: Called with why nothing can be judged, and with an empty reason once it can.
        seconds: How long from one look to the next.
    """

    def __init__(
        self,
        api: Api,
        configuration: Configuration,
        *,
        configure: Callable[[], Configuration],
        changed: Callable[[Configuration, str], None],
        paused: Callable[[str], None],
        seconds: float = 15.0,
    ) -> None:
        self._api, self._configuration, self._configure = api, configuration, configure
        self._changed, self._paused, self._seconds = changed, paused, seconds
        self._lease_path = lease_path(configuration)
        self._holder = self._renewed = ""
        self._n_stale = 0
        self._why = ""
        self._is_over = threading.Event()

    def start(self) -> None:
        """Begin to look, in a thread."""
        threading.Thread(target=self._run, name="kueue-beside", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._is_over.set()

    def look(self) -> None:
        """Look once."""
        problem = self._look_at_release() or self._look_at_lease()
        if problem != self._why:
            self._why = problem
            self._paused(problem)

    def _run(self) -> None:
        while not self._is_over.wait(self._seconds):
            try:
                self.look()
            except Exception as error:
                # A look that fails must not end a dry run of weeks.
                _LOGGER.warning("cannot look at Kueue", extra={"error": logged(error)})

    def _look_at_release(self) -> str:
        try:
            found = self._configure()
        except KueuecoreError as error:
            problem = error.problems[0] if isinstance(error, ManifestError) else error
            return f"Kueue has changed to what this version of kueuecore does not know: {logged(problem)}"
        before = self._configuration
        if found.release.name != before.release.name or found.to_dict() != before.to_dict():
            self._configuration = found
            what = f"Kueue has changed from {before.release.name} to {found.release.name}"
            self._changed(found, what if found.release.name != before.release.name else "Kueue's gates have changed")
        return ""

    def _look_at_lease(self) -> str:
        if not self._lease_path:
            return ""
        try:
            lease = self._api.send("GET", self._lease_path, seconds=5.0)
        except (RefusedError, UnansweredError) as error:
            _LOGGER.debug("Kueue's Lease cannot be read", extra={"error": logged(error)})
            return ""
        spec = object_at(lease, "spec")
        holder, renewed = text_at(spec, "holderIdentity"), text_at(spec, "renewTime")
        if holder and self._holder and holder != self._holder:
            self._changed(self._configuration, "another Kueue process decides")
        self._holder = holder or self._holder
        self._n_stale = 0 if holder and renewed != self._renewed else self._n_stale + 1
        self._renewed = renewed
        return "no Kueue holds its Lease" if self._n_stale >= _STALE_LOOKS else ""


def lease_path(configuration: Configuration) -> str:
    """Return the path of Kueue's Lease; empty if it needs none."""
    settings = configuration.to_dict()
    election = object_at(settings, "leaderElection")
    if not election.get("leaderElect"):
        return ""
    namespace = text_at(election, "resourceNamespace") or text_at(settings, "namespace") or "kueue-system"
    names = quote(namespace, safe=""), quote(text_at(election, "resourceName"), safe="")
    return "/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}".format(*names)
