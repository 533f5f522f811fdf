"""What the failure or recovery of a node means for the workloads on it (rules/08 §13.1 to §13.4)."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore.reference import conditions, eviction, times
from kueuecore.reference.objects import key
from kueuecore.reference.selectors import untolerated_taint
from kueuecore.reference.settings import Json
from kueuecore.reference.state import State
from kueuecore.reference.topology.encoding import decoded
from kueuecore.reference.topology.flavors import unhealthy_nodes
from kueuecore.reference.topology.nodes import is_over, is_ready, watched_name
from kueuecore.reference.topology.request import HOSTNAME

PATIENCE = 30 * times.SECOND
# How many failed nodes of a workload are recorded, with the gate for several.
_MAX_FAILED = 8
_WORKLOAD = "kueue.x-k8s.io/workload"
_GATE = "kueue.x-k8s.io/topology"


def stands_on(workload: Json, node: str) -> bool:
    """Return whether its assignment places any of its pods on a node (rules/08 §13.1)."""
    assignments = conditions.admission(workload).get("podSetAssignments") or ()
    return any(node in _nodes_of(assignment) for assignment in assignments)


def used_nodes(workload: Json) -> set[str]:
    """Return the nodes on which its pods are placed, if it is Admitted (rules/08 §13.1)."""
    if not conditions.is_true(workload, "Admitted"):
        return set()
    assignments = conditions.admission(workload).get("podSetAssignments") or ()
    return {node for assignment in assignments for node in _nodes_of(assignment)}


def _nodes_of(assignment: Json) -> set[str]:
    stands = decoded(assignment.get("topologyAssignment"))
    if stands is None or stands.levels[-1:] != (HOSTNAME,):
        return set()
    return {values[-1] for values, count in stands.domains if count > 0}


def reconcile(world: State, name: str) -> int | None:
    """Reconcile a node: mark or unmark it for the workloads on it. Returns when to look again, if at all."""
    return _Look(world, name).run()


class _Look:
    def __init__(self, world: State, name: str) -> None:
        self.world, self.name, self.on = world, name, world.settings.on
        # Kueue leaves open which of several nodes with one hostname it finds.
        named = [item for _, item in sorted(world.kind("Node").items()) if watched_name(item, world.settings) == name]
        self.node = named[0] if named else None
        # Pods bound to the node that may have come too late (rules/08 §13.4).
        self.pinned = [
            pod
            for _, pod in sorted(world.kind("Pod").items())
            if (pod["spec"].get("nodeSelector") or {}).get(HOSTNAME) == name and _workload_of(pod)
        ]

    def run(self) -> int | None:
        """Handle all workloads on the node, by key; Kueue takes them in any order."""
        on_node = [w for _, w in sorted(self.world.kind("Workload").items()) if self._is_on(w)]
        ready = None if self.node is None else conditions.find(self.node, "Ready")
        is_expired = False
        if self.node is not None and ready and not is_ready(self.node):
            left = conditions.since(self.node, "Ready") + PATIENCE - self.world.now
            is_expired = left <= 0
            if not is_expired and not self.on("TASReplaceNodeOnPodTermination"):
                return self.world.now + left
        if self.node is None or not ready:
            self._mark(on_node)
            return None
        if is_expired and self.on("TASReplaceNodeDueToNotReadyOverFixedTime"):
            on_node = self._mark(on_node)
        known = {key(workload) for workload in on_node}
        late = {_workload_of(pod) for pod in self.pinned} - known
        on_node += [w for name, w in sorted(self.world.kind("Workload").items()) if name in late and not _is_out(w)]
        stuck = {key(w): self._stuck_pods(w) for w in on_node if self._asks_for_pods(self.node, w)}
        failed = [workload for workload in on_node if self._has_failed(self.node, workload)]
        self._unmark(workload for workload in on_node if workload not in failed)
        left_over = {key(workload) for workload in self._mark(failed)}
        for workload in on_node:
            if workload not in failed or key(workload) in left_over:
                self._fail_pods(stuck.get(key(workload), []))
        return None

    def _is_on(self, workload: Json) -> bool:
        return self.name in used_nodes(workload) and not _is_out(workload)

    def _asks_for_pods(self, node: Json, workload: Json) -> bool:
        """Return whether it matters which pods exist (rules/08 §13.2)."""
        if not stands_on(workload, self.name):
            return True
        if not is_ready(node):
            return self.on("TASReplaceNodeOnPodTermination")
        hostile, temporary = self._taints(node, workload)
        return (hostile and self.on("TASReplaceNodeOnPodTermination")) or (not hostile and temporary)

    def _has_failed(self, node: Json, workload: Json) -> bool:
        """Return whether the node is lost to a workload (rules/08 §13.2)."""
        if not stands_on(workload, self.name):
            return False
        if self._asks_for_pods(node, workload):
            return not self._has_progressing_pods(workload)
        return not is_ready(node) or self._taints(node, workload)[0]

    def _has_progressing_pods(self, workload: Json) -> bool:
        """Return whether a pod of it runs there, in older releases any of its namespace (rules/08 §13.2)."""
        namespace, is_own = workload["metadata"]["namespace"], self.world.settings.has("OwnPodsProgress")
        pods = [pod for pod in self.world.kind("Pod").values() if pod["metadata"]["namespace"] == namespace]
        pods = [pod for pod in pods if not is_own or _workload_of(pod) == key(workload)]
        node = self.name if self.node is None else self.node["metadata"]["name"]
        run_here = (pod for pod in pods if pod["spec"].get("nodeName") == node)
        is_any = any(not pod["metadata"].get("deletionTimestamp") and not is_over(pod) for pod in run_here)
        return is_any or self.world.has_unseen_pods(key(workload) if is_own else namespace, self.name)

    def _taints(self, node: Json, workload: Json) -> tuple[bool, bool]:
        """Return whether pods there do not tolerate a taint, and whether they do only for a while (rules/08 §13.2)."""
        taints = node["spec"].get("taints") or [] if self.on("TASReplaceNodeOnNodeTaints") else []
        hostile = temporary = False
        for tolerations in self._tolerations(workload):
            lasting = [each for each in tolerations if each.get("tolerationSeconds") is None]
            hostile |= untolerated_taint(taints, tolerations) is not None
            temporary |= untolerated_taint(taints, lasting) is not None
        return hostile, temporary

    def _tolerations(self, workload: Json) -> list[list[Json]]:
        """Return what each pod set on the node tolerates: by template, flavors and all checks (rules/08 §13.2)."""
        found = []
        pod_sets = {pod_set["name"]: pod_set for pod_set in workload["spec"]["podSets"]}
        for assignment in conditions.admission(workload).get("podSetAssignments") or ():
            if self.name not in _nodes_of(assignment) or assignment["name"] not in pod_sets:
                continue
            tolerated = list(pod_sets[assignment["name"]]["template"]["spec"].get("tolerations") or ())
            added: list[Json] = []
            for flavor in sorted(set((assignment.get("flavors") or {}).values())):
                known = self.world.kind("ResourceFlavor").get(flavor)
                added += (known["spec"].get("tolerations") or ()) if known is not None else ()
            for check in conditions.check_states(workload):
                updates = [u for u in check.get("podSetUpdates") or () if u["name"] == assignment["name"]]
                added += [each for update in updates[:1] for each in update.get("tolerations") or ()]
            tolerated += added if self.world.settings.has("TaintsMeetAllTolerations") else ()
            found.append([each for each in tolerated if each.get("operator") not in ("Lt", "Gt")])
        return found

    def _mark(self, workloads: Iterable[Json]) -> list[Json]:
        """Record that the node failed; a second one, or with a gate a ninth, evicts a workload (rules/08 §13.3).

        Returns the others.
        """
        kept = []
        for workload in workloads:
            failed = unhealthy_nodes(workload)
            if conditions.is_true(workload, "Evicted"):
                continue
            marked = conditions.own(workload)
            takes_more = self.on("TASReplaceMultipleFailedNodes") and len(failed) < _MAX_FAILED
            if failed and self.name not in failed and not takes_more:
                named = ", ".join([*failed, self.name])
                message = f"Workload eviction triggered due to multiple TAS assigned node failures, including: {named}"
                event = eviction.evict(marked, "NodeFailures", message, self.world.now)
                self.world.events += [event] if event is not None else []
                self.world.write(marked)
                continue
            if self.name not in failed:
                marked["status"]["unhealthyNodes"] = [{"name": name} for name in (*failed, self.name)]
                self.world.write(marked)
            kept.append(marked)
        return kept

    def _unmark(self, workloads: Iterable[Json]) -> None:
        for workload in (each for each in workloads if self.name in unhealthy_nodes(each)):
            well = conditions.own(workload)
            left = [node for node in well["status"]["unhealthyNodes"] if node["name"] != self.name]
            well["status"]["unhealthyNodes"] = left
            self.world.write(well)

    def _stuck_pods(self, workload: Json) -> list[Json]:
        """Return pods that wait for the node and will never start there (rules/08 §13.4)."""
        return [
            pod
            for pod in self.pinned
            if _workload_of(pod) == key(workload)
            and not pod["spec"].get("nodeName")
            and pod["status"].get("phase") == "Pending"
            and all(gate["name"] != _GATE for gate in pod["spec"].get("schedulingGates") or ())
        ]

    def _fail_pods(self, pods: Iterable[Json]) -> None:
        for pod in pods:
            ended = conditions.own(pod)
            condition: Json = {"type": "TerminatedByKueue", "status": "True", "reason": "UnschedulableOnAssignedNode"}
            condition["message"] = "Pod terminated by Kueue NodeController due to node taint"
            condition["lastTransitionTime"] = times.text(self.world.now)
            others = ended["status"].get("conditions") or []
            ended["status"] |= {"phase": "Failed", "conditions": [*others, condition]}
            self.world.kind("Pod")[key(pod)] = ended


def _is_out(workload: Json) -> bool:
    return conditions.is_finished(workload) or conditions.is_true(workload, "Evicted")


def _workload_of(pod: Json) -> str:
    """Return the key of the Workload that a pod belongs to; empty if it belongs to none."""
    name = pod["metadata"]["annotations"].get(_WORKLOAD)
    return f"{pod['metadata']['namespace']}/{name}" if name else ""
