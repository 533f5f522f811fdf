"""Says which labels a Namespace lacks that was added because objects are in it."""

from __future__ import annotations

from kueuecore._json import JsonValue
from kueuecore.findings.labels import unmet
from kueuecore.world import NAMESPACE_NAME_LABEL, World

__all__ = ["missing_labels"]


def missing_labels(world: World, namespace: str, selector: JsonValue) -> str:
    """What a namespaceSelector asks for that an added Namespace lacks, as kubectl writes it; empty if that is not why.

    Args:
        world: Knows which Namespaces were added.
        namespace: The Namespace.
        selector: The namespaceSelector of a ClusterQueue.
    """
    if namespace not in world.added:
        return ""
    asked = unmet(selector, {NAMESPACE_NAME_LABEL: namespace})
    # Its name is known: a selector of other names excludes it, whatever its labels are.
    return "" if any(key == NAMESPACE_NAME_LABEL for key, _ in asked) else ", ".join(text for _, text in asked)
