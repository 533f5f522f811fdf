"""Tracks what metrics need to know about objects beyond the engine: labels, hierarchy, and deletions."""

from __future__ import annotations

from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore.configuration import Configuration
from kueuecore.controller.metric_labels import CustomLabels
from kueuecore.controller.versions import Key
from kueuecore.objects import LabelSelector

__all__ = ["MetricObjects", "Owner"]

Owner = tuple[str, tuple[str, ...]]
"""Kind, and the labels that name an object in metrics."""

_KINDS = ("LocalQueue", "ClusterQueue", "Cohort", "Workload")


class MetricObjects:
    """The queues and Cohorts as a controller has them, and the labels of Workloads that count.

    Args:
        configuration: Which labels become labels of metrics, and which LocalQueues have metrics.
    """

    def __init__(self, configuration: Configuration | None = None) -> None:
        settings = configuration.to_dict() if configuration is not None else {}
        local_queues = object_at(settings, "metrics", "localQueueMetrics")
        selector = object_at(local_queues, "localQueueSelector")
        has_gate = configuration is None or configuration.is_enabled("LocalQueueMetrics")
        self.labels = CustomLabels(configuration)
        self._has_local_queues = has_gate and local_queues.get("enable") is not False
        self._selector = LabelSelector._from_json(selector, "") if selector else None
        self._custom: dict[Owner, tuple[str, ...]] = {}
        # ClusterQueue by LocalQueue, of those that have metrics.
        self._exposed: dict[tuple[str, ...], str] = {}
        self._running: set[tuple[str, ...]] = set()
        self._cohorts: set[str] = set()
        # The cohort above, by kind and name.
        self._above: dict[tuple[str, str], str] = {}

    def put(self, key: Key, manifest: JsonObject | None) -> list[Owner]:
        """Take in the current version of an object, None if deleted; return the owners whose counted series end."""
        kind, owner = key[0], (key[2], key[1]) if key[0] == "LocalQueue" else (key[2],)
        if kind == "Workload":
            if self.labels.has(kind):
                self._put_custom((kind, key[1:]), manifest)
            return []
        if kind not in _KINDS:
            return []
        has_changed = self._put_custom((kind, owner), manifest)
        if kind == "LocalQueue":
            return [(kind, owner)] if self._put_local_queue(owner, manifest) or has_changed else []
        ended: list[Owner] = []
        # A Cohort keeps what was counted under its old labels.
        if manifest is None or (has_changed and kind == "ClusterQueue"):
            ended.append((kind, owner))
        if kind == "Cohort":
            (self._cohorts.add if manifest is not None else self._cohorts.discard)(key[2])
        above = text_at(manifest, "spec", "cohortName" if kind == "ClusterQueue" else "parentName")
        before = self._above.pop((kind, key[2]), "")
        if above:
            self._above[kind, key[2]] = above
        if before not in ("", above) and before not in self._cohorts and before not in self._above.values():
            ended.append(("Cohort", (before,)))
        return ended

    def _put_custom(self, owner: Owner, manifest: JsonObject | None) -> bool:
        """Store the custom labels of an object; return whether they have changed."""
        before = self._custom.pop(owner, None)
        if manifest is not None and self.labels.has(owner[0]):
            self._custom[owner] = self.labels.values(owner[0], manifest)
            return before is not None and before != self._custom[owner]
        return False

    def _put_local_queue(self, owner: tuple[str, ...], manifest: JsonObject | None) -> bool:
        """Store a LocalQueue; return whether it stopped, was deleted, or lost its metrics."""
        was_running, was_exposed = owner in self._running, owner in self._exposed
        self._running.discard(owner)
        self._exposed.pop(owner, None)
        if manifest is None:
            return True
        if (text_at(manifest, "spec", "stopPolicy") or "None") == "None":
            self._running.add(owner)
        labels = texts_at(manifest, "metadata", "labels")
        if self._has_local_queues and (self._selector is None or self._selector.matches(labels)):
            self._exposed[owner] = text_at(manifest, "spec", "clusterQueue")
        return (was_running and owner not in self._running) or (was_exposed and owner not in self._exposed)

    def exposes(self, name: str, namespace: str, *, cluster_queue: str | None = None) -> bool:
        """Return whether a LocalQueue has metrics and points to this ClusterQueue."""
        found = self._exposed.get((name, namespace))
        return found is not None and cluster_queue in (None, found)

    def custom(self, kind: str, *labels: str) -> tuple[str, ...]:
        """Return the custom labels of an object; all empty if it does not exist."""
        return self._custom.get((kind, labels)) or self.labels.values(kind, None)

    def ancestors(self, cluster_queue: str) -> list[str]:
        """Return the cohorts above a ClusterQueue, the nearest first; none above a cycle."""
        found: list[str] = []
        cohort = self._above.get(("ClusterQueue", cluster_queue), "")
        while cohort:
            if cohort in found:
                return []
            found.append(cohort)
            cohort = self._above.get(("Cohort", cohort), "")
        return found
