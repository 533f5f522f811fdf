"""What metrics have to know of queues and cohorts beside what an engine tells: which there are, and how they stand."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, text_at
from kueuecore.controller.versions import Key

__all__ = ["MetricQueues"]

_KINDS = ("LocalQueue", "ClusterQueue", "Cohort")


class MetricQueues:
    """LocalQueues, ClusterQueues and Cohorts, as a controller has them."""

    def __init__(self) -> None:
        self._objects: dict[Key, JsonObject] = {}

    def put(self, key: Key, manifest: JsonObject | None) -> None:
        """How an object is now; None if it has gone. Others than queues and cohorts do not matter."""
        if manifest is None:
            self._objects.pop(key, None)
        elif key[0] in _KINDS:
            self._objects[key] = manifest

    def local_queues(self) -> Iterator[tuple[str, str, str, bool]]:
        """Name, namespace, ClusterQueue of each LocalQueue, and whether it is stopped."""
        for (kind, namespace, name), it in sorted(self._objects.items()):
            if kind == "LocalQueue":
                is_stopped = (text_at(it, "spec", "stopPolicy") or "None") != "None"
                yield name, namespace, text_at(it, "spec", "clusterQueue"), is_stopped

    def ancestors(self, cluster_queue: str) -> list[str]:
        """The cohorts above a ClusterQueue, the nearest first; none above a circle."""
        own = text_at(self._objects.get(("ClusterQueue", "", cluster_queue), {}), "spec", "cohortName")
        return self._upwards(own) if own else []

    def cohorts(self) -> Iterator[tuple[str, str, str]]:
        """Each cohort, the one above it, or empty, and the one on top."""
        named: set[str] = set()
        for (kind, _, name), it in self._objects.items():
            named |= {name} if kind == "Cohort" else set()
            named |= {text_at(it, "spec", "cohortName" if kind == "ClusterQueue" else "parentName")}
        for name in sorted(named - {""}):
            upwards = self._upwards(name)
            if upwards:
                yield name, upwards[1] if len(upwards) > 1 else "", upwards[-1]

    def _upwards(self, cohort: str) -> list[str]:
        found: list[str] = []
        while cohort:
            if cohort in found:
                return []
            found.append(cohort)
            cohort = text_at(self._objects.get(("Cohort", "", cohort), {}), "spec", "parentName")
        return found
