"""Which credentials of workers are unsafe (rules/06 §2 rule 1)."""

from __future__ import annotations

import pytest

from kueuecore._json import JsonObject
from kueuecore.multikueue import connection_problem, kubeconfig_problem


def kubeconfig(cluster: JsonObject | None = None, user: JsonObject | None = None) -> JsonObject:
    server: JsonObject = {"server": "https://West.example.com:6443", "certificate-authority-data": "eA=="}
    credentials: JsonObject = {"token": "t"}
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "west", "user": "manager"}}],
        "clusters": [{"name": "west", "cluster": server | (cluster or {})}],
        "users": [{"name": "manager", "user": credentials | (user or {})}],
    }


def test_a_token_and_the_data_of_an_authority_are_safe() -> None:
    assert kubeconfig_problem(kubeconfig()) == ""
    assert kubeconfig_problem(kubeconfig({"server": "https://[::1]:6443"})) == ""
    assert kubeconfig_problem(kubeconfig({"server": "https://10.0.0.1"})) == ""


@pytest.mark.parametrize(
    ("cluster", "user", "problem"),
    [
        ({}, {"tokenFile": "/t"}, "tokenFile is not allowed"),
        ({"insecure-skip-tls-verify": True}, {}, "insecure TLS verification is not allowed for cluster west"),
        (
            {"certificate-authority": "/ca"},
            {},
            "certificate-authority file paths are not allowed, use certificate-authority-data for cluster west",
        ),
        ({"server": ""}, {}, "server URL is required for cluster west"),
        ({"server": "https://under_score"}, {}, "untrusted server endpoint"),
        ({}, {"username": "u"}, "basic auth is not allowed"),
        ({}, {"exec": {"command": "c"}}, "exec plugins are not allowed"),
        ({}, {"auth-provider": {"name": "p"}}, "auth providers are not allowed"),
    ],
)
def test_what_is_unsafe_is_named(cluster: JsonObject, user: JsonObject, problem: str) -> None:
    assert kubeconfig_problem(kubeconfig(cluster, user)) == problem


def test_a_cluster_profile_may_have_a_program_fetch_its_credentials() -> None:
    assert connection_problem("https://west", {"exec": {}}, allows_exec=True) == ""
