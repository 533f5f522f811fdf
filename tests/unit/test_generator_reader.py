"""Files of the generator of Kueue's performance tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from kueuecore import ManifestError, simulate
from kueuecore._json import object_at, text_at
from kueuecore.manifests import plain_object
from kueuecore.scenarios import GeneratedRun, read_generator
from kueuecore.simulation import RunEnding, StepKind
from kueuecore.testing import History, Move, MoveKind
from kueuecore.trials.comparison import compare
from tests.generator_files import HOST, RACK, on_racks

T0 = "2026-01-01T00:00:00Z"
Json = dict[str, Any]


def read(folder: Path, plain: object) -> GeneratedRun:
    file = folder / "generator.yaml"
    file.write_text(plain if isinstance(plain, str) else json.dumps(plain))
    return read_generator(file)


def test_names_and_times_are_those_that_kueue_gives(tmp_path: Path) -> None:
    given = read(tmp_path, on_racks(cohorts=1, queues=2, racks=2, hosts=2, share=16))
    names = [(text_at(object_, "kind"), text_at(object_, "metadata", "name")) for object_ in given.objects]
    assert [name for kind, name in names if kind == "Node"] == [
        "node-b0-r0-n0",
        "node-b0-r0-n1",
        "node-b0-r1-n0",
        "node-b0-r1-n1",
    ]
    assert [name for kind, name in names if kind == "ClusterQueue"] == ["cq-0-0-cohort-0", "cq-0-1-cohort-0"]
    node = next(object_ for object_ in given.objects if text_at(object_, "metadata", "name") == "node-b0-r1-n0")
    labels = object_at(node, "metadata", "labels")
    assert (labels[RACK], labels[HOST], labels["tas-node-group"]) == ("rack-1", "node-0", "tas")
    events = [(event.at, text_at(plain_object(event.object or {}), "metadata", "name")) for event in given.events]
    assert [name for at, name in events if at == 0.1][::2] == [
        "small-required-0-0-0",
        "small-preferred-1-0-0",
        "small-balanced-2-0-0",
    ]
    assert events == sorted(events, key=lambda event: event[0])
    assert max(at for at, name in events if "large-required" in name) == 1.2


def test_classes_of_a_set_arrive_one_after_the_other(tmp_path: Path) -> None:
    work = [{"className": name, "runtimeMs": 1, "request": 1} for name in ("a", "b")]
    sets = [{"count": 2, "creationIntervalMs": 250, "workloads": work}]
    queues = {"className": "cq", "count": 1, "nominalQuota": 1, "workloadsSets": sets}
    given = read(tmp_path, {"cohorts": [{"className": "c", "count": 1, "queuesSets": [queues]}]})
    names = [(event.at, text_at(plain_object(event.object or {}), "metadata", "name")) for event in given.events]
    assert names == [(0.25, "a-0-0-0"), (0.5, "b-0-0-1"), (0.75, "a-0-1-0"), (1.0, "b-0-1-1")]


def test_a_run_decides_as_the_reference_does(tmp_path: Path) -> None:
    given = read(tmp_path, on_racks(cohorts=2, queues=3, racks=2, hosts=4, share=17))
    run = simulate(given.objects, given.events, now=T0, cycle_seconds=0.001)
    assert run.ending is RunEnding.COMPLETE
    assert (run.outcome_table["finished"] >= 0).sum() == len(given.events) == 156
    workloads = {f"{meta['namespace']}/{meta['name']}": plain for plain, meta in map(with_metadata, given.events)}
    moves = []
    wanted = [step for step in run.steps if step.kind in (StepKind.CREATED, StepKind.FINISHED)]
    for _, steps in groupby(wanted, lambda step: step.time):
        for step in steps:
            if step.kind is StepKind.FINISHED:
                moves.append(Move(kind=MoveKind.FINISH, key=step.key))
                continue
            plain = workloads[step.key]
            meta = {**plain["metadata"], "uid": step.key, "creationTimestamp": T0}
            moves.append(Move(kind=MoveKind.APPLY, object={**plain, "metadata": meta}))
        moves.append(Move(kind=MoveKind.CYCLE))
    compare(History(given.objects, tuple(moves)))


def with_metadata(event: Any) -> tuple[Json, Json]:
    plain = plain_object(event.object)
    return plain, object_at(plain, "metadata")


def levels(plain: Json) -> Any:
    return plain["topology"]["levels"]


def work(plain: Json) -> Any:
    return plain["cohorts"][0]["queuesSets"][0]["workloadsSets"][0]["workloads"][0]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (lambda it: it.pop("cohorts"), "cohorts", "Required value"),
        (lambda it: it.update(cohort=1), "cohort", "unknown field"),
        (lambda it: it["cohorts"][0].pop("className"), "cohorts[0].className", "Required value"),
        (lambda it: it["cohorts"][0].update(count=10**9), "cohorts[0].count", "Invalid value: 1000000000"),
        (lambda it: it["cohorts"][0].update(count=10**6), "cohorts", "3000000000 Workloads are too many"),
        (lambda it: levels(it)[1].update(count=10**6), "topology.levels", "64000000 nodes are too many"),
        (lambda it: levels(it).clear(), "topology.levels", "0 levels"),
        (lambda it: it["resourceFlavor"].pop("nodeLabel"), "resourceFlavor.nodeLabel", "Required value"),
        (
            lambda it: levels(it)[2]["capacity"].update(cpu=True),
            "topology.levels[2].capacity.cpu",
            "not a quantity: true",
        ),
        (
            lambda it: work(it).update(tasConstraint="strict"),
            "cohorts[0].queuesSets[0].workloadsSets[0].workloads[0].tasConstraint",
            'Unsupported value: "strict"',
        ),
        (
            lambda it: work(it).pop("tasLevel"),
            "cohorts[0].queuesSets[0].workloadsSets[0].workloads[0].tasConstraint",
            "only applies with tasLevel",
        ),
    ],
)
def test_problems_are_reported(tmp_path: Path, change: Callable[[Json], object], field: str, message: str) -> None:
    plain = on_racks()
    change(plain)
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, plain)
    problem = caught.value.problems[0]
    assert (problem.field, problem.message) == (field, message)
    assert problem.remedy
    assert problem.file.endswith("generator.yaml")
    assert problem.line


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "0 documents"), ("a: 1\n---\na: 2", "2 documents"), ("- a", "must be a mapping"), ("cohorts: no", "")],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(tmp_path, text)
    assert message in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="nowhere"):
        read_generator(tmp_path / "nowhere.yaml")
