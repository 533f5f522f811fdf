"""A job leads to its Workload by every name under which people know it; one with several is asked for one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode, main
from tests.command import QUEUES, Ran

MEMBER = """
---
apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: ring}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "3"}
spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}
"""
RING = "".join(MEMBER % name for name in ("north", "east", "west"))
SHOP = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  replicas: %d
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 4}}}]}
"""
NIGHTLY = """
---
apiVersion: batch/v1
kind: Job
metadata:
  name: nightly-1
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: lq}
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: u-1, controller: true}]
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 3}}}]}}
"""
QUICK = ("--run-seconds", "1m", "--workers", "1", "--seeds", "1")


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(command: str, objects: str, *names: str) -> Ran:
        (tmp_path / "in.yaml").write_text(QUEUES + objects, "utf-8")
        code = main([command, str(tmp_path / "in.yaml"), "-q", *names])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.mark.parametrize("name", ["Pod/team/north", "Pod/east", "team/west", "ring"])
@pytest.mark.parametrize("command", ["explain", "unblock", "eta"])
def test_each_pod_of_a_group_leads_to_its_workload(command: str, name: str, ask: Callable[..., Ran]) -> None:
    ran = ask(command, RING, name, *(QUICK if command == "eta" else ()))
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert ran.out.startswith("team/ring ")


@pytest.mark.parametrize("name", ["Pod/team/north", "Pod/team/west"])
def test_deleting_a_pod_of_a_group_deletes_its_workload(name: str, ask: Callable[..., Ran]) -> None:
    out = ask("what-if", RING, "--settle", "--delete", name).out
    assert out.splitlines()[-1].split()[:2] == ["team/ring", "deleted"]


def test_the_group_of_a_dump_is_known_by_its_owners(
    ask: Callable[..., Ran], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state.yaml").write_text(QUEUES + RING, "utf-8")
    assert main(["run", str(tmp_path / "state.yaml"), "-q", "-o", "yaml"]) == ExitCode.OK
    documents = capsys.readouterr().out.split("---\n")
    without_pods = "---\n".join(["", *(document for document in documents if "\nkind: Pod\n" not in document)])
    assert ask("explain", without_pods, "Pod/team/east").out.startswith("team/ring ")


@pytest.mark.parametrize("command", ["explain", "unblock", "eta"])
def test_a_job_with_several_workloads_lists_them(command: str, ask: Callable[..., Ran]) -> None:
    ran = ask(command, SHOP % 2, "Deployment/team/shop")
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    first = ran.err.splitlines()[0]
    assert first.startswith('"Deployment/team/shop" means 2 workloads; name one of them: team/pod-shop-00001-')
    assert first.count(", team/pod-shop-00002-") == 1


def test_a_long_list_ends_with_its_number(ask: Callable[..., Ran]) -> None:
    err = ask("explain", SHOP % 8, "shop").err
    assert "means 8 workloads; name one of them: " in err
    assert " or 3 more, which `kueuecore run` lists\n" in err


def test_workloads_of_several_namespaces_need_the_namespace(ask: Callable[..., Ran]) -> None:
    elsewhere = NIGHTLY.replace("team", "other") + QUEUES[QUEUES.rindex("---") :].replace("team", "other")
    err = ask("explain", NIGHTLY + elsewhere, "Job/nightly-1").err
    assert '"Job/nightly-1" means 2 workloads; give the namespace too, such as ' in err


def test_what_owns_a_job_leads_to_its_workload(ask: Callable[..., Ran]) -> None:
    assert ask("explain", NIGHTLY, "CronJob/team/nightly").out.startswith("team/job-nightly-1-")
    assert ask("explain", SHOP % 1, "Deployment/team/shop").out.startswith("team/pod-shop-00001-")


def test_a_pod_of_an_incomplete_group_says_so(ask: Callable[..., Ran]) -> None:
    err = ask("explain", MEMBER % "north", "Pod/team/north").err
    assert "it has no Workload: 'ring' group has fewer runnable pods than expected" in err


def test_a_forecast_takes_a_dump_as_it_is(ask: Callable[..., Ran]) -> None:
    flavor = "\n---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: Not_Valid}}\n"
    assert ask("eta", flavor + SHOP % 1, *QUICK).code == ExitCode.BAD_INPUT
    ran = ask("eta", flavor + SHOP % 1, "--trusted", *QUICK)
    assert (ran.code, ran.out.startswith("team/pod-shop-00001-")) == (ExitCode.OK, True)
