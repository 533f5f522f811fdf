"""Rules about objects of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueuecore._json import text_at
from kueuecore._text import quoted
from kueuecore.errors import ObjectRef, Problem
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.repeats import repeated
from kueuecore.findings.topology_objects import KUEUE_GROUP
from kueuecore.manifests import API_VERSIONS, Manifest
from kueuecore.world import DEFAULT_NAMESPACE, key_of

__all__ = ["duplicate_keys", "repeated_objects", "unknown_fields", "unread_versions", "waiting_jobs"]


@rule("KC001", "unknown-field", Severity.WARNING, "an unknown field, which an API server drops")
def unknown_fields(facts: Facts) -> Iterator[Hit]:
    """It may be a misspelt one that matters."""
    duplicates = {warning for assignment in facts.given for warning in assignment.warnings}
    yield from _located(facts, (warning for warning in facts.warnings if warning not in duplicates))


@rule("KC002", "repeated-object", Severity.WARNING, "an object that is read, given twice with different contents")
def repeated_objects(facts: Facts) -> Iterator[Hit]:
    """The last one wins."""
    for manifest, problem in repeated(facts.given, unread=facts.unread):
        yield Hit(manifest, problem)


@rule("KC004", "unread-version", Severity.WARNING, "a Kueue object in a group that is not read")
def unread_versions(facts: Facts) -> Iterator[Hit]:
    """No API server with Kueue serves it (rules/01), so it has no effect. A version that is not served is refused."""
    for manifest in facts.given:
        kind, api_version = text_at(manifest.object, "kind"), text_at(manifest.object, "apiVersion")
        newest, group = API_VERSIONS.get(kind, ""), api_version.partition("/")[0]
        if newest.startswith(KUEUE_GROUP) and "kueue" in group and not newest.startswith(f"{group}/"):
            yield hit(
                manifest,
                f"Unsupported value: {quoted(api_version)}: the object is ignored",
                field="apiVersion",
                remedy=f"write {newest}",
            )


@rule("KC006", "duplicate-key", Severity.WARNING, "a key that an object has twice, of which the last one counts")
def duplicate_keys(facts: Facts) -> Iterator[Hit]:
    """An API server never sees the first one."""
    for manifest in facts.given:
        for warning in manifest.warnings:
            yield Hit(manifest, warning)


@rule("KC408", "waiting-job", Severity.WARNING, "a job that gets no Workload until an object that it names exists")
def waiting_jobs(facts: Facts) -> Iterator[Hit]:
    """For example a priority class, or an object it is built from."""
    yield from _located(facts, facts.world.waiting)


def _located(facts: Facts, problems: Iterable[Problem]) -> Iterator[Hit]:
    """Problems found elsewhere, with the object whose annotation may silence them."""
    objects = {
        (text_at(assignment.object, "kind"), *key_of(assignment.object)): assignment for assignment in facts.given
    }
    for problem in problems:
        about = problem.object or ObjectRef("")
        manifest = objects.get((about.kind, about.namespace or DEFAULT_NAMESPACE, about.name))
        yield Hit(manifest or Manifest({}), problem)
