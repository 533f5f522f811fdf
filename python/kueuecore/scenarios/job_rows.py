"""The jobs of a one-cluster scenario as rows: a template for each kind of work, and arrival times."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, object_at, text_at, texts_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobsConfiguration
from kueuecore.jobs.workload_names import workload_name
from kueuecore.manifests import Manifest, object_ref, plain_object
from kueuecore.scenarios.job_parts import JobPart, generated_part, part_without_rows, trace_parts
from kueuecore.scenarios.work import Arrival, Work
from kueuecore.simulation import Happening, Operation
from kueuecore.simulation.copies import Copies, joined_names
from kueuecore.world import World, is_workload

if TYPE_CHECKING:
    from kueuecore.scenarios.generator_reader import GeneratedRun
    from kueuecore.scenarios.trace_part import TracePart

__all__ = ["JOB_UID", "JobRows", "first_uid"]

# The fields in which Workloads differ if their jobs differ only in name.
JOB_UID = "kueue.x-k8s.io/job-uid"
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
        place: Its index there.
    """

    world: World
    objects: Sequence[Manifest]
    copies: Copies
    works: Sequence[str]
    job_names: Sequence[Callable[[int], tuple[str, str]]]
    part: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]

    def job(self, row: int) -> tuple[str, str]:
        """Return kind and name of a row's job."""
        return self.job_names[int(self.part[row])](int(self.place[row]))

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
        # Most jobs of a work differ only in name: then two of them stand for all.
        ends = [arrival for part in drawn for arrival in part.ends]
        made = _Made.of(given, ends, configuration, trusted=trusted)
        alike = [part.has_one_workload_each(made) for part in drawn]
        if not all(alike):
            arrivals = [part.ends if is_alike else part.arrivals for part, is_alike in zip(drawn, alike, strict=True)]
            made = _Made.of(given, [arrival for part in arrivals for arrival in part], configuration, trusted=trusted)
        parts = [] if generated is None else [generated_part(generated.copies)]
        parts += (part for trace in traces for part in trace_parts(trace))
        for other, is_alike in zip(drawn, alike, strict=True):
            parts.append(other.numbered_part(made) if is_alike else other.part(made))
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
        place = np.concatenate([np.arange(n) for n in lengths] or [np.empty(0, np.int64)])
        order = np.argsort(at, kind="stable")
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
            made.world, made.objects, copies, works, [part.job_name for part in parts], part[order], place[order]
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
    """Work with its jobs' arrival and run times in seconds (infinite: forever), and whether they then fail."""

    work: Work
    at: npt.NDArray[np.float64]
    runs: npt.NDArray[np.float64]
    fails: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, work: Work, seed: int) -> _Drawn:
        times = [(at, math.inf if runs is None else runs, fails) for at, runs, fails in work.times(seed)]
        columns = np.array(times, dtype=np.float64).reshape(len(times), 3)
        return cls(work, columns[:, 0], columns[:, 1], columns[:, 2] == 1)

    @property
    def arrivals(self) -> Sequence[Arrival]:
        """Return all jobs."""
        return list(map(self._arrival, range(len(self.at))))

    @property
    def ends(self) -> Sequence[Arrival]:
        """Return the first job and the last, whose name is the longest; nothing without jobs."""
        return [self._arrival(row) for row in sorted({0, len(self.at) - 1}) if 0 <= row < len(self.at)]

    def _arrival(self, row: int) -> Arrival:
        return Arrival(job=self.work.job_at(row), at=float(self.at[row]), work=self.work.name)

    def has_one_workload_each(self, made: _Made) -> bool:
        """Return whether each job gets one Workload, named after it, and otherwise the same for all jobs."""
        if not len(self.at):
            return True
        plain = []
        for arrival in self.ends:
            kind, _, name = arrival.key
            workloads = made.workloads.get(arrival.key, ())
            if len(workloads) != 1 or _name_of(workloads[0]) != self._workload_name(kind, name, made):
                return False
            plain.append(_nameless(workloads[0].object))
        return plain[0] == plain[-1]

    def numbered_part(self, made: _Made) -> JobPart:
        """Return rows that are copies of the first job's Workload."""
        n, job_name = len(self.at), self.work.job_name
        if not n:
            return part_without_rows()
        kind = self.ends[0].key[0]
        first = made.workloads[self.ends[0].key][0]
        template = replace(first, object=_nameless(first.object))
        kinds = (False, True) if self.fails.any() else (False,)
        return JobPart(
            templates=[self._happening(template, fails=fails) for fails in kinds],
            works=[self.work.name] * len(kinds),
            template=self.fails.astype(np.int64),
            names=[self._workload_name(kind, job_name(row), made) for row in range(n)],
            at=self.at,
            runs=self.runs,
            job_name=lambda row: (kind, job_name(row)),
        )

    def part(self, made: _Made) -> JobPart:
        """Return rows for jobs that get no Workload, several, or different ones."""
        rows = [
            (row, arrival.key, workload)
            for row, arrival in enumerate(self.arrivals)
            for workload in made.workloads.get(arrival.key, ())
        ]
        places = np.array([row for row, _, _ in rows], np.int64)
        return JobPart(
            templates=[self._happening(workload, fails=bool(self.fails[row])) for row, _, workload in rows],
            works=[self.work.name] * len(rows),
            template=np.arange(len(rows)),
            names=[_name_of(workload) for _, _, workload in rows],
            at=self.at[places],
            runs=self.runs[places],
            job_name=lambda row: (rows[row][1][0], rows[row][1][2]),
        )

    def _happening(self, workload: Manifest, *, fails: bool) -> Happening:
        plan = replace(self.work.plan, ends_failed=fails)
        return Happening(at=0, op=Operation.CREATE, object=workload, plan=plan)

    def _workload_name(self, kind: str, name: str, made: _Made) -> str:
        if is_workload(self.work.job.object):
            return name
        group = text_at(self.work.job.object, "apiVersion").rpartition("/")[0]
        return workload_name(name, kind=kind, group=group, short=made.has_short_names)


def _nameless(workload: JsonObject) -> JsonObject:
    """Return a Workload without its job's name."""
    metadata = object_at(workload, "metadata")
    labels = {name: value for name, value in texts_at(metadata, "labels").items() if name != JOB_UID}
    rest = {name: row for name, row in metadata.items() if name not in ("name", "uid", "labels", "ownerReferences")}
    # A template is validated as it is, so it needs a name.
    return {**workload, "metadata": {**rest, "name": "template", **({"labels": dict(labels)} if labels else {})}}


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
                    job = work[index - offset].job_at(row) if index >= offset else Manifest({})
                    remedy = "rename one of them"
                    raise ManifestError([job.problem(detail, field="metadata.name", remedy=remedy)])


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
