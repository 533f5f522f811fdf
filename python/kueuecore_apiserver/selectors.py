"""Label and field selectors of lists, watches and collection deletes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeAlias

from kueuecore._json import JsonValue, texts_at
from kueuecore_apiserver.refusals import bad_request
from kueuecore_apiserver.requests import Object

__all__ = ["Selector", "selector_of"]

Selector: TypeAlias = Callable[[Object], bool]
"""Returns whether an object is selected."""

_Labels: TypeAlias = Mapping[str, str]
_IN = re.compile(r"\s*(?P<key>[^\s,!=()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)\s*")
_IS = re.compile(r"\s*(?P<key>[^\s,!=()<>]+)\s*(?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,!=()]*)\s*")
_EXISTS = re.compile(r"\s*+(?P<not>!?)\s*+(?P<key>[^\s,!=()]+)\s*")
# Fields other than name and namespace that selectors may use.
_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "events"): (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    ("", "namespaces"): ("status.phase",),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "secrets"): ("type",),
    ("batch", "jobs"): ("status.successful",),
    ("apps", "replicasets"): ("status.replicas",),
}


def selector_of(
    group: str, resource: str, labels: str, fields: str, selectable: Collection[str] = ()
) -> Selector | None:
    """Return a selector for label and field selectors.

    Args:
        group: The API group.
        resource: The plural.
        labels: The parameter `labelSelector`.
        fields: The parameter `fieldSelector`.
        selectable: Fields that the CustomResourceDefinition adds to name and namespace.

    Returns:
        The selector; `None` if both are empty.

    Raises:
        RefusedError: A selector is malformed, or its field is not supported (400).

    Example:
        >>> select = selector_of("batch", "jobs", "team in (a, b), !old", "metadata.name=sum")
        >>> select({"metadata": {"name": "sum", "labels": {"team": "a"}}})
        True
    """
    by_labels, by_fields = _by_labels(labels), _by_fields(fields, (*_FIELDS.get((group, resource), ()), *selectable))
    if not by_labels and not by_fields:
        return None

    def select(manifest: Object) -> bool:
        if by_labels:
            own = texts_at(manifest, "metadata", "labels")
            if not all(label(own) for label in by_labels):
                return False
        return all((_field(manifest, path) == value) == wanted for path, value, wanted in by_fields)

    return select


def _by_labels(text: str) -> list[Callable[[_Labels], bool]]:
    if not text.strip():
        return []
    terms = []
    position = 0
    while True:
        for pattern, build in ((_IN, _membership), (_IS, _comparison), (_EXISTS, _existence)):
            match = pattern.match(text, position)
            if match and (match.end() == len(text) or text[match.end()] == ","):
                terms.append(build(match))
                break
        else:
            raise bad_request(f'unable to parse requirement: found "{text[position:]}"')
        position = match.end() + 1
        if match.end() == len(text):
            return terms


def _membership(match: re.Match[str]) -> Callable[[_Labels], bool]:
    key, values = match["key"], {part.strip() for part in match["values"].split(",")}
    if match["operator"] == "in":
        return lambda labels: labels.get(key) in values
    return lambda labels: labels.get(key) not in values


def _comparison(match: re.Match[str]) -> Callable[[_Labels], bool]:
    key, operator, value = match["key"], match["operator"], match["value"]
    if operator == "!=":
        return lambda labels: labels.get(key) != value
    if operator in ("=", "=="):
        return lambda labels: labels.get(key) == value
    sign = 1 if operator == ">" else -1
    if not re.fullmatch("-?[0-9]+", value):
        raise bad_request(f"values: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer")

    def compare(labels: _Labels) -> bool:
        own = labels.get(key, "")
        return re.fullmatch("-?[0-9]+", own) is not None and (int(own) - int(value)) * sign > 0

    return compare


def _existence(match: re.Match[str]) -> Callable[[_Labels], bool]:
    key, wanted = match["key"], not match["not"]
    return lambda labels: (key in labels) == wanted


def _by_fields(text: str, selectable: Collection[str]) -> list[tuple[str, str, bool]]:
    found = list(_terms(text))
    for path, _, _ in found:
        if path not in ("metadata.name", "metadata.namespace", *selectable):
            raise bad_request(f"field label not supported: {path}")
    return found


def _terms(text: str) -> Iterator[tuple[str, str, bool]]:
    for term in filter(None, text.split(",")):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        yield match[1], match[3], match[2] != "!="


def _field(manifest: Object, path: str) -> str:
    value: JsonValue = manifest
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None or isinstance(value, dict | list) else str(value)
