"""Every command that a page shows is run, and prints what the page says; those that cannot be run are listed here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import inf
from pathlib import Path

import pytest

import kueuecore
from kueuecore.cli import ExitCode, main
from kueuecore.cli.commands import parsed
from kueuecore.manifests import parse_manifests
from kueuecore_apiserver.__main__ import kubeconfig
from tests.pages import PAGES, ROOT, Command, arguments, commands, is_as_shown
from tests.unit.kubernetes.clusters import served

CLUSTER = "a cluster of the reader's, with kubectl or its monitoring"
FILES = "files of the reader's"
TOOLS = "programs that are not ours"
SERVERS = "servers, which stay until they are stopped"
CHECKOUT = "builds, installs, measures or tests"
PAGE = "its page has the files: tests/unit/"

# Pages whose outputs another test compares, with more than this one knows of them: files, pipes, times.
OUTPUTS = {
    "docs/anomalies.md": "tests/api/test_anomalies.py",
    "docs/charts-and-kustomizations.md": "tests/unit/cli/test_rendered.py",
    "docs/prove.md": "tests/unit/proving/test_prove_page.py",
    "docs/test.md": "tests/unit/policy_tests/test_policy_page.py",
    "docs/upgrade-worlds.md": "tests/unit/upgrade/test_upgrade_page.py",
}
EXAMPLES = "tests/unit/cli/test_documented.py"

# Commands that read a cluster, which is that of tests/api/readme_cluster.yaml. Elsewhere its job has another name.
OF_CLUSTER = {
    ("README.md", "kueuecore explain team-a/train"): "train",
    ("docs/ask-a-cluster.md", "kueuecore dump -o state.json.gz"): "train-7",
    ("docs/questions.md", "kueuecore dump -o dump.json.gz"): "train",
    ("docs/roles/on-call.md", "kueuecore check"): "train",
    ("docs/roles/on-call.md", "kueuecore explain team-a/train"): "train",
    ("docs/roles/on-call.md", "kueuecore history team-a/train"): "train",
    ("docs/roles/on-call.md", "kueuecore unblock team-a/train"): "train",
    ("docs/share-a-dump.md", "kueuecore anonymise -o shared.yaml"): "train",
    ("docs/start.md", "kueuecore run -A"): "train",
    ("docs/tour.md", "kueuecore dump -o state.json.gz"): "train",
}

# What is not run, and what it would take. Arguments for us are read all the same.
NOT_RUN = {
    ("README.md", "make demo"): CHECKOUT,
    ("README.md", "pip install kueuecore"): CHECKOUT,
    ("docs/agents.md", "pip install 'kueuecore[mcp,kubernetes]'"): CHECKOUT,
    ("docs/ask-a-cluster.md", "kueuecore explain team-a/train-7"): SERVERS,
    ("docs/charts-and-kustomizations.md", "{"): TOOLS,
    ("docs/charts-and-kustomizations.md", "set -euo pipefail"): TOOLS,
    ("docs/check.md", "kueuecore check starvation.yaml"): f"{PAGE}findings/test_check_docs.py",
    ("docs/dry-run.md", "kubectl get configmap -n kueue-system kueue-manager-config -o"): CLUSTER,
    ("docs/dry-run.md", "sed 's|image: kueuecore$|image:"): CLUSTER,
    ("docs/dry-run.md", "kueuecore explain --config kueue.yaml --trusted /var/lib/kueuecore/states/"): FILES,
    ("docs/eta.md", "kueuecore eta team-a/train"): CLUSTER,
    ("docs/forecast-history.md", "kueuecore eta dump.yaml team-a/train --history jobs.txt"): FILES,
    ("docs/forecast-history.md", "TZ=UTC sacct"): TOOLS,
    ("docs/forecast-history.md", "0 * * * * kueuecore dump"): TOOLS,
    ("docs/forecast-history.md", "kubectl -n monitoring port-forward"): CLUSTER,
    ("docs/forecast-history.md", "for metric in"): CLUSTER,
    ("docs/forecast.md", "make forecast"): CHECKOUT,
    ("docs/history.md", "kueuecore dump --events -o dump.json.gz"): CLUSTER,
    ("docs/in-ci.md", "kueuecore diff -R manifests"): f"{PAGE}test_ci_page.py",
    ("docs/metrics-and-visibility.md", "kubectl create clusterrolebinding metrics"): CLUSTER,
    ("docs/metrics-and-visibility.md", "kubectl apply -f deploy/visibility.yaml"): CLUSTER,
    ("docs/metrics-and-visibility.md", "kubectl -n monitoring create configmap"): CLUSTER,
    ("docs/multikueue.md", "# On each worker"): CLUSTER,
    ("docs/performance.md", "make bench"): CHECKOUT,
    ("docs/playground.md", "make playground"): CHECKOUT,
    ("docs/policies-and-webhooks.md", "kubectl apply -f deploy/admission-policies.yaml"): CLUSTER,
    ("docs/policies-and-webhooks.md", "kubectl apply -f deploy/webhooks.yaml"): CLUSTER,
    ("docs/policies-and-webhooks.md", "for kind in"): CLUSTER,
    ("docs/prove.md", "kueuecore prove queues.yaml --property loops --save found"): f"{PAGE}proving/test_prove_page.py",
    ("docs/prove.md", "kueuecore prove queues/"): FILES,
    ("docs/roles/agent-author.md", "kueuecore mcp"): SERVERS,
    ("docs/roles/on-call.md", "kueuecore eta team-a/train"): CLUSTER,
    ("docs/run-in-a-cluster.md", "python -m kueuecore_apiserver"): SERVERS,
    ("docs/run-in-a-cluster.md", "helm install kueuecore"): TOOLS,
    ("docs/run-in-a-cluster.md", "make image"): CHECKOUT,
    ("docs/run-in-a-cluster.md", "kueuecore serve --preflight"): CLUSTER,
    ("docs/run-in-a-cluster.md", "kubectl get crd"): CLUSTER,
    ("docs/run-in-a-cluster.md", "kubectl -n kueue-system scale deployment kueue-controller-manager"): CLUSTER,
    ("docs/run-in-a-cluster.md", "kubectl -n kueue-system scale deployment kueuecore"): CLUSTER,
    ("docs/run-in-a-cluster.md", "kubectl delete"): CLUSTER,
    ("docs/run-in-a-cluster.md", "KUBE_APISERVER="): CHECKOUT,
    ("docs/scenarios.md", "kubectl get"): CLUSTER,
    ("docs/test-against-a-server.md", "python -m kueuecore_apiserver"): SERVERS,
    ("docs/topology.md", "kueuecore run FOLDER"): FILES,
    ("docs/topology.md", "kubectl get"): CLUSTER,
    ("docs/traces.md", "sacct"): TOOLS,
    ("docs/ui.md", "kueuecore ui --open"): SERVERS,
    ("docs/upgrade.md", "kubectl -n kueue-system get configmap"): CLUSTER,
    ("docs/upgrade.md", "kueuecore upgrade cluster.yaml"): FILES,
    ("docs/experiments.md", "kueuecore simulate examples/experiments-month/scenario.yaml"): FILES,
    ("examples/controller/README.md", "kubectl create -f examples/controller/queues.yaml"): CLUSTER,
    ("examples/controller/README.md", "python -m kueuecore_apiserver"): SERVERS,
    ("examples/controller/README.md", "kubectl create -f - "): CLUSTER,
    ("examples/controller/README.md", "kubectl get workloads"): CLUSTER,
    ("examples/rendered/README.md", "helm template"): TOOLS,
}

WHOLE = [command for page in PAGES for command in commands(page)]


def compared_by(command: Command) -> str | None:
    """The test of its page that compares its output; None: this one."""
    if command.printed is None:
        return None
    return EXAMPLES if command.page.startswith("examples/") else OUTPUTS.get(command.page)


def listed_as(command: Command) -> list[tuple[str, str]]:
    """What a command is listed as, among those that are not run."""
    return [key for key in NOT_RUN if key[0] == command.page and command.name.startswith(key[1])]


def params(chosen: list[Command]) -> list[object]:
    return [pytest.param(command, id=f"{command.page} line {command.line}") for command in chosen]


LEFT_OUT = [command for command in WHOLE if listed_as(command)]
RUN = [command for command in WHOLE if not listed_as(command) and not compared_by(command)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone to work in: what is written stays there."""
    for name in ("docs", "examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    # Which the client reads when it is imported.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))
    # A busy machine plays fewer futures in the time that eta takes by default.
    monkeypatch.setattr("kueuecore.cli.commands.eta._BUDGET_SECONDS", inf)
    return tmp_path


@contextmanager
def cluster(job: str, folder: Path) -> Iterator[None]:
    """The cluster of the kubeconfig; `job`: the name of the job that waits in it."""
    text = (Path(__file__).with_name("readme_cluster.yaml")).read_text(encoding="utf-8")
    assert "name: train," in text
    with served() as server:
        server.load([manifest.object for manifest in parse_manifests(text.replace("name: train,", f"name: {job},"))])
        (folder / "kubeconfig").write_text(kubeconfig(server.url), encoding="utf-8")
        yield


def printed_by_shell(script: str, folder: Path) -> str:
    """The output of a script, whose `kueuecore` is that of this interpreter."""
    (folder / "kueuecore").write_text(f'#!/bin/sh\nexec {sys.executable} -m kueuecore "$@"\n', encoding="utf-8")
    (folder / "kueuecore").chmod(0o755)
    package = Path(kueuecore.__file__).parents[1]
    paths = {"PATH": f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(package)}
    environment = os.environ | paths
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("command", params(RUN))
def test_a_command_prints_what_its_page_says(
    command: Command, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = OF_CLUSTER.get((command.page, command.name))
    printed = ""
    with cluster(job, folder) if job else nullcontext():
        if command.calls is None:
            printed = printed_by_shell(command.script, folder)
        for call in command.calls or ():
            code = main(call)
            said = capsys.readouterr()
            assert code in (ExitCode.OK, ExitCode.FOUND) or (code == ExitCode.BAD_INPUT and command.printed == said.err)
            # What a command refuses, it says on standard error.
            printed += said.out or said.err
    if command.printed is not None:
        assert is_as_shown(printed, command.printed), printed


@pytest.mark.parametrize("command", params(LEFT_OUT))
def test_a_command_that_is_not_run_exists(command: Command) -> None:
    for call in arguments(command.script):
        assert callable(parsed(call).command)
    if NOT_RUN[listed_as(command)[0]].startswith(PAGE):
        assert (ROOT / NOT_RUN[listed_as(command)[0]].partition(": ")[2]).exists()


def test_what_is_not_run_is_on_a_page_once() -> None:
    on_pages = [key for command in WHOLE for key in listed_as(command)]
    assert sorted(on_pages) == sorted(NOT_RUN)
    assert set(OF_CLUSTER) <= {(command.page, command.name) for command in RUN}


@pytest.mark.parametrize(("page", "test"), [*OUTPUTS.items(), ("examples", EXAMPLES)])
def test_a_test_that_compares_outputs_reads_the_page(page: str, test: str) -> None:
    assert Path(page).stem in (ROOT / test).read_text(encoding="utf-8")
    assert any(command.page.startswith(page) and command.printed for command in WHOLE)


@pytest.mark.parametrize(
    ("printed", "shown", "is_it"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a\nb\nc\n", "a\n...\n", True),
        ("a\nb\nc\n", "...\nc\n", True),
        ("a\nb\nc\n", "a\n...\nb\n", False),
    ],
)
def test_three_dots_stand_for_any_lines(printed: str, shown: str, *, is_it: bool) -> None:
    assert is_as_shown(printed, shown) is is_it


@pytest.mark.parametrize("page", sorted((ROOT / "docs/roles").glob("*.md")), ids=lambda page: page.stem)
def test_the_page_of_a_role_fits_a_screen(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 45
    assert [f"**{step}**" in "\n".join(lines) for step in ("First", "Second", "Third")] == [True] * 3
    assert f"(docs/roles/{page.name})" in (ROOT / "README.md").read_text(encoding="utf-8")
