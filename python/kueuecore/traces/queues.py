"""Makes queues for a trace, so that it can be simulated without an existing cluster."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, JsonValue
from kueuecore._kinds import KUEUE
from kueuecore._quantities import number
from kueuecore._text import quoted
from kueuecore.manifests import Manifest
from kueuecore.traces.rules import TraceRules
from kueuecore.traces.trace import Trace

__all__ = ["queues_for"]

_FLAVOR = "default-flavor"


def queues_for(
    trace: Trace, rules: TraceRules, *, quota: Mapping[str, str | int], cohort: str = ""
) -> tuple[Manifest, ...]:
    """Make what the jobs of a trace need: a ResourceFlavor, namespaces, and LocalQueues with a ClusterQueue each.

    Args:
        trace: The trace.
        rules: The rules, which name the queues.
        quota: The nominal quota of each ClusterQueue, by resource, as quantities: `{"cpu": 64, "memory": "256Gi"}`.
        cohort: A cohort in which the ClusterQueues share quota; empty: none.

    Raises:
        ManifestError: The rules do not fit the trace.
        ValueError: A quota is not a quantity, or is missing for a resource that jobs request.

    Example:
        >>> from kueuecore.traces import JobRule, read_trace
        >>> rules = TraceRules(default=JobRule(queue="{queue}/jobs"))
        >>> made = queues_for(read_trace("examples/traces/cluster.swf"), rules, quota={"cpu": 64, "memory": "64Gi"})
        >>> [it.object["metadata"]["name"] for it in made if it.object["kind"] == "ClusterQueue"]
        ['batch.jobs', 'interactive.jobs']
    """
    for resource, amount in quota.items():
        value = number(amount)
        if value is None or value < 0:
            raise ValueError(f"quota[{resource!r}]: {amount!r} is not a quantity; write 64 or 256Gi")
    objects: list[JsonObject] = [{"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": _FLAVOR}}]
    for batch in trace.submissions(rules):
        if missing := sorted(set(batch.requests) - set(quota)):
            raise ValueError(f"quota: jobs request {quoted(missing[0])}; add a quota for it")
        objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": batch.namespace}})
        for queue in batch.local_queues:
            # Namespace names have no dots, so these are unique.
            name = f"{batch.namespace}.{queue}"
            objects.append(_cluster_queue(name, quota, cohort))
            objects.append(
                {
                    "apiVersion": KUEUE,
                    "kind": "LocalQueue",
                    "metadata": {"namespace": batch.namespace, "name": queue},
                    "spec": {"clusterQueue": name},
                }
            )
    return tuple(map(Manifest, objects))


def _cluster_queue(name: str, quota: Mapping[str, str | int], cohort: str) -> JsonObject:
    resources: list[JsonValue] = [{"name": key, "nominalQuota": amount} for key, amount in quota.items()]
    spec: JsonObject = {
        "namespaceSelector": {},
        "resourceGroups": [
            {"coveredResources": list(quota), "flavors": [{"name": _FLAVOR, "resources": resources}]},
        ],
    }
    if cohort:
        spec["cohortName"] = cohort
    return {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
