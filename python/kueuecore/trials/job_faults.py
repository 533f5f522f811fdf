"""Histories like those of `faults`, with jobs to reconcile: their Workloads, starts, stops and ends.

Requests for jobs, pods and Workloads are refused, in conflict, or accepted without an answer, too. No job has two
Workloads with quota, nothing runs beyond the available quota, no pod is stopped because its group has become another,
and at the end no job is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kueuecore._json import object_at
from kueuecore.controller import Controller, JobController, JobWork
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.jobs import JobsConfiguration, integration_of
from kueuecore.jobs.batch_job import BATCH_JOB
from kueuecore.jobs.role_hash import ROLE_HASH
from kueuecore.steady_state import find_preemption_loop
from kueuecore.times import SECOND_NS
from kueuecore.trials.faults import REFUSED, FaultyHistory, Replica
from kueuecore.writes import Answer, Verb, Write

__all__ = ["FaultyJobHistory"]

_NAMESPACE = "default"
_KUEUE = "kueue.x-k8s.io/"
_MAX_TURNS = 240
_Object = dict[str, Any]
_WAYS = ("well",) * 6 + ("refused", "conflict", "unheard", "before", "after")


class FaultyJobHistory(FaultyHistory):
    """A cluster with jobs and groups of pods, two replicas that reconcile and schedule them, and faults.

    Args:
        seed: The seed from which everything follows.
        make_jobs: Creates the job controller of a new process.
        n_steps: How many steps to take before the faults end.

    Example:
        >>> happened = FaultyJobHistory(1).play()
        >>> happened["starts"] > 0
        True
    """

    # A start adds a node selector to the pods.
    _flavor: Mapping[str, Any] = {"nodeLabels": {"pool": "spot"}}

    def __init__(
        self, seed: int, *, make_jobs: Callable[..., JobController] = JobController, n_steps: int = 40
    ) -> None:
        self._make_jobs = make_jobs
        self._n_made = 0
        super().__init__(seed, make=lambda: Controller(models_readiness=True), n_steps=n_steps)

    def _begun(self) -> Replica:
        configuration = JobsConfiguration(frameworks=("batch/job", "pod"))
        controller = self.make()
        return Replica(controller, self.cluster.version, self._make_jobs(controller, configuration=configuration))

    def _loaded(self, old: Replica) -> Replica:
        # Job controllers keep all their knowledge in the objects.
        return self._started()

    # Jobs.

    def _create_workload(self) -> None:
        """Create a suspended job, or a group of pods behind gates."""
        self._n_made += 1
        name, size = f"j{self._n_made}", self.random.choice((1, 1, 2, 3))
        labels = {f"{_KUEUE}queue-name": self.random.choice(("a", "b")), f"{_KUEUE}managed": "true"}
        if priority := self.random.choice((0, 0, 1, 2)):
            labels[f"{_KUEUE}priority-class"] = f"p{priority}"
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        pod = {"containers": [container], "restartPolicy": "Never"}
        if self.random.random() < 0.6:
            spec = {"parallelism": size, "completions": size, "suspend": True, "template": {"spec": pod}}
            metadata = {"name": name, "namespace": _NAMESPACE, "labels": labels}
            self._submit({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
            return
        for index in range(size):
            self._create_pod(f"{name}-{index}", name, size, labels, pod)

    def _create_pod(self, name: str, group: str, size: int, labels: dict[str, str], spec: _Object) -> None:
        prefix = f"{_KUEUE}pod-group"
        annotations = {f"{prefix}-name": group, f"{prefix}-total-count": str(size)}
        metadata = {"name": name, "namespace": _NAMESPACE, "labels": labels, "annotations": annotations}
        metadata["finalizers"] = [f"{_KUEUE}managed"]
        gated = {**spec, "schedulingGates": [{"name": f"{_KUEUE}admission"}]}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": gated, "status": {"phase": "Pending"}}
        self._submit(made)
        self._leave_to_itself(name, group)

    def _leave_to_itself(self, pod: str, group: str) -> None:
        """Take from every second group what only a webhook writes: its pods were made by hand, without one."""
        if int(group.removeprefix("j")) % 2:
            unwritten = {"metadata": {"annotations": {ROLE_HASH: None}}}
            self.cluster.patch("Pod", pod, unwritten, namespace=_NAMESPACE)

    def _submit(self, manifest: _Object) -> None:
        """Create a job or a pod as a user does."""
        self.cluster.create(manifest)

    def _create_queues(self) -> None:
        super()._create_queues()
        for value in (1, 2):
            metadata = {"name": f"p{value}"}
            made = {"apiVersion": f"{_KUEUE}v1beta2", "kind": "WorkloadPriorityClass", "metadata": metadata}
            self.cluster.create({**made, "value": value})

    def _change_workload(self, what: str, name: str) -> None:
        """Let a user change a job or a Workload."""
        if what == "active":
            super()._change_workload(what, name)
            return
        jobs = self.cluster.list("Job")[0]
        if not jobs:
            return
        job = self.random.choice(jobs)
        its = job["metadata"]["name"]
        if what == "delete":
            self.cluster.delete("Job", its, namespace=_NAMESPACE)
        elif what == "priority" and BATCH_JOB.is_suspended(job):
            labels = {f"{_KUEUE}queue-name": self.random.choice(("a", "b"))}
            self.cluster.patch("Job", its, {"metadata": {"labels": labels}}, namespace=_NAMESPACE)

    def _tell_of_jobs(self) -> None:
        """Let the cluster run jobs and pods; the leader sees it in a watch."""
        self._run_jobs(sluggish=True)
        self._check_jobs()

    def _run_jobs(self, *, sluggish: bool) -> None:
        for job in self.cluster.list("Job")[0]:
            if not (sluggish and self.random.random() < 0.3):
                self._run_job(job, may_end=sluggish)
        for pod in self.cluster.list("Pod")[0]:
            if not (sluggish and self.random.random() < 0.3):
                self._run_pod(pod, may_end=sluggish)
        self._collect()

    def _run_job(self, job: _Object, *, may_end: bool) -> None:
        status, size = dict(job.get("status", {})), job["spec"]["parallelism"]
        if any(condition["type"] == "Complete" for condition in status.get("conditions", ())):
            return
        if job["spec"]["suspend"]:
            status |= {"active": 0, "ready": 0}
        elif may_end and status.get("active") and self.random.random() < 0.2:
            condition = {"type": "Complete", "status": "True", "message": "done"}
            status |= {"active": 0, "ready": 0, "succeeded": size, "conditions": [condition]}
            self.happened["jobs ended"] += 1
        else:
            self.happened["starts"] += not status.get("active")
            status |= {"active": size, "ready": size}
        self._put_status(job, status)

    def _run_pod(self, pod: _Object, *, may_end: bool) -> None:
        status, metadata = dict(pod["status"]), pod["metadata"]
        is_gated = bool(pod["spec"].get("schedulingGates"))
        if status["phase"] in ("Succeeded", "Failed"):
            if status["phase"] == "Failed" and not status.get("replaced"):
                # Their owner recreates these pods.
                group = metadata["annotations"][f"{_KUEUE}pod-group-name"]
                size = int(metadata["annotations"][f"{_KUEUE}pod-group-total-count"])
                self._put_status(pod, status | {"replaced": True})
                self._n_made += 1
                spec = {name: entry for name, entry in pod["spec"].items() if name != "nodeSelector"}
                self._create_pod(f"{group}-r{self._n_made}", group, size, dict(metadata["labels"]), spec)
            return
        if metadata.get("deletionTimestamp"):
            status["phase"] = "Failed"
        elif not is_gated and status["phase"] == "Pending":
            status |= {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            self.happened["starts"] += 1
        elif not is_gated and may_end and self.random.random() < 0.2:
            status["phase"] = "Succeeded"
            self.happened["pods ended"] += 1
        self._put_status(pod, status)

    def _put_status(self, job: _Object, status: _Object) -> None:
        name = job["metadata"]["name"]
        if status != job.get("status"):
            self.cluster.patch(job["kind"], name, {"status": status}, namespace=_NAMESPACE, subresource="status")

    def _collect(self) -> None:
        """Delete what has lost its owner."""
        uids = {row["metadata"]["uid"] for kind in ("Job", "Pod") for row in self.cluster.list(kind)[0]}
        for name, workload in self._workloads().items():
            owners = workload["metadata"].get("ownerReferences", ())
            if owners and not any(owner["uid"] in uids for owner in owners):
                self.cluster.delete("Workload", name, namespace=_NAMESPACE)

    # Actions of the leader.

    def _turn(self) -> None:
        for work in self._jobs(self.leader).take_due(self.cluster.now):
            if not self._carry_out(work, self.random.choice(_WAYS)):
                return
        super()._turn()

    def _carry_out(self, work: JobWork, way: str) -> bool:
        """Send the requests of a reconcile; return False if the process ended meanwhile."""
        leader, last = self.leader, len(work.requests) - 1
        failing = self.random.randint(0, max(last, 0))
        self.happened[f"requests {way}"] += bool(work.requests)
        for number, request in enumerate(work.requests):
            odd = way if number == failing else "well"
            if odd == "before":
                self._restart_leader()
                return False
            if odd == "conflict":
                self._touch(request)
            is_sent = odd != "refused" and self.cluster.carry_out(request).is_accepted
            if odd == "after":
                self._restart_leader()
                return False
            if not is_sent or odd == "unheard":
                self._jobs(leader).done(work.job, REFUSED, now=self.cluster.now)
                return True
        self._jobs(leader).done(work.job, Answer(), now=self.cluster.now)
        return True

    def _touch(self, request: Write) -> None:
        """Let another client write first."""
        if request.verb is not Verb.CREATE and self.cluster.find(
            request.kind, request.name, namespace=request.namespace
        ):
            labels = {"touched": str(self.cluster.version)}
            touch = {"metadata": {"labels": labels}}
            self.cluster.patch(request.kind, request.name, touch, namespace=request.namespace)

    def _jobs(self, replica: Replica) -> JobController:
        assert replica.jobs is not None
        return replica.jobs

    # Invariants.

    def _check_jobs(self) -> None:
        """Check that no job has quota twice, and that what runs is within the quota."""
        holding: Counter[str] = Counter()
        deactivated: set[str] = set()
        charged: dict[str, str] = {}
        for workload in self._workloads().values():
            holds = conditions_that_hold(workload)
            owners = {reference["uid"] for reference in workload["metadata"].get("ownerReferences", ())}
            if "QuotaReserved" in holds and "Finished" not in holds:
                holding.update(owners)
                charged |= dict.fromkeys(owners, workload["status"]["admission"]["clusterQueue"])
            if workload["spec"].get("active") is False:
                deactivated |= owners
        assert max(holding.values(), default=0) <= 1, f"two Workloads of one job hold quota: {holding}"
        # To Kueue, a deactivated workload holds nothing, even while its job stops.
        used: Counter[str] = Counter()
        for job in self._jobs_and_pods():
            uid, labels = job["metadata"]["uid"], job["metadata"]["labels"]
            if uid not in deactivated:
                # A job that moves just as it is admitted runs on the quota of its old queue.
                used[charged.get(uid) or labels[f"{_KUEUE}queue-name"]] += _n_running(job)
        if self.is_shared:
            assert sum(used.values()) <= sum(self.quota.values()), f"{used} of {self.quota} run"
        else:
            assert all(used[name] <= quota for name, quota in self.quota.items()), f"{used} of {self.quota} run"
        for pod in self.cluster.list("Pod")[0]:
            why = {condition.get("reason") for condition in pod["status"].get("conditions", ())}
            assert "NoMatchingWorkload" not in why, f"{pod['metadata']['name']} no longer fits its Workload"

    def _jobs_and_pods(self) -> Iterable[_Object]:
        """Return what runs on a quota of its own."""
        return (*self.cluster.list("Job")[0], *self.cluster.list("Pod")[0])

    def _end_well(self) -> None:
        """End the faults: everything settles, and whatever can run, runs."""
        if not self._comes_to_an_end():
            return
        self._check_end(self.leader)
        # A new process finds nothing to do; anything that it would do has been forgotten by this one.
        fresh = self._started()
        works = [key for key in self._jobs(fresh).take_due(self.cluster.now) if key.requests]
        assert not works, f"forgotten: {works}"
        admitted = [
            write.name
            for _ in range(6)
            for write in fresh.controller.turn(self.cluster.now).writes
            if {"QuotaReserved", "Admitted", "Evicted"} & {*write.gained}
        ]
        assert not admitted, f"forgotten: {admitted}"

    def _check_end(self, leader: Replica) -> None:
        owned = Counter(
            reference["uid"]
            for workload in self._workloads().values()
            for reference in workload["metadata"].get("ownerReferences", ())
            if "Finished" not in conditions_that_hold(workload)
        )
        for job in self.cluster.list("Job")[0]:
            integration = integration_of(job)
            assert integration is not None
            n_owned = owned[job["metadata"]["uid"]]
            has_ended = integration.finished(job) is not None
            assert n_owned == (not has_ended), f"{job['metadata']['name']} has {n_owned} Workloads"
        assert leader.jobs is not None
        there = {job["metadata"]["uid"] for job in (*self.cluster.list("Job")[0], *self.cluster.list("Pod")[0])}
        for name, workload in self._workloads().items():
            owners = {reference["uid"] for reference in workload["metadata"].get("ownerReferences", ())}
            is_held = bool(workload["metadata"].get("finalizers"))
            assert owners & there or not is_held, f"{name} is kept for a job that is gone"

    def _is_refused_by_rule(self, write: Write) -> bool:
        """Return whether a write is one of Kueue's own that its webhooks refuse."""
        return False

    def _hear_all(self, replica: Replica) -> None:
        self._put_on_the_way(replica)
        events, replica.coming = replica.coming, []
        for event in events:
            replica.observer.observe(event, now=self.cluster.now)

    def _come_to_rest(self, controller: Controller) -> bool:
        leader, quiet = self.leader, 0
        # How often the world was in this state just after a preemption.
        stood: Counter[frozenset[object]] = Counter()
        for _ in range(_MAX_TURNS):
            before = self.cluster.version
            self._run_jobs(sluggish=False)
            self._check_jobs()
            self._hear_all(leader)
            for work in self._jobs(leader).take_due(self.cluster.now):
                self._carry_out(work, "well")
            self._hear_all(leader)
            turn = controller.turn(self.cluster.now)
            for write in turn.writes:
                answer = self._send(write)
                if not answer.is_accepted:
                    assert self._is_refused_by_rule(write), "nobody else writes now"
                    self._refuse(leader, write)
                else:
                    controller.done(write, answer, now=self.cluster.now)
            for status in turn.objects:
                self._send_object(status)
            if turn.decision.preemptions:
                stood[self._standing()] += 1
            quiet = quiet + 1 if self.cluster.version == before else 0
            # Longer than any pause once nothing happens; before, no timeout may end what is about to start.
            self.cluster.now += (400 if quiet else 1) * SECOND_NS
            if quiet == 3:
                return True
        # Some circles close only because jobs take time to stop: then the same states return again and again.
        is_circle = max(stood.values(), default=0) > 2 or find_preemption_loop(controller.engine, now=self.cluster.now)
        assert is_circle, "it does not come to rest"
        return False

    def _standing(self) -> frozenset[object]:
        """Return what every workload holds, and its conditions."""
        return frozenset(
            (
                name,
                str(object_at(workload, "status").get("admission")),
                *sorted((kind, str(condition["reason"])) for kind, condition in conditions_that_hold(workload).items()),
            )
            for name, workload in self._workloads().items()
        )


def _n_running(job: _Object) -> int:
    """Return how many pods of a job run, or whether a pod does; what is being stopped does not count."""
    if job["kind"] == "Job":
        return 0 if job["spec"]["suspend"] else int(job.get("status", {}).get("active", 0))
    return int(job["status"]["phase"] == "Running" and "deletionTimestamp" not in job["metadata"])
