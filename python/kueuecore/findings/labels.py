"""Helpers for labels and names: selector matching, formatting, and corrections of unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nsmallest

from kueuecore._json import JsonValue, list_at, text_at, texts_at
from kueuecore._near_names import near_names
from kueuecore.manifests import Manifest
from kueuecore.world import NAMESPACE_NAME_LABEL, World

__all__ = ["correction", "missing_labels", "names_of", "nodes_with", "pairs", "selects", "unmet"]

_MAX_NAMES = 3
_MAX_KNOWN = 100


def selects(selector: JsonValue, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches labels; no selector matches nothing, an empty one matches everything.

    Example:
        >>> selects(None, {"team": "a"}), selects({}, {"team": "a"}), selects({"matchLabels": {"team": "b"}}, {})
        (False, True, False)
        >>> selects({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["b"]}]}, {})
        True
    """
    if not isinstance(selector, dict):
        return False
    is_like = texts_at(selector, "matchLabels").items() <= dict(labels).items()
    return is_like and all(_meets(expression, labels) for expression in list_at(selector, "matchExpressions"))


def unmet(selector: JsonValue, labels: Mapping[str, str]) -> list[tuple[str, str]]:
    """The requirements of a label selector that labels do not meet: their keys, and how kubectl writes each.

    Example:
        >>> unmet({"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "old", "operator": "Exists"}]}, {})
        [('team', 'team=a'), ('old', 'old')]
    """
    wanted = texts_at(selector, "matchLabels").items()
    expressions = [expression for expression in list_at(selector, "matchExpressions") if not _meets(expression, labels)]
    return [
        *((key, f"{key}={value}") for key, value in wanted if labels.get(key) != value),
        *((text_at(expression, "key"), _written(expression)) for expression in expressions),
    ]


def missing_labels(world: World, namespace: str, selector: JsonValue) -> str:
    """The labels that a namespaceSelector asks for and an added Namespace lacks; empty if that does not decide.

    They are written as in `kubectl get -l` (rules/05 §6.1).

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


def _written(expression: JsonValue) -> str:
    """A requirement of a selector as kubectl writes it."""
    key, operator = text_at(expression, "key"), text_at(expression, "operator")
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({','.join(map(str, list_at(expression, 'values')))})"
    return f"!{key}" if operator == "DoesNotExist" else key


def _meets(expression: JsonValue, labels: Mapping[str, str]) -> bool:
    label, values = labels.get(text_at(expression, "key")), list_at(expression, "values")
    match text_at(expression, "operator"):
        case "In":
            return label in values
        case "NotIn":
            return label not in values
        case "Exists":
            return label is not None
        case "DoesNotExist":
            return label is None
    return False


def nodes_with(labels: Mapping[str, str], nodes: Mapping[str, Manifest]) -> list[Manifest]:
    """The Nodes that have all of these labels."""
    return [node for node in nodes.values() if labels.items() <= texts_at(node.object, "metadata", "labels").items()]


def pairs(labels: Mapping[str, str]) -> str:
    """Format labels as kubectl does."""
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def names_of(names: Iterable[str]) -> str:
    """List the first few names, and how many more there are.

    Example:
        >>> names_of("abcde")
        'a, b, c and 2 more'
    """
    every = list(names)
    rest = len(every) - _MAX_NAMES
    return ", ".join(every[:_MAX_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def correction(name: str, known: Iterable[str], *, kind: str) -> str:
    """Suggest how to fix a name that nothing has.

    Args:
        name: The name.
        known: The existing names.
        kind: The kind of object that should have the name.

    Example:
        >>> correction("spot", ["spot-vm"], kind="ResourceFlavor"), correction("x", [], kind="ResourceFlavor")
        ('did you mean spot-vm?', 'create the ResourceFlavor, or correct the name')
    """
    # Comparing takes long: only names of about the same length may be meant.
    near = near_names(name, nsmallest(_MAX_KNOWN, known, key=lambda entry: abs(len(entry) - len(name))))
    return f"did you mean {near[0]}?" if near else f"create the {kind}, or correct the name"
