"""What to list and watch on the manager and on its workers."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._arguments import each, shown
from kueuecore._json import JsonObject, text_at
from kueuecore.controller.validation import check_version, plain_object
from kueuecore.jobs.context import group_of
from kueuecore.multikueue.adapters import Adapter
from kueuecore.multikueue.commands import MANAGER

__all__ = ["WatchedKinds"]

_KUEUE = "kueue.x-k8s.io/v1beta2"
_MANAGER_KINDS = ("MultiKueueCluster", "MultiKueueConfig", "AdmissionCheck", "ClusterQueue", "LocalQueue", "Workload")
_WORKER_KINDS = ("ClusterQueue", "LocalQueue", "Workload")


class WatchedKinds:
    """Kinds with their apiVersion, on the manager and on a worker.

    Args:
        adapters: Of the jobs that are dispatched.
        overflows: Do jobs go on from the manager? That is written down in ConfigMaps.
    """

    def __init__(self, adapters: Iterable[Adapter], *, overflows: bool) -> None:
        jobs = {it.kind: it.api_version for it in adapters}
        self.manager = {**dict.fromkeys(_MANAGER_KINDS, _KUEUE), **jobs}
        if overflows:
            self.manager["ConfigMap"] = "v1"
        self.worker = {**dict.fromkeys(_WORKER_KINDS, _KUEUE), **jobs}

    def are_watched(self, cluster: str, manifest: JsonObject) -> bool:
        """Is an object of a cluster of one of these kinds? Others have kinds of these names, too."""
        wanted = self._of(cluster).get(text_at(manifest, "kind"))
        found = text_at(manifest, "apiVersion")
        return wanted is not None and (not found or group_of(found) == group_of(wanted))

    def listed(self, cluster: str, kind: str, objects: Iterable[object]) -> list[JsonObject]:
        """The objects of a list that are watched, with the kind that an API server leaves out.

        Raises:
            ManifestError: An object has a version that no API server counts.
            TypeError: An object is no plain data.
            ValueError: Nobody looks at this kind.
        """
        kinds = self._of(cluster)
        if kind not in kinds:
            raise ValueError(f"{shown(kind)} is not watched: the kinds are {', '.join(kinds)}")
        listed: list[JsonObject] = []
        for index, it in enumerate(each("objects", objects)):
            listed.append({"kind": kind, "apiVersion": kinds[kind], **plain_object(it, f"objects[{index}]")})
            check_version(listed[-1])
        return [it for it in listed if self.are_watched(cluster, it)]

    def _of(self, cluster: str) -> dict[str, str]:
        return self.manager if cluster == MANAGER else self.worker
