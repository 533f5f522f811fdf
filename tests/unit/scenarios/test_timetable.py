"""Objects that change in the course of a scenario."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore.errors import ManifestError
from kueuecore.scenarios import ScenarioOutcome, run_scenario
from kueuecore.scenarios.timetable import timetable_happenings
from tests.regressions.scenarios import Read, problems

# Two queues of one team, of four cpus; every job needs one.
OBJECTS = """
cluster:
  objects:
  - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}
  - {apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 100}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {name: cq}
    spec:
      namespaceSelector: {}
      preemption: {withinClusterQueue: LowerPriority}
      resourceGroups:
      - coveredResources: [cpu, memory]
        flavors:
        - name: default
          resources: [{name: cpu, nominalQuota: 1}, {name: memory, nominalQuota: 1Gi}]
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: lq, namespace: team-a}
    spec: {clusterQueue: cq}
"""
WORK = "work: [{job: job.yaml, count: %d, runs: 60}]\n"


def waits(outcome: ScenarioOutcome) -> list[float | None]:
    return [None if job.wait_ns is None else job.wait_ns / 1e9 for job in outcome.jobs]


def run(read: Read, timetable: str, n_jobs: int = 2, head: str = "") -> ScenarioOutcome:
    return run_scenario(read(f"{head}{OBJECTS}timetable: [{timetable}]\n" + WORK % n_jobs))


def test_more_quota_lets_jobs_in(read: Read) -> None:
    scale = "{at: 20, scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: 2}}"
    assert waits(run(read, scale)) == [0, 20]


def test_less_quota_keeps_jobs_out_and_evicts_none(read: Read) -> None:
    scale = "{at: 20, scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: 0}}"
    outcome = run(read, scale)
    assert waits(outcome) == [0, None]
    assert outcome.jobs[0].finished is not None


def test_a_change_of_one_resource_leaves_the_others(read: Read) -> None:
    scenario = read(
        f"{OBJECTS}timetable: [{{scale: {{clusterQueue: cq, flavor: default, resource: memory, nominalQuota: 2Gi}}}}]\n"
    )
    (happening,) = timetable_happenings(scenario)
    resources: Any = happening.object.object["spec"]["resourceGroups"][0]["flavors"][0]["resources"]  # type: ignore[call-overload, index, union-attr]
    assert resources == [{"name": "cpu", "nominalQuota": 1}, {"name": "memory", "nominalQuota": "2Gi"}]


def test_a_queue_is_held_and_let_go(read: Read) -> None:
    hold = "{at: 20, patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: %s}}}}"
    timetable = f"{hold % 'Hold'}, {(hold % 'null').replace('20', '300')}"
    assert waits(run(read, timetable)) == [0, 300]


def test_a_queue_that_drains_evicts(read: Read) -> None:
    drain = "{at: 20, patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: HoldAndDrain}}}}"
    outcome = run(read, drain)
    assert [(job.n_evictions, job.finished) for job in outcome.jobs] == [(1, None), (0, None)]


def test_each_change_applies_to_the_result_of_the_one_before(read: Read) -> None:
    patch = "{at: %d, patch: {kind: ClusterQueue, name: cq, patch: {spec: {%s}}}}"
    timetable = ", ".join([patch % (5, "queueingStrategy: StrictFIFO"), patch % (9, "stopPolicy: Hold")])
    last: Any = list(timetable_happenings(read(f"{OBJECTS}timetable: [{timetable}]\n")))[-1].object
    assert (last.object["spec"]["queueingStrategy"], last.object["spec"]["stopPolicy"]) == ("StrictFIFO", "Hold")


def test_changes_count_by_their_times_not_by_their_places(read: Read) -> None:
    scale = "{at: %d, scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: %d}}"
    scenario = read(f"{OBJECTS}timetable: [{scale % (9, 2)}, {scale % (5, 3)}]\n")
    assert [happening.at for happening in timetable_happenings(scenario)] == [5, 9]


def test_a_change_is_repeated(read: Read) -> None:
    hold = "{at: 1h, every: 1d, patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: Hold}}}}"
    scenario = read(f"until: 3d\n{OBJECTS}timetable: [{hold}]\n")
    assert [happening.at for happening in timetable_happenings(scenario)] == [3600, 90000, 176400]
    scenario = read(f"{OBJECTS}timetable: [{hold.replace('every', 'times: 2, every')}]\n")
    assert [happening.at for happening in timetable_happenings(scenario)] == [3600, 90000]


def test_a_job_that_is_deleted_leaves_its_quota(read: Read) -> None:
    outcome = run(read, "{at: 20, delete: {kind: Job, name: small-1, namespace: team-a}}")
    assert waits(outcome) == [0, 20]
    assert outcome.jobs[0].finished is None


def test_a_job_of_the_objects_is_deleted_with_its_workload(read: Read) -> None:
    job = OBJECTS.replace("  objects:\n", "  objects:\n  - job.yaml\n", 1)
    delete = "timetable: [{at: 20, delete: {kind: Job, name: small, namespace: team-a}}]\n"
    assert waits(run_scenario(read(job + delete + "work: [{name: other, job: job.yaml, runs: 60}]\n"))) == [20]


def test_a_job_gets_another_priority(read: Read) -> None:
    labels = "{metadata: {labels: {kueue.x-k8s.io/priority-class: high}}}"
    outcome = run(read, f"{{at: 20, patch: {{kind: Job, name: small-3, namespace: team-a, patch: {labels}}}}}", 3)
    # It takes the place of the first, which waits behind the second then.
    assert [job.n_evictions for job in outcome.jobs] == [1, 0, 0]
    assert waits(outcome)[2] == 21


def test_a_queue_appears_with_its_namespace(read: Read) -> None:
    queue = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: team-b}}"
    queue = queue.replace("}}", "}, spec: {clusterQueue: cq}}")
    text = f"{OBJECTS}timetable: [{{at: 9, apply: [{queue}]}}]\n"
    job = "{name: b, job: {apiVersion: batch/v1, kind: Job, metadata: {namespace: team-b, "
    job += "labels: {kueue.x-k8s.io/queue-name: lq}}, "
    job += "spec: {template: {spec: {restartPolicy: Never, containers: [{name: m, "
    job += "resources: {requests: {cpu: 1}}}]}}}}, runs: 5}"
    kinds = [happening.object.object["kind"] for happening in timetable_happenings(read(text)) if happening.object]  # type: ignore[union-attr]
    assert kinds == ["Namespace", "LocalQueue"]
    assert waits(run_scenario(read(f"{text}work: [{job}]\n"))) == [9]


def test_a_queue_that_goes_takes_no_more_jobs(read: Read) -> None:
    assert waits(run(read, "{at: 20, delete: {kind: LocalQueue, name: lq, namespace: team-a}}"))[1] is None


def test_a_deleted_object_may_be_deleted_again_and_recreated(read: Read) -> None:
    flavor = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default}}"
    delete = "{at: %d, delete: {kind: ResourceFlavor, name: default}}"
    scenario = read(f"{OBJECTS}timetable: [{delete % 5}, {delete % 6}, {{at: 20, apply: [{flavor}]}}]\n")
    assert [(happening.at, happening.op) for happening in timetable_happenings(scenario)] == [
        (5, "delete"),
        (20, "create"),
    ]


def test_a_node_is_cordoned(read: Read) -> None:
    nodes = "nodes: [{name: 'n', levels: [{name: node, count: 2}], capacity: {cpu: 1}}]"
    cordon = "{at: 5, patch: {kind: Node, name: n-node1, patch: {spec: {unschedulable: true}}}}"
    (happening,) = timetable_happenings(read(f"cluster: {{{nodes}}}\ntimetable: [{cordon}]\n"))
    node: Any = happening.object
    assert node.object["spec"]["unschedulable"] is True
    assert node.object["status"]["allocatable"]["cpu"] == 1


def test_at_the_same_time_the_timetable_precedes_arrivals(read: Read) -> None:
    hold = "{at: 0, patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: Hold}}}}"
    assert waits(run(read, hold, 1)) == [None]


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("{}", ": it does nothing"),
        ("{at: 5, aply: []}", ": it does nothing|.aply: unknown field"),
        ("5", ": must be a mapping, not a number"),
        ("{apply: [], delete: {kind: Node, name: a}}", ".delete: both apply and delete are given"),
        ("{apply: [none.yaml]}", "there is no such file"),
        ("{apply: [job.yaml]}", "a timetable cannot create jobs"),
        ("{delete: {kind: Node}}", ".delete.name: Required value"),
        ("{delete: {kind: Lawn, name: a}}", '.delete.kind: Unsupported value: "Lawn"'),
        ("{delete: {kind: ClusterQueue, name: cx}}", '.delete.name: Not found: ClusterQueue "cx"'),
        (
            "{delete: {kind: ClusterQueue, name: cq, namespace: a}}",
            ".delete.namespace: a ClusterQueue has no namespace",
        ),
        ("{delete: {kind: Job, name: small-3}}", '.delete.name: Not found: Job "default/small-3"'),
        ("{delete: {kind: Job, name: small-3, namespace: team-a}}", '.delete.name: Not found: Job "team-a/small-3"'),
        ("{patch: {kind: ClusterQueue, name: cq}}", ".patch.patch: Required value"),
        ("{patch: {kind: ClusterQueue, name: cq, patch: {kind: Cohort}}}", ".patch.patch.kind: it may not change"),
        (
            "{patch: {kind: ClusterQueue, name: cq, patch: {metadata: {name: b}}}}",
            ".patch.patch.metadata.name: it may not change",
        ),
        (
            "{patch: {kind: ClusterQueue, name: cq, patch: {spec: {preemption: {withinClusterQueue: A}}}}}",
            ".patch.patch.spec.preemption.withinClusterQueue: |.patch.patch",
        ),
        (
            "{patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicies: Hold}}}}",
            ".patch.patch.spec.stopPolicies: unknown field",
        ),
        (
            "{patch: {kind: Job, name: small-1, namespace: team-a, patch: {spec: {parallelism: 3}}}}",
            ".patch.patch.spec: a job that is queued may not change",
        ),
        ("{scale: {flavor: default, resource: cpu, nominalQuota: 1}}", ".scale.clusterQueue: not one of"),
        ("{scale: {clusterQueue: cq, resource: cpu, nominalQuota: 1}}", ".scale.flavor: Required value"),
        ("{scale: {clusterQueue: cq, flavor: default, resource: cpu}}", ".scale.nominalQuota: Required value"),
        (
            "{scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: true}}",
            ".scale.nominalQuota: not a quantity",
        ),
        (
            "{scale: {clusterQueue: cq, flavor: spot, resource: cpu, nominalQuota: 1}}",
            '.scale.flavor: Not found: "spot"',
        ),
        (
            "{scale: {clusterQueue: cq, flavor: default, resource: gpu, nominalQuota: 1}}",
            '.scale.resource: Not found: "gpu"',
        ),
        (
            "{scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: -1}}",
            ".scale.spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: ",
        ),
        ("{every: 5, delete: {kind: ClusterQueue, name: cq}}", ".times: Required value"),
        ("{times: 5, delete: {kind: ClusterQueue, name: cq}}", ".every: Required value"),
        ("{at: 293000d, delete: {kind: ClusterQueue, name: cq}}", ".at: not a duration"),
        ("{at: 100000d, delete: {kind: ClusterQueue, name: cq}}", ".at: "),
    ],
)
def test_problems_of_a_change_name_the_field(read: Read, entry: str, wrong: str) -> None:
    found = problems(read, f"{OBJECTS}timetable: [{entry}]\n" + WORK % 2)
    assert len(found) == len(wrong.split("|"))
    for problem, part in zip(found, wrong.split("|"), strict=True):
        assert problem.startswith(f"timetable[0]{part}") if part[0] in ".:" else part in problem


def test_a_change_that_is_refused_is_found_when_the_file_is_read(read: Read, tmp_path: Any) -> None:
    with pytest.raises(ManifestError) as error:
        read(OBJECTS + "timetable:\n- patch: {kind: ClusterQueue, name: cq, patch: {spec: {namespaceSelector: 5}}}\n")
    problem = error.value.problems[0]
    assert str(problem).startswith(f'{tmp_path}/scenario.yaml:24: ClusterQueue "cq": timetable[0].patch.patch.spec')


def test_a_change_with_too_many_repetitions_is_refused(read: Read) -> None:
    hold = "{every: 1, patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: Hold}}}}"
    assert problems(read, f"until: 1d\n{OBJECTS}timetable: [{hold}]\n") == ["timetable[0].every: 10000 times or more"]


def test_a_fleet_has_no_timetable(read: Read) -> None:
    text = "fleet: {manager: {}, workers: {}}\ntimetable: [{delete: {kind: ClusterQueue, name: cq}}]\n"
    assert "timetable: only applies in a scenario of one cluster" in problems(read, text)


def test_all_entries_together_may_change_something_ten_thousand_times(read: Read) -> None:
    scale = "scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: 2}"
    entry = f"{{every: 1ns, times: 6000, {scale}}}"
    found = problems(read, f"{OBJECTS}timetable: [{entry}, {entry}]\n" + WORK % 1)
    assert found == ["timetable: it has more than 10000 changes"]


def test_all_work_together_may_have_as_many_jobs_as_one(read: Read) -> None:
    work = "work: [{name: a, job: job.yaml, count: 600000}, {name: b, job: job.yaml, count: 500000}]\n"
    assert problems(read, OBJECTS + work) == ["work: 1100000 jobs are too many"]
