"""Measures which rules of a configuration policy tests exercise: plays each test once per other value of a rule."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from kueuecore.manifests import Manifest, Source
from kueuecore.policy_tests.coverage.configuration_rules import Settings
from kueuecore.policy_tests.coverage.object_rules import object_rules
from kueuecore.policy_tests.coverage.results import Coverage, Exercise, RuleCoverage
from kueuecore.policy_tests.coverage.rule import FoundRule, Rule
from kueuecore.policy_tests.coverage.stage import Stage
from kueuecore.policy_tests.policy_test import PolicyTest, WrittenConfiguration
from kueuecore.studies.running import run_all

__all__ = ["Measurement"]

# Rules of one object share tests, which are sent to a process once for all of them.
_RULES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class _Shared:
    """A rule with its place in each test that has it, by the number of the test."""

    rule: Rule
    found: tuple[tuple[int, FoundRule], ...]


class Measurement:
    """The rules that some tests have, to be measured.

    Args:
        tests: The tests, all of which can be run.

    Raises:
        ManifestError: The file of a Configuration cannot be read any more.

    Example:
        >>> from kueuecore.policy_tests import read_policy_tests
        >>> tests = read_policy_tests("examples/policy-tests/two-teams_test.yaml")
        >>> coverage = Measurement(tests).run()
        >>> [str(it.rule) for it in coverage.rules if it.exercise is None]
        ['WorkloadPriorityClass urgent value: 1000']
    """

    def __init__(self, tests: Sequence[PolicyTest]) -> None:
        self._tests = tests
        self._settings = [Settings.of(test) for test in tests]
        found: dict[tuple[str, int, str, str, str, str], _Shared] = {}
        for number, test in enumerate(tests):
            for rule in _rules(test, self._settings[number]):
                before = found.get(rule.rule.key, _Shared(rule.rule, ()))
                found[rule.rule.key] = replace(before, found=(*before.found, (number, rule)))
        self._rules = [found[key] for key in sorted(found)]

    @property
    def n_plays(self) -> int:
        """The most times that tests have to be played."""
        return sum(len(found.variations) for shared in self._rules for _, found in shared.found)

    def run(self, *, executor: Executor | None = None, progress: Callable[[int, int], None] | None = None) -> Coverage:
        """Measure all rules; the result does not depend on the executor.

        Args:
            executor: What plays the tests, such as that of `kueuecore.studies.processes`; None: this process.
            progress: Called with the number of rules that are measured, and of all.
        """
        plays = ((_bare(test), settings.without_places()) for test, settings in self._pairs())
        stages = dict(run_all(Stage.of, plays, executor))
        measured: dict[int, list[RuleCoverage]] = {}
        n_over = 0
        for index, part in run_all(_measured, self._chunks(stages), executor):
            measured[index] = part
            n_over += len(part)
            if progress is not None:
                progress(n_over, len(self._rules))
        return Coverage(tuple(rule for index in sorted(measured) for rule in measured[index]))

    def _pairs(self) -> Iterator[tuple[PolicyTest, Settings]]:
        yield from zip(self._tests, self._settings, strict=True)

    def _chunks(self, stages: Mapping[int, Stage]) -> Iterator[tuple[list[_Shared], dict[int, Stage]]]:
        """The rules in chunks, each with the tests that may exercise some of them, the most likely ones first."""
        for start in range(0, len(self._rules), _RULES_AT_ONCE):
            chunk = [_ordered(shared, stages) for shared in self._rules[start : start + _RULES_AT_ONCE]]
            numbers = sorted({number for shared in chunk for number, _ in shared.found})
            yield chunk, {number: stages[number] for number in numbers}


def _ordered(shared: _Shared, stages: Mapping[int, Stage]) -> _Shared:
    """The rule with the tests that may exercise it, the most likely ones first; with one that cannot if none may."""
    near = {number: stages[number].nearness(found) for number, found in shared.found}
    likely = sorted((entry for entry in shared.found if near[entry[0]]), key=lambda entry: (-near[entry[0]], entry[0]))
    return replace(shared, found=tuple(likely) or shared.found[:1])


def _rules(test: PolicyTest, settings: Settings) -> Iterator[FoundRule]:
    for index, manifest in enumerate(test.objects):
        for found in object_rules(manifest):
            yield _tidy(replace(found, index=index))
    yield from map(_tidy, settings.rules())


def _tidy(found: FoundRule) -> FoundRule:
    """The rule with the name of its file as people write it: tests name files relative to themselves."""
    file = found.rule.file
    tidy = os.path.normpath(file) if file and not file.startswith("<") else file
    # With symbolic links, `a/..` may be another folder.
    if tidy != file and os.path.realpath(tidy) == os.path.realpath(file):
        return replace(found, rule=replace(found.rule, file=tidy))
    return found


def _bare(test: PolicyTest) -> PolicyTest:
    """The test without the texts of its files, which are large to send to a process."""
    objects = tuple(replace(manifest, source=Source()) for manifest in test.objects)
    work = tuple(replace(work, job=replace(work.job, source=Source())) for work in test.work)
    timetable = tuple(replace(change, document=Manifest({})) for change in test.timetable)
    return replace(test, objects=objects, work=work, timetable=timetable, written=WrittenConfiguration())


def _measured(chunk: Sequence[_Shared], stages: Mapping[int, Stage]) -> list[RuleCoverage]:
    """Measure some rules with the stages of their tests, by number."""
    return [_coverage(shared.rule, [(stages[number], found) for number, found in shared.found]) for shared in chunk]


def _coverage(rule: Rule, places: Sequence[tuple[Stage, FoundRule]]) -> RuleCoverage:
    first, found = places[0]
    if not first.nearness(found):
        is_measurable = any(first.is_valid(found, variation) for variation in found.variations)
        return RuleCoverage(rule, None, is_measurable)
    is_measurable = False
    for index in range(max(len(found.variations) for _, found in places)):
        for stage, found in places:
            if index < len(found.variations):
                variation = found.variations[index]
                is_other = stage.differs(found, variation)
                is_measurable |= is_other is not None
                if is_other:
                    test = stage.test
                    return RuleCoverage(rule, Exercise(test.file, test.line, test.name, variation.text))
    return RuleCoverage(rule, None, is_measurable)
