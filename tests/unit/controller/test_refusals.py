"""A controller refuses impossible reports, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kueuecore.controller import Controller, Metrics
from kueuecore.errors import ManifestError
from kueuecore.writes import Answer

KUEUE = "kueue.x-k8s.io/v1beta2"
NOW = "2026-01-01T00:00:00Z"
Json = dict[str, Any]


def thing(kind: str, name: str, spec: Json | None = None, namespace: str = "", api_version: str = KUEUE) -> Json:
    metadata = {"name": name, "resourceVersion": "1", "uid": f"uid-{name}"} | (
        {"namespace": namespace} if namespace else {}
    )
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | ({"spec": spec} if spec else {})


def workload(name: str, version: str = "1", *, uid: str = "", spec: object = None) -> Json:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    made = thing("Workload", name, {"queueName": "q", "podSets": [pods]}, "a")
    made["metadata"] |= {"resourceVersion": version, "uid": uid or f"uid-{name}"}
    return made if spec is None else made | {"spec": spec}


def controller(metrics: Metrics | None = None) -> Controller:
    """One with quota for one of two workloads."""
    found = Controller(metrics=metrics)
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    quotas = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}]}
    for each in (
        thing("Namespace", "a", api_version="v1"),
        thing("ResourceFlavor", "f"),
        thing("ClusterQueue", "cq", quotas),
        thing("LocalQueue", "q", {"clusterQueue": "cq"}, "a"),
        workload("w1"),
        workload("w2"),
    ):
        found.observe({"type": "ADDED", "object": each}, now=NOW)
    return found


ODD_ANSWERS: list[Any] = [
    {},
    [],
    "x",
    {"kind": "Status"},
    workload("w2", "5"),
    workload("w1", "5", spec=5),
]


@pytest.mark.parametrize("answer", [*ODD_ANSWERS, workload("w1", "0"), workload("w1", "5", uid="other")])
def test_a_write_whose_answer_is_something_else_stays_open(answer: Any) -> None:
    found = controller(Metrics())
    (write,) = found.turn(NOW).writes
    with pytest.raises((ManifestError, TypeError, ValueError)):
        found.done(write, Answer(answer), now=NOW)
    assert found.open_writes == (write,)
    assert found.done(write, Answer(), now=NOW)
    assert found.may_run("w1", namespace="a")


@pytest.mark.parametrize("newest", ODD_ANSWERS)
def test_a_refused_write_of_which_something_else_is_said_stays_open(newest: Any) -> None:
    found = controller()
    (write,) = found.turn(NOW).writes
    with pytest.raises((ManifestError, TypeError, ValueError)):
        found.done(write, Answer(newest, error="refused"), now=NOW)
    assert found.open_writes == (write,)
    assert found.done(write, Answer(workload("w1", "5"), error="refused"), now=NOW)


def test_others_may_have_written_since_a_write_was_accepted() -> None:
    found = controller(Metrics())
    (write,) = found.turn(NOW).writes
    assert found.done(write, Answer(workload("w1", "5")), now=NOW)
    assert found.open_writes == ()


def test_what_is_watched_is_refused_at_once_also_while_a_write_is_open_or_for_another_of_that_name() -> None:
    found = controller()
    found.turn(NOW)
    for other in ("", "uid-other"):
        with pytest.raises(ManifestError, match=r'Workload "a/w1": spec'):
            found.observe({"type": "MODIFIED", "object": workload("w1", "5", uid=other, spec=5)}, now=NOW)
        assert found.workload("w1", namespace="a") == workload("w1")
    assert found.watched("Workload") == "1"
    assert Controller.load(found.save(), now=NOW).workload("w1", namespace="a") == workload("w1")


def test_events_of_an_unknown_type_and_objects_of_a_client_are_refused() -> None:
    found = controller()
    with pytest.raises(ValueError, match="a watch event's type is one of ADDED"):
        found.observe({"type": "deleted", "object": workload("w1", "5")}, now=NOW)
    with pytest.raises(TypeError, match="raw_object"):
        found.observe({"type": "ADDED", "object": object()}, now=NOW)
    with pytest.raises(ManifestError, match=r'Workload "a/w1": x: it cannot be written as JSON'):
        found.observe({"type": "ADDED", "object": workload("w1", "5") | {"x": {1}}}, now=NOW)


def test_a_kind_of_that_name_in_another_group_is_nobody_s_business() -> None:
    found = controller()
    other = thing("ClusterQueue", "cq", api_version="example.com/v1")
    other["metadata"]["resourceVersion"] = "9"
    assert not found.observe({"type": "DELETED", "object": other}, now=NOW)
    assert found.turn(NOW).decision.admissions


def test_a_list_is_taken_but_for_what_is_wrong_and_not_at_all_if_it_is_of_another_kind() -> None:
    found = controller()
    problems = found.resync("Workload", [workload("b1"), workload("b2") | {"x": {1}}, workload("b3")], now=NOW)
    assert [str(problem.object) for problem in problems] == ['Workload "a/b2"']
    assert [found.workload(name, namespace="a") is not None for name in ("w1", "b1", "b2", "b3")] == [
        False,
        True,
        False,
        True,
    ]
    with pytest.raises(ValueError, match="in a list of ClusterQueue there is a Workload: a/b1"):
        found.resync("ClusterQueue", [workload("b1")], now=NOW)
    with pytest.raises(ValueError, match="'Event' is not watched"):
        found.resync("Event", [], now=NOW)
    assert found.turn(NOW).decision.admissions


def test_jobs_end_with_texts_and_time_does_not_go_back() -> None:
    found = controller()
    with pytest.raises(ValueError, match="unpaired surrogate"):
        found.finished("w1", namespace="a", message="log: \udcff")
    with pytest.raises(TypeError, match="reason must be a str"):
        found.finished("w1", namespace="a", reason=5)  # type: ignore[arg-type]
    assert len(found.turn("2026-01-01T00:00:05Z").writes) == 1
    with pytest.raises(ValueError, match="time does not go back"):
        found.turn(NOW)


@pytest.mark.parametrize("part", ["objects", "versions", "reports", "digest"])
def test_what_is_not_as_it_was_saved_is_not_loaded(part: str) -> None:
    saved = json.loads(json.dumps(controller().save()))
    Controller.load(saved, now=NOW)
    with pytest.raises(ValueError, match="this is not a valid save"):
        Controller.load({name: value for name, value in saved.items() if name != part}, now=NOW)
    with pytest.raises(ValueError, match="this is not a valid save"):
        Controller.load({**saved, part: [[]]}, now=NOW)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({}, "type: Required value; hand over the event of the watch as it came"),
        ({"type": "ADDED"}, "object: Required value"),
        ({"type": "ADDED", "object": thing("Cohort", "c") | {"metadata": {"name": "c", "resourceVersion": "9" * 5000}}},
         'Cohort "c": metadata.resourceVersion: Invalid value: must be a string of at most 253 characters'),
        ({"type": "DELETED", "object": thing("Cohort", "c") | {"metadata": {"name": "c", "resourceVersion": 5}}},
         'Cohort "c": metadata.resourceVersion'),
        ({"type": "ADDED", "object": thing("Cohort", "c") | {"metadata": {"name": "c", "uid": []}}}, "metadata.uid"),
    ],
)  # fmt: skip
def test_an_event_that_no_watch_has_is_refused_by_its_field(event: Json, said: str) -> None:
    found = controller()
    before = found.save()
    with pytest.raises(ManifestError) as error:
        found.observe(event, now=NOW)
    assert said in str(error.value)
    assert found.save() == before


def test_an_event_is_plain_data() -> None:
    with pytest.raises(TypeError, match="a watch event must be plain data with type and object, not int"):
        controller().observe(5, now=NOW)  # type: ignore[arg-type]


def test_what_is_wrong_in_a_list_is_told_by_its_place() -> None:
    (problem,) = Controller().resync("Cohort", [thing("Cohort", "c"), {"metadata": {}}], now=NOW)
    assert str(problem).startswith("Cohort at index 1: metadata.name: Required value")
