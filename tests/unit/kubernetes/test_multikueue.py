"""MultiKueue in `kueuecore serve`: a manager and two workers over HTTP, in virtual time, cut off and killed."""

from __future__ import annotations

import base64
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kueuecore import Configuration
from kueuecore.errors import ManifestError
from kueuecore.kubernetes.https.certificates import Authority
from kueuecore.kubernetes.workers.credentials import WorkerCredentials, WorkerCredentialsError, kubeconfig_in
from kueuecore.kubernetes.workers.policy import chosen_dispatcher
from kueuecore.multikueue import Dispatch, KnownCluster
from kueuecore.multikueue.policies import COST
from tests.unit.kubernetes.http_fleet import CONFIGURATION, HttpFleet
from tests.unit.kubernetes.multikueue_objects import cluster_named, kubeconfig, secret

INSECURE = "load client config failed: "


def test_a_job_runs_on_one_worker_and_its_status_comes_back() -> None:
    fleet = HttpFleet()
    with fleet.running():
        fleet.come("sum")
        fleet.live(30, until=lambda: bool(fleet.starts))
        ((worker, _),) = fleet.starts
        assert fleet.left() == [f"{worker}: Workload job-sum-5c38a", f"{worker}: Job sum"], "the other copy is gone"
        fleet.live(5)
        assert fleet.workload()["status"]["clusterName"] == worker
        assert fleet.manager.api.get("Job", "sum", namespace="lab")["status"]["active"] == 1
        fleet.live(120, until=lambda: bool(fleet.finished()) and not fleet.left())
    assert (fleet.finished(), fleet.left(), len(fleet.starts)) == ({"sum"}, [], 1)
    copied = [
        (request.verb, request.resource) for request in fleet.servers[worker].requests if request.verb == "create"
    ]
    assert [row for row in copied if row[1] != "events"] == [("create", "workloads"), ("create", "jobs")]
    events = {(row["reason"], row["message"]) for row in fleet.manager.api.list("Event")[0]}
    assert ("MultiKueue", f'The workload was admitted on "{worker}"') in events


@pytest.mark.parametrize("first", [1, 4, 6])
def test_nothing_is_lost_or_runs_twice_though_the_manager_is_killed_all_the_time(first: int) -> None:
    fleet = HttpFleet()
    with fleet.running():
        fleet.dies_at = {n: ("dies before", "dies after")[n // 7 % 2] for n in range(first, 120, 7)}
        for name in ("one", "two", "three"):
            fleet.come(name, cpu=2)
        fleet.live(300, until=lambda: len(fleet.finished()) == 3 and not fleet.left())
    assert (fleet.finished(), fleet.left()) == ({"one", "two", "three"}, [])
    assert sorted(name for _, name in fleet.starts) == ["one", "three", "two"]
    assert set(fleet.most_running.values()) == {1}
    assert fleet.n_restarts > 5


def test_a_worker_that_comes_back_in_time_keeps_its_job() -> None:
    fleet = HttpFleet()
    with fleet.running():
        fleet.come("sum", minutes=5)
        fleet.live(30, until=lambda: bool(fleet.starts))
        ((worker, _),) = fleet.starts
        fleet.cut.add(worker)
        fleet.live(60)
        status, reason, message = fleet.active(worker)
        assert (status, reason) == ("False", "ClientConnectionFailed")
        # After 5, 15 and 35 seconds.
        assert "; connection attempts: 4, next connection attempt: 2026-01-01T00:01:" in message
        fleet.cut.clear()
        fleet.live(400, until=lambda: bool(fleet.finished()) and not fleet.left())
        assert fleet.active(worker) == ("True", "Active", "Connected")
    assert (fleet.starts, fleet.finished(), fleet.left()) == ([(worker, "sum")], {"sum"}, [])


def test_what_a_lost_worker_ran_goes_to_another_and_leaves_nothing_when_it_is_back() -> None:
    fleet = HttpFleet(CONFIGURATION + "multiKueue: {workerLostTimeout: 30s}\n")
    with fleet.running():
        fleet.come("sum", minutes=4)
        fleet.live(30, until=lambda: bool(fleet.starts))
        ((worker, _),) = fleet.starts
        fleet.cut.add(worker)
        fleet.live(120, until=lambda: len(fleet.starts) == 2)
        (other,) = {"west", "east"} - {worker}
        assert fleet.starts[1:] == [(other, "sum")]
        fleet.cut.clear()
        fleet.live(400, until=lambda: bool(fleet.finished()) and not fleet.left())
    assert (fleet.finished(), fleet.left()) == ({"sum"}, [])


def test_copies_of_jobs_that_were_deleted_meanwhile_are_collected() -> None:
    fleet = HttpFleet()
    with fleet.running():
        fleet.come("sum", minutes=30)
        fleet.live(30, until=lambda: bool(fleet.starts))
        ((worker, _),) = fleet.starts
        fleet.cut.add(worker)
        fleet.live(5)
        fleet.manager.api.delete("Job", "sum", namespace="lab")
        for workload in fleet.manager.api.list("Workload")[0]:
            finalizers: dict[str, Any] = {"metadata": {"finalizers": []}}
            fleet.manager.api.patch("Workload", workload["metadata"]["name"], finalizers, namespace="lab")
            fleet.manager.api.delete("Workload", workload["metadata"]["name"], namespace="lab")
        # Another process knows nothing of it, only that it is nobody's.
        fleet.restart()
        fleet.cut.clear()
        fleet.live(90, until=lambda: not fleet.left())
    assert fleet.left() == []


def test_a_changed_secret_reconnects_and_a_deleted_one_disconnects() -> None:
    fleet = HttpFleet()
    with fleet.running():
        fleet.live(5)
        changes: list[tuple[str, str, str]] = []

        def change(text: str) -> None:
            data = secret("west-secret", text)["data"]
            fleet.manager.api.patch("Secret", "west-secret", {"data": data}, namespace="kueue-system")
            fleet.live(4)
            changes.append(fleet.active("west"))

        change(kubeconfig(fleet.urls["west"], more={"insecure-skip-tls-verify": True}))
        change("clusters: [")
        change(kubeconfig("http://127.0.0.1:1"))
        change(kubeconfig(fleet.urls["west"]))
        fleet.manager.api.delete("Secret", "west-secret", namespace="kueue-system")
        fleet.live(4)
        gone = fleet.active("west")
        fleet.manager.load([secret("west-secret", kubeconfig(fleet.urls["west"]))])
        fleet.live(4)
        back = fleet.active("west")
    parse = f"{INSECURE}failed to parse kubeconfig(apiconfig): yaml: line 1: expected the node content, but found"
    insecure = "insecure TLS verification is not allowed for cluster worker"
    assert changes[0] == ("False", "InsecureKubeConfig", INSECURE + insecure)
    assert (changes[1][1], changes[1][2][: len(parse)]) == ("InsecureKubeConfig", parse)
    assert changes[2][1] == "ClientConnectionFailed"
    assert changes[3] == back == ("True", "Active", "Connected")
    assert gone == ("False", "BadKubeConfig", f'{INSECURE}Secret "west-secret" not found')


def test_a_worker_that_is_deleted_is_left_alone() -> None:
    fleet = HttpFleet()
    with fleet.running():
        fleet.live(5)
        assert sorted(fleet.replica.multikueue.connected) == ["east", "west"]
        fleet.manager.api.delete("MultiKueueCluster", "west")
        fleet.live(3)
        assert fleet.replica.multikueue.connected == ["east"]
        check = fleet.manager.api.get("AdmissionCheck", "dispatched")["status"]["conditions"][0]
        assert check["message"] == "Missing clusters: [west]"
        fleet.manager.load([cluster_named("west")])
        fleet.live(4)
        assert fleet.active("west") == ("True", "Active", "Connected")


def with_user(user: dict[str, str]) -> str:
    plain = yaml.safe_load(kubeconfig("https://10.0.0.1"))
    return yaml.safe_dump({**plain, "users": [{"name": "manager", "user": user}]})


PARSE = "failed to parse kubeconfig(apiconfig): yaml: "
# What is looked at for safety would be the last, and what is used the first.
TWICE = kubeconfig("https://10.0.0.1").replace(
    "clusters:\n", "clusters:\n- {name: worker, cluster: {server: 'http://x.test'}}\n"
)


@pytest.mark.parametrize(
    ("text", "reason", "message"),
    [
        ("", "InsecureKubeConfig", "failed to parse kubeconfig(apiconfig): it is no mapping"),
        ("\x00\x01", "InsecureKubeConfig", "failed to parse kubeconfig(apiconfig): yaml: it is no text"),
        ("#" * 300_000, "InsecureKubeConfig", "failed to parse kubeconfig(apiconfig): it has more than 262144 bytes"),
        ("[" * 5000, "InsecureKubeConfig", "failed to parse kubeconfig(apiconfig): yaml: it is nested too deeply"),
        *[
            (text, "InsecureKubeConfig", f"{PARSE}a value is not of the type that its tag says")
            for text in ("a: !!int ''", "a: !!float ''", "a: !!bool foo", "a: !!timestamp foo")
        ],
        ("a: &a {k: v}\nb: {<<: [*a, *a]}", "InsecureKubeConfig", f"{PARSE}line 2: write no merge keys"),
        (TWICE, "InsecureKubeConfig", 'failed to parse kubeconfig(apiconfig): duplicate name "worker" in clusters'),
        (with_user({"client-certificate": "a\0b"}), "ClientConnectionFailed", "certificates cannot be used: embedded"),
        ("clusters: 5\nusers: none", "InsecureKubeConfig", "untrusted server endpoint"),
        (kubeconfig("ftp://10.0.0.1"), "ClientConnectionFailed", None),
        (
            kubeconfig("https://10.0.0.1", more={"certificate-authority-data": "bm9wZQ=="}),
            "ClientConnectionFailed",
            None,
        ),
        (
            kubeconfig("https://10.0.0.1", more={"certificate-authority-data": "?"}),
            "InsecureKubeConfig",
            "failed to parse kubeconfig(apiconfig): Only base64 data is allowed",
        ),
        (kubeconfig("http://10.0.0.1", token="a\nb"), "ClientConnectionFailed", "the token has characters that no"),
        (
            kubeconfig("http://10.0.0.1", more={"proxy-url": "socks5://p"}),
            "ClientConnectionFailed",
            "proxy-url is no URL",
        ),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named_in_the_condition(
    text: str, reason: str, message: str | None
) -> None:
    fleet = HttpFleet()
    with fleet.running():
        data = secret("west-secret", text)["data"]
        fleet.manager.api.patch("Secret", "west-secret", {"data": data}, namespace="kueue-system")
        fleet.live(4)
        status, found, why = fleet.active("west")
        assert (status, found) == ("False", reason)
        prefix = "" if reason == "ClientConnectionFailed" else INSECURE
        assert message is None or why.startswith(prefix + message), why
        assert "secret" not in why.removeprefix(INSECURE)
        assert fleet.active("east")[0] == "True"
        check = fleet.manager.api.get("AdmissionCheck", "dispatched")["status"]["conditions"][0]
        assert (check["status"], check["message"]) == ("True", "Inactive clusters: [west]")


def test_an_encrypted_key_is_refused_and_no_password_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Authority.made("ca", now=datetime.now(UTC)).sign(["a"], now=datetime.now(UTC))
    password = BestAvailableEncryption(b"secret")
    encrypted = load_pem_private_key(pair.key.encode(), None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, password)
    data = {
        "client-certificate-data": base64.b64encode(pair.certificate.encode()).decode(),
        "client-key-data": base64.b64encode(encrypted).decode(),
    }
    asked: list[object] = []
    load = ssl.SSLContext.load_cert_chain

    def loads(self: ssl.SSLContext, *args: Any, **named: Any) -> None:
        asked.append(named.get("password"))
        load(self, *args, **{**named, "password": named.get("password") or (lambda: b"")})

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", loads)
    with pytest.raises(WorkerCredentialsError, match=r"^certificates cannot be used"):
        WorkerCredentials(with_user(data).encode())
    assert asked
    assert None not in asked


def test_a_secret_without_base64_has_no_kubeconfig() -> None:
    assert kubeconfig_in({"data": {"kubeconfig": "ä"}}) is None


def test_kubeconfigs_in_files_are_looked_at_again(tmp_path: Path) -> None:
    file = tmp_path / "north"
    off = "featureGates: {MultiKueueKubeConfigPathValidation: false}\n"
    fleet = HttpFleet(CONFIGURATION + off)
    with fleet.running():
        source = {"kubeConfig": {"location": str(file), "locationType": "Path"}}
        fleet.manager.load([cluster_named("north", **source)])
        fleet.live(4)
        missing = fleet.active("north")
        file.write_text(kubeconfig(fleet.urls["east"]))
        fleet.live(10)
        there = fleet.active("north")
        file.write_text(kubeconfig("http://host_name"))
        fleet.live(10)
        changed = fleet.active("north")
    assert missing == ("False", "BadKubeConfig", f"{INSECURE}open {file}: no such file or directory")
    assert there == ("True", "Active", "Connected")
    assert changed == ("False", "InsecureKubeConfig", f"{INSECURE}untrusted server endpoint")
    assert "DeprecatedPathUsage" in {row["reason"] for row in fleet.manager.api.list("Event")[0]}


def test_a_file_outside_of_the_folder_and_a_cluster_profile_are_refused() -> None:
    fleet = HttpFleet(CONFIGURATION + "featureGates: {MultiKueueClusterProfile: true}\n")
    with fleet.running():
        source = {"kubeConfig": {"location": "/etc/passwd", "locationType": "Path"}}
        fleet.manager.load([cluster_named("north", **source), cluster_named("south", clusterProfileRef={"name": "p"})])
        fleet.live(4)
        outside = (
            'kubeconfig path is not under the allowed prefix: "/etc/passwd" is not under "/etc/multikueue/kubeconfigs"'
        )
        assert fleet.active("north") == ("False", "BadKubeConfig", INSECURE + outside)
        assert fleet.active("south") == ("False", "BadClusterProfile", f"{INSECURE}no access provider configured")


def test_a_policy_decides_who_gets_copies_and_one_that_fails_only_delays(tmp_path: Path) -> None:
    (tmp_path / "policies.py").write_text(POLICY)
    (tmp_path / "policy.yaml").write_text("use: policies:moody")
    file = str(tmp_path / "policy.yaml")
    fleet = HttpFleet(dispatcher=chosen_dispatcher(Configuration(), file, allow_code=True))
    with fleet.running():
        fleet.come("sum")
        fleet.live(30, until=lambda: bool(fleet.starts))
    assert fleet.starts == [("east", "sum")]
    written = {
        (name, request.resource)
        for name, server in fleet.servers.items()
        for request in server.requests
        if request.verb == "create" and name and request.resource != "events"
    }
    assert written == {("east", "workloads"), ("east", "jobs")}


POLICY = """
n_asked = 0

def moody(dispatch):
    global n_asked
    n_asked += 1
    if n_asked < 3:
        raise OSError("not now")
    return ["east"]
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("choose: costs", "choose: Unsupported value"),
        ("choose: cost\nvalues: {west: cheap}", "values.west"),
        ("use: policies:moody", "is a program that would run with your privileges"),
        ("[]", "1"),
        ("a: 1\n---\nb: 2", "a policy is one document"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_with_its_field(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ManifestError) as raised:
        chosen_dispatcher(Configuration(), str(file))
    assert message in str(raised.value)
    assert str(file) in str(raised.value)


def test_the_configuration_names_policies_that_kueue_does_not_have() -> None:
    def named(name: str) -> Configuration:
        return Configuration.parse(f"{CONFIGURATION}multiKueue: {{dispatcherName: {name}}}\n")

    assert chosen_dispatcher(named("kueue.x-k8s.io/multikueue-dispatcher-incremental")) is None
    assert chosen_dispatcher(named("example.com/mine")) is None
    clusters = [
        KnownCluster(name=name, is_connected=True, annotations={COST: cost}) for name, cost in (("a", "2"), ("b", "1"))
    ]
    chosen = chosen_dispatcher(named("multikueue.kueuecore/cost"))
    assert chosen is not None
    assert chosen.nominate(Dispatch(workload={}, clusters=tuple(clusters), now=0)).clusters == ("b",)
    with pytest.raises(ValueError, match=r"multiKueue\.dispatcherName: Unsupported value: .*best: write"):
        chosen_dispatcher(named("multikueue.kueuecore/best"))
