"""Jobs of a trace as jobs of the past: Slurm's accounting, a log in SWF, a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, JsonValue
from kueuecore._kinds import KUEUE
from kueuecore._text import counted
from kueuecore.answers.amounts import quantity_of
from kueuecore.forecasts.history.known_queues import KnownQueues, Place
from kueuecore.forecasts.history.taken import Taken
from kueuecore.forecasts.past_jobs import PastJob, known_at
from kueuecore.times import END_NS, SECOND_NS
from kueuecore.traces import JobRule, TextColumn, Trace, TraceRules
from kueuecore.traces.assignment import Assignment, assign
from kueuecore.traces.scaling import Scale

__all__ = ["QUEUE_FIELDS", "taken_of_trace"]

QUEUE_FIELDS = ("localQueue", "queue", "partition", "virtualCluster", "clusterQueue")
"""The fields of a trace that may name a queue, the most likely first."""
_NAMESPACE_FIELDS = ("namespace", "user", "account", "group")
# What nobody knew before the job had ended, or what it has alone.
_NO_LABELS = ("name", "status")
# Of jobs that no rule matches: this queue is not used.
_BY_NAME = JobRule(queue="by/name")
# A clock that shows less counts from the beginning of its trace.
_EARLIEST_SECONDS = 10 * 366 * 86400.0
_END_SECONDS = END_NS // SECOND_NS
_MAX_LIMIT = 100.0 * 366 * 86400


def taken_of_trace(trace: Trace, file: str, *, now: int, queues: KnownQueues, rules: TraceRules | None = None) -> Taken:
    """Return the jobs of a trace.

    Times become those of the calendar: SWF has its beginning in `UnixStartTime`. A trace whose clock starts with itself
    is taken to end now.

    Args:
        trace: The trace.
        file: Its name, for notes.
        now: The present, in nanoseconds since 1970; what happened later is left out.
        queues: The queues of the cluster: a job whose user and partition are their names belongs to them.
        rules: The queues of jobs, priorities and resources; jobs that none of them matches go by their names.

    Raises:
        ManifestError: A rule names a field that the trace does not have, or the rules ask for another time or sample.
    """
    rules = _checked(rules or TraceRules())
    notes = [*trace.notes]
    dropped = dict(trace.dropped)
    trace = _each_once(trace, dropped)
    origin = _origin(trace, now, file, notes)
    jobs = [job for row in _rows(trace, origin, queues, rules) if (job := known_at(row, now)) is not None]
    if n_later := len(trace) - len(jobs):
        dropped["submitted later than now"] = n_later
    if trace.wait_seconds is None or not np.isfinite(trace.wait_seconds).any():
        notes.append(f"{file}: it does not say when jobs started: only their run times and arrivals are used")
    elif n_odd := int((trace.wait_seconds < 0).sum()):
        notes.append(f"{file}: {counted(n_odd, 'job')} started before submission: their starts count as unknown")
    return Taken(file=file, jobs=tuple(jobs), left_out=dropped, notes=tuple(notes))


def _checked(rules: TraceRules) -> TraceRules:
    """Refuse what a simulation does to a trace; jobs without a rule go by their names."""
    remedy = "remove it: a history is taken as it is"
    if rules.scale != Scale():
        raise rules.error("it changes the jobs of a history", "scale", remedy)
    if rules.begin is not None:
        raise rules.error("it leaves out jobs of a history", "begin", remedy)
    return rules if rules.default is not None else replace(rules, default=_BY_NAME)


def _each_once(trace: Trace, dropped: dict[str, int]) -> Trace:
    """Leave out jobs that occur again: people join files of overlapping spans. The row with an end counts."""
    if trace.ids is None or not len(trace):
        return trace
    wait = np.zeros(len(trace)) if trace.wait_seconds is None else np.nan_to_num(trace.wait_seconds, nan=-1.0)
    ids = trace.ids.codes
    order = np.lexsort((-np.nan_to_num(trace.run_seconds, posinf=-1.0), wait, trace.at, ids))
    is_known = np.array([bool(name) for name in trace.ids.names], np.bool_)[ids[order]]
    same = is_known[1:].copy()
    for column in (ids, trace.at, wait):
        same &= column[order][1:] == column[order][:-1]
    again = order[1:][same]
    if not len(again):
        return trace
    dropped["the same job again"] = len(again)
    kept = np.ones(len(trace), np.bool_)
    kept[again] = False
    return trace.rows(np.flatnonzero(kept))


def _origin(trace: Trace, now: int, file: str, notes: list[str]) -> float:
    """Return the seconds since 1970 at which the first job was submitted."""
    begin = trace.begin + _unix_start(trace.header)
    if begin >= _EARLIEST_SECONDS or not len(trace):
        return begin
    notes.append(f"{file}: its times are not of a calendar: it is taken to end now; hours and weekdays do not count")
    return now / SECOND_NS - _newest(trace)


def _unix_start(header: Mapping[str, str]) -> float:
    words = header.get("UnixStartTime", "").split()
    try:
        found = float(words[0]) if words else 0.0
    except ValueError:
        return 0.0
    return found if 0 <= found < END_NS / SECOND_NS else 0.0


def _newest(trace: Trace) -> float:
    """Return the last time in a trace, in seconds after its first."""
    wait = np.zeros(len(trace)) if trace.wait_seconds is None else np.nan_to_num(np.maximum(trace.wait_seconds, 0.0))
    run = np.where(np.isfinite(trace.run_seconds), trace.run_seconds, 0.0)
    return float((trace.at + wait + run).max()) if len(trace) else 0.0


def _rows(trace: Trace, origin: float, queues: KnownQueues, rules: TraceRules) -> Iterator[PastJob]:
    assignment = assign(len(trace), trace.fields, rules)
    n_rules, is_complete = len(rules.all_rules()), rules.default != _BY_NAME
    groups, group = _distinct([column.codes for column in trace.fields.values()], len(trace))
    labels = [_labels(trace.fields, row) for row in groups.tolist()]
    by_name = [_by_name(mapping, queues) for mapping in labels]
    by_rule = [Place(*queue, queues.local_queues.get(queue, "")) for queue in assignment.queues]
    has_rule = assignment.rule < (n_rules if is_complete else n_rules - 1)
    sizes, size = _sizes(trace, assignment, rules)
    times = _times(trace, origin)
    names = trace.fields["name"].texts() if "name" in trace.fields else [""] * len(trace)
    ids = [""] * len(trace) if trace.ids is None else trace.ids.texts()
    templates: dict[tuple[Place, int, int, float | None], JsonObject] = {}
    columns = (times, group.tolist(), size.tolist(), has_rule.tolist(), assignment.queue.tolist(), _limits(trace))
    priorities = trace.priorities(assignment, rules).tolist()
    for row, known, which, is_given, queue, limit, priority, name, id_ in zip(
        *columns, priorities, names, ids, strict=True
    ):
        place = by_rule[queue] if is_given else by_name[known]
        total, each, n_pods = sizes[which]
        key = (place, which, priority, limit)
        if place.cluster_queue and place.local_queue and key not in templates:
            templates[key] = _template(place, each, n_pods, priority, limit)
        created, started, ended, seen, ran = row
        yield PastJob(
            namespace=place.namespace,
            local_queue=place.local_queue,
            cluster_queue=place.cluster_queue,
            name=name or id_,
            priority=priority,
            requests=total,
            n_pods=n_pods,
            limit_seconds=limit,
            labels=labels[known],
            created=created,
            started=started,
            ended=ended,
            template=templates.get(key),
            seen=seen,
            ran_seconds=ran,
        )


def _distinct(columns: Sequence[npt.NDArray[np.int64]], n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a row of each combination of values that occurs, and the number of each row's combination."""
    combined = np.zeros(n, np.int64)
    for column in columns:
        codes = np.unique(column, return_inverse=True)[1].astype(np.int64)
        # Renumber each time, so that the product stays below the square of the number of rows.
        combined = combined * (int(codes.max()) + 1 if n else 1) + codes
        combined = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    _, first, codes = np.unique(combined, return_index=True, return_inverse=True)
    return first.astype(np.int64), codes.astype(np.int64)


def _labels(fields: Mapping[str, TextColumn], row: int) -> dict[str, str]:
    found = {name: column.names[int(column.codes[row])] for name, column in fields.items() if name not in _NO_LABELS}
    return {name: value for name, value in found.items() if value}


def _by_name(labels: Mapping[str, str], queues: KnownQueues) -> Place:
    """Return the queue that a job's fields name; if the cluster has none of these names, the names."""
    namespaces = [labels[name] for name in _NAMESPACE_FIELDS if name in labels]
    named = [labels[name] for name in QUEUE_FIELDS if name in labels]
    return queues.find(namespaces, named) or Place(next(iter(namespaces), ""), next(iter(named), ""))


def _sizes(
    trace: Trace, assignment: Assignment, rules: TraceRules
) -> tuple[list[tuple[dict[str, int], dict[str, int], int]], npt.NDArray[np.int64]]:
    """Return the distinct sizes (in total, of a pod, pods), and the number of each row's size."""
    requests = dict(sorted(trace.pod_requests(assignment, rules).items()))
    first, codes = _distinct([trace.pods, *requests.values()], len(trace))
    sizes = []
    for row in first.tolist():
        n_pods = int(trace.pods[row])
        each = {name: int(amounts[row]) for name, amounts in requests.items() if amounts[row]}
        sizes.append(({name: amount * n_pods for name, amount in each.items()}, each, n_pods))
    return sizes, codes


def _times(trace: Trace, origin: float) -> list[tuple[int, int | None, int | None, int | None, float | None]]:
    """Return when each job was created, started, ended and last seen, and how long it ran if no start is known."""
    wait = np.full(len(trace), np.nan) if trace.wait_seconds is None else trace.wait_seconds
    has_started = np.isfinite(wait) & (wait >= 0)
    has_ended = np.isfinite(trace.run_seconds)
    at = origin + trace.at
    start = at + np.where(has_started, wait, 0.0)
    created, started, ended = _ns(at), _ns(start), _ns(start + np.where(has_ended, trace.run_seconds, 0.0))
    taken = round((origin + _newest(trace)) * 1e6) * 1000
    found: list[tuple[int, int | None, int | None, int | None, float | None]] = []
    columns = (created, started, ended, has_started.tolist(), has_ended.tolist(), trace.run_seconds.tolist())
    for begin, first, last, is_started, is_over, run in zip(*columns, strict=True):
        if is_started:
            found.append((begin, first, last if is_over else None, None if is_over else taken, None))
        else:
            found.append((begin, None, None, begin, run if is_over else None))
    return found


def _ns(seconds: npt.NDArray[np.float64]) -> list[int]:
    # A double has no more digits than that today.
    found: list[int] = (np.rint(np.clip(seconds, -_END_SECONDS, _END_SECONDS) * 1e6).astype(np.int64) * 1000).tolist()
    return found


def _limits(trace: Trace) -> list[float | None]:
    if trace.limit_seconds is None:
        return [None] * len(trace)
    return [limit if isfinite(limit) and 0 < limit < _MAX_LIMIT else None for limit in trace.limit_seconds.tolist()]


def _template(place: Place, requests: Mapping[str, int], n_pods: int, priority: int, limit: float | None) -> JsonObject:
    """Return a Workload like that of a job."""
    amounts: JsonObject = {name: quantity_of(name, amount) for name, amount in requests.items()}
    container: JsonObject = {"name": "main", "resources": {"requests": amounts}}
    pod: JsonObject = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pod_sets: list[JsonValue] = [{"name": "main", "count": n_pods, "template": pod}]
    spec: JsonObject = {"queueName": place.local_queue, "priority": priority, "podSets": pod_sets}
    if limit is not None and limit >= 1:
        spec["maximumExecutionTimeSeconds"] = int(limit)
    metadata: JsonObject = {"namespace": place.namespace, "name": "template"}
    return {"apiVersion": KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec}
