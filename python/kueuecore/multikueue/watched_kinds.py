"""The kinds to list and watch on the manager and on its workers."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._arguments import each, shown
from kueuecore._json import JsonObject, text_at
from kueuecore._kinds import KUEUE
from kueuecore.controller.validation import check_version, plain_object
from kueuecore.jobs.context import group_of
from kueuecore.multikueue.adapters import Adapter
from kueuecore.multikueue.commands import MANAGER

__all__ = ["WatchedKinds"]

_MANAGER_KINDS = ("MultiKueueCluster", "MultiKueueConfig", "AdmissionCheck", "ClusterQueue", "LocalQueue", "Workload")
_WORKER_KINDS = ("ClusterQueue", "LocalQueue", "Workload")


class WatchedKinds:
    """The watched kinds with their apiVersion, on the manager and on a worker.

    Args:
        adapters: The adapters of the jobs that are dispatched.
        overflows: Whether jobs move on from the manager. Then ConfigMaps are watched, which store them.
    """

    def __init__(self, adapters: Iterable[Adapter], *, overflows: bool) -> None:
        jobs = {adapter.kind: adapter.api_version for adapter in adapters}
        self.manager = {**dict.fromkeys(_MANAGER_KINDS, KUEUE), **jobs}
        if overflows:
            self.manager["ConfigMap"] = "v1"
        self.worker = {**dict.fromkeys(_WORKER_KINDS, KUEUE), **jobs}

    def are_watched(self, cluster: str, manifest: JsonObject) -> bool:
        """Return whether an object of a cluster is of a watched kind. Other groups have kinds of the same names."""
        wanted = self._of(cluster).get(text_at(manifest, "kind"))
        found = text_at(manifest, "apiVersion")
        return wanted is not None and (not found or group_of(found) == group_of(wanted))

    def listed(self, cluster: str, kind: str, objects: Iterable[object]) -> list[JsonObject]:
        """Return the watched objects of a list, with the kind that an API server leaves out.

        Raises:
            ManifestError: An object has a version that no API server would send.
            TypeError: An object is not plain data.
            ValueError: The kind is not watched.
        """
        kinds = self._of(cluster)
        if kind not in kinds:
            raise ValueError(f"{shown(kind)} is not watched: the kinds are {', '.join(kinds)}")
        listed: list[JsonObject] = []
        for index, object_ in enumerate(each("objects", objects)):
            listed.append({"kind": kind, "apiVersion": kinds[kind], **plain_object(object_, f"objects[{index}]")})
            check_version(listed[-1])
        return [manifest for manifest in listed if self.are_watched(cluster, manifest)]

    def _of(self, cluster: str) -> dict[str, str]:
        return self.manager if cluster == MANAGER else self.worker
