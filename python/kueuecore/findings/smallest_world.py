"""Finds the smallest set of objects in which something happens."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from kueuecore._json import JsonObject, text_at
from kueuecore.errors import ManifestError
from kueuecore.findings.building import facts_of
from kueuecore.findings.effort import Effort
from kueuecore.findings.facts import Facts
from kueuecore.manifests import Manifest, object_ref
from kueuecore.shrinking import shrunk
from kueuecore.world import key_of

__all__ = ["having_workloads", "named", "smallest_world", "with_objects", "with_workloads"]
_MAX_NAMES = 36


def smallest_world(
    facts: Facts, keys: Container[tuple[str, str]], happens: Callable[[Facts], bool], effort: Effort
) -> Facts:
    """Remove objects that are not needed for something to happen. Every one left is needed, unless the effort ends.

    Args:
        facts: The objects in which it happens.
        keys: The workloads that seem to be involved, by namespace and name; these alone are tried first.
        happens: Whether it happens among some objects.
        effort: The work that it may take.
    """

    def still_happens(some: Sequence[Manifest]) -> bool:
        found = with_objects(facts, some) if effort.spend(len(some)) else None
        return found is not None and happens(found)

    few = with_workloads(facts, keys)
    start = facts.given if few is None or not happens(few) else few.given
    return with_objects(facts, shrunk(start, still_happens, max_tries=len(start) ** 2)) or facts


def with_workloads(facts: Facts, keys: Container[tuple[str, str]]) -> Facts | None:
    """The objects with only these of the Workloads and their jobs; `None` if that is not valid.

    Args:
        facts: All objects.
        keys: Namespaces and names of Workloads.
    """
    return with_objects(facts, having_workloads(facts, keys))


def having_workloads(facts: Facts, keys: Container[tuple[str, str]]) -> list[Manifest]:
    """What was given, with only these of the Workloads and their jobs.

    Args:
        facts: All objects.
        keys: Namespaces and names of Workloads.
    """
    stays: dict[tuple[str, str, str], bool] = {}
    for key, workload in facts.workloads.items():
        owner = _identity(facts.written(workload).object)
        stays[owner] = stays.get(owner, False) or key in keys
    return [assignment for assignment in facts.given if stays.get(_identity(assignment.object), True)]


def named(facts: Facts) -> str:
    """The names of the objects that were given, as text: the first few dozen."""
    refs = [object_ref(assignment.object) for assignment in facts.given]
    shown = ", ".join(f"{ref.kind} {ref.key}" for ref in refs[:_MAX_NAMES])
    return shown if len(refs) <= _MAX_NAMES else f"{shown} and {len(refs) - _MAX_NAMES} more"


def with_objects(facts: Facts, some: Sequence[Manifest]) -> Facts | None:
    """The facts about other objects, at the same time; `None` if they are not valid.

    Args:
        facts: Facts from which to take the time and the Configuration.
        some: The objects.
    """
    try:
        return facts_of(some, configuration=facts.configuration, now=facts.now, trusted=facts.world.trusted)
    except ManifestError:
        return None


def _identity(plain: JsonObject) -> tuple[str, str, str]:
    return (text_at(plain, "kind"), *key_of(plain))
