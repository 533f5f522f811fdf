"""Reads the address and credentials of a cluster: from a URL, a kubeconfig or the pod, again before they expire."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException, kube_config
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from kueuecore._text import logged, quoted

__all__ = ["Client", "Context", "Credentials", "context_at", "credentials_at", "usable"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# Files with tokens and certificates are renewed long before the old ones expire.
_FILE_SECONDS = 60.0
# Do not run a plugin at every request if it fails, or its credentials are refused.
_LEAST_SECONDS = 10.0
# Settings of connections.
_OF_CONNECTIONS = ("ssl_ca_cert", "cert_file", "key_file", "verify_ssl", "tls_server_name", "proxy")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of an API server, and the credentials for it.

    Args:
        configuration: The configuration of the `kubernetes` client.
        seconds: When to read them again; None: only once they are refused.
    """

    configuration: Configuration
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a person calls a cluster, and the namespace that they mean if they name none.

    Args:
        name: The name of the context; empty: none.
        namespace: Its namespace.
    """

    name: str = ""
    namespace: str = "default"


class Client(ApiClient):
    """A client of the `kubernetes` package that reads its credentials again when they expire, and after a 401.

    Args:
        read: Reads the credentials.

    Raises:
        ConfigException: They cannot be read at first. Later failures are logged, and the old ones are kept.
    """

    def __init__(self, read: Callable[[], Credentials]) -> None:
        self._read = read
        self._read_at = 0.0
        self._until: float | None = None
        self._lock = threading.Lock()
        credentials = read()
        self._note(credentials)
        super().__init__(configuration=credentials.configuration)

    def update_params_for_auth(self, *arguments: Any, **options: Any) -> None:
        """Add the token to the headers of a request."""
        with self._lock:
            if self._until is not None and self._until <= time.monotonic():
                self._renew()
        super().update_params_for_auth(*arguments, **options)

    def call_api(self, *arguments: Any, **options: Any) -> Any:
        """Make a request for the generated classes."""
        answer = super().call_api(*arguments, **options)
        if answer.status == 401:
            self.refused()
        return answer

    def refused(self) -> None:
        """Read the credentials again before the next request: the server did not accept them."""
        with self._lock:
            soon = self._read_at + _LEAST_SECONDS
            self._until = soon if self._until is None else min(self._until, soon)

    def _renew(self) -> None:
        try:
            credentials = self._read()
        except ConfigException as error:
            self._until = time.monotonic() + _LEAST_SECONDS
            _LOGGER.warning("credentials cannot be read again", extra={"error": logged(error)})
            return
        self._note(credentials)
        before, after = self.configuration, credentials.configuration
        after.host = before.host
        if after.cert_file or any(
            getattr(before, connection) != getattr(after, connection) for connection in _OF_CONNECTIONS
        ):
            self.rest_client = RESTClientObject(after)
        self.configuration = after

    def _note(self, credentials: Credentials) -> None:
        seconds = credentials.seconds
        self._read_at = time.monotonic()
        self._until = None if seconds is None else self._read_at + max(seconds, _LEAST_SECONDS)


def credentials_at(
    *, server: str = "", kubeconfig: str | Path | None = None, context: str | None = None
) -> Credentials:
    """Read where an API server is, and the credentials for it; runs the exec plugin of a kubeconfig.

    Args:
        server: Its URL, if no credentials are needed.
        kubeconfig: A kubeconfig; by default, outside of a cluster, `KUBECONFIG` or `~/.kube/config`.
        context: A context of the kubeconfig; by default its current one.

    Raises:
        ConfigException: There are none, or they cannot be read.
    """
    if server:
        found = Configuration()
        found.host = _checked(server)
        return usable(Credentials(found))
    if kubeconfig is None and context is None and Path(config.incluster_config.SERVICE_TOKEN_FILENAME).is_file():
        found = Configuration()
        config.load_incluster_config(client_configuration=found)
        return usable(Credentials(found, _FILE_SECONDS))
    place = str(kubeconfig or kube_config.KUBE_CONFIG_DEFAULT_LOCATION)
    try:
        return usable(_of_kubeconfig(place, context))
    except ConfigException as error:
        raise ConfigException(f"{place}: {str(error).removeprefix('Invalid kube-config file. ')}") from None
    # The file's content may have any shape.
    except Exception as error:
        raise ConfigException(f"{place}: it is no kubeconfig: {type(error).__name__}: {error}") from None


def context_at(*, server: str = "", kubeconfig: str | Path | None = None, context: str | None = None) -> Context:
    """Return the context that `credentials_at` reads; in a pod, that of its service account.

    Args:
        server: As for `credentials_at`.
        kubeconfig: As for `credentials_at`.
        context: As for `credentials_at`.
    """
    if server:
        return Context()
    token = Path(config.incluster_config.SERVICE_TOKEN_FILENAME)
    if kubeconfig is None and context is None and token.is_file():
        with suppress(OSError):
            return Context("", token.with_name("namespace").read_text().strip() or "default")
    place = str(kubeconfig or kube_config.KUBE_CONFIG_DEFAULT_LOCATION)
    try:
        contexts, current = config.list_kube_config_contexts(config_file=place)
    # The file's content may have any shape; reading the credentials says what is wrong.
    except Exception:
        return Context(context or "")
    chosen = next((entry for entry in contexts if entry["name"] == context), current)
    return Context(chosen["name"], (chosen.get("context") or {}).get("namespace") or "default")


def _of_kubeconfig(place: str, context: str | None) -> Credentials:
    merged = kube_config.KubeConfigMerger(place).config
    if merged is None:
        raise ConfigException("there is no such file; give --kubeconfig, or --server")
    names = sorted(str(entry["name"]) for entry in merged.value.get("contexts") or ())
    if context is not None and context not in names:
        raise ConfigException(f"there is no context {quoted(context)}; it has {', '.join(names) or 'none'}")
    found = Configuration()
    # A renewed token is not written back: the file is not ours.
    loader = kube_config.KubeConfigLoader(merged, active_context=context, config_base_path=None)
    loader.load_and_set(found)
    of_context = context or merged["current-context"]
    chosen = merged["contexts"].get_with_name(of_context)["context"]
    for what, value in (("name", of_context), ("namespace", chosen.safe_get("namespace") or "")):
        if not isinstance(value, str):
            raise ConfigException(f"the {what} of context {of_context} is no string: write it in quotes")
    if not merged["clusters"].get_with_name(chosen["cluster"])["cluster"].safe_get("server"):
        raise ConfigException(f"cluster {chosen['cluster']} has no server")
    _checked(found.host)
    name = chosen.safe_get("user")
    user = merged["users"].get_with_name(name, safe=True) if name else None
    if user is None:
        return Credentials(found)
    values = user.value["user"] or {}
    if values.get("exec") and not values.get("token") and not (found.api_key or found.cert_file):
        raise ConfigException(f"the exec plugin of user {name} gave no credentials; why was logged before this")
    expiry = vars(loader).get("expiry")
    if expiry is not None:
        # Not at the last moment, and not at each request if the plugin's tokens are short-lived.
        return Credentials(found, 0.8 * (expiry.timestamp() - time.time()))
    has_files = values.get("tokenFile") or values.get("client-certificate")
    return Credentials(found, _FILE_SECONDS if has_files else None)


def usable(credentials: Credentials) -> Credentials:
    """Check credentials, and set what the client needs besides.

    Raises:
        ConfigException: They cannot be sent.
    """
    found = credentials.configuration
    # Credentials are read again here, from wherever they came.
    found.refresh_api_key_hook = None
    # Files end with a newline, which must not get into a header.
    found.api_key = {name: key.strip() for name, key in found.api_key.items()}
    if any(not (key.isascii() and key.isprintable()) for key in found.api_key.values()):
        raise ConfigException("the token has characters that no token has")
    if found.proxy and not str(found.proxy).lower().startswith(("http://", "https://")):
        raise ConfigException("proxy-url is no URL of an HTTP proxy: write http://HOST:PORT")
    found.connection_pool_maxsize = 64
    # Callers decide whether to retry a request.
    found.retries = False
    return credentials


def _checked(url: str) -> str:
    """Check the URL of an API server, and return it."""
    try:
        parsed = parse_url(url)
    except LocationParseError:
        parsed = None
    if parsed is not None and parsed.auth:
        # Not shown: it may have a password.
        raise ConfigException("the URL of the API server has a user, which is not sent: put a user into a kubeconfig")
    if parsed is None or parsed.scheme not in ("http", "https") or not parsed.host or parsed.query:
        raise ConfigException(f"{url!r} is no URL of an API server: write https://HOST:PORT")
    return url
