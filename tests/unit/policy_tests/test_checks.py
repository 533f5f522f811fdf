"""What policy tests may expect, met and not met."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kueuecore.errors import ManifestError
from kueuecore.policy_tests import Failure, read_policy_tests, run_policy_test
from tests.policy_test_files import EXAMPLES, HEAD, case, job, write

ONE = f"{{job: {job('one')}}}"
THREE = f"{{job: {job('it')}, name: it, count: 3, runs: 5m}}"
PREEMPTED = f"{{job: {job('low', '2')}}}\n{{at: 1m, job: {job('high', '2', ', kueue.x-k8s.io/priority-class: high')}}}"
NEEDS = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"


def failures(folder: Path, expect: str, submit: str) -> tuple[Failure, ...]:
    (test,) = read_policy_tests(write(folder, case(expect, submit)))
    return run_policy_test(test).failures


@pytest.mark.parametrize(
    ("expect", "submit"),
    [
        ("{workload: team/one, admitted: true}", ONE),
        ("{workload: team/job-one-*, admitted: {clusterQueue: cq, flavors: {cpu: default}}}", ONE),
        ("{workload: team/one, admitted: {flavors: {main: {cpu: def*}}}}", ONE),
        (
            "{workload: team/it-3, at: 1m, pending: {message: Insufficient UNUSED quota, reason: WaitingForQuota}}",
            THREE,
        ),
        ("{workload: team/it-*, count: 2, at: 1m, admitted: true}", THREE),
        ("{workload: team/it-3, at: 1m, admitted: false}", THREE),
        ("{workload: team/it-*, finished: true}", THREE),
        ("{workload: team/it-1, at: 1m, finished: false}", THREE),
        ("{workload: team/it-3, waits: {below: 6m, atLeast: 5m}}", THREE),
        ("{workload: team/it-3, admitted: {clusterQueue: cq}, finished: true}", THREE),
        ("{workload: team/low, preempted: {by: team/high, reason: InClusterQueue}}", PREEMPTED),
        ("{workload: team/low, preempted: true}", PREEMPTED),
        ("{workload: team/high, preempted: false}", PREEMPTED),
        ("{workload: team/low, at: 30s, preempted: false}", PREEMPTED),
        ("{clusterQueue: cq, usage: {default: {cpu: 1000m}}}", ONE),
        ("{clusterQueue: cq, at: 1m, usage: {default: {cpu: 2}}, borrowed: {default: {cpu: 0}}}", THREE),
        ("{clusterQueue: cq, usage: {default: {cpu: 0}}}", THREE),
    ],
)
def test_an_expectation_is_met(expect: str, submit: str, tmp_path: Path) -> None:
    assert failures(tmp_path, expect, submit) == ()


@pytest.mark.parametrize(
    ("expect", "submit", "expected", "got", "why"),
    [
        ("{workload: team/one, pending: true}", ONE, "is pending", "admitted in cq with cpu: default", ""),
        ("{workload: team/it-3, at: 1m, admitted: true}", THREE, "is admitted", "pending in cq", NEEDS),
        (
            "{workload: team/one, admitted: {clusterQueue: other, flavors: {cpu: spot}}}",
            ONE,
            "is admitted in other, with cpu: spot",
            "admitted in cq with cpu: default",
            "",
        ),
        (
            "{workload: team/it-3, at: 1m, pending: {reason: Other}}",
            THREE,
            "is pending, with the reason Other",
            "pending in cq, with the reason WaitingForQuota",
            NEEDS,
        ),
        (
            "{workload: team/it-*, count: 3, at: 1m, admitted: true}",
            THREE,
            "3 of 3: is admitted",
            "2 of 3: team/it-1, team/it-2",
            NEEDS,
        ),
        (
            "{workload: team/it-3, waits: {below: 5m}}",
            THREE,
            "waits below 5m00s",
            "admitted after 5m00s",
            f"at 2s: {NEEDS}",
        ),
        (
            "{workload: team/it-3, at: 1m, waits: {below: 30s}}",
            THREE,
            "waits below 30s",
            "pending in cq after 1m00s",
            NEEDS,
        ),
        ("{workload: team/it-1, waits: {atLeast: 1s}}", THREE, "waits at least 1s", "admitted after 0s", ""),
        (
            "{workload: team/low, preempted: false}",
            PREEMPTED,
            "is never preempted",
            "preempted by team/high (InClusterQueue)",
            None,
        ),
        (
            "{workload: team/high, preempted: {by: team/low}}",
            PREEMPTED,
            "is preempted by team/low",
            "never preempted: admitted in cq with cpu: default",
            "team/low waits, but its priority, 100, is not below 0 (withinClusterQueue) (rules/04 §2)",
        ),
        (
            "{workload: team/it-1, at: 1m, preempted: true}",
            THREE,
            "is preempted",
            "never preempted: admitted in cq with cpu: default",
            "team/it-3 waits, but its priority, 0, is not below 0 (withinClusterQueue) (rules/04 §2)",
        ),
        (
            "{workload: team/one, preempted: true}",
            ONE,
            "is preempted",
            "never preempted: admitted in cq with cpu: default",
            "no workload that waits needs what it holds",
        ),
        (
            "{workload: team/one, preempted: {by: team/two}}",
            f"{ONE}\n{{job: {job('two')}}}",
            "is preempted by team/two",
            "never preempted: admitted in cq with cpu: default",
            "team/two got quota without preemptions",
        ),
        (
            "{workload: team/one, preempted: {by: team/high}}",
            f"{ONE}\n{{job: {job('low')}}}\n"
            f"{{at: 1m, job: {job('high', '1', ', kueue.x-k8s.io/priority-class: high')}}}",
            "is preempted by team/high",
            "never preempted: admitted in cq with cpu: default",
            "team/high preempted team/low instead",
        ),
        ("{workload: team/high, at: 30s, admitted: true}", PREEMPTED, "is admitted", "not submitted yet", ""),
        (
            "{clusterQueue: cq, usage: {default: {cpu: 2}}}",
            ONE,
            "uses 2 of default/cpu",
            "uses 1 with a quota of 2",
            "",
        ),
        ("{clusterQueue: cq, usage: {spot: {cpu: 2}}}", ONE, "uses 2 of spot/cpu", "no quota of spot/cpu", ""),
    ],
)
def test_an_unmet_expectation_shows_the_actual_state_and_why(
    expect: str, submit: str, expected: str, got: str, why: str | None, tmp_path: Path
) -> None:
    (failure,) = failures(tmp_path, expect, submit)
    assert (failure.verdict.expected, failure.verdict.got) == (expected, got)
    assert why is None or failure.verdict.why == why
    line = 5 + 1 + len(submit.splitlines()) + 1 + 1
    assert failure.place == f"{tmp_path}/a_test.yaml:{line}"


def test_each_field_of_an_expectation_has_its_own_line(tmp_path: Path) -> None:
    text = case("workload: team/one\n    admitted: true\n    pending: true", ONE)
    (failure,) = run_policy_test(read_policy_tests(write(tmp_path, text.replace("  -     ", "    ")))[0]).failures
    assert failure.place.endswith(":11")
    assert failure.verdict.expected == "is pending"


def test_jobs_that_arrive_together_queue_in_the_order_of_the_file(tmp_path: Path) -> None:
    submit = f"{{job: {job('zz', '2')}}}\n{{job: {job('aa', '2')}}}"
    assert failures(tmp_path, "{workload: team/zz, admitted: true}\n{workload: team/aa, pending: true}", submit) == ()


def test_objects_and_gates_of_a_case_add_to_those_of_the_file(tmp_path: Path) -> None:
    text = f"""{HEAD}featureGates: {{PartialAdmission: true}}
submit: [{ONE}]
cases:
- name: as it is
  expect: [{{workload: team/one, admitted: true}}]
- name: held
  featureGates: {{PartialAdmission: false}}
  manifests:
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {{name: lq, namespace: team}}
    spec: {{clusterQueue: cq, stopPolicy: Hold}}
  expect: [{{workload: team/one, pending: true}}]
"""
    tests = read_policy_tests(write(tmp_path, text))
    assert [run_policy_test(test).failures for test in tests] == [(), ()]
    assert [test.configuration.is_enabled("PartialAdmission") for test in tests] == [True, False]


def test_workloads_that_preempt_each_other_forever_fail_the_test(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs/anomalies.md").read_text(encoding="utf-8")
    page = page.split("## Preemption comes to an end")[1]
    (tmp_path / "loop.yaml").write_text(page.split("```yaml\n")[1].split("```")[0], encoding="utf-8")
    text = case("{workload: team/large, admitted: true}").replace("queues.yaml", "loop.yaml")
    (failure,) = run_policy_test(read_policy_tests(write(tmp_path, text))[0]).failures
    assert failure.place == f"{tmp_path}/a_test.yaml:5"
    assert failure.verdict.got == "it never settles"
    assert "team/large preempts team/small" in failure.verdict.why


def test_a_test_may_expect_that_workloads_settle(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs/anomalies.md").read_text(encoding="utf-8")
    loop = page.split("## Preemption comes to an end")[1].split("```yaml\n")[1].split("```")[0]
    text = case("{settles: true}").replace("queues.yaml", "loop.yaml")
    test = write(tmp_path, text)
    (tmp_path / "loop.yaml").write_text(loop, encoding="utf-8")
    (failure,) = run_policy_test(read_policy_tests(test)[0]).failures
    assert failure.place == f"{tmp_path}/a_test.yaml:7"
    assert str(failure.verdict).startswith("workloads\n  expected: settles\n  got:      it never settles\n  why:      ")
    mended = loop.replace(", borrowWithinCohort: {policy: LowerPriority}", "")
    (tmp_path / "loop.yaml").write_text(mended, encoding="utf-8")
    assert run_policy_test(read_policy_tests(test)[0]).failures == ()


def test_whether_workloads_settle_is_seen_although_time_is_limited(tmp_path: Path) -> None:
    page = (EXAMPLES.parent / "docs/anomalies.md").read_text(encoding="utf-8")
    loop = page.split("## Preemption comes to an end")[1].split("```yaml\n")[1].split("```")[0]
    (tmp_path / "loop.yaml").write_text(loop, encoding="utf-8")
    text = case("{settles: true, at: 5s}").replace("queues.yaml", "loop.yaml")
    text = text.replace("  expect:", "  until: 10s\n  expect:")
    (failure,) = run_policy_test(read_policy_tests(write(tmp_path, text))[0]).failures
    assert "team/large preempts team/small" in failure.verdict.why


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("{settles: false}", "settles: Invalid value: false; write `settles: true`, or leave it out"),
        ("{settles: 3}", "settles"),
        ("{settles: true, workload: team/one}", "write exactly one of workload, clusterQueue, cohort and settles"),
        ("{settles: true, admitted: true}", "admitted"),
    ],
)
def test_what_settles_cannot_be(tmp_path: Path, expect: str, problem: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(problem)):
        read_policy_tests(write(tmp_path, case(expect)))


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("{workload: team/on, admitted: true}", 'there is no Workload "team/on"; write team/one'),
        ("{workload: team/one, preempted: {by: team/x}}", 'there is no Workload "team/x"'),
        ("{clusterQueue: cx, usage: {default: {cpu: 1}}}", 'there is no ClusterQueue "cx"; write cq'),
    ],
)
def test_an_unknown_name_is_bad_input_and_not_a_failure(expect: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as raised:
        failures(tmp_path, expect, ONE)
    (found,) = raised.value.problems
    assert problem in str(found)
    assert found.line == 9


def test_only_the_first_wrong_names_get_suggestions(tmp_path: Path) -> None:
    expect = "\n".join(f"{{workload: team/on{n}, admitted: true}}" for n in range(25))
    with pytest.raises(ManifestError) as raised:
        failures(tmp_path, expect, ONE)
    remedies = [problem.remedy for problem in raised.value.problems]
    assert remedies[:20] == ["write team/one"] * 20
    assert {remedy.partition(" team/job-one")[0] for remedy in remedies[20:]} == {"write one of"}
