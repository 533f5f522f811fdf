"""Runs the manager of `kueuecore.multikueue` for a cluster, as `Decider` runs its controllers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from kueuecore._json import JsonObject, text_at
from kueuecore._kinds import KUEUE
from kueuecore._text import logged
from kueuecore.configuration import Configuration
from kueuecore.controller import Metrics
from kueuecore.controller.object_store import Follower
from kueuecore.controller.versions import Key
from kueuecore.errors import KueuecoreError
from kueuecore.jobs import JobEvent
from kueuecore.kubernetes.decider import Decider, Submit
from kueuecore.kubernetes.sender import Stream
from kueuecore.kubernetes.watches import News
from kueuecore.kubernetes.workers.credentials import WorkerCredentials, WorkerCredentialsError
from kueuecore.kubernetes.workers.kinds import places_of
from kueuecore.kubernetes.workers.link import LinkReports
from kueuecore.kubernetes.workers.requests import answer_to
from kueuecore.kubernetes.workers.sources import WorkerSources
from kueuecore.multikueue import MANAGER, Connect, ConnectionReason, Dispatcher, Manager
from kueuecore.multikueue.configs import is_of_multikueue
from kueuecore.times import SECOND_NS, format_time
from kueuecore.writes import Answer, Write

__all__ = ["OWN_KINDS", "Link", "MultiKueueDecider", "OpenLink"]

_LOGGER = logging.getLogger("kueuecore.kubernetes")
OWN_KINDS = {"MultiKueueCluster": (KUEUE, "multikueueclusters"), "MultiKueueConfig": (KUEUE, "multikueueconfigs")}
"""The kinds by which a cluster becomes a manager: apiVersion and plural."""
_SECRET = {"Secret": ("v1", "secrets")}
# A workload is not looked at while a write about it is open.
_PATIENCE_NS = 10 * SECOND_NS
_FILES_EVERY_NS = 5 * SECOND_NS
_SECRETS_EVERY_NS = SECOND_NS
_DEPRECATED_PATH = (
    "Using locationType=Path without MultiKueueKubeConfigPathValidation feature gate is deprecated and will be removed "
    "in a future release. Enable the MultiKueueKubeConfigPathValidation feature gate and place kubeconfig files under "
    "/etc/multikueue/kubeconfigs/."
)


class Link(Protocol):
    """A connection to a worker."""

    def send(self, write: Write) -> None:
        """Send a write; its answer is reported."""
        ...

    def close(self) -> None:
        """End it without a report."""
        ...


OpenLink: TypeAlias = Callable[[str, WorkerCredentials, Mapping[str, tuple[str, str]], LinkReports], Link]
"""Begins to connect to a worker: its name, its credentials, the kinds to watch, and who gets the reports."""


class MultiKueueDecider:
    """Decides which workers get copies of Workloads, without threads of its own: news comes in, requests go out.

    Nothing is decided before a MultiKueueCluster, a MultiKueueConfig or an AdmissionCheck of MultiKueue exists.

    Args:
        decider: Decides beside it; it knows the other objects of the cluster.
        requests: Carries out a request to the cluster itself.
        call: Makes a call in the deciding thread; reports and outcomes come back that way.
        now: Returns the time, in nanoseconds since 1970; it never goes back.
        open_link: Begins to connect to a worker.
        watch: Begins to watch more kinds of the cluster itself, in a namespace or, if it is empty, in all.
        fault_of: Returns why a kind cannot be watched; empty if it can.
        configuration: Kueue's Configuration; by default that of Kueue's release manifest.
        dispatcher: Decides which workers get copies; by default the one that the Configuration names.
        metrics: Counts what is dispatched and admitted.
    """

    def __init__(
        self,
        decider: Decider,
        *,
        requests: Submit,
        call: Callable[[Callable[[], None]], None],
        now: Callable[[], int],
        open_link: OpenLink,
        watch: Callable[[Sequence[str], str], None],
        fault_of: Callable[[str], str],
        configuration: Configuration | None = None,
        dispatcher: Dispatcher | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self._decider, self._requests, self._call, self._now = decider, requests, call, now
        self._open_link, self._watch, self._fault_of = open_link, watch, fault_of
        settings = (configuration or Configuration()).to_dict()
        self._namespace = text_at(settings, "namespace")
        self.manager = Manager(configuration, dispatcher=dispatcher, metrics=metrics)
        """Decides."""
        self._kinds = places_of(self.manager.manager_kinds)
        # What the other controllers do not watch.
        self._extra = {kind: place for kind, place in self._kinds.items() if kind not in decider.jobs.kinds}
        self._unlisted = set(self._extra)
        self._sources = WorkerSources(validates_paths=self.manager.settings.validates_kubeconfig_paths)
        self._clusters: dict[str, JsonObject] = {}
        self._is_active = False
        self._links: dict[str, Link] = {}
        # The number of the current connection of each worker: what earlier ones report is dropped.
        self._numbers: dict[str, int] = {}
        self._n_links = 0
        # Connections that are not up yet, and until when they may take.
        self._opening: dict[str, int] = {}
        # Those that wait for the Secrets.
        self._waiting: list[Connect] = []
        # Until when to wait for the answer to a write of a worker.
        self._patience: dict[int, tuple[int, Write]] = {}
        self._files_at = 0
        decider.api.kinds |= self._kinds

    @property
    def kinds(self) -> Sequence[str]:
        """The kinds to watch from the start: whether anything is decided depends on them."""
        return tuple(OWN_KINDS)

    @property
    def connected(self) -> Sequence[str]:
        """The workers to which there is a connection, by name."""
        return sorted(cluster for cluster in self._links if cluster not in self._opening)

    # Input.

    def hear(self, news: News) -> None:
        """Take in a list or an event of the cluster itself."""
        if news.kind == "Secret":
            were_known = self._sources.are_listed
            for cluster in self._sources.hear(news):
                if were_known:
                    _LOGGER.info("the credentials of a worker have changed", extra={"cluster": cluster})
                self.manager.source_changed(cluster, now=self._now())
            return
        if news.kind in self._extra:
            self._take(news, MANAGER)
            if news.listed is not None:
                self._unlisted.discard(news.kind)
        if news.kind == "MultiKueueCluster":
            self._note_clusters(news)
        # A bookmark has an object of that kind, too.
        is_object = news.event.get("type") in ("ADDED", "MODIFIED")
        objects = news.listed if news.listed is not None else [news.event.get("object")] if is_object else []
        is_own = news.kind in OWN_KINDS and any(objects)
        if is_own or (news.kind == "AdmissionCheck" and any(map(_is_check, objects))):
            self._activate()

    def _note_clusters(self, news: News) -> None:
        if news.listed is not None:
            self._clusters = {text_at(cluster, "metadata", "name"): cluster for cluster in news.listed}
        elif isinstance(cluster := news.event.get("object"), dict):
            name = text_at(cluster, "metadata", "name")
            if news.event.get("type") == "DELETED":
                self._clusters.pop(name, None)
            elif news.event.get("type") in ("ADDED", "MODIFIED"):
                self._clusters[name] = cluster
        self._sources.note(self._clusters.values())

    def _activate(self) -> None:
        if self._is_active:
            return
        self._is_active = True
        _LOGGER.info(
            "dispatches to workers of MultiKueue", extra={"dispatcher": type(self.manager.dispatcher).__name__}
        )
        shared = {kind: place for kind, place in self._kinds.items() if kind not in self._extra}
        follower = Follower(shared, lambda _: None, self._note, lambda _kind, _at: None)
        self._decider.loop._objects.store.follow(follower, self._now())
        self._decider.api.kinds |= _SECRET
        self._watch([kind for kind in self._extra if kind not in OWN_KINDS], "")
        self._watch([*_SECRET], self._namespace)

    def _note(self, key: Key, before: JsonObject | None, after: JsonObject | None, _at: int) -> None:
        """Take in an object that the other controllers have seen."""
        if key[0] in self._kinds and key[0] not in self._extra:
            kind = "DELETED" if after is None else "MODIFIED"
            self._take(News(key[0], event={"type": kind, "object": after or before}), MANAGER)

    def _take(self, news: News, cluster: str) -> bool:
        """Take in what a cluster has, and return whether it could be read."""
        now = self._now()
        try:
            if news.listed is None:
                self.manager.observe(news.event, cluster=cluster, now=now)
            else:
                version = news.version
                self.manager.resync(news.kind, news.listed, cluster=cluster, resource_version=version, now=now)
        except (KueuecoreError, TypeError, ValueError) as error:
            _LOGGER.warning("not taken in", extra={"cluster": cluster, "problem": logged(error)})
            return False
        return True

    # Output.

    def step(self) -> int | None:
        """Take a turn, and hand over the writes.

        Returns:
            When to call it again if no news arrives before; None: never.
        """
        if not self._is_active or self._unlisted:
            return None
        now = self._now()
        self._look_at_files(now)
        self._give_up(now)
        turn = self.manager.turn(now)
        for problem in turn.problems:
            _LOGGER.info("workload waits", extra={"workload": problem.about, "for": logged(problem.message)})
        waiting, self._waiting = self._waiting, []
        for command in (*waiting, *turn.commands):
            if isinstance(command, Connect):
                self._connect(command)
            else:
                self._send(command)
        self._close_unused()
        times = [self.manager.next_wake(now), *self._opening.values(), *(until for until, _ in self._patience.values())]
        times += [now + _SECRETS_EVERY_NS] if self._waiting else []
        times += [self._files_at] if self._sources.has_files else []
        return min((time for time in times if time is not None), default=None)

    def close(self) -> None:
        """End all connections."""
        for link in self._links.values():
            link.close()
        self._links.clear()

    def _send(self, write: Write) -> None:
        if write.cluster == MANAGER:
            stream = {"Workload": Stream.WORKLOADS, "MultiKueueCluster": Stream.OBJECTS}.get(write.kind, Stream.JOBS)
            self._requests(write.object, partial(self._write_here, write), stream)
        elif (link := self._links.get(write.cluster)) is not None:
            self._patience[write.number] = self._now() + _PATIENCE_NS, write
            link.send(write)
        else:
            self._done(write, Answer(error="there is no connection"))

    def _write_here(self, write: Write) -> None:
        """Send a write to the cluster itself, in whatever thread. Of other kinds, watches show what was refused."""
        answer = answer_to(self._decider.api, write, reads=write.kind == "Workload")
        self._call(partial(self._done, write, answer))

    def _done(self, write: Write, answer: Answer) -> None:
        """Report how a write went. Late answers, and those of earlier connections, matter no more."""
        self._patience.pop(write.number, None)
        try:
            self.manager.done(write, answer, now=self._now())
        except (KueuecoreError, TypeError, ValueError) as error:
            extra = {"cluster": write.cluster, "object": str(write.object), "error": logged(error)}
            _LOGGER.warning("answer not understood", extra=extra)
            self.manager.done(write, Answer(error="the answer is not that object"), now=self._now())
            return
        if write.cluster == MANAGER:
            if write.kind in self._decider.jobs.kinds:
                self._decider.take_answer(answer)
            if answer.is_accepted:
                self._decider.emit(write.event_manifests(self._time))

    def _give_up(self, now: int) -> None:
        """Stop waiting for workers that do not answer."""
        for until, write in list(self._patience.values()):
            if until <= now:
                self._done(write, Answer(error=f"no answer for {_PATIENCE_NS // SECOND_NS} s"))
        for cluster, until in list(self._opening.items()):
            if until <= now:
                self._disconnect(cluster)
                self._failed(cluster, ConnectionReason.CONNECTION_FAILED, "watch establishment timed out")

    # Connections.

    def _connect(self, command: Connect) -> None:
        cluster = command.cluster
        self._disconnect(cluster)
        location = text_at(command.source, "kubeConfig", "locationType")
        if location == "Path" and not self.manager.settings.validates_kubeconfig_paths:
            self._warn_of_path(cluster)
        if location != "Path" and "kubeConfig" in command.source and not self._sources.are_listed:
            if not (fault := self._fault_of("Secret")):
                self._waiting.append(command)
                return
            problem = f"the Secrets of namespace {self._namespace} cannot be watched: {fault}"
            self._failed(cluster, ConnectionReason.BAD_KUBE_CONFIG, problem)
            return
        try:
            credentials = WorkerCredentials(self._sources.read(cluster, command.source))
        except WorkerCredentialsError as error:
            self._failed(cluster, error.reason, str(error), is_missing=error.is_missing)
            return
        self._n_links += 1
        number = self._numbers[cluster] = self._n_links
        self._opening[cluster] = self._now() + command.timeout_ns
        reports = LinkReports(
            heard=lambda news: self._call(partial(self._heard, cluster, number, news)),
            up=lambda: self._call(partial(self._up, cluster, number)),
            down=lambda message: self._call(partial(self._down, cluster, number, message)),
            answered=lambda write, answer: self._call(partial(self._done, write, answer)),
        )
        kinds = places_of(self.manager.worker_kinds)
        try:
            self._links[cluster] = self._open_link(cluster, credentials, kinds, reports)
        except Exception as error:  # a client that cannot be made of them must not end the process
            credentials.close()
            self._down(cluster, number, f"{type(error).__name__}: {logged(error)}")

    def _heard(self, cluster: str, number: int, news: News) -> None:
        if self._numbers.get(cluster) != number:
            return
        if not self._take(news, cluster) and news.listed is not None:
            self._down(cluster, number, f"its {news.kind}s cannot be read")

    def _up(self, cluster: str, number: int) -> None:
        if self._numbers.get(cluster) != number:
            return
        self._opening.pop(cluster, None)
        self.manager.connected(cluster, now=self._now())
        _LOGGER.info("worker connected", extra={"cluster": cluster})

    def _down(self, cluster: str, number: int, message: str) -> None:
        if self._numbers.get(cluster) != number:
            return
        was_opening = cluster in self._opening
        self._disconnect(cluster)
        if was_opening:
            self._failed(cluster, ConnectionReason.CONNECTION_FAILED, message)
        else:
            _LOGGER.warning("worker lost", extra={"cluster": cluster, "error": message})
            self.manager.connection_lost(cluster, now=self._now())

    def _failed(self, cluster: str, reason: ConnectionReason, message: str, *, is_missing: bool = False) -> None:
        _LOGGER.info("worker not connected", extra={"cluster": cluster, "reason": reason, "error": message})
        self.manager.connection_failed(cluster, reason, message, now=self._now(), is_missing=is_missing)

    def _disconnect(self, cluster: str) -> None:
        self._numbers.pop(cluster, None)
        self._opening.pop(cluster, None)
        self._waiting = [command for command in self._waiting if command.cluster != cluster]
        if (link := self._links.pop(cluster, None)) is not None:
            link.close()

    def _close_unused(self) -> None:
        """Close connections that the manager has given up."""
        for cluster in list(self._links):
            is_wanted = cluster in self._clusters if cluster in self._opening else self.manager.is_connected(cluster)
            if not is_wanted:
                self._disconnect(cluster)

    def _look_at_files(self, now: int) -> None:
        if self._sources.has_files and now >= self._files_at:
            self._files_at = now + _FILES_EVERY_NS
            for cluster in self._sources.changed_files():
                self.manager.source_changed(cluster, now=now)

    def _warn_of_path(self, cluster: str) -> None:
        if (manifest := self._clusters.get(cluster)) is not None:
            about = {"apiVersion": KUEUE, "kind": "MultiKueueCluster", **manifest}
            warning = JobEvent(about, "Warning", "DeprecatedPathUsage", _DEPRECATED_PATH)
            self._decider.emit([warning.manifest(self._time)])

    @property
    def _time(self) -> str:
        return format_time(self._now() // SECOND_NS * SECOND_NS)


def _is_check(manifest: object) -> bool:
    return isinstance(manifest, dict) and is_of_multikueue(manifest)
