"""Which rules of a configuration the decisions of policy tests depend on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore.policy_tests import read_policy_tests, run_policy_test
from kueuecore.policy_tests.coverage import Coverage, Measurement, RuleOutcome
from kueuecore.studies import processes
from tests.policy_test_files import HEAD, job, write

EXERCISED, MISSED, NOT_MEASURABLE = RuleOutcome.EXERCISED, RuleOutcome.MISSED, RuleOutcome.NOT_MEASURABLE

FLAVORS = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: on-demand}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: rest}}
---
"""
LOCAL_QUEUE = """
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: lq, namespace: team}, spec: {clusterQueue: cq}}
"""
ANYTHING = "{workload: team/*, finished: true}"


def quota(nominal: float, limits: str = "") -> str:
    return f"resources: [{{name: cpu, nominalQuota: {nominal}{limits}}}]"


def queue(spec: str, flavors: str, name: str = "cq") -> str:
    """A ClusterQueue whose flavors are one a line."""
    return f"""\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{}}
{spec}  resourceGroups:
  - coveredResources: [cpu]
    flavors:
{flavors}"""


ONE_FLAVOR = f"    - {{name: spot, {quota(2)}}}\n"


def measured(folder: Path, queues: str, tests: str) -> dict[str, RuleOutcome]:
    """The outcome of each rule by its object's name and its field, without the path of a flavor's quota."""
    coverage = coverage_of(folder, queues, tests)
    return {
        f"{it.rule.object.name} {it.rule.about or it.rule.field.removeprefix('spec.')}".strip(): it.outcome
        for it in coverage.rules
        if not it.rule.field.endswith("nominalQuota")
    }


def coverage_of(folder: Path, queues: str, tests: str) -> Coverage:
    file = write(folder, tests)
    (folder / "queues.yaml").write_text(queues, encoding="utf-8")
    return Measurement(read_policy_tests(file)).run()


def cases(*entries: str, top: str = "") -> str:
    return f"{HEAD}{top}cases:\n{''.join(entries)}"


def case(name: str, *submitted: str, expect: str = ANYTHING, more: str = "") -> str:
    lines = [f"- name: {name}", *([more] if more else []), "  submit:", *(f"  - {line}" for line in submitted)]
    return "\n".join([*lines, "  expect:", *(f"  - {line}" for line in expect.splitlines()), ""])


def test_the_order_of_two_flavors_is_exercised_by_who_gets_the_first(tmp_path: Path) -> None:
    flavors = "".join(
        f"    - {{name: {name}, {quota(n)}}}\n" for name, n in (("on-demand", 2), ("spot", 1), ("rest", 9))
    )
    one = case("one", f"{{job: {job('one')}, runs: 1m}}")
    found = measured(tmp_path, FLAVORS + queue("", flavors) + LOCAL_QUEUE, cases(one))
    assert found == {
        "cq namespaceSelector": EXERCISED,
        "cq flavor on-demand": EXERCISED,
        "cq flavor spot": MISSED,
        "cq flavor rest": MISSED,
        "cq flavor spot after on-demand": EXERCISED,
        "cq flavor rest after spot": MISSED,
    }
    # What does not fit into the first two shows that the third one is there, but not that it is behind both.
    large = case("large", f"{{job: {job('large', '8')}, runs: 1m}}")
    found = measured(tmp_path, FLAVORS + queue("", flavors) + LOCAL_QUEUE, cases(large))
    assert found["cq flavor rest"] is EXERCISED
    assert (found["cq flavor spot after on-demand"], found["cq flavor rest after spot"]) == (MISSED, MISSED)


def test_an_edge_of_a_cohort_is_exercised_by_who_borrows_over_it(tmp_path: Path) -> None:
    cohorts = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: inner}, spec: {parentName: outer}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: other}, spec: {parentName: outer}}
---
"""
    borrower = queue("  cohortName: inner\n", f"    - {{name: spot, {quota(1)}}}\n")
    lender = queue("  cohortName: outer\n", f"    - {{name: spot, {quota(1)}}}\n", "lender")
    queues = f"{FLAVORS}{cohorts}{borrower}---\n{lender}{LOCAL_QUEUE}"
    two = measured(tmp_path, queues, cases(case("two", f"{{job: {job('two', '2')}, runs: 1m}}")))
    edges = {name: outcome for name, outcome in two.items() if name.endswith(("cohortName", "parentName"))}
    assert edges == {
        "inner parentName": EXERCISED,
        "other parentName": MISSED,
        "cq cohortName": EXERCISED,
        "lender cohortName": EXERCISED,
    }
    one = measured(tmp_path, queues, cases(case("one", f"{{job: {job('one')}, runs: 1m}}")))
    assert {one[name] for name in edges} == {MISSED}


def test_a_test_that_fails_exercises_rules_too(tmp_path: Path) -> None:
    queues = FLAVORS + queue("", ONE_FLAVOR) + LOCAL_QUEUE
    wrong = case("wrong", f"{{job: {job('one')}, runs: 1m}}", expect="{workload: team/one, pending: true}")
    coverage = coverage_of(tmp_path, queues, cases(wrong))
    (test,) = read_policy_tests(tmp_path / "a_test.yaml")
    assert not run_policy_test(test).has_passed
    assert {it.outcome for it in coverage.rules} == {EXERCISED}
    assert {it.exercise.name for it in coverage.rules if it.exercise} == {"wrong"}


def test_rules_of_the_configuration_and_gates_are_rules(tmp_path: Path) -> None:
    (tmp_path / "kueue.yaml").write_text(
        """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing:
  preemptionStrategies: [LessThanInitialShare]
resources:
  excludeResourcePrefixes:
  - example.com/
  - unused.example.com/
waitForPodsReady:
  timeout: 5m
""",
        encoding="utf-8",
    )
    asks = job("one").replace("cpu: 1", "cpu: 1, example.com/a: 1")
    top = "configuration: kueue.yaml\nfeatureGates:\n  PartialAdmission: true\n  SchedulingEquivalenceHashing: true\n"
    own = case(
        "of its own",
        f"{{job: {job('one')}, runs: 1m}}",
        more="  configuration: {resources: {quotaCheckStrategy: IgnoreUndeclared}}",
    )
    tests = cases(case("one", f"{{job: {asks}, runs: 1m}}"), own, top=top)
    coverage = coverage_of(tmp_path, FLAVORS + queue("", ONE_FLAVOR) + LOCAL_QUEUE, tests)
    rules = [(Path(it.rule.file).name, it.rule.line, str(it.rule), it.outcome) for it in coverage.rules]
    assert [rule for rule in rules if rule[0] != "queues.yaml"] == [
        ("a_test.yaml", 6, "PolicyTest featureGates.PartialAdmission: true", MISSED),
        ("a_test.yaml", 7, "PolicyTest featureGates.SchedulingEquivalenceHashing: true", NOT_MEASURABLE),
        ("a_test.yaml", 15, "Configuration resources.quotaCheckStrategy: IgnoreUndeclared", MISSED),
        ("kueue.yaml", 3, "Configuration fairSharing", MISSED),
        ("kueue.yaml", 4, "Configuration fairSharing.preemptionStrategies: [LessThanInitialShare]", MISSED),
        ("kueue.yaml", 7, "Configuration resources.excludeResourcePrefixes[0] (example.com/)", EXERCISED),
        ("kueue.yaml", 8, "Configuration resources.excludeResourcePrefixes[1] (unused.example.com/)", MISSED),
        ("kueue.yaml", 10, "Configuration waitForPodsReady.timeout: 5m", MISSED),
    ]


def test_a_gate_that_a_case_sets_counts_there_alone(tmp_path: Path) -> None:
    partial = job("one").replace(
        "metadata: {", "metadata: {annotations: {kueue.x-k8s.io/job-min-parallelism: '1'}, ", 1
    )
    partial = partial.replace("spec: {", "spec: {parallelism: 3, completions: 3, ", 1)
    top = "featureGates: {PartialAdmission: false}\n"
    on = case("a smaller size", f"{{job: {partial}, runs: 1m}}", more="  featureGates:\n    PartialAdmission: true")
    off = case("one size", f"{{job: {job('one')}, runs: 1m}}")
    coverage = coverage_of(tmp_path, FLAVORS + queue("", ONE_FLAVOR) + LOCAL_QUEUE, cases(on, off, top=top))
    gates = {it.rule.line: it.outcome for it in coverage.rules if it.rule.object.kind == "PolicyTest"}
    # The one for all cases decides only in the second, whose job has no smaller size.
    assert gates == {4: MISSED, 8: EXERCISED}


def test_what_is_seen_on_the_way_counts_although_all_end_alike(tmp_path: Path) -> None:
    first, second = f"{{job: {job('first', '2')}, runs: 10m}}", f"{{job: {job('second', '2')}, at: 1m, runs: 1m}}"
    expect = (
        "{workload: team/second, at: 2m, pending: true}\n{workload: team/second, at: 5m, pending: true}\n" + ANYTHING
    )
    queues = FLAVORS + queue("  preemption: {withinClusterQueue: LowerPriority}\n", ONE_FLAVOR) + LOCAL_QUEUE
    coverage = coverage_of(tmp_path, queues, cases(case("waits", first, second, expect=expect)))
    (policy,) = (it for it in coverage.rules if it.rule.field == "spec.preemption.withinClusterQueue")
    # With LowerOrNewerEqualPriority the second job still is the newer one, so nobody is preempted.
    assert policy.outcome is MISSED
    older = second.replace(
        "kind: Job, metadata: {", "kind: Job, metadata: {creationTimestamp: '2025-01-01T00:00:00Z', "
    )
    queues = queues.replace("LowerPriority", "LowerOrNewerEqualPriority")
    coverage = coverage_of(tmp_path, queues, cases(case("waits", first, older, expect=expect)))
    (policy,) = (it for it in coverage.rules if it.rule.field == "spec.preemption.withinClusterQueue")
    assert policy.outcome is EXERCISED


def test_a_rule_without_another_valid_value_is_not_measurable(tmp_path: Path) -> None:
    fungibility = (
        "  flavorFungibility:\n    whenCanBorrow: TryNextFlavor\n    whenCanPreempt: TryNextFlavor\n"
        "    preference: BorrowingOverPreemption\n"
    )
    queues = FLAVORS + queue(fungibility, ONE_FLAVOR) + "---\n" + queue(fungibility, ONE_FLAVOR, "idle") + LOCAL_QUEUE
    coverage = coverage_of(tmp_path, queues, cases(case("one", f"{{job: {job('one')}, runs: 1m}}")))
    found = {
        f"{it.rule.object.name} {it.rule.field.rpartition('.')[2]}": it.outcome
        for it in coverage.rules
        if "flavorFungibility" in it.rule.field
    }
    # The same in a queue that no workload is in, which is not played.
    assert found == {
        f"{name} {field}": outcome
        for name in ("cq", "idle")
        for field, outcome in (
            ("whenCanBorrow", NOT_MEASURABLE),
            ("whenCanPreempt", NOT_MEASURABLE),
            ("preference", MISSED),
        )
    }
    assert coverage.n_measurable == len(coverage.rules) - 4


def test_an_admission_check_is_exercised_by_who_passes_it(tmp_path: Path) -> None:
    check = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: NAME}
spec: {controllerName: example.com/any}
status:
  conditions:
  - {type: Active, status: "True", reason: Active, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}
---
"""
    strategy = (
        "  admissionChecksStrategy:\n    admissionChecks:\n    - {name: all}\n    - {name: some, onFlavors: [rest]}\n"
    )
    flavors = f"{ONE_FLAVOR}    - {{name: rest, {quota(0)}}}\n"
    checks = check.replace("NAME", "all") + check.replace("NAME", "some")
    one = cases(case("one", f"{{job: {job('one')}, runs: 1m}}"))
    found = measured(tmp_path, FLAVORS + checks + queue(strategy, flavors) + LOCAL_QUEUE, one)
    assert {name: outcome for name, outcome in found.items() if "check" in name} == {
        "cq check all": EXERCISED,
        "cq check some": MISSED,
    }
    # Its own check goes with a flavor, or the queue would be refused.
    assert found["cq flavor rest"] is MISSED


def test_classes_and_policies_are_exercised_by_preemption(tmp_path: Path) -> None:
    classes = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 100}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: unused}, value: 100}
---
"""
    queues = FLAVORS + classes + queue("  preemption: {withinClusterQueue: LowerPriority}\n", ONE_FLAVOR) + LOCAL_QUEUE
    high = job("high", "2", ", kueue.x-k8s.io/priority-class: high")
    found = measured(
        tmp_path, queues, cases(case("evicts", f"{{job: {job('low')}}}", f"{{job: {high}, at: 1m, runs: 1m}}"))
    )
    assert (found["high value"], found["unused value"]) == (EXERCISED, MISSED)
    assert found["cq preemption.withinClusterQueue"] is EXERCISED


def test_objects_in_the_test_itself_have_lines(tmp_path: Path) -> None:
    inline = """\
apiVersion: kueuecore/v1
kind: PolicyTest
manifests:
- queues.yaml
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: WorkloadPriorityClass
  metadata: {name: low}
  value: -5
cases:
- name: any
  manifests:
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: WorkloadPriorityClass
    metadata: {name: lower}
    value: -6
  expect:
  - {clusterQueue: cq, usage: {}}
"""
    coverage = coverage_of(tmp_path, FLAVORS + queue("", ONE_FLAVOR) + LOCAL_QUEUE, inline)
    file = str(tmp_path / "a_test.yaml")
    assert [(it.rule.line, str(it.rule)) for it in coverage.rules if it.rule.file == file] == [
        (8, "WorkloadPriorityClass low value: -5"),
        (15, "WorkloadPriorityClass lower value: -6"),
    ]


def test_a_file_that_tests_share_is_measured_once(tmp_path: Path) -> None:
    queues = FLAVORS + queue("", ONE_FLAVOR) + LOCAL_QUEUE
    one, large = case("one", f"{{job: {job('one')}}}"), case("large", f"{{job: {job('large', '3')}}}")
    first = coverage_of(tmp_path, queues, cases(large))
    (tmp_path / "more").mkdir()
    again = write(tmp_path / "more", cases(one).replace("queues.yaml", "../queues.yaml"), "b_test.yaml")
    both = Measurement([*read_policy_tests(tmp_path / "a_test.yaml"), *read_policy_tests(again)]).run()
    assert [it.rule for it in both.rules] == [it.rule for it in first.rules]
    assert [file.file for file in both.files()] == [str(tmp_path / "queues.yaml")]


def test_processes_measure_the_same(tmp_path: Path) -> None:
    flavors = "".join(f"    - {{name: {name}, {quota(2)}}}\n" for name in ("on-demand", "spot", "rest"))
    write(tmp_path, cases(*(case(f"n{n}", f"{{job: {job('one')}, count: {n}, runs: 1m}}") for n in (1, 3, 5))))
    (tmp_path / "queues.yaml").write_text(FLAVORS + queue("", flavors) + LOCAL_QUEUE, encoding="utf-8")
    measurement = Measurement(read_policy_tests(tmp_path / "a_test.yaml"))
    n_done: list[tuple[int, int]] = []
    with processes(2) as executor:
        parallel = measurement.run(executor=executor, progress=lambda n, of: n_done.append((n, of)))
    assert parallel == measurement.run()
    assert n_done[-1] == (len(parallel.rules), len(parallel.rules))


@pytest.mark.parametrize("limit", ["borrowingLimit", "lendingLimit"])
def test_a_limit_is_exercised_by_who_would_get_more(tmp_path: Path, limit: str) -> None:
    of_borrower = f", {limit}: 1" if limit == "borrowingLimit" else ""
    of_lender = f", {limit}: 1" if limit == "lendingLimit" else ""
    borrower = queue("  cohortName: all\n", f"    - {{name: spot, {quota(1, of_borrower)}}}\n")
    lender = queue("  cohortName: all\n", f"    - {{name: spot, {quota(4, of_lender)}}}\n", "lender")
    queues = f"{FLAVORS}{borrower}---\n{lender}{LOCAL_QUEUE}"
    for cpu, outcome in (("1", MISSED), ("2", EXERCISED), ("3", EXERCISED)):
        coverage = coverage_of(tmp_path, queues, cases(case("one", f"{{job: {job('one', cpu)}, runs: 1m}}")))
        (found,) = (it for it in coverage.rules if it.rule.field.endswith(limit))
        assert found.outcome is outcome, cpu


def test_a_test_that_never_settles_is_measured(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "anomalies.md").read_text(encoding="utf-8")
    loop = page.split("## Preemption comes to an end")[1].split("```yaml\n")[1].split("```")[0]
    forever = f"{HEAD}cases:\n- name: any\n  expect:\n  - {{workload: team/large, admitted: true}}\n"
    coverage = coverage_of(tmp_path, loop, forever)
    # Without any of the policies it comes to an end.
    policies = {it.rule.field: it.outcome for it in coverage.rules if "preemption" in it.rule.field}
    assert policies == dict.fromkeys(
        (
            "spec.preemption.borrowWithinCohort.policy",
            "spec.preemption.reclaimWithinCohort",
            "spec.preemption.withinClusterQueue",
        ),
        EXERCISED,
    )
