"""`kueuecore upgrade`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.cli import ExitCode
from kueuecore.releases import Release
from tests.command import Ran
from tests.unit.cli.conftest import any_command  # noqa: F401  # a fixture
from tests.unit.upgrade.test_rows_that_are_run import CPU, flavor, queue, thing, workload
from tests.unit.upgrade.test_upgrade import GATED, LABELS

Command = Callable[..., Ran]
WAITS = "waitForPodsReady  off     30m "
"""What every upgrade across 0.19.0 says of a Configuration that does not name it."""


def text_of(*objects: dict[str, Any]) -> str:
    return yaml.safe_dump_all(objects)


@pytest.fixture
def upgraded(any_command: Command) -> Command:  # noqa: F811
    def run(*options: str, objects: list[dict[str, Any]], config: str = "") -> Ran:
        if config:
            head = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
            Path("kueue.yaml").write_text(head + config, encoding="utf-8")
            options = ("--config", "kueue.yaml", *options)
        return any_command("upgrade", "in.yaml", *options, text=text_of(*objects))

    return run


def test_nothing_changes(upgraded: Command) -> None:
    ran = upgraded("--from", "0.18", "--to", "0.18.1", objects=[flavor(), *queue(CPU), workload("w", {"cpu": 1})])
    assert ran.out == "Nothing changes: Kueue v0.18.6 and Kueue v0.18.1 decide the same about 1 workload\n"
    assert ran.code == ExitCode.OK


def test_a_downgrade_to_a_release_that_knows_fewer_kinds_of_jobs(upgraded: Command) -> None:
    ran = upgraded("-q", "--from", "0.19", "--to", "0.16", objects=[flavor(), *queue(CPU), workload("w", {"cpu": 1})])
    assert ran.out == "Nothing changes: Kueue v0.19.2 and Kueue v0.16.9 decide the same about 1 workload\n"


def test_a_cause_with_its_pull_request_and_what_keeps_the_old_decision(upgraded: Command) -> None:
    ran = upgraded("-q", "--from", "0.16", "--to", "0.18", objects=LABELS)
    assert ran.out.splitlines() == [
        "Kueue v0.16.9 -> v0.18.6: decisions about 1 of 1 workload change, for 1 cause",
        "",
        *[line for line in ran.out.splitlines() if line.endswith("no decision here depends on them")],
        "",
        "FlavorsAreMatchedByTheirOwnLabels: A node selector or affinity is matched against the labels of the flavor "
        "itself; before, against the keys of all flavors of the group",
        "  https://github.com/kubernetes-sigs/kueue/pull/12449",
        "WORKLOAD   BEFORE                   AFTER",
        "default/w  Admitted in team (fast)  Admitted in team (plain)",
        "",
        "CAUSE                              WHAT KEEPS THE OLD DECISION",
        "FlavorsAreMatchedByTheirOwnLabels  nothing in the Configuration",
    ]


def test_a_refused_gate_with_its_remedy(upgraded: Command) -> None:
    ran = upgraded(
        "-q", "--from", "0.18", "--to", "0.19", objects=LABELS, config="featureGates: {LendingLimit: true}\n"
    )
    assert ran.code == ExitCode.OK
    assert (
        "REFUSED GATE  SET TO  SET IN        WHY\n"
        "LendingLimit  true    kueue.yaml:3  Kueue 0.19 removed it; leave it out: what it turned on stays on\n"
    ) in ran.out


def test_kinds_of_jobs_that_the_new_release_does_not_ship_with(upgraded: Command) -> None:
    pods = {"spec": {"containers": [{"name": "pytorch", "image": "i", "resources": {"requests": {"cpu": 4}}}]}}
    training = thing(
        "PyTorchJob",
        "training",
        {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": pods}}},
        version="kubeflow.org/v1",
        namespace="default",
        labels={"kueue.x-k8s.io/queue-name": "team"},
    )
    objects = [flavor(), *queue(CPU), training, workload("later", {"cpu": 4}, second=1)]
    ran = upgraded("-q", "--from", "0.18", "--to", "0.19", objects=objects)
    assert (
        "integrations.frameworks  of 0.18  of 0.19          2  the shipped Configuration no longer enables" in ran.out
    )
    assert [line.split()[0] for line in ran.out.splitlines() if line.startswith("default/")] == [
        "default/later",
        "default/pytorchjob-training-66fb2",
    ]
    own = "integrations: {frameworks: [batch/job, kubeflow.org/pytorchjob]}\n"
    assert (
        "the same decisions about 2 workloads"
        in upgraded("-q", "--from", "0.18", "--to", "0.19", objects=objects, config=own).out
    )


def test_a_locked_gate(upgraded: Command) -> None:
    gate = "ManagedJobsNamespaceSelectorAlwaysRespected"
    ran = upgraded("-q", "--from", "0.18", "--to", "0.19", "--feature-gates", f"{gate}=false", objects=LABELS)
    assert f"{gate}  false   --feature-gates  it is locked on; leave it out\n" in ran.out


def test_a_gate_that_is_set_makes_no_difference(upgraded: Command) -> None:
    objects = [flavor(), *queue(CPU), workload("w", {"cpu": 1}, annotations=GATED)]
    options = ("-q", "--from", "0.18", "--to", "0.19")
    assert "AdmissionGatedBy" in upgraded(*options, objects=objects).out
    ran = upgraded(*options, objects=objects, config="featureGates: {AdmissionGatedBy: false}\n")
    assert "AdmissionGatedBy" not in ran.out
    assert WAITS in ran.out


def test_pods_are_not_waited_for_where_the_configuration_says_so(upgraded: Command) -> None:
    objects = [flavor(), *queue(CPU), workload("w", {"cpu": 1})]
    options = ("-q", "--from", "0.18", "--to", "0.19")
    assert WAITS in upgraded(*options, objects=objects).out
    assert WAITS not in upgraded(*options, objects=objects, config="waitForPodsReady: {timeout: 5m}\n").out


def test_only_the_first_workloads_of_a_cause_are_shown(upgraded: Command) -> None:
    gated = [workload(f"w{i}", {"cpu": "100m"}, annotations=GATED) for i in range(8)]
    options = ("-q", "--from", "0.18", "--to", "0.19")
    assert "and 3 more\n" in upgraded(*options, objects=[flavor(), *queue(CPU), *gated]).out
    wide = upgraded(*options, "-o", "wide", objects=[flavor(), *queue(CPU), *gated]).out
    assert "more\n" not in wide
    assert wide.count("Admission is gated by") == 8


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_document_has_everything(form: str, upgraded: Command) -> None:
    ran = upgraded("-q", "--from", "0.16", "--to", "0.19", "-o", form, objects=LABELS)
    document = json.loads(ran.out) if form == "json" else yaml.safe_load(ran.out)
    assert (document["schema"], document["kueue"]["version"], document["from"]["version"]) == (1, "v0.19.2", "v0.16.9")
    assert (document["differs"], document["workloads"], document["refusals"]) == (True, 1, [])
    (cause,) = document["causes"]
    assert cause["keeps"] is None
    assert [switch["pulls"] for switch in cause["switches"]] == [
        ["https://github.com/kubernetes-sigs/kueue/pull/12449"]
    ]
    (difference,) = cause["differences"]
    assert (difference["kind"], difference["key"]) == ("Workload", "default/w")
    assert (difference["before"]["flavors"], difference["after"]["flavors"]) == (
        {"main": {"cpu": "fast"}},
        {"main": {"cpu": "plain"}},
    )


def test_a_difference_may_fail(upgraded: Command) -> None:
    assert upgraded("-q", "--from", "0.18", "--to", "0.19", objects=LABELS, config="").code == ExitCode.OK
    assert upgraded("-q", "--from", "0.16", "--fail-on-difference", objects=LABELS).code == ExitCode.PENDING
    same = upgraded("-q", "--from", "0.18", "--to", "0.18", "--fail-on-difference", objects=LABELS)
    assert same.code == ExitCode.OK


def test_the_old_release_has_to_be_known(upgraded: Command) -> None:
    ran = upgraded(objects=LABELS)
    assert ran.code == ExitCode.BAD_INPUT
    assert "the objects show no release of Kueue; name the one that runs now: --from 0.17" in ran.err


def test_a_configuration_that_the_new_release_refuses(upgraded: Command) -> None:
    config = "featureGates: {TopologyAwareScheduling: false, TASFailedNodeReplacement: true}\n"
    ran = upgraded("-q", "--from", "0.16.8", "--to", "0.19", objects=LABELS, config=config)
    assert ran.code == ExitCode.OK
    assert "Kueue v0.19.2 refuses the Configuration; below, its settings count as they are:\nkueue.yaml:3" in ran.out
    assert "default/w  Admitted in team (fast)  Admitted in team (plain)\n" in ran.out


def test_manifests_in_a_version_that_is_not_served_any_more(upgraded: Command) -> None:
    old = [entry | {"apiVersion": "kueue.x-k8s.io/v1beta1"} for entry in (flavor(), *queue(CPU))]
    ran = upgraded("-q", "--from", "0.19", "--to", "0.20", objects=[*old, workload("w", {"cpu": 1})])
    assert 'OldVersionIsNotServed  apiVersion: Invalid value: no matches for kind "ClusterQueue" in version ' in ran.out
    assert ran.out.count("convert it: kueuecore convert in.yaml\n") == 1


def test_gates_that_have_to_go_off_with_those_that_they_need(upgraded: Command) -> None:
    needs = {
        "TopologyAwareScheduling": [
            "TASGroupedPodSetSlicing",
            "TASLeaderPodSetFeasibility",
            "TASNodeFeasibilityForAllLevels",
            "TASPartialSlices",
        ],
        "AdmissionFairSharing": ["AdmissionFairSharingAnchorAtQuotaReservation"],
        "SchedulingEquivalenceHashing": ["SchedulingEquivalenceHashingIgnorePodSetName"],
    }
    of_0_19 = [
        feature_gate.name
        for feature_gate in Release.named("0.19").feature_gates()
        if feature_gate.default and "TopologyAwareScheduling" in feature_gate.needs
    ]
    config = f"featureGates: {{{', '.join(f'{need}: false' for need in (*needs, *of_0_19))}}}\n"
    found = upgraded("-q", "--from", "0.19", "--to", "0.20", objects=LABELS, config=config).out
    assert "Kueue v0.20.0 refuses the Configuration; below, its settings count as they are:\nkueue.yaml:3" in found
    for gate, others in needs.items():
        assert all(
            f"{other} is enabled, but depends on features that are disabled: [{gate}]" in found for other in others
        )
    assert found.count(" is enabled, but depends") == sum(map(len, needs.values()))


def test_workers_of_multikueue_have_to_be_upgraded_too(upgraded: Command) -> None:
    check = thing("AdmissionCheck", "elsewhere", {"controllerName": "kueue.x-k8s.io/multikueue"})
    row = "MultiKueueOrchestratedPreemption  off     on              -  workers preempt once the manager lets them"
    options = ("-q", "--from", "0.19", "--to", "0.20")
    assert row in upgraded(*options, objects=[check, *LABELS]).out
    assert row not in upgraded(*options, objects=LABELS).out
    off = "featureGates: {MultiKueueOrchestratedPreemption: false}\n"
    assert row not in upgraded(*options, objects=[check, *LABELS], config=off).out
    assert row not in upgraded("-q", "--from", "0.20", "--to", "0.19", objects=[check, *LABELS]).out


def test_a_container_with_a_limit_alone_is_charged_that_limit(upgraded: Command) -> None:
    limits = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": 5}}}]}}
    defaults = {"limits": [{"type": "Container", "defaultRequest": {"cpu": 1}}]}
    objects = [
        flavor(),
        *queue(CPU),
        thing("LimitRange", "defaults", defaults, version="v1", namespace="default"),
        workload("w", {}, template=limits),
    ]
    out = upgraded("-q", "--from", "0.19", "--to", "0.20", objects=objects).out
    assert out.startswith("Kueue v0.19.2 -> v0.20.0: decisions about 1 of 1 workload change, for 1 cause\n")
    assert "OwnLimitsBeforeDefaults: " in out
    assert "  https://github.com/kubernetes-sigs/kueue/pull/15023\n" in out


def kueue(version: str) -> dict[str, Any]:
    pod = {"containers": [{"name": "manager", "image": f"registry.k8s.io/kueue/kueue:v{version}"}]}
    return thing("Deployment", "kueue-controller-manager", {"template": {"spec": pod}}, version="apps/v1")


def test_the_old_release_is_that_of_the_deployment(upgraded: Command) -> None:
    ran = upgraded("-q", "--to", "0.18", objects=[kueue("0.16.3"), *LABELS])
    assert ran.out.startswith("Kueue v0.16.3 -> v0.18.6: ")


def test_several_deployments_show_no_release(upgraded: Command) -> None:
    ran = upgraded("-q", objects=[kueue("0.16.3"), kueue("0.17.0"), *LABELS])
    assert ran.code == ExitCode.BAD_INPUT
    assert "the objects show several releases of Kueue" in ran.err
    assert "choose with --from" in ran.err


def test_a_deployment_of_a_release_that_is_not_followed(upgraded: Command) -> None:
    ran = upgraded(objects=[kueue("0.9.1"), *LABELS])
    assert ran.out.startswith("Kueue v0.16.9 -> ")
    assert "kueuecore does not know, so it decides as Kueue v0.16.9; choose another with --from" in ran.err


def test_a_release_that_is_unknown(upgraded: Command) -> None:
    with_unknown = upgraded("--from", "0.9", objects=LABELS)
    assert with_unknown.code == ExitCode.BAD_INPUT
    assert "kueuecore does not know the release 0.9 of Kueue: write 0.16.9" in with_unknown.err
