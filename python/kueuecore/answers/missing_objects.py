"""Tries to create the objects that a ClusterQueue lacks, or to activate its checks (rules/02 §5)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, list_at, text_at
from kueuecore.answers.changes import Change, ChangeKind
from kueuecore.answers.dials import Dial, Failure, least_change
from kueuecore.answers.flavor_nodes import found_object
from kueuecore.answers.trials import Trials
from kueuecore.findings.active_checks import activity_of, as_active
from kueuecore.findings.topology_sentences import HOSTNAME, AskedTopology
from kueuecore.manifests import API_VERSIONS, Manifest

__all__ = ["missing_changes"]

_CONTROLLER = "example.com/any"


def missing_changes(trials: Trials, workload: JsonObject, queue: str) -> Iterator[Change | Failure]:
    """Create and activate everything that the ClusterQueue names and that is missing or inactive."""
    dials = _dials(trials, workload, queue)
    found = least_change(trials, dials) if dials else None
    if found is not None:
        yield found


def _dials(trials: Trials, workload: JsonObject, queue: str) -> list[Dial]:
    spec = trials.engine.object("ClusterQueue", queue).get("spec")
    flavors = [
        text_at(flavor, "name") for group in list_at(spec, "resourceGroups") for flavor in list_at(group, "flavors")
    ]
    checks = [text_at(check, "name") for check in list_at(spec, "admissionChecksStrategy", "admissionChecks")]
    return [
        *_of_flavors(trials, workload, dict.fromkeys(flavors)),
        *_of_checks(trials, dict.fromkeys(checks)),
    ]


def _of_flavors(trials: Trials, workload: JsonObject, names: dict[str, None]) -> Iterator[Dial]:
    """Missing flavors, and missing Topologies of others, with the levels that the workload asks for."""
    topologies: dict[str, None] = {}
    for name in names:
        flavor = found_object(trials.engine, "ResourceFlavor", name)
        topology = text_at(flavor, "spec", "topologyName")
        if flavor is None:
            yield _dial(_made("ResourceFlavor", name, {}), "missing", "created")
        elif topology and found_object(trials.engine, "Topology", topology) is None:
            topologies[topology] = None
    asked = [AskedTopology.of(pod_set) for pod_set in list_at(workload, "spec", "podSets")]
    levels = dict.fromkeys(level for pod_set in asked for level in pod_set.levels if level != HOSTNAME)
    for name in topologies:
        spec: JsonObject = {"levels": [{"nodeLabel": level} for level in (*levels, HOSTNAME)]}
        yield _dial(_made("Topology", name, spec), "missing", f"created with {', '.join((*levels, HOSTNAME))}")


def _of_checks(trials: Trials, names: dict[str, None]) -> Iterator[Dial]:
    for name in names:
        check = found_object(trials.engine, "AdmissionCheck", name)
        if check is None:
            made = _made("AdmissionCheck", name, {"controllerName": _CONTROLLER})
            yield _dial(_active(trials, made), "missing", "created and active")
        elif text_at(activity_of(check), "status") != "True":
            yield _dial(_active(trials, check), "not active", "active")


def _active(trials: Trials, check: JsonObject) -> JsonObject:
    bare = {key: value for key, value in check.items() if key != "status"}
    return as_active(Manifest(bare), now=trials.now).object


def _made(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "metadata": {"name": name}, "spec": spec}


def _dial(made: JsonObject, before: str, after: str) -> Dial:
    return Dial(
        kind=ChangeKind.MISSING,
        what=f"{text_at(made, 'kind')} {text_at(made, 'metadata', 'name')}",
        most=1,
        edits=lambda turn: (),
        objects=lambda turn: (made,) if turn else (),
        shown=lambda turn: after if turn else before,
        weight=1,
    )
