"""Reads the past of a cluster from wherever it is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.dumped_jobs import taken_of_dumps
from kueuecore.forecasts.history.engine_jobs import taken_of_journal, taken_of_saved_engine
from kueuecore.forecasts.history.kinds import (
    HistoryKind,
    is_address,
    is_folder,
    kind_of,
    named_source,
    without_password,
)
from kueuecore.forecasts.history.known_queues import KnownQueues
from kueuecore.forecasts.history.logged_jobs import taken_of_folder, taken_of_log
from kueuecore.forecasts.history.metric_answers import read_answers
from kueuecore.forecasts.history.metric_rates import Ask, asked_rates, rates_of
from kueuecore.forecasts.history.queue_rates import QueueRates
from kueuecore.forecasts.history.taken import Taken
from kueuecore.forecasts.history.traced_jobs import QUEUE_FIELDS, taken_of_trace
from kueuecore.forecasts.past_jobs import PastJob
from kueuecore.manifests import Manifest
from kueuecore.saved_engine import holds_engine
from kueuecore.traces import JobRule, Trace, TraceFormat, TraceRules, read_trace
from kueuecore.traces.trace_file import trace_bytes

__all__ = ["History", "history_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is known of a cluster's past.

    Args:
        jobs: Its jobs, in order of creation; none of them is in the present state.
        rates: What is known of its ClusterQueues without knowing their jobs.
        notes: A line about each source: how much was taken, what was left out and why, and what is odd.
    """

    jobs: tuple[PastJob, ...] = ()
    rates: tuple[QueueRates, ...] = ()
    notes: tuple[str, ...] = ()


def history_of(
    sources: Iterable[str],
    *,
    now: int,
    objects: Sequence[Manifest] = (),
    present: Collection[PastJob] = (),
    rules: TraceRules | None = None,
    queues: Sequence[tuple[str, str]] = (),
    ask: Callable[[str], Ask] | None = None,
) -> History:
    """Read sources, each recognised by what it contains.

    Nothing that happened after `now` is known: jobs that were submitted later are left out, and those that ended later
    still run.

    Args:
        sources: Files and folders, `KIND=FILE` with a kind of `HistoryKind` or of `TraceFormat`, and addresses of
            Prometheus.
        now: The present, in nanoseconds since 1970.
        objects: The objects of the cluster: jobs of a trace belong to its queues if the names are the same.
        present: Its present Workloads: they are left out, as the present state knows more of them.
        rules: Rules for jobs of traces; those that none of them matches go by their names.
        queues: More of them: the name of a partition or queue (or `FIELD:PATTERN`), and `NAMESPACE/LOCALQUEUE`.
        ask: Connects to a Prometheus at an address.

    Raises:
        ManifestError: A source cannot be read, or has nothing of use.

    Example:
        >>> from kueuecore.times import nanoseconds
        >>> history = history_of(["examples/traces/cluster.swf"], now=nanoseconds("2026-01-05T00:00:00Z"))
        >>> len(history.jobs), history.notes[-1]
        (36, 'examples/traces/cluster.swf: 36 jobs taken; left out: 4 (cancelled before it started)')
    """
    known = KnownQueues.of(objects)
    jobs: list[PastJob] = []
    by_uid: dict[str, PastJob] = {}
    rates: list[QueueRates] = []
    notes: list[str] = []
    uids = {job.uid for job in present if job.uid}
    for source in sources:
        taken = _taken(source, now, objects, known, rules, queues, ask)
        n_present = n_joined = 0
        for job in taken.jobs:
            if not job.uid:
                jobs.append(job)
            elif job.uid in uids:
                n_present += 1
            else:
                other = by_uid.get(job.uid)
                n_joined += other is not None
                by_uid[job.uid] = job if other is None else _joined(job, other)
        left_out = {**taken.left_out, "in the present state": n_present, "joined with another source": n_joined}
        kept = len(taken.jobs) - n_present - n_joined
        rates += taken.rates
        notes += [*taken.notes, replace(taken, left_out=left_out).summary(kept)]
    jobs += by_uid.values()
    ordered = sorted(jobs, key=lambda job: (job.created or job.started or 0, job.namespace, job.name))
    return History(jobs=tuple(ordered), rates=tuple(rates), notes=tuple(notes))


def _joined(one: PastJob, other: PastJob) -> PastJob:
    """Return what two sources know of a job: the one that saw more of it counts, and what it lacks is filled in."""
    newer, older = sorted(
        (one, other), key=lambda job: (job.ended is not None, job.seen or 0, job.started is not None), reverse=True
    )
    sized = newer if newer.requests else older
    return replace(
        sized,
        local_queue=newer.local_queue or older.local_queue,
        cluster_queue=newer.cluster_queue or older.cluster_queue,
        created=newer.created if newer.created is not None else older.created,
        # Evicted since, unless it has ended.
        started=older.started if newer.started is None and newer.ended is not None else newer.started,
        ended=newer.ended,
        seen=newer.seen,
    )


def _taken(
    source: str,
    now: int,
    objects: Sequence[Manifest],
    known: KnownQueues,
    rules: TraceRules | None,
    queues: Sequence[tuple[str, str]],
    ask: Callable[[str], Ask] | None,
) -> Taken:
    kind, name = named_source(source)
    if is_address(name):
        if ask is None or kind not in (None, HistoryKind.PROMETHEUS):
            remedy = "fetch it first, and name the file" if kind else "give answers of Prometheus in a file"
            message = "it is the address of a server, which is not asked here"
            raise ManifestError.of(message, remedy=remedy, file=without_password(name))
        return asked_rates(ask(name), without_password(name), now=now)
    path = Path(name)
    match kind or kind_of(path):
        case HistoryKind.DUMP:
            return taken_of_dumps(path, now=now, homes=objects)
        case HistoryKind.LOG:
            return taken_of_folder(path, now=now) if is_folder(path) else taken_of_log(trace_bytes(path), name, now=now)
        case HistoryKind.JOURNAL:
            data = trace_bytes(path)
            read = taken_of_saved_engine if holds_engine(data) else taken_of_journal
            return read(data, name, now=now)
        case HistoryKind.PROMETHEUS:
            return rates_of(read_answers(trace_bytes(path), name), name, now=now)
        case trace_format:
            given = trace_format if isinstance(trace_format, TraceFormat) else None
            trace = _trace(path, given, rules)
            return taken_of_trace(trace, name, now=now, queues=known, rules=_with_queues(rules, queues, trace))


def _trace(path: Path, trace_format: TraceFormat | None, rules: TraceRules | None) -> Trace:
    try:
        return read_trace(path, trace_format=trace_format, columns=None if rules is None else rules.columns)
    except ManifestError as error:
        if trace_format is None and any(problem.remedy.startswith("set `format`") for problem in error.problems):
            remedy = f"say what it is: {', '.join(f'{kind}=FILE' for kind in (*TraceFormat, *HistoryKind))}"
            message = "cannot see from its name or first bytes what it is"
            raise ManifestError.of(message, remedy=remedy, file=str(path)) from None
        raise


def _with_queues(rules: TraceRules | None, queues: Sequence[tuple[str, str]], trace: Trace) -> TraceRules | None:
    """Put the queues of the options before the rules."""
    if not queues:
        return rules
    first = []
    for name, queue in queues:
        field, colon, pattern = name.partition(":")
        if colon and field in trace.fields:
            first.append(JobRule(queue=queue, when={field: (pattern,)}))
        else:
            first += [JobRule(queue=queue, when={key: (name,)}) for key in QUEUE_FIELDS if key in trace.fields]
    return replace(rules or TraceRules(), rules=(*first, *(rules.rules if rules is not None else ())))
