"""Turns manifests as users write them into an engine's input: makes Workloads of jobs, adds what is implied."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from kueuecore._arguments import each, flag, mapping
from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore._kinds import KINDS, NAMESPACED
from kueuecore.configuration import Configuration, configuration_for
from kueuecore.engine import Engine
from kueuecore.errors import Problem
from kueuecore.held_manifests import HeldManifests
from kueuecore.jobs import (
    INTEGRATIONS,
    Ignored,
    Integration,
    JobsConfiguration,
    installed_frameworks,
    integration_of,
    workloads_for,
)
from kueuecore.jobs.context import group_of
from kueuecore.jobs.foreign_jobs import is_mini_cluster, owner_keys
from kueuecore.jobs.generated_names import GeneratedNames
from kueuecore.jobs.train_job import RUNTIMES
from kueuecore.manifests import Manifest, ManifestLike, as_manifest
from kueuecore.releases import Release
from kueuecore.times import TimeLike, newest_time

__all__ = ["AppliedWorld", "World", "is_workload", "key_of"]

DEFAULT_NAMESPACE = "default"
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"
_NAMESPACED = NAMESPACED - {"Pod"}  # a pod is a job, where that integration is enabled
_NAMED = frozenset((kind.api_version.rpartition("/")[0], kind.name) for kind in KINDS if kind.name != "Pod")
_KUEUE_GROUP = "kueue.x-k8s.io/"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class AppliedWorld:
    """The report of `World.apply_to`.

    Args:
        warnings: Unknown fields, and keys that are given twice.
        unread: Kinds that play no part, and the number of objects of each.
    """

    warnings: tuple[Problem, ...]
    unread: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class World:
    """The objects from manifests, ready for an engine.

    Args:
        manifests: All objects in their original order: added Namespaces first, the Workload of a job after the job;
            `HeldManifests` if the Workloads stay in an engine.
        made: The Workloads among them that were made from jobs.
        jobs: The job of each made Workload, by namespace and name; for a group of pods, the last pod.
        namespaces: Names of the Namespaces that were added, because an API server has one for each that is used; not
            `default`, which every cluster has.
        ignored: Jobs that get no Workload, and why.
        integrations: The kinds of jobs.
        trusted: Whether the objects come from a dump, which an API server has checked.
        warnings: Unknown fields of jobs.
        waiting: Jobs that get no Workload until an object that they name exists, and which object.
        assumed: What was assumed to be in the cluster besides the manifests, in a sentence each.
        added: Names of all Namespaces that were added, `default` among them.

    Example:
        >>> from kueuecore.manifests import parse_manifests
        >>> world = World.of(parse_manifests('''
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: user-queue, namespace: team-a}}
        ... '''))
        >>> world.namespaces, [manifest.object["kind"] for manifest in world.manifests]
        (('team-a',), ['Namespace', 'LocalQueue'])
    """

    manifests: Sequence[Manifest]
    made: tuple[Manifest, ...]
    jobs: Mapping[tuple[str, str], Manifest]
    namespaces: tuple[str, ...]
    ignored: tuple[Ignored, ...]
    integrations: Mapping[tuple[str, str], Integration]
    trusted: bool
    warnings: tuple[Problem, ...] = ()
    waiting: tuple[Problem, ...] = ()
    assumed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        manifests: Iterable[ManifestLike],
        *,
        configuration: Configuration | None = None,
        release: str | Release | None = None,
        integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS,
        trusted: bool = False,
    ) -> World:
        """Make a world from manifests: work out what they imply.

        Args:
            manifests: Objects of any kinds, in any form.
            configuration: Decides which jobs are managed; by default as in a new installation of Kueue.
            release: The release of Kueue that makes Workloads, such as `0.17`; by default that of the Configuration.
            integrations: The kinds of jobs; `kueuecore.jobs.with_kinds` adds to those that Kueue knows.
            trusted: Whether the objects come from a dump: then no Namespace is added and nothing is checked.

        Raises:
            ManifestError: Kueue's webhook would refuse a job.
            ValueError: The Configuration is for another release.
            UnknownReleaseError: There is no such release.
        """
        settings = configuration_for(configuration, release)
        managed = JobsConfiguration.of(settings)
        if configuration is None and settings is not None:
            managed = replace(managed, frameworks=installed_frameworks(settings.release))
        mapping("integrations", integrations)
        trusted = flag("trusted", trusted)
        given = [as_manifest(manifest, f"manifests[{i}]") for i, manifest in enumerate(each("manifests", manifests))]
        if not trusted:
            given = [_labelled(manifest) for manifest in _named(given)]
        added = () if trusted else missing_namespaces(given, integrations=integrations)
        everything = (*map(_namespace, added), *given)
        jobs = workloads_for(everything, configuration=managed, integrations=integrations)
        jobs.raise_for_problems()
        # A job that comes with its Workload needs no mention.
        ignored = tuple(ignored for ignored in jobs.ignored if not ignored.reason.startswith("its Workload "))
        named = tuple(name for name in added if name != DEFAULT_NAMESPACE)
        merged = _merged(everything, jobs.workloads, jobs.positions)
        if not trusted:
            merged = _numbered(merged)
        pairs = zip(jobs.workloads, jobs.positions, strict=True)
        made_of = {key_of(pair.object): everything[position] for pair, position in pairs}
        made = tuple(
            manifest for manifest in merged if is_workload(manifest.object) and key_of(manifest.object) in made_of
        )
        found = (jobs.warnings, jobs.waiting, jobs.assumed)
        return cls(merged, made, made_of, named, ignored, integrations, trusted, *found, added)

    def workload(self, name: str, *, namespace: str) -> JsonObject:
        """Return a Workload as it was given or made; an empty object if there is none."""
        if isinstance(self.manifests, HeldManifests):
            held = self.manifests.workload(name, namespace=namespace)
            return {} if held is None else held.object
        key = namespace or DEFAULT_NAMESPACE, name
        found = (
            manifest.object
            for manifest in self.manifests
            if is_workload(manifest.object) and key_of(manifest.object) == key
        )
        return next(found, {})

    def of_kind(self, kind: str) -> tuple[Manifest, ...]:
        """Return the objects of a kind, of any group."""
        if isinstance(self.manifests, HeldManifests):
            return self.manifests.of_kind(kind)
        return tuple(manifest for manifest in self.manifests if manifest.object.get("kind") == kind)

    def newest_time(self) -> int | None:
        """The newest creation time or time in a status, in nanoseconds since 1970; `None` if no object has one.

        Future times, such as the end of a backoff, do not count.
        """
        times = [newest_time(_past(manifest.object)) for manifest in self.manifests]
        return max((time for time in times if time is not None), default=None)

    def apply_to(self, engine: Engine, *, now: TimeLike, dry_run: bool = False) -> AppliedWorld:
        """Create all objects at `now`; with `dry_run` only report what would be said about them.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        apply = engine._check if dry_run else engine.apply
        if self.trusted:
            made = set(map(id, self.made))
            applied = apply(
                [manifest for manifest in self.manifests if id(manifest) not in made], now=now, trusted=True
            )
            warnings = (*applied.warnings, *apply(self.made, now=now).warnings)
        else:
            applied = apply(self.manifests, now=now)
            warnings = applied.warnings
        # Count rather than look up: a job may leave its name and namespace to the API server.
        unread = Counter(ref.kind for ref in applied.foreign)
        unread -= Counter(
            text_at(manifest.object, "kind") for manifest in self.manifests if self._is_read(manifest.object)
        )
        unread -= Counter(text_at(owner.object, "kind") for owner in self._other_owners())
        # A note lists kinds that are not jobs themselves, such as CronJobs.
        unread -= Counter(ignored.job.kind for ignored in self.ignored if not self._is_read(ignored.manifest.object))
        return AppliedWorld((*self.warnings, *warnings), dict(sorted(unread.items())))

    def _other_owners(self) -> Iterator[Manifest]:
        """Yield owners of Workloads that are no jobs of Kueue's: others make their Workloads."""
        workloads = [manifest.object for manifest in self.manifests if is_workload(manifest.object)]
        owners = owner_keys(workloads, DEFAULT_NAMESPACE)
        for manifest in self.manifests:
            group, kind = group_of(text_at(manifest.object, "apiVersion")), text_at(manifest.object, "kind")
            if (group, kind, *key_of(manifest.object)) in owners and not self._is_read(manifest.object):
                yield manifest

    def _is_read(self, plain: JsonObject) -> bool:
        """Return whether an object that the engine does not know is a job, or part of one."""
        if text_at(plain, "kind") in RUNTIMES or is_mini_cluster(plain):
            return True
        return integration_of(plain, integrations=self.integrations) is not None


def is_workload(plain: JsonObject) -> bool:
    """Return whether it is Kueue's Workload: Kubernetes has another kind of that name."""
    return text_at(plain, "kind") == "Workload" and text_at(plain, "apiVersion").startswith(_KUEUE_GROUP)


def _namespace_of(plain: JsonObject) -> str:
    return text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE


def _merged(manifests: Sequence[Manifest], made: Sequence[Manifest], positions: Sequence[int]) -> tuple[Manifest, ...]:
    """Put each Workload right after its job: among those created at the same time, the first in the file goes first."""
    after: dict[int, list[Manifest]] = {}
    for position, workload in zip(positions, made, strict=True):
        after.setdefault(position, []).append(workload)
    return tuple(row for index, manifest in enumerate(manifests) for row in (manifest, *after.get(index, ())))


def _numbered(manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """Give Workloads UIDs, as an API server does: they break ties between those created at the same time.

    They count up, so that the first in the files goes first.
    """
    numbered: list[Manifest] = []
    taken = {text_at(manifest.object, "metadata", "uid") for manifest in manifests}
    free = (uid for n in count(1) if (uid := f"00000000-0000-0000-0000-{n:012}") not in taken)
    uids: dict[tuple[str, str], str] = {}
    for manifest in manifests:
        plain = manifest.object
        if is_workload(plain) and not text_at(plain, "metadata", "uid"):
            key = key_of(plain)
            uids[key] = uids.get(key) or next(free)
            plain = {**plain, "metadata": {**object_at(plain, "metadata"), "uid": uids[key]}}
        numbered.append(replace(manifest, object=plain))
    return tuple(numbered)


def _named(manifests: Sequence[Manifest]) -> tuple[Manifest, ...]:
    """Give names to objects of the engine's kinds that leave them to the API server; `workloads_for` names jobs."""
    names = GeneratedNames(manifests, DEFAULT_NAMESPACE)

    def named(manifest: Manifest) -> Manifest:
        kind, group = text_at(manifest.object, "kind"), text_at(manifest.object, "apiVersion").rpartition("/")[0]
        plain = names.named(manifest.object) if (group, kind) in _NAMED else manifest.object
        return manifest if plain is manifest.object else replace(manifest, object=plain)

    return tuple(map(named, manifests))


def key_of(plain: JsonObject) -> tuple[str, str]:
    """Return namespace and name, with the default namespace filled in."""
    return _namespace_of(plain), text_at(plain, "metadata", "name")


def missing_namespaces(
    manifests: Iterable[Manifest], *, integrations: Mapping[tuple[str, str], Integration] = INTEGRATIONS
) -> tuple[str, ...]:
    """Names of the Namespaces that objects are in, and that are not among the objects."""
    used, there = set(), set()
    for manifest in manifests:
        plain = manifest.object
        kind = text_at(plain, "kind")
        if kind == "Namespace":
            there.add(text_at(plain, "metadata", "name"))
        elif kind in _NAMESPACED or integration_of(plain, integrations=integrations) or is_mini_cluster(plain):
            used.add(_namespace_of(plain))
    # An invalid Namespace name is reported for the object in it.
    return tuple(sorted(name for name in used - there if _LABEL.fullmatch(name)))


def _namespace(name: str) -> Manifest:
    labels: JsonObject = {NAMESPACE_NAME_LABEL: name}
    return Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})


def _labelled(manifest: Manifest) -> Manifest:
    """Return a Namespace with the label that every API server sets."""
    plain = manifest.object
    if text_at(plain, "kind") != "Namespace" or text_at(plain, "apiVersion") != "v1":
        return manifest
    metadata = object_at(plain, "metadata")
    labels: JsonObject = {**object_at(metadata, "labels"), NAMESPACE_NAME_LABEL: text_at(metadata, "name")}
    return replace(manifest, object={**plain, "metadata": {**metadata, "labels": labels}})


def _past(plain: JsonObject) -> list[JsonValue]:
    status = {key: value for key, value in object_at(plain, "status").items() if key != "requeueState"}
    return [object_at(plain, "metadata").get("creationTimestamp"), status]
