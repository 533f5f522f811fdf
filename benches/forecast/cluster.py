"""Make a cluster for a log: a flavor, a namespace for each user, a ClusterQueue for each queue of the machine."""

from __future__ import annotations

from math import floor

import numpy as np

from benches.forecast.logs import Log
from kueuecore._json import JsonObject, JsonValue
from kueuecore._kinds import KUEUE
from kueuecore.manifests import Manifest

__all__ = ["FLAVOR", "WARM_UP", "cluster_of", "namespace_of", "quotas"]

FLAVOR = "default"
WARM_UP = 0.25
"""The first part of a log: quotas are made from it, and nothing is asked in it."""
_COHORT = "machine"


def quotas(log: Log) -> dict[str, int]:
    """Return the nominal quota of each ClusterQueue in processors, by its share of the warm-up's processor-seconds.

    They are rounded down: the rest is the cohort's.
    """
    early = log.at <= WARM_UP * log.at[-1]
    work = np.bincount(
        log.queue.codes[early], (log.pods * log.run_seconds)[early], minlength=len(log.queue.names)
    ).tolist()
    total = sum(work)
    if len(work) == 1 or not total:
        return {name: floor(log.processors / len(work)) for name in log.queue.names}
    return {name: floor(log.processors * each / total) for name, each in zip(log.queue.names, work, strict=True)}


def cluster_of(log: Log) -> tuple[Manifest, ...]:
    """Return all objects except Workloads: ClusterQueues in one cohort that borrow without limit and do not preempt."""
    objects: list[JsonObject] = [{"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": FLAVOR}}]
    nominal = quotas(log)
    rest = log.processors - sum(nominal.values())
    if len(nominal) > 1:
        spec: JsonObject = {"resourceGroups": _groups(rest)} if rest else {}
        objects.append({"apiVersion": KUEUE, "kind": "Cohort", "metadata": {"name": _COHORT}, "spec": spec})
    for name, quota in sorted(nominal.items()):
        queue: JsonObject = {
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": _groups(quota),
        }
        if len(nominal) > 1:
            queue["cohortName"] = _COHORT
        objects.append({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": queue})
    users = map(namespace_of, sorted(log.user.names))
    objects += ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in users)
    for pair in np.unique(np.stack([log.user.codes, log.queue.codes]), axis=1).T.tolist():
        user, name = log.user.names[pair[0]], log.queue.names[pair[1]]
        objects.append(
            {
                "apiVersion": KUEUE,
                "kind": "LocalQueue",
                "metadata": {"name": name, "namespace": namespace_of(user)},
                "spec": {"clusterQueue": name},
            }
        )
    return tuple(map(Manifest, objects))


def namespace_of(user: str) -> str:
    """Return the namespace of a user."""
    return f"user-{user}"


def _groups(quota: int) -> list[JsonValue]:
    flavor: JsonObject = {"name": FLAVOR, "resources": [{"name": "cpu", "nominalQuota": quota}]}
    return [{"coveredResources": ["cpu"], "flavors": [flavor]}]
