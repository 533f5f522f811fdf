"""One cluster of a fleet: an API server, Kueue's scheduler and job controllers, and the rest of Kubernetes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.api_server import ApiServer, RefusedError
from kueuecore.controller import Controller, JobController, Metrics
from kueuecore.controller.in_use_finalizers import with_finalizer
from kueuecore.controller.watched_kinds import SOMETIMES_WATCHED
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef, UnsettledError
from kueuecore.fleet.job_webhooks import JobWebhooks
from kueuecore.fleet.kubernetes import Kubernetes
from kueuecore.fleet.node_settings import NodeSettings
from kueuecore.fleet.pods import is_job
from kueuecore.jobs import JobsConfiguration
from kueuecore.manifests import Manifest, object_ref
from kueuecore.provisioning import ProvisioningController
from kueuecore.writes import Answer, Verb, WorkloadKey, Write

__all__ = ["Node"]

_MAX_ROUNDS = 500


class Node:
    """A cluster with Kueue. Within it, events and writes take no time.

    Args:
        name: Its name; empty for the manager.
        settings: What distinguishes it from the others.
        now: The initial time.
    """

    def __init__(self, name: str, *, settings: NodeSettings, now: int) -> None:
        self.name = name
        self.api = ApiServer(now=now)
        self.is_down = False
        """Whether Kueue is down. The API server still answers, and running Jobs keep running."""
        self.kubernetes = Kubernetes(self.api, settings)
        """The controllers other than Kueue."""
        self._settings = settings
        # As everywhere, pod readiness matters only if the Configuration says so.
        waits = settings.configuration is not None and settings.configuration.names_wait_for_pods_ready
        managed = JobsConfiguration.of(settings.configuration)
        self._managed = managed if waits else replace(managed, waits_for_pods_ready=False)
        self._metrics: Metrics | None = None
        self._webhooks = JobWebhooks(self.api, settings.configuration)
        self.controller, self._jobs = self._begun()
        """Kueue's scheduler in the current process."""
        self._seen = 0
        self._wake: int | None = now
        # Kinds whose events are held back from Kueue, and these events.
        self._late: set[str] = set()
        self._held: list[dict[str, Any]] = []

    # Requests to the API server.

    def check(self, manifests: Sequence[Manifest]) -> None:
        """Refuse objects that the API server would refuse.

        Raises:
            ManifestError: The objects are invalid.
            RefusedError: A job whose owner or runtime is missing.
        """
        jobs = [manifest.object for manifest in manifests if is_job(manifest.object)]
        workloads = [workload for job in jobs for workload in self._webhooks.workloads_of(job)]
        others = [manifest for manifest in manifests if not is_job(manifest.object)]
        Engine(self._settings.configuration).apply([*others, *workloads])
        for job in jobs:
            ref = object_ref(job)
            if self.get(ref.kind, ref.name, namespace=ref.namespace) is None:
                self._webhooks.stored(job, beside=(manifest.object for manifest in manifests))

    def apply(self, manifest: JsonObject) -> JsonObject:
        """Create or update an object; Kueue's webhooks change jobs first."""
        kind, metadata = text_at(manifest, "kind"), object_at(manifest, "metadata")
        name, namespace = text_at(metadata, "name"), text_at(metadata, "namespace")
        try:
            self.api.get(kind, name, namespace=namespace)
        except RefusedError:
            return self.create(manifest)
        changed: JsonObject = {key: manifest[key] for key in ("spec", "status") if key in manifest}
        changed["metadata"] = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
        for subresource in ("", "status"):
            self.api.patch(kind, name, changed, namespace=namespace, subresource=subresource)
        return self.api.get(kind, name, namespace=namespace)

    def create(self, manifest: JsonObject) -> JsonObject:
        """Create an object; Kueue's webhooks change it first (rules/10 §2.2, rules/01 §13).

        Raises:
            RefusedError: The name is taken (409), or the webhooks refuse the job.
        """
        return self.api.create(self._webhooks.stored(manifest) if is_job(manifest) else with_finalizer(manifest))

    def carry_out(self, write: Write) -> Answer:
        """Carry out a write from outside; Kueue's webhooks change jobs first."""
        if write.verb is Verb.CREATE and is_job(write.manifest):
            try:
                write = replace(write, manifest=self._webhooks.stored(write.manifest))
            except RefusedError as refused:
                found = self.get(write.kind, write.name, namespace=write.namespace)
                return Answer(found, str(refused), refused.code)
        return self.api.carry_out(write)

    def objects(self, kind: str) -> list[dict[str, Any]]:
        """Return all objects of a kind."""
        return self.api.list(kind)[0]

    def get(self, kind: str, name: str, *, namespace: str = "") -> dict[str, Any] | None:
        """Return an object; None if there is none."""
        return self.api.find(kind, name, namespace=namespace)

    def metrics_text(self) -> str:
        """Return Kueue's metrics in Prometheus' text format; empty unless the settings ask for them."""
        return "" if self._metrics is None else self._metrics.text(self.controller.engine)

    def running(self) -> frozenset[ObjectRef]:
        """The jobs that have pods here."""
        return self.kubernetes.running()

    # Events.

    def restart(self) -> None:
        """Restart Kueue: the new process knows nothing but what it lists."""
        self.is_down = False
        self.controller, self._jobs = self._begun()
        self._late, self._held = set(), []
        kinds = self._jobs.kinds
        # Placements need the nodes before the Workloads.
        for kind in SOMETIMES_WATCHED:
            if kind not in kinds:
                objects, version = self.api.list(kind)
                self.controller.resync(kind, objects, resource_version=version, now=self.api.now)
        for kind in kinds:
            objects, version = self.api.list(kind)
            self._jobs.resync(kind, objects, resource_version=version, now=self.api.now)
        self._seen, self._wake = self.api.version, self.api.now

    def hold_back(self, kind: str) -> None:
        """Hold back events of a kind from Kueue until it catches up or restarts."""
        self._late.add(kind)

    def catch_up(self, again: Sequence[int] = ()) -> None:
        """Deliver to Kueue all events that were held back.

        Args:
            again: Which of the events to deliver once more afterwards, by position, in this order.
        """
        held, self._late, self._held = self._held, set(), []
        events = [*held, *(held[index] for index in again)]
        for event in events:
            if self._jobs.observe(event, now=self.api.now):
                self._wake = self.api.now

    @property
    def n_held_back(self) -> int:
        """How many events are held back from Kueue."""
        return len(self._held)

    def _begun(self) -> tuple[Controller, JobController]:
        configuration, checks = self._settings.configuration, [*self._settings.checks()]
        if self._settings.capacity is not None:
            checks.append(ProvisioningController.of(configuration))
        # The manager reads the queues of its workers at once; nothing reads its own.
        delay = 0 if self.name else None
        # A new process counts from zero.
        self._metrics = Metrics() if self._settings.has_metrics else None
        # As in a simulation of one cluster.
        controller = Controller(
            configuration, batches_retries=False, checks=checks, status_delay_seconds=delay, metrics=self._metrics
        )
        return controller, JobController(controller, configuration=self._managed)

    def next_wake(self) -> int | None:
        """Return when something next happens by itself, in the scheduler or beside Kueue."""
        wake = self.kubernetes.next_wake()
        times = [] if wake is None else [wake]
        if not self.is_down:
            times += [entry for entry in (self._wake, self._jobs.next_wake(self.api.now)) if entry is not None]
        if self.api.version > self._seen and not self.is_down:
            times.append(self.api.now)
        return min(times, default=None)

    def run(self, now: int) -> None:
        """Do everything that happens by itself at a time.

        Raises:
            UnsettledError: The cluster does not settle.
        """
        self.api.now = now
        for _ in range(_MAX_ROUNDS):
            version = self.api.version
            self.kubernetes.run(now)
            if not self.is_down:
                self._observe(now)
                self._look_at_jobs(now)
                if self._wake is not None and self._wake <= now:
                    self._turn(now)
            if self.api.version == version and (self.is_down or self._wake is None or self._wake > now):
                return
        raise UnsettledError(f"{f'worker {self.name}' if self.name else 'the manager'} never settles")

    def _observe(self, now: int) -> None:
        if self._seen == self.api.version:
            return
        has_news = False
        for event in self.api.since(self._seen):
            if text_at(event, "object", "kind") in self._late:
                self._held.append(event)
                continue
            has_news |= self._jobs.observe(event, now=now)
        self._seen = self.api.version
        if has_news:
            self._wake = now

    def _look_at_jobs(self, now: int) -> None:
        wake = self._jobs.next_wake(now)
        if wake is None or wake > now:
            return
        for work in self._jobs.take_due(now):
            if work.requests:
                self._jobs.done(work.job, self.api.carry_out(*work.requests), now=now)
        self._wake = now

    def _turn(self, now: int) -> None:
        turn = self.controller.turn(now)
        for write in turn.writes:
            self.controller.done(write, self.api.carry_out(write), now=now)
        # After a refusal, the rest for that Workload is skipped.
        refused: set[WorkloadKey] = set()
        for write in turn.objects:
            # Gates of pods are not played here.
            if write.workload in refused or write.kind == "Pod":
                continue
            answer = self.api.carry_out(write)
            self.controller.done(write, answer, now=now)
            if not (answer.is_accepted or write.verb is Verb.UPDATE):
                refused.add(write.workload)
        self._observe(now)
        self._wake = self.controller.next_wake(now)
