"""Releases pods to the domains of their workloads, and tracks the writes on their way (rules/08 §12)."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TypeAlias

from kueuecore._json import JsonObject
from kueuecore._nested import remove
from kueuecore._text import logged
from kueuecore.checks import WorkloadKey
from kueuecore.controller.metrics import Metrics
from kueuecore.controller.sent_writes import SentWrites
from kueuecore.controller.side_controllers import SideController
from kueuecore.controller.versions import Key, key_of
from kueuecore.controller.workload_records import WorkloadRecords
from kueuecore.controller.writes import conditions_that_hold
from kueuecore.errors import ManifestError
from kueuecore.jobs import JobsConfiguration, PodRelease, release_pods, requests_of
from kueuecore.jobs.elastic_pods import slice_name
from kueuecore.jobs.injection import TOPOLOGY_GATE
from kueuecore.jobs.pod import group_name
from kueuecore.jobs.pod_release import healthy_places, is_behind_topology_gate, is_placed_by_topology, workload_of_pod
from kueuecore.writes import Answer, Verb, Write

__all__ = ["PodReleases"]

_LOGGER = logging.getLogger("kueuecore.controller")
_Team: TypeAlias = tuple[str, str]
"""Namespace, and the name that the pods and the workload share: for an elastic job, that of its first slice."""


class PodReleases(SideController):
    """The pods behind the topology gate, and the writes that release them.

    A workload's pods are released in rounds. The next one waits until a watch has shown the pods of the last one, or
    their writes were refused (§12.1): otherwise the room of pods on their way would be given to others.

    Args:
        workloads: The Workloads as they are stored.
        configuration: How jobs are managed.
        metrics: Counts the removed gates.
    """

    def __init__(self, workloads: WorkloadRecords, configuration: JobsConfiguration, metrics: Metrics | None) -> None:
        self._workloads = workloads
        self._configuration = configuration
        self._metrics = metrics
        self._pods: defaultdict[_Team, dict[Key, JsonObject]] = defaultdict(dict)
        self._gated: defaultdict[_Team, dict[Key, JsonObject]] = defaultdict(dict)
        self._team_of_pod: dict[Key, _Team] = {}
        # The workloads that are Admitted and assigned to domains.
        self._placed: defaultdict[_Team, dict[WorkloadKey, None]] = defaultdict(dict)
        self._team_of_workload: dict[WorkloadKey, _Team] = {}
        # Those whose pods or workload have changed.
        self._due: dict[_Team, None] = {}
        # Sent, but not answered yet.
        self._open: defaultdict[_Team, dict[Key, PodRelease]] = defaultdict(dict)
        self._sent = SentWrites()

    # Observed objects.

    def note(self, key: Key, manifest: JsonObject | None, at: int) -> None:
        """Take in the stored version of an object; `None` if it was deleted."""
        if key[0] == "Pod":
            self._note_pod(key, manifest, at)
        elif key[0] == "Workload":
            self._note_workload(key[1:], manifest)

    def _note_pod(self, key: Key, pod: JsonObject | None, at: int) -> None:
        if (team := self._team_of_pod.pop(key, None)) is not None:
            remove(self._pods, team, key)
            remove(self._gated, team, key)
            release = remove(self._open, team, key)
            if release is not None and pod is not None and not is_behind_topology_gate(pod):
                self._count(team, pod, at)
            self._touch(team)
        # Anything sent was for another version.
        self._sent.forget(key)
        if pod is not None and (name := workload_of_pod(pod)):
            team = self._team_of_pod[key] = key[1], name
            self._pods[team][key] = pod
            if is_behind_topology_gate(pod):
                self._gated[team][key] = pod
            self._touch(team)

    def _note_workload(self, key: WorkloadKey, workload: JsonObject | None) -> None:
        if (before := self._team_of_workload.pop(key, None)) is not None:
            remove(self._placed, before, key)
        if workload is None or not is_placed_by_topology(workload) or "Finished" in conditions_that_hold(workload):
            return
        team = self._team_of_workload[key] = key[0], slice_name(workload)
        self._placed[team][key] = None
        self._touch(team)

    def _touch(self, team: _Team) -> None:
        if team in self._placed and team in self._gated:
            self._due[team] = None

    def _count(self, team: _Team, pod: JsonObject, at: int) -> None:
        if self._metrics is not None:
            for key in self._placed.get(team, ()):
                is_group = group_name(pod, JobsConfiguration()) != ""
                self._metrics.gate_removed(TOPOLOGY_GATE, self._stored(key), now=at, is_group=is_group)

    # Writes.

    def take_writes(self, at: int) -> list[Write]:
        """Return the writes that are due, for Workloads that are as stored."""
        writes: list[Write] = []
        for team in list(self._due):
            if self._is_waiting(team):
                continue
            self._drop_lost(team, at)
            # Resend what got no answer, and nothing else.
            found = self._open_of(team) or self._next_round(team)
            writes += [self._send(team, key, release, at) for key, release in found if self._may_send(release, at)]
            if not self._times(team):
                del self._due[team]
        return writes

    def _is_waiting(self, team: _Team) -> bool:
        """Return whether a Workload differs from what is stored: the change may move its pods."""
        return not all(self._workloads.is_settled(key) for key in self._placed.get(team, ()))

    def _drop_lost(self, team: _Team, at: int) -> None:
        """Give up unanswered releases to domains that are no longer allowed."""
        open_ = self._open.get(team, {})
        stored = [self._stored(key) for key in self._placed.get(team, ())] if open_ else []
        places = [place for problem in stored for place in healthy_places(problem, self._configuration)]
        for key, release in list(open_.items()):
            if release.node_selector not in places and self._may_send(release, at):
                remove(self._open, team, key)
                self._sent.forget(key)

    def _open_of(self, team: _Team) -> list[tuple[WorkloadKey, PodRelease]]:
        workload = next(iter(self._placed.get(team, ())), None)
        return [] if workload is None else [(workload, row) for row in self._open.get(team, {}).values()]

    def _next_round(self, team: _Team) -> list[tuple[WorkloadKey, PodRelease]]:
        found: list[tuple[WorkloadKey, PodRelease]] = []
        for key in self._placed.get(team, ()):
            workload, pods = self._stored(key), self._pods[team].values()
            try:
                found += [
                    (key, release_pod)
                    for release_pod in release_pods(workload, pods, configuration=self._configuration)
                ]
            except ManifestError as error:
                _LOGGER.warning("no pod of %s/%s is released: %s", *key, logged(error))
        # A refused pod that may no longer go need not wait.
        for pod in self._gated.get(team, {}).keys() - {_key(release) for _, release in found}:
            self._sent.forget(pod)
        return found

    def _may_send(self, release: PodRelease, at: int) -> bool:
        return self._sent.may_send(_key(release), release.pod, at)

    def _send(self, team: _Team, workload: WorkloadKey, release: PodRelease, at: int) -> Write:
        key = _key(release)
        self._sent.send(key, release.pod, at)
        self._open[team][key] = release
        write = Write(Verb.UPDATE, release.manifest, workload=workload)
        (request,) = requests_of([write], lambda _: release.pod)
        return request

    def _stored(self, key: WorkloadKey) -> JsonObject:
        record = self._workloads.get(key)
        assert record is not None, "a Workload that has gone is not placed"
        return record.data

    def _times(self, team: _Team) -> list[int]:
        """Return when unanswered or refused writes are sent again."""
        if team not in self._placed:
            return []
        return [self._sent.next_time(*item) for item in self._gated.get(team, {}).items() if self._sent.has(item[0])]

    # Outcomes.

    def refused(self, write: Write, answer: Answer, *, at: int) -> bool:
        """Retry a refused release after a pause.

        After a conflict there is a newer version of the pod, which may be released already: its room is kept until a
        watch shows it.
        """
        ref = write.object
        key: Key = ref.kind, ref.namespace, ref.name
        if ref.kind != "Pod" or write.verb is not Verb.PATCH:
            return False
        self._sent.refuse(key, at)
        if not answer.is_conflict and (team := self._team_of_pod.get(key)) is not None:
            remove(self._open, team, key)
        return True

    def next_wake(self) -> int | None:
        """Return when the next write is due; 0: at once; `None`: none is."""
        ready = (team for team in self._due if not self._is_waiting(team))
        return min((min(self._times(team), default=0) for team in ready), default=None)


def _key(release: PodRelease) -> Key:
    return key_of(release.pod)
