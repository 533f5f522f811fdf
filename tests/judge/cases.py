"""Drawn worlds as cases like those that were recorded of Kueue: objects, and events at their times.

What Kueue leaves to chance, what its API server would refuse, or what the engine does not play of an older release, is
taken out of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore.releases import Release
from kueuecore.testing.chance import Chance
from kueuecore.testing.history import START, History, Move, MoveKind, key_of, without_min_counts
from kueuecore.times import SECOND_NS, format_time, nanoseconds
from tests.judge.gates import knows, settled
from tests.judge.known import without_known
from tests.judge.stored import ELASTIC, SLICE_OF, stored, with_defaults
from tests.random_runs import READY, job

__all__ = ["Draft", "draft_of_history", "draft_of_run"]

_UPDATED = ("ClusterQueue", "LocalQueue", "Cohort", "Node", "Pod", "Topology", "ResourceFlavor")
_MAX_CYCLES = 60
# Before, a leader and its workers may lose pods (kueue#13766).
_PLACES_GROUPS = Release.named("0.18.5")
# Settings of the Configuration that a played run knows; none is read of others.
_SETTINGS = ("fairSharing", "admissionFairSharing", "waitForPodsReady", "resources")


@dataclass(slots=True)
class Draft:
    """A case before it is finished.

    Args:
        objects: What there is at the beginning, except workloads.
        events: What happens, in order, with times that do not decrease.
        config: Settings of the Configuration, and of the run.
        gates: Feature gates as drawn, of any release.
    """

    objects: list[JsonObject]
    events: list[JsonObject] = field(default_factory=list)
    config: JsonObject = field(default_factory=dict)
    gates: JsonObject = field(default_factory=dict)

    def finished(self, chance: Chance, name: str, release: Release) -> dict[str, Any]:
        """Return the case, as an API server and a release of Kueue take it."""
        self.events.sort(key=lambda event: int_at(event, "at"))
        gates = {**self.gates, **_elastic(self)}
        if self.has("Topology") and "fairSharing" in self.config:
            self._join_roots()
        if any(_changes(event, "ClusterQueue") for event in self.events):
            # The engine says at once which namespaces a changed queue no longer takes, Kueue at its next look.
            self._change(
                lambda entry: _with_spec(entry, namespaceSelector={}) if entry["kind"] == "ClusterQueue" else entry
            )
            self._drop_queue_changes_beside_checks()
        self.events = list(_possible([event for event in self.events if not _is_refused(event, release)], self.objects))
        _separate(self.events, by_queue=chance.rarely(6))
        settled_gates = settled(gates, release)
        # Else nearly every world would have a workload that may start with fewer pods.
        if settled_gates.get("PartialAdmission") is False or chance.boolean():
            self._change(
                lambda entry: (
                    {**entry, "spec": without_min_counts(object_at(entry, "spec"))} if _is_work(entry) else entry
                )
            )
        if release < _PLACES_GROUPS:
            self._change(
                lambda entry: {**entry, "spec": _without_groups(object_at(entry, "spec"))} if _is_work(entry) else entry
            )
        self._change(stored)
        config: JsonObject = {name: row for name, row in self.config.items() if name in _SETTINGS}
        if "waitForPodsReady" in config:
            config["waitForPodsReady"] = with_defaults(object_at(config, "waitForPodsReady"))
            # The engine and the player of Kueue take other views of jobs that say nothing.
            self.events = [_ready(event) if event["op"] == "create" else event for event in self.events]
        resources = object_at(config, "resources")
        if "quotaCheckStrategy" in resources and not knows("QuotaCheckStrategy", release):
            del config["resources"]
        if plans := object_at(self.config, "admissionChecks"):
            config["admissionChecks"] = plans
        self.events, config = without_known(self.events, config, self.objects)
        config |= {"now": format_time(START), "cycleStepMs": 1000, "maxCycles": _MAX_CYCLES}
        config["quietCycles"] = 1 + max([1, *(len(list_) for list_ in _flavor_lists(self.objects))])
        if seconds := int_at(self.config, "evictionSeconds"):
            config["evictionSeconds"] = seconds
        return {
            "id": name,
            "kind": "trace",
            "kueue": release.tag,
            "featureGates": settled_gates,
            "config": config,
            "objects": self.objects,
            "input": {"events": self.events},
        }

    def has(self, kind: str) -> bool:
        """Return whether there is an object of a kind at the beginning."""
        return any(object_["kind"] == kind for object_ in self.objects)

    def _change(self, how: Any) -> None:
        self.objects = [how(object_) for object_ in self.objects]
        self.events = [
            {**event, "object": how(event["object"])} if "object" in event else event for event in self.events
        ]

    def _join_roots(self) -> None:
        """Put all queues below one Cohort: under fair sharing, Kueue takes heads of other roots in any order."""

        def joined(it: JsonObject) -> JsonObject:
            spec = object_at(it, "spec")
            if it["kind"] == "ClusterQueue" and not text_at(spec, "cohortName"):
                return _with_spec(it, cohortName="c1")
            if it["kind"] == "Cohort" and key_of(it) != "c1" and not text_at(spec, "parentName"):
                return _with_spec(it, parentName="c1")
            return it

        named = {text_at(object_, "spec", "cohortName") for object_ in self.objects} - {""}
        named |= {text_at(object_, "spec", "parentName") for object_ in self.objects} - {""}
        there = {key_of(object_) for object_ in self.objects if object_["kind"] == "Cohort"}
        for name in sorted(named | {"c1"} - there):
            if name not in there:
                self.objects.append(
                    {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": name}}
                )
        self._change(joined)

    def _drop_queue_changes_beside_checks(self) -> None:
        """Leave changed queues out where workloads have checks or wait for pods: the engine looks at them at once."""
        if self.has("AdmissionCheck") or "waitForPodsReady" in self.config:
            self.events = [event for event in self.events if not _changes(event, "ClusterQueue")]


def _without_groups(spec: JsonObject) -> JsonObject:
    """Place each pod set of a workload by itself."""

    def alone(pods: JsonObject) -> JsonObject:
        request = {
            name: entry for name, entry in object_at(pods, "topologyRequest").items() if name != "podSetGroupName"
        }
        return {**pods, "topologyRequest": request} if "topologyRequest" in pods else pods

    return {**spec, "podSets": [alone(object_at(pod_set)) for pod_set in list_at(spec, "podSets")]}


def draft_of_run(run: dict[str, Any], chance: Chance) -> Draft:
    """Return a random run (`tests.random_runs`) as a draft."""
    config = {name: row for name, row in run["config"].items() if name != "admissionChecks"}
    return Draft(
        list(run["objects"]), list(map(_without_deadline, run["input"]["events"])), config, run["featureGates"]
    )


def draft_of_history(history: History, chance: Chance) -> Draft:
    """Return a history as a draft: cycles are run by themselves, and jobs end after a time."""
    settings = dict(history.configuration or {})
    gates = object_at(settings, "featureGates")
    settings.pop("waitForPodsReady", None)
    draft = Draft([object_ for object_ in history.objects if not _is_work(object_)], gates=gates, config=settings)
    if not draft.has("Topology") and chance.rarely(8):
        settings["waitForPodsReady"] = chance.one(*READY)
    lingers = any(move.kind is MoveKind.LINGER for move in history.moves) and chance.boolean()
    settings["evictionSeconds"] = chance.one(1, 3, 10) if lingers else chance.one(0, 0, 0, 2)
    if draft.has("Topology"):
        checks = [key_of(object_) for object_ in draft.objects if object_["kind"] == "AdmissionCheck"]
        settings["admissionChecks"] = {name: {"seconds": chance.one(0, 1, 3, 20)} for name in checks}
        _with_provisioning(draft)
    work = [object_ for object_ in history.objects if _is_work(object_)]
    # Who holds quota at the beginning comes first, and gets it before others arrive.
    holders, heads = (
        [object_ for object_ in work if "status" in object_],
        [object_ for object_ in work if "status" not in object_],
    )
    writer = _Events(draft, chance)
    for at, some in ((0, holders), (1 if holders else 0, heads)):
        writer.at = at
        for entry in some:
            writer.create({name: each for name, each in entry.items() if name != "status"})
    for move in history.moves:
        writer.add(move)
    return draft


@dataclass(slots=True)
class _Events:
    """Writes the moves of a history as events of a draft."""

    draft: Draft
    chance: Chance
    at: int = 0
    alive: dict[str, JsonObject] = field(default_factory=dict)

    def add(self, move: Move) -> None:
        if move.kind is MoveKind.WAIT:
            self.at += min(move.seconds, 60)
        if move.kind not in (MoveKind.APPLY, MoveKind.DELETE, MoveKind.FINISH):
            return
        self.at += self.chance.one(1, 0, 1, 2, 6)
        if move.object is not None:
            self._apply(move.object)
        elif move.kind is MoveKind.FINISH:
            self._write("finish", key=move.key)
        elif move.object_kind == "Workload":
            self.alive.pop(move.key, None)
            self._write("delete", key=move.key)
        elif move.object_kind in ("Node", "Pod"):
            self._write("delete", key=move.key, kind=move.object_kind)

    def create(self, workload: JsonObject) -> None:
        self.alive[key_of(workload)] = workload
        if "waitForPodsReady" in self.draft.config:
            self._write("create", object=_without_deadline_of(workload), **job(self.chance))
            return
        seconds = self.chance.one(None, 3, 10, 30, 100)
        more: JsonObject = {} if seconds is None else {"runSeconds": seconds}
        if self.draft.has("Topology") and self.chance.rarely(3):
            more["lingerSeconds"] = self.chance.one(2, 5, 20)
        self._write("create", object=_without_deadline_of(workload), **more)

    def _apply(self, thing: JsonObject) -> None:
        if _is_work(thing):
            self._apply_workload(thing)
        elif thing["kind"] in _UPDATED:
            there = any(
                (object_["kind"], key_of(object_)) == (thing["kind"], key_of(thing)) for object_ in self.draft.objects
            )
            if there or thing["kind"] in ("Node", "Pod"):
                self._write("update", object=thing)

    def _apply_workload(self, thing: JsonObject) -> None:
        before = self.alive.get(key_of(thing))
        status = object_at(thing, "status")
        plain = {name: entry for name, entry in thing.items() if name != "status"}
        if before is None:
            if not status:
                self.create(plain)
            return
        done = list_at(status, "reclaimablePods")
        # A webhook refuses another queue while quota is held.
        is_moved = text_at(plain, "spec", "queueName") != text_at(before, "spec", "queueName")
        if is_moved or (plain == before and not done):
            return
        self.alive[key_of(thing)] = plain
        self._write("update", object={**plain, "status": {"reclaimablePods": done}} if done else plain)

    def _write(self, op: str, **fields: JsonValue) -> None:
        self.draft.events.append({"at": self.at, "op": op, **fields})


def _with_provisioning(draft: Draft) -> None:
    """MultiKueue needs another cluster: its checks become those of ProvisioningRequests, which delay a topology."""

    def local(it: JsonObject) -> JsonObject:
        is_remote = it["kind"] == "AdmissionCheck" and text_at(it, "spec", "controllerName").endswith("multikueue")
        return _with_spec(it, controllerName="kueue.x-k8s.io/provisioning-request") if is_remote else it

    draft.objects = list(map(local, draft.objects))


def _elastic(draft: Draft) -> JsonObject:
    """Mark slices and what they replace as elastic; return the gates that they need."""
    replaced = {text_at(event, "object", "metadata", "annotations", SLICE_OF) for event in draft.events} - {""}
    if not replaced:
        return {}

    def marked(it: JsonObject) -> JsonObject:
        annotations = object_at(it, "metadata", "annotations")
        if not _is_work(it) or not (SLICE_OF in annotations or key_of(it) in replaced):
            return it
        metadata = {**object_at(it, "metadata"), "annotations": {**annotations, ELASTIC: "true"}}
        return {**it, "metadata": metadata, "spec": without_min_counts(object_at(it, "spec"))}

    draft._change(marked)
    gates: JsonObject = {"ElasticJobsViaWorkloadSlices": True}
    return {**gates, "ElasticJobsViaWorkloadSlicesWithTAS": True} if draft.has("Topology") else gates


def _separate(events: Sequence[JsonObject], *, by_queue: bool) -> None:
    """Give workloads different creation times: heads of several queues with the same are taken in any order.

    Args:
        events: The events, whose workloads are changed.
        by_queue: Whether workloads of one LocalQueue may share theirs, as UIDs order them.
    """
    taken: dict[int, str] = {}
    stamps: dict[str, int] = {}
    for event in events:
        workload = object_at(event, "object")
        if not _is_work(workload):
            continue
        key, queue = key_of(workload), text_at(workload, "spec", "queueName")
        if key not in stamps:
            drawn = (nanoseconds(text_at(workload, "metadata", "creationTimestamp")) - START) // SECOND_NS
            stamp = int_at(event, "at") if drawn > 0 else drawn
            while stamp in taken and not (by_queue and taken[stamp] == queue):
                stamp -= 1
            taken[stamp], stamps[key] = queue, stamp
        metadata = {
            **object_at(workload, "metadata"),
            "creationTimestamp": format_time(START + stamps[key] * SECOND_NS),
        }
        event["object"] = {**workload, "metadata": metadata}


def _without_deadline(event: JsonObject) -> JsonObject:
    return {**event, "object": _without_deadline_of(object_at(event, "object"))} if "object" in event else event


def _without_deadline_of(workload: JsonObject) -> JsonObject:
    """Return a workload that may run for any time: nobody ends it in a played run."""
    spec = {name: entry for name, entry in object_at(workload, "spec").items() if name != "maximumExecutionTimeSeconds"}
    return {**workload, "spec": spec}


def _with_spec(thing: JsonObject, **fields: JsonValue) -> JsonObject:
    return {**thing, "spec": {**object_at(thing, "spec"), **fields}}


def _is_work(thing: JsonObject) -> bool:
    return thing.get("kind") == "Workload"


def _changes(event: JsonObject, kind: str) -> bool:
    return event["op"] == "update" and text_at(event, "object", "kind") == kind


def _ready(event: JsonObject) -> JsonObject:
    """Say when the pods of a job are ready, and let none fail that would be done by then: nothing would happen."""
    found: JsonObject = {"readySeconds": [0], **event}
    if 0 < int_at(found, "runSeconds") <= int_at(found, "failSeconds"):
        found = {name: error for name, error in found.items() if name not in ("failSeconds", "recoverSeconds")}
    return found


def _possible(events: Sequence[JsonObject], objects: list[JsonObject]) -> Iterator[JsonObject]:
    """Create what is not there and update what is; leave out what would close a cycle of Cohorts, which Kueue retries.

    Args:
        events: The events in order.
        objects: What there is at the beginning; a Cohort that closes a cycle there becomes a root.
    """
    parents: dict[str, str] = {}
    for index, object_ in enumerate(objects):
        if object_["kind"] == "Cohort" and not _place(object_, parents):
            spec = {name: each for name, each in object_at(object_, "spec").items() if name != "parentName"}
            objects[index] = {**object_, "spec": spec}
    there = {(text_at(object_, "kind"), key_of(object_)) for object_ in objects}
    for event in events:
        thing = object_at(event, "object")
        if event["op"] == "delete" and text_at(event, "kind"):
            there.discard((text_at(event, "kind"), text_at(event, "key")))
        if not thing or _is_work(thing):
            yield event
            continue
        if thing["kind"] == "Cohort" and not _place(thing, parents):
            continue
        name = (text_at(thing, "kind"), key_of(thing))
        if name in there or thing["kind"] in ("Node", "Pod"):
            yield {**event, "op": "update" if name in there else "create"}
            there.add(name)


def _place(cohort: JsonObject, parents: dict[str, str]) -> bool:
    """Put a Cohort below its parent, unless that closes a cycle; return whether it is there."""
    name, above = key_of(cohort), text_at(cohort, "spec", "parentName")
    seen = above
    while seen and seen != name:
        seen = parents.get(seen, "")
    if seen != name:
        parents[name] = above
    return seen != name


@cache
def _refused(release: Release) -> frozenset[str]:
    """Return the kinds with a topology of which an API server with that release's definitions refuses a change."""
    needs = {"Topology": "TopologyLevelsMutable", "ResourceFlavor": "TopologyFlavorLabelsMutable"}
    return frozenset(kind for kind, change in needs.items() if change not in release.changes())


def _is_refused(event: JsonObject, release: Release) -> bool:
    thing = object_at(event, "object")
    is_placed = thing.get("kind") == "Topology" or "topologyName" in object_at(thing, "spec")
    return is_placed and event["op"] == "update" and thing["kind"] in _refused(release)


def _flavor_lists(objects: Sequence[JsonObject]) -> Iterator[list[JsonValue]]:
    for object_ in objects:
        for group in list_at(object_, "spec", "resourceGroups"):
            yield list_at(group, "flavors")
