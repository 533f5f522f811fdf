"""A manager and its workers in one process and one virtual time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from random import Random
from typing import Any

from kueuecore._arguments import flag, shown, text
from kueuecore._json import text_at
from kueuecore.errors import ObjectRef, UnsettledError
from kueuecore.fleet.arguments import check_settings, checked_names, checked_seed, requests_of
from kueuecore.fleet.links import Link, LinkSettings
from kueuecore.fleet.messages import is_watched
from kueuecore.fleet.node import Node
from kueuecore.fleet.node_settings import NodeSettings
from kueuecore.fleet.pods import ENDS_FAILED, KINDS, RUN_SECONDS, is_job, run_ns
from kueuecore.manifests import ManifestLike, plain_object
from kueuecore.multikueue import (
    MANAGER,
    Command,
    Connect,
    ConnectionReason,
    Dispatcher,
    Manager,
    MultiKueueSettings,
    OverflowPolicy,
)
from kueuecore.multikueue.adapters import with_text
from kueuecore.multikueue.functions import DispatchFunction
from kueuecore.times import SECOND_NS, TimeLike, beginning_ns, format_time, later, nanoseconds, span_ns
from kueuecore.writes import Answer, Write

__all__ = ["Fleet"]

# A cluster reconciles everything at once, so it settles in a few rounds, however many objects it has.
_MAX_ROUNDS = 1_000
# If messages take no time, all arrive at the same time: some for each object, and some more.
_MAX_AT_ONCE = 2_000
_MAX_OF_AN_OBJECT = 50

Observer = Callable[["Fleet"], None]


class Fleet:
    """A manager cluster with MultiKueue, worker clusters with Kueue, and the links between them.

    Each cluster has an API server in memory, Kueue's scheduler and running Jobs. On the manager, the state machine of
    MultiKueue runs beside the scheduler; it reaches the workers over links, on which messages take time, get lost, or
    are cut off for a while. Everything follows from the seed.

    Args:
        workers: The names of the workers.
        now: The initial time.
        seed: The seed of delays and losses.
        nodes: Settings of individual clusters, by name; `MANAGER` is the manager.
        settings: Settings of MultiKueue that a Configuration does not cover.
        dispatcher: Decides which workers get copies, an object or a plain function; by default the one that the
            Configuration names.
        overflow: Decides which jobs move on from queues of the manager itself to its workers.
        links: Quality of the links; by default fast and without losses.
        watch: Called with the fleet after each step, for example to check invariants.

    Raises:
        TypeError: An argument of the wrong type.
        ValueError: An invalid time, a duplicate or empty name of a worker, or `nodes` or `links` for clusters that do
            not exist.

    Example:
        >>> fleet = Fleet(["west"], now="2026-01-01T00:00:00Z")
        >>> fleet.advance("2026-01-01T00:00:01Z")
        >>> fleet.manager.is_connected("west")
        False
    """

    def __init__(
        self,
        workers: Iterable[str],
        *,
        now: TimeLike,
        seed: int = 0,
        nodes: Mapping[str, NodeSettings] | None = None,
        settings: MultiKueueSettings | None = None,
        dispatcher: Dispatcher | DispatchFunction | None = None,
        overflow: OverflowPolicy | None = None,
        links: Mapping[str, LinkSettings] | None = None,
        watch: Observer | None = None,
    ) -> None:
        self.now = beginning_ns(now)
        """The time, in nanoseconds since 1970."""
        names = checked_names(workers)
        check_settings("nodes", nodes, NodeSettings, (MANAGER, *names))
        check_settings("links", links, LinkSettings, names)
        self.random = Random(checked_seed(seed))
        given = {name: (nodes or {}).get(name, NodeSettings()) for name in (MANAGER, *names)}
        self.nodes = {name: Node(name, settings=assignment, now=self.now) for name, assignment in given.items()}
        """The clusters by name; `MANAGER` is the manager."""
        if settings is not None and not isinstance(settings, MultiKueueSettings):
            raise TypeError(f"settings must be MultiKueueSettings, not {type(settings).__name__}")
        ways = links or {}
        self.links = {name: Link(ways.get(name, LinkSettings()), self.random) for name in names}
        """The links to the workers, by name."""
        configuration = given[MANAGER].configuration
        # A new process.
        self._make = partial(Manager, configuration, settings=settings, dispatcher=dispatcher, overflow=overflow)
        self.manager = self._make()
        """The MultiKueue state machine of the current process."""
        self.problems: list[str] = []
        self.connections: list[tuple[int, str, bool]] = []
        """When the manager got or lost a connection to a worker: the time, the worker, whether it got it."""
        """Problems that the manager will retry, in the order reported."""
        self.n_steps = 0
        """How many steps the fleet has taken by itself."""
        self._watch = watch
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._n_events = 0
        # How much has happened at the current time.
        self._n_at_once = 0
        self._process = 0
        self._seen = dict.fromkeys(self.nodes, 0)
        self._manager_wake: int | None = self.now

    # Actions of users.

    def apply(self, manifests: str | ManifestLike | Iterable[ManifestLike], *, cluster: str = MANAGER) -> None:
        """Create or update objects on a cluster: all of them, or none.

        Raises:
            ManifestError: Objects that the API server refuses, jobs that Kueue's webhooks refuse, or an annotation
                `fleet.kueuecore/run-seconds` that is not a duration.
            RefusedError: A job whose owner or runtime is missing (403).
            UnsettledError: The fleet does not settle.
            ValueError: There is no such cluster.
        """
        node = self._node(cluster)
        requested = requests_of(manifests)
        for manifest in requested:
            run_ns(manifest.object)
        node.check(requested)
        for manifest in requested:
            node.apply(manifest.object)
        self._come_to_rest()

    def submit(
        self,
        job: ManifestLike,
        *,
        run_seconds: float | None = None,
        ends_failed: bool = False,
        cluster: str = MANAGER,
    ) -> None:
        """Create a job of one of the `KINDS`.

        Args:
            job: The job.
            run_seconds: How long its pods run, on any cluster; None: forever.
            ends_failed: Whether it fails at the end of that time.
            cluster: The cluster on which to create it.

        Raises:
            ManifestError: Kueue's webhooks refuse the job.
            RefusedError: Its owner or runtime is missing (403).
            TypeError: `run_seconds` is not a number, or `ends_failed` not a bool.
            UnsettledError: The fleet does not settle.
            ValueError: It is not a job of the `KINDS`, `run_seconds` is not a duration, or there is no such cluster.
        """
        manifest = plain_object(job, "job")
        if not is_job(manifest):
            kind = f"{text_at(manifest, 'apiVersion')} {text_at(manifest, 'kind')}"
            raise ValueError(f"job: {shown(kind)} cannot run here; give one of {', '.join(KINDS)}")
        if run_seconds is not None:
            span_ns(run_seconds, "run_seconds")
            manifest = with_text(manifest, "annotations", RUN_SECONDS, str(run_seconds))
        if flag("ends_failed", ends_failed):
            manifest = with_text(manifest, "annotations", ENDS_FAILED, "true")
        self.apply(manifest, cluster=cluster)

    def delete(self, kind: str, name: str, *, namespace: str = "", cluster: str = MANAGER) -> None:
        """Delete an object.

        Raises:
            RefusedError: There is no such object (404).
            UnsettledError: The fleet does not settle.
            ValueError: There is no such cluster.
        """
        names = text("kind", kind), text("name", name)
        self._node(cluster).api.delete(*names, namespace=text("namespace", namespace))
        self._come_to_rest()

    # Faults.

    def cut(self, cluster: str) -> None:
        """Cut the link to a worker: no message gets through, and its watches end."""
        self._link(cluster).is_cut = True
        self._end_watch(cluster)
        self._come_to_rest()

    def mend(self, cluster: str) -> None:
        """Restore the link to a worker; the manager notices at its next attempt."""
        self._link(cluster).is_cut = False

    def drop_watch(self, cluster: str) -> None:
        """End the watches of a worker; they can be opened again at once."""
        self._link(cluster)
        self._end_watch(cluster)
        self._come_to_rest()

    def stop_manager(self) -> None:
        """Stop the Kueue process on the manager, which loses all that it had in memory."""
        self._process += 1
        self.nodes[MANAGER].is_down = True
        self._manager_wake = None
        for link in self.links.values():
            link.epoch += 1

    def start_manager(self) -> None:
        """Start a new process on the manager: it lists all objects."""
        self._process += 1
        self.nodes[MANAGER].restart()
        self.manager = self._make()
        api = self.nodes[MANAGER].api
        for kind in self.manager.manager_kinds:
            objects, version = api.list(kind)
            self.manager.resync(kind, objects, resource_version=version, now=self.now)
        self._seen[MANAGER] = api.version
        self._manager_wake = self.now
        self._come_to_rest()

    def restart_worker(self, cluster: str) -> None:
        """Stop the Kueue process on a worker, and start a new one."""
        self._link(cluster)
        self.nodes[cluster].restart()
        self._come_to_rest()

    def hold_back(self, cluster: str, kind: str) -> None:
        """Hold back the events of a kind, such as Node, from Kueue on a cluster until it catches up or restarts."""
        self._node(cluster).hold_back(text("kind", kind))

    def catch_up(self, cluster: str, *, repeats: bool = False) -> None:
        """Deliver to Kueue on a cluster all events that were held back.

        Args:
            cluster: The cluster.
            repeats: Whether to deliver everything once more afterwards, in any order.
        """
        node = self._node(cluster)
        order = list(range(node.n_held_back)) if repeats else []
        self.random.shuffle(order)
        node.catch_up(order)
        self._come_to_rest()

    # Passage of time.

    def next_event_time(self) -> int | None:
        """Return when something happens next by itself; None: never."""
        times = [node.next_wake() for node in self.nodes.values()]
        times += [self._heap[0][0] if self._heap else None, self._manager_wake]
        return min((max(time, self.now) for time in times if time is not None), default=None)

    def advance(self, until: TimeLike) -> None:
        """Let time pass, with everything that happens by itself meanwhile.

        Args:
            until: The time to advance to.

        Raises:
            UnsettledError: The fleet does not settle.
            ValueError: It is not a time, or lies in the past.
        """
        end = nanoseconds(until)
        if end < self.now:
            raise ValueError(f"until is {format_time(end)}, which is over: it is {format_time(self.now)}")
        while (time := self.next_event_time()) is not None and time <= end:
            self._step(time)
        self._go_to(end)

    def wait(self, seconds: float) -> None:
        """Let time pass, in seconds.

        Raises:
            TypeError: It is not a number.
            UnsettledError: The fleet does not settle.
            ValueError: It is negative, or leads beyond April 2262.
        """
        self.advance(later(self.now, seconds, "seconds"))

    # Observation.

    def objects(self, kind: str, *, cluster: str = MANAGER) -> list[dict[str, Any]]:
        """Return all objects of a kind on a cluster."""
        return self._node(cluster).objects(text("kind", kind))

    def get(self, kind: str, name: str, *, namespace: str = "", cluster: str = MANAGER) -> dict[str, Any] | None:
        """Return an object; None if there is none."""
        names = text("kind", kind), text("name", name)
        return self._node(cluster).get(*names, namespace=text("namespace", namespace))

    def running(self, *, namespace: str, name: str, kind: str = "Job") -> list[str]:
        """Return the clusters on which a job has pods."""
        job = ObjectRef(text("kind", kind), text("name", name), text("namespace", namespace))
        return [cluster for cluster, node in self.nodes.items() if job in node.running()]

    # A single point in time.

    def _step(self, time: int) -> None:
        self.n_steps += 1
        self._n_at_once = self._n_at_once + 1 if time == self.now else 0
        if self._n_at_once > _MAX_AT_ONCE:
            n_objects = sum(node.api.n_objects for node in self.nodes.values())
            if self._n_at_once > _MAX_AT_ONCE + _MAX_OF_AN_OBJECT * n_objects:
                raise self._unsettled("the fleet never settles")
        self._go_to(time)
        if self._heap and self._heap[0][0] <= time:
            _, _, happen = heapq.heappop(self._heap)
            happen()
        self._come_to_rest()

    def _go_to(self, time: int) -> None:
        self.now = time
        for node in self.nodes.values():
            node.api.now = time

    def _come_to_rest(self) -> None:
        """Do everything that happens by itself at the current time, without messages that take time."""
        for _ in range(_MAX_ROUNDS):
            is_quiet = True
            for node in self.nodes.values():
                wake = node.next_wake()
                if wake is not None and wake <= self.now:
                    try:
                        node.run(self.now)
                    except UnsettledError as error:
                        raise self._unsettled(str(error)) from None
                    is_quiet = False
            self._send_events()
            if not self.nodes[MANAGER].is_down and self._run_manager():
                is_quiet = False
            if self._watch is not None:
                self._watch(self)
            if is_quiet:
                return
        raise self._unsettled("the fleet never settles")

    def _unsettled(self, what: str) -> UnsettledError:
        return UnsettledError(f"{what} at {format_time(self.now)}: every change triggers another")

    def _node(self, cluster: str) -> Node:
        if text("cluster", cluster) not in self.nodes:
            known = ", ".join(shown(node) if node else "'' (the manager)" for node in self.nodes)
            raise ValueError(f"there is no cluster {shown(cluster)}; give one of {known}")
        return self.nodes[cluster]

    def _link(self, worker: str) -> Link:
        if text("cluster", worker) not in self.links:
            raise ValueError(f"there is no worker {shown(worker)}; give one of {', '.join(map(shown, self.links))}")
        return self.links[worker]

    def _run_manager(self) -> bool:
        """Let the manager see its own cluster, and take a turn if one is due; return whether anything happened."""
        api = self.nodes[MANAGER].api
        has_news = api.version > self._seen[MANAGER]
        if has_news:
            for event in api.since(self._seen[MANAGER]):
                self.manager.observe(event, now=self.now)
            self._seen[MANAGER] = api.version
            self._manager_wake = self.manager.next_wake(self.now)
        if self._manager_wake is None or self._manager_wake > self.now:
            return has_news
        turn = self.manager.turn(self.now)
        self.problems += [f"{problem.about}: {problem.message}" for problem in turn.problems]
        for command in turn.commands:
            self._send(command)
        self._manager_wake = self.manager.next_wake(self.now)
        return has_news or bool(turn.commands)

    # Messages.

    def _later(self, delay_ns: int, happen: Callable[[], None]) -> None:
        self._n_events += 1
        heapq.heappush(self._heap, (self.now + delay_ns, self._n_events, happen))

    def _send(self, command: Command) -> None:
        if isinstance(command, Connect):
            self._connect(command)
            return
        if command.cluster == MANAGER:
            self._answer(command, self._process, self.nodes[MANAGER].carry_out(command))
            return
        link, process = self.links[command.cluster], self._process
        if not link.is_cut and not link.loses_request():
            self._later(link.delay_ns(), lambda: self._arrive(command, process))
        self._later(link.timeout_ns, lambda: self._give_up(command, process))

    def _arrive(self, write: Write, process: int) -> None:
        """Handle a request that has reached its worker."""
        link, answer = self.links[write.cluster], self.nodes[write.cluster].carry_out(write)
        if not link.is_cut and not link.loses_answer():
            self._later(link.delay_ns(), lambda: self._answer(write, process, answer))

    def _answer(self, write: Write, process: int, answer: Answer) -> None:
        if process != self._process or (write.cluster != MANAGER and self.links[write.cluster].is_cut):
            return
        self.manager.done(write, answer, now=self.now)
        self._manager_wake = self.manager.next_wake(self.now)

    def _give_up(self, write: Write, process: int) -> None:
        """Give a request up that got no answer: its outcome is unknown."""
        if process == self._process and self.manager.done(write, Answer(error="no answer"), now=self.now):
            self._manager_wake = self.manager.next_wake(self.now)

    def _connect(self, command: Connect) -> None:
        cluster, process = command.cluster, self._process
        link = self.links.get(cluster)
        if link is not None and not link.is_cut:
            self._later(2 * link.delay_ns(), lambda: self._listed(cluster, process))
        else:
            self._later(SECOND_NS, lambda: self._not_connected(cluster, process))

    def _listed(self, cluster: str, process: int) -> None:
        """Handle the arrival of a worker's lists, with its watches up."""
        if process != self._process:
            return
        if self.links[cluster].is_cut:
            self._not_connected(cluster, process)
            return
        link, api = self.links[cluster], self.nodes[cluster].api
        link.epoch += 1
        for kind in self.manager.worker_kinds:
            objects, version = api.list(kind)
            seen = [object_ for object_ in objects if is_watched(object_)]
            self.manager.resync(kind, seen, cluster=cluster, resource_version=version, now=self.now)
        self._seen[cluster] = api.version
        self.manager.connected(cluster, now=self.now)
        self.connections.append((self.now, cluster, True))
        self._manager_wake = self.manager.next_wake(self.now)

    def _not_connected(self, cluster: str, process: int) -> None:
        if process == self._process:
            refused = "dial tcp: connect: connection refused"
            self.manager.connection_failed(cluster, ConnectionReason.CONNECTION_FAILED, refused, now=self.now)
            self._manager_wake = self.manager.next_wake(self.now)

    def _end_watch(self, cluster: str) -> None:
        self.links[cluster].epoch += 1
        if not self.nodes[MANAGER].is_down:
            if self.manager.is_connected(cluster):
                self.connections.append((self.now, cluster, False))
            self.manager.connection_lost(cluster, now=self.now)
            self._manager_wake = self.manager.next_wake(self.now)

    def _send_events(self) -> None:
        """Send the events of the workers to the manager."""
        for cluster, link in self.links.items():
            api = self.nodes[cluster].api
            if api.version == self._seen[cluster]:
                continue
            if not link.is_cut and not self.nodes[MANAGER].is_down and self.manager.is_connected(cluster):
                for event in api.since(self._seen[cluster]):
                    if is_watched(event["object"]):
                        self._send_event(cluster, link, event)
            self._seen[cluster] = api.version

    def _send_event(self, cluster: str, link: Link, event: dict[str, Any]) -> None:
        epoch, process = link.epoch, self._process
        for _ in range(2 if link.repeats_event() else 1):
            self._later(link.delay_ns(), lambda: self._hear(cluster, event, epoch, process))

    def _hear(self, cluster: str, event: dict[str, Any], epoch: int, process: int) -> None:
        if process == self._process and epoch == self.links[cluster].epoch:
            self.manager.observe(event, cluster=cluster, now=self.now)
            self._manager_wake = self.manager.next_wake(self.now)
