"""Every revision of a cluster's objects, and what must be true of all of them."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from urllib3.exceptions import HTTPError

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.kubernetes import LateKinds, follow
from scripts.clusters.place import Cluster

__all__ = ["Ledger", "Revision"]

_KINDS = ("ClusterQueue", "Workload", "Job", "Pod", "Event")


@dataclass(frozen=True, slots=True)
class Revision:
    """A version of an object, as a watch has shown it.

    Args:
        version: Its `resourceVersion`; later ones are higher, across kinds.
        kind: Its kind.
        object: The object.
        is_gone: Whether this is its deletion.
        at: When it was seen, by `time.monotonic`.
    """

    version: int
    kind: str
    object: JsonObject
    is_gone: bool
    at: float

    @property
    def uid(self) -> str:
        """The UID."""
        return text_at(self.object, "metadata", "uid")

    @property
    def name(self) -> str:
        """The name."""
        return text_at(self.object, "metadata", "name")

    @property
    def namespace(self) -> str:
        """The namespace."""
        return text_at(self.object, "metadata", "namespace")


class Ledger:
    """Watches a cluster from now on, and keeps all that it is shown.

    Args:
        cluster: The cluster.
        kinds: What to watch.
    """

    def __init__(self, cluster: Cluster, kinds: Sequence[str] = _KINDS) -> None:
        self._cluster, self._api, self._over = cluster, cluster.api(), LateKinds()
        self._lock = threading.Lock()
        self._revisions: list[Revision] = []
        self.n_listed: Counter[str] = Counter()
        """How often a kind had to be listed, by kind: after the first time, revisions may be missing."""
        self._threads = [threading.Thread(target=self._watch, args=(kind,), daemon=True) for kind in kinds]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._over.end()
        self._api.close()

    def _watch(self, kind: str) -> None:
        history = self._cluster.history(kind)
        if history is not None:
            self.n_listed[kind] = 1
            with suppress(HTTPError):  # etcd has ended
                for version, object_, is_gone in history:
                    self._keep(Revision(version, kind, object_, is_gone, time.monotonic()))
            return
        for news in follow(self._api, kind, late=self._over):
            if news is None:
                continue
            self.n_listed[kind] += news.listed is not None
            is_gone = news.event.get("type") == "DELETED"
            for object_ in news.listed if news.listed is not None else [object_at(news.event, "object")]:
                version = int(text_at(object_, "metadata", "resourceVersion"))
                self._keep(Revision(version, kind, object_, is_gone, time.monotonic()))

    def _keep(self, revision: Revision) -> None:
        with self._lock:
            self._revisions.append(revision)

    def of(self, *kinds: str, namespace: str = "") -> list[Revision]:
        """Return the revisions of some kinds in their order."""
        with self._lock:
            chosen = [row for row in self._revisions if row.kind in kinds and namespace in ("", row.namespace)]
        return sorted(chosen, key=lambda row: row.version)

    def latest(self, kind: str, *, namespace: str = "") -> dict[str, JsonObject]:
        """Return the objects that exist, by name."""
        found: dict[str, JsonObject] = {}
        for row in self.of(kind, namespace=namespace):
            if row.is_gone:
                found.pop(row.name, None)
            else:
                found[row.name] = row.object
        return found

    def completed(self, namespace: str) -> set[str]:
        """Return the names of Jobs that are complete."""
        return {name for name, job in self.latest("Job", namespace=namespace).items() if _is_true(job, "Complete")}

    def succeeded(self, namespace: str) -> set[str]:
        """Return the names of pods that have succeeded."""
        pods = self.of("Pod", namespace=namespace)
        return {row.name for row in pods if text_at(row.object, "status", "phase") == "Succeeded"}

    # What must be true.

    def run_twice(self, namespace: str) -> Iterator[str]:
        """Yield the Jobs that ran more often, or with more pods, than they should.

        Pods that end as their Job is suspended are deleted before the controller of Jobs has counted them, so that the
        next start runs them again: each start has its own pods.
        """
        done: dict[tuple[str, int], set[str]] = defaultdict(set)
        evicted = self._evictions(namespace)
        starts: Counter[str] = Counter()
        start_of_pod: dict[str, int] = {}
        was: dict[str, JsonObject] = {}
        for row in self.of("Job", "Pod", namespace=namespace):
            if row.kind == "Job":
                if _is_started(row.object) and not _is_started(was.get(row.uid, {})):
                    starts[row.uid] += 1
                    if _is_true(was.get(row.uid, {}), "Complete"):
                        yield f"{row.name}: started after it was complete"
                was[row.uid] = row.object
                continue
            for owner in (
                text_at(object_at(each), "uid") for each in list_at(row.object, "metadata", "ownerReferences")
            ):
                start = start_of_pod.setdefault(row.uid, starts[owner])
                if text_at(row.object, "status", "phase") == "Succeeded":
                    done[owner, start].add(row.uid)
        for uid, job in was.items():
            name = text_at(job, "metadata", "name")
            for start in range(1 + starts[uid]):
                if len(done[uid, start]) > int_at(job, "spec", "completions"):
                    yield f"{name}: {len(done[uid, start])} pods of start {start} have succeeded"
            if starts[uid] > 1 + evicted[uid]:
                yield f"{name}: started {starts[uid]} times, evicted {evicted[uid]} times"

    def with_several_workloads(self, namespace: str) -> Iterator[str]:
        """Yield the Jobs that had more than one Workload."""
        names: dict[str, set[str]] = defaultdict(set)
        for row in self.of("Workload", namespace=namespace):
            for owner in map(object_at, list_at(row.object, "metadata", "ownerReferences")):
                names[f"{text_at(owner, 'kind')} {text_at(owner, 'name')}"].add(row.uid)
        return (f"{owner}: {len(found)} Workloads" for owner, found in names.items() if len(found) > 1)

    def _evictions(self, namespace: str) -> Counter[str]:
        """Count evictions by the UID of the Job."""
        counted: Counter[str] = Counter()
        was: dict[str, bool] = {}
        for row in self.of("Workload", namespace=namespace):
            is_evicted = _is_true(row.object, "Evicted")
            if is_evicted and not was.get(row.uid, False):
                for owner in map(object_at, list_at(row.object, "metadata", "ownerReferences")):
                    counted[text_at(owner, "uid")] += 1
            was[row.uid] = is_evicted
        return counted

    def events_of(self, namespace: str) -> dict[str, list[JsonObject]]:
        """Return the Event objects about each object, by kind and name, as they are now."""
        found: dict[str, list[JsonObject]] = defaultdict(list)
        for event in self.latest("Event", namespace=namespace).values():
            about = object_at(event, "involvedObject")
            found[f"{text_at(about, 'kind')} {text_at(about, 'name')}"].append(event)
        return found


def _is_true(object_: JsonObject, type_: str) -> bool:
    conditions = map(object_at, list_at(object_, "status", "conditions"))
    return any(row.get("type") == type_ and row.get("status") == "True" for row in conditions)


def _is_started(job: JsonObject) -> bool:
    return bool(job) and object_at(job, "spec").get("suspend") is not True
