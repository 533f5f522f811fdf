"""Objects of an installation of Kueue show its release."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore._configuration_sources import shown_release
from kueuecore.cli import ExitCode
from kueuecore.manifests import parse_manifests
from kueuecore.releases import DEFAULT_RELEASE
from tests.command import QUEUES, Ran

DEPLOYMENT = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system, labels: {LABELS}}
spec:
  selector: {}
  template: {spec: {containers: [{name: manager, image: "IMAGE"}]}}
"""
DEFINITION = """
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: KIND.kueue.x-k8s.io, labels: {LABELS}}
spec: {group: kueue.x-k8s.io}
"""
PLACE = 'Deployment "kueue-system/kueue-controller-manager" (in.yaml:'
TAGGED = "registry.k8s.io/kueue/kueue:v"


def deployment(image: str = "", labels: str = "") -> str:
    return DEPLOYMENT.replace("IMAGE", image).replace("LABELS", labels)


def definition(labels: str, kind: str = "workloads") -> str:
    return DEFINITION.replace("LABELS", labels).replace("KIND", kind)


def shown(text: str) -> str | None:
    found = shown_release(parse_manifests(text), option="--kueue")
    return None if found is None or found.release is None else found.release.name


@pytest.mark.parametrize(
    "text",
    [
        deployment("registry.k8s.io/kueue/kueue:v0.17.1"),
        deployment("localhost:5000/mirror/kueue:v0.17.1@sha256:1b2c"),
        deployment("kueue:0.17.1-gke.2"),
        deployment("example.com/kueue/kueue@sha256:1b2c", 'app.kubernetes.io/version: "v0.17.1"'),
        deployment("example.com/other", "app.kubernetes.io/name: kueue, app.kubernetes.io/version: v0.17.1"),
        definition("helm.sh/chart: kueue-0.17.1"),
        definition("helm.sh/chart: kueue-v0.17.1_build, app.kubernetes.io/version: v0.17.1"),
        definition("app.kubernetes.io/version: v0.17.1"),
        "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: k},"
        " spec: {chart: {spec: {chart: kueue, version: 0.17.1}}}}",
        "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: k},"
        " spec: {source: {repoURL: registry.k8s.io/kueue/charts, chart: kueue, targetRevision: v0.17.1}}}",
        "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: k},"
        " spec: {sources: [{path: a, targetRevision: v0.18.0}, {chart: kueue, targetRevision: 0.17.1}]}}",
    ],
)
def test_an_installation_of_kueue_shows_its_release(text: str) -> None:
    assert shown(text) == "0.17.1"


@pytest.mark.parametrize(
    "text",
    [
        deployment("kueuecore:v0.17.1"),
        deployment("registry.k8s.io/kueue/kueue-populator:v0.17.1"),
        deployment("registry.k8s.io/kueue/kueue:main"),
        deployment("registry.k8s.io/kueue/kueue:v20260101-v0.17.0-12-gabc123"),
        deployment("example.com/other:v0.17.1", "app.kubernetes.io/version: v0.17.1"),
        definition("helm.sh/chart: platform-0.17.1, app.kubernetes.io/version: v0.17.1"),
        definition("app.kubernetes.io/version: v0.17.1").replace("group: kueue.x-k8s.io", "group: jobset.x-k8s.io"),
        "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: k},"
        " spec: {chart: {spec: {chart: kueue, version: 0.17.x}}}}",
        "{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: k},"
        " spec: {chart: {spec: {chart: jobset, version: 0.17.1}}}}",
    ],
)
def test_other_objects_show_none(text: str) -> None:
    assert shown(text) is None


def release_and_notes(ran: Ran) -> tuple[str, str]:
    assert ran.code == ExitCode.OK, ran.err
    return json.loads(ran.out)["kueue"]["version"], ran.err


def test_it_is_believed_with_a_note(command: Callable[..., Ran]) -> None:
    text = QUEUES + deployment(TAGGED + "0.17.1") + definition("app.kubernetes.io/version: v0.17.1")
    version, err = release_and_notes(command("in.yaml", "-o", "json", text=text))
    assert version == "v0.17.1"
    assert f"note: decides as Kueue v0.17.1, the release of {PLACE}" in err
    assert "; --kueue replaces it\n" in err
    assert "CustomResourceDefinition" not in err


def test_the_option_and_the_variable_go_before_it(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    text = QUEUES + deployment(TAGGED + "0.17.1")
    version, err = release_and_notes(command("in.yaml", "-o", "json", "--kueue", "0.18", text=text))
    assert (version, "the release of" in err) == ("v0.18.6", False)
    monkeypatch.setenv("KUEUECORE_KUEUE", "0.16")
    version, err = release_and_notes(command("in.yaml", "-o", "json", text=text))
    assert (version, "the release of" in err) == ("v0.16.9", False)


def test_of_several_none_is_used(command: Callable[..., Ran]) -> None:
    other = definition("app.kubernetes.io/version: v0.18.0")
    text = QUEUES + deployment(TAGGED + "0.17.1") + other + definition("app.kubernetes.io/version: v0.18.0", "cohorts")
    version, err = release_and_notes(command("in.yaml", "-o", "json", text=text))
    assert version == f"v{DEFAULT_RELEASE}"
    says = f"warning: the objects show several releases of Kueue, so none is used: v0.17.1 of {PLACE}"
    (line,) = [line for line in err.splitlines() if line.startswith(says)]
    assert line.partition(", v0.18.0 of ")[2].startswith(
        'CustomResourceDefinition "workloads.kueue.x-k8s.io" (in.yaml:'
    )
    assert line.endswith("; choose with --kueue")


@pytest.mark.parametrize(("version", "nearest"), [("0.15.2", "0.16.9"), ("0.17.99", "0.17.8"), ("1.2.3", "0.20.0")])
def test_instead_of_one_that_is_not_known_the_nearest_decides(
    version: str, nearest: str, command: Callable[..., Ran]
) -> None:
    found, err = release_and_notes(command("in.yaml", "-o", "json", text=QUEUES + deployment(TAGGED + version)))
    assert found == f"v{nearest}"
    assert f" is of Kueue v{version}, which kueuecore does not know, so it decides as Kueue v{nearest}" in err
    assert "; choose another with --kueue\n" in err


def test_gates_are_those_of_the_release(command: Callable[..., Ran]) -> None:
    text = deployment(TAGGED + "0.17.1").replace('"}]', '", args: [--feature-gates=LendingLimit=true]}]')
    _, err = release_and_notes(command("in.yaml", "-o", "json", text=QUEUES + text))
    assert "are used: LendingLimit=true" in err
    _, err = release_and_notes(command("in.yaml", "-o", "json", text=QUEUES + text.replace("0.17.1", "0.19.1")))
    assert "the feature gate LendingLimit of Deployment" in err


def test_those_beside_the_configuration_go_before_the_others(command: Callable[..., Ran], tmp_path: Path) -> None:
    configuration = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}\n"
    (tmp_path / "kueue.yaml").write_text(configuration + deployment(TAGGED + "0.18.2"), encoding="utf-8")
    text = QUEUES + deployment(TAGGED + "0.17.1")
    version, err = release_and_notes(command("in.yaml", "--config", "kueue.yaml", "-o", "json", text=text))
    assert (version, "(kueue.yaml:" in err) == ("v0.18.2", True)


def test_a_scenario_and_a_policy_test_believe_it_too(any_command: Callable[..., Ran], tmp_path: Path) -> None:
    job = (
        "{apiVersion: batch/v1, kind: Job, metadata: {name: one, namespace: team, labels: {kueue.x-k8s.io/queue-name:"
        " lq}}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]"
        "}}}}"
    )
    files = {
        "scenario.yaml": "apiVersion: kueuecore/v1\nkind: Scenario\ncluster: {objects: [in.yaml], kueue: KUEUE}\n"
        f"work: [{{job: {job}, runs: 1m}}]\n",
        "a_test.yaml": "apiVersion: kueuecore/v1\nkind: PolicyTest\nmanifests: [in.yaml]\nkueue: KUEUE\n"
        f"cases: [{{name: runs, submit: [{{job: {job}}}], expect: [{{workload: team/one, admitted: true}}]}}]\n",
    }

    def found(command: str, file: str, kueue: str, *options: str) -> tuple[Any, bool]:
        (tmp_path / file).write_text(files[file].replace("KUEUE", kueue), encoding="utf-8")
        ran = any_command(command, file, "-o", "json", *options, text=QUEUES + deployment(TAGGED + "0.17.1"))
        document = json.loads(ran.out)
        document = document["tests"][0] if command == "test" else document
        says = f"note: decides as Kueue v0.17.1, the release of {PLACE}"
        return document["kueue"]["version"], says in ran.err

    for command, file in (("simulate", "scenario.yaml"), ("test", "a_test.yaml")):
        assert found(command, file, "null") == ("v0.17.1", True)
        assert found(command, file, "0.18.2") == ("v0.18.2", False)
        assert found(command, file, "null", "--kueue", "0.16.2") == ("v0.16.2", False)
