"""From manifests to what an engine takes."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore import Configuration, Engine, Manifest, World
from kueuecore._kinds import KINDS
from kueuecore.jobs import JobsConfiguration

NOW = "2026-01-01T00:00:00Z"


def manifest(kind: str, name: str, *, api_version: str = "kueue.x-k8s.io/v1beta2", **metadata: Any) -> Manifest:
    return Manifest({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}})


def job(name: str, **metadata: Any) -> Manifest:
    containers = [{"name": "main", "resources": {"requests": {"cpu": 1}}}]
    plain = manifest("Job", name, api_version="batch/v1", labels={"kueue.x-k8s.io/queue-name": "lq"}, **metadata)
    template: Any = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return Manifest({**plain.object, "spec": {"template": template}})


def names(world: World) -> list[str]:
    return [f"{other.object['kind']}/{other.object['metadata']['name']}" for other in world.manifests]  # type: ignore[index,call-overload]


def uids(world: World) -> dict[str, str]:
    workloads: list[Any] = [other.object for other in world.manifests if other.object["kind"] == "Workload"]
    return {workload["metadata"]["name"]: workload["metadata"]["uid"][-3:] for workload in workloads}


def test_a_workload_stands_after_its_job() -> None:
    world = World.of([job("b"), manifest("Workload", "w"), job("a")])
    made = [other.object["metadata"]["name"] for other in world.made]  # type: ignore[index,call-overload]
    assert names(world) == [
        "Namespace/default",
        "Job/b",
        f"Workload/{made[0]}",
        "Workload/w",
        "Job/a",
        f"Workload/{made[1]}",
    ]


def test_workloads_are_numbered_in_the_order_of_the_files() -> None:
    first = "00000000-0000-0000-0000-000000000001"
    world = World.of([manifest("Workload", name) for name in "zba"])
    assert uids(world) == {"z": "001", "b": "002", "a": "003"}
    world = World.of([manifest("Workload", "new"), manifest("Workload", "old", uid=first), manifest("Workload", "new")])
    assert uids(world) == {"new": "002", "old": "001"}


def test_generated_names_are_the_lowest_that_are_free() -> None:
    given = [manifest("Workload", "", generateName="w-"), manifest("Workload", "", generateName="w-")]
    assert sorted(uids(World.of([*given, manifest("Workload", "w-00001")]))) == ["w-00001", "w-00002", "w-00003"]


@pytest.mark.parametrize(
    ("kind", "api_version"), [(kind.name, kind.api_version) for kind in KINDS if kind.name != "Pod"]
)
def test_every_kind_that_is_read_may_have_a_generated_name(kind: str, api_version: str) -> None:
    given = [manifest(kind, "", api_version=api_version, generateName="lab-", namespace="default")]
    assert names(World.of(given))[-1] == f"{kind}/lab-00001"
    other = [manifest(kind, "", api_version="example.com/v1", generateName="lab-")]
    assert names(World.of(other))[-1] == f"{kind}/"


def test_a_namespace_with_a_generated_name_has_its_label() -> None:
    (given,) = World.of([manifest("Namespace", "", api_version="v1", generateName="lab-")]).manifests
    assert given.object["metadata"] == {
        "name": "lab-00001",
        "generateName": "lab-",
        "labels": {"kubernetes.io/metadata.name": "lab-00001"},
    }


def test_a_job_that_gets_its_name_later_was_read_all_the_same() -> None:
    world = World.of([job("", generateName="a-"), job("b", namespace="x")])
    assert world.apply_to(Engine(), now=NOW).unread == {}


def test_an_invalid_namespace_is_not_added() -> None:
    assert World.of([manifest("LocalQueue", "lq", namespace="Not_one")]).namespaces == ()


def test_only_namespaces_that_are_missing_are_added() -> None:
    there = manifest("Namespace", "there", api_version="v1")
    queues = [manifest("LocalQueue", "lq", namespace=name) for name in ("there", "b", "a", "default")]
    world = World.of([there, *queues])
    assert names(world)[:4] == ["Namespace/a", "Namespace/b", "Namespace/default", "Namespace/there"]
    assert world.namespaces == ("a", "b")
    labels = {"kubernetes.io/metadata.name": "there"}
    assert world.manifests[3].object["metadata"] == {"name": "there", "labels": labels}


def test_nothing_is_added_to_a_dump() -> None:
    given = [manifest("LocalQueue", "lq", namespace="x"), manifest("Workload", "w", namespace="x")]
    world = World.of(given, trusted=True)
    assert list(world.manifests) == given
    applied = world.apply_to(Engine(), now=NOW)
    assert (applied.warnings, applied.unread) == ((), {})


@pytest.mark.parametrize("trusted", [False, True])
def test_a_dry_run_reports_the_same_and_applies_nothing(trusted: bool) -> None:
    queue = manifest("LocalQueue", "lq", namespace="x").object
    odd = Manifest({**queue, "spec": {"clusterQueue": "cq", "stopPolice": "Hold"}})
    world = World.of([odd, manifest("Secret", "s", namespace="x", api_version="v1")], trusted=trusted)
    engine = Engine()
    assert world.apply_to(engine, now=NOW, dry_run=True) == world.apply_to(Engine(), now=NOW)
    assert engine.objects("LocalQueue") == ()


def test_future_times_are_not_the_newest() -> None:
    plain: Any = manifest("Workload", "w", creationTimestamp="2026-01-01T00:00:00Z").object
    plain["spec"] = {
        "podSets": [{"template": {"spec": {"containers": [{"env": [{"value": "2031-01-01T00:00:00Z"}]}]}}}]
    }
    plain["status"] = {
        "requeueState": {"requeueAt": "2030-01-01T00:00:00Z"},
        "conditions": [{"type": "Evicted", "lastTransitionTime": "2026-01-02T00:00:00Z"}],
    }
    assert World.of([Manifest(plain)], trusted=True).newest_time() == 1_767_312_000_000_000_000
    assert World.of([manifest("Workload", "w")]).newest_time() is None


def test_the_configuration_says_which_jobs_count() -> None:
    configuration = Configuration.parse("""
        apiVersion: config.kueue.x-k8s.io/v1beta2
        kind: Configuration
        manageJobsWithoutQueueName: true
        managedJobsNamespaceSelector: {matchLabels: {batch: "yes"}}
        integrations: {frameworks: [batch/job, pod], labelKeysToCopy: [team], externalFrameworks: [Foo.v1.example.com]}
        featureGates: {PartialAdmission: false}
    """)
    settings = JobsConfiguration.of(configuration)
    assert list(settings.frameworks) == ["batch/job", "pod"]
    assert list(settings.external_frameworks) == ["Foo.v1.example.com"]
    assert list(settings.label_keys_to_copy) == ["team"]
    assert settings.manage_jobs_without_queue_name
    assert settings.managed_jobs_namespace_selector.matches({"batch": "yes"})
    assert not settings.managed_jobs_namespace_selector.matches({})
    assert not settings.enabled("PartialAdmission")
