"""Jobs that change again and again: their Workloads come to rest, and fit."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.jobs import Action, sync_workloads
from tests.jobs import job
from tests.property.worlds import times

Json = dict[str, Any]
NOW = "2026-01-01T00:00:00Z"
AN = "kueue.x-k8s.io/"


class Stored:
    """The Workloads of a job as an API server keeps them."""

    def __init__(self) -> None:
        self.workloads: dict[str, Json] = {}
        self.n_made = 0

    def follow(self, plain: Json) -> Json:
        """Do what is said until nothing is; the Workload that stands for the job."""
        for _ in range(5):
            found = sync_workloads(plain, self.workloads.values(), now=NOW)
            for write in found.writes:
                plain["spec"] = write.manifest["spec"]
            for step in found.steps:
                self.do(step.action, dict(step.workload))
            if not found.steps and not found.writes:
                assert found.workload is not None
                assert self.workloads[found.workload["metadata"]["name"]] == found.workload  # type: ignore[index,call-overload]
                return found.workload
        raise AssertionError("it never settles")

    def do(self, action: Action, workload: Json) -> None:
        name = workload["metadata"]["name"]
        assert (name in self.workloads) != (action is Action.CREATE)
        if action is Action.DELETE:
            del self.workloads[name]
            return
        if action is Action.CREATE:
            self.n_made += 1
            workload["metadata"] |= {
                "uid": f"{self.n_made:03}",
                "creationTimestamp": f"2026-01-01T00:{self.n_made:02}:00Z",
            }
        self.workloads[name] = workload
        if action is Action.FINISH:
            self.tell(name, "Finished")

    def tell(self, name: str, kind: str) -> None:
        workload = self.workloads[name]
        status = workload.setdefault("status", {})
        others = [condition for condition in status.get("conditions", ()) if condition["type"] != kind]
        status["conditions"] = [*others, {"type": kind, "status": "True", "reason": kind}]

    def live(self) -> list[Json]:
        return [workload for workload in self.workloads.values() if "Finished" not in holds(workload)]


def holds(workload: Json) -> set[str]:
    conditions = workload.get("status", {}).get("conditions", ())
    return {condition["type"] for condition in conditions if condition["status"] == "True"}


@times(1)
@given(
    st.booleans(),
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["1", "2"]), st.sampled_from(["", "Admitted", "Evicted"])),
        max_size=8,
    ),
)
def test_workloads_follow_a_job_through_all_its_changes(is_elastic: bool, changes: list[tuple[int, str, str]]) -> None:
    stored = Stored()
    for generation, (n_pods, cpu, happens) in enumerate(changes, start=1):
        plain = job("Job")
        plain["metadata"] |= {"uid": "u", "generation": generation}
        if is_elastic:
            plain["metadata"]["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1" if is_elastic else cpu}}}
        plain["spec"] = {
            "parallelism": n_pods,
            "suspend": not is_elastic,
            "template": {"spec": {"containers": [container]}},
        }
        workload = stored.follow(plain)
        # An evicted slice is that of its job until the pods have stopped.
        still_runs = is_elastic and {"Evicted", "QuotaReserved"} <= holds(workload)
        assert still_runs or workload["spec"]["podSets"][0]["count"] == n_pods
        name = workload["metadata"]["name"]
        # Of two slices one waits to replace the other.
        assert len(stored.live()) <= (2 if is_elastic else 1)
        for entry in stored.live():
            assert still_runs or entry["metadata"]["name"] == name or "QuotaReserved" in holds(entry)
        if happens == "Admitted" and "QuotaReserved" not in holds(workload):
            old = workload["metadata"].get("annotations", {}).get("kueue.x-k8s.io/workload-slice-replacement-for")
            for kind in ("QuotaReserved", "Admitted"):
                stored.tell(name, kind)
            if old is not None:
                # The scheduler ends what is replaced.
                stored.tell(old.removeprefix("n/"), "Finished")
        elif happens == "Evicted" and is_elastic and "QuotaReserved" in holds(workload):
            stored.tell(name, "Evicted")


@times(1)
@given(
    st.sampled_from(["StatefulSet", "LeaderWorkerSet"]),
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["a", "b"]), st.sampled_from(["", "high"]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
)
def test_workloads_follow_a_set_through_all_its_changes(kind: str, changes: list[tuple[int, str, str, bool]]) -> None:
    stored = Stored()
    high: Json = {
        "apiVersion": f"{AN}v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "high"},
        "value": 7,
    }
    plain = job(kind)
    plain["metadata"]["uid"] = "u"
    for replicas, queue, priority_class, is_admitted in changes:
        plain["metadata"]["labels"] = {f"{AN}queue-name": queue, f"{AN}priority-class": priority_class}
        plain["spec"] = {**plain["spec"], "replicas": replicas}
        for _ in range(5):
            found = sync_workloads(plain, stored.workloads.values(), now=NOW, around=[high])
            for step in found.steps:
                stored.do(step.action, dict(step.workload))
            if not found.steps:
                break
        else:
            raise AssertionError("it never settles")
        # A set keeps its Workload while it has no replicas, on hold.
        n_expected = len(stored.workloads) if kind == "StatefulSet" and not replicas else replicas
        assert len(stored.workloads) == (min(1, n_expected) if kind == "StatefulSet" else n_expected)
        for workload in stored.workloads.values():
            assert "QuotaReserved" not in holds(workload) or replicas
            assert workload["spec"]["queueName"] == queue or not replicas
            # One that held quota without a class gets none any more.
            may_follow = kind == "LeaderWorkerSet" and "QuotaReserved" not in holds(workload)
            assert not may_follow or workload["spec"]["priority"] == (7 if priority_class else 0)
        if is_admitted and replicas:
            for name in stored.workloads:
                for condition in ("QuotaReserved", "Admitted"):
                    if condition not in holds(stored.workloads[name]):
                        stored.tell(name, condition)
