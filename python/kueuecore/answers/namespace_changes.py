"""Tries to label a workload's Namespace as its ClusterQueue asks (rules/05 §6.1)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonValue, list_at, object_at, text_at, texts_at
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Failure
from kueuecore.answers.flavor_nodes import found_object
from kueuecore.answers.parts import Part, needed_parts
from kueuecore.answers.trials import Trials
from kueuecore.findings.labels import unmet
from kueuecore.scenarios.edits import Edit
from kueuecore.world import NAMESPACE_NAME_LABEL

__all__ = ["namespace_changes"]

_ANY = "true"  # where a label only has to exist


def namespace_changes(trials: Trials, queue: str) -> Iterator[Change | Failure]:
    """The labels with which the Namespace matches the ClusterQueue's namespaceSelector, if its name does not decide."""
    namespace = found_object(trials.engine, "Namespace", trials.namespace)
    selector = object_at(trials.engine.object("ClusterQueue", queue), "spec").get("namespaceSelector")
    if namespace is None or selector is None:
        return
    labels = texts_at(namespace, "metadata", "labels")
    missing = [key for key, _ in unmet(selector, labels)]
    if missing and NAMESPACE_NAME_LABEL not in missing:
        wanted = {key: _value(selector, key) for key in missing}
        parts = [_part(trials.namespace, key, labels.get(key), value) for key, value in wanted.items()]
        found = needed_parts(trials, ChangeKind.NAMESPACE, parts)
        if found is not None:
            yield found


def _value(selector: JsonValue, key: str) -> str | None:
    """A value of a label that meets one of the selector's requirements on it; None if the label has to go."""
    exact = texts_at(selector, "matchLabels").get(key)
    if exact is not None:
        return exact
    expressions = [
        expression for expression in list_at(selector, "matchExpressions") if text_at(expression, "key") == key
    ]
    values = [
        str(value)
        for expression in expressions
        if text_at(expression, "operator") == "In"
        for value in list_at(expression, "values")
    ]
    must_exist = any(text_at(expression, "operator") == "Exists" for expression in expressions)
    return values[0] if values else _ANY if must_exist else None


def _part(namespace: str, key: str, before: str | None, after: str | None) -> Part:
    edit = Edit(kind="Namespace", name=namespace, path=f'metadata.labels["{key}"]', value=after)
    return Part(f"label {key} of Namespace {namespace}", before or "-", after or "none", (edit,))
