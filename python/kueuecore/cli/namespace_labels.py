"""Labels for the Namespaces that the command adds, and notes where a lack of labels keeps workloads waiting."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from kueuecore._json import JsonObject, JsonValue, object_at, texts_at
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem, UnknownObjectError
from kueuecore.findings.labels import missing_labels, names_of, unmet
from kueuecore.manifests import Manifest
from kueuecore.states import Stage, WorkloadState
from kueuecore.world import DEFAULT_NAMESPACE, NAMESPACE_NAME_LABEL, World, missing_namespaces

__all__ = ["NamespaceLabels", "add_namespace_labels", "namespace_note", "with_namespaces"]

NamespaceLabels: TypeAlias = Sequence[tuple[str, Mapping[str, str]]]
"""Labels and the name of their Namespace; an empty name is for all of them."""

_NAME = r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_LABEL = re.compile(rf"(?P<key>([a-z0-9][-.a-z0-9]{{0,252}}/)?{_NAME})=(?P<value>({_NAME})?)")


def add_namespace_labels(given: argparse._ArgumentGroup) -> None:
    """Add `--namespace-labels`."""
    given.add_argument(
        "--namespace-labels",
        metavar="[NAME:]KEY=VALUE,...",
        type=_namespace_labels,
        action="append",
        default=[],
        help="labels of Namespaces that are not among the objects: of all, or of the one with this NAME; repeatable",
    )


def with_namespaces(manifests: tuple[Manifest, ...], labels: NamespaceLabels) -> tuple[Manifest, ...]:
    """Add the missing Namespaces for which there are labels.

    Args:
        manifests: The objects.
        labels: The values of `--namespace-labels`.

    Raises:
        ManifestError: A Namespace with labels is among the objects, or no object is in it.
    """
    if not labels:
        return manifests
    missing = missing_namespaces(manifests)
    problems = [_useless(name, missing, manifests) for name in dict.fromkeys(name for name, _ in labels) if name]
    if any(problems):
        raise ManifestError(filter(None, problems))
    wanted = {name: [given for of, given in labels if of in ("", name)] for name in missing}
    return (*(_namespace(name, each) for name, each in wanted.items() if each), *manifests)


def namespace_note(world: World, engine: Engine, state: WorkloadState) -> str:
    """Say which labels a pending workload's Namespace lacks for its ClusterQueue; empty if that is not why it waits."""
    if state.stage is not Stage.PENDING or state.cluster_queue is None:
        return ""
    namespace = state.namespace or DEFAULT_NAMESPACE
    try:
        selector = object_at(engine.object("ClusterQueue", state.cluster_queue), "spec").get("namespaceSelector")
    except UnknownObjectError:
        return ""
    labels = missing_labels(world, namespace, selector)
    if not labels:
        return _unselected(engine, namespace, state.cluster_queue, selector)
    return (
        f"Namespace {namespace} was added without labels, and ClusterQueue {state.cluster_queue} asks for {labels}: "
        "give the Namespace, or set its labels with --namespace-labels"
    )


def _unselected(engine: Engine, namespace: str, queue: str, selector: JsonValue) -> str:
    """Say why a ClusterQueue does not select a Namespace that is given; empty if it does."""
    if selector is None:
        return f"ClusterQueue {queue} has no namespaceSelector, so it selects no Namespace: {{}} selects all"
    try:
        labels = texts_at(engine.object("Namespace", namespace), "metadata", "labels")
    except UnknownObjectError:
        return ""
    lacks = unmet(selector, {**labels, NAMESPACE_NAME_LABEL: namespace})
    asked = ", ".join(text for _, text in lacks)
    return (
        f"Namespace {namespace} is not as the namespaceSelector of ClusterQueue {queue} asks: {asked}" if lacks else ""
    )


def _useless(name: str, missing: Sequence[str], manifests: Sequence[Manifest]) -> Problem | None:
    """The problem with labels for a Namespace that is not added."""
    if name in missing:
        return None
    own = (manifest for manifest in manifests if manifest.object.get("kind") == "Namespace")
    given = next((manifest for manifest in own if object_at(manifest.object, "metadata").get("name") == name), None)
    if given is not None:
        return given.problem("--namespace-labels is for Namespaces that are not given", remedy="write its labels there")
    near = near_names(name, missing)
    remedy = f"did you mean {near[0]}?" if near else f"name one of {names_of(missing)}" if missing else "leave it out"
    return Problem(f"no object is in namespace {name}", field="--namespace-labels", remedy=remedy)


def _namespace(name: str, labels: Sequence[Mapping[str, str]]) -> Manifest:
    every: JsonObject = {NAMESPACE_NAME_LABEL: name}
    for each in labels:
        every.update(each)
    return Manifest({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": every}})


def _namespace_labels(text: str) -> tuple[str, dict[str, str]]:
    name, colon, written = text.rpartition(":")
    labels: dict[str, str] = {}
    for part in written.split(","):
        label = _LABEL.fullmatch(part)
        if label is None or (colon and not name):
            raise argparse.ArgumentTypeError(
                f"{quoted(text)} is not of the form KEY=VALUE,... or NAME:KEY=VALUE,..., such as team-a:tier=gold"
            )
        labels[label["key"]] = label["value"]
    return name, labels
