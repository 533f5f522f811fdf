"""The server as kubectl sees it, and the command that serves it alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.__main__ import kubeconfig, main
from kueuecore_apiserver.plain_crds import kueue_crds
from tests.unit.apiserver.wire import START, namespace

KUBECTL = shutil.which("kubectl")
MANIFESTS = """\
apiVersion: batch/v1
kind: Job
metadata: {name: sum, namespace: lab}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: i}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm, namespace: lab}
data: {a: "1"}
"""


class Kubectl:
    """kubectl, at home in a folder."""

    def __init__(self, folder: Path, server: HttpApiServer) -> None:
        self.server, self.folder = server, folder
        (folder / "config").write_text(kubeconfig(server.url), encoding="utf-8")
        self.environment = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(folder / "config")}

    def __call__(self, *arguments: str, text: str = "", fails: bool = False) -> str:
        command = [str(KUBECTL), *arguments]
        done = subprocess.run(
            command, env=self.environment, input=text, capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode != 0) == fails, done.stderr
        return done.stderr if fails else done.stdout


@pytest.fixture
def kubectl(tmp_path: Path) -> Iterator[Kubectl]:
    if KUBECTL is None:
        pytest.skip("kubectl is not installed")
    server = HttpApiServer(ApiServer(now=START), collects_garbage=True)
    server.load([namespace("lab"), *kueue_crds()])
    with server:
        yield Kubectl(tmp_path, server)


def test_kubectl_applies_gets_and_deletes(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", text=MANIFESTS) == "job.batch/sum created\nconfigmap/cm created\n"
    changed = MANIFESTS.replace('a: "1"', 'a: "2"')
    assert kubectl("apply", "-f", "-", text=changed) == "job.batch/sum unchanged\nconfigmap/cm configured\n"
    table = kubectl("get", "jobs,cm", "-n", "lab", "--no-headers").split()
    assert table[::2] == ["job.batch/sum", "configmap/cm"]
    assert kubectl("get", "job", "sum", "-n", "lab", "-o", "jsonpath={.spec.backoffLimit}") == "6"
    patch = '{"spec": {"parallelism": 2}}'
    assert kubectl("patch", "job", "sum", "-n", "lab", "-p", patch) == "job.batch/sum patched\n"
    refused = kubectl("patch", "job", "sum", "-n", "lab", "-p", '{"spec": {"completions": 5}}', fails=True)
    assert refused == 'The Job "sum" is invalid: spec.completions: Invalid value: 5: field is immutable\n'
    assert kubectl("delete", "ns", "lab") == 'namespace "lab" deleted\n'
    assert "NotFound" in kubectl("get", "job", "sum", "-n", "lab", fails=True)


def test_kubectl_applies_on_the_server(kubectl: Kubectl) -> None:
    kubectl("apply", "--server-side", "-f", "-", text=MANIFESTS)
    kubectl("patch", "cm", "cm", "-n", "lab", "-p", '{"data": {"a": "3"}}')
    refused = kubectl("apply", "--server-side", "-f", "-", text=MANIFESTS, fails=True)
    assert 'conflict with "kubectl-patch" using v1: .data.a' in refused
    forced = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=MANIFESTS)
    assert forced == "job.batch/sum serverside-applied\nconfigmap/cm serverside-applied\n"
    assert kubectl("get", "cm", "cm", "-n", "lab", "-o", "jsonpath={.data.a}") == "1"


def test_kubectl_goes_over_to_apply_on_the_server(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", text=MANIFESTS)
    changed = MANIFESTS.replace('a: "1"', 'b: "2"')
    kubectl("apply", "--server-side", "-f", "-", text=changed)
    assert kubectl("get", "cm", "cm", "-n", "lab", "-o", "jsonpath={.data}") == '{"b":"2"}'


def test_kubectl_knows_custom_kinds_and_watches(kubectl: Kubectl) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "q"}, "spec": {}}
    kubectl("apply", "-n", "lab", "-f", "-", text=json.dumps(queue))
    assert kubectl("get", "lq", "-n", "lab", "-o", "name") == "localqueue.kueue.x-k8s.io/q\n"
    command = [str(KUBECTL), "get", "lq", "-n", "lab", "-w", "-o", "name", "--request-timeout=10s"]
    with subprocess.Popen(command, env=kubectl.environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "localqueue.kueue.x-k8s.io/q\n"
        kubectl.server.load([{**queue, "metadata": {"name": "r", "namespace": "lab"}}])
        assert process.stdout.readline() == "localqueue.kueue.x-k8s.io/r\n"
        process.terminate()


def test_the_command_prints_how_to_reach_it(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(MANIFESTS.replace("lab", "team"), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({"kind": "List", "items": [namespace("team")]}), encoding="utf-8")
    command = [sys.executable, "-m", "kueuecore_apiserver", "--kueue", "--load", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(6)]
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert lines[0] == "apiVersion: v1\n"
    assert 'server: "http://127.0.0.1:' in lines[3]


def test_the_command_names_what_it_can_not_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    (tmp_path / "a.json").write_text(json.dumps(wrong), encoding="utf-8")
    assert main(["--load", str(tmp_path)]) == 1
    expected = 'error: no matches for kind "Thing" in version "example.com/v1": load its definition first\n'
    assert capsys.readouterr().err == expected
    assert main(["--load", str(tmp_path / "none.yaml")]) == 1
