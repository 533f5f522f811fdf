"""Finds and reads files of policy tests, and reports everything that is wrong with them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kueuecore._fields import Fields, shown
from kueuecore._file_kinds import use_of
from kueuecore._files import EMPTY_NAME
from kueuecore._json import object_at, text_at
from kueuecore._text import join
from kueuecore.configuration import Configuration, release_of
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import Manifest, Source, read_manifests
from kueuecore.policy_tests.expectation_reader import read_expectations
from kueuecore.policy_tests.policy_cluster import BEGINNING
from kueuecore.policy_tests.policy_test import PolicyTest, WrittenConfiguration
from kueuecore.releases import Release
from kueuecore.scenarios.configuration_reader import read_release
from kueuecore.scenarios.scenario import MAX_SEED
from kueuecore.scenarios.scenario_reader import API_VERSION, PartReader, read_experiments, without_releases
from kueuecore.scenarios.timetable_reader import read_timetable
from kueuecore.scenarios.work import Work
from kueuecore.times import beginning_ns

__all__ = ["ENDINGS", "KIND", "policy_test_files", "read_policy_tests"]

KIND = "PolicyTest"
ENDINGS = ("_test.yaml", "_test.yml", "_test.json")
"""Endings of the file names that are searched for in directories."""


def policy_test_files(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the sorted policy test files in a directory and its subdirectories; for a file or `-`, just that.

    Raises:
        ManifestError: The directory has none or cannot be read, or the name is empty.
    """
    name = os.fsdecode(path)
    if not name:
        raise ManifestError([EMPTY_NAME])
    if name == "-" or not Path(name).is_dir():
        return (name,)
    problems: list[Problem] = []

    def note(error: OSError) -> None:
        problems.append(Problem(error.strerror or str(error), file=str(error.filename), remedy="check its permissions"))

    found = []
    for folder, folders, files in os.walk(name, onerror=note):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        found += [str(Path(folder) / file) for file in files if file.endswith(ENDINGS) and not file.startswith(".")]
    if not found and not problems:
        message = f"no file in it ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        problems.append(Problem(message, file=name, remedy="give a file, or another directory"))
    if problems:
        raise ManifestError(problems)
    return tuple(sorted(found))


def read_policy_tests(
    path: str | os.PathLike[str],
    *,
    release: str | Release | None = None,
    default_release: str | Release | None = None,
) -> tuple[PolicyTest, ...]:
    """Read the cases of a file of kind PolicyTest, in order. File names in it are relative to its directory.

    Args:
        path: The file.
        release: Overrides the release of Kueue in the file and its cases.
        default_release: The release of Kueue that decides where neither names one; by default the one that the objects
            of the file show, such as a Deployment of Kueue, else `DEFAULT_RELEASE`.

    Raises:
        ManifestError: Everything that is wrong with it, with field paths, lines and remedies.
        UnknownReleaseError: There is no such release.

    Example:
        >>> [it.name for it in read_policy_tests("examples/policy-tests/two-teams_test.yaml")][:2]
        ['team-b borrows what team-a leaves', 'nobody borrows beyond the limit']
    """
    name = os.fsdecode(path)
    documents = read_manifests(name, strict=True)
    remedy = f"begin it with `apiVersion: {API_VERSION}` and `kind: {KIND}`"
    if not documents:
        raise ManifestError.of("it is empty", remedy=remedy, file=name)
    others = [document for document in documents if text_at(document.object, "kind") != KIND]
    if others:
        message = f"a policy test is a document of kind {KIND}"
        uses = [use_of([other.object]) if len(others) == len(documents) else "" for other in others]
        raise ManifestError(
            [
                other.problem(message, field="kind", remedy=use or remedy)
                for other, use in zip(others, uses, strict=True)
            ]
        )
    if release is not None:
        documents = tuple(map(without_releases, documents))
    problems: list[Problem] = []
    others_release = default_release if release is None else release
    reader = PartReader(
        Path(name).parent,
        allow_code=False,
        is_input_read=name == "-",
        release=None if others_release is None else release_of(others_release),
        keeps_lines=True,
    )
    tests = [test for document in documents for test in _Reader(document, reader, Path(name).parent, problems).tests()]
    if problems:
        # The parts that all cases share are read once per case.
        raise ManifestError(dict.fromkeys(problems))
    return tuple(tests)


class _Reader:
    """Reads one document.

    Args:
        document: The document.
        parts: Reads the parts that it shares with scenarios.
        folder: The directory that file names are relative to.
        problems: Collects the problems.
    """

    def __init__(self, document: Manifest, parts: PartReader, folder: Path, problems: list[Problem]) -> None:
        self._document = document
        self._parts = parts
        self._folder = folder
        self._top = Fields(document, document.object, "", problems)

    def tests(self) -> Iterator[PolicyTest]:
        """Its cases."""
        top = self._top
        top.text("apiVersion", one_of=[API_VERSION])
        top.text("kind")
        top.part("metadata")
        seed, cycle = top.whole("seed", 0, most=MAX_SEED), top.seconds("cycle", 1.0)
        objects, until = self._parts.objects(top, "manifests"), top.seconds("until")
        now, work = _now(top), self._work(top, "submit")
        timetable = read_timetable(top, self._parts.object, has_end=until is not None)
        n_notes = len(self._parts.notes)
        gates, release = _gates(top), self._parts.release(top, objects)
        configuration = self._parts.configuration(top, release, feature_gates=gates)
        experiments = read_experiments(top)
        names: set[str] = set()
        cases = list(top.parts("cases"))
        if not cases:
            top.complain("cases", "Required value", "write a list of cases, each with `name`, `submit` and `expect`")
        for index, case in enumerate(cases):
            name = case.text("name")
            if not name:
                case.complain("name", "Required value", "say in a few words what it tests")
            elif name in names:
                case.complain("name", f"Duplicate value: {shown(name)}", "give each case its own name")
            names.add(name)
            own = self._configuration(case, release, gates)
            case_now = _now(case)
            case_until = case.seconds("until", until)
            case_timetable = read_timetable(case, self._parts.object, has_end=case_until is not None)
            test = PolicyTest(
                file=self._document.source.file,
                line=self._document.source.line_of(f"cases[{index}]"),
                name=name,
                objects=(*objects, *self._parts.objects(case, "manifests")),
                configuration=(configuration if own is None else own).with_experiments(
                    read_experiments(case, experiments)
                ),
                now=now if case_now is None else case_now,
                seed=seed,
                cycle_seconds=1.0 if cycle is None else cycle,
                work=(*work, *self._work(case, "submit")),
                timetable=(*timetable, *case_timetable),
                until_seconds=case_until,
                expect=tuple(read_expectations(case)),
                notes=tuple(self._parts.notes[n_notes:]),
                written=self._written(case),
            )
            if not case.plain.get("expect"):
                case.complain("expect", "Required value", "say what you expect")
            _check_names(case, test.work)
            _check_times(case, test)
            case.end()
            yield test
        top.end()

    def _work(self, section: Fields, name: str) -> tuple[Work, ...]:
        parts = enumerate(section.parts(name))
        return tuple(self._parts.work(part, index, start=0, until=None, in_fleet=False) for index, part in parts)

    def _configuration(self, case: Fields, release: Release, gates: dict[str, bool]) -> Configuration | None:
        """The Configuration of a case; None for that of the file."""
        own_gates, own_release = _gates(case), read_release(case) or release
        is_own = case.value("configuration") is not None
        if not is_own and not own_gates and own_release == release:
            return None
        section = case if is_own else self._top
        return self._parts.configuration(section, own_release, feature_gates={**gates, **own_gates})

    def _written(self, case: Fields) -> WrittenConfiguration:
        """The Configuration of a case as it is written."""
        section = self._top if case.value("configuration") is None else case
        given = section.value("configuration")
        gates = tuple(
            Manifest({"kind": KIND, "featureGates": found}, self._at(part.path))
            for part in (self._top, case)
            if (found := object_at(part.plain, "featureGates"))
        )
        return WrittenConfiguration(
            file=self._folder / given if isinstance(given, str) else None,
            fields=Manifest(given, self._at(join(section.path, "configuration"))) if isinstance(given, dict) else None,
            gates=gates,
        )

    def _at(self, path: str) -> Source:
        """The position of a part of the document."""
        return replace(self._document.source, _path=path)


def _now(section: Fields) -> int | None:
    text = section.text("now")
    if not text:
        return None
    try:
        return beginning_ns(text)
    except ValueError:
        remedy = f'write a time from 1970 to April 2262, such as "{BEGINNING}"'
        section.complain("now", f"Invalid value: {shown(text)}", remedy)
        return None


def _gates(section: Fields) -> dict[str, bool]:
    part = section.part("featureGates")
    return {} if part is None else {name: part.truth(name, default=True) for name in part.plain}


def _check_names(case: Fields, work: Sequence[Work]) -> None:
    """Check that no two jobs of a case have the same name."""
    names: set[tuple[str, str, str]] = set()
    for other in work:
        first = other.job_at(0).object
        key = (text_at(first, "kind"), text_at(first, "metadata", "namespace"), other.name)
        if key in names:
            remedy = "give each job its own name: `name: train`"
            case.complain("submit", f"Duplicate value: {shown(other.name)}", remedy)
        names.add(key)


def _check_times(case: Fields, test: PolicyTest) -> None:
    if test.until_seconds is None:
        return
    for index, expectation in enumerate(test.expect):
        if expectation.at is not None and expectation.at > test.until_seconds:
            case.complain("expect", f"entry {index + 1} checks at a time after `until`", "set a later `until`")
