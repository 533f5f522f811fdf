"""Plays Kubernetes' part on the fake server: jobs create pods, pods run on nodes, nodes are lost and come back."""

from __future__ import annotations

from typing import Any

from kueuecore._json import list_at, object_at, text_at
from kueuecore.api_server import ApiServer
from scripts.day.timetable import NAMESPACE

__all__ = ["Life"]

_Object = dict[str, Any]
_HOST = "kubernetes.io/hostname"


class Life:
    """The job controller, kubelets and the garbage collector. Call it only while nothing else touches the cluster.

    Args:
        cluster: The cluster.
    """

    def __init__(self, cluster: ApiServer) -> None:
        self._cluster = cluster
        self._ended: set[str] = set()
        # Pods of jobs that have lost a node start only at the next step.
        self._shaken: set[str] = set()

    def begin_step(self) -> None:
        """Let time pass."""
        self._shaken.clear()

    def advance(self) -> None:
        """Let jobs and pods react to what was written to them."""
        for job in self._cluster.list("Job")[0]:
            self._run(job)

    def end(self, name: str) -> bool:
        """Finish a job; return whether it was running."""
        job = self._cluster.get("Job", name, namespace=NAMESPACE)
        if not object_at(job, "status").get("active"):
            return False
        self._ended.add(name)
        self._run(job)
        return True

    def lose(self, name: str) -> _Object:
        """Lose a node and everything that runs on it; return the node, to restore it later."""
        node = self._cluster.delete("Node", name)
        for pod in self._cluster.list("Pod")[0]:
            if text_at(pod, "spec", "nodeSelector", _HOST) == name:
                self._shaken.add(_owner(pod))
                self._delete_pod(pod)
        return node

    def restore(self, node: _Object) -> None:
        """Restore a node."""
        metadata = {key: node["metadata"][key] for key in ("name", "labels")}
        self._cluster.create({**node, "metadata": metadata})
        # The server drops the status of a new object; the kubelet reports it.
        self._cluster.patch("Node", metadata["name"], {"status": node["status"]}, subresource="status")

    def _run(self, job: _Object) -> None:
        name, status = job["metadata"]["name"], object_at(job, "status")
        if any(text_at(condition, "type") == "Complete" for condition in list_at(status, "conditions")):
            return
        n_pods = 0 if job["spec"].get("suspend") or name in self._ended else job["spec"]["parallelism"]
        if "kueue.x-k8s.io/podset-required-topology" in object_at(job, "spec", "template", "metadata", "annotations"):
            n_ready = self._run_pods(job, n_pods)
        else:
            n_ready = n_pods
        new: _Object = {"active": n_pods, "ready": n_ready}
        if name in self._ended:
            done = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done"}
            new |= {"succeeded": job["spec"]["completions"], "conditions": [done]}
        if any(status.get(key) != value for key, value in new.items()):
            self._cluster.patch("Job", name, {"status": new}, namespace=NAMESPACE, subresource="status")

    def _run_pods(self, job: _Object, n_pods: int) -> int:
        """Scale a job to `n_pods` pods; return how many run."""
        name = job["metadata"]["name"]
        mine = {pod["metadata"]["name"]: pod for pod in self._cluster.list("Pod")[0] if _owner(pod) == name}
        for pod in [entry for entry in mine.values() if n_pods == 0]:
            self._delete_pod(pod)
        for index in range(n_pods):
            if f"{name}-{index}" not in mine:
                self._create_pod(job, index)
        n_running = 0
        for pod in (owned for owned in self._cluster.list("Pod")[0] if n_pods and _owner(owned) == name):
            is_running = object_at(pod, "status").get("phase") == "Running"
            if is_running or not (name in self._shaken or list_at(pod, "spec", "schedulingGates")):
                n_running += 1
                status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
                if not is_running:
                    its = pod["metadata"]["name"]
                    self._cluster.patch("Pod", its, {"status": status}, namespace=NAMESPACE, subresource="status")
        return n_running

    def _create_pod(self, job: _Object, index: int) -> None:
        template, name = job["spec"]["template"], job["metadata"]["name"]
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": name,
            "uid": job["metadata"]["uid"],
            "controller": True,
        }
        metadata = {
            **template.get("metadata", {}),
            "name": f"{name}-{index}",
            "namespace": NAMESPACE,
            "ownerReferences": [owner],
        }
        metadata["labels"] = {**metadata.get("labels", {}), "batch.kubernetes.io/job-name": name}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        self._cluster.create(pod)

    def _delete_pod(self, pod: _Object) -> None:
        name = pod["metadata"]["name"]
        self._cluster.delete("Pod", name, namespace=NAMESPACE)
        left = self._cluster.find("Pod", name, namespace=NAMESPACE)
        if left is not None:  # the kubelet reports that its containers have ended
            self._cluster.patch("Pod", name, {"status": {"phase": "Failed"}}, namespace=NAMESPACE, subresource="status")


def _owner(pod: _Object) -> str:
    owners = pod["metadata"].get("ownerReferences") or [{}]
    return str(owners[0].get("name", ""))
