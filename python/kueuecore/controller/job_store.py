"""Knows which stored objects are jobs, what they own and what they depend on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._nested import remove
from kueuecore.controller.object_store import ObjectStore
from kueuecore.controller.versions import Key, Version, key_of
from kueuecore.errors import ObjectRef
from kueuecore.jobs import Integration, JobsConfiguration, Surroundings, integration_of, pod_group
from kueuecore.jobs.context import annotations_of, is_elastic, labels_of
from kueuecore.jobs.elastic_pods import slice_name
from kueuecore.jobs.injection import SLICE_NAME_ANNOTATION
from kueuecore.jobs.jobs_to_workloads import surroundings_of
from kueuecore.jobs.leader_worker_set import LEADER_WORKER_SET, SET_NAME
from kueuecore.jobs.owners import controller_of
from kueuecore.jobs.pod import group_name
from kueuecore.jobs.pod_group import IS_GROUP_WORKLOAD, POD_GROUP
from kueuecore.jobs.stateful_set import STATEFUL_SET
from kueuecore.jobs.validation import prebuilt_workload
from kueuecore.manifests import object_ref

__all__ = ["JobKey", "JobStore", "linked_by"]

JobKey: TypeAlias = ObjectRef
"""Kind, name and namespace of a job; for pods in a group, those of the group, with kind PodList."""
_Name: TypeAlias = tuple[str, str]
_GROUP = POD_GROUP.kind


class JobStore:
    """An index of stored objects by owner, by group and by the Workload that they name.

    Args:
        objects: The objects, of any kind.
        kinds: Those of them that matter to jobs.
        configuration: How jobs are managed.
        integrations: The kinds of jobs.
    """

    def __init__(
        self,
        objects: ObjectStore,
        kinds: Collection[str],
        configuration: JobsConfiguration,
        integrations: Mapping[tuple[str, str], Integration],
    ) -> None:
        self._objects = objects
        self._kinds = kinds
        self._configuration = configuration
        self._integrations = integrations
        # Keyed as `Surroundings` look them up.
        self._by_key: dict[tuple[str, str, str, str], JsonObject] = {}
        self._groups: defaultdict[_Name, dict[str, JsonObject]] = defaultdict(dict)
        # By owner: the jobs below it, and its Workloads.
        self._children: defaultdict[Key, dict[JobKey, None]] = defaultdict(dict)
        self._owned: defaultdict[Key, dict[_Name, None]] = defaultdict(dict)
        # By set: its pods, and the StatefulSets of a LeaderWorkerSet.
        self._members: defaultdict[Key, dict[Key, None]] = defaultdict(dict)
        # By the Workload that they name.
        self._naming: defaultdict[_Name, dict[JobKey, None]] = defaultdict(dict)
        self._surroundings: Surroundings | None = None
        # By watched kind: jobs known only through their Workloads.
        self._unsure: dict[str, dict[JobKey, None]] = {}
        # The version in which a Workload was first seen with its present owners, who existed before.
        self._owned_since: dict[_Name, Version] = {}

    def get(self, key: Key) -> JsonObject | None:
        """Return a known object."""
        return self._objects.get(key) if key[0] in self._kinds else None

    def __iter__(self) -> Iterator[JsonObject]:
        """Yield all objects."""
        return self._objects.of_kinds(self._kinds)

    def is_job(self, manifest: JsonObject) -> bool:
        """Return whether an object is a job of a known kind."""
        return integration_of(manifest, integrations=self._integrations) is not None

    # Changes.

    def note(self, key: Key, before: JsonObject | None, after: JsonObject | None) -> None:
        """Take in that an object is new, has changed or is gone."""
        if before is not None and after is not None and linked_by(before) == linked_by(after):
            self._replace(after)
        else:
            if before is not None:
                self._unlink(before)
            if after is not None:
                self._link(after)
        if after is None:
            self._owned_since.pop(key[1:], None)
        elif key[0] == "Workload" and (before is None or _owners(before) != _owners(after)):
            self._owned_since[key[1:]] = Version.of(after)
        if any(self._is_followed(entry) for entry in (before, after) if entry is not None):
            return
        if before is None or after is None or _settings(before) != _settings(after):
            self._surroundings = None

    def _is_followed(self, manifest: JsonObject) -> bool:
        """Return whether an object is a job or a Workload, rather than something that jobs depend on."""
        return text_at(manifest, "kind") == "Workload" or self.is_job(manifest)

    def _replace(self, manifest: JsonObject) -> None:
        """Keep the new version of an object that stays where it is."""
        self._by_key[self._long_key(manifest)] = manifest
        if text_at(manifest, "kind") == "Pod" and (job := self.job_key(manifest)).kind == _GROUP:
            self._groups[job.namespace, job.name][text_at(manifest, "metadata", "name")] = manifest

    def _link(self, manifest: JsonObject) -> None:
        kind, namespace, name = key_of(manifest)
        self._by_key[self._long_key(manifest)] = manifest
        for set_ in _sets_of(manifest):
            self._members[set_][key_of(manifest)] = None
        if (first := _slice_of(manifest)) is not None:
            self._members[first][key_of(manifest)] = None
        if kind == "Workload":
            for owner in list_at(manifest, "metadata", "ownerReferences"):
                self._owned[text_at(owner, "kind"), namespace, text_at(owner, "name")][namespace, name] = None
        elif self.is_job(manifest):
            job = self.job_key(manifest)
            if job.kind == _GROUP:
                self._groups[namespace, job.name][name] = manifest
            if (owner := controller_of(manifest)) is not None:
                self._children[text_at(owner, "kind"), namespace, text_at(owner, "name")][job] = None
            for workload in self._named(manifest, job):
                self._naming[namespace, workload][job] = None

    def _unlink(self, manifest: JsonObject) -> None:
        kind, namespace, name = key_of(manifest)
        self._by_key.pop(self._long_key(manifest), None)
        for set_ in _sets_of(manifest):
            remove(self._members, set_, key_of(manifest))
        if (first := _slice_of(manifest)) is not None:
            remove(self._members, first, key_of(manifest))
        if kind == "Workload":
            for owner in list_at(manifest, "metadata", "ownerReferences"):
                remove(self._owned, (text_at(owner, "kind"), namespace, text_at(owner, "name")), (namespace, name))
        elif self.is_job(manifest):
            job = self.job_key(manifest)
            pods = self._groups.get((namespace, job.name), {}) if job.kind == _GROUP else {}
            pods.pop(name, None)
            if (owner := controller_of(manifest)) is not None:
                remove(self._children, (text_at(owner, "kind"), namespace, text_at(owner, "name")), job)
            if not pods:
                self._groups.pop((namespace, job.name), None)
                for workload in self._named(manifest, job):
                    remove(self._naming, (namespace, workload), job)

    def _long_key(self, manifest: JsonObject) -> tuple[str, str, str, str]:
        kind, namespace, name = key_of(manifest)
        return text_at(manifest, "apiVersion"), kind, namespace or self._configuration.default_namespace, name

    def _named(self, job: JsonObject, key: JobKey) -> set[str]:
        """Return the Workloads that belong to a job by name."""
        return {key.name if key.kind == _GROUP else "", prebuilt_workload(job, self._configuration)[0]} - {""}

    # Which jobs are due.

    def job_key(self, job: JsonObject) -> JobKey:
        """Return the job to reconcile when an object changes: for a pod in a group, the group."""
        kind, namespace, name = key_of(job)
        group = group_name(job, self._configuration) if kind == "Pod" else ""
        return ObjectRef(_GROUP, group, namespace) if group else ObjectRef(kind, name, namespace)

    def touched_by(self, manifest: JsonObject) -> Iterator[JobKey]:
        """Return the jobs that a change of a job or a Workload affects."""
        kind, namespace, name = key_of(manifest)
        owners: list[Key]
        if kind == "Workload":
            yield from self._naming.get((namespace, name), ())
            references = list_at(manifest, "metadata", "ownerReferences")
            owners = [(text_at(reference, "kind"), namespace, text_at(reference, "name")) for reference in references]
            if _is_of_group(manifest):
                # Its pods come and go; the group goes with the last one.
                yield ObjectRef(_GROUP, name, namespace)
                owners = [owner for owner in owners if owner[0] != "Pod"]
            for owner in owners:
                job = self.get(owner)
                yield ObjectRef(owner[0], owner[2], namespace) if job is None else self.job_key(job)
        else:
            yield self.job_key(manifest)
            for set_ in _sets_of(manifest):
                if self.get(set_) is not None:
                    yield ObjectRef(set_[0], set_[2], set_[1])
            if _slice_of(manifest) is not None:
                yield from map(self.job_key, self._above(manifest))
            owners = [key_of(manifest)]
        # Includes children of children; a job in an ownership cycle is visited once.
        seen = set(owners)
        while owners:
            for child in self._children.get(owners.pop(), ()):
                yield child
                if (its := (child.kind, child.namespace, child.name)) not in seen:
                    seen.add(its)
                    owners.append(its)

    def _above(self, manifest: JsonObject) -> Iterator[JsonObject]:
        """Yield the owners of an object, each the controller of the one before."""
        seen, namespace = {key_of(manifest)}, text_at(manifest, "metadata", "namespace")
        owner = controller_of(manifest)
        while (above := self.get((text_at(owner, "kind"), namespace, text_at(owner, "name")))) is not None:
            if key_of(above) in seen:
                return
            seen.add(key_of(above))
            yield above
            owner = controller_of(above)

    def job(self, key: JobKey) -> JsonObject | None:
        """Return a job, or the group of some pods."""
        if key.kind != _GROUP:
            found = self.get((key.kind, key.namespace, key.name))
            # A pod of a group is reconciled with its group.
            return found if found is not None and self.job_key(found) == key else None
        pods = self._groups.get((key.namespace, key.name))
        # In order of creation: the first pod represents the group.
        return pod_group(key.name, sorted(pods.values(), key=_age)) if pods else None

    def missed(self, key: JobKey) -> JsonObject | None:
        """Return a job that was missed, as its Workloads show it; None if it has none, or may still be seen."""
        is_group = key.kind == _GROUP
        kind = "Pod" if is_group else key.kind
        owned = self._owned.get((key.kind, key.namespace, key.name), {})
        for place in ((key.namespace, key.name),) if is_group else owned:
            workload = self.get(("Workload", *place))
            if workload is None or _is_of_group(workload) != is_group:
                continue
            if not self._objects.versions.knows(kind, self._owned_since[place]):
                # A Workload may be seen before its job, which another process has seen.
                self._unsure.setdefault(kind, {})[key] = None
                continue
            owners = [
                _stand_in(reference, key.namespace) for reference in list_at(workload, "metadata", "ownerReferences")
            ]
            if is_group:
                pods = [owner for owner in owners if owner["kind"] == "Pod"]
                return pod_group(key.name, pods) if pods else None
            return next(owner for owner in owners if object_ref(owner) == key)
        return None

    def take_unsure(self, kind: str) -> Iterable[JobKey]:
        """Return the jobs that may have been missed, now that a watch of the kind has come further."""
        return self._unsure.pop(kind, ())

    def surroundings(self, job: JsonObject) -> Surroundings:
        """Return what a job depends on, with the Workloads that may belong to it or its owners."""
        if self._surroundings is None:
            around = [entry for entry in self if not self._is_followed(entry)]
            self._surroundings = surroundings_of(around, self._configuration, self._integrations)
        key = key_of(job)
        members = None
        if key[0] in (STATEFUL_SET.kind, LEADER_WORKER_SET.kind):
            members = self._found(self._members.get(key, ()))
        workloads = self._workloads_of(job)
        if is_elastic(job, self._configuration):
            slices = dict.fromkeys(
                ("Workload", text_at(job, "metadata", "namespace"), slice_name(workload)) for workload in workloads
            )
            members = self._found(pod for slice_ in slices for pod in self._members.get(slice_, ()))
        return self._surroundings.beside(workloads, self._by_key, members)

    def _workloads_of(self, job: JsonObject) -> list[JsonObject]:
        namespace = text_at(job, "metadata", "namespace")
        keys = dict.fromkeys((namespace, name) for name in self._named(job, self.job_key(job)))
        if text_at(job, "kind") == _GROUP:
            keys |= {(namespace, text_at(job, "metadata", "name")): None}
        for manifest in (job, *self._above(job)):
            keys |= self._owned.get(key_of(manifest), {})
            for pod in list_at(manifest, "items"):
                keys |= self._owned.get(("Pod", namespace, text_at(pod, "metadata", "name")), {})
        return self._found(("Workload", *key) for key in keys)

    def _found(self, keys: Iterable[Key]) -> list[JsonObject]:
        return [it for key in keys if (it := self.get(key)) is not None]


def _sets_of(manifest: JsonObject) -> Iterator[Key]:
    """Yield the set that a pod serves in and joins; for a StatefulSet, the LeaderWorkerSet that it follows."""
    kind, namespace, _ = key_of(manifest)
    if kind in ("Pod", STATEFUL_SET.kind) and (name := labels_of(manifest).get(SET_NAME)):
        yield LEADER_WORKER_SET.kind, namespace, name
    if kind == "Pod" and text_at(owner := controller_of(manifest), "kind") == STATEFUL_SET.kind:
        yield STATEFUL_SET.kind, namespace, text_at(owner, "name")


def _slice_of(pod: JsonObject) -> Key | None:
    """Return the first slice of the elastic job that a pod belongs to."""
    kind, namespace, _ = key_of(pod)
    first = annotations_of(pod).get(SLICE_NAME_ANNOTATION) if kind == "Pod" else None
    return None if first is None else ("Workload", namespace, first)


def _is_of_group(workload: JsonObject | None) -> bool:
    return workload is not None and annotations_of(workload).get(IS_GROUP_WORKLOAD) == "true"


def _stand_in(owner: JsonValue, namespace: str) -> JsonObject:
    """Return what an owner reference says about its owner."""
    metadata: JsonObject = {"name": text_at(owner, "name"), "namespace": namespace, "uid": text_at(owner, "uid")}
    return {"apiVersion": text_at(owner, "apiVersion"), "kind": text_at(owner, "kind"), "metadata": metadata}


def _age(pod: JsonObject) -> tuple[str, str]:
    return text_at(pod, "metadata", "creationTimestamp"), text_at(pod, "metadata", "name")


def linked_by(manifest: JsonObject) -> list[JsonValue]:
    """Return all that decides to which others an object belongs."""
    metadata = object_at(manifest, "metadata")
    return [manifest.get("apiVersion"), *(metadata.get(name) for name in ("labels", "annotations", "ownerReferences"))]


def _settings(manifest: JsonObject) -> JsonObject:
    """Return the fields of an object that may matter to jobs, without those that change all the time."""
    metadata = {key: object_at(manifest, "metadata").get(key) for key in ("labels", "deletionTimestamp")}
    return {**{key: row for key, row in manifest.items() if key != "status"}, "metadata": metadata}


def _owners(workload: JsonObject) -> list[JsonValue]:
    return list_at(workload, "metadata", "ownerReferences")
