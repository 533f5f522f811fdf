"""The rules of Kueue's CustomResourceDefinitions say in CEL what the engine's closures say."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kueuecore._patches import patched
from kueuecore.api_server import RefusedError
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import KINDS, crd
from tests.crd_objects import (
    BROKEN,
    CHANGED,
    RICH,
    Plain,
    by_definition,
    by_engine,
    has_list_for_time,
    mutated,
    rules_of,
    schema_of,
)

VERDICTS = Path(__file__).parents[4] / "shared/conformance/server/verdicts.jsonl.gz"
NOT_CHECKED = "some validation rules were not checked"
# Of a value that is longer than any name, the beginning is shown.
LONG = re.compile(r'"([^"\\]{253})[^"\\]+"')


def judged(kind: str) -> Plain:
    """What the engine looks into as a server does: of statuses that of a Workload alone."""
    return {name: part for name, part in RICH[kind].items() if name != "status" or kind == "Workload"}


def reported(rules: set[tuple[str, str]]) -> set[tuple[str, str]]:
    return {(field, message.removeprefix("Invalid value: ")) for field, message in rules}


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_with_much_in_it_is_taken(kind: str) -> None:
    assert by_definition(RICH[kind]) == by_engine(RICH[kind]) == set()
    assert by_definition(RICH[kind], RICH[kind]) == by_engine(RICH[kind], RICH[kind]) == set()


@pytest.mark.parametrize(("kind", "patch", "field", "message"), BROKEN)
def test_what_breaks_a_rule_breaks_it_here_and_there(kind: str, patch: Plain, field: str, message: str) -> None:
    wrong = patched(RICH[kind], patch)
    assert reported(by_definition(wrong)) == reported(by_engine(wrong)) == {(field, message)}


@pytest.mark.parametrize(("kind", "before", "patch", "field", "message"), CHANGED)
def test_what_may_not_change_may_not_here_and_there(
    kind: str, before: Plain, patch: Plain, field: str, message: str
) -> None:
    old = patched(RICH[kind], before)
    new = patched(old, patch)
    found = {(at, text.rpartition(": ")[2]) for at, text in by_definition(new, old)}
    assert by_definition(new, old) == by_engine(new, old)
    assert found == {(field, message)}


def test_a_priority_class_of_another_group_is_another_class() -> None:
    old = RICH["Workload"]
    new = patched(old, {"spec": {"priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass"}}})
    stays = "is immutable while workload quota reserved"
    wanted = {("<nil>", f"priorityClassRef.{name} {stays}") for name in ("group", "kind")}
    assert reported(by_definition(new, old)) == reported(by_engine(new, old)) == wanted


def test_every_rule_is_broken_by_a_case() -> None:
    cases = {(kind, message) for kind, _, _, message in BROKEN} | {(kind, message) for kind, *_, message in CHANGED}
    cases |= {
        ("Workload", f"priorityClassRef.{name} is immutable while workload quota reserved")
        for name in ("group", "kind")
    }
    served = {kind: crd(kind)["spec"]["versions"][1]["schema"]["openAPIV3Schema"] for kind in KINDS}
    rules = {(kind, rule["message"]) for kind, schema in served.items() for _, rule in rules_of(schema)}
    assert rules - cases == set()


def test_every_rule_has_an_expression() -> None:
    for kind in KINDS:
        for version in crd(kind)["spec"]["versions"]:
            for place, rule in rules_of(version["schema"]["openAPIV3Schema"]):
                assert set(rule) == {"message", "rule"}, (kind, place)
                assert "self" in rule["rule"], (kind, place)
                assert rule["message"], (kind, place)


@pytest.mark.parametrize("kind", KINDS)
def test_objects_changed_at_random_are_judged_alike(kind: str) -> None:
    numbers = random.Random(kind)
    n_taken = 0
    for _ in range(400):
        new = mutated(judged(kind), numbers, numbers.choice((1, 1, 2, 3)))
        of_definition, of_engine = by_definition(new), by_engine(new)
        if has_list_for_time(of_engine):
            continue
        assert of_definition == of_engine, json.dumps(new)
        n_taken += not of_definition
    assert 0 < n_taken < 400


@pytest.mark.parametrize("kind", KINDS)
def test_updates_at_random_are_judged_alike(kind: str) -> None:
    """The engine asks what may not change only once the new object is right by itself, and if it has a spec."""
    numbers = random.Random(kind)
    n_refused = 0
    for _ in range(400):
        old = mutated(judged(kind), numbers, numbers.choice((0, 0, 1)))
        if by_engine(old):
            continue
        old = schema_of(kind).stored(old)
        new = mutated(old, numbers, numbers.choice((1, 1, 2)))
        of_definition, of_engine = by_definition(new, old), by_engine(new, old)
        if (old.get("spec") is None) != (new.get("spec") is None) or has_list_for_time(of_engine):
            continue
        n_refused += bool(of_definition)
        if by_engine(new):
            assert of_engine <= of_definition, json.dumps([old, new])
        else:
            assert of_definition == of_engine, json.dumps([old, new])
    assert n_refused


def cases() -> Iterator[tuple[Plain, list[str]]]:
    with gzip.open(VERDICTS, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            yield case["object"], case["refused"]


@pytest.mark.skipif(not VERDICTS.is_file(), reason="no recorded verdicts here")
def test_a_definition_takes_and_refuses_what_the_server_does() -> None:
    """The rules of metadata are other ones: what the server said of them is not compared, and all get a good one."""
    schemas = {(kind, name): CrdSchema.of(crd(kind), name) for kind in KINDS for name in ("v1beta1", "v1beta2")}
    counts: Counter[str] = Counter()
    for plain, refused in cases():
        of_metadata = [row for row in refused if row.startswith(("META ", "metadata."))]
        wanted = sorted(LONG.sub(r'"\1..."', row) for row in refused if row not in of_metadata)
        if of_metadata and not any(row for row in wanted if NOT_CHECKED not in row):
            counts["metadata alone"] += 1
            continue
        named = {**plain, "metadata": {"name": "o", "namespace": "n"}}
        schema = schemas[plain["kind"], plain["apiVersion"].split("/")[1]]
        try:
            schema.stored(named)
            found = []
        except RefusedError as error:
            found = sorted(f"{cause['field']}: {cause['message']}" for cause in error.causes)
        assert found == wanted, json.dumps(plain)
        counts["refused" if wanted else "taken"] += 1
    assert (counts["taken"], counts["refused"], counts["metadata alone"]) == (1198, 2733, 859)


@pytest.mark.skipif(not VERDICTS.is_file(), reason="no recorded verdicts here")
def test_what_the_server_refused_for_its_metadata_is_refused() -> None:
    schemas = {(kind, name): CrdSchema.of(crd(kind), name) for kind in KINDS for name in ("v1beta1", "v1beta2")}
    n_unreadable = 0
    for plain, refused in cases():
        if refused:
            with pytest.raises(RefusedError) as found:
                schemas[plain["kind"], plain["apiVersion"].split("/")[1]].stored(plain)
            n_unreadable += found.value.code == 400
            assert found.value.code == 422 or any(row.startswith("META ") for row in refused)
    assert n_unreadable > 700


@pytest.mark.skipif(not VERDICTS.is_file(), reason="no recorded verdicts here")
def test_expressions_and_closures_say_the_same_of_what_the_server_judged() -> None:
    served = {"kueue.x-k8s.io/v1beta1": "0.20.0-devel", "kueue.x-k8s.io/v1beta2": DEFAULT_RELEASE}
    for plain, _ in cases():
        named: Plain = {**plain, "metadata": {"name": "o", "namespace": "n"}}
        found = by_engine(named, release=served[plain["apiVersion"]])
        assert by_definition(named) == found, json.dumps(plain)


def test_an_old_version_has_its_own_rules_for_updates() -> None:
    spec: Any = {
        **RICH["Workload"]["spec"],
        "priorityClassName": "high",
        "priorityClassSource": "scheduling.k8s.io/priorityclass",
    }
    conditions = RICH["Workload"]["status"]["conditions"]
    old = schema_of("Workload", "v1beta1").stored(
        {**RICH["Workload"], "apiVersion": "kueue.x-k8s.io/v1beta1", "spec": spec, "status": {"conditions": conditions}}
    )
    stays = "is immutable while workload quota reserved"
    source = "kueue.x-k8s.io/workloadpriorityclass"
    table: list[tuple[Plain, str]] = [
        ({"priorityClassName": "low"}, f"priorityClassName {stays} and priorityClassSource is not equal to {source}"),
        ({"priorityClassSource": source}, f"priorityClassSource {stays}"),
        ({"queueName": "other"}, f"queueName {stays}"),
    ]
    for patch, message in table:
        assert reported(by_definition(patched(old, {"spec": patch}), old)) == {("<nil>", message)}
