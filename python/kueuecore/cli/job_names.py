"""The jobs of Workloads, by all the names under which a person may know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.held_manifests import HeldManifests
from kueuecore.jobs.pod import GROUP_NAME
from kueuecore.manifests import Manifest
from kueuecore.world import DEFAULT_NAMESPACE, World, is_workload

__all__ = ["JobName", "jobs_with_workloads"]

_Name: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


class JobName(NamedTuple):
    """A job, and the namespace and name of one of its Workloads."""

    kind: str
    name: str
    workload: tuple[str, str]


def jobs_with_workloads(world: World, given: Iterable[Manifest]) -> Iterator[JobName]:
    """Yield the jobs of Workloads: from which they were made here, or that own them, directly or through others.

    A Deployment owns the Workloads of its pods, a CronJob those of its Jobs, and each pod of a group has the Workload
    of the group.

    Args:
        world: All objects.
        given: The objects as they were given.
    """
    held = world.manifests if isinstance(world.manifests, HeldManifests) else None
    objects = [*world.manifests, *given] if held is None else held.others
    owners = {_name(object_.object): _owners(object_.object) for object_ in objects}
    for key, job in world.jobs.items():
        yield from _with_owners(_name(job.object), owners, key)
    for namespace, workload, found in held.owners if held is not None else ():
        for kind, name in found:
            yield from _with_owners((kind, namespace, name), owners, (namespace, workload))
    for object_ in objects:
        metadata = object_at(object_.object, "metadata")
        namespace, name = _name(object_.object)[1:]
        if is_workload(object_.object):
            key = text_at(metadata, "namespace"), name
            for owner in _owners(object_.object):
                yield from _with_owners(owner, owners, key)
        elif text_at(object_.object, "kind") == "Pod" and (group := text_at(metadata, "labels", GROUP_NAME)):
            yield JobName("Pod", name, (namespace, group))


def _with_owners(job: _Name, owners: Mapping[_Name, list[_Name]], workload: tuple[str, str]) -> Iterator[JobName]:
    """Yield a job and what owns it."""
    seen, left = {job}, [job]
    while left:
        kind, namespace, name = left.pop(0)
        if kind != "PodList":  # the pods of a group have names of their own
            yield JobName(kind, name, workload)
        more = [owner for owner in owners.get((kind, namespace, name), ()) if owner not in seen]
        seen.update(more)
        left += more


def _name(plain: JsonObject) -> _Name:
    metadata = object_at(plain, "metadata")
    return text_at(plain, "kind"), text_at(metadata, "namespace") or DEFAULT_NAMESPACE, text_at(metadata, "name")


def _owners(plain: JsonObject) -> list[_Name]:
    namespace = _name(plain)[1]
    owners = map(object_at, list_at(plain, "metadata", "ownerReferences"))
    return [(text_at(owner, "kind"), namespace, text_at(owner, "name")) for owner in owners]
