"""The jobs of a one-cluster scenario as rows: a template for each kind of work, and arrival times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore._json import text_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobsConfiguration
from kueuecore.manifests import Manifest, object_ref, plain_object
from kueuecore.scenarios.job_names import NamedWorkloads
from kueuecore.scenarios.job_parts import JobPart, generated_part, trace_parts
from kueuecore.scenarios.job_variants import depends_on_number, numbered, without_own_texts
from kueuecore.scenarios.work import Arrival, DrawnJobs, Work
from kueuecore.simulation import Happening, Operation
from kueuecore.simulation.copies import Copies, joined_names
from kueuecore.world import World, is_workload

if TYPE_CHECKING:
    from kueuecore.scenarios.generator_reader import GeneratedRun
    from kueuecore.scenarios.trace_part import TracePart

__all__ = ["JobRows", "first_uid"]

_SHORT_NAMES = "ShortWorkloadNames"
_JobKey: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(frozen=True, slots=True, eq=False)
class JobRows:
    """The jobs of a scenario, a row per Workload.

    Args:
        world: The scenario's objects with everything they imply, and some jobs of each work.
        objects: The initial objects.
        copies: The Workloads of the jobs, in order of arrival.
        works: The name of each template's work.
        job_names: For each part, returns kind and name of a job by its index.
        part: The part of each row.
        index: The index of its job there.
    """

    world: World
    objects: Sequence[Manifest]
    copies: Copies
    works: Sequence[str]
    job_names: Sequence[Callable[[int], tuple[str, str]]]
    part: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]

    def job(self, row: int) -> tuple[str, str]:
        """Return kind and name of a row's job."""
        return self.job_names[int(self.part[row])](int(self.index[row]))

    @classmethod
    def of(
        cls,
        given: Sequence[Manifest],
        work: Sequence[Work],
        *,
        generated: GeneratedRun | None,
        traces: Sequence[TracePart],
        configuration: Configuration,
        seed: int,
        trusted: bool = False,
    ) -> JobRows:
        """Work out which jobs arrive.

        Args:
            given: The initial objects.
            work: The work.
            generated: The Workloads from a file of Kueue's performance tests; at the same time, they come first.
            traces: Recorded jobs; at the same time, they come after generated ones.
            configuration: Kueue's Configuration.
            seed: The seed of all random draws.
            trusted: Whether the initial objects come from a dump: then nothing is added or checked.

        Raises:
            ManifestError: Kueue's webhooks would refuse a job, or two jobs have the same name.
        """
        drawn = [_Drawn.of(part, seed) for part in work]
        # Jobs of a work mostly differ only in name: then two of them stand for all with the same drawn values.
        ends = [arrival for part in drawn for arrival in part.ends]
        made = _Made.of(given, ends, configuration, trusted=trusted)
        named = [part.workloads(made) for part in drawn]
        if not all(named):
            arrivals = [part.arrivals if known is None else part.ends for part, known in zip(drawn, named, strict=True)]
            made = _Made.of(given, [arrival for part in arrivals for arrival in part], configuration, trusted=trusted)
        parts = [] if generated is None else [generated_part(generated.copies)]
        parts += (part for trace in traces for part in trace_parts(trace))
        for part, workloads in zip(drawn, named, strict=True):
            parts.append(part.part(made) if workloads is None else part.named_part(workloads))
        _check_names(parts, work)
        return cls._of_parts(made, parts)

    @classmethod
    def _of_parts(cls, made: _Made, parts: Sequence[JobPart]) -> JobRows:
        firsts = np.cumsum([0, *(len(part.templates) for part in parts)])
        lengths = [len(part.names) for part in parts]
        template = np.concatenate(
            [part.template + first for part, first in zip(parts, firsts, strict=False)] or [np.empty(0, np.int64)]
        )
        at = np.concatenate([part.at for part in parts] or [np.empty(0)])
        runs = np.concatenate([part.runs for part in parts] or [np.empty(0)])
        part = np.repeat(np.arange(len(parts)), lengths)
        index = np.concatenate([part.job for part in parts] or [np.empty(0, np.int64)])
        order = np.lexsort((index, part, at))
        every = [name for part in parts for name in part.names]
        names, ends = joined_names([every[row] for row in order.tolist()])
        copies = Copies(
            templates=[template for part in parts for template in part.templates],
            template=template[order].astype(np.uint32),
            names=names,
            ends=ends,
            at=at[order],
            run_seconds=runs[order],
            first_uid=first_uid(made.objects),
        )
        works = [name for part in parts for name in part.works]
        return cls(
            made.world, made.objects, copies, works, [part.job_name for part in parts], part[order], index[order]
        )


@dataclass(frozen=True, slots=True)
class _Made:
    """What manifests were turned into.

    Args:
        world: All of them.
        objects: Those that belong to no job.
        workloads: The Workloads of each job.
        has_short_names: Whether names of Workloads are cut to 63 bytes.
    """

    world: World
    objects: Sequence[Manifest]
    workloads: Mapping[_JobKey, Sequence[Manifest]]
    has_short_names: bool

    @classmethod
    def of(
        cls, given: Sequence[Manifest], arrivals: Sequence[Arrival], configuration: Configuration, *, trusted: bool
    ) -> _Made:
        world = World.of([*given, *(arrival.job for arrival in arrivals)], configuration=configuration, trusted=trusted)
        coming = {arrival.key for arrival in arrivals}
        job_of = {id(manifest): _key(world.jobs[_key(manifest)[1:]]) for manifest in world.made}
        objects: list[Manifest] = []
        workloads: dict[_JobKey, list[Manifest]] = {}
        for manifest in world.manifests:
            key = job_of.get(id(manifest), _key(manifest))
            key = key if key in coming else _key(manifest)
            if key not in coming:
                objects.append(manifest)
            elif is_workload(manifest.object):
                workloads.setdefault(key, []).append(manifest)
        return cls(world, objects, workloads, JobsConfiguration.of(configuration).enabled(_SHORT_NAMES))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Work with what is drawn for its jobs.

    Args:
        work: The work.
        jobs: The draws.
        variants: The combinations of drawn values that occur, each with the indices of its jobs.
    """

    work: Work
    jobs: DrawnJobs
    variants: Sequence[tuple[int, npt.NDArray[np.int64]]]

    @classmethod
    def of(cls, work: Work, seed: int) -> _Drawn:
        jobs = work.drawn(seed)
        order = np.argsort(jobs.variant, kind="stable")
        variants, starts = np.unique(jobs.variant[order], return_index=True)
        # Without jobs there is one part, and no variant.
        return cls(work, jobs, list(zip(variants.tolist(), np.split(order, starts[1:]), strict=False)))

    @property
    def arrivals(self) -> Sequence[Arrival]:
        """Return all jobs."""
        return [self._arrival(index, variant) for index, variant in enumerate(self.jobs.variant.tolist())]

    @property
    def ends(self) -> Sequence[Arrival]:
        """Return the first job of each variant and the last, whose name is the longest."""
        return [arrival for variant in self.variants for arrival in self._ends_of(*variant)]

    def _ends_of(self, variant: int, indices: npt.NDArray[np.int64]) -> Sequence[Arrival]:
        # With one number in their texts: if a decision depends on numbers, they do not stand for the others.
        both = dict.fromkeys((int(indices[0]), int(indices[-1])))
        return [self._arrival(index, variant, number=len(self.jobs)) for index in both]

    def _arrival(self, index: int, variant: int, *, number: int | None = None) -> Arrival:
        job = self.work.job_at(index, variant, number=number)
        return Arrival(job=job, at=float(self.jobs.at[index]), work=self.work.name)

    def workloads(self, made: _Made) -> Sequence[NamedWorkloads] | None:
        """Return how the Workloads of a variant follow from those of its first and last job; None: not all do."""
        found = [self._workloads_of(made, *variant) for variant in self.variants]
        named = [workloads for workloads in found if workloads is not None]
        return named if named and len(named) == len(found) else None

    def _workloads_of(self, made: _Made, variant: int, indices: npt.NDArray[np.int64]) -> NamedWorkloads | None:
        job = self.work.job_of(variant).object
        if depends_on_number(job):
            return None
        keys = [arrival.key for arrival in self._ends_of(variant, indices)]
        first, last = (made.workloads.get(key, ()) for key in (keys[0], keys[-1]))
        if numbered(job, 1) != job:
            first, last = ([_without_own_texts(workload) for workload in workloads] for workloads in (first, last))
        return NamedWorkloads.of(first, last, jobs=(keys[0][2], keys[-1][2]), short=made.has_short_names)

    def named_part(self, found: Sequence[NamedWorkloads]) -> JobPart:
        """Return rows that are copies of the Workloads of each variant's first job."""
        kind, job_name = text_at(self.work.job.object, "kind"), self.work.job_name
        templates: list[Happening] = []
        template, names, job = list[npt.NDArray[np.int64]](), list[str](), list[npt.NDArray[np.int64]]()
        for workloads, (_, indices) in zip(found, self.variants, strict=True):
            n_each, jobs = len(workloads.first), list(map(job_name, indices.tolist()))
            fails = np.repeat(self.jobs.fails[indices], n_each)
            copied = workloads.templates(jobs)
            if workloads.is_one_for_all:
                ends = (False, True) if fails.any() else (False,)
                pairs = [(manifest, end) for end in ends for manifest in copied]
                rows = np.tile(np.arange(n_each), len(jobs)) + n_each * fails
            else:
                pairs, rows = list(zip(copied, fails.tolist(), strict=True)), np.arange(len(fails))
            template.append(rows + len(templates))
            templates += [self._happening(manifest, fails=end) for manifest, end in pairs]
            names += workloads.names(jobs)
            job.append(np.repeat(indices, n_each))
        of_rows = np.concatenate(job)
        return JobPart(
            templates=templates,
            works=[self.work.name] * len(templates),
            template=np.concatenate(template),
            names=names,
            at=self.jobs.at[of_rows],
            runs=self.jobs.runs[of_rows],
            job=of_rows,
            job_name=lambda index: (kind, job_name(index)),
        )

    def part(self, made: _Made) -> JobPart:
        """Return rows for jobs that get no Workload, or different ones."""
        kind, job_name = text_at(self.work.job.object, "kind"), self.work.job_name
        rows = [
            (index, workload)
            for index, arrival in enumerate(self.arrivals)
            for workload in made.workloads.get(arrival.key, ())
        ]
        job = np.array([index for index, _ in rows], np.int64)
        return JobPart(
            templates=[self._happening(workload, fails=bool(self.jobs.fails[index])) for index, workload in rows],
            works=[self.work.name] * len(rows),
            template=np.arange(len(rows)),
            names=[_name_of(workload) for _, workload in rows],
            at=self.jobs.at[job],
            runs=self.jobs.runs[job],
            job=job,
            job_name=lambda index: (kind, job_name(index)),
        )

    def _happening(self, workload: Manifest, *, fails: bool) -> Happening:
        plan = replace(self.work.plan, ends_failed=fails)
        return Happening(at=0, op=Operation.CREATE, object=workload, plan=plan)


def _check_names(parts: Sequence[JobPart], work: Sequence[Work]) -> None:
    """Refuse two jobs whose Workloads would have the same name.

    Raises:
        ManifestError: Two jobs have the same name.
    """
    namespaces: dict[str, list[tuple[int, JobPart]]] = {}
    offset = len(parts) - len(work)
    for index, part in enumerate(parts):
        for namespace in sorted({_namespace(template) for template in part.templates}):
            namespaces.setdefault(namespace, []).append((index, part))
    for namespace, found in namespaces.items():
        taken: dict[str, str] = {}
        if len(found) == 1:
            continue
        for index, part in found:
            homes = [_namespace(template) == namespace for template in part.templates]
            for row, (name, template) in enumerate(zip(part.names, part.template.tolist(), strict=True)):
                name_of_work = part.works[template]
                if homes[template] and taken.setdefault(name, name_of_work) != name_of_work:
                    detail = f"work {taken[name]} and work {name_of_work} both have a job of this name"
                    job = work[index - offset].job_at(int(part.job[row])) if index >= offset else Manifest({})
                    remedy = "rename one of them"
                    raise ManifestError([job.problem(detail, field="metadata.name", remedy=remedy)])


def _without_own_texts(workload: Manifest) -> Manifest:
    return replace(workload, object=without_own_texts(workload.object))


def _namespace(template: Happening) -> str:
    return "" if template.object is None else text_at(plain_object(template.object), "metadata", "namespace")


def first_uid(objects: Iterable[Manifest]) -> int:
    """Return the first UID number after those of the initial Workloads."""
    numbers = (
        _number(text_at(object_.object, "metadata", "uid")) for object_ in objects if is_workload(object_.object)
    )
    return max(numbers, default=0) + 1


def _number(uid: str) -> int:
    root, _, digits = uid.rpartition("-")
    return int(digits) if root == "00000000-0000-0000-0000" and digits.isascii() and digits.isdigit() else 0


def _key(manifest: Manifest) -> _JobKey:
    ref = object_ref(manifest.object)
    return ref.kind, ref.namespace, ref.name


def _name_of(workload: Manifest) -> str:
    return text_at(workload.object, "metadata", "name")
