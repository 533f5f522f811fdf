"""Whether the credentials of a worker are safe to use (rules/06 §2 rule 1)."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from kueuecore._json import JsonObject, list_at, object_at, text_at

__all__ = ["connection_problem", "kubeconfig_problem"]

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_HOST = 253


def kubeconfig_problem(kubeconfig: JsonObject) -> str:
    """What is unsafe about a kubeconfig, in Kueue's words; empty if nothing is.

    Args:
        kubeconfig: A kubeconfig as plain data, as a YAML parser gives it.

    Example:
        >>> cluster = {"server": "https://west.example.com", "certificate-authority": "/etc/ca.crt"}
        >>> kubeconfig_problem({"clusters": [{"name": "west", "cluster": cluster}]})
        'certificate-authority file paths are not allowed, use certificate-authority-data for cluster west'
    """
    users = {text_at(it, "name"): object_at(it, "user") for it in list_at(kubeconfig, "users")}
    clusters = {text_at(it, "name"): object_at(it, "cluster") for it in list_at(kubeconfig, "clusters")}
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
    contexts = {text_at(it, "name"): object_at(it, "context") for it in list_at(kubeconfig, "contexts")}
    context = contexts.get(current, {})
    user = users.get(text_at(context, "user"), {})
    return connection_problem(text_at(clusters.get(text_at(context, "cluster")), "server"), user)


def connection_problem(server: str, user: JsonObject, *, allows_exec: bool = False) -> str:
    """What is unsafe about a connection, in Kueue's words; empty if nothing is.

    Args:
        server: The URL of the API server.
        user: How it is authenticated: a user of a kubeconfig.
        allows_exec: May a program fetch the credentials, as for ClusterProfiles?
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
    """Is the host of a URL an IP address or a DNS name?"""
    try:
        host = urlsplit(server).hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return len(host) <= _LONGEST_HOST and _SUBDOMAIN.fullmatch(host) is not None
    return True
