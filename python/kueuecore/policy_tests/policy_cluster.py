"""A cluster for tests of a policy: objects, jobs that come, and what became of each by its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.decisions import Preemption
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, ObjectRef, UnknownObjectError, UnsettledError
from kueuecore.manifests import Manifest, ManifestLike, as_manifest
from kueuecore.simulation import Happening, NodeLoss, Operation, StepKind, VirtualCluster
from kueuecore.states import QuotaRow, WorkloadState
from kueuecore.steady_state import find_preemption_loop
from kueuecore.times import END_NS, TimeLike, later, nanoseconds
from kueuecore.topology import Placement
from kueuecore.world import DEFAULT_NAMESPACE, AppliedWorld, World, is_workload

__all__ = ["BEGINNING", "Coming", "PolicyCluster"]

BEGINNING = "2026-01-01T00:00:00Z"
"""When a test begins, if neither it nor its objects say."""
# Far more than any test needs: who comes here preempts each other for ever.
_MOST_CYCLES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A job or a Workload that comes.

    Args:
        job: The job or the Workload.
        at: When, in seconds from the beginning.
        run_seconds: How long it runs once it is admitted; None: for ever.
        ends_failed: Does it fail then?
        linger_seconds: How long its pods stay on a node that has failed; None: they are gone at once.
        node_loss: What becomes of its run once they are gone.
        save_seconds: How much work lies between two checkpoints; None: who is evicted begins from the start.
    """

    job: ManifestLike
    at: float = 0.0
    run_seconds: float | None = None
    ends_failed: bool = False
    linger_seconds: float | None = None
    node_loss: NodeLoss = NodeLoss.STARTS_OVER
    save_seconds: float | None = None


class PolicyCluster:
    """A cluster in virtual time whose workloads are known by their names and by those of their jobs.

    What comes at one time queues in the order in which it was given, as the objects of `kueuecore run` do. Admission
    checks are ready at once.

    Args:
        objects: What is there from the beginning. Its Workloads run for ever.
        configuration: Kueue's Configuration.
        now: The time of the beginning; by default the newest in the objects, or `BEGINNING` if they have none.
        cycle_seconds: How long a cycle takes.

    Raises:
        ManifestError: Everything that is wrong with the objects.

    Example:
        >>> from kueuecore import read_manifests
        >>> cluster = PolicyCluster(read_manifests("examples/scenario/queues.yaml"))
        >>> job = {
        ...     "apiVersion": "batch/v1", "kind": "Job",
        ...     "metadata": {"namespace": "team-a", "name": "train", "labels": {"kueue.x-k8s.io/queue-name": "lq"}},
        ...     "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
        ...         {"name": "c", "resources": {"requests": {"cpu": "9"}}}]}}},
        ... }
        >>> cluster.submit([Coming(job=job)])
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
    ) -> None:
        self._configuration = configuration or Configuration()
        self._given = [as_manifest(it, f"objects[{index}]") for index, it in enumerate(objects)]
        world = World.of(self._given, configuration=self._configuration)
        newest = world.newest_time()
        start = newest if now is None and newest is not None else nanoseconds(BEGINNING if now is None else now)
        self._cluster = VirtualCluster(
            world.manifests,
            configuration=self._configuration,
            now=start,
            cycle_seconds=cycle_seconds,
            max_cycles=_MOST_CYCLES,
            messages=True,
        )
        self._namespaces = {_key(it.object)[1] for it in world.manifests if _kind(it) == "Namespace"}
        self._world = world
        self._names: dict[str, list[str]] = {}
        self._add_names(world)

    @property
    def start(self) -> int:
        """The time of the beginning, in nanoseconds since 1970."""
        return self._cluster.start

    @property
    def now(self) -> int:
        """The time, in nanoseconds since 1970."""
        return self._cluster.now

    @property
    def warnings(self) -> tuple[str, ...]:
        """Fields of the objects and jobs that nobody knows, jobs that get no Workload, and the like."""
        applied: AppliedWorld = World.of(self._given, configuration=self._configuration).apply_to(
            Engine(self._configuration), now=self.start
        )
        unread = (f"kinds that are not read: {kind} ({n})" for kind, n in applied.unread.items())
        waiting = (f"{it}; until then the job waits" for it in self._world.waiting)
        ignored = (f"{it}; it gets no Workload" for it in self._world.ignored)
        return tuple(dict.fromkeys((*map(str, applied.warnings), *waiting, *ignored, *unread)))

    # What happens.

    def submit(self, coming: Sequence[Coming]) -> tuple[str, ...]:
        """Jobs and Workloads will come; what is late comes at once, and of one time they come in this order.

        Returns:
            `namespace/name` of their Workloads, in order.

        Raises:
            ManifestError: Everything that is wrong with them, or a job that gets no Workload.
        """
        ordered = sorted(coming, key=lambda it: it.at)
        jobs = [as_manifest(it.job, f"coming[{index}].job") for index, it in enumerate(ordered)]
        _check_times(jobs, ordered, self.start)
        world = World.of([*self._given, *jobs], configuration=self._configuration)
        of_job = {(_kind(job), *_key(job.object)): it for job, it in zip(jobs, ordered, strict=True)}
        made = set(map(id, world.made))
        happenings: list[Happening] = []
        keys: list[str] = []
        for manifest in world.manifests:
            job = world.jobs[_key(manifest.object)] if id(manifest) in made else manifest
            plan = of_job.get((_kind(job), *_key(job.object)))
            if plan is not None and is_workload(manifest.object):
                happenings.append(_happening(manifest, plan))
                keys.append("/".join(_key(manifest.object)))
        _check_all_came(jobs, world)
        self._add_namespaces(world)
        happenings.sort(key=lambda it: it.at)
        self._cluster.schedule(happenings)
        self._given += jobs
        self._world = world
        self._add_names(world)
        return tuple(keys)

    def settle(self, until: float | None = None) -> None:
        """Let time go by until nothing is left to happen.

        Args:
            until: Do all that happens up to this time, in seconds from the beginning, and stand there.

        Raises:
            UnsettledError: Workloads preempt each other for ever.
            OutOfTimeError: It goes on beyond April 2262.
        """
        self._cluster.advance(None if until is None else min(self.start + round(until * 1e9), END_NS))
        if self._cluster.is_cut:
            loop = find_preemption_loop(self._cluster.engine, now=self.now)
            raise UnsettledError("workloads preempt each other for ever" + (f": {loop}" if loop else ""))

    # What there is.

    def keys(self, name: str) -> tuple[str, ...]:
        """The Workloads that a name stands for, in the order in which they were given.

        Args:
            name: `namespace/name` of a Workload or of its job; without a namespace that of `default`. `*` and `?`
                stand for any characters.

        Raises:
            UnknownObjectError: None is called so.
        """
        wanted = name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"
        # A name counts for itself before it counts as a pattern.
        if wanted in self._names:
            return tuple(self._names[wanted])
        found = dict.fromkeys(key for it, keys in self._names.items() if fnmatchcase(it, wanted) for key in keys)
        if not found:
            near = get_close_matches(wanted, self._names, n=1)
            remedy = f"write {near[0]}" if near else f"write one of {', '.join(list(self._names)[:5])}"
            remedy = remedy if self._names else "submit it first"
            namespace, _, bare = wanted.partition("/")
            raise UnknownObjectError(ObjectRef("Workload", bare, namespace), remedy)
        return tuple(found)

    def states(self, name: str) -> tuple[WorkloadState, ...]:
        """Where the workloads stand that a name stands for; those that are still to come are left out.

        Raises:
            UnknownObjectError: None is called so.
        """
        return tuple(it for key in self.keys(name) if (it := self.state(key)) is not None)

    def state(self, key: str) -> WorkloadState | None:
        """Where a Workload stands; None: it is still to come."""
        namespace, _, name = key.partition("/")
        try:
            return self._cluster.engine.workload(name, namespace=namespace)
        except UnknownObjectError:
            return None

    def placements(self, key: str) -> tuple[Placement, ...]:
        """Where the pods of a Workload stand."""
        return tuple(it for it in self._cluster.engine.placements() if it.key == key)

    def preemptions(self) -> tuple[Preemption, ...]:
        """Who was preempted for whom so far, in order."""
        return tuple(it for cycle in self._cluster.run().cycles for it in cycle.decision.preemptions)

    def wait_ns(self, key: str) -> tuple[int, bool]:
        """How long a Workload waited for its first admission, in nanoseconds, and whether it was admitted at all."""
        created, end = self.start, self.now
        for step in self._cluster.steps:
            if step.key == key and step.kind is StepKind.CREATED:
                created = step.time
            if step.key == key and step.kind is StepKind.ADMITTED:
                return step.time - created, True
        return max(end - created, 0), False

    def quota(self, kind: str, name: str) -> tuple[QuotaRow, ...]:
        """Quota and usage of a ClusterQueue or a Cohort.

        Raises:
            UnknownObjectError: There is none.
        """
        rows = self._cluster.engine.quota()
        found = tuple(it for it in rows if (it.kind, it.name) == (kind, name))
        if not found:
            names = sorted({it.name for it in rows if it.kind == kind})
            near = get_close_matches(name, names, n=1)
            remedy = f"write {near[0]}" if near else f"write one of {', '.join(names[:9])}"
            remedy = remedy if names else f"load a {kind} with quota"
            raise UnknownObjectError(ObjectRef(kind, name), remedy)
        return found

    def name_of(self, key: str) -> str:
        """What people call a Workload: by the name of its job, unless that has several."""
        names = (name for name, keys in self._names.items() if keys == [key] and name != key)
        return next(names, key)

    def _add_names(self, world: World) -> None:
        for manifest in world.manifests:
            if not is_workload(manifest.object):
                continue
            place = _key(manifest.object)
            key, job = "/".join(place), world.jobs.get(place)
            for name in (key, *(["/".join(_key(job.object))] if job is not None else _owners(manifest.object))):
                keys = self._names.setdefault(name, [])
                if key not in keys:
                    keys.append(key)

    def _add_namespaces(self, world: World) -> None:
        """Those that jobs are in, and that nobody has given."""
        for manifest in world.manifests:
            name = _key(manifest.object)[1]
            if _kind(manifest) == "Namespace" and name not in self._namespaces:
                self._namespaces.add(name)
                self._cluster.apply([manifest])


def _check_times(jobs: Sequence[Manifest], coming: Sequence[Coming], start: int) -> None:
    """Everything that is to happen happens before time ends.

    Raises:
        ManifestError: What does not.
    """
    problems = []
    for job, it in zip(jobs, coming, strict=True):
        try:
            at = later(start, it.at, "at")
            later(at, it.run_seconds or 0.0, "runs")
        except ValueError as error:
            message, _, remedy = str(error).partition("; ")
            problems.append(job.problem(message, remedy=remedy or "write an earlier `at`, or shorter `runs`"))
    if problems:
        raise ManifestError(problems)


def _check_all_came(jobs: Sequence[Manifest], world: World) -> None:
    """Every job that comes has a Workload.

    Raises:
        ManifestError: Those that have none, and why.
    """
    given = set(map(id, jobs))
    problems = [
        it.manifest.problem(f"it gets no Workload: {it.reason}") for it in world.ignored if id(it.manifest) in given
    ]
    problems += [it for it in world.waiting if any(it.object == job.problem("").object for job in jobs)]
    if problems:
        raise ManifestError(problems)


def _happening(workload: Manifest, plan: Coming) -> Happening:
    return Happening(
        at=plan.at,
        op=Operation.CREATE,
        object=workload,
        run_seconds=plan.run_seconds,
        ends_failed=plan.ends_failed,
        linger_seconds=plan.linger_seconds,
        node_loss=plan.node_loss,
        save_seconds=plan.save_seconds,
    )


def _kind(manifest: Manifest) -> str:
    return text_at(manifest.object, "kind")


def _key(plain: JsonObject) -> tuple[str, str]:
    return text_at(plain, "metadata", "namespace") or DEFAULT_NAMESPACE, text_at(plain, "metadata", "name")


def _owners(workload: JsonObject) -> Iterator[str]:
    """The job of a Workload of a dump, which may not be in it."""
    metadata = object_at(workload, "metadata")
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if object_at(owner).get("controller") is True:
            yield f"{text_at(metadata, 'namespace') or DEFAULT_NAMESPACE}/{text_at(owner, 'name')}"
