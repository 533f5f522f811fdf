"""Explains why a job has no Workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from kueuecore._json import object_at
from kueuecore.errors import ObjectRef, Problem
from kueuecore.jobs.context import QUEUE_LABEL
from kueuecore.jobs.lifecycle import integration_of
from kueuecore.manifests import Manifest, object_ref
from kueuecore.world import DEFAULT_NAMESPACE, World, is_workload

__all__ = ["why_without"]

_MAX_QUEUES = 5
_NO_QUEUE = f"it has no label {QUEUE_LABEL}"
_PAGE = "docs/jobs.md says which jobs get one"


def why_without(world: World, given: Iterable[Manifest], *, kind: str, place: list[str], name: str) -> list[Problem]:
    """Say why the jobs that an argument may mean have no Workload; empty if there are no such jobs.

    Args:
        world: All objects.
        given: The objects as they were given.
        kind: The kind that was given; empty if none was.
        place: The namespace that was given, if one was.
        name: The name.
    """

    def is_meant(ref: ObjectRef) -> bool:
        return ref.name == name and kind in ("", ref.kind) and place in ([], [ref.namespace or DEFAULT_NAMESPACE])

    found = list(_known_reasons(world, is_meant))
    return found or list(_other_reasons(world, given, kind, is_meant))


def _known_reasons(world: World, is_meant: Callable[[ObjectRef], bool]) -> Iterator[Problem]:
    """The reasons that the job reconciler gave."""
    for ignored in world.ignored:
        if is_meant(ignored.job):
            yield _without(world, ignored.manifest, ignored.job, ignored.reason)
    for waiting in world.waiting:
        if waiting.object is not None and is_meant(waiting.object):
            yield replace(waiting, message=f"the job has no Workload yet: {waiting.message}")


def _other_reasons(
    world: World, given: Iterable[Manifest], kind: str, is_meant: Callable[[ObjectRef], bool]
) -> Iterator[Problem]:
    """Jobs that the reconciler skips without a reason, and objects that are not jobs, if their kind was given."""
    for manifest in given:
        ref = object_ref(manifest.object)
        if not is_meant(ref) or is_workload(manifest.object):
            continue
        if integration_of(manifest.object, integrations=world.integrations) is not None:
            yield _without(world, manifest, ref, _NO_QUEUE)
        elif kind:
            yield manifest.problem(f"Kueue creates no Workload for a {ref.kind}", remedy=_PAGE)


def _without(world: World, manifest: Manifest, job: ObjectRef, reason: str) -> Problem:
    remedy = _PAGE
    if reason == _NO_QUEUE:
        is_suspended = object_at(manifest.object, "spec").get("suspend") is True
        reason += "; it is suspended, but not by Kueue" if is_suspended else ", so Kueue leaves it alone"
        remedy = _queue_remedy(world, job.namespace or DEFAULT_NAMESPACE)
    problem = Problem(f"it has no Workload: {reason}", object=job, remedy=remedy)
    # The pods of a Deployment are not in any file.
    return manifest.locate(problem) if object_ref(manifest.object) == job else problem


def _queue_remedy(world: World, namespace: str) -> str:
    refs = [object_ref(manifest.object) for manifest in world.manifests]
    queues = sorted(
        ref.name for ref in refs if ref.kind == "LocalQueue" and (ref.namespace or DEFAULT_NAMESPACE) == namespace
    )
    if not queues:
        return f"create a LocalQueue in namespace {namespace}, and set the label to its name"
    named = ", ".join(queues[:_MAX_QUEUES]) + (", ..." if len(queues) > _MAX_QUEUES else "")
    return f"set the label to a LocalQueue in namespace {namespace}: {named}"
