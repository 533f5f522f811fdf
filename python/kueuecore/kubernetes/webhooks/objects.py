"""Keeps what webhooks look up: the objects that jobs depend on, and their owners. Safe to use from several threads."""

from __future__ import annotations

import logging
import threading
from collections import ChainMap
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._text import logged
from kueuecore.api_server import RefusedError
from kueuecore.jobs import INTEGRATIONS, JobsConfiguration, Surroundings
from kueuecore.jobs.context import group_of
from kueuecore.jobs.jobs_to_workloads import surroundings_of
from kueuecore.jobs.owners import controller_of
from kueuecore.kubernetes.api import Api, UnansweredError
from kueuecore.kubernetes.watches import News

__all__ = ["WebhookObjects"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
# What jobs depend on, besides their owners: few objects, which rarely change in what matters.
_SETTINGS = frozenset(
    {
        "AdmissionCheck", "ClusterQueue", "ClusterTrainingRuntime", "LocalQueue", "Namespace", "TrainingRuntime",
        "WorkloadPriorityClass",
    }
)  # fmt: skip
# The kinds that are not watched, though owners may be of them.
_BETWEEN = {("apps/v1", "ReplicaSet"): "replicasets"}
_MAX_HOPS = 12
_Name: TypeAlias = tuple[str, str]


class WebhookObjects:
    """The objects that webhooks look up, as the watches have shown them.

    Args:
        kinds: The kinds that are watched: apiVersion and plural.
        configuration: Which jobs are managed, and how.
        api: Asked for an owner that no watch has shown yet; None: nobody is.
    """

    def __init__(
        self,
        kinds: Mapping[str, tuple[str, str]],
        configuration: JobsConfiguration,
        api: Api | None = None,
    ) -> None:
        self._kinds, self._configuration, self._api = kinds, configuration, api
        self._lock = threading.Lock()
        self._objects: dict[str, dict[_Name, JsonObject]] = {kind: {} for kind in kinds}
        self._unlisted = set(_SETTINGS & set(kinds))
        self._surroundings: Surroundings | None = None

    @property
    def unlisted(self) -> frozenset[str]:
        """The kinds that jobs depend on and that were not listed yet."""
        return frozenset(self._unlisted)

    def hear(self, news: News) -> None:
        """Take in a list or an event of a watch."""
        if news.kind not in self._objects:
            return
        with self._lock:
            if news.listed is not None:
                found = {_name(row): row for row in news.listed}
                self._note(news.kind, self._objects[news.kind], found)
                self._objects[news.kind] = found
                self._unlisted.discard(news.kind)
                return
            row, held = object_at(news.event, "object"), self._objects[news.kind]
            name = _name(row)
            if news.event.get("type") in ("ADDED", "MODIFIED"):
                self._note(news.kind, {name: held.get(name, {})}, {name: row})
                held[name] = row
            elif news.event.get("type") == "DELETED":
                held.pop(name, None)
                self._note(news.kind, {name: row}, {})

    def around(self, job: JsonObject) -> Surroundings:
        """Return what a job depends on."""
        base = self._base()
        found: list[JsonObject] = []
        namespace, kind = text_at(job, "metadata", "namespace"), text_at(job, "kind")
        if kind == "StatefulSet":
            with self._lock:
                rows = self._objects.get("Workload", {})
                found = [row for (place, _), row in rows.items() if place == namespace]
        owners = dict(self._owners(job, namespace))
        # Only what differs is made anew: there may be thousands of queues.
        by_key = ChainMap(owners, base.by_key)  # type: ignore[arg-type]  # it is only read
        return base.beside(found, by_key)

    def _base(self) -> Surroundings:
        with self._lock:
            if self._surroundings is None:
                rows = [row for kind in sorted(_SETTINGS & set(self._objects)) for row in self._objects[kind].values()]
                self._surroundings = surroundings_of(rows, self._configuration, INTEGRATIONS)
            return self._surroundings

    def _note(self, kind: str, before: Mapping[_Name, JsonObject], after: Mapping[_Name, JsonObject]) -> None:
        """Forget what was derived, if something has changed that matters: statuses change all the time."""
        if kind in _SETTINGS and {key: _settings(row) for key, row in before.items()} != {
            key: _settings(row) for key, row in after.items()
        }:
            self._surroundings = None

    def _owners(self, job: JsonObject, namespace: str) -> Iterable[tuple[tuple[str, str, str, str], JsonObject]]:
        """Yield the controllers above a job, as far as they can matter."""
        current = job
        for _ in range(_MAX_HOPS):
            owner = controller_of(current)
            api_version, kind, name = text_at(owner, "apiVersion"), text_at(owner, "kind"), text_at(owner, "name")
            plural = self._plural(api_version, kind)
            if not plural:
                return
            with self._lock:
                found = self._objects.get(kind, {}).get((namespace, name))
            if found is None or text_at(found, "metadata", "uid") != text_at(owner, "uid"):
                found = self._asked(api_version, plural, namespace, name) or found
            if found is None:
                return
            current = {"apiVersion": api_version, "kind": kind, **found}
            yield (api_version, kind, namespace, name), current

    def _plural(self, api_version: str, kind: str) -> str:
        """Return the plural of a kind that owns jobs; empty if it is none of these."""
        if (api_version, kind) in _BETWEEN:
            return _BETWEEN[api_version, kind]
        if (integration := INTEGRATIONS.get((group_of(api_version), kind))) is None:
            return ""
        known, plural = self._kinds.get(kind, (api_version, f"{kind.lower()}s"))
        return plural if known == integration.api_version == api_version else ""

    def _asked(self, api_version: str, plural: str, namespace: str, name: str) -> JsonObject | None:
        """Return an owner that the API server has; None if it has none, or does not say."""
        if self._api is None:
            return None
        prefix = "apis" if "/" in api_version else "api"
        path = f"/{prefix}/{api_version}/namespaces/{namespace}/{plural}/{name}"
        try:
            return self._api.get(path)
        except (RefusedError, UnansweredError) as error:
            if not isinstance(error, RefusedError) or error.code != 404:
                _LOGGER.warning("an owner cannot be read", extra={"path": path, "error": logged(error)})
            return None


def _name(row: JsonObject) -> _Name:
    return text_at(row, "metadata", "namespace"), text_at(row, "metadata", "name")


def _settings(row: JsonObject) -> JsonObject:
    """Return the part of an object that jobs may depend on."""
    labels = object_at(row, "metadata").get("labels")
    return {"labels": labels, **{name: part for name, part in row.items() if name not in ("metadata", "status")}}
