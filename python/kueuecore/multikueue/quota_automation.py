"""Sets the quota of the manager's ClusterQueues from that of the workers, where automated (rules/06 §9)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._conditions import condition, with_condition
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.jobs.quantities import total
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.configs import ConfigError, clusters_of, config_of_check, is_of_multikueue
from kueuecore.multikueue.connections import Connection
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.workload_group import patch, status_patch
from kueuecore.writes import Write

__all__ = ["QuotaAutomation"]

_CONDITION = "MultiKueueManagerQuotaAutomation"


class QuotaAutomation:
    """Keeps the nominal quota of ClusterQueues with `quotaManagement: Automated` at the sum over their workers.

    Args:
        stores: The objects seen, by cluster.
        connections: The connections, by cluster.
        settings: The settings of the manager; with the gate off, nothing is done.
    """

    def __init__(
        self, stores: Mapping[str, ObjectStore], connections: Mapping[str, Connection], settings: MultiKueueSettings
    ) -> None:
        self._stores = stores
        self._connections = connections
        self._is_on = settings.has_quota_automation
        self.next: int | None = None
        """When to review the ClusterQueues next; None: nothing that affects them has changed."""

    def look_at_all(self, at: int) -> None:
        """Schedule a review of all ClusterQueues: something that affects them has changed."""
        if self._is_on:
            self.next = at if self.next is None else min(self.next, at)

    def commands(self, now: int) -> list[Write]:
        """Return the patches for ClusterQueues, if a review is due: quotas first, then conditions."""
        if self.next is None or self.next > now:
            return []
        self.next = None
        store = self._stores[MANAGER]
        commands = []
        for cluster_queue in store.of_kind("ClusterQueue"):
            command = self._command(cluster_queue, store, now)
            commands += [command] if command is not None else []
        return commands

    def _command(self, cluster_queue: JsonObject, store: ObjectStore, now: int) -> Write | None:
        strategy = list_at(cluster_queue, "spec", "admissionChecksStrategy", "admissionChecks")
        names = {text_at(admission_check, "name") for admission_check in strategy}
        checks = (manifest for manifest in store.of_kind("AdmissionCheck") if is_of_multikueue(manifest))
        check = next((check for check in checks if text_at(check, "metadata", "name") in names), None)
        if check is None:
            return _without_condition(cluster_queue)
        try:
            config = config_of_check(check, store.named("MultiKueueConfig"))
        except ConfigError as error:
            if not error.is_missing:
                return None
            return _told(
                cluster_queue, "UnsupportedConfiguration", "The referenced MultiKueueConfig was not found.", now
            )
        if text_at(config, "spec", "quotaManagement") != "Automated":
            not_asked = "MultiKueue manager quota automation has not been requested."
            return _told(cluster_queue, "NotRequested", not_asked, now)
        groups = [object_at(group) for group in list_at(cluster_queue, "spec", "resourceGroups")]
        if len(groups) != 1 or len(list_at(groups[0], "flavors")) != 1:
            one = "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor"
            return _told(cluster_queue, "UnsupportedConfiguration", one, now)
        totals = self._totals(cluster_queue, config)
        covered = [resource for resource in list_at(groups[0], "coveredResources") if isinstance(resource, str)]
        if missing := sorted(totals.keys() - set(covered)):
            reported = "manager-side coveredResources is missing resources configured on workers"
            return _told(cluster_queue, "UnsupportedConfiguration", f"{reported}: [{' '.join(missing)}]", now)
        return _with_quotas(cluster_queue, {name: totals.get(name, "0") for name in covered}) or _told(
            cluster_queue,
            "QuotaAutomated",
            "ClusterQueue quota is automatically managed based on MultiKueue workers.",
            now,
            is_true=True,
        )

    def _totals(self, cluster_queue: JsonObject, config: JsonObject) -> dict[str, str]:
        """Sum the nominal quota by resource over the ClusterQueues of same-named LocalQueues on connected workers."""
        name = text_at(cluster_queue, "metadata", "name")
        local = {_key(store) for store in self._stores[MANAGER].of_kind("LocalQueue") if _target(store) == name}
        amounts: dict[str, list[JsonValue]] = {}
        for cluster in clusters_of(config):
            connection = self._connections.get(cluster)
            if connection is None or not connection.is_connected:
                continue
            store = self._stores[cluster]
            for target in sorted({_target(queue) for queue in store.of_kind("LocalQueue") if _key(queue) in local}):
                for group in list_at(store.get("ClusterQueue", target), "spec", "resourceGroups"):
                    for resource in (
                        resource for flavor in list_at(group, "flavors") for resource in list_at(flavor, "resources")
                    ):
                        nominal = object_at(resource).get("nominalQuota")
                        amounts.setdefault(text_at(resource, "name"), []).append(nominal)
        return {resource: total(each) for resource, each in amounts.items()}


def _with_quotas(cluster_queue: JsonObject, totals: Mapping[str, str]) -> Write | None:
    """Return a patch that sets these nominal quotas on the only flavor, without limits; None if it has them already."""
    group = object_at(list_at(cluster_queue, "spec", "resourceGroups")[0])
    flavor = object_at(list_at(group, "flavors")[0])
    there = [
        {"name": text_at(resource, "name"), "nominalQuota": total([object_at(resource).get("nominalQuota")])}
        if object_at(resource).keys() <= {"name", "nominalQuota"}
        else resource
        for resource in list_at(flavor, "resources")
    ]
    wanted: list[JsonValue] = [{"name": name, "nominalQuota": amount} for name, amount in totals.items()]
    if there == wanted:
        return None
    groups: list[JsonValue] = [{**group, "flavors": [{**flavor, "resources": wanted}]}]
    return patch(MANAGER, cluster_queue, {"spec": {"resourceGroups": groups}})


def _told(cluster_queue: JsonObject, reason: str, message: str, now: int, *, is_true: bool = False) -> Write | None:
    status = with_condition(cluster_queue, _CONDITION, is_true=is_true, reason=reason, message=message, now=now)
    return status_patch(MANAGER, cluster_queue, status)


def _without_condition(cluster_queue: JsonObject) -> Write | None:
    if condition(cluster_queue, _CONDITION) is None:
        return None
    conditions = list_at(cluster_queue, "status", "conditions")
    kept: list[JsonValue] = [other for other in conditions if text_at(other, "type") != _CONDITION]
    return status_patch(MANAGER, cluster_queue, {**object_at(cluster_queue, "status"), "conditions": kept})


def _key(local_queue: JsonObject) -> tuple[str, str]:
    return text_at(local_queue, "metadata", "namespace"), text_at(local_queue, "metadata", "name")


def _target(local_queue: JsonObject) -> str:
    return text_at(local_queue, "spec", "clusterQueue")
