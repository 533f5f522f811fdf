"""The history of a workload of a cluster, from all that is recorded there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kueuecore._conditions import is_true
from kueuecore._json import JsonObject, JsonValue, int_at, list_at, object_at, text_at
from kueuecore._text import counted
from kueuecore.histories.conditions import stage_of, steps_of_workload
from kueuecore.histories.events import steps_of_events
from kueuecore.histories.facts import Found
from kueuecore.histories.log_lines import LogLine, events_of_log, steps_of_log, workload_keys
from kueuecore.histories.merging import merged
from kueuecore.histories.timeline import Timeline, What
from kueuecore.histories.uids import Uids
from kueuecore.histories.wording import step_of

__all__ = ["history_of", "history_of_gone", "jobs_of"]

_GONE = "the Workload is gone: only its Events are left"
_LOST = (What.PREEMPTED, What.EVICTED, What.DEACTIVATED)


def history_of(
    workload: JsonObject,
    *,
    events: Iterable[JsonObject] = (),
    log: Sequence[LogLine] = (),
    objects: Iterable[JsonObject] = (),
) -> Timeline:
    """Return what has happened to a workload, as far as it is recorded.

    Conditions hold the last change of each kind, Events are kept for an hour by default, and a Workload counts its
    evictions. What none of them has is named in `missing`.

    Args:
        workload: The Workload as it is stored.
        events: Events, of `v1` or `events.k8s.io/v1`; those about others do not matter.
        log: What `kueuecore serve` logged, by `read_log`.
        objects: All objects: they have the names behind UIDs, and the ClusterQueue of each LocalQueue.

    Example:
        >>> at = "2026-01-01T00:00:09Z"
        >>> reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "lastTransitionTime": at,
        ...             "message": "Quota reserved in ClusterQueue a"}
        >>> timeline = history_of({"kind": "Workload", "metadata": {"namespace": "lab", "name": "w"},
        ...                        "status": {"conditions": [reserved]}})
        >>> timeline.stage, [step.sentence for step in timeline.steps]
        ('QuotaReserved', ['gets quota in ClusterQueue a'])
    """
    namespace, name = text_at(workload, "metadata", "namespace"), text_at(workload, "metadata", "name")
    key, uid, jobs = f"{namespace}/{name}", text_at(workload, "metadata", "uid"), jobs_of(workload)
    known = list(objects)
    own, missing = steps_of_workload(workload, cluster_queue=_cluster_queue(workload, known))
    of_events, lost_of_events = steps_of_events(events, key=key, uid=uid, jobs=jobs)
    of_log, lost_of_log = steps_of_log(log, key=key, uid=uid, jobs=jobs)
    uids = Uids(known, workload_keys(log))
    found = merged([*own, *of_events, *of_log])
    found = [replace(step, facts=uids.resolved(step.facts)) for step in found]
    missing += [*lost_of_events, *lost_of_log, *_forgotten(workload, found)]
    if not of_events and not of_log:
        missing.append("no Events about it are known: conditions hold only the last change of each kind")
    stage = stage_of(workload)
    steps = tuple(map(step_of, found))
    return Timeline(namespace=namespace, name=name, stage=stage, steps=steps, missing=tuple(dict.fromkeys(missing)))


def history_of_gone(
    key: str,
    *,
    events: Iterable[JsonObject] = (),
    log: Sequence[LogLine] = (),
    objects: Iterable[JsonObject] = (),
) -> Timeline | None:
    """Return what is still recorded about a Workload that no longer exists; `None`: nothing is.

    Args:
        key: The `namespace/name` of the Workload or of its job.
        events: As for `history_of`.
        log: As for `history_of`.
        objects: As for `history_of`.
    """
    known = [*events, *events_of_log(log)]
    abouts = [object_at(event, "involvedObject") or object_at(event, "regarding") for event in known]
    names = {f"{text_at(about, 'namespace')}/{text_at(about, 'name')}" for about in abouts if _is_workload(about)}
    jobs = {
        (text_at(about, "kind"), text_at(about, "name"))
        for about in abouts
        if f"{text_at(about, 'namespace')}/{text_at(about, 'name')}" == key and not _is_workload(about)
    }
    if key not in names:
        # The job's Event names the Workload that was made for it.
        said = (text_at(event, "message") for event in known if text_at(event, "reason") == "CreatedWorkload")
        made = [message.partition(": ")[2] for message in said]
        key = next((name for name in reversed(made) if name in names and jobs), "")
    if not key:
        return None
    uids = [
        text_at(about, "uid") for about in abouts if f"{text_at(about, 'namespace')}/{text_at(about, 'name')}" == key
    ]
    namespace, _, name = key.partition("/")
    owners: list[JsonValue] = [{"kind": kind, "name": of} for kind, of in sorted(jobs)]
    metadata: JsonObject = {"namespace": namespace, "name": name, "uid": uids[-1], "ownerReferences": owners}
    timeline = history_of({"kind": "Workload", "metadata": metadata}, events=events, log=log, objects=objects)
    return replace(timeline, stage="", missing=(*timeline.missing, _GONE))


def _is_workload(about: JsonObject) -> bool:
    return text_at(about, "kind") == "Workload"


def jobs_of(workload: JsonObject) -> tuple[tuple[str, str], ...]:
    """Return kind and name of each job that owns a Workload."""
    owners = list_at(workload, "metadata", "ownerReferences")
    return tuple((text_at(owner, "kind"), text_at(owner, "name")) for owner in owners)


def _cluster_queue(workload: JsonObject, objects: Iterable[JsonObject]) -> str:
    wanted = text_at(workload, "metadata", "namespace"), text_at(workload, "spec", "queueName")
    queues = (plain for plain in objects if text_at(plain, "kind") == "LocalQueue")
    for queue in queues:
        if (text_at(queue, "metadata", "namespace"), text_at(queue, "metadata", "name")) == wanted:
            return text_at(queue, "spec", "clusterQueue")
    return ""


def _forgotten(workload: JsonObject, found: Sequence[Found]) -> list[str]:
    """What a Workload has counted and nothing else has recorded."""
    said = []
    there = Counter(
        "Preempted" if step.what is What.PREEMPTED else _reason(step) for step in found if step.what in _LOST
    )
    counts: Counter[str] = Counter()
    for entry in list_at(workload, "status", "schedulingStats", "evictions"):
        counts[text_at(entry, "reason")] += int_at(entry, "count")
    for reason, count in sorted(counts.items()):
        n_lost = count - there[reason]
        if n_lost > 0:
            which = "which is" if count == 1 else f"of which {n_lost} are" if n_lost > 1 else "of which 1 is"
            said.append(f"evicted {counted(count, 'time')} ({reason}), {which} no longer recorded")
    ran = int_at(workload, "status", "accumulatedPastExecutionTimeSeconds")
    n_admitted = sum(step.what is What.ADMITTED for step in found) - is_true(workload, "Admitted")
    if ran and n_admitted < 1:
        said.append(f"it ran for {ran} s in earlier admissions, which are no longer recorded")
    requeues = int_at(object_at(workload, "status"), "requeueState", "count")
    n_held = sum(step.what is What.HELD_BACK for step in found)
    if requeues > max(n_held, 1):
        said.append(f"put back with a delay {counted(requeues, 'time')}, of which only the last is recorded")
    return said


def _reason(step: Found) -> str:
    return "Preempted" if step.what is What.PREEMPTED else step.reason.partition("DueTo")[0]
