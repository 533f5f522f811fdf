"""The cluster of policy tests: objects, arriving jobs, and the outcome of each by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore._near_names import near_names
from kueuecore.configuration import Configuration
from kueuecore.decisions import Preemption
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, UnknownObjectError, UnsettledError
from kueuecore.manifests import Manifest, ManifestLike, as_manifest
from kueuecore.scenarios.work import Arrival
from kueuecore.simulation import Happening, Operation, Run, SimulatedCycle, StepKind, VirtualCluster
from kueuecore.states import QuotaRow, WorkloadState
from kueuecore.steady_state import find_preemption_loop
from kueuecore.times import END_NS, TimeLike, later, nanoseconds
from kueuecore.topology import Placement
from kueuecore.waiting_cause import message_or_cause
from kueuecore.world import DEFAULT_NAMESPACE, AppliedWorld, World, is_workload

__all__ = ["BEGINNING", "MAX_CYCLES", "PolicyCluster"]

BEGINNING = "2026-01-01T00:00:00Z"
"""The start time of a test if neither it nor its objects give one."""
MAX_CYCLES = 100_000
"""Far more cycles than any test needs: only endless preemptions get here."""
# Each compares a name with all others.
_MAX_SUGGESTIONS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _SoFar:
    """What has happened to Workloads, by `namespace/name`."""

    cycles: tuple[SimulatedCycle, ...]
    preemptions: tuple[Preemption, ...]
    placements: Mapping[str, tuple[Placement, ...]]
    # In nanoseconds since 1970: the last creation before the first admission, and that admission.
    created: Mapping[str, int]
    admitted: Mapping[str, int]
    # Those that have been deleted.
    deleted: frozenset[str]

    @classmethod
    def of(cls, cluster: VirtualCluster) -> _SoFar:
        created, admitted, deleted = dict[str, int](), dict[str, int](), set[str]()
        for step in cluster.steps:
            if step.key not in admitted and step.kind is StepKind.CREATED:
                created[step.key] = step.time
            elif step.kind is StepKind.ADMITTED:
                admitted.setdefault(step.key, step.time)
            elif step.kind is StepKind.DELETED:
                deleted.add(step.key)
        placements: dict[str, tuple[Placement, ...]] = {}
        for placement in cluster.engine.placements():
            placements[placement.key] = (*placements.get(placement.key, ()), placement)
        cycles = cluster.run().cycles
        preemptions = tuple(preemption for cycle in cycles for preemption in cycle.decision.preemptions)
        return cls(
            cycles=cycles,
            preemptions=preemptions,
            placements=placements,
            created=created,
            admitted=admitted,
            deleted=frozenset(deleted),
        )


class PolicyCluster:
    """A cluster in virtual time, in which workloads can be addressed by their own name or that of their job.

    Jobs that arrive at the same time queue in the order given, as with `kueuecore run`. Admission checks are ready at
    once.

    Args:
        objects: The objects that exist from the start. Workloads among them run forever.
        configuration: Kueue's Configuration.
        now: The start time; by default the newest time in the objects, or `BEGINNING` if they have none.
        cycle_seconds: How long a cycle takes.
        max_cycles: The most cycles until preemptions count as endless.

    Raises:
        ManifestError: Everything that is wrong with the objects.

    Example:
        >>> from kueuecore import Manifest, read_manifests
        >>> cluster = PolicyCluster(read_manifests("examples/scenario/queues.yaml"))
        >>> job = {
        ...     "apiVersion": "batch/v1", "kind": "Job",
        ...     "metadata": {"namespace": "team-a", "name": "train", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        ...     "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
        ...         {"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}},
        ... }
        >>> cluster.submit([Arrival(job=Manifest(job))])
        ('team-a/job-train-e5b0e',)
        >>> cluster.settle()
        >>> cluster.states("team-a/train")[0].message[:55]
        "couldn't assign flavors to pod set main: insufficient q"
    """

    def __init__(
        self,
        objects: Iterable[ManifestLike] = (),
        *,
        configuration: Configuration | None = None,
        now: TimeLike | None = None,
        cycle_seconds: float = 1.0,
        max_cycles: int = MAX_CYCLES,
    ) -> None:
        self._configuration = configuration or Configuration()
        self._given = [as_manifest(object_, f"objects[{index}]") for index, object_ in enumerate(objects)]
        world = World.of(self._given, configuration=self._configuration)
        newest = world.newest_time()
        start = newest if now is None and newest is not None else nanoseconds(BEGINNING if now is None else now)
        self._cluster = VirtualCluster(
            world.manifests,
            configuration=self._configuration,
            now=start,
            cycle_seconds=cycle_seconds,
            max_cycles=max_cycles,
            messages=True,
        )
        self._namespaces = {_key(manifest.object)[1] for manifest in world.manifests if _kind(manifest) == "Namespace"}
        self._world = world
        # Workloads by name, and the other way round.
        self._names: dict[str, dict[str, None]] = {}
        self._names_of: dict[str, list[str]] = {}
        self._happened: _SoFar | None = None
        self._suggestions_left = _MAX_SUGGESTIONS
        self._add_names(world)

    @property
    def start(self) -> int:
        """The start time, in nanoseconds since 1970."""
        return self._cluster.start

    @property
    def now(self) -> int:
        """The current time, in nanoseconds since 1970."""
        return self._cluster.now

    @property
    def engine(self) -> Engine:
        """The engine as it is now."""
        return self._cluster.engine

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about unknown fields, jobs that get no Workload, and the like."""
        applied: AppliedWorld = World.of(self._given, configuration=self._configuration).apply_to(
            Engine(self._configuration), now=self.start, dry_run=True
        )
        unread = (f"kinds that are not read: {kind} ({n})" for kind, n in applied.unread.items())
        waiting = (f"{problem}; until then the job waits" for problem in self._world.waiting)
        ignored = (f"{ignored}; it gets no Workload" for ignored in self._world.ignored)
        return tuple(dict.fromkeys((*map(str, applied.warnings), *waiting, *ignored, *self._world.assumed, *unread)))

    # Actions.

    def change(self, changes: Iterable[Happening]) -> None:
        """Schedule changes of objects; at once if their time has passed."""
        self._happened = None
        self._cluster.schedule(changes)

    def submit(self, arrivals: Sequence[Arrival]) -> tuple[str, ...]:
        """Schedule jobs and Workloads to arrive; at once if their time has passed, in order if their times are equal.

        Returns:
            `namespace/name` of their Workloads, in order.

        Raises:
            ManifestError: Everything that is wrong with them, or a job that gets no Workload.
        """
        ordered = sorted(arrivals, key=lambda arrival: arrival.at)
        jobs = [arrival.job for arrival in ordered]
        _check_times(jobs, ordered, self.start)
        world = World.of([*self._given, *jobs], configuration=self._configuration)
        of_job = {(_kind(job), *_key(job.object)): arrival for job, arrival in zip(jobs, ordered, strict=True)}
        made = set(map(id, world.made))
        happenings: list[Happening] = []
        keys: list[str] = []
        for manifest in world.manifests:
            job = world.jobs[_key(manifest.object)] if id(manifest) in made else manifest
            arrival = of_job.get((_kind(job), *_key(job.object)))
            if arrival is not None and is_workload(manifest.object):
                happenings.append(Happening(at=arrival.at, op=Operation.CREATE, object=manifest, plan=arrival.plan))
                keys.append("/".join(_key(manifest.object)))
        _check_all_came(jobs, world)
        self._add_namespaces(world)
        happenings.sort(key=lambda happening: happening.at)
        self._happened = None
        self._cluster.schedule(happenings)
        self._given += jobs
        self._world = world
        self._add_names(world)
        return tuple(keys)

    def settle(self, until: float | None = None) -> None:
        """Let time pass until nothing is left to happen.

        Args:
            until: Stop at this time, in seconds from the start, after everything that happens up to then.

        Raises:
            UnsettledError: Workloads preempt each other forever.
            OutOfTimeError: It goes on beyond April 2262.
        """
        self._happened = None
        self._cluster.advance(None if until is None else min(self.start + round(until * 1e9), END_NS))
        if self._cluster.is_cut:
            loop = find_preemption_loop(self._cluster.engine, now=self.now)
            raise UnsettledError("workloads preempt each other forever" + (f": {loop}" if loop else ""))

    # State.

    def keys(self, name: str) -> tuple[str, ...]:
        """Return the Workloads that match a name, in the order in which they were given.

        Args:
            name: `namespace/name` of a Workload or of its job; the namespace is `default` if left out. `*` and `?` are
                wildcards.

        Raises:
            UnknownObjectError: None matches.
        """
        wanted = name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"
        # An exact match wins over a pattern.
        if wanted in self._names:
            return tuple(self._names[wanted])
        is_pattern = any(letter in wanted for letter in "*?[")
        given = self._names.items() if is_pattern else ()
        found = dict.fromkeys(key for item, keys in given if fnmatchcase(item, wanted) for key in keys)
        if not found:
            near = self._near(wanted, self._names)
            remedy = f"write {near}" if near else f"write one of {', '.join(list(self._names)[:5])}"
            remedy = remedy if self._names else "submit it first"
            namespace, _, bare = wanted.partition("/")
            raise UnknownObjectError(ObjectRef("Workload", bare, namespace), remedy)
        return tuple(found)

    def states(self, name: str) -> tuple[WorkloadState, ...]:
        """Return the states of the workloads that match a name, without those that have not arrived yet.

        Raises:
            UnknownObjectError: None matches.
        """
        return tuple(it for key in self.keys(name) if (it := self.state(key)) is not None)

    def state(self, key: str) -> WorkloadState | None:
        """Return the state of a Workload; None if it has not arrived yet."""
        namespace, _, name = key.partition("/")
        try:
            return self._cluster.engine.workload(name, namespace=namespace)
        except UnknownObjectError:
            return None

    def is_deleted(self, key: str) -> bool:
        """Return whether a Workload has been deleted; it may be there again."""
        return key in self._so_far.deleted

    def all_states(self) -> tuple[WorkloadState, ...]:
        """Return the states of all Workloads that have arrived, by namespace and name."""
        return self._cluster.engine.workloads()

    def message(self, state: WorkloadState) -> str:
        """Return Kueue's message about a Workload; in brackets the cause if it waits and there is none."""
        return message_or_cause(self._cluster.engine, state)

    def placements(self, key: str) -> tuple[Placement, ...]:
        """Return where the pods of a Workload are placed."""
        return self._so_far.placements.get(key, ())

    def preemptions(self) -> tuple[Preemption, ...]:
        """Return all preemptions so far, in order."""
        return self._so_far.preemptions

    def cycles(self) -> tuple[SimulatedCycle, ...]:
        """Return the cycles so far in which something happened."""
        return self._so_far.cycles

    def run(self) -> Run:
        """Return everything that has happened so far."""
        return self._cluster.run()

    def wait_ns(self, key: str) -> tuple[int, bool]:
        """Return how long a Workload waited for its first admission, in nanoseconds, and whether it was admitted."""
        created, end = self._so_far.created.get(key, self.start), self._so_far.admitted.get(key)
        return (max(self.now - created, 0), False) if end is None else (end - created, True)

    @property
    def _so_far(self) -> _SoFar:
        """What has happened, collected once until time passes."""
        if self._happened is None:
            self._happened = _SoFar.of(self._cluster)
        return self._happened

    def quota(self, kind: str, name: str) -> tuple[QuotaRow, ...]:
        """Return quota and usage of a ClusterQueue or Cohort.

        Raises:
            UnknownObjectError: There is no such object.
        """
        rows = self._cluster.engine.quota()
        found = tuple(row for row in rows if (row.kind, row.name) == (kind, name))
        if not found:
            names = sorted({row.name for row in rows if row.kind == kind})
            near = self._near(name, names)
            remedy = f"write {near}" if near else f"write one of {', '.join(names[:9])}"
            remedy = remedy if names else f"load a {kind} with quota"
            raise UnknownObjectError(ObjectRef(kind, name), remedy)
        return found

    def _near(self, name: str, known: Iterable[str]) -> str:
        """Return the known name that is meant; empty if there is none, or enough of them have been looked for."""
        self._suggestions_left -= 1
        return "" if self._suggestions_left < 0 else next(iter(near_names(name, known)), "")

    def name_of(self, key: str) -> str:
        """Return the name to show for a Workload: that of its job, unless the job has several Workloads."""
        return next((name for name in self._names_of.get(key, ()) if name != key and len(self._names[name]) == 1), key)

    def _add_names(self, world: World) -> None:
        for manifest in world.manifests:
            if not is_workload(manifest.object):
                continue
            place = _key(manifest.object)
            key, job = "/".join(place), world.jobs.get(place)
            for name in (key, *(["/".join(_key(job.object))] if job is not None else _owners(manifest.object))):
                keys = self._names.setdefault(name, {})
                if key not in keys:
                    keys[key] = None
                    self._names_of.setdefault(key, []).append(name)

    def _add_namespaces(self, world: World) -> None:
        """Add the Namespaces of jobs that were not given."""
        for manifest in world.manifests:
            name = _key(manifest.object)[1]
            if _kind(manifest) == "Namespace" and name not in self._namespaces:
                self._namespaces.add(name)
                self._cluster.apply([manifest])


def _check_times(jobs: Sequence[Manifest], arrivals: Sequence[Arrival], start: int) -> None:
    """Check that everything happens before the end of representable time.

    Raises:
        ManifestError: Something happens later.
    """
    problems = []
    for job, arrival in zip(jobs, arrivals, strict=True):
        try:
            at = later(start, arrival.at, "at")
            later(at, arrival.plan.run_seconds or 0.0, "runs")
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            problems.append(job.problem(message, remedy=remedy or "write an earlier `at`, or shorter `runs`"))
    if problems:
        raise ManifestError(problems)


def _check_all_came(jobs: Sequence[Manifest], world: World) -> None:
    """Check that every submitted job has a Workload.

    Raises:
        ManifestError: Some have none; says why.
    """
    given = set(map(id, jobs))
    problems = [
        ignored.manifest.problem(f"it gets no Workload: {ignored.reason}")
        for ignored in world.ignored
        if id(ignored.manifest) in given
    ]
    problems += [problem for problem in world.waiting if any(problem.object == job.problem("").object for job in jobs)]
    if problems:
        raise ManifestError(problems)


def _kind(manifest: Manifest) -> str:
    return text_at(manifest.object, "kind")


def _key(plain: JsonObject) -> tuple[str, str]:
    return text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE, text_at(plain, "metadata", "name")


def _owners(workload: JsonObject) -> Iterator[str]:
    """The job that owns a Workload from a dump, which may not contain the job itself."""
    metadata = object_at(workload, "metadata")
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if object_at(owner).get("controller") is True:
            yield f"{text_at(metadata, 'namespace') or DEFAULT_NAMESPACE}/{text_at(owner, 'name')}"
