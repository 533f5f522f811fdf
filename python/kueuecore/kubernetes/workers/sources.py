"""Knows where the credentials of MultiKueue's workers are, and notices when they change."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.kubernetes.watches import News
from kueuecore.kubernetes.workers.credentials import WorkerCredentialsError, kubeconfig_in, kubeconfig_of

__all__ = ["WorkerSources"]


class WorkerSources:
    """The kubeconfigs in Secrets and files. Of Secrets it keeps nothing else.

    Args:
        validates_paths: Whether files must lie in Kueue's folder for them.
    """

    def __init__(self, *, validates_paths: bool) -> None:
        self.are_listed = False
        """Whether the Secrets were listed."""
        self._validates_paths = validates_paths
        self._secrets: dict[str, bytes | None] = {}
        # The source of each cluster.
        self._sources: dict[str, JsonObject] = {}
        # What was in the file of a cluster when it was last looked at.
        self._files: dict[str, bytes | str] = {}

    def note(self, clusters: Iterable[JsonObject]) -> None:
        """Take in the MultiKueueClusters as they are now."""
        self._sources = {
            text_at(cluster, "metadata", "name"): object_at(cluster, "spec", "clusterSource") for cluster in clusters
        }
        self._files = {cluster: content for cluster, content in self._files.items() if self._is_file(cluster)}

    def read(self, cluster: str, source: JsonObject) -> bytes:
        """Return the kubeconfig of a cluster.

        Raises:
            WorkerCredentialsError: There is none, or it cannot be read.
        """
        try:
            found: bytes | str = kubeconfig_of(source, self._secrets, validates_paths=self._validates_paths)
        except WorkerCredentialsError as error:
            found = str(error)
            raise
        finally:
            if self._is_file(cluster):
                self._files[cluster] = found
        return found if isinstance(found, bytes) else b""

    def hear(self, news: News) -> list[str]:
        """Take in Secrets; return the clusters whose credentials have changed."""
        if news.listed is not None:
            # A kind without a version is one that the server does not know for a moment.
            self.are_listed |= bool(news.version)
            found = {text_at(secret, "metadata", "name"): kubeconfig_in(secret) for secret in news.listed}
        else:
            secret, found = object_at(news.event, "object"), dict(self._secrets)
            name = text_at(secret, "metadata", "name")
            if news.event.get("type") == "DELETED":
                found.pop(name, None)
            elif news.event.get("type") in ("ADDED", "MODIFIED"):
                found[name] = kubeconfig_in(secret)
        before, self._secrets = self._secrets, found
        names = {*before, *found}
        changed = {name for name in names if (name in before, before.get(name)) != (name in found, found.get(name))}
        return sorted(
            cluster
            for cluster, source in self._sources.items()
            if text_at(source, "kubeConfig", "location") in changed and not self._is_file(cluster)
        )

    @property
    def has_files(self) -> bool:
        """Whether a file has to be looked at again."""
        return bool(self._files)

    def changed_files(self) -> list[str]:
        """Look at the files again; return the clusters for which they have changed."""
        changed = []
        for cluster, before in list(self._files.items()):
            try:
                found: bytes | str = self.read(cluster, self._sources[cluster])
            except WorkerCredentialsError as error:
                found = str(error)
            if found != before:
                changed.append(cluster)
        return changed

    def _is_file(self, cluster: str) -> bool:
        return text_at(self._sources.get(cluster), "kubeConfig", "locationType") == "Path"
