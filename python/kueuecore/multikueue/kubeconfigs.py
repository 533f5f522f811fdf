"""Checks whether the credentials of a worker are safe to use, and where they lie (rules/06 §2 rules 1 and 7)."""

from __future__ import annotations

import ipaddress
import posixpath
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from kueuecore._json import JsonObject, list_at, object_at, text_at

__all__ = ["connection_problem", "kubeconfig_path_problem", "kubeconfig_problem"]

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_HOST = 253
_FOLDER = "/etc/multikueue/kubeconfigs"
_OUTSIDE = "kubeconfig path is not under the allowed prefix"


def kubeconfig_problem(kubeconfig: JsonObject) -> str:
    """Return what is unsafe about a kubeconfig, in Kueue's words; empty if nothing is.

    Args:
        kubeconfig: A kubeconfig as plain data, as returned by a YAML parser.

    Example:
        >>> cluster = {"server": "https://west.example.com", "certificate-authority": "/etc/ca.crt"}
        >>> kubeconfig_problem({"clusters": [{"name": "west", "cluster": cluster}]})
        'certificate-authority file paths are not allowed, use certificate-authority-data for cluster west'
    """
    users = {text_at(user, "name"): object_at(user, "user") for user in list_at(kubeconfig, "users")}
    clusters = {text_at(cluster, "name"): object_at(cluster, "cluster") for cluster in list_at(kubeconfig, "clusters")}
    if any(text_at(user, "tokenFile") for user in users.values()):
        return "tokenFile is not allowed"
    for name, cluster in clusters.items():
        if cluster.get("insecure-skip-tls-verify") is True:
            return f"insecure TLS verification is not allowed for cluster {name}"
        if text_at(cluster, "certificate-authority"):
            return (
                f"certificate-authority file paths are not allowed, use certificate-authority-data for cluster {name}"
            )
        if not text_at(cluster, "server"):
            return f"server URL is required for cluster {name}"
    current = text_at(kubeconfig, "current-context")
    contexts = {text_at(context, "name"): object_at(context, "context") for context in list_at(kubeconfig, "contexts")}
    context = contexts.get(current, {})
    user = users.get(text_at(context, "user"), {})
    return connection_problem(text_at(clusters.get(text_at(context, "cluster")), "server"), user)


def kubeconfig_path_problem(path: str, *, resolve: Callable[[str], str], folder: str = _FOLDER) -> str:
    """Return why a kubeconfig file (`locationType: Path`) is refused, in Kueue's words; empty if it is not.

    Call it if `MultiKueueSettings.validates_kubeconfig_paths` is set; without that gate any file is read.

    Args:
        path: The value of `spec.clusterSource.kubeConfig.location`.
        resolve: Follows symbolic links, and raises OSError if the target does not exist: a strict `os.path.realpath`.
        folder: The folder in which the files must lie.

    Example:
        >>> kubeconfig_path_problem("kubeconfigs/west", resolve=lambda path: path)
        'kubeconfig path is not under the allowed prefix: path must be absolute'
    """
    if not path:
        return "kubeconfig path must not be empty"
    cleaned = _cleaned(path)
    if ".." in cleaned.split("/"):
        return f'{_OUTSIDE}: path contains ".."'
    if not cleaned.startswith("/"):
        return f"{_OUTSIDE}: path must be absolute"
    try:
        allowed = resolve(folder)
    except OSError:
        return f'{_OUTSIDE}: "{cleaned}" is not under "{_cleaned(folder)}"'
    try:
        found = resolve(cleaned)
    except OSError as error:
        why = f"lstat {error.filename}: {(error.strerror or '').lower()}"
        return f"cannot resolve kubeconfig path symlinks: {why}"
    return "" if f"{found}/".startswith(f"{allowed}/") else f'{_OUTSIDE}: "{found}" is not under "{allowed}"'


def _cleaned(path: str) -> str:
    """Return a path without empty steps and `.`, with `..` resolved."""
    cleaned = posixpath.normpath(path)
    return f"/{cleaned.lstrip('/')}" if cleaned.startswith("/") else cleaned


def connection_problem(server: str, user: JsonObject, *, allows_exec: bool = False) -> str:
    """Return what is unsafe about a connection, in Kueue's words; empty if nothing is.

    Args:
        server: The URL of the API server.
        user: How to authenticate: a user entry of a kubeconfig.
        allows_exec: Whether a program may fetch the credentials, as for ClusterProfiles.
    """
    if text_at(user, "tokenFile"):
        return "bearerTokenFile is not allowed"
    if not _is_host(server.lower()):
        return "untrusted server endpoint"
    if text_at(user, "username") or text_at(user, "password"):
        return "basic auth is not allowed"
    if user.get("exec") is not None and not allows_exec:
        return "exec plugins are not allowed"
    return "auth providers are not allowed" if user.get("auth-provider") is not None else ""


def _is_host(server: str) -> bool:
    """Return whether the host of a URL is an IP address or a DNS name."""
    try:
        host = urlsplit(server).hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return len(host) <= _MAX_HOST and _SUBDOMAIN.fullmatch(host) is not None
    return True
