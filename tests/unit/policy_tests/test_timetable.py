"""The timetable of policy tests: lost nodes, other quotas, and jobs that are deleted while a test runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.errors import ManifestError
from kueuecore.policy_tests import CaseResult, Measurement, read_policy_tests, run_policy_test
from kueuecore.studies import processes
from tests.policy_test_files import HEAD, job, write

TOPOLOGY = """
manifests:
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: Topology, metadata: {name: t},
   spec: {levels: [{nodeLabel: kubernetes.io/hostname}]}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default},
   spec: {topologyName: t, nodeLabels: {pool: a}}}
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {pool: a, kubernetes.io/hostname: n1}},
   status: {allocatable: {cpu: 1, pods: 9}, conditions: [{type: Ready, status: "True"}]}}
- {apiVersion: v1, kind: Node, metadata: {name: n2, labels: {pool: a, kubernetes.io/hostname: n2}},
   status: {allocatable: {cpu: 1, pods: 9}, conditions: [{type: Ready, status: "True"}]}}
- queues.yaml
"""


def of(*lines: str, head: str = HEAD) -> str:
    """A file with one case, whose fields are these lines."""
    return f"{head}cases:\n- name: a case\n" + "".join(f"  {line}\n" for line in lines)


def results(folder: Path, text: str) -> list[CaseResult]:
    return [run_policy_test(test) for test in read_policy_tests(write(folder, text))]


def failures(folder: Path, text: str) -> list[str]:
    found = [failure for result in results(folder, text) for failure in result.failures]
    return [f"{failure.verdict.expected}; {failure.verdict.got}" for failure in found]


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ManifestError) as raised:
        results(folder, text)
    return [str(problem).removeprefix(f"{folder}/") for problem in raised.value.problems]


def without_flavor(folder: Path) -> None:
    """Leave the flavor to the test itself."""
    path = folder / "queues.yaml"
    path.write_text(path.read_text(encoding="utf-8").partition("---")[2], encoding="utf-8")


def test_a_lost_node_moves_pods_and_then_evicts(tmp_path: Path) -> None:
    head = HEAD.replace("manifests: [queues.yaml]\n", TOPOLOGY.lstrip())
    text = of(
        f"submit: [{{job: {job('one')}}}]",
        "timetable:",
        "- {at: 1m, delete: {kind: Node, name: n1}}",
        "- {at: 2m, delete: {kind: Node, name: n2}}",
        "expect:",
        "- {workload: team/one, at: 30s, admitted: {nodes: [n1]}}",
        "- {workload: team/one, at: 90s, admitted: {nodes: [n2]}}",
        "- {workload: team/one, admitted: true}",
        head=head,
    )
    path = write(tmp_path, text)
    without_flavor(tmp_path)
    (result,) = [run_policy_test(test) for test in read_policy_tests(path)]
    assert [(it.place.rpartition(":")[2], it.verdict.got) for it in result.failures] == [("22", "pending in cq")]


def test_changes_of_the_file_come_before_those_of_the_case(tmp_path: Path) -> None:
    quota = "scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: "
    head = f"{HEAD}timetable: [{{at: 1m, {quota}0}}}}]\n"
    lines = [
        f"submit: [{{job: {job('one')}, at: 2m}}]",
        "expect: [{workload: team/one, admitted: true}]",
    ]
    assert failures(tmp_path, of(*lines, head=head)) == ["is admitted; pending in cq"]
    assert failures(tmp_path, of(f"timetable: [{{at: 1m, {quota}1}}}}]", *lines, head=head)) == []


def test_at_the_same_time_objects_change_before_jobs_arrive(tmp_path: Path) -> None:
    text = of(
        f"submit: [{{job: {job('one')}}}]",
        "timetable: [{patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: Hold}}}}]",
        "expect: [{workload: team/one, pending: true}]",
    )
    assert failures(tmp_path, text) == []


def test_of_a_job_that_is_deleted_the_test_says_so(tmp_path: Path) -> None:
    text = of(
        f"submit: [{{job: {job('one')}}}]",
        "timetable: [{at: 1m, delete: {kind: Job, name: one, namespace: team}}]",
        "expect: [{workload: team/one, at: 30s, admitted: true}, {workload: team/one, finished: true}]",
    )
    assert failures(tmp_path, text) == ["is finished; deleted"]


def test_changes_are_repeated_until_the_end_of_the_test(tmp_path: Path) -> None:
    lines = [
        f"submit: [{{job: {job('one')}, at: 30s}}]",
        "timetable:",
        "- {at: 1m, every: 2m, patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: Hold}}}}",
        "expect: [{workload: team/one, admitted: true}]",
    ]
    assert problems(tmp_path, of(*lines)) == [
        "a_test.yaml:8: cases[0].timetable[0].times: Required value; write how often, or write until for the whole test"
    ]
    assert failures(tmp_path, of(*lines, head=f"{HEAD}until: 5m\n")) == []
    assert failures(tmp_path, of("until: 5m", *lines)) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("{at: 1m}", "cases[0].timetable[0]: it does nothing; write one of apply, delete, patch, scale"),
        ("{delete: {kind: Nod, name: n1}}", 'cases[0].timetable[0].delete.kind: Unsupported value: "Nod"'),
        ("{delete: {kind: Node, name: n1}}", 'cases[0].timetable[0].delete.name: Not found: Node "n1"'),
        (
            "{scale: {clusterQueue: cq, flavor: defalt, resource: cpu, nominalQuota: 1}}",
            'cases[0].timetable[0].scale.flavor: Not found: "defalt"; write one of default',
        ),
        (
            "{patch: {kind: ClusterQueue, name: cq, patch: {spec: {stopPolicy: Halt}}}}",
            "cases[0].timetable[0].patch.patch.spec.stopPolicy",
        ),
        (f"{{apply: [{job('two')}]}}", "a timetable cannot create jobs; write it under submit, with `at`"),
        ("{at: 300y, delete: {kind: Node, name: n1}}", "cases[0].timetable[0].at: not a duration"),
        ("1", "cases[0].timetable[0]: must be a mapping, not a number"),
    ],
)
def test_what_is_wrong_names_field_and_line(tmp_path: Path, change: str, problem: str) -> None:
    expect = "expect: [{workload: team/one, admitted: true}]"
    found, *_ = problems(tmp_path, of(f"submit: [{{job: {job('one')}}}]", "timetable:", f"- {change}", expect))
    assert found.startswith("a_test.yaml:8")
    assert problem in found


def test_coverage_sees_what_only_a_change_makes_matter(tmp_path: Path) -> None:
    high = job("two", labels=", kueue.x-k8s.io/priority-class: high")
    text = of(
        f"submit: [{{job: {job('one')}}}, {{job: {high}, at: 2m}}]",
        "timetable: [{at: 1m, scale: {clusterQueue: cq, flavor: default, resource: cpu, nominalQuota: 1}}]",
        "expect: [{workload: team/one, preempted: true}]",
    )
    tests = read_policy_tests(write(tmp_path, text))
    assert run_policy_test(tests[0]).has_passed
    alone = Measurement(tests).run()
    exercised = {it.rule.field for it in alone.rules if it.exercise is not None}
    assert "spec.preemption.withinClusterQueue" in exercised
    with processes(2) as executor:
        assert Measurement(tests).run(executor=executor) == alone
