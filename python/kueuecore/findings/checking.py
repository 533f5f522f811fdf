"""Runs rules on objects, and collects their findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kueuecore._arguments import each, flag
from kueuecore.configuration import Configuration
from kueuecore.findings.building import facts_of
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Finding, Rule
from kueuecore.findings.silencing import is_silenced
from kueuecore.manifests import Manifest, ManifestLike, as_manifest
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["check", "findings_of"]


def check(
    objects: Iterable[ManifestLike],
    *,
    configuration: Configuration | None = None,
    now: TimeLike | None = None,
    trusted: bool = False,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    progress: Callable[[int, int], None] | None = None,
    unfinished: Callable[[str], None] | None = None,
    configuration_manifest: Manifest | None = None,
    assumes_active_checks: bool = False,
) -> tuple[Finding, ...]:
    """Find mistakes that an API server accepts, such as limits that never bind and queues that lead nowhere.

    An annotation of an object, `check.kueuecore/ignore: unused-flavor,KC305`, silences findings about it.

    Args:
        objects: Objects of any kind, in any form; jobs and Workloads among them are tried out.
        configuration: Kueue's Configuration; by default the one of a new installation.
        now: The current time; by default the newest time in the objects, else 1970.
        trusted: Whether the objects are a dump, which an API server has validated.
        select: Codes, prefixes of codes or names of the rules to run; by default all.
        ignore: The same for rules to leave out.
        progress: Called with the number of rules that have run, from 0, and of all rules.
        unfinished: Called with a sentence for each rule that gave up before it had tried everything.
        configuration_manifest: The Configuration as it is written, so that findings about it show its file and line.
        assumes_active_checks: Whether AdmissionChecks without a condition Active count as active in runs.

    Returns:
        The findings, sorted by file and line.

    Raises:
        ManifestError: An API server with Kueue would reject an object, or an id is unknown.

    Example:
        >>> from kueuecore.manifests import parse_manifests
        >>> queues = '''
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: LocalQueue
        ... metadata: {name: user-queue, namespace: team-a}
        ... spec: {clusterQueue: cluster-queue}
        ... '''
        >>> for finding in check(parse_manifests(queues, file="queues.yaml")):
        ...     print(finding.code, finding.name, finding.severity, finding.problem.line, finding.problem.field)
        KC401 missing-cluster-queue error 5 spec.clusterQueue
    """
    given = tuple(as_manifest(object_, f"objects[{i}]") for i, object_ in enumerate(each("objects", objects)))
    from kueuecore.findings.registry import chosen  # imports all rules

    rules = chosen(each("select", select), each("ignore", ignore))
    at = None if now is None else nanoseconds(now)
    facts = facts_of(given, configuration=configuration, now=at, trusted=flag("trusted", trusted))
    facts.configuration_manifest = configuration_manifest
    facts.assumes_active_checks = flag("assumes_active_checks", assumes_active_checks)
    files = {name: place for place, name in reversed(list(enumerate(object_.source.file for object_ in given)))}

    def order(finding: Finding) -> tuple[int, int, str]:
        problem = finding.problem
        return files.get(problem.file, len(files)), problem.line or 0, finding.code

    found = tuple(sorted(findings_of(facts, rules, progress=progress), key=order))
    if unfinished is not None:
        for sentence in facts.unfinished:
            unfinished(sentence)
    return found


def findings_of(
    facts: Facts, rules: Sequence[Rule], *, progress: Callable[[int, int], None] | None = None
) -> Iterator[Finding]:
    """Yield what some rules find, rule by rule, without duplicates and without what annotations silence.

    Args:
        facts: The facts about the objects.
        rules: The rules.
        progress: As for `check`.
    """
    for index, rule in enumerate(rules):
        if progress is not None:
            progress(index, len(rules))
        seen = set()
        for hit in rule.find(facts):
            if not is_silenced(rule, facts.written(hit.manifest).object) and str(hit.problem) not in seen:
                seen.add(str(hit.problem))
                yield Finding(rule, hit.problem, hit.world, hit.severity)
    if progress is not None:
        progress(len(rules), len(rules))
