"""Virtual time has one clock: what is due acts when it is due, whoever looks on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest

from kueuecore import Configuration, ManifestError, Run, VirtualCluster, simulate
from kueuecore._json import JsonObject, object_at
from kueuecore.checks import CheckAnswer, CheckController, CheckState, Review, WorkloadKey
from kueuecore.simulation import Happening, JobPlan, Operation, StepKind
from kueuecore.submissions import Submissions
from kueuecore.times import SECOND_NS
from tests.property.test_virtual import Onlooker

NOW = "2026-01-01T00:00:00Z"
QUEUES = """
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: AdmissionCheck, metadata: {name: approval},
 spec: {controllerName: example.com/approval}, status: {conditions: [{type: Active, status: "True", reason: Active}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 10}]}]
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: ns, name: lq}, spec: {clusterQueue: cq}}
"""
CHECKED = QUEUES.replace(
    "namespaceSelector: {}", "namespaceSelector: {}\n  admissionChecksStrategy: {admissionChecks: [{name: approval}]}"
)


def workload(name: str, **spec: object) -> JsonObject:
    container: JsonObject = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    pods: JsonObject = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {"namespace": "ns", "name": name},
        "spec": {"queueName": "lq", "podSets": [pods], **spec},  # type: ignore[dict-item]
    }


def create(at: float, name: str, **spec: object) -> Happening:
    return Happening(at=at, op=Operation.CREATE, object=workload(name, **spec), plan=JobPlan(run_seconds=60))


def times(run: Run, kind: StepKind) -> list[tuple[float, str]]:
    return [((step.time - run.start) / SECOND_NS, step.key) for step in run.steps if step.kind is kind]


@pytest.mark.parametrize("checks", [[], [Onlooker()]])
def test_a_job_whose_time_is_over_stops_before_the_next_cycle(checks: Sequence[CheckController]) -> None:
    heads = [create(0, name, maximumExecutionTimeSeconds=1) for name in "abcde"]
    run = simulate(QUEUES, heads, now=NOW, checks=checks)
    # One is admitted a cycle, and a cycle takes a second.
    stopped = [(index + 1.0, f"ns/{name}") for index, name in enumerate("abcde")]
    assert times(run, StepKind.STOPPED) == stopped


@pytest.mark.parametrize("checks", [[], [Onlooker()]])
def test_what_comes_between_two_cycles_comes_at_its_time(checks: Sequence[CheckController]) -> None:
    run = simulate(
        QUEUES, [create(0, "a"), create(0, "b"), create(0.25, "c"), create(1.5, "d")], now=NOW, checks=checks
    )
    assert [time for time, _ in times(run, StepKind.CREATED)] == [0, 0, 0.25, 1.5]
    assert [cycle.time - run.start for cycle in run.cycles] == [0, SECOND_NS, 2 * SECOND_NS, 3 * SECOND_NS]


class Approval(CheckController):
    """Approves what it has seen, unless it is set to fail."""

    controller_name = "example.com/approval"

    def __init__(self) -> None:
        self.is_broken = False
        self.seen: dict[str, JsonObject] = {}

    def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
        if self.is_broken:
            raise RuntimeError("broken")
        self.seen[str(object_at(workload, "metadata")["name"])] = workload
        waiting = object_at(workload, "status").get("admission") is not None
        return Review(answers=tuple(CheckAnswer(name, CheckState.READY, "yes") for name in checks if waiting))


def test_a_controller_that_fails_is_asked_again() -> None:
    approval = Approval()
    cluster = VirtualCluster(CHECKED, now=NOW, checks=[approval])
    cluster.schedule([create(5, "a")])
    approval.is_broken = True
    with pytest.raises(RuntimeError, match="broken"):
        cluster.advance()
    approval.is_broken = False
    assert [(step.time - cluster.start) / SECOND_NS for step in cluster.advance()] == [5, 65]
    assert [step.kind for step in cluster.steps] == [StepKind.CREATED, StepKind.ADMITTED, StepKind.FINISHED]


def test_a_controller_sees_rows_and_updates_as_they_are_stored() -> None:
    approval = Approval()
    rows = Submissions(namespace="ns", local_queues=["lq"], queue=[0, 0], requests={"cpu": [500, 2000]}, at=[1, 2])
    late: JsonObject = {**workload("late"), "metadata": {"namespace": "ns", "name": "late", "labels": {"new": "yes"}}}
    events = [create(3, "late"), Happening(at=4, op=Operation.UPDATE, object=late)]
    run = simulate(CHECKED, events, submissions=[rows], now=NOW, checks=[approval])
    assert [key for _, key in times(run, StepKind.ADMITTED)] == ["ns/workload-0", "ns/workload-1", "ns/late"]
    requests = [
        approval.seen[name]["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]  # type: ignore[index, call-overload]
        for name in ("workload-0", "workload-1")
    ]
    assert requests == [{"cpu": "500m"}, {"cpu": "2000m"}]
    assert object_at(approval.seen["late"], "metadata")["labels"] == {"new": "yes"}


def test_what_has_happened_by_the_clock_can_be_looked_up() -> None:
    cluster = VirtualCluster(QUEUES, now=NOW)
    cluster.schedule([create(5, "a"), Happening(at=90, op=Operation.DELETE, key="ns/a")])
    assert cluster.object("Workload", "a", namespace="ns") is None
    cluster.advance(cluster.start + 10 * SECOND_NS)
    assert cluster.workload("a", namespace="ns")["spec"] == {**object_at(workload("a"), "spec")}
    assert cluster.is_running("a", namespace="ns")
    cluster.advance()
    assert cluster.object("Workload", "a", namespace="ns") is None


def test_a_cycle_that_waits_for_pods_goes_on_when_somebody_ends_the_job() -> None:
    settings = {"waitForPodsReady": {"timeout": "1h", "blockAdmission": True}}
    cluster = VirtualCluster(QUEUES, now=NOW, configuration=Configuration.trusted(settings))
    second = (
        QUEUES.replace("name: cq}", "name: other}")
        .replace("name: lq}", "name: lq2}")
        .replace("Queue: cq", "Queue: other")
    )
    cluster.apply(second)
    for name, queue in (("a", "lq"), ("b", "lq2")):
        cluster.schedule(
            [
                Happening(
                    at=1,
                    op=Operation.CREATE,
                    object=workload(name, queueName=queue),
                    plan=JobPlan(run_seconds=60, ready_seconds=[None]),
                )
            ]
        )
    cluster.advance(cluster.start + 100 * SECOND_NS)
    assert [step.key for step in cluster.steps if step.kind is StepKind.ADMITTED] == ["ns/a"], (
        "b waits for the pods of a"
    )
    assert cluster.finish("a", namespace="ns")
    cluster.advance(cluster.start + 101 * SECOND_NS)
    admitted = [(step.time - cluster.start) / SECOND_NS for step in cluster.steps if step.kind is StepKind.ADMITTED]
    assert admitted == [1, 100]


class Budget(Approval):
    """Looks at an object of a kind that Kueue does not have."""

    @property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        return {"Budget": ("example.com/v1", "budgets")}

    def __init__(self) -> None:
        super().__init__()
        self.budgets: list[tuple[float, str]] = []

    def observe(self, manifest: JsonObject, *, now: int) -> Collection[WorkloadKey]:
        if manifest["kind"] == "Budget":
            self.budgets.append((now / SECOND_NS % 60, str(object_at(manifest, "spec")["money"])))
        return ()


def test_a_controller_hears_of_objects_of_its_own_kinds() -> None:
    budget: JsonObject = {"apiVersion": "example.com/v1", "kind": "Budget", "metadata": {"name": "b"}}
    events = [
        create(2, "a"),
        Happening(at=3, op=Operation.CREATE, object={**budget, "spec": {"money": 1}}),
        Happening(at=4, op=Operation.UPDATE, object={**budget, "spec": {"money": 2}}),
        create(5, "b"),
    ]
    controller = Budget()
    run = simulate(CHECKED, events, now=NOW, checks=[controller])
    assert controller.budgets == [(3, "1"), (4, "2")]
    assert times(run, StepKind.ADMITTED) == [(2, "ns/a"), (5, "ns/b")]
    with pytest.raises(ManifestError, match="of a kind that is read"):
        simulate(CHECKED, events, now=NOW)


def test_a_controller_cannot_let_time_go_by() -> None:
    class Hasty(Approval):
        def review(self, workload: JsonObject, checks: Sequence[str], *, now: int) -> Review:
            cluster.step()
            return super().review(workload, checks, now=now)

    cluster = VirtualCluster(CHECKED, now=NOW, checks=[Hasty()])
    with pytest.raises(RuntimeError, match="step or advance the cluster after it returns"):
        cluster.submit(workload("a"))
