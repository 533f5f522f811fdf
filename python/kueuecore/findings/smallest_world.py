"""The smallest set of objects in which something happens."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from kueuecore._json import JsonObject, text_at
from kueuecore.errors import ManifestError
from kueuecore.findings.building import facts_of
from kueuecore.findings.facts import Facts
from kueuecore.findings.manifest_fields import key_of
from kueuecore.manifests import Manifest, object_ref
from kueuecore.shrinking import shrunk

__all__ = ["named", "smallest_world"]

_MOST_TRIES = 500


def smallest_world(facts: Facts, keys: Container[str], happens: Callable[[Facts], bool]) -> Facts:
    """The objects without those that it does not take. No single one of them can go, unless there are hundreds.

    Args:
        facts: The objects in which it happens.
        keys: The workloads that seem to take part, as `namespace/name`: whether these suffice is tried first.
        happens: Does it happen among other objects?
    """

    def built(some: Sequence[Manifest]) -> Facts | None:
        try:
            return facts_of(some, configuration=facts.configuration, now=facts.now, trusted=facts.world.trusted)
        except ManifestError:  # they are not valid without the others
            return None

    def still_happens(some: Sequence[Manifest]) -> bool:
        found = built(some)
        return found is not None and happens(found)

    work: dict[tuple[str, str, str], bool] = {}
    for key, workload in facts.workloads.items():
        owner = _identity(facts.annotated(workload))
        work[owner] = work.get(owner, False) or "/".join(key) in keys
    few = tuple(it for it in facts.given if work.get(_identity(it.object), True))
    some = few if still_happens(few) else facts.given
    return built(shrunk(some, still_happens, max_tries=_MOST_TRIES)) or facts


def _identity(plain: JsonObject) -> tuple[str, str, str]:
    return (text_at(plain, "kind"), *key_of(plain))


def named(facts: Facts) -> str:
    """Names of the objects that were given, for people."""
    return ", ".join(f"{ref.kind} {ref.key}" for ref in (object_ref(it.object) for it in facts.given))
