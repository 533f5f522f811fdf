"""Prepares objects that are not in a state yet, so that they can be tried on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.jobs import Ignored
from kueuecore.manifests import Manifest, object_ref
from kueuecore.scenarios.edits import Edit
from kueuecore.times import TimeLike
from kueuecore.world import DEFAULT_NAMESPACE, World, is_workload

__all__ = ["Question", "edit_manifests"]


@dataclass(frozen=True, slots=True)
class Question:
    """Objects to try on a state. The question is about the Workloads among them, given or made from jobs.

    Args:
        workloads: These Workloads, in the order given.
        others: Objects to add with them: queues, flavors, missing Namespaces.
        replaced: Namespaces and names of the state's Workloads that they, or their jobs, replace.
        jobs: `Kind/name` of the job behind a Workload, by the Workload's namespace and name.
        ignored: Jobs that get no Workload, and why.
        waiting: Jobs that get none until something exists, and what.
        assumed: What was assumed to be in the cluster for them, in a sentence each.
    """

    workloads: tuple[Manifest, ...]
    others: tuple[Manifest, ...]
    replaced: tuple[tuple[str, str], ...]
    jobs: dict[tuple[str, str], str]
    ignored: tuple[Ignored, ...]
    waiting: tuple[Problem, ...]
    assumed: tuple[str, ...] = ()

    @classmethod
    def of(cls, manifests: Sequence[Manifest], world: World, *, configuration: Configuration | None = None) -> Question:
        """Work out what manifests mean on top of the objects of a state.

        Args:
            manifests: The objects to ask about.
            world: The objects of the state.
            configuration: The Configuration, which says which jobs are managed.

        Raises:
            ManifestError: Kueue's webhook would reject a job.
        """
        asked_refs = {_ref(manifest.object) for manifest in manifests}
        again = {key for key, job in world.jobs.items() if _ref(job.object) in asked_refs}
        again |= {_key(manifest.object) for manifest in manifests if is_workload(manifest.object)}
        kept = [
            manifest
            for manifest in world.manifests
            if _ref(manifest.object) not in asked_refs
            and not (is_workload(manifest.object) and _key(manifest.object) in again)
        ]
        both = World.of([*kept, *manifests], configuration=configuration, integrations=world.integrations)
        # Objects may be copied to add names and labels, and keep their sources; jobs stay the same objects.
        sources, jobs = {id(manifest.source) for manifest in manifests}, set(map(id, manifests))
        made_of_asked = {key for key, job in both.jobs.items() if id(job) in jobs}
        made = set(map(id, both.made))
        workloads: list[Manifest] = []
        others: list[Manifest] = []
        for manifest in both.manifests:
            if id(manifest) in made:
                if _key(manifest.object) in made_of_asked:
                    workloads.append(manifest)
            elif id(manifest.source) in sources:
                (workloads if is_workload(manifest.object) else others).append(manifest)
        known = {
            text_at(manifest.object, "metadata", "name")
            for manifest in kept
            if text_at(manifest.object, "kind") == "Namespace"
        }
        if not world.trusted:
            names = {
                text_at(workload.object, "metadata", "namespace") or DEFAULT_NAMESPACE
                for workload in (*workloads, *others)
            }
            added = (manifest for manifest in both.manifests if text_at(manifest.object, "kind") == "Namespace")
            others[:0] = [
                manifest for manifest in added if text_at(manifest.object, "metadata", "name") in names - known
            ]
        named = {key: job.object for key, job in both.jobs.items() if key in made_of_asked}
        return cls(
            tuple(map(_placed, workloads)),
            tuple(others),
            tuple(sorted(again)),
            {key: f"{text_at(none, 'kind')}/{text_at(none, 'metadata', 'name')}" for key, none in named.items()},
            tuple(ignored for ignored in both.ignored if id(ignored.manifest) in jobs),
            tuple(
                problem for problem in both.waiting if problem.object in {object_ref(job.object) for job in manifests}
            ),
            tuple(name for name in both.assumed if name not in world.assumed),
        )

    def prepare(self, engine: Engine, *, now: TimeLike) -> None:
        """Delete the Workloads that are replaced, and add the other objects.

        Raises:
            ManifestError: Everything that is wrong with the objects.
        """
        for namespace, name in self.replaced:
            engine.delete("Workload", name, namespace=namespace, now=now)
        engine.apply(self.others, now=now)


def edit_manifests(manifests: Iterable[Manifest], edits: Sequence[Edit]) -> tuple[tuple[Manifest, ...], list[Edit]]:
    """Apply edits to the manifests that they match; returns the manifests, and the edits that matched none.

    Raises:
        ManifestError: An edit does not fit a manifest that it matches.
    """
    changed: list[Manifest] = []
    matched: set[int] = set()
    for manifest in manifests:
        for index, edit in enumerate(edits):
            if edit.matches(manifest):
                matched.add(index)
                try:
                    manifest = replace(manifest, object=edit.apply(manifest.object))
                except ValueError as error:
                    raise ManifestError([manifest.problem(str(error), field=edit.path)]) from None
        changed.append(manifest)
    return tuple(changed), [edit for index, edit in enumerate(edits) if index not in matched]


def _placed(manifest: Manifest) -> Manifest:
    """The manifest with its namespace written out."""
    metadata = object_at(manifest.object, "metadata")
    placed = {**metadata, "namespace": _key(manifest.object)[0]}
    return replace(manifest, object={**manifest.object, "metadata": placed})


def _ref(plain: JsonObject) -> tuple[str, str, str, str]:
    ref = object_ref(plain)
    return text_at(plain, "apiVersion").partition("/")[0], ref.kind, ref.namespace or DEFAULT_NAMESPACE, ref.name


def _key(plain: JsonObject) -> tuple[str, str]:
    return text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE, text_at(plain, "metadata", "name")
