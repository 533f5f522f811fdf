"""Which credentials of workers are unsafe, and which are not read (rules/06 §2 rules 1 and 7)."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

from kueuecore._json import JsonObject
from kueuecore.multikueue import connection_problem, kubeconfig_path_problem, kubeconfig_problem


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


# Where they are.

OUTSIDE = "kubeconfig path is not under the allowed prefix: "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of kubeconfigs, with one, and another one beside it."""
    (tmp_path / "allowed").mkdir()
    for name in ("allowed/west", "secret", "allowed-too"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    (tmp_path / "allowed/link").symlink_to(tmp_path / "secret")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("{top}/allowed/west", ""),
        ("{top}//allowed/./west", ""),
        ("", "kubeconfig path must not be empty"),
        ("allowed/west", OUTSIDE + "path must be absolute"),
        ("../west", OUTSIDE + 'path contains ".."'),
        ("{top}/allowed/../secret", OUTSIDE + '"{top}/secret" is not under "{top}/allowed"'),
        ("{top}/allowed/link", OUTSIDE + '"{top}/secret" is not under "{top}/allowed"'),
        ("{top}/allowed-too", OUTSIDE + '"{top}/allowed-too" is not under "{top}/allowed"'),
        (
            "{top}/allowed/no",
            "cannot resolve kubeconfig path symlinks: lstat {top}/allowed/no: no such file or directory",
        ),
    ],
)
def test_a_kubeconfig_is_read_from_one_folder_alone(folder: Path, path: str, problem: str) -> None:
    top, resolve = folder.resolve(), partial(os.path.realpath, strict=True)
    found = kubeconfig_path_problem(path.format(top=top), resolve=resolve, folder=f"{top}/allowed")
    assert found == problem.format(top=top)


def test_without_the_folder_no_kubeconfig_is_read(tmp_path: Path) -> None:
    resolve = partial(os.path.realpath, strict=True)
    found = kubeconfig_path_problem("/etc/passwd", resolve=resolve, folder=f"{tmp_path}/none/")
    assert found == OUTSIDE + f'"/etc/passwd" is not under "{tmp_path}/none"'
