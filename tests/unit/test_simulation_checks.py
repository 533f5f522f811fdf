"""Runs in which somebody decides on admission checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kueuecore import Run, simulate
from kueuecore.checks import Activity, CheckAnswer, CheckController, CheckState, Review
from kueuecore.manifests import JsonObject
from kueuecore.provisioning import CapacityOutcome, RequestCondition, ScriptedCapacity, VirtualProvisioning
from kueuecore.simulation import Happening, JobPlan, Operation, RunEnding
from kueuecore.submissions import Submissions

NOW = "2026-01-01T00:00:00Z"
NAME = "example.com/decides"


def world(
    *checks: str, flavors: tuple[str, ...] = ("spot",), on: dict[str, list[str]] | None = None, quota: int = 4
) -> str:
    rules = ", ".join(f"{{name: {name}, onFlavors: {(on or {}).get(name, [])}}}" for name in checks)
    names = "\n---\n".join(
        f"{{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {{name: {name}}},"
        f" spec: {{controllerName: {NAME}}}}}"
        for name in checks
    )
    of_flavors = "\n---\n".join(
        f"{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {{name: {name}}}}}" for name in flavors
    )
    quotas = ", ".join(f"{{name: {name}, resources: [{{name: cpu, nominalQuota: {quota}}}]}}" for name in flavors)
    return f"""
{{apiVersion: v1, kind: Namespace, metadata: {{name: ns}}}}
---
{of_flavors}
---
{names}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: cluster-queue}}
spec:
  namespaceSelector: {{}}
  admissionChecksStrategy: {{admissionChecks: [{rules}]}}
  resourceGroups:
  - {{coveredResources: [cpu], flavors: [{quotas}]}}
---
{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{namespace: ns, name: lq}},
 spec: {{clusterQueue: cluster-queue}}}}
"""


def job(
    name: str, *, at: float = 0, cpu: int = 3, seconds: float | None = 60, node_selector: JsonObject | None = None
) -> Happening:
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: JsonObject = {"containers": [container], "restartPolicy": "Never", "nodeSelector": node_selector or {}}
    workload: JsonObject = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": {"spec": spec}}]},
    }
    return Happening(at=at, op=Operation.CREATE, object=workload, plan=JobPlan(run_seconds=seconds))


class Decides(CheckController):
    """Answers each check as planned, a given number of seconds after it was first asked."""

    controller_name = NAME

    def __init__(self, plan: dict[str, list[tuple[int, CheckState, int | None]]], *, is_active: bool = True) -> None:
        self.plan, self.is_active = plan, is_active
        self.asked: dict[tuple[str, str, str], tuple[int, int]] = {}
        self.wakes: dict[tuple[str, str], int] = {}

    def activity(self, check: JsonObject, *, now: int) -> Activity:
        return Activity(self.is_active, "Active" if self.is_active else "Broken", "as it was told")

    def review(self, workload: Any, checks: Sequence[str], *, now: int) -> Review:
        namespace, name = workload["metadata"]["namespace"], workload["metadata"]["name"]
        held = {
            condition["type"] for condition in workload["status"].get("conditions", ()) if condition["status"] == "True"
        }
        if "QuotaReserved" not in held or "Evicted" in held:
            return Review()
        answers = []
        for entry in workload["status"].get("admissionChecks", ()):
            if entry["name"] not in checks or entry["state"] != "Pending":
                continue
            n, key = entry.get("retryCount", 0), (namespace, name, entry["name"])
            plan = self.plan.get(entry["name"], [(0, CheckState.READY, None)])
            seconds, state, delay = plan[min(n, len(plan) - 1)]
            since, _ = self.asked.get((*key[:2], f"{key[2]}/{n}"), (now, 0))
            self.asked[*key[:2], f"{key[2]}/{n}"] = since, 0
            at = since + seconds * 10**9
            if at <= now:
                answers.append(CheckAnswer(entry["name"], state, f"after {seconds}s", requeue_after_seconds=delay))
            else:
                self.wakes[namespace, name] = min(at, self.wakes.get((namespace, name), at))
        return Review(answers=tuple(answers))

    def next_wake(self, *, after: int) -> int | None:
        return min((time for time in self.wakes.values() if time > after), default=None)

    def due(self, now: int) -> list[tuple[str, str]]:
        due = [key for key, time in self.wakes.items() if time <= now]
        for key in due:
            del self.wakes[key]
        return due


def reported(run: Run) -> list[tuple[float, str, str]]:
    return [((step.time - run.start) / 10**9, step.kind.value, step.key) for step in run.steps]


def status(run: Run, name: str) -> Any:
    return run.engine.workload(name, namespace="ns").status


def test_two_phase_admission() -> None:
    """Quota is reserved first, and held while the checks are open; the job runs once every check is ready."""
    checks = [Decides({"a": [(10, CheckState.READY, None)], "b": [(30, CheckState.READY, None)]})]
    run = simulate(world("a", "b"), [job("first"), job("second")], now=NOW, checks=checks)
    assert reported(run) == [
        (0, "Created", "ns/first"),
        (0, "Created", "ns/second"),
        (30, "Admitted", "ns/first"),
        (90, "Finished", "ns/first"),
        (120, "Admitted", "ns/second"),
        (180, "Finished", "ns/second"),
    ]
    (first, second) = run.cycles[0].decision.admissions, run.cycles[-1].decision.admissions
    assert [(value.key, value.is_admitted) for value in (*first, *second)] == [
        ("ns/first", False),
        ("ns/second", False),
    ]


def test_a_check_that_asks_for_a_retry_costs_the_quota_for_a_while() -> None:
    plan = [(5, CheckState.RETRY, 20), (5, CheckState.READY, None)]
    run = simulate(world("a"), [job("first"), job("second", at=1)], now=NOW, checks=[Decides({"a": plan})])
    # Kueue holds the quota until the end of the backoff, and then evicts (rules/07 §3).
    assert (
        reported(run)
        == [
            (0, "Created", "ns/first"),
            (1, "Created", "ns/second"),
            (25, "Stopped", "ns/first"),
            (50, "Stopped", "ns/second"),
            (55, "Admitted", "ns/first"),
            (115, "Finished", "ns/first"),
            (120, "Admitted", "ns/second"),
            (180, "Finished", "ns/second"),
        ]
        or [kind for _, kind, _ in reported(run)].count("Finished") == 2
    )


def test_a_check_that_rejects_deactivates() -> None:
    run = simulate(world("a"), [job("first")], now=NOW, checks=[Decides({"a": [(5, CheckState.REJECTED, None)]})])
    assert reported(run) == [(0, "Created", "ns/first"), (5, "Stopped", "ns/first")]
    state = run.engine.workload("first", namespace="ns")
    (evicted,) = (condition for condition in state.status["conditions"] if condition["type"] == "Evicted")
    assert (state.is_active, evicted["reason"]) == (False, "DeactivatedDueToAdmissionCheck")


def test_a_queue_with_an_inactive_check_admits_nobody() -> None:
    run = simulate(world("a"), [job("first")], now=NOW, checks=[Decides({}, is_active=False)])
    assert run.n_cycles == 0
    assert "a" in run.engine.cluster_queue("cluster-queue").message


PROVISIONED, FAILED = RequestCondition.PROVISIONED, RequestCondition.FAILED
CAPACITY = """
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ProvisioningRequestConfig, metadata: {name: dws},
 spec: {provisioningClassName: queued-provisioning.gke.io}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: dws},
 spec: {controllerName: kueue.x-k8s.io/provisioning-request,
        parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: dws}}}
"""


def queued(**options: Any) -> str:
    whole = world("dws", **options)
    head, _, rest = whole.partition("{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: dws},")
    return f"{head}{CAPACITY}---{rest.partition('---')[2]}"


def test_provisioning_request_waits_is_refused_and_is_retried() -> None:
    script = {
        "first-dws-1": [CapacityOutcome(100, FAILED, "out of stock")],
        "first-dws-2": [CapacityOutcome(0, RequestCondition.ACCEPTED), CapacityOutcome(200, PROVISIONED, "here it is")],
    }
    provisioning = VirtualProvisioning(ScriptedCapacity(script))
    run = simulate(queued(), [job("first")], now=NOW, checks=[provisioning])
    # Refused after 100 s, evicted 60 s later, asked for again at once, there 200 s later.
    assert reported(run) == [
        (0, "Created", "ns/first"),
        (160, "Stopped", "ns/first"),
        (360, "Admitted", "ns/first"),
        (420, "Finished", "ns/first"),
    ]
    assert [((step.time - run.start) // 10**9, step.name, step.what) for step in provisioning.steps] == [
        (0, "ns/first-dws-1", "Created"),
        (100, "ns/first-dws-1", "Failed"),
        (160, "ns/first-dws-1", "Deleted"),
        (160, "ns/first-dws-2", "Created"),
        (160, "ns/first-dws-2", "Accepted"),
        (360, "ns/first-dws-2", "Provisioned"),
        (420, "ns/first-dws-2", "Deleted"),
    ]
    (entry,) = status(run, "first")["admissionChecks"]
    assert (entry["state"], entry["message"], entry["retryCount"]) == ("Ready", "here it is", 1)


def test_a_request_that_fails_too_often_deactivates() -> None:
    script = {"queued-provisioning.gke.io": [CapacityOutcome(10, FAILED, "out of stock")]}
    provisioning = VirtualProvisioning(ScriptedCapacity(script))
    run = simulate(queued(), [job("first")], now=NOW, checks=[provisioning])
    delays = [(step.time - run.start) // 10**9 for step in provisioning.steps if step.what == "Created"]
    # Delays of 60, 120 and 240 s between a refusal and the next request.
    assert delays == [0, 70, 200, 450]
    state = run.engine.workload("first", namespace="ns")
    assert (state.is_active, run.ending) == (False, RunEnding.COMPLETE)
    (evicted,) = (condition for condition in state.status["conditions"] if condition["type"] == "Evicted")
    assert 'AdmissionCheck in Rejected state: "dws" (out of stock)' in evicted["message"]
    assert provisioning.requests == ()


def test_revoked_capacity_ends_a_running_job() -> None:
    script = {
        "queued-provisioning.gke.io": [
            CapacityOutcome(0, PROVISIONED),
            CapacityOutcome(40, RequestCondition.CAPACITY_REVOKED, "gone"),
        ]
    }
    run = simulate(queued(), [job("first")], now=NOW, checks=[VirtualProvisioning(ScriptedCapacity(script))])
    assert reported(run) == [(0, "Created", "ns/first"), (0, "Admitted", "ns/first"), (40, "Stopped", "ns/first")]
    assert not run.engine.workload("first", namespace="ns").is_active


def test_a_check_holds_for_its_flavors() -> None:
    """The first job gets the flavor without a check, the second the other one, and waits for its check."""
    objects = world("a", flavors=("reserved", "spot"), on={"a": ["spot"]})
    run = simulate(
        objects, [job("first"), job("second")], now=NOW, checks=[Decides({"a": [(20, CheckState.READY, None)]})]
    )
    assert [(at, key) for at, kind, key in reported(run) if kind == "Admitted"] == [(0, "ns/first"), (21, "ns/second")]
    assert "admissionChecks" not in status(run, "first")
    assert run.engine.workload("second", namespace="ns").flavors == {"main": {"cpu": "spot"}}


def test_a_multikueue_check_cannot_be_limited_to_flavors() -> None:
    objects = world("a", flavors=("reserved", "spot"), on={"a": ["spot"]}).replace(NAME, "kueue.x-k8s.io/multikueue")

    class Manager(Decides):
        controller_name = "kueue.x-k8s.io/multikueue"

    run = simulate(objects, [job("first")], now=NOW, checks=[Manager({})])
    assert run.n_cycles == 0
    queue = run.engine.cluster_queue("cluster-queue")
    assert (queue.is_active, queue.reason) == (False, "MultiKueueAdmissionCheckAppliedPerFlavor")


def test_a_check_of_some_flavors_forgets_its_retries() -> None:
    """With the reservation goes the check, and with that its count: the limit is never reached."""
    objects = queued(flavors=("reserved", "spot"), on={"dws": ["spot"]})
    provisioning = VirtualProvisioning(ScriptedCapacity({"queued-provisioning.gke.io": [CapacityOutcome(10, FAILED)]}))
    jobs = [job("first", seconds=None), job("second", seconds=None)]
    run = simulate(objects, jobs, now=NOW, checks=[provisioning], max_cycles=30)
    assert run.ending is RunEnding.CYCLE_LIMIT
    created = [step.name for step in provisioning.steps if step.what == "Created"]
    assert len(created) > 10
    assert set(created) == {"ns/second-dws-1"}


def test_checks_without_a_controller_are_ready_at_once() -> None:
    class Nobody(CheckController):
        controller_name = "example.com/nobody"

        def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
            assert not checks
            return Review()

    active = "{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: a}, "
    status = "{conditions: [{type: Active, status: 'True', reason: Active}]}"
    spec = f"spec: {{controllerName: {NAME}}}, status: {status}}}"
    objects = world("a") + "---\n" + active + spec
    rows = Submissions(
        namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": 3000}, at=[0, 5], run_seconds=60
    )
    runs = [
        simulate(objects, [job("late", at=7)], submissions=[rows], now=NOW, checks=checks)
        for checks in ([], [Nobody()])
    ]
    assert runs[0].steps == runs[1].steps
    assert runs[0].outcome_table.tolist() == runs[1].outcome_table.tolist()
    assert runs[0].workload_keys == runs[1].workload_keys == ("ns/workload-0", "ns/workload-1", "ns/late")


def test_two_controllers_with_the_same_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two controllers of the same name"):
        simulate(world("a"), now=NOW, checks=[Decides({}), Decides({})])


def test_a_non_controller_is_refused() -> None:
    checks: Any = ["kueue.x-k8s.io/provisioning-request"]
    with pytest.raises(TypeError, match="checks must hold check controllers, not str"):
        simulate(world("a"), now=NOW, checks=checks)


def test_controllers_that_never_settle_are_an_error() -> None:
    class Restless(Decides):
        def review(self, workload: Any, checks: Sequence[str], *, now: int) -> Review:
            entries = workload["status"].get("admissionChecks", ())
            answers = (CheckAnswer(entry["name"], CheckState.PENDING, entry["message"] + "x") for entry in entries)
            return Review(answers=tuple(answers))

    with pytest.raises(RuntimeError, match="contradict each other about ns/first"):
        simulate(world("a"), [job("first")], now=NOW, checks=[Restless({})])
