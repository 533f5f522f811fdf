"""`kueuecore upgrade` of a scenario: a whole run under two releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode
from kueuecore.scenarios import read_scenario
from kueuecore.upgrades.scenarios import ScenarioUpgrade, upgrade_scenario
from tests.command import Ran
from tests.unit.cli.conftest import any_command  # noqa: F401  # a fixture

Command = Callable[..., Ran]
# Before 0.17.6 a node selector kept jobs out of flavors whose neighbours have the label.
SCENARIO = """
apiVersion: kueuecore/v1
kind: Scenario
cluster:
  objects:
  - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: plain}, spec: {nodeLabels: {pool: a}}}
  - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: fast}, spec: {nodeLabels: {disk: ssd}}}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {name: team}
    spec:
      namespaceSelector: {}
      resourceGroups:
      - coveredResources: [cpu]
        flavors:
        - {name: plain, resources: [{name: cpu, nominalQuota: 1}]}
        - {name: fast, resources: [{name: cpu, nominalQuota: 1}]}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: team, namespace: default}
    spec: {clusterQueue: team}
work:
- name: ssd
  count: 4
  every: 1m
  runs: 10m
  job:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: ssd, namespace: default, labels: {kueue.x-k8s.io/queue-name: team}}
    spec:
      template:
        spec:
          restartPolicy: Never
          nodeSelector: {disk: ssd}
          containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture
def upgraded(any_command: Command) -> Command:  # noqa: F811
    def run(*options: str) -> Ran:
        Path("scenario.yaml").write_text(SCENARIO, encoding="utf-8")
        return any_command("upgrade", "scenario.yaml", "-q", *options)

    return run


def test_a_run_has_its_causes_and_what_would_be_without_them(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    seen: list[int] = []

    def between(old: str, new: str) -> ScenarioUpgrade:
        scenarios = (read_scenario(path, release=entry) for entry in (old, new))
        return upgrade_scenario(*scenarios, seeds=[3, 4], progress=lambda n_runs, *_: seen.append(n_runs))

    found = between("0.16", "0.19")
    assert [cause.switch.name for cause in found.causes] == ["FlavorsAreMatchedByTheirOwnLabels"]
    assert (found.seed, found.comparison.seeds, found.comparison.total[found.new.name].n_less) == (3, (3, 4), 6)
    assert found.first is not None
    assert (found.first.work, found.first.number, found.first.wait_seconds) == ("ssd", 2, (540.0, 0.0))
    assert (
        found.causes[0].without["mean_wait_seconds"]
        == found.comparison.total[found.old.name]["mean_wait_seconds"].value.median
    )
    assert not found.causes[0].is_settable
    assert len(seen) == found.n_runs > 0
    same = between("0.19", "0.19.1")
    assert (same.causes, same.first, same.comparison.is_any) == ((), None, False)


def test_the_report_of_a_run(upgraded: Command) -> None:
    ran = upgraded("--from", "0.16", "--to", "0.19")
    assert ran.code == ExitCode.OK
    assert ran.out.startswith("Kueue v0.16.9 -> v0.19.2: of 4 jobs, 3 wait less, 0 wait longer, 1 unchanged\n")
    assert "job 2, of ssd, which arrives after 1m00s: waits 9m00s in team -> waits 0s in team\n" in ran.out
    assert "https://github.com/kubernetes-sigs/kueue/pull/12449\n" in ran.out
    assert ran.out.rstrip().endswith("nothing in the Configuration")
    assert upgraded("--from", "0.16", "--to", "0.19", "--fail-on-difference").code == ExitCode.PENDING
    same = "Nothing changes: 4 jobs fare the same under Kueue v0.19.0 and Kueue v0.19.2\n"
    assert upgraded("--from", "0.19.0", "--to", "0.19").out == same


def test_a_run_as_a_document(upgraded: Command) -> None:
    document = json.loads(upgraded("--from", "0.16", "--to", "0.19", "-o", "json").out)
    assert (document["kueue"]["version"], document["from"]["version"]) == ("v0.19.2", "v0.16.9")
    assert (document["differs"], document["total"]["sides"][1]["waitLess"], document["seedOfCauses"]) == (True, 3, 0)
    assert document["first"]["waitSeconds"] == [540.0, 0.0]
    assert [(cause["name"], cause["keeps"]) for cause in document["causes"]] == [
        ("FlavorsAreMatchedByTheirOwnLabels", None)
    ]


def test_a_scenario_has_its_own_cluster(upgraded: Command) -> None:
    ran = upgraded("--from", "0.16", "--trusted", "--config", "kueue.yaml")
    assert ran.code == ExitCode.BAD_INPUT
    assert "a scenario has its own cluster and time; leave out --config and --trusted" in ran.err


def test_the_old_release_of_a_scenario_has_to_be_known(upgraded: Command) -> None:
    ran = upgraded()
    assert ran.code == ExitCode.BAD_INPUT
    assert "name the one that runs now: --from 0.17" in ran.err


def test_runs_of_mixtures_are_limited(upgraded: Command) -> None:
    ran = upgraded("--from", "0.16", "--to", "0.19", "--runs", "2")
    assert ran.out.rstrip().endswith("stopped after 2 runs of mixtures; --runs raises the limit")
