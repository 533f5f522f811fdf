"""Reads a scenario file, and reports everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kueuecore._arguments import number
from kueuecore._configuration_sources import shown_release
from kueuecore._fields import Fields, shown
from kueuecore._file_kinds import skipped_files, use_of
from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore.configuration import Configuration, release_of
from kueuecore.errors import ConfigurationError, ManifestError, Problem
from kueuecore.experiments import Experiments
from kueuecore.manifests import Manifest, read_manifests
from kueuecore.releases import DEFAULT_RELEASE, Release
from kueuecore.scenarios.capacity_reader import read_capacity
from kueuecore.scenarios.cluster_part import ClusterPart
from kueuecore.scenarios.configuration_reader import read_configuration, read_release
from kueuecore.scenarios.edits import Edit, with_edits
from kueuecore.scenarios.named_paths import named_path
from kueuecore.scenarios.node_reader import read_nodes
from kueuecore.scenarios.present import Present
from kueuecore.scenarios.present_reader import newest_time_of, read_present
from kueuecore.scenarios.scenario import DEFAULT_START, MAX_SEED, Scenario
from kueuecore.scenarios.time_limits import time_problems
from kueuecore.scenarios.timetable import timetable_happenings
from kueuecore.scenarios.timetable_reader import read_timetable
from kueuecore.scenarios.work import Work
from kueuecore.scenarios.work_reader import check_count, read_work
from kueuecore.times import beginning_ns

if TYPE_CHECKING:
    from kueuecore.scenarios.fleet_part import FleetPart
    from kueuecore.scenarios.generator_reader import GeneratedRun
    from kueuecore.scenarios.trace_part import TracePart

__all__ = ["API_VERSION", "KIND", "PartReader", "read_experiments", "read_scenario", "scenario_of", "without_releases"]

API_VERSION = "kueuecore/v1"
KIND = "Scenario"


def read_scenario(
    path: str | Path,
    *,
    seed: int | None = None,
    allow_code: bool = False,
    edits: Sequence[Edit] = (),
    release: str | Release | None = None,
    default_release: str | Release | None = None,
) -> Scenario:
    """Read a scenario from a file. Files that it names are relative to its folder.

    Args:
        path: The file.
        seed: Overrides the seed in the file.
        allow_code: Whether `fleet.policy.use` may name a program. It runs with your privileges, but only after
            `run_scenario` has checked everything else.
        edits: Edits of the scenario and of its objects and jobs.
        release: Overrides the release of Kueue in the file, of every cluster, but not in `edits`.
        default_release: The release of Kueue that decides in clusters of which the file names none; by default the one
            that their objects show, such as a Deployment of Kueue, else `DEFAULT_RELEASE`.

    Raises:
        ManifestError: Everything that is wrong with it, with field paths, lines and remedies.
        UnknownReleaseError: There is no such release.
    """
    manifests = read_manifests(str(path), strict=True)
    return scenario_of(
        manifests,
        path,
        seed=seed,
        allow_code=allow_code,
        edits=edits,
        release=release,
        default_release=default_release,
    )


def scenario_of(
    manifests: Sequence[Manifest],
    path: str | Path,
    *,
    seed: int | None = None,
    allow_code: bool = False,
    edits: Sequence[Edit] = (),
    release: str | Release | None = None,
    default_release: str | Release | None = None,
) -> Scenario:
    """Make a scenario from the manifests in a file.

    Args:
        manifests: The contents of the file.
        path: The file.
        seed: As in `read_scenario`.
        allow_code: As in `read_scenario`.
        edits: As in `read_scenario`.
        release: As in `read_scenario`.
        default_release: As in `read_scenario`.

    Raises:
        ManifestError: Everything that is wrong with it, with field paths, lines and remedies.
        UnknownReleaseError: There is no such release.
    """
    if len(manifests) != 1 or text_at(manifests[0].object, "kind") != KIND:
        remedy = _of_others(manifests) or f"begin it with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
        raise ManifestError.of(f"a scenario is one document of kind {KIND}", remedy=remedy, file=str(path))
    problems: list[Problem] = []
    folder = Path(path).parent
    document = manifests[0] if release is None else without_releases(manifests[0])
    document = _edited(document, edits)
    top = Fields(document, document.object, "", problems, folder)
    others = default_release if release is None else release
    parts = PartReader(
        folder,
        allow_code=allow_code,
        is_input_read=str(path) == "-",
        release=None if others is None else release_of(others),
    )
    scenario = parts.scenario(top)
    if seed is not None and not 0 <= number("seed", seed) <= MAX_SEED:
        raise ValueError(f"seed must be a whole number from 0 to {MAX_SEED}")
    scenario = scenario if seed is None else replace(scenario, seed=seed)
    if not problems:
        scenario = with_edits(scenario, edits)
        for problem in time_problems(scenario):
            top.complain(problem.field, problem.message, problem.remedy)
    if not problems:
        problems += _timetable_problems(scenario)
    if problems:
        raise ManifestError(problems)
    return scenario


def _of_others(manifests: Sequence[Manifest]) -> str:
    """Say what to do with what is not one Scenario; empty if nothing is known."""
    files = {it.source.file for it in manifests if text_at(it.object, "kind") == KIND}
    if len(files) == 1 and len({it.source.file for it in manifests}) > 1:
        return f"give its file alone: {shown(*files)}"
    return "" if files else use_of(it.object for it in manifests)


def without_releases(document: Manifest) -> Manifest:
    """Return a scenario or policy tests that leave it open as which release of Kueue to decide."""
    plain = deepcopy(document.object)
    fleet = object_at(plain, "fleet")
    clusters = [plain.get("cluster"), fleet.get("manager"), *object_at(fleet, "workers").values()]
    for part in (plain, *clusters, *list_at(plain, "cases")):
        if isinstance(part, dict):
            part.pop("kueue", None)
    return replace(document, object=plain)


def _edited(document: Manifest, edits: Sequence[Edit]) -> Manifest:
    """Apply the edits of the scenario itself."""
    for edit in edits:
        if not edit.kind:
            try:
                document = replace(document, object=edit.apply(document.object))
            except ValueError as error:
                remedy = "see docs/scenarios.md for the fields"
                raise ManifestError.of(f"{edit.path}: {error}", remedy=remedy, file=document.source.file) from None
    return document


def _timetable_problems(scenario: Scenario) -> tuple[Problem, ...]:
    """Return what is wrong with timed changes, or with the objects that they change."""
    try:
        tuple(timetable_happenings(scenario))
    except ManifestError as error:
        return error.problems
    return ()


class PartReader:
    """Reads the parts of a scenario, and parts that other files share with it.

    Args:
        folder: The folder that file names are relative to.
        allow_code: Whether it may name programs.
        is_input_read: Whether standard input has been read before.
        release: The release of Kueue that decides where a file names none; `None`: the one that its objects show.
        keeps_lines: Whether objects in the file itself know the lines of their fields; edits may have moved these.
    """

    def __init__(
        self,
        folder: Path,
        *,
        allow_code: bool,
        is_input_read: bool,
        release: Release | None,
        keeps_lines: bool = False,
    ) -> None:
        self._folder = folder
        self._release = release
        self._allow_code = allow_code
        self._is_input_read = is_input_read
        self._keeps_lines = keeps_lines
        self._others: list[Problem] = []
        self.notes: list[str] = []
        """What was found out about the release of Kueue, in sentences."""

    def scenario(self, top: Fields) -> Scenario:
        """Read the whole scenario."""
        top.text("apiVersion", one_of=[API_VERSION])
        top.text("kind")
        top.part("metadata")
        seed, until = top.whole("seed", 0, most=MAX_SEED), top.seconds("until")
        start_ns = _start(top)
        section, fleet_section = top.part("cluster"), top.part("fleet")
        cluster, cycle = ClusterPart(configuration=Configuration(release=self._release or DEFAULT_RELEASE)), None
        generated = self._generated(top)
        if section is None and fleet_section is None and top.value("generator") is None:
            top.complain("cluster", "Required value", "write `cluster: {objects: [queues.yaml]}`, or `fleet:`")
        elif section is not None and fleet_section is not None:
            top.complain("cluster", "both cluster and fleet are given", "remove one of them")
        elif section is not None:
            cluster, cycle = self.cluster(section), section.seconds("cycle")
            section.end()
        present = read_present(top)
        if present is not None and top.value("start") is None:
            start_ns = newest_time_of(cluster) or start_ns
        fleet = None if fleet_section is None else self._fleet(top, fleet_section)
        in_fleet = fleet is not None
        work = tuple(
            self.work(part, index, start=start_ns, until=until, in_fleet=in_fleet)
            for index, part in enumerate(top.parts("work"))
        )
        names: set[str] = set()
        for index, part in enumerate(work):
            if part.name in names:
                top.complain(f"work[{index}].name", f'Duplicate value: "{part.name}"', "give each work its own name")
            names.add(part.name)
        check_count(top, work)
        traces = self._traces(top)
        timetable = read_timetable(top, self.object, has_end=until is not None)
        for name in ("timetable", "present") if in_fleet else ():
            if top.value(name) is not None:
                top.complain(name, "only applies in a scenario of one cluster", "remove it")
        top.end()
        return Scenario(
            cluster=cluster,
            fleet=fleet,
            work=work,
            generated=generated,
            traces=traces,
            seed=seed,
            start=start_ns,
            until_seconds=until,
            cycle_seconds=1.0 if cycle is None else cycle,
            timetable=timetable,
            present=present or Present(),
            skipped=skipped_files(self._others),
            notes=tuple(self.notes),
        )

    def _fleet(self, top: Fields, section: Fields) -> FleetPart:
        """Read several clusters."""
        from kueuecore.scenarios.fleet_part import read_fleet  # imports the dispatchers

        if top.value("generator") is not None:
            top.complain("generator", "a generator is for one cluster", "remove it, or write cluster instead of fleet")
        return read_fleet(section, self.cluster, self._folder, allow_code=self._allow_code)

    def _traces(self, top: Fields) -> tuple[TracePart, ...]:
        """Read recorded jobs."""
        if top.value("traces") is None:
            return ()
        from kueuecore.scenarios.trace_part import read_traces  # imports every format

        return read_traces(top, self._folder)

    def _generated(self, top: Fields) -> GeneratedRun | None:
        """Read a file of Kueue's performance tests."""
        if top.value("generator") is None:
            return None
        from kueuecore.scenarios.generator_reader import read_generator  # imports numpy

        path = named_path(top, "generator", top.text("generator"), self._folder)
        try:
            return None if path is None else read_generator(path)
        except ManifestError as error:
            top.problems += error.problems
            return None

    def cluster(self, section: Fields) -> ClusterPart:
        """Read a cluster of the scenario."""
        objects = self.objects(section)
        configuration = self.configuration(section, self.release(section, objects))
        return ClusterPart(
            objects=objects,
            configuration=configuration.with_experiments(read_experiments(section)),
            capacity=read_capacity(section),
            nodes=read_nodes(section),
        )

    def objects(self, section: Fields, name: str = "objects") -> tuple[Manifest, ...]:
        """Read objects in files and directories, and those in the scenario itself."""
        found: list[Manifest] = []
        for index, entry in enumerate(section.entries(name)):
            found += self.object(section, f"{name}[{index}]", entry)
        return tuple(found)

    def object(self, section: Fields, name: str, entry: JsonValue) -> tuple[Manifest, ...]:
        """Read an entry: the objects in a file or directory, or an object in the scenario itself."""
        if isinstance(entry, dict) and text_at(entry, "kind"):
            return (self._inline(section, name, entry),)
        if not isinstance(entry, str):
            section.complain(name, "neither a file nor an object", "name a file, or write an object")
            return ()
        path = self._standard_input(section, name) if entry == "-" else named_path(section, name, entry, self._folder)
        try:
            found = () if path is None else read_manifests(path, skipped=self._others.append)
        except ManifestError as error:
            section.problems += error.problems
            return ()
        if isinstance(path, Path) and path.is_file() and not path.stat().st_size:
            # The shell creates the file before the command fails.
            remedy = "write it again; kubectl writes nothing if it does not know a kind: leave that kind out"
            section.complain(name, f"the file {shown(entry)} is empty", remedy)
        return found

    def _standard_input(self, section: Fields, name: str) -> str | None:
        """Standard input, which can be read once; None if it already was, which is reported."""
        if self._is_input_read:
            section.complain(name, "standard input was read before", "name a file instead")
            return None
        self._is_input_read = True
        return "-"

    def _inline(self, section: Fields, name: str, entry: JsonObject) -> Manifest:
        """Read an object in the file; without its lines, problems are reported at the one where it starts."""
        if self._keeps_lines:
            path = ".".join(filter(None, (section.path, name)))
            return Manifest(entry, replace(section.document.source, _path=path))
        line = section.document.source.line_of(f"{section.path}.{name}")
        return Manifest(entry, replace(section.document.source.without_fields(), _start=line))

    def release(self, section: Fields, objects: Sequence[Manifest]) -> Release:
        """Read the release of Kueue that decides; by default that of the reader, or the one that objects show."""
        release = read_release(section) or self._release
        if release is None:
            field = ".".join(filter(None, (section.path, "kueue")))
            if shown := shown_release(objects, option=f"`{field}`"):
                self.notes.append(shown.says)
                release = shown.release
        return release or Release.named(DEFAULT_RELEASE)

    def configuration(
        self, section: Fields, release: Release, *, feature_gates: Mapping[str, bool] | None = None
    ) -> Configuration:
        """Read Kueue's Configuration, as `read_configuration` does."""
        return read_configuration(section, release, self._folder, feature_gates=feature_gates)

    def work(self, section: Fields, index: int, *, start: int, until: float | None, in_fleet: bool) -> Work:
        """Read jobs that arrive one after the other, as `read_work` does."""
        return read_work(section, index, self.object, start=start, until=until, in_fleet=in_fleet)


def _start(top: Fields) -> int:
    """Read the start time, in nanoseconds since 1970."""
    start = top.text("start", DEFAULT_START)
    try:
        return beginning_ns(start)
    except ValueError:
        remedy = f'write a time from 1970 to April 2262, such as "{DEFAULT_START}"'
        top.complain("start", f"Invalid value: {shown(start)}", remedy)
        return 0


def read_experiments(section: Fields, others: Experiments | None = None) -> Experiments:
    """Read the rules of a cluster that Kueue does not have.

    Args:
        section: The part with the field.
        others: Those that apply unless it says otherwise.
    """
    others = others or Experiments()
    part = section.part("experiments")
    if part is None:
        return others
    try:
        return Experiments.of({**others.to_dict(), **part.plain})
    except ConfigurationError as error:
        for problem in error.problems:
            part.complain(problem.field, problem.message, problem.remedy)
        return others
