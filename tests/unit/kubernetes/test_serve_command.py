"""`kueuecore serve` from the command line: what is wrong is said in a line, with its exit code."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from kueuecore.cli import main
from kueuecore.kubernetes import Address
from kueuecore.kubernetes.endpoints import serve_health
from kueuecore.kubernetes.signals import ended_by_sigterm, stopped_by_signals
from kueuecore.releases import DEFAULT_RELEASE, Release
from tests.unit.kubernetes.clusters import served, wait_for
from tests.unit.kubernetes.hostile import Answer, Asked, hostile

NOWHERE = ["--metrics-address", "0", "--health-address", "0"]
NOBODY = ["--server", "http://127.0.0.1:1", "--leader-elect", "false"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nope"], "unrecognized arguments: --nope"),
        (["--kueue", "0.15"], "kueuecore does not know the release 0.15 of Kueue: write 0.16.9"),
        (["--leader-elect", "maybe"], "invalid choice: 'maybe'"),
        (["--config", "/no/such"], "/no/such: cannot be read: No such file or directory"),
        (["--kubeconfig", "/no/such"], "/no/such: there is no such file; give --kubeconfig, or --server"),
        (["--server", "host"], "'host' is no URL of an API server: write https://HOST:PORT"),
        (["--server", "http://h", "--context", "c"], "--server has no credentials: leave out --kubeconfig and"),
        (["--multikueue-policy", "/no/such"], "/no/such: cannot be read: No such file or directory"),
        (
            ["--multikueue-policy", "/no/such", "--dry-run"],
            "--dry-run dispatches nothing: leave out --multikueue-policy",
        ),
        (["--allow-code"], "--allow-code is for the file of --multikueue-policy: add that, or leave it out"),
        (["--dry-run", "--webhooks"], "webhooks change and refuse objects: leave out one of them"),
        (["--dry-run", "--leader-elect=true"], "--dry-run takes no part in the election: leave out --leader-elect"),
        (
            ["--dry-run", "--visibility-address", ":8082"],
            "--dry-run does not serve the visibility API: leave out --visibility-address",
        ),
        (
            ["--dry-run", "--visibility-cert-path", "folder"],
            "--dry-run does not serve the visibility API: leave out --visibility-cert-path",
        ),
        (
            ["--journal", "folder"],
            "--journal is for --dry-run: without it, keep the log, which",
        ),
        (["--dry-run", "--forecast"], "--dry-run does not forecast: leave out --forecast, and ask `kueuecore eta`"),
        (["--forecast-every", "30"], "--forecast-every is for --forecast: add that, or leave it out"),
        (["--forecast", "--forecast-every", "0"], "--forecast-every: the time between forecasts must be at least"),
        (["--forecast", "often"], "invalid choice: 'often'"),
        (["--summary-at", "06:30"], "--summary-at is for --dry-run: add that, or leave it out"),
        (["--dry-run", "--summary-at", "25:00"], "--summary-at: '25:00' is no time of the day: write HH:MM, such as"),
        (["--dry-run", *NOBODY[:2], "--journal", "/dev/null/x"], "/dev/null/x: cannot be written: Not a directory;"),
        (["--server", "http://h", "--health-address", "x"], "--health-address: 'x' is no address to listen at: write"),
    ],
)
def test_wrong_usage_is_2_with_the_reason(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "clientConnection: {qps: many}",
            ':3 (document 1): Configuration: clientConnection.qps: invalid type: string "ma',
        ),
        (
            "multiKueue: {dispatcherName: multikueue.kueuecore/best}",
            "multiKueue.dispatcherName: Unsupported value: multikueue.kueuecore/best: write one of",
        ),
        ("metrics: {bindAddress: here}", "metrics.bindAddress: 'here' is no address to listen at: write HOST:PORT or"),
        (
            "leaderElection: {leaderElect: true, leaseDuration: 5s}",
            "leaderElection.leaseDuration: Invalid value: 5s: must be longer than renewDeadline, which is 10s",
        ),
        (
            "leaderElection: {leaderElect: true, retryPeriod: 9s}",
            "leaderElection.renewDeadline: Invalid value: 10s: must be longer than 1.2 times retryPeriod, which is 9s",
        ),
    ],
)
def test_a_bad_configuration_is_2_with_file_and_field(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kueue.yaml"
    file.write_text(f"apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n{text}\n")
    assert main(["serve", "--config", str(file), *NOBODY]) == 2
    error = capsys.readouterr().err
    assert str(file) in error
    assert message in error


@pytest.mark.parametrize("missing", ["kubernetes", "prometheus_client"])
def test_without_the_extra_it_says_what_to_install(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["serve"]) == 2
    assert "install it with pip install 'kueuecore[serve]'" in capsys.readouterr().err


@pytest.mark.parametrize("mode", [[], ["--dry-run"]])
def test_without_certificates_it_says_what_to_install_or_to_give(
    mode: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    secure = [*NOBODY, *NOWHERE, *mode, "--metrics-address", ":0"]
    assert main(["serve", *secure]) == 2
    assert "install it with pip install 'kueuecore[serve]'" in capsys.readouterr().err
    assert main(["serve", *secure, "--metrics-cert-path", "/no/such"]) == 2
    assert "kueuecore serve: /no/such: " in capsys.readouterr().err


@pytest.mark.parametrize("mode", [[], ["--dry-run"]])
@pytest.mark.parametrize("name", ["metrics", "health"])
def test_an_address_that_is_taken_is_69_in_one_line(
    mode: list[str], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["serve", *NOBODY, *NOWHERE, *mode, f"--{name}-address", where]) == 69
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert (found["level"], found["message"]) == ("critical", "cannot continue")
    assert f"{name} cannot be served at {where}: " in found["error"]
    assert "traceback" not in found


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """The command in a process of its own; gives its log."""
    command = [sys.executable, "-m", "kueuecore", "serve", "--leader-elect=false", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process, process.stderr
        finally:
            process.kill()


def test_sigterm_ends_it_with_0_and_all_it_logs_is_json() -> None:
    with served() as server, serving("--server", server.url, *NOWHERE) as (process, log):
        listens = json.loads(log.readline())
        assert listens["message"] == "listens"
        wait_for(lambda: any(request.verb == "watch" for request in server.requests), "it watches")
        process.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in log]
        assert process.wait(20) == 0
    assert "stopped" in [row["message"] for row in rest]


def test_sigterm_ends_it_with_0_while_nothing_is_answered() -> None:
    # Nobody accepts connections.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving("--server", url, *NOWHERE) as (process, log):
            log.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_sigterm_ends_it_with_0_while_everything_fails_with_one_line_for_each_kind() -> None:
    with (
        hostile(lambda _: Answer(b"<html>sign in</html>")) as server,
        serving("--server", server.url, *NOWHERE) as (process, log),
    ):
        log.readline()
        faults = [json.loads(log.readline()) for _ in range(5)]
        process.send_signal(signal.SIGTERM)
        assert "stopped" in [json.loads(line)["message"] for line in log]
        assert process.wait(20) == 0
    assert {fault["message"] for fault in faults} == {"cannot be watched, is tried again"}
    assert "the answer is no JSON" in faults[0]["error"]


def test_the_second_sigterm_ends_it_whatever_it_is_doing() -> None:
    stopped: list[bool] = []
    before = signal.getsignal(signal.SIGTERM)
    with ended_by_sigterm(), stopped_by_signals(lambda: stopped.append(True)):
        signal.raise_signal(signal.SIGTERM)
        assert stopped == [True]
        with pytest.raises(SystemExit) as raised:
            signal.raise_signal(signal.SIGTERM)
    assert (raised.value.code, stopped) == (143, [True])
    assert signal.getsignal(signal.SIGTERM) == before


def test_what_others_log_is_json_as_well() -> None:
    program = """
import logging, sys, threading, warnings
from kueuecore.kubernetes.json_logs import logged_to

with logged_to(sys.stderr, level="info"):
    logging.getLogger("urllib3").warning("from a library")
    logging.error("from the root")
    logging.getLogger("kueuecore.kubernetes").info("once")
    logging.getLogger("urllib3").info("not shown")
    warnings.warn("from Python")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line["message"] for line in found[:3]] == ["from a library", "from the root", "once"]
    assert "UserWarning: from Python" in found[3]["message"]
    assert (found[4]["message"], found[4]["error"]) == ("a thread has died", "division by zero")
    assert len(found) == 5


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost", "::1"])
def test_health_is_served_at_addresses_of_both_families(host: str) -> None:
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("there is no IPv6 here")
    port = serve_health(Address(host, 0), healthy=dict, ready=lambda: {"Job": "forbidden"})
    where = f"[{host}]" if ":" in host else host or "127.0.0.1"
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(f"http://{where}:{port}/readyz", timeout=10)
    with raised.value as answer:
        assert (answer.code, answer.read()) == (500, b"Job: forbidden\n")


def kueue_of(image: str) -> Answer:
    """What an API server answers about Kueue's Deployment."""
    container = {"name": "manager", "image": image, "args": ["--feature-gates=PartialAdmission=false"]}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return Answer(json.dumps(deployment).encode())


def answer(request: Asked) -> Answer:
    if request.path == "/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager":
        return kueue_of("registry.k8s.io/kueue/kueue:v0.17.1")
    return Answer(b"{}", code=404)


@pytest.mark.parametrize(
    ("arguments", "kueue"),
    [
        (["--dry-run"], "Kueue v0.17.1"),
        (["--dry-run", "--kueue", "0.18.2"], "Kueue v0.18.2"),
        (["--kueue", "0.18.2"], "Kueue v0.18.2"),
        # In its place nothing depends on what becomes of its Deployment.
        ([], Release.named(DEFAULT_RELEASE).title),
    ],
)
def test_it_decides_as_the_release_that_is_named_or_in_a_dry_run_as_the_kueue_beside_it(
    arguments: list[str], kueue: str
) -> None:
    with hostile(answer) as server, serving("--server", server.url, *NOWHERE, *arguments) as (process, log):
        assert json.loads(log.readline())["kueue"] == kueue
        process.send_signal(signal.SIGTERM)
        rest = [json.loads(line)["message"] for line in log]
        assert process.wait(20) == 0
    notes = [row for row in rest if row.startswith("decides as Kueue v0.17.1, the release of Deployment ")]
    assert len(notes) == (kueue == "Kueue v0.17.1")


def test_a_dry_run_goes_on_without_an_answer_about_kueue() -> None:
    with (
        hostile(lambda _: Answer(b"no", code=403)) as server,
        serving("--server", server.url, *NOWHERE, "--dry-run", "--visibility-address=0") as (process, log),
    ):
        first = json.loads(log.readline())
        assert (first["message"], first["kueue"]) == ("judges", Release.named(DEFAULT_RELEASE).title)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
