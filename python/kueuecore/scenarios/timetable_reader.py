"""Reads the timetable of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonObject, JsonValue, text_at
from kueuecore._kinds import KINDS
from kueuecore.jobs import INTEGRATIONS, integration_of
from kueuecore.manifests import Manifest
from kueuecore.scenarios.distributions import Span
from kueuecore.scenarios.spans import read_spans
from kueuecore.scenarios.timed_changes import (
    MAX_TIMES,
    Action,
    ApplyObjects,
    DeleteObject,
    PatchObject,
    ScaleQuota,
    Target,
    TimedChange,
)
from kueuecore.world import DEFAULT_NAMESPACE, is_workload

__all__ = ["read_timetable"]

_ACTIONS = ("apply", "delete", "patch", "scale")
_AMOUNTS = ("nominalQuota", "borrowingLimit", "lendingLimit")
# A timetable cannot change these.
_FIXED = ("ProvisioningRequestConfig", "MultiKueueConfig", "MultiKueueCluster", "PreemptionConfig")
_CLUSTER_SCOPED = tuple(kind.name for kind in KINDS if not kind.is_namespaced and kind.name not in _FIXED)
_NAMESPACED = tuple(kind.name for kind in KINDS if kind.is_namespaced)
_JOBS = tuple(sorted({kind for _, kind in INTEGRATIONS}))
_KINDS = tuple(dict.fromkeys((*_CLUSTER_SCOPED, *_NAMESPACED, *_JOBS)))
# What else has a timetable calls itself and its work so.
_WORDS = {"PolicyTest": ("test", "submit")}


def read_timetable(
    top: Fields, objects: Callable[[Fields, str, JsonValue], tuple[Manifest, ...]], *, has_end: bool
) -> tuple[TimedChange, ...]:
    """Read what changes when, and record what is wrong with it.

    Args:
        top: The scenario, or what else has a timetable.
        objects: Reads a file with objects, or an object in the scenario.
        has_end: Whether there is a latest end, so that changes may be repeated until then.
    """
    return tuple(_changes(top, objects, has_end=has_end))


def _changes(
    top: Fields, objects: Callable[[Fields, str, JsonValue], tuple[Manifest, ...]], *, has_end: bool
) -> Iterator[TimedChange]:
    whole, work = _WORDS.get(text_at(top.document.object, "kind"), ("scenario", "work"))
    for fields in top.parts("timetable"):
        n_problems = len(fields.problems)
        at, every = fields.seconds("at", 0.0), read_spans(fields, "every")
        times: int | None = fields.whole("times", 1, least=1, most=MAX_TIMES)
        if fields.plain.get("times") is None and every is not None:
            times = None
            if not has_end:
                fields.complain("times", "Required value", f"write how often, or write until for the whole {whole}")
        if fields.plain.get("times") is not None and fields.plain.get("every") is None:
            fields.complain("every", "Required value", "write the time between repetitions")
        action = _action(fields, objects, work)
        fields.end()
        if action is not None and len(fields.problems) == n_problems:
            yield TimedChange(
                at=at or 0.0,
                every=every or Span(),
                times=times,
                action=action,
                document=fields.document,
                path=fields.path,
            )


def _action(
    fields: Fields, objects: Callable[[Fields, str, JsonValue], tuple[Manifest, ...]], work: str
) -> Action | None:
    given = [name for name in _ACTIONS if fields.value(name) is not None]
    if len(given) > 1:
        fields.complain(given[1], f"both {given[0]} and {given[1]} are given", "write an entry for each")
        return None
    match given:
        case ["apply"]:
            entries = fields.entries("apply")
            found = [object_ for n, entry in enumerate(entries) for object_ in objects(fields, f"apply[{n}]", entry)]
            for manifest in found:
                if is_workload(manifest.object) or integration_of(manifest.object) is not None:
                    remedy = f"write it under {work}, with `at`; existing jobs can be patched"
                    fields.problems.append(manifest.problem("a timetable cannot create jobs", remedy=remedy))
            return ApplyObjects(tuple(found))
        case ["delete" | "patch" | "scale" as name]:
            part = fields.part(name)
            if part is None:
                return None
            action = _delete(part) if name == "delete" else _patch(part) if name == "patch" else _scale(part)
            part.end()
            return action
    fields.complain("", "it does nothing", f"write one of {', '.join(_ACTIONS)}")
    return None


def _target(fields: Fields) -> Target:
    fields.has("kind", "write the kind, such as ClusterQueue")
    fields.has("name", "write the name of the object")
    kind, name, namespace = fields.text("kind", one_of=_KINDS), fields.text("name"), fields.text("namespace")
    if kind in _CLUSTER_SCOPED and namespace:
        fields.complain("namespace", f"a {kind} has no namespace", "remove it")
    if kind and kind not in _CLUSTER_SCOPED and not namespace:
        namespace = DEFAULT_NAMESPACE
    return Target(kind=kind, name=name, namespace=namespace)


def _delete(fields: Fields) -> Action:
    return DeleteObject(_target(fields))


def _patch(fields: Fields) -> Action | None:
    target, patch = _target(fields), fields.part("patch")
    if patch is None:
        if fields.plain.get("patch") is None:
            fields.complain("patch", "Required value", "write what changes, such as {spec: {stopPolicy: Hold}}")
        return None
    for name in ("apiVersion", "kind"):
        if name in patch.plain:
            patch.complain(name, "it may not change", "remove it")
    metadata = patch.plain.get("metadata")
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        if isinstance(metadata, dict) and name in metadata:
            patch.complain(f"metadata.{name}", "it may not change", "remove it")
    if "metadata" in patch.plain and not isinstance(metadata, dict):
        patch.complain("metadata", f"Invalid value: {shown(metadata)}", "write what changes, such as {labels: {a: b}}")
    return PatchObject(target, patch.plain)


def _required(fields: Fields, name: str, remedy: str) -> str:
    text = fields.text(name)
    if fields.has(name, remedy) and fields.plain[name] == "":
        fields.complain(name, "Required value", remedy)
    return text


def _scale(fields: Fields) -> Action | None:
    queue, cohort = fields.text("clusterQueue"), fields.text("cohort")
    if bool(queue) == bool(cohort):
        fields.complain("clusterQueue", "not one of clusterQueue and cohort", "write one of them")
    flavor = _required(fields, "flavor", "write the name of the ResourceFlavor")
    resource = _required(fields, "resource", "write the resource, such as cpu")
    amounts: JsonObject = {}
    for name in _AMOUNTS:
        amount = fields.value(name)
        if name not in fields.plain:
            continue
        if amount is None and name == "nominalQuota":
            fields.complain(name, "Required value", "write a quantity, such as 8 or 36Gi")
        elif isinstance(amount, bool) or not isinstance(amount, str | int | float | None):
            fields.complain(name, "not a quantity", "write a quantity, such as 8 or 36Gi, or null for no limit")
        else:
            amounts[name] = str(amount) if isinstance(amount, float) else amount
    if not any(name in fields.plain for name in _AMOUNTS):
        fields.complain("nominalQuota", "Required value", f"write one of {', '.join(_AMOUNTS)}")
    kind = "ClusterQueue" if queue else "Cohort"
    return ScaleQuota(target=Target(kind=kind, name=queue or cohort), flavor=flavor, resource=resource, amounts=amounts)
