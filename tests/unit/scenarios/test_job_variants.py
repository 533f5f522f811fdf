"""Jobs of one work that differ in drawn fields, and in texts with their number."""

from __future__ import annotations

from collections import Counter

import pytest

from kueuecore._json import JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.scenarios import run_scenario
from kueuecore.scenarios.job_names import NamedWorkloads
from kueuecore.scenarios.job_variants import Variation
from kueuecore.scenarios.work import Span, Work
from tests.jobs import ALL_KINDS
from tests.regressions.scenarios import CLUSTER, FLEET, Read, problems
from tests.unit.scenarios.test_job_rows import rows_of, scenario_of, submitted

CPU = "spec.template.spec.containers[0].resources.requests.cpu"
PRIORITY = 'metadata.labels["kueue.x-k8s.io/priority-class"]'


def with_texts(texts: dict[str, JsonValue]) -> JsonValue:
    """A pod template with more in its container."""
    container: JsonValue = {"name": "main", "resources": {"requests": {"cpu": 1}}, **texts}
    return {"spec": {"restartPolicy": "Never", "containers": [container]}}


@pytest.mark.parametrize("kind", sorted(ALL_KINDS))
def test_jobs_that_differ_go_as_those_that_are_made_one_by_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = submitted(kind)
    labels: JsonValue = {**object_at(plain.object, "metadata", "labels"), "user": "user-{index}"}
    plain.object["metadata"] = {**object_at(plain.object, "metadata"), "labels": labels}
    field = Variation(
        field='metadata.labels["kueue.x-k8s.io/max-exec-time-seconds"]', values=("20", None), weights=(1, 2)
    )
    work = Work(name="many", job=plain, count=12, every=Span(10), runs=Span(45), varies=(field,))
    rows = rows_of(work)
    if kind != "AppWrapper":
        assert len(rows.copies.templates) == 2 * len(rows.copies) // 12
    together = run_scenario(scenario_of(work))
    monkeypatch.setattr(NamedWorkloads, "of", lambda *_, **__: None)
    assert len(rows_of(work).copies.templates) == len(rows.copies)
    apart = run_scenario(scenario_of(work))
    assert [*together.jobs] == [*apart.jobs]
    assert (together.end, together.notes, together.warnings) == (apart.end, apart.notes, apart.warnings)
    # Some kinds have no such limit.
    if kind == "Job":
        assert 0 < sum(outcome.n_evictions > 0 for outcome in together.jobs) < 12


def test_values_are_drawn_by_weight_and_apart_from_all_else(read: Read) -> None:
    work = "{job: job.yaml, count: 2000, every: {mean: 1m}, runs: {mean: 1m}"
    cpu = f"{{field: '{CPU}', values: [1, 2, 4], weights: [6, 3, 1]}}"
    priority = f"{{field: '{PRIORITY}', values: [low, high], inOrder: true}}"
    (plain,) = read(CLUSTER + f"work: [{work}}}]\n").work
    (one,) = read(CLUSTER + f"work: [{work}, varies: [{cpu}]}}]\n").work
    (both,) = read(CLUSTER + f"work: [{work}, varies: [{priority}, {cpu}]}}]\n").work
    assert list(plain.times(5)) == list(one.times(5)) == list(both.times(5))

    def drawn(work: Work, seed: int) -> list[tuple[int, str]]:
        jobs = [arrival.job.object for arrival in work.arrivals(seed)]
        (pods,) = zip(*(list_at(job, "spec", "template", "spec", "containers") for job in jobs), strict=True)
        priorities = [texts_at(job, "metadata", "labels").get("kueue.x-k8s.io/priority-class", "") for job in jobs]
        cpus = [object_at(pod, "resources", "requests")["cpu"] for pod in pods]
        return [(cpu, name) for cpu, name in zip(cpus, priorities, strict=True) if isinstance(cpu, int)]

    found = drawn(both, 5)
    assert [cpu for cpu, _ in found] == [cpu for cpu, _ in drawn(one, 5)] != [cpu for cpu, _ in drawn(both, 6)]
    assert [name for _, name in found] == ["low", "high"] * 1000
    counts = Counter(cpu for cpu, _ in found)
    assert counts.keys() == {1, 2, 4}
    assert counts[1] == pytest.approx(1200, rel=0.1)
    assert counts[4] == pytest.approx(200, rel=0.25)


def test_jobs_at_one_time_arrive_in_the_order_of_their_numbers(read: Read) -> None:
    scenario = read(CLUSTER + f"work: [{{job: job.yaml, count: 9, varies: [{{field: '{CPU}', values: [1, 2, 3]}}]}}]\n")
    assert [outcome.job for outcome in run_scenario(scenario).jobs] == [
        f"Job/small-{number}" for number in range(1, 10)
    ]


def test_the_number_of_a_job_is_in_all_its_texts() -> None:
    template = with_texts({"args": ["--seed={index}", "{index}"], "env": [{"name": "N", "value": "{index}"}]})
    work = Work(name="many", job=submitted("Job", {"template": template}), count=30)
    for index in (0, 29):
        (container,) = list_at(work.job_at(index).object, "spec", "template", "spec", "containers")
        assert list_at(container, "args") == [f"--seed={index + 1}", str(index + 1)]
    rows = rows_of(work)
    assert len(rows.copies.templates) == 1
    # What stands for all of them has the number of none.
    (pod_set,) = list_at(rows.copies.manifest(7, start=0).object, "spec", "podSets")
    (container,) = list_at(pod_set, "template", "spec", "containers")
    assert "args" not in object_at(container)


def test_what_selects_nodes_is_no_text_of_a_container() -> None:
    args: JsonValue = {"spec": {"containers": [{"name": "main", "args": ["{index}"]}], "nodeSelector": {"env": "a"}}}
    rows = rows_of(Work(name="many", job=submitted("Job", {"template": args}), count=3))
    assert len(rows.copies.templates) == 1
    (pod_set,) = list_at(rows.copies.manifest(1, start=0).object, "spec", "podSets")
    assert texts_at(pod_set, "template", "spec", "nodeSelector") == {"env": "a"}

    pods: JsonValue = {"spec": {"containers": [{"name": "main"}], "nodeSelector": {"env": "e{index}"}}}
    copies = rows_of(Work(name="many", job=submitted("Job", {"template": pods}), count=2)).copies
    pod_sets = [list_at(copies.manifest(row, start=0).object, "spec", "podSets")[0] for row in range(2)]
    assert [text_at(it, "template", "spec", "nodeSelector", "env") for it in pod_sets] == ["e1", "e2"]


def test_each_job_is_read_if_a_decision_depends_on_its_number() -> None:
    job = submitted("Job")
    labels: JsonValue = {"kueue.x-k8s.io/queue-name": "lq-{index}"}
    job.object["metadata"] = {**object_at(job.object, "metadata"), "labels": labels}
    copies = rows_of(Work(name="many", job=job, count=4)).copies
    queues = [text_at(copies.manifest(row, start=0).object, "spec", "queueName") for row in range(4)]
    assert queues == ["lq-1", "lq-2", "lq-3", "lq-4"]


def test_a_change_to_one_job_keeps_its_draws(read: Read) -> None:
    patch = "{metadata: {labels: {kueue.x-k8s.io/priority-class: high}}}"
    second = f"{{kind: Job, name: small-2, namespace: team-a, patch: {patch}}}"
    # The second does not fit beside the first, and with the first's request it would.
    varies = f"[{{field: '{CPU}', values: [3, 6], inOrder: true}}]"
    work = f"work: [{{job: job.yaml, count: 2, varies: {varies}, runs: 10m}}]\n"
    outcomes = run_scenario(read(f"{CLUSTER}timetable: [{{at: 1m, patch: {second}}}]\n{work}")).jobs
    waits = [(outcome.admitted or 0) - outcome.created for outcome in outcomes]
    assert [round(wait / 60e9, 1) for wait in waits] == [0.0, 10.0]


def test_jobs_of_a_fleet_differ_too(read: Read) -> None:
    (work,) = read(FLEET + f"work: [{{job: job.yaml, count: 6, varies: [{{field: '{CPU}', values: [1, 2]}}]}}]\n").work
    assert len({str(arrival.job.object["spec"]) for arrival in work.arrivals(1)}) == 2


@pytest.mark.parametrize(
    ("work", "wrong"),
    [
        ("varies: [{values: [1]}]", "varies[0].field: Required value"),
        (f"varies: [{{field: '{CPU}'}}]", "varies[0].values: Required value"),
        ("varies: [{field: spec.x, values: []}]", "varies[0].values: Required value"),
        ("varies: [{field: spec.x, values: [1], weights: [1, 2]}]", "varies[0].weights: 2 weights"),
        (
            "varies: [{field: spec.x, values: [1], weights: [1], inOrder: true}]",
            "varies[0].weights: values in order have no weights",
        ),
        (
            "varies: [{field: 'spec.template.spec.containers[3].image', values: [a]}]",
            'varies[0].field: Invalid value: "spec.template.spec.containers[3].image": there is no [3] in a list of 1',
        ),
        (
            "varies: [{field: '[0]', values: [a]}]",
            'varies[0].field: Invalid value: "[0]": a path must start with the name of a field',
        ),
        ("varies: [{field: kind, values: [Pod]}]", 'varies[0].field: Invalid value: "kind"'),
        ("varies: [{field: metadata.name, values: [a]}]", 'varies[0].field: Invalid value: "metadata.name"'),
        ("varies: [{field: metadata, values: [1]}]", 'varies[0].field: Invalid value: "metadata"'),
        (
            "varies: [{field: spec.x, values: [1]}, {field: spec.x, values: [2]}]",
            'varies[1].field: Duplicate value: "spec.x"',
        ),
        ("varies: [{field: spec.x, values: [1], mean: 3}]", "varies[0].mean: unknown field"),
        ("varies: {field: spec.x, values: [1]}", "varies: must be a list, not a mapping"),
        ("name: 'a-{index}'", 'name: Invalid value: "a-{index}"'),
    ],
)
def test_problems_of_what_differs_name_the_field(read: Read, work: str, wrong: str) -> None:
    assert problems(read, CLUSTER + f"work: [{{job: job.yaml, {work}}}]\n") == [f"work[0].{wrong}"]


def test_a_value_that_a_job_may_not_have_is_refused(read: Read) -> None:
    text = (
        CLUSTER
        + f"work: [{{job: job.yaml, count: 9, varies: [{{field: '{CPU}', values: [1, one], inOrder: true}}]}}]\n"
    )
    assert any("cpu" in problem and "one" in problem for problem in problems(read, text))
