"""How Kueue decides, in plain Python: a readable statement of the rules, and what the engine is compared with.

Everything is written in the simplest way, one function for each rule; a trial removes workloads from the snapshot and
puts them back. It shares no code with the engine and does not load the extension. Manifests must be valid; nothing is
checked.

A good reading order: `amount`, `quantity`, `objects`, `totals` (what a workload asks for); `forest`, `quota`, `share`
(what is available); `assignment`, `assign`, `preempt`, `preempt_fair` (what it gets, and what is preempted);
`pending`, `nominate`, `cycle` (in which order); `reconcile`, `eviction` (what is written between cycles); `state`,
`apply`, `world`, `simulate` (all of it together). `topology` stands apart: it decides where pods run.

`World` does what `kueuecore.Engine` does, and `simulate` what `kueuecore.simulate` does, under the same names.

Example:
    >>> def kueue(kind: str, name: str, spec: dict, namespace: str | None = None) -> dict:
    ...     metadata = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    ...     return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}
    >>> flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": 8}]}]
    >>> groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    >>> pod = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}
    >>> def job(name: str, count: int) -> dict:
    ...     pod_set = {"name": "main", "count": count, "template": {"spec": pod}}
    ...     return kueue("Workload", name, {"queueName": "user-queue", "podSets": [pod_set]}, "team-a")
    >>> world = World(
    ...     [
    ...         {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
    ...         kueue("ResourceFlavor", "default", {}),
    ...         kueue("ClusterQueue", "cluster-queue", {"namespaceSelector": {}, "resourceGroups": groups}),
    ...         kueue("LocalQueue", "user-queue", {"clusterQueue": "cluster-queue"}, "team-a"),
    ...         job("first", 2),
    ...         job("second", 1),
    ...     ],
    ...     now="2026-11-20T09:00:00Z",
    ... )
    >>> first = world.cycle("2026-11-20T09:00:00Z").admissions[0]
    >>> first.name, first.pod_sets[0].flavors, first.pod_sets[0].resource_usage
    ('first', {'cpu': 'default'}, {'cpu': '6'})
    >>> world.cycle("2026-11-20T09:00:01Z").pending[0].message
    "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed"
    >>> world.pending("cluster-queue")
    [('team-a/second', 'inadmissible')]
    >>> world.finish("first", namespace="team-a", now="2026-11-20T10:00:00Z")
    True
    >>> [admission.key for admission in world.cycle("2026-11-20T10:00:01Z").admissions]
    ['team-a/second']
"""

from kueuecore.reference.decision import Admission, Decision, Event, Pending, PodSetAdmission, Preemption, ReplacedSlice
from kueuecore.reference.simulate import Run, SimulatedCycle, simulate
from kueuecore.reference.world import World

__all__ = [
    "Admission",
    "Decision",
    "Event",
    "Pending",
    "PodSetAdmission",
    "Preemption",
    "ReplacedSlice",
    "Run",
    "SimulatedCycle",
    "World",
    "simulate",
]
