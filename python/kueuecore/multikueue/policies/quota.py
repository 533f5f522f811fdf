"""What the manager knows of each worker's quota: the total, what is free, and what can never fit.

Kueue only sums the nominal quotas of all workers (rules/06 §9). Here they are kept separate.

Example:
    >>> queue = {
    ...     "spec": {"resourceGroups": [{"flavors": [
    ...         {"name": "spot", "resources": [{"name": "cpu", "nominalQuota": "8"}]}]}]},
    ...     "status": {"flavorsReservation": [{"name": "spot", "resources": [{"name": "cpu", "total": "5500m"}]}]},
    ... }
    >>> quota = WorkerQuota.of(KnownCluster(name="west", is_connected=True, cluster_queue=queue))
    >>> float(quota.free("cpu"))
    2.5
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore._quantities import number
from kueuecore.multikueue.dispatcher_protocol import Dispatch, KnownCluster

__all__ = ["FlavorQuota", "WorkerQuota", "cannot_hold", "has_room", "requests_of"]

_PODS = "pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorQuota:
    """The quota of one flavor and resource, in whole units.

    Args:
        flavor: The flavor.
        resource: The resource.
        nominal: The value of `nominalQuota`.
        used: The reserved amount.
        most: The most that could be used, including what may be borrowed; None: unknown, as the cohort is not seen.
    """

    flavor: str
    resource: str
    nominal: Fraction
    used: Fraction
    most: Fraction | None

    @property
    def free(self) -> Fraction:
        """What is left of the nominal quota."""
        return max(self.nominal - self.used, Fraction())


@dataclass(frozen=True, slots=True)
class WorkerQuota:
    """The quota of the ClusterQueue that a workload would use on a worker.

    Args:
        flavors: The quota by flavor and resource.
    """

    flavors: tuple[FlavorQuota, ...]

    @classmethod
    def of(cls, cluster: KnownCluster) -> WorkerQuota | None:
        """Return what is known of a worker; None if its ClusterQueue has not been seen.

        Reserved quota is what the worker last reported, so it is as old as that report.
        """
        queue = cluster.cluster_queue
        if queue is None:
            return None
        used = {
            (text_at(flavor, "name"), text_at(resource, "name")): number(object_at(resource).get("total")) or Fraction()
            for flavor in list_at(queue, "status", "flavorsReservation")
            for resource in list_at(flavor, "resources")
        }
        can_borrow = bool(text_at(queue, "spec", "cohortName"))
        found = []
        for group in list_at(queue, "spec", "resourceGroups"):
            for flavor in list_at(group, "flavors"):
                name = text_at(flavor, "name")
                for other in list_at(flavor, "resources"):
                    resource, nominal = (
                        text_at(other, "name"),
                        number(object_at(other).get("nominalQuota")) or Fraction(),
                    )
                    limit = number(object_at(other).get("borrowingLimit")) if can_borrow else Fraction()
                    most = None if limit is None else nominal + limit
                    reserved = used.get((name, resource), Fraction())
                    found.append(FlavorQuota(flavor=name, resource=resource, nominal=nominal, used=reserved, most=most))
        return cls(tuple(found))

    def of_resource(self, resource: str) -> tuple[FlavorQuota, ...]:
        """Return all flavors that have a resource."""
        return tuple(flavor for flavor in self.flavors if flavor.resource == resource)

    def free(self, resource: str) -> Fraction:
        """Return what is left of the nominal quota of a resource, over all flavors."""
        return sum((quota.free for quota in self.of_resource(resource)), Fraction())


def requests_of(workload: JsonObject) -> tuple[Mapping[str, Fraction], ...]:
    """Return what each pod set asks for at least, counted as the workload's quota on the manager."""
    counts = {
        text_at(pod_set, "name"): (int_at(pod_set, "count", default=1), int_at(pod_set, "minCount"))
        for pod_set in list_at(workload, "spec", "podSets")
    }
    found = []
    for assignment in list_at(workload, "status", "admission", "podSetAssignments"):
        asked, least = counts.get(text_at(assignment, "name"), (1, 0))
        n_pods = int_at(assignment, "count", default=asked)
        part = Fraction(least, n_pods) if least and n_pods > least else Fraction(1)
        usage = {name: number(amount) or Fraction() for name, amount in object_at(assignment, "resourceUsage").items()}
        found.append({name: amount * part for name, amount in {_PODS: Fraction(n_pods), **usage}.items()})
    return tuple(found)


def cannot_hold(dispatch: Dispatch, cluster: KnownCluster) -> str:
    """Return why a worker could not hold a workload even if it were idle; empty if it could, or if that is unknown."""
    quota = WorkerQuota.of(cluster)
    if quota is None:
        return ""
    requests = requests_of(dispatch.workload)
    totals: dict[str, Fraction] = {}
    for request in requests:
        for resource, amount in request.items():
            totals[resource] = totals.get(resource, Fraction()) + amount
    for resource, total in totals.items():
        flavors = quota.of_resource(resource)
        if not flavors and total and resource != _PODS:
            return f"it has no quota of {resource}"
        if not flavors or any(flavor.most is None for flavor in flavors):
            continue
        # All pods of a pod set get one flavor (rules/03).
        largest = max(request.get(resource, Fraction()) for request in requests)
        one, every = (how(flavor.most or Fraction() for flavor in flavors) for how in (max, sum))
        if largest > one or total > every:
            return f"{_text(total)} of {resource} are asked for, and it has {_text(Fraction(every))} at most"
    return ""


def has_room(dispatch: Dispatch, cluster: KnownCluster) -> bool:
    """Return whether a worker has enough free quota now, as far as is known, without what it may borrow."""
    quota = WorkerQuota.of(cluster)
    if quota is None:
        return True
    for request in requests_of(dispatch.workload):
        for resource, amount in request.items():
            flavors = quota.of_resource(resource)
            if flavors and amount > max(flavor.free for flavor in flavors):
                return False
    return True


def _text(amount: Fraction) -> str:
    return f"{float(amount):g}"
