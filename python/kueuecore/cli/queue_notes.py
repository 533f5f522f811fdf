"""Notes on the queues of a workload: why they take nothing, where Kueue's message does not say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from kueuecore._json import JsonObject, list_at, text_at
from kueuecore.cli.namespace_labels import namespace_note
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.findings.active_checks import activity_of, is_check
from kueuecore.findings.labels import correction
from kueuecore.states import Stage, WorkloadState
from kueuecore.world import DEFAULT_NAMESPACE, World

__all__ = ["QueueNotes"]

_RUNS = "None"
_DRAINS = "HoldAndDrain"
_DEACTIVATED = "spec.active of the Workload is false: Kueue leaves it alone until that is true again"
_NO_QUEUE = "it names no LocalQueue: set spec.queueName, or the label kueue.x-k8s.io/queue-name of its job"


class QueueNotes:
    """Knows what keeps queues from taking a workload, where Kueue's message does not say it.

    Args:
        world: The objects; it knows which Namespaces were added.
        engine: An engine that holds them.
    """

    def __init__(self, world: World, engine: Engine) -> None:
        self._world = world
        self._engine = engine
        # Of thousands of workloads, most are in the same queues.
        self._known: dict[tuple[str, str, str | None], str] = {}

    def of(self, state: WorkloadState) -> str:
        """Say what keeps the queues of a pending workload from taking it; empty if nothing does.

        Args:
            state: The workload.
        """
        if state.stage is not Stage.PENDING:
            return ""
        if not state.is_active:
            return _DEACTIVATED
        key = state.namespace, state.local_queue, state.cluster_queue
        if key not in self._known:
            found = self._of_local_queue(state) or "; ".join(self._of_cluster_queue(state))
            self._known[key] = found or namespace_note(self._world, self._engine, state)
        return self._known[key]

    def _of_local_queue(self, state: WorkloadState) -> str:
        if not state.local_queue:
            return _NO_QUEUE
        namespace = state.namespace or DEFAULT_NAMESPACE
        queue = self._found("LocalQueue", state.local_queue, namespace)
        if queue is not None:
            policy = text_at(queue, "spec", "stopPolicy") or _RUNS
            return "" if policy == _RUNS else f"stopPolicy of LocalQueue {namespace}/{state.local_queue} is {policy}"
        elsewhere = self._local_queues.get(state.local_queue)
        if elsewhere:
            takes = f"LocalQueue {state.local_queue} of namespace {elsewhere[0]} takes jobs of that namespace alone"
            return f"{takes}: create one in {namespace}"
        known = [name for name, namespaces in self._local_queues.items() if namespace in namespaces]
        return correction(state.local_queue, known, kind="LocalQueue")

    def _of_cluster_queue(self, state: WorkloadState) -> Iterator[str]:
        """What is wrong with its ClusterQueue."""
        if state.cluster_queue is None:
            return
        queue = self._found("ClusterQueue", state.cluster_queue)
        if queue is None:
            yield correction(state.cluster_queue, self._engine.cluster_queues(), kind="ClusterQueue")
            return
        policy = text_at(queue, "spec", "stopPolicy") or _RUNS
        if policy != _RUNS:
            also = ", which also evicts what runs" if policy == _DRAINS else ""
            yield f"stopPolicy of ClusterQueue {state.cluster_queue} is {policy}{also}"
        for entry in list_at(queue, "spec", "admissionChecksStrategy", "admissionChecks"):
            name = text_at(entry, "name")
            check = self._checks.get(name)
            activity = {} if check is None else activity_of(check)
            if check is not None and text_at(activity, "status") != "True":
                why = text_at(activity, "message") or "its controller has not said anything yet"
                yield f"AdmissionCheck {name} is not active: {why}"

    @cached_property
    def _checks(self) -> dict[str, JsonObject]:
        """The AdmissionChecks by name; engines do not keep the messages of their conditions."""
        return {
            text_at(manifest.object, "metadata", "name"): manifest.object
            for manifest in self._world.manifests
            if is_check(manifest)
        }

    @cached_property
    def _local_queues(self) -> dict[str, list[str]]:
        """The namespaces of LocalQueues, by name."""
        found: dict[str, list[str]] = {}
        for queue in self._engine.objects("LocalQueue"):
            found.setdefault(text_at(queue, "metadata", "name"), []).append(text_at(queue, "metadata", "namespace"))
        return found

    def _found(self, kind: str, name: str, namespace: str = "") -> JsonObject | None:
        try:
            return self._engine.object(kind, name, namespace=namespace)
        except UnknownObjectError:
            return None
