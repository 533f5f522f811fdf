"""Reads the credentials for a worker cluster of MultiKueue: from a kubeconfig in a Secret or a file (rules/06 §2)."""

from __future__ import annotations

import base64
import os
import ssl
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._text import logged
from kueuecore.kubernetes.credentials import Credentials, usable
from kueuecore.multikueue import ConnectionReason, kubeconfig_path_problem, kubeconfig_problem

__all__ = ["SECRET_KEY", "WorkerCredentials", "WorkerCredentialsError", "kubeconfig_in", "kubeconfig_of"]

SECRET_KEY = "kubeconfig"
"""The key of the kubeconfig in a Secret."""
# Nothing else is decided while one is read; those that people use have some thousands.
_MAX_BYTES = 256 << 10
_FILES = {
    "certificate-authority-data": "ca.crt",
    "client-certificate-data": "client.crt",
    "client-key-data": "client.key",
}


class WorkerCredentialsError(Exception):
    """Raised if the credentials for a worker are missing, unsafe, or cannot be read.

    Args:
        reason: The reason that the condition `Active` of the MultiKueueCluster gets.
        message: What is wrong, in Kueue's words where it has some.
        is_missing: Whether they do not exist: nothing changes before they come.
    """

    def __init__(self, reason: ConnectionReason, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.reason, self.is_missing = reason, is_missing


def kubeconfig_of(source: JsonObject, secrets: Mapping[str, bytes | None], *, validates_paths: bool) -> bytes:
    """Return the kubeconfig that a MultiKueueCluster names.

    Args:
        source: Its `spec.clusterSource`.
        secrets: The kubeconfigs in the Secrets of Kueue's namespace, by name; None where a Secret has none.
        validates_paths: Whether files must lie in Kueue's folder for them.

    Raises:
        WorkerCredentialsError: There is none, or it cannot be read.
    """
    bad = ConnectionReason.BAD_KUBE_CONFIG
    if "clusterProfileRef" in source:
        raise WorkerCredentialsError(ConnectionReason.BAD_CLUSTER_PROFILE, "no access provider configured")
    location = text_at(source, "kubeConfig", "location")
    if text_at(source, "kubeConfig", "locationType") == "Path":
        problem = kubeconfig_path_problem(location, resolve=_resolved) if validates_paths else ""
        if problem:
            raise WorkerCredentialsError(bad, problem)
        try:
            with Path(location).open("rb") as file:
                return file.read(_MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            why = (getattr(error, "strerror", None) or str(error)).lower()
            raise WorkerCredentialsError(bad, f"open {location}: {why}") from None
    if location not in secrets:
        raise WorkerCredentialsError(bad, f'Secret "{location}" not found', is_missing=True)
    found = secrets[location]
    if found is None:
        raise WorkerCredentialsError(bad, f'key "{SECRET_KEY}" not found in secret "{location}"')
    return found


def kubeconfig_in(secret: JsonObject) -> bytes | None:
    """Return the kubeconfig in a Secret; None if it has none."""
    data = object_at(secret, "data").get(SECRET_KEY)
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except ValueError:
        return None


class WorkerCredentials:
    """The credentials in a kubeconfig, with files for its certificates as long as they are used.

    Args:
        kubeconfig: The kubeconfig.

    Raises:
        WorkerCredentialsError: It cannot be read, or is unsafe.
    """

    def __init__(self, kubeconfig: bytes) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        plain = _parsed(kubeconfig)
        if problem := kubeconfig_problem(plain):
            raise WorkerCredentialsError(ConnectionReason.INSECURE_KUBE_CONFIG, problem)
        try:
            self.credentials = usable(Credentials(self._configuration(plain)))
            """For the client."""
        except ConfigException as error:
            self.close()
            raise WorkerCredentialsError(ConnectionReason.CONNECTION_FAILED, str(error)) from None
        except (OSError, ValueError) as error:  # no such file, no certificate, or a path that is none
            self.close()
            message = f"certificates cannot be used: {logged(error)}"
            raise WorkerCredentialsError(ConnectionReason.CONNECTION_FAILED, message) from None

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            self._folder.cleanup()

    def _configuration(self, plain: JsonObject) -> Configuration:
        context = _named(plain, "contexts", "context", text_at(plain, "current-context"))
        cluster = _named(plain, "clusters", "cluster", text_at(context, "cluster"))
        user = _named(plain, "users", "user", text_at(context, "user"))
        found = Configuration()
        found.host = text_at(cluster, "server").rstrip("/")
        found.verify_ssl = True
        found.tls_server_name = text_at(cluster, "tls-server-name") or None
        if proxy := text_at(cluster, "proxy-url"):
            found.proxy = proxy
        if token := text_at(user, "token"):
            found.api_key = {"authorization": f"Bearer {token.strip()}"}
        found.ssl_ca_cert = self._file(cluster, "certificate-authority")
        found.cert_file = self._file(user, "client-certificate")
        found.key_file = self._file(user, "client-key")
        # What is wrong with them is said now, and not by each request.
        tls = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if found.cert_file:
            # Without a password, one that is encrypted would be asked for on the terminal.
            tls.load_cert_chain(found.cert_file, found.key_file, password=lambda: b"")
        return found

    def _file(self, entry: JsonObject, field: str) -> str | None:
        """Return the file of a certificate or key: a new one for what the kubeconfig contains."""
        data = text_at(entry, f"{field}-data")
        if not data:
            return text_at(entry, field) or None
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="kueuecore-")
        path = Path(self._folder.name, _FILES[f"{field}-data"])
        path.write_bytes(base64.b64decode(data))
        return str(path)


def _parsed(kubeconfig: bytes) -> JsonObject:
    plain = _read(kubeconfig)
    if isinstance(plain, str):
        message = f"failed to parse kubeconfig(apiconfig): {plain}"
        raise WorkerCredentialsError(ConnectionReason.INSECURE_KUBE_CONFIG, message)
    return plain


# Not the loader in C, which ends the process at deep nesting.
class _Loader(yaml.SafeLoader):
    """Reads plain data, without merge keys: some hundred bytes of them can stand for any amount of memory."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "write no merge keys (<<)", key.start_mark)
        super().flatten_mapping(node)


@lru_cache(maxsize=64)  # what cannot be used is tried again and again, and reading it may take long
def _read(kubeconfig: bytes) -> JsonObject | str:
    """Return the content of a kubeconfig, or what is wrong with it."""
    if len(kubeconfig) > _MAX_BYTES:
        return f"it has more than {_MAX_BYTES} bytes"
    try:
        plain = yaml.load(kubeconfig, _Loader)  # plain data alone
        if not isinstance(plain, dict):
            return "it is no mapping"
        for kind in ("clusters", "users", "contexts"):
            counts = Counter(text_at(row, "name") for row in list_at(plain, kind))
            for name, count in counts.most_common(1):
                if count > 1:
                    return f'duplicate name "{name}" in {kind}'
        for kind, entry in (("clusters", "cluster"), ("users", "user")):
            for row in list_at(plain, kind):
                for field in _FILES:
                    base64.b64decode(text_at(row, entry, field), validate=True)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return _without_content(error)
    except (AttributeError, LookupError):  # the loader's own, of `!!int ''` and the like
        return "yaml: a value is not of the type that its tag says"
    return plain


def _without_content(error: Exception) -> str:
    """Return what is wrong with a kubeconfig, without a line of it: it may hold a token."""
    if isinstance(error, yaml.MarkedYAMLError):
        line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
        return f"yaml: {line}{error.problem or error.context or 'it cannot be read'}"
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return "yaml: it is no text"
    if isinstance(error, RecursionError):
        return "yaml: it is nested too deeply"
    return str(error)


def _named(plain: JsonObject, kind: str, entry: str, name: str) -> JsonObject:
    for row in list_at(plain, kind):
        if text_at(row, "name") == name:
            return object_at(row, entry)
    return {}


def _resolved(path: str) -> str:
    return os.path.realpath(path, strict=True)
