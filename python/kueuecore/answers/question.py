"""What is asked about: objects that are not in a state yet, as that state would take them in."""

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
    """Objects beside a state: the Workloads among them, made of jobs or given, are what is asked about.

    Args:
        workloads: These Workloads, in the order given.
        others: What comes with them: queues, flavors, Namespaces that are missing.
        replaced: Namespace and name of the state's Workloads whose place they or their jobs take.
        jobs: `Kind/name` of the job of each Workload that was made of one, by its namespace and name.
        ignored: Jobs that get no Workload, and why.
        waiting: Jobs that get none until something is there, and what.
    """

    workloads: tuple[Manifest, ...]
    others: tuple[Manifest, ...]
    replaced: tuple[tuple[str, str], ...]
    jobs: dict[tuple[str, str], str]
    ignored: tuple[Ignored, ...]
    waiting: tuple[Problem, ...]

    @classmethod
    def of(cls, manifests: Sequence[Manifest], world: World, *, configuration: Configuration | None = None) -> Question:
        """Work out what manifests mean beside the objects of a state.

        Args:
            manifests: The objects that are asked about.
            world: The objects of the state.
            configuration: Its Configuration: which jobs are managed.

        Raises:
            ManifestError: A job that Kueue's webhook would refuse.
        """
        asked_refs = {_ref(it.object) for it in manifests}
        again = {key for key, job in world.jobs.items() if _ref(job.object) in asked_refs}
        again |= {_key(it.object) for it in manifests if is_workload(it.object)}
        kept = [
            it
            for it in world.manifests
            if _ref(it.object) not in asked_refs and not (is_workload(it.object) and _key(it.object) in again)
        ]
        both = World.of([*kept, *manifests], configuration=configuration, integrations=world.integrations)
        # Objects get names and labels on the way, and keep their sources; jobs stay what they are.
        sources, jobs = {id(it.source) for it in manifests}, set(map(id, manifests))
        made_of_asked = {key for key, job in both.jobs.items() if id(job) in jobs}
        made = set(map(id, both.made))
        workloads: list[Manifest] = []
        others: list[Manifest] = []
        for it in both.manifests:
            if id(it) in made:
                if _key(it.object) in made_of_asked:
                    workloads.append(it)
            elif id(it.source) in sources:
                (workloads if is_workload(it.object) else others).append(it)
        known = {text_at(it.object, "metadata", "name") for it in kept if text_at(it.object, "kind") == "Namespace"}
        if not world.trusted:
            names = {text_at(it.object, "metadata", "namespace") or DEFAULT_NAMESPACE for it in (*workloads, *others)}
            added = (it for it in both.manifests if text_at(it.object, "kind") == "Namespace")
            others[:0] = [it for it in added if text_at(it.object, "metadata", "name") in names - known]
        named = {key: job.object for key, job in both.jobs.items() if key in made_of_asked}
        return cls(
            tuple(map(_placed, workloads)),
            tuple(others),
            tuple(sorted(again)),
            {key: f"{text_at(it, 'kind')}/{text_at(it, 'metadata', 'name')}" for key, it in named.items()},
            tuple(it for it in both.ignored if id(it.manifest) in jobs),
            tuple(it for it in both.waiting if it.object in {object_ref(job.object) for job in manifests}),
        )

    def prepare(self, engine: Engine, *, now: TimeLike) -> None:
        """Bring in what comes with the Workloads, and take away those whose place they take.

        Raises:
            ManifestError: Everything that is wrong with the objects.
        """
        for namespace, name in self.replaced:
            engine.delete("Workload", name, namespace=namespace, now=now)
        engine.apply(self.others, now=now)


def edit_manifests(manifests: Iterable[Manifest], edits: Sequence[Edit]) -> tuple[tuple[Manifest, ...], list[Edit]]:
    """Manifests with the edits that match one of them, and the other edits.

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
    """The same with its namespace."""
    metadata = object_at(manifest.object, "metadata")
    placed = {**metadata, "namespace": _key(manifest.object)[0]}
    return replace(manifest, object={**manifest.object, "metadata": placed})


def _ref(plain: JsonObject) -> tuple[str, str, str, str]:
    ref = object_ref(plain)
    return text_at(plain, "apiVersion").partition("/")[0], ref.kind, ref.namespace or DEFAULT_NAMESPACE, ref.name


def _key(plain: JsonObject) -> tuple[str, str]:
    return text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE, text_at(plain, "metadata", "name")
