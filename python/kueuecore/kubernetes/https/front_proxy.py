"""Knows whom the API server forwards requests for, as servers behind the aggregation layer do."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass
from urllib.parse import unquote

from kueuecore._json import object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.https.delegated_access import User
from kueuecore.kubernetes.https.messages import Request

__all__ = ["FrontProxy", "ProxySettings"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
_PERIOD_SECONDS = 60.0
# Until it is tried again.
_FAULT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Who may forward requests, and where it says for whom.

    Args:
        cas: The CAs of its certificate, as PEM; empty: nobody may.
        names: The common names that its certificate may have; empty: any.
        user_headers: The headers of the user's name, the first that is there counts.
        uid_headers: The headers of the user's UID.
        group_headers: The headers of the user's groups.
        extra_prefixes: How the headers begin that hold what else is known.
    """

    cas: str = ""
    names: tuple[str, ...] = ()
    user_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    def user_of(self, request: Request) -> User | None:
        """Return for whom a request is forwarded; None if it is not, or not by who may."""
        peer, headers = request.peer, request.headers
        if not self.cas or peer is None or (self.names and peer.common_name not in self.names):
            return None
        name = next((text for header in self.user_headers if (text := headers.get(header, ""))), "")
        if not name:
            return None
        uid = next((text for header in self.uid_headers if (text := headers.get(header, ""))), "")
        groups = tuple(group for header in self.group_headers for group in headers.get_all(header, []))
        extra: dict[str, tuple[str, ...]] = {}
        for header in {*map(str.lower, headers)}:
            for prefix in self.extra_prefixes:
                if header.startswith(prefix.lower()):
                    key = unquote(header.removeprefix(prefix.lower()))
                    extra[key] = tuple(headers.get_all(header, []))
        return User(name, groups, uid, extra).authenticated()


class FrontProxy:
    """Follows the settings that the API server publishes for servers behind it.

    Args:
        api: The API server; needs `get` for ConfigMap kube-system/extension-apiserver-authentication.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._over = threading.Event()
        self._fault = ""
        self.settings = ProxySettings()
        """The settings that were read last."""

    def client_cas(self) -> str:
        """Return the CAs of the certificates that clients may bring."""
        return self.settings.cas

    def start(self) -> None:
        """Read the settings now, and each minute in a thread; after a fault sooner."""
        self.look()
        threading.Thread(target=self._repeat, name="front-proxy", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()

    def look(self) -> None:
        """Read the settings; keep the last ones, and log it once, if they cannot be read."""
        try:
            data = object_at(self._api.get(_PATH), "data")
            read = ProxySettings(
                text_at(data, "requestheader-client-ca-file"),
                _names(text_at(data, "requestheader-allowed-names")),
                _names(text_at(data, "requestheader-username-headers")),
                _names(text_at(data, "requestheader-uid-headers")),
                _names(text_at(data, "requestheader-group-headers")),
                _names(text_at(data, "requestheader-extra-headers-prefix")),
            )
        except (RefusedError, UnansweredError, ValueError, RecursionError) as error:
            fault = logged(error)
            if fault != self._fault:
                message = (
                    "cannot read for whom the API server forwards requests: bind the Role of deploy/visibility.yaml"
                )
                _LOGGER.warning(message, extra={"error": fault})
            self._fault = fault
            return
        self._fault = ""
        self.settings = read

    def _repeat(self) -> None:
        while not self._over.wait(_PERIOD_SECONDS if not self._fault else _FAULT_SECONDS):
            self.look()


def _names(text: str) -> tuple[str, ...]:
    """Read a list of names.

    Raises:
        ValueError: It is none.
    """
    found = json.loads(text or "[]")
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{text[:50]!r} is no list of names")
    return tuple(found)
