"""A batch system without Kubernetes: its own jobs, a virtual clock, and Kueue's rules to decide which jobs run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kueuecore.controller import Controller
from kueuecore.jobs import Finished, Integration, JobPodSet, reconcile_job, with_kinds
from kueuecore.manifests import read_manifests
from kueuecore.writes import Answer

SECOND = 10**9
# Name, team, processors, run time in seconds, and arrival time.
JOBS = [("proteins", "biology", 5, 60, 0), ("plasma", "physics", 2, 30, 10), ("cells", "biology", 1, 20, 12)]
SECONDS = {name: seconds for name, _, _, seconds, _ in JOBS}
SAYS = {"Started": "starts", "Stopped": "is preempted"}


def pods(job: Any, _surroundings: object) -> list[JobPodSet]:
    """Return what a job needs: one process with some processors."""
    container = {"name": "job", "image": "none", "resources": {"requests": {"cpu": job["spec"]["cpus"]}}}
    template: Any = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return [JobPodSet(name="main", count=1, template=template)]


def started(job: Any, *_: object) -> Any:
    """Return the job unchanged: nothing about machines is written into it."""
    return job


def finished(job: Any) -> Finished | None:
    return Finished("done") if job["status"] == "done" else None


KIND = Integration(
    framework="lab/task",
    api_version="lab/v1",
    kind="Task",
    pod_sets=pods,
    inject=started,
    restore=started,
    is_active=lambda job: job["status"] == "runs",
    finished=finished,
)


class Lab:
    """The jobs, and the controller that decides about them."""

    def __init__(self) -> None:
        # Nothing reads the statuses of queues here.
        self.controller = Controller(status_delay_seconds=None)
        self.jobs: dict[str, Any] = {}
        self.workloads: dict[str, str] = {}  # by the job's name
        self.around = [manifest.object for manifest in read_manifests(Path(__file__).parent / "cluster.yaml")]
        for manifest in self.around:
            self.controller.observe({"type": "ADDED", "object": manifest}, now=0)

    def submit(self, name: str, team: str, cpus: int) -> None:
        metadata = {"name": name, "namespace": "lab", "labels": {"kueue.x-k8s.io/queue-name": team}}
        spec = {"cpus": cpus, "suspend": True}
        job = {"apiVersion": "lab/v1", "kind": "Task", "metadata": metadata, "spec": spec, "status": "waits"}
        self.jobs[name] = job

    def look(self, now: int) -> None:
        """Reconcile every job."""
        for name, job in self.jobs.items():
            workload = self.controller.workload(self.workloads.get(name, "none"), namespace="lab")
            its = [] if workload is None else [workload]
            found = reconcile_job(job, its, now=now, around=self.around, integrations=with_kinds(KIND))
            for write in found.writes:
                # There are no other writers, so every write succeeds.
                made: Any = write.manifest
                if made["kind"] == "Task":
                    self.jobs[name] = made
                else:
                    self.workloads[name] = made["metadata"]["name"]
                    self.controller.take_answer(made, now=now)
            for (namespace, owned), report in found.reports.items():
                self.controller.report(owned, namespace=namespace, report=report)
            for event in found.events:
                if event.reason in SAYS:
                    print(f"{now // SECOND:4} s  {name} {SAYS[event.reason]}")

    def run(self, now: int) -> None:
        """Start and stop processes, and end those whose run time is over."""
        for name, job in self.jobs.items():
            if job["spec"]["suspend"]:
                job["status"] = "waits"
            elif job["status"] == "waits":
                job.update(status="runs", since=now)
            elif job["status"] == "runs" and job["since"] + SECONDS[name] * SECOND <= now:
                job["status"] = "done"
                print(f"{now // SECOND:4} s  {name} has ended")


def main() -> None:
    lab = Lab()
    for second in range(200):
        now = second * SECOND
        for name, team, cpus, _, comes in JOBS:
            if comes == second:
                lab.submit(name, team, cpus)
        lab.run(now)
        lab.look(now)
        for write in lab.controller.turn(now).writes:
            lab.controller.done(write, Answer(), now=now)
        lab.look(now)
        lab.run(now)


if __name__ == "__main__":
    main()
