"""The history of a workload of our own runs: cycles on a state, and runs through virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kueuecore._json import JsonObject, JsonValue
from kueuecore.decisions import Decision, Event
from kueuecore.engine import Engine
from kueuecore.errors import ObjectRef, UnknownObjectError
from kueuecore.histories.conditions import created_facts, flavors_of, steps_of_workload
from kueuecore.histories.events import found_in_event
from kueuecore.histories.facts import Facts, Found
from kueuecore.histories.merging import merged
from kueuecore.histories.timeline import Timeline, What
from kueuecore.histories.uids import Uids
from kueuecore.histories.wording import step_of
from kueuecore.results.usage_log import UsageLog
from kueuecore.simulation.run import Run, StepKind
from kueuecore.states import WorkloadState
from kueuecore.steady_state import Settled

__all__ = ["history_of_cycles", "history_of_run"]

_STEPS = {
    StepKind.CREATED: What.CREATED,
    StepKind.ADMITTED: What.ADMITTED,
    StepKind.STOPPED: What.RELEASED,
    StepKind.FINISHED: What.FINISHED,
    StepKind.DELETED: What.DELETED,
    StepKind.REPLACED: What.REPLACED,
}
_NO_MESSAGES = "the run kept no messages: they say why it waited, and why it was evicted if it was not preempted"


def history_of_cycles(
    settled: Settled, state: WorkloadState, *, workload: JsonObject | None = None, objects: Iterable[JsonObject] = ()
) -> Timeline:
    """Return what has happened to a workload until nothing changed any more: before, by its conditions, and then.

    Args:
        settled: What `settle` returned.
        state: The workload afterwards.
        workload: The Workload as it was given.
        objects: All objects: they have the names behind UIDs.

    Example:
        >>> from kueuecore import Engine, World, read_manifests, settle
        >>> engine, world = Engine(), World.of(read_manifests("examples/two-teams"))
        >>> _ = world.apply_to(engine, now="2026-01-01T00:00:00Z")
        >>> settled = settle(engine, now="2026-01-01T00:00:00Z")
        >>> timeline = history_of_cycles(settled, engine.workload("job-lint-ae481", namespace="team-b"))
        >>> [str(step.what) for step in timeline.steps]
        ['QuotaReserved', 'Admitted']
    """
    given = workload or {}
    after: JsonObject = {**given, "status": dict(state.status)}
    before, missing = steps_of_workload(given, cluster_queue=state.cluster_queue or "")
    own, _ = steps_of_workload(after, cluster_queue=state.cluster_queue or "")
    if given and not any(step.what is What.CREATED for step in before) and settled.log:
        # What has no time of creation is created when the run begins.
        facts = created_facts(given, state.cluster_queue or "")
        before.append(Found(at=settled.log[0][0], what=What.CREATED, facts=facts, sources=("run",)))
    of_cycles = [found for at, entry in settled.log for found in _of_entry(at, entry, state.key)]
    found = merged([*before, *(step for step in own if step not in before), *of_cycles])
    uids = Uids(objects)
    steps = tuple(step_of(replace(step, facts=uids.resolved(step.facts))) for step in found)
    return Timeline(
        namespace=state.namespace, name=state.name, stage=str(state.stage), steps=steps, missing=tuple(missing)
    )


def history_of_run(run: Run, key: str, *, job: str = "") -> Timeline:
    """Return what has happened to a workload in a run through virtual time.

    A run always records who was admitted, preempted by whom, and finished; with `messages` also why it waited, and all
    evictions with their reasons.

    Args:
        run: What `simulate` or `VirtualCluster.run` returned.
        key: The `namespace/name` of the Workload.
        job: Its job, as `Kind namespace/name`, if it is known.

    Raises:
        UnknownObjectError: The run has no such Workload.
    """
    keys = run.workload_keys
    namespace, _, name = key.partition("/")
    if key not in keys:
        raise UnknownObjectError(ObjectRef("Workload", name, namespace))
    number = keys.index(key)
    state = _state(run.engine, namespace, name)
    events = [(at, event) for at, event in run.events if event.key == key]
    log = UsageLog.of(run)
    found = merged(
        [
            *_of_steps(run, number, _created_facts(log, number, state, job)),
            *_reservations(log, number),
            *_preemptions(run, number),
            *(_of_event(at, event, "event") for at, event in events),
        ]
    )
    stage = str(state.stage) if state is not None else _last_stage(found)
    missing = () if run.events else (_NO_MESSAGES,)
    return Timeline(namespace=namespace, name=name, stage=stage, steps=tuple(map(step_of, found)), missing=missing)


def _of_entry(at: int, entry: Decision | tuple[Event, ...], key: str) -> Iterator[Found]:
    """What a cycle, or the reconciling after it, says of a workload."""
    if not isinstance(entry, Decision):
        yield from (_of_event(at, event, "reconcile") for event in entry if event.key == key)
        return
    known = {What.QUOTA_RESERVED: Facts(), What.PREEMPTED: Facts(), What.PREEMPTS: Facts()}
    for got in entry.admissions:
        if got.key == key:
            assigned: list[JsonValue] = [{"name": given.name, "flavors": {**given.flavors}} for given in got.pod_sets]
            flavors = flavors_of({"status": {"admission": {"podSetAssignments": assigned}}})
            known[What.QUOTA_RESERVED] = Facts(queue=got.cluster_queue, flavors=flavors)
    for preemption in entry.preemptions:
        if preemption.key == key:
            known[What.PREEMPTED] = Facts(by=preemption.preemptor, why=preemption.reason)
    for event in entry.events:
        if event.key == key:
            found = _of_event(at, event, f"cycle {entry.cycle}:")
            yield replace(found, facts=known.get(found.what, Facts()).filled(found.facts))


def _of_event(at: int, event: Event, source: str) -> Found:
    found = found_in_event(at, event.reason, event.message)
    return replace(found, sources=(f"{source} {event.reason}".rstrip(),))


def _created_facts(log: UsageLog, number: int, state: WorkloadState | None, job: str) -> Facts:
    """Where it comes from; of one that the run no longer holds, only its ClusterQueue is known."""
    if state is None:
        home = int(log.home[number])
        return Facts(owner=job, queue=log.queue_names[home] if home >= 0 else "")
    queue = state.cluster_queue or ""
    return Facts(owner=job, local_queue=state.local_queue, queue=queue, priority=str(state.priority))


def _of_steps(run: Run, number: int, created: Facts) -> Iterator[Found]:
    kinds, table = list(StepKind), run.step_table
    for row in table[table["workload"] == number]:
        what, reason = _STEPS[kinds[int(row["kind"])]], ""
        if what is What.FINISHED:
            reason = "Failed" if run.failed[number] else "Succeeded"
        facts = created if what is What.CREATED else Facts()
        yield Found(at=int(row["time"]), what=what, facts=facts, reason=reason, sources=("run",))


def _reservations(log: UsageLog, number: int) -> Iterator[Found]:
    """When it got quota: a change of what it holds while it runs is none."""
    released = None
    for change in (log.workload == number).nonzero()[0].tolist():
        at = int(log.time[change])
        if not log.adds[change]:
            released = at
            continue
        if released != at:
            pairs = [log.pair_names[pair] for pair in log.pair[log.change == change].tolist()]
            by_flavor: dict[str, list[str]] = {}
            for flavor, resource in sorted(pairs):
                by_flavor.setdefault(flavor, []).append(resource)
            flavors = ", ".join(f"{', '.join(resources)} on {flavor}" for flavor, resources in by_flavor.items())
            facts = Facts(queue=log.queue_names[int(log.queue[change])], flavors=flavors)
            yield Found(at=at, what=What.QUOTA_RESERVED, facts=facts, sources=("run",))


def _preemptions(run: Run, number: int) -> Iterator[Found]:
    """Who preempted it, and whom it preempted."""
    table, keys, reasons = run.preemption_table, run.workload_keys, run.engine.names().reasons
    for row in table[(table["workload"] == number) | (table["preemptor"] == number)]:
        at, reason = int(row["time"]), reasons[int(row["reason"])]
        is_victim = int(row["workload"]) == number
        other = keys[int(row["preemptor" if is_victim else "workload"])] or ""
        what = What.PREEMPTED if is_victim else What.PREEMPTS
        yield Found(at=at, what=what, facts=Facts(by=other, why=reason), reason=reason, sources=("run",))


def _state(engine: Engine, namespace: str, name: str) -> WorkloadState | None:
    try:
        return engine.workload(name, namespace=namespace)
    except UnknownObjectError:
        return None


def _last_stage(found: Iterable[Found]) -> str:
    """Where a Workload was that the run no longer holds."""
    whats = [step.what for step in found]
    return "Deleted" if What.DELETED in whats else "Finished" if What.FINISHED in whats else ""
