"""Histories like those of `job_faults` in which pods go to nodes, and nodes fail, leave and return.

Releases of pods are refused, in conflict, lost, or accepted without an answer, too. No pod is released to a node that
is recorded as failed, no domain gets more pods than its workload has places there, no node more than it has room for,
and at the end no pod waits behind a gate for nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from kueuecore._json import object_at
from kueuecore.configuration import Configuration
from kueuecore.controller import Controller, JobController, is_heartbeat
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ObjectRef
from kueuecore.jobs import JobsConfiguration
from kueuecore.reference.topology.encoding import decoded
from kueuecore.trials.faults import REFUSED, Replica
from kueuecore.trials.job_faults import FaultyJobHistory
from kueuecore.trials.machines import HOST, Machines, is_gated, is_terminated, target_of
from kueuecore.writes import Answer, Verb, Write

__all__ = ["FaultyNodeHistory", "hosts_of"]

_KUEUE = "kueue.x-k8s.io/"
_NAMESPACE = "default"
_INDEX = "batch.kubernetes.io/job-completion-index"
_Object = dict[str, Any]
# No workload is evicted for being late: that would hide pods that are never released.
_CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
waitForPodsReady: {timeout: 240h}
"""
_WAYS = ("well",) * 5 + ("refused", "conflict", "unheard", "lost", "before", "after")


class FaultyNodeHistory(FaultyJobHistory):
    """A cluster with nodes, jobs and groups of pods that run on them, two replicas, and faults.

    Args:
        seed: The seed from which everything follows.
        make_jobs: Creates the job controller of a new process.
        make: Creates its controller.
        n_steps: How many steps to take before the faults end.

    Example:
        >>> happened = FaultyNodeHistory(1).play()
        >>> happened["releases"] > 0
        True
    """

    def __init__(
        self,
        seed: int,
        *,
        make_jobs: Callable[..., JobController] = JobController,
        make: Callable[..., Controller] = Controller,
        n_steps: int = 50,
    ) -> None:
        self._make_controller = make
        # What was passed on of each node.
        self._passed: dict[tuple[int, str], _Object] = {}
        # By UID of a workload, the nodes that its older versions had.
        self._had: defaultdict[str, set[str]] = defaultdict(set)
        # By UID, where a second pass on an older copy has placed its pods.
        self._uncharged: dict[str, set[str]] = {}
        super().__init__(seed, make_jobs=make_jobs, n_steps=n_steps)

    def _begun(self) -> Replica:
        configuration = Configuration.parse(_CONFIGURATION)
        controller = self._make_controller(configuration, models_readiness=True, watches_nodes=True)
        frameworks = JobsConfiguration(frameworks=("batch/job", "pod"))
        return Replica(controller, self.cluster.version, self._make_jobs(controller, configuration=frameworks))

    # The objects.

    def _create_queues(self) -> None:
        super()._create_queues()
        self.machines = Machines(self.cluster, self.random)
        spec = {"nodeLabels": {"pool": "all"}, "topologyName": "racks"}
        self.cluster.patch("ResourceFlavor", "default", {"spec": spec})

    def _create_workload(self) -> None:
        """Create a suspended job, or a group of pods behind gates; some ask for one rack or host."""
        self._n_made += 1
        name, size = f"j{self._n_made}", self.random.choice((1, 1, 2, 3))
        labels = {f"{_KUEUE}queue-name": self.random.choice(("a", "b")), f"{_KUEUE}managed": "true"}
        if priority := self.random.choice((0, 0, 1, 2)):
            labels[f"{_KUEUE}priority-class"] = f"p{priority}"
        asked = self._drawn_request()
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        pod = {"containers": [container], "restartPolicy": "Never"}
        is_ranked: bool = self.random.choice((True, False))
        if self.random.random() < 0.6:
            template = {"metadata": {"annotations": asked}, "spec": pod}
            spec = {"parallelism": size, "completions": size, "suspend": True, "template": template}
            spec["completionMode"] = "Indexed" if is_ranked else "NonIndexed"
            metadata = {"name": name, "namespace": _NAMESPACE, "labels": labels}
            self._submit({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
            return
        for index in range(size):
            ranked = {f"{_KUEUE}pod-group-pod-index": str(index)} if is_ranked else {}
            self._create_pod(f"{name}-{index}", name, size, labels | ranked, pod, asked)

    def _drawn_request(self) -> dict[str, str]:
        kind = self.random.choice(("required", "preferred", "unconstrained", ""))
        level = self.random.choice(self.machines.levels)
        return {f"{_KUEUE}podset-{kind}-topology": "true" if kind == "unconstrained" else level} if kind else {}

    def _create_pod(
        self,
        name: str,
        group: str,
        size: int,
        labels: dict[str, str],
        spec: _Object,
        asked: dict[str, str] | None = None,
    ) -> None:
        prefix = f"{_KUEUE}pod-group"
        annotations = {f"{prefix}-name": group, f"{prefix}-total-count": str(size), **(asked or {})}
        labels = {key: label for key, label in labels.items() if key != f"{_KUEUE}podset"}
        metadata = {"name": name, "namespace": _NAMESPACE, "labels": labels, "annotations": annotations}
        metadata["finalizers"] = [f"{_KUEUE}managed"]
        # Its owner does not know where the previous one was.
        gates = [{"name": f"{_KUEUE}admission"}, {"name": f"{_KUEUE}topology"}]
        kept = {key: row for key, row in spec.items() if key not in ("nodeName", "nodeSelector")}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**kept, "schedulingGates": gates}}
        self._submit({**made, "status": {"phase": "Pending"}})

    # Faults.

    def _change(self) -> None:
        if self.random.random() < 0.5:
            self.happened[self.machines.change()] += 1
        else:
            super()._change()

    def _put_on_the_way(self, replica: Replica) -> None:
        """Send all events that are due except heartbeats, which nothing needs."""
        n_known = len(replica.coming)
        super()._put_on_the_way(replica)
        coming, replica.coming = replica.coming, replica.coming[:n_known]
        for event in coming[n_known:]:
            thing = event["object"]
            key = id(replica), thing["metadata"]["name"]
            if thing["kind"] == "Node":
                before = self._passed.get(key)
                if before is not None and event["type"] == "MODIFIED" and is_heartbeat(before, thing):
                    self.happened["heartbeats dropped"] += 1
                    continue
                self._passed[key] = thing
            replica.coming.append(event)

    def _turn_object(self, write: Write) -> None:
        if write.verb is not Verb.PATCH or write.object.kind != "Pod":
            super()._turn_object(write)
            return
        way = self.random.choice(_WAYS)
        self.happened[f"releases {way}"] += 1
        if way == "before":
            self._restart_leader()
            return
        if way == "lost":
            return
        ref, leader = write.object, self.leader.controller
        if way == "conflict" and self.cluster.find("Pod", ref.name, namespace=ref.namespace) is not None:
            labels = {"metadata": {"labels": {"version": str(self.cluster.version)}}}
            self.cluster.patch("Pod", ref.name, labels, namespace=ref.namespace)
        if way == "refused":
            leader.done(write, REFUSED, now=self.cluster.now)
            return
        answer = self._send_object(write)
        if way == "after":
            self._restart_leader()
        elif way == "unheard":
            if (newest := self.cluster.find("Pod", ref.name, namespace=ref.namespace)) is not None:
                self.leader.observer.observe({"type": "MODIFIED", "object": newest}, now=self.cluster.now)
            leader.done(write, REFUSED, now=self.cluster.now)
        else:
            leader.done(write, answer, now=self.cluster.now)

    def _send_object(self, write: Write) -> Answer:
        answer = super()._send_object(write)
        if answer.is_accepted and write.kind == "Pod":
            if write.verb is Verb.PATCH:
                self.happened["releases"] += 1
                self._check_release(write.object)
            else:
                self.happened["pods failed in vain"] += 1
        return answer

    # The rest of the cluster.

    def _run_jobs(self, *, sluggish: bool) -> None:
        super()._run_jobs(sluggish=sluggish)
        uids = {job["metadata"]["uid"] for job in self.cluster.list("Job")[0]}
        for pod in self.cluster.list("Pod")[0]:
            owner = _owner_of(pod)
            if owner and owner not in uids:
                self._delete_pod(pod)

    def _run_job(self, job: _Object, *, may_end: bool) -> None:
        """Act as the Job controller: create pods from the template, one for each index."""
        status, size = dict(job.get("status", {})), job["spec"]["parallelism"]
        pods = [pod for pod in self.machines.pods() if _owner_of(pod) == job["metadata"]["uid"]]
        if any(condition["type"] == "Complete" for condition in status.get("conditions", ())):
            return
        n_running = sum(pod["status"]["phase"] == "Running" for pod in pods)
        if job["spec"]["suspend"]:
            for pod in pods:
                self._delete_pod(pod)
            status |= {"active": 0, "ready": 0}
        elif may_end and n_running == size and self.random.random() < 0.3:
            for pod in pods:
                self._put_status(pod, {**pod["status"], "phase": "Succeeded"})
            condition = {"type": "Complete", "status": "True", "message": "done"}
            status |= {"active": 0, "ready": 0, "succeeded": size, "conditions": [condition]}
            self.happened["jobs ended"] += 1
        else:
            there = {pod["metadata"]["labels"][_INDEX] for pod in pods}
            for index in range(size):
                if str(index) not in there:
                    self._create_job_pod(job, index)
            self.happened["starts"] += not status.get("active")
            status |= {"active": size, "ready": n_running}
        self._put_status(job, status)

    def _create_job_pod(self, job: _Object, index: int) -> None:
        self._n_made += 1
        name, template = job["metadata"]["name"], job["spec"]["template"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name,
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
        labels = {**object_at(template, "metadata", "labels"), _INDEX: str(index)}
        metadata: _Object = {"name": f"{name}-{self._n_made}", "namespace": _NAMESPACE, "labels": labels}
        metadata |= {"annotations": object_at(template, "metadata", "annotations"), "ownerReferences": [owner]}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self.cluster.create({**made, "status": {"phase": "Pending"}})

    def _run_pod(self, pod: _Object, *, may_end: bool) -> None:
        """Act as the scheduler and the kubelets, and as whatever gives up pods of lost nodes."""
        metadata = pod["metadata"]
        newest = self.cluster.find("Pod", metadata["name"], namespace=metadata["namespace"])
        if metadata["namespace"] != _NAMESPACE or newest is None:
            return
        if not is_terminated(newest) and not is_gated(newest):
            if self._is_stuck(newest):
                self.happened["pods lost"] += 1
                self._lose_pod(newest)
                return
            if not newest["spec"].get("nodeName") and not self.machines.schedule(newest):
                if newest["metadata"].get("deletionTimestamp"):
                    super()._run_pod(newest, may_end=may_end)
                return
            newest = self.cluster.get("Pod", metadata["name"], namespace=_NAMESPACE)
        if not _owner_of(newest):
            super()._run_pod(newest, may_end=may_end)
        elif newest["spec"].get("nodeName") and newest["status"]["phase"] == "Pending":
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            self._put_status(newest, status)

    def _is_stuck(self, pod: _Object) -> bool:
        """Return whether a pod's node is lost, or, before its start, its workload no longer has a place there."""
        if self.machines.is_lost(pod):
            return True
        if pod["spec"].get("nodeName") or self.machines.levels[-1] != HOST:
            return False
        # Kueue's controller of failed nodes ends such pods (rules/08 §13.4).
        workload = self._workload_of(pod)
        places = {} if workload is None else _places(workload)
        place = places.get(pod["metadata"]["labels"].get(f"{_KUEUE}podset", ""))
        return place is None or (target_of(pod),) not in place

    def _lose_pod(self, pod: _Object) -> None:
        if _owner_of(pod):
            self._delete_pod(pod)
        else:
            self._put_status(pod, {**pod["status"], "phase": "Failed"})

    def _delete_pod(self, pod: _Object) -> None:
        self.cluster.delete("Pod", pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])

    # Invariants.

    def _jobs_and_pods(self) -> Iterable[_Object]:
        pods = (
            pod
            for pod in self.cluster.list("Pod")[0]
            if not _owner_of(pod) and pod["metadata"]["namespace"] == _NAMESPACE
        )
        return (*self.cluster.list("Job")[0], *pods)

    def _workload_of(self, pod: _Object) -> _Object | None:
        return self._workloads().get(pod["metadata"]["annotations"].get(f"{_KUEUE}workload", ""))

    def _check_write(self, old: _Object, new: _Object) -> None:
        super()._check_write(old, new)
        lost, still = (_unhealthy_nodes(entry) for entry in (old, new))
        self.happened["nodes recorded as failed"] += len(still - lost)
        is_admitted = "Admitted" in conditions_that_hold(old) and "Evicted" not in conditions_that_hold(new)
        self.happened["places replaced"] += is_admitted and _places(old) != _places(new)
        self._note_older_copy(old, new)
        before, after = (conditions_that_hold(entry).get("Evicted", {}) for entry in (old, new))
        self.happened["evictions by nodes"] += not before and after.get("reason") == "NodeFailures"

    def _note_older_copy(self, old: _Object, new: _Object) -> None:
        """Note where a second pass on an older copy places pods: they are not charged where that copy had them.

        A pass is of this kind if it moves pods away from a node that is not recorded as failed. The previous leader may
        have replaced what had failed, while the present one has kept its copy all the time (rules/08 §11.10).
        """
        uid = new["metadata"]["uid"]
        before, after = hosts_of(old), hosts_of(new)
        if before != after:
            self._uncharged.pop(uid, None)
        free = {*(after - before)} & self._had[uid]
        if free and any(host not in _unhealthy_nodes(old) for host in before - after):
            self._uncharged[uid] = free
            self.happened["passes on an older copy"] += 1
        self._had[uid] |= set(before)

    def _check_release(self, ref: ObjectRef) -> None:
        """Check that a pod goes only to a place of an admitted workload, on a node that is not lost."""
        pod = self.cluster.get("Pod", ref.name, namespace=_NAMESPACE)
        workload = self._workload_of(pod)
        if workload is None:
            return
        assert "Admitted" in conditions_that_hold(workload), f"{ref} is released before its workload"
        target = pod["spec"]["nodeSelector"].get(HOST, "")
        assert target not in _unhealthy_nodes(workload), f"{ref} is released to {target}, which has failed"
        levels = (HOST,) if self.machines.levels[-1] == HOST else self.machines.levels
        place = _places(workload)[pod["metadata"]["labels"][f"{_KUEUE}podset"]]
        values = tuple(pod["spec"]["nodeSelector"].get(level, "") for level in levels)
        assert values in place, f"{ref} is released to {values}, and has {place}"

    def _check_jobs(self) -> None:
        super()._check_jobs()
        self._check_domains()
        if self.machines.levels[-1] == HOST:
            self._check_room()

    def _check_domains(self) -> None:
        """Check that no domain gets more pods than its workload has places there."""
        levels = (HOST,) if self.machines.levels[-1] == HOST else self.machines.levels
        released: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
        workloads = self._workloads()
        for pod in self._released_pods():
            values = tuple(pod["spec"].get("nodeSelector", {}).get(level, "") for level in levels)
            name = pod["metadata"]["annotations"].get(f"{_KUEUE}workload", "")
            released[name, pod["metadata"]["labels"].get(f"{_KUEUE}podset", ""), values] += 1
        for (name, pod_set, values), n_pods in released.items():
            place = _places(workloads[name]).get(pod_set, {}) if name in workloads else {}
            if values in place:
                assert n_pods <= place[values], f"{n_pods} pods of {name} are in {values}, and {place} are its places"

    def _released_pods(self) -> list[_Object]:
        return [pod for pod in self.machines.pods() if pod["metadata"]["namespace"] == _NAMESPACE and not is_gated(pod)]

    def _check_room(self) -> None:
        """Check that no node gets more pods with a place there than it has room for.

        To Kueue, deactivated or deleted workloads hold nothing, nor does a pod on a node that returned after a second
        pass had moved its place (rules/08 §11.10). Such a pass on an older copy is not charged for what it puts where
        that copy had it, so others may get the same room in its cycle.
        """
        used: Counter[str] = Counter()
        for pod in self._released_pods():
            workload = self._workload_of(pod)
            if workload is None or workload["spec"].get("active") is False or pod["metadata"].get("deletionTimestamp"):
                continue
            if target_of(pod) in self._uncharged.get(workload["metadata"]["uid"], ()):
                continue
            place = _places(workload).get(pod["metadata"]["labels"].get(f"{_KUEUE}podset", ""), {})
            used[target_of(pod)] += (target_of(pod),) in place
        for name, n_pods in used.items():
            if name in self.machines.nodes():
                assert n_pods <= self.machines.cpu(name), f"{n_pods} pods go to {name}"

    def _comes_to_an_end(self) -> bool:
        self.machines.heal_all()
        if not super()._comes_to_an_end():
            return False
        # As in Kueue, freeing a place for another does not requeue waiting workloads; a change of a node does.
        self.machines.touch()
        return self._come_to_rest(self.leader.controller)

    def _is_refused_by_rule(self, write: Write) -> bool:
        # A second pass counts only pods that have not ended, and an admission may not change (rules/08 §11.10, §16).
        status = self._workloads()[write.name].get("status", {})
        return bool(status.get("reclaimablePods")) and "admission" in object_at(write.manifest, "status")

    def _check_end(self, leader: Replica) -> None:
        super()._check_end(leader)
        for pod in self.machines.pods():
            gates = {gate["name"] for gate in pod["spec"].get("schedulingGates", ())}
            workload = self._workload_of(pod) if gates == {f"{_KUEUE}topology"} else None
            is_admitted = workload is not None and "Admitted" in conditions_that_hold(workload)
            assert not is_admitted, f"{pod['metadata']['name']} waits behind a gate for nothing"
        fresh = self._started().controller
        forgotten = [object_.object for object_ in fresh.turn(self.cluster.now).objects if object_.verb is Verb.PATCH]
        assert not forgotten, f"forgotten: {forgotten}"


def _owner_of(pod: _Object) -> str:
    """Return the UID of the job that created a pod; empty for a pod of a group."""
    owners = pod["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner["kind"] == "Job"), "")


def _is_of_group(pod: _Object) -> bool:
    return pod["metadata"]["namespace"] == _NAMESPACE and not _owner_of(pod)


def _unhealthy_nodes(workload: _Object) -> set[str]:
    return {node["name"] for node in workload.get("status", {}).get("unhealthyNodes", ())}


def hosts_of(workload: _Object) -> Counter[str]:
    """Return how many pods of a workload may be on which node."""
    found: Counter[str] = Counter()
    for place in _places(workload).values():
        found.update({values[-1]: count for values, count in place.items()})
    return found


def _places(workload: _Object) -> dict[str, dict[tuple[str, ...], int]]:
    """Return, by pod set, how many pods may be in which domain."""
    assigned = object_at(workload, "status", "admission").get("podSetAssignments")
    found = {}
    for assignment in assigned if isinstance(assigned, list) else ():
        place = decoded(object_at(assignment).get("topologyAssignment") or None)  # type: ignore[arg-type]
        if place is not None:
            found[str(object_at(assignment)["name"])] = dict(place.domains)
    return found
