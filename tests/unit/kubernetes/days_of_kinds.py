"""A day of each kind of job in virtual time, with no more rights than a role gives: it comes, runs, stops and goes."""

from __future__ import annotations

import copy
from typing import Any

from kueuecore import Configuration
from kueuecore._json import JsonObject, text_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.jobs import INTEGRATIONS, JobsConfiguration, workloads_for
from kueuecore.jobs.context import group_of
from kueuecore.times import SECOND_NS, format_time
from kueuecore.trials.http_replica import HttpReplica, MortalApi
from kueuecore_apiserver import AccessRules, Fault, HttpApiServer, Request
from kueuecore_apiserver.crd_schema import CrdSchema
from kueuecore_apiserver.crds import crds
from kueuecore_apiserver.plain_crds import framework_crds
from tests.jobs import ALL_KINDS, job

Json = dict[str, Any]
START = 1_767_225_600 * SECOND_NS
KUEUE = "kueue.x-k8s.io/v1beta2"
AN = "kueue.x-k8s.io/"
HOST = "kubernetes.io/hostname"
SERVING = ("Deployment", "StatefulSet", "LeaderWorkerSet")
MORE = """
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}
objectRetentionPolicies: {workloads: {afterFinished: 5s, afterDeactivatedByKueue: 5s}}
"""


def completed(part: Any) -> Any:
    """A manifest with what the server asks of its pods."""
    if isinstance(part, list):
        return [completed(row) for row in part]
    if not isinstance(part, dict):
        return part
    whole = {key: completed(row) for key, row in part.items()}
    if "containers" in whole:
        whole["containers"] = [{"image": "i", **row} for row in whole["containers"]]
        whole.setdefault("restartPolicy", "Never")
    return whole


class KindDays:
    """A cluster with queues, checks and nodes, and a replica of `kueuecore serve` with a token.

    Args:
        configuration: The Configuration as YAML.
        access: What the token may do.
        kubeconfig: Writes a kubeconfig for the URL of a server, and returns its path.
    """

    def __init__(self, configuration: str, access: AccessRules) -> None:
        self.configuration = Configuration.parse(configuration + MORE)
        self.cluster = ApiServer(now=START)
        self._refusals = 1
        self._kubelet_works = True
        self.server = HttpApiServer(self.cluster, schemas=CrdSchema.of, access=access, faults=self._fault)
        self.server.load([*crds(), *framework_crds()])
        self._create_queues()

    def _fault(self, request: Request) -> Fault | None:
        if request.verb == "watch":
            return Fault(watch_ends_when_idle=True)
        if self._refusals and (request.verb, request.resource) == ("patch", "workloads"):
            # Nobody knows what has become of it.
            self._refusals -= 1
            return Fault(refusal=RefusedError(500, "no"))
        return None

    def _own(self, kind: str, name: str, spec: Json, namespace: str = "") -> None:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        self.cluster.create({"apiVersion": KUEUE, "kind": kind, "metadata": metadata, "spec": spec})

    def _create_queues(self) -> None:
        labels = {"kubernetes.io/metadata.name": "n"}
        self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": labels}})
        self._own("Topology", "hosts", {"levels": [{"nodeLabel": HOST}]})
        self._own("ResourceFlavor", "spot", {"nodeLabels": {"pool": "spot"}})
        self._own("ResourceFlavor", "placed", {"nodeLabels": {"pool": "placed"}, "topologyName": "hosts"})
        self._own("Cohort", "all", {})
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "config"}
        self._own("ProvisioningRequestConfig", "config", {"provisioningClassName": "c", "managedResources": ["cpu"]})
        check = {"controllerName": f"{AN}provisioning-request", "parameters": parameters}
        self._own("AdmissionCheck", "capacity", check)
        for name, flavor, checks in (("lq", "spot", []), ("placed", "placed", []), ("asks", "spot", ["capacity"])):
            resources = [{"name": name, "nominalQuota": quota} for name, quota in (("cpu", "8"), ("memory", "8Gi"))]
            flavors = [{"name": flavor, "resources": resources}]
            spec: Json = {
                "cohortName": "all",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": ["cpu", "memory"], "flavors": flavors}],
            }
            if checks:
                named = [{"name": check, "onFlavors": []} for check in checks]
                spec["admissionChecksStrategy"] = {"admissionChecks": named}
            self._own("ClusterQueue", name, spec)
            self._own("LocalQueue", name, {"clusterQueue": name}, "n")
        runtime = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime"}
        template = completed({"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}})
        node = {"name": "node", "template": template}
        runtime_spec = {"template": {"spec": {"replicatedJobs": [node]}}, "mlPolicy": {"numNodes": 1}}
        self.cluster.create({**runtime, "metadata": {"name": "torch"}, "spec": runtime_spec})
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(START)}
        status = {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}, "conditions": [ready]}
        metadata = {"name": "n1", "labels": {"pool": "placed", HOST: "n1"}}
        self.cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})

    def begin(self, api: MortalApi) -> None:
        """Let a replica begin."""
        api.dies, api.compares = lambda: "", lambda path: lambda: None
        self.replica = HttpReplica(api, self.cluster, self.configuration, creates_events=True)

    @property
    def kinds(self) -> list[str]:
        """The kinds of jobs that the Configuration enables."""
        enabled = {*JobsConfiguration.of(self.configuration).frameworks}
        return [
            kind
            for kind, (version, _) in ALL_KINDS.items()
            if INTEGRATIONS[group_of(version), kind].framework in enabled
        ]

    def live(self, seconds: int) -> None:
        """Let time go by."""
        end = self.cluster.now + seconds * SECOND_NS
        while self.cluster.now < end:
            self._run_jobs()
            self.replica.hear()
            self.replica.decider.step()
            self.cluster.now += SECOND_NS

    def come(self, kind: str, queue: str = "lq", **labels: str) -> JsonObject:
        """Create a job as Kueue's webhook leaves it."""
        plain = completed(job(kind, f"{kind.lower()}-{queue}", **labels))
        plain["metadata"]["labels"][f"{AN}queue-name"] = queue
        if kind in ("Deployment", "StatefulSet"):
            plain["spec"]["selector"] = {"matchLabels": {"app": "a"}}
            template = plain["spec"]["template"]
            plain["spec"]["template"] = {**template, "metadata": {"labels": {"app": "a"}}}
            del template["spec"]["restartPolicy"]
        if kind == "Pod":
            plain["metadata"]["labels"][f"{AN}managed"] = "true"
        around = [row for name in ("ClusterTrainingRuntime", "LocalQueue") for row in self.cluster.list(name)[0]]
        made, *_ = workloads_for([plain, *around], configuration=JobsConfiguration.of(self.configuration)).jobs
        self.server.load([copy.deepcopy(made)])
        return made

    def pod_of(self, kind: str) -> None:
        """Create a pod of a set, as its controller and Kueue's webhook leave it."""
        (owner,) = self.cluster.list(kind)[0]
        template = ALL_KINDS["Pod"][1]
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {key: owner["metadata"][key] for key in ("name", "uid")} | {"controller": True}
        framework = INTEGRATIONS[group_of(owner["apiVersion"]), kind].framework
        metadata = {
            "name": f"{owner['metadata']['name']}-0",
            "namespace": "n",
            "annotations": {f"{AN}pod-suspending-parent": framework},
            "labels": {f"{AN}queue-name": "lq", f"{AN}managed": "true"},
            "ownerReferences": [reference],
        }
        spec = completed({**template, "schedulingGates": [{"name": f"{AN}admission"}]})
        self.server.load([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])

    def live_through_all(self) -> None:
        """Days of all kinds, from creation to deletion after a retention; jobs in all queues; a node that is lost."""
        for kind in self.kinds:
            self.come(kind, **{"kueue.x-k8s.io/max-exec-time-seconds": "10"})
            if kind in SERVING:
                self.pod_of(kind)
            self.live(40)
            assert kind in SERVING or not self.cluster.list(kind)[0], f"{kind} was not deleted after its retention"
        for queue in ("lq", "asks", "placed"):
            done = self.come("Job", queue)
            self.live(15)
            self.finish(done)
            self.live(15)
        self.pod_that_waits_for_a_lost_node()

    def _run_jobs(self) -> None:
        """What the controllers of jobs, the kubelet and the autoscaler write."""
        for row in self.cluster.list("Job")[0]:
            runs = not row["spec"].get("suspend") and not row.get("status", {}).get("conditions")
            began = row.get("status", {}).get("startTime") or format_time(self.cluster.now)
            status = {"active": 1, "ready": 1, "startTime": began} if runs else {"active": 0, "ready": 0}
            self._put(row, {**row.get("status", {}), **status})
        for row in self.cluster.list("Pod")[0]:
            phase = row.get("status", {}).get("phase", "Pending")
            if row["metadata"].get("deletionTimestamp"):
                self._put(row, {**row["status"], "phase": "Failed"})
            elif phase == "Pending" and self._kubelet_works and not row["spec"].get("schedulingGates"):
                self._put(row, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
        done = {"type": "Provisioned", "status": "True", "reason": "Provisioned", "message": "here it is"}
        for row in self.cluster.list("ProvisioningRequest")[0]:
            self._put(row, {"conditions": [{**done, "lastTransitionTime": format_time(START)}]})

    def _put(self, row: Json, status: Json) -> None:
        if status != row.get("status"):
            name, namespace = row["metadata"]["name"], row["metadata"]["namespace"]
            self.cluster.patch(row["kind"], name, {"status": status}, namespace=namespace, subresource="status")

    def _stored(self, made: JsonObject) -> Json:
        return self.cluster.get(text_at(made, "kind"), text_at(made, "metadata", "name"), namespace="n")

    def finish(self, row: JsonObject) -> None:
        """Let a Job end well."""
        stored = self._stored(row)
        condition = {"type": "Complete", "status": "True", "message": "done", "lastTransitionTime": format_time(START)}
        self._put(stored, {**stored["status"], "active": 0, "ready": 0, "succeeded": 1, "conditions": [condition]})

    def pod_that_waits_for_a_lost_node(self) -> None:
        """Let a pod be placed on a node that then takes nobody any more."""
        pod = self.come("Pod", "placed")
        self._kubelet_works = False
        self.live(10)
        stored = self._stored(pod)
        assert stored["spec"]["nodeSelector"][HOST] == "n1"
        self.cluster.patch("Node", "n1", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
        self.live(40)

    def blocked_owners(self) -> set[tuple[str, str, str]]:
        """What OwnerReferencesPermissionEnforcement asks for: the finalizers of owners that wait for what they own."""
        owners = {
            (reference["apiVersion"], reference["kind"])
            for _, event in self.cluster.history
            for reference in event["object"]["metadata"].get("ownerReferences", ())
            if reference.get("blockOwnerDeletion")
        }
        kinds = {**self.replica.decider.jobs.kinds}
        return {("update", group_of(version), f"{kinds[kind][1]}/finalizers") for version, kind in owners}
