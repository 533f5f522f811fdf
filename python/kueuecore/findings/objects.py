"""What is odd about objects as such, whatever they are for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kueuecore._json import text_at
from kueuecore.errors import ObjectRef, Problem
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, rule
from kueuecore.findings.manifest_fields import key_of
from kueuecore.manifests import Manifest, object_ref
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["repeated", "repeated_objects", "unknown_fields"]


@rule("KC001", "unknown-field", Severity.WARNING, "a field that nobody knows: an API server drops it")
def unknown_fields(facts: Facts) -> Iterator[Hit]:
    """It may be the one that is missed elsewhere."""
    objects = {(text_at(it.object, "kind"), *key_of(it.object)): it for it in facts.given}
    for warning in facts.warnings:
        about = warning.object or ObjectRef("")
        manifest = objects.get((about.kind, about.namespace or DEFAULT_NAMESPACE, about.name))
        yield Hit(manifest or Manifest({}), warning)


@rule("KC002", "repeated-object", Severity.WARNING, "an object that is given twice, in two forms")
def repeated_objects(facts: Facts) -> Iterator[Hit]:
    """The last one counts."""
    for manifest, problem in repeated(facts.given):
        yield Hit(manifest, problem)


def repeated(manifests: Iterable[Manifest]) -> Iterator[tuple[Manifest, Problem]]:
    """Objects that are given twice, and not alike."""
    seen: dict[tuple[str, ObjectRef], Manifest] = {}
    for manifest in manifests:
        ref = object_ref(manifest.object)
        if not text_at(manifest.object, "metadata", "name"):
            continue
        key = (text_at(manifest.object, "apiVersion").partition("/")[0], ref)
        before = seen.get(key)
        if before is not None and before.object != manifest.object:
            yield manifest, manifest.problem(f"it stands in {before.source} too; the last one counts")
        seen[key] = manifest
