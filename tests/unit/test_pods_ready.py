"""Pods that become ready late, fail, or never start, in runs through virtual time (rules/07 §6)."""

from __future__ import annotations

from collections.abc import Sequence

from kueuecore import Configuration, Run, simulate
from kueuecore.manifests import JsonObject
from kueuecore.simulation import Happening, JobPlan, Operation, StepKind

NOW = "2026-01-01T00:00:00Z"
QUEUES = """
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: default-flavor}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {namespace: ns, name: lq}
spec: {clusterQueue: cluster-queue}
"""
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady:
  timeout: 10s
  recoveryTimeout: 20s
  blockAdmission: BLOCKS
  requeuingStrategy: {backoffBaseSeconds: 5, backoffMaxSeconds: 60, backoffLimitCount: 2}
"""


def job(
    name: str, ready: Sequence[float | None] | None, *, fails: float | None = None, recovers: float | None = None
) -> Happening:
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    template: JsonObject = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    workload: JsonObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": template}]},
    }
    return Happening(
        at=0,
        op=Operation.CREATE,
        object=workload,
        plan=JobPlan(run_seconds=100, ready_seconds=ready, fail_seconds=fails, recover_seconds=recovers),
    )


def run(*jobs: Happening, blocks: bool = False) -> Run:
    configuration = Configuration.parse(CONFIGURATION.replace("BLOCKS", str(blocks).lower()))
    return simulate(QUEUES, jobs, configuration=configuration, now=NOW)


def steps(run: Run, name: str) -> list[tuple[int, StepKind]]:
    return [((s.time - run.start) // 10**9, s.kind) for s in run.steps if s.key == f"ns/{name}"][1:]


def condition(run: Run, name: str, kind: str) -> tuple[str, str]:
    conditions = run.engine.workload(name, namespace="ns").status["conditions"]
    found = next(c for c in conditions if c["type"] == kind)
    return found["status"], found["reason"]


def test_a_job_runs_from_when_its_pods_are_ready() -> None:
    assert steps(run(job("a", [7])), "a") == [(0, StepKind.ADMITTED), (107, StepKind.FINISHED)]
    assert steps(run(job("a", None)), "a") == [(0, StepKind.ADMITTED), (100, StepKind.FINISHED)]


def test_pods_that_are_late_cost_the_quota_for_a_backoff_that_doubles() -> None:
    late = run(job("a", [None, 30, 2]))
    assert steps(late, "a") == [
        (0, StepKind.ADMITTED),
        (10, StepKind.STOPPED),
        (15, StepKind.ADMITTED),
        (25, StepKind.STOPPED),
        (35, StepKind.ADMITTED),
        (137, StepKind.FINISHED),
    ]
    evictions = late.engine.workload("a", namespace="ns").status["schedulingStats"]["evictions"]
    assert evictions == [{"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 2}]


def test_a_workload_that_is_late_too_often_is_deactivated() -> None:
    never = run(job("a", [None]))
    assert [kind for _, kind in steps(never, "a")].count(StepKind.ADMITTED) == 3
    assert condition(never, "a", "Evicted") == ("True", "DeactivatedDueToRequeuingLimitExceeded")


def test_pods_that_fail_have_time_to_recover() -> None:
    recovers = run(job("a", [1], fails=5, recovers=15))
    assert steps(recovers, "a") == [(0, StepKind.ADMITTED), (101, StepKind.FINISHED)]
    lost = run(job("a", [1, 1], fails=5))
    assert steps(lost, "a")[1] == (26, StepKind.STOPPED)


def test_where_nobody_waits_for_pods_it_makes_no_difference_when_they_are_ready() -> None:
    strict = QUEUES.replace("namespaceSelector: {}", "namespaceSelector: {}\n  queueingStrategy: StrictFIFO")

    def cycles(ready: Sequence[float | None] | None, fails: float | None) -> tuple[int, int]:
        jobs = [job(name, ready, fails=fails, recovers=5) for name in "abc"]
        alone = simulate(strict, jobs, now=NOW)
        return alone.n_cycles, alone.end

    # The third is tried again whenever anything happens.
    assert cycles([3], 7) == cycles(None, None)


def test_with_block_admission_one_starts_after_the_other() -> None:
    together = run(job("a", [6]), job("b", [3]))
    assert (steps(together, "a")[0][0], steps(together, "b")[0][0]) == (0, 1)
    one_by_one = run(job("a", [6]), job("b", [3]), blocks=True)
    assert (steps(one_by_one, "a")[0][0], steps(one_by_one, "b")[0][0]) == (0, 6)
    (cycle,) = [cycle for cycle in one_by_one.cycles if any(a.name == "b" for a in cycle.decision.admissions)]
    assert cycle.decision.admissions[0].time - cycle.time == 5 * 10**9
    assert cycle.decision.waits_for_pods is None
