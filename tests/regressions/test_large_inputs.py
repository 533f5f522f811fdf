"""Inputs that took time in proportion to their square, or worse. The bounds are far above what they take now."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kueuecore import Engine
from kueuecore.errors import ManifestError
from kueuecore.jobs import workloads_for
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.objects import Cohort
from tests.builders import T0, cluster_queue, workload, world

KUEUE = "kueue.x-k8s.io/v1beta2"
MAX_SECONDS = 10.0


@contextmanager
def in_time() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < MAX_SECONDS


def flavor(**spec: Any) -> Manifest:
    return Manifest({"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "f"}, "spec": spec})


def test_many_keys_of_which_one_stands_twice() -> None:
    labels = ", ".join(f'"k{n}": "v"' for n in [*range(20_000), 7])
    text = f'{{"apiVersion": "{KUEUE}", "kind": "ResourceFlavor", "metadata": {{"name": "f"}}, "spec": {{{labels}}}}}'
    with in_time(), pytest.raises(ManifestError) as caught:
        parse_manifests(text, strict=True)
    assert [problem.field for problem in caught.value.problems] == ["spec.k7"]


def test_of_many_unknown_fields_a_hundred_are_named() -> None:
    with in_time():
        warnings = Engine().apply([flavor(**{f"k{n}": 1 for n in range(10_000)})]).warnings
    assert len(warnings) == 101
    assert "9900 more unknown fields" in warnings[-1].message


def test_of_many_unknown_fields_of_a_job_too() -> None:
    spec = {f"k{n}": 1 for n in range(10_000)}
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job"}
    job |= {"metadata": {"name": "j", "namespace": "ns"}, "spec": spec}
    with in_time():
        warnings = workloads_for([job]).warnings
    assert len(warnings) == 101
    assert warnings[-1].message == "9900 more unknown fields"


def test_many_problems_of_one_object() -> None:
    metadata = {"name": "f", "labels": {f"k{n}": n for n in range(10_000)}}
    text = json.dumps({**flavor().object, "metadata": metadata}, indent=1)
    with in_time(), pytest.raises(ManifestError) as caught:
        Engine().apply(parse_manifests(text))
    lines = [problem.line for problem in caught.value.problems if problem.field.startswith("metadata.labels")]
    assert len(lines) == len(set(lines)) == 10_000, caught.value.problems[:3]


@pytest.mark.parametrize("step", [1, -1], ids=["from the top", "from the bottom"])
def test_a_long_chain_of_cohorts(step: int) -> None:
    names = [f"c{n}" for n in range(20_000)]
    chain = [Cohort(name, parent_name=parent) for name, parent in zip(names[1:], names[:-1], strict=True)]
    with in_time():
        engine = world(cluster_queue("lends", cohort=names[0]), *chain[::step], cluster_queue(cpu=0, cohort=names[-1]))
        engine.apply([workload("w")], now=T0)
        decision = engine.cycle(T0)
    assert [admission.key for admission in decision.admissions] == ["ns/w"]


def many_owners(n: int) -> list[dict[str, Any]]:
    owner = {"apiVersion": "v1", "kind": "J", "name": "j", "uid": "u", "controller": True}
    metadata = {"name": "w", "namespace": "ns", "ownerReferences": [owner] * n}
    return [{"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": {}}]


def test_many_owners_that_control() -> None:
    # Each error held all of them: 12,000 were more than 6 GB.
    with in_time(), pytest.raises(ManifestError) as caught:
        Engine().apply(many_owners(10_000))
    assert len(caught.value.problems) >= 9_999


def limits(cpu: int) -> list[dict[str, Any]]:
    metadata = {"namespace": "ns"}
    items = [{"type": "Container", "default": {"cpu": cpu}}]
    ranges = [
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {**metadata, "name": f"l{i}"}, "spec": {"limits": items}}
        for i in range(10_000)
    ]
    return [*ranges, *(workload(f"w{i}").to_manifest() for i in range(100))]


def circle() -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": KUEUE,
            "kind": "Cohort",
            "metadata": {"name": f"c{i}"},
            "spec": {"parentName": f"c{(i + 1) % 10_000}"},
        }
        for i in range(10_000)
    ]


def checks() -> list[dict[str, Any]]:
    group = {"apiVersion": KUEUE}
    spec = {"controllerName": "example.com/x"}
    found = [{**group, "kind": "AdmissionCheck", "metadata": {"name": f"a{i}"}, "spec": spec} for i in range(10_000)]
    rules = {"admissionChecks": [{"name": f"a{i}"} for i in range(10_000)]}
    queue = {"metadata": {"name": "cq"}, "spec": {"admissionChecksStrategy": rules}}
    return [*found, {**group, "kind": "ClusterQueue", **queue}]


@pytest.mark.parametrize("objects", [limits(1), circle(), checks()], ids=["LimitRanges", "Cohorts", "AdmissionChecks"])
def test_many_objects_that_know_each_other_come_again(objects: list[dict[str, Any]]) -> None:
    engine = Engine()
    with in_time():
        for _ in range(2):
            engine.apply(objects, trusted=True)


def test_many_limits_change_at_once() -> None:
    engine = Engine()
    with in_time():
        for cpu in (1, 2):
            engine.apply(limits(cpu))
