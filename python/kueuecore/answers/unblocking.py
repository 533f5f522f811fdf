"""Finds the smallest changes that would admit a waiting workload, by trying them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from kueuecore._json import JsonObject
from kueuecore.answers.changes import Change, ChangeKind, Unblocking
from kueuecore.answers.coverage_changes import coverage_changes, uncovered_requests, uncovered_resources
from kueuecore.answers.dials import Failure
from kueuecore.answers.flavor_nodes import found_object
from kueuecore.answers.missing_objects import missing_changes
from kueuecore.answers.namespace_changes import namespace_changes
from kueuecore.answers.pairs import paired_changes
from kueuecore.answers.place_changes import local_queue_changes, node_changes, start_changes
from kueuecore.answers.preemption_changes import policy_changes, victim_changes
from kueuecore.answers.quota_changes import QuotaTree, limit_changes, quota_changes
from kueuecore.answers.topology_changes import cluster_changes, flavor_changes, topology_changes
from kueuecore.answers.trials import MAX_TRIES, OutOfTriesError, Step, Trials
from kueuecore.answers.workload_changes import pod_changes, priority_changes, request_changes
from kueuecore.engine import Engine
from kueuecore.states import Stage
from kueuecore.steady_state import settle
from kueuecore.times import TimeLike, nanoseconds

__all__ = ["unblock"]


def unblock(
    engine: Engine,
    name: str,
    *,
    namespace: str,
    now: TimeLike | None = None,
    was_at_rest: bool = False,
    kinds: Collection[ChangeKind] = tuple(ChangeKind),
    max_tries: int = MAX_TRIES,
    progress: Callable[[int, Sequence[Change]], None] | None = None,
) -> Unblocking:
    """Find the smallest changes that would admit a workload now, those that disturb others least first.

    Each change is tried on a fork: after it, cycles run until nothing changes any more, and the workload then holds
    quota, at once or after preemptions. One step less is tried too, and leaves it pending: one unit of a resource (a
    thousandth of a cpu, a byte, a device), one pod, one step of priority, one victim. Where more is not always better,
    other changes may exist as well.

    Args:
        engine: The engine; it is not changed.
        name: Name of the Workload.
        namespace: Its namespace.
        now: The time of all trials; by default the latest time passed to any call.
        was_at_rest: Whether the engine is settled already, so that `settle` need not run first.
        kinds: The kinds of changes to look for.
        max_tries: Stop after this many tries, with the changes found until then. Cheap and likely kinds are tried
            first.
        progress: Called before each try with the number of tries so far, and the changes found so far.

    Raises:
        UnknownObjectError: There is no such Workload.
        ValueError: `max_tries` is negative.

    Example:
        >>> engine = Engine()
        >>> _ = engine.apply('''
        ... {apiVersion: v1, kind: Namespace, metadata: {name: default}}
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: ClusterQueue
        ... metadata: {name: cq}
        ... spec:
        ...   namespaceSelector: {}
        ...   resourceGroups:
        ...   - {coveredResources: [cpu], flavors: [{name: spot, resources: [{name: cpu, nominalQuota: 2}]}]}
        ... ---
        ... {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {namespace: default, name: lq},
        ...  spec: {clusterQueue: cq}}
        ... ---
        ... apiVersion: kueue.x-k8s.io/v1beta2
        ... kind: Workload
        ... metadata: {namespace: default, name: sample}
        ... spec:
        ...   queueName: lq
        ...   podSets:
        ...   - {name: main, count: 3, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}
        ... ''')
        >>> found = unblock(engine, "sample", namespace="default", now="2026-01-01T00:00:00Z")
        >>> for change in found.changes:
        ...     print(f"{change.what}: {change.before} -> {change.after}")
        minCount of pod set main: 3 -> 2
        pods of pod set main: 3 -> 2
        nominalQuota of ClusterQueue cq for cpu in spot: 2 -> 3
        request of container c of pod set main for cpu: 1 -> 666m
    """
    if max_tries < 0:
        raise ValueError("max_tries must be at least 0")
    at = engine.now if now is None else nanoseconds(now)
    rest = engine.fork()
    if not was_at_rest:
        settle(rest, now=at)
    state = rest.workload(name, namespace=namespace)
    if state.stage is not Stage.PENDING:
        return Unblocking(state, (), 0)
    found: list[Change] = []
    failures: list[Failure] = []
    report = None if progress is None else lambda n_tried: progress(n_tried, found)
    trials = Trials(rest, namespace, name, at, most=max_tries, progress=report)
    is_stopped = False
    try:
        for tried in _changes(trials, state.cluster_queue or "", frozenset(kinds)):
            if isinstance(tried, Change):
                found.append(tried)
            else:
                failures.append(tried)
        if not found:
            found += paired_changes(trials, failures)
    except OutOfTriesError:
        is_stopped = True
    not_enough = {(failure.kind, failure.found.what): failure.found for failure in failures}
    changes = tuple(sorted(found, key=lambda change: change.rank))
    not_tried = tuple(_not_tried(rest, name, namespace))
    return Unblocking(state, changes, trials.n_tried, is_stopped, tuple(not_enough.values()), not_tried)


def _not_tried(engine: Engine, name: str, namespace: str) -> Iterator[str]:
    """What an engine cannot try, as its Configuration stays as it is."""
    resources = uncovered_resources(engine, name, namespace=namespace)
    if resources:
        names = " and ".join(resources)
        yield (
            f"Kueue's Configuration can leave {names} out of quotas, with resources.excludeResourcePrefixes or "
            "resources.quotaCheckStrategy: IgnoreUndeclared"
        )


def _changes(trials: Trials, queue: str, kinds: frozenset[ChangeKind]) -> Iterator[Change | Failure]:
    workload = trials.engine.object("Workload", trials.name, namespace=trials.namespace)
    wants = kinds.__contains__
    # A workload in a backoff only needs to be submitted again, so any change to it would seem to help.
    helps_again = trials.admits(Step(resubmits=True))
    if wants(ChangeKind.START):
        yield from start_changes(trials, workload, queue, helps_again=helps_again)
    is_there = found_object(trials.engine, "ClusterQueue", queue) is not None
    opening = [*_opening_changes(trials, workload, queue, kinds)] if is_there else []
    yield from opening
    if any(isinstance(opening_change, Change) for opening_change in opening):
        # Without it this ClusterQueue admits nothing from here: only another one could help as well.
        kinds, is_there = kinds & {ChangeKind.LOCAL_QUEUE}, False
    if not helps_again:
        yield from _own_changes(trials, workload, queue, kinds)
    if not is_there:
        return
    tree = QuotaTree.of(trials.engine, queue)
    if wants(ChangeKind.NODES) and not helps_again:
        yield from node_changes(trials, workload, queue)
    if wants(ChangeKind.TOPOLOGY) and not helps_again:
        yield from topology_changes(trials, workload, queue)
    if wants(ChangeKind.FLAVOR):
        yield from flavor_changes(trials, workload, queue)
    if wants(ChangeKind.CLUSTER):
        yield from cluster_changes(trials, workload, queue)
    if wants(ChangeKind.COVERAGE):
        yield from coverage_changes(trials, workload, tree)
    if wants(ChangeKind.PREEMPTION):
        yield from policy_changes(trials, queue)
    if wants(ChangeKind.BORROWING_LIMIT) or wants(ChangeKind.LENDING_LIMIT):
        yield from filter(lambda limit_change: limit_change.kind in kinds, limit_changes(trials, workload, tree))
    if wants(ChangeKind.QUOTA):
        yield from quota_changes(trials, workload, tree)
    if wants(ChangeKind.VICTIMS):
        yield from victim_changes(trials, workload, tree)


def _opening_changes(
    trials: Trials, workload: JsonObject, queue: str, kinds: frozenset[ChangeKind]
) -> Iterator[Change | Failure]:
    """Changes without which the ClusterQueue admits nothing of this Namespace."""
    if ChangeKind.MISSING in kinds:
        yield from missing_changes(trials, workload, queue)
    if ChangeKind.NAMESPACE in kinds:
        yield from namespace_changes(trials, queue)


def _own_changes(
    trials: Trials, workload: JsonObject, queue: str, kinds: frozenset[ChangeKind]
) -> Iterator[Change | Failure]:
    """Changes that do not need an existing ClusterQueue."""
    wants = kinds.__contains__
    if wants(ChangeKind.LOCAL_QUEUE):
        yield from local_queue_changes(trials, workload)
    if wants(ChangeKind.PODS) or wants(ChangeKind.MIN_COUNT):
        yield from filter(lambda pod_change: pod_change.kind in kinds, pod_changes(trials, workload))
    if wants(ChangeKind.REQUEST):
        yield from request_changes(trials, workload, queue)
        yield from uncovered_requests(trials, workload)
    if wants(ChangeKind.PRIORITY) or wants(ChangeKind.PRIORITY_CLASS):
        yield from filter(lambda priority_change: priority_change.kind in kinds, priority_changes(trials, workload))
