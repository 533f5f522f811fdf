"""Whether an admitted workload is ready in time and ends in time, and what happens if not (rules/07 §6, §7)."""

from __future__ import annotations

import json

from kueuecore.reference import conditions, times, variants
from kueuecore.reference.settings import Json, Settings


def note(workload: Json, are_ready: bool, settings: Settings, now: int) -> bool:
    """Write the condition PodsReady as the job reports it (rules/07 §6). Returns whether that changed it."""
    was, reason = conditions.said(workload, "PodsReady")
    is_admitted = conditions.is_true(workload, "Admitted")
    wanted = False, "WaitForStart", "Not all pods are ready or succeeded"
    if is_admitted and are_ready:
        ready_reason = "Recovered" if reason in ("WaitForRecovery", "Recovered") else "Started"
        wanted = True, ready_reason, "All pods reached readiness and the workload is running"
    elif is_admitted and (was == "True" or reason == "WaitForRecovery"):
        wanted = False, "WaitForRecovery", "At least one pod has failed, waiting for recovery"
    elif is_admitted and _waits_for_nodes(workload, settings):
        wanted = False, "WaitForScheduling", wanted[2]
    is_new = (was, reason) != (str(wanted[0]), wanted[1])
    return is_new and conditions.put(workload, "PodsReady", *wanted, now)


def note_scheduling(
    workload: Json, are_scheduled: bool, settings: Settings, now: int, *, is_elsewhere: bool = False
) -> bool:
    """Write the condition PodsScheduled as it is seen of the pods (rules/07 §6). Returns whether that changed it.

    Args:
        workload: The Workload.
        are_scheduled: Whether all required pods have a node.
        settings: The settings.
        now: Now.
        is_elsewhere: Whether its pods run in another cluster.
    """
    was, _ = conditions.said(workload, "PodsScheduled")
    missing = "At least one required pod is not scheduled"
    if settings.unscheduled_timeout is None or is_elsewhere:
        return False
    if not conditions.is_true(workload, "Admitted"):
        return was == "True" and conditions.put(workload, "PodsScheduled", False, "WaitForStart", missing, now)
    admitted = conditions.since(workload, "Admitted")
    if conditions.since(workload, "PodsScheduled") > admitted and was in ("True", str(are_scheduled)):
        return False
    others = [
        condition for condition in workload["status"].get("conditions") or () if condition["type"] != "PodsScheduled"
    ]
    workload["status"]["conditions"] = others
    at = max(now, admitted + times.SECOND)
    if are_scheduled:
        all_are = "All required pods are scheduled"
        return conditions.put(workload, "PodsScheduled", True, "AllRequiredPodsScheduled", all_are, at)
    return conditions.put(workload, "PodsScheduled", False, "WaitForScheduling", missing, at)


def _waits_for_nodes(workload: Json, settings: Settings) -> bool:
    """Return whether a pod has had no node since this admission, as far as that is followed (rules/07 §6)."""
    is_current = conditions.since(workload, "PodsScheduled") > conditions.since(workload, "Admitted")
    seen = conditions.said(workload, "PodsScheduled") == ("False", "WaitForScheduling")
    return settings.unscheduled_timeout is not None and seen and is_current


def _timeouts(workload: Json, settings: Settings) -> tuple[int | None, int | None]:
    """Return how long its pods may take to be ready, and to be ready again: its own times, or those of all."""
    ready, recovery = settings.ready_timeout, settings.recovery_timeout
    if ready is None or not settings.on("WorkloadLevelWaitForPodsReady"):
        return ready, recovery
    try:
        own = json.loads(workload["metadata"]["annotations"].get("kueue.x-k8s.io/wait-for-pods-ready", ""))
    except ValueError:
        return ready, recovery
    least = {"timeoutSeconds": 1, "recoveryTimeoutSeconds": 0}
    if not isinstance(own, dict) or not all(
        key in least and type(load) is int and load >= least[key] for key, load in own.items()
    ):
        return ready, recovery
    if "timeoutSeconds" in own:
        ready = recovery = own["timeoutSeconds"] * times.SECOND
    if "recoveryTimeoutSeconds" in own:
        recovery = own["recoveryTimeoutSeconds"] * times.SECOND or None
    return ready, recovery


def deadline(workload: Json, settings: Settings, *, is_elsewhere: bool) -> tuple[str, int] | None:
    """Return what its pods are waited for, and until when; None if they are not (rules/07 §6).

    Args:
        workload: The Workload.
        settings: The settings.
        is_elsewhere: Whether its pods run in another cluster, and so have no node here.
    """
    status, reason = conditions.said(workload, "PodsReady")
    is_running = conditions.is_true(workload, "Admitted") and not conditions.is_true(workload, "Evicted")
    is_variant = settings.on("ConcurrentAdmission") and variants.is_variant(workload)
    if not is_running or not conditions.is_active(workload) or is_variant or status == "True":
        return None
    ready_timeout, recovery_timeout = _timeouts(workload, settings)
    if reason == "WaitForRecovery":
        since, timeout = conditions.since(workload, "PodsReady"), recovery_timeout
    else:
        is_followed = reason == "WaitForScheduling" and settings.unscheduled_timeout is not None and not is_elsewhere
        reason = "WaitForScheduling" if is_followed else "WaitForStart"
        is_short = is_followed and _waits_for_nodes(workload, settings)
        timeout = settings.unscheduled_timeout if is_short else ready_timeout
        since = conditions.since(workload, "Admitted")
    return None if timeout is None else (reason, since + timeout)


def back_off(workload: Json, settings: Settings, now: int) -> bool:
    """Count one more requeue and set its time, unless there were too many (rules/07 §6). Returns whether it did."""
    strategy, state = settings.requeuing_strategy, dict(workload["status"].get("requeueState") or {})
    count, limit = state.get("count", 0) + 1, strategy.get("backoffLimitCount")
    if limit is not None and count > limit:
        return False
    base, most = strategy.get("backoffBaseSeconds", 60), strategy.get("backoffMaxSeconds", 3600)
    seconds = base if count == 1 else min(base * 2 ** (count - 1), most or times.FOREVER)
    at = (now // times.SECOND + seconds) * times.SECOND
    written = state.get("requeueAt")
    latest = at if written is None else max(at, times.moment(written))
    workload["status"]["requeueState"] = {**state, "count": count, "requeueAt": times.text(latest)}
    return True


def execution_end(workload: Json) -> int | None:
    """Return when its maximum run time is over; earlier admissions count (rules/07 §7)."""
    most = workload["spec"].get("maximumExecutionTimeSeconds")
    if most is None or not conditions.is_true(workload, "Admitted"):
        return None
    left = most - workload["status"].get("accumulatedPastExecutionTimeSeconds", 0)
    return conditions.since(workload, "Admitted") + int(left) * times.SECOND


def next_look(workload: Json, settings: Settings, now: int, *, is_elsewhere: bool) -> int | None:
    """Return when time alone changes something about a workload (rules/07 §12).

    Args:
        workload: The Workload.
        settings: The settings.
        now: Now.
        is_elsewhere: Whether its pods run in another cluster.
    """
    if conditions.is_finished(workload):
        return None
    requeue_at = (workload["status"].get("requeueState") or {}).get("requeueAt")
    if requeue_at is not None and conditions.is_active(workload) and times.moment(requeue_at) > now:
        return times.moment(requeue_at)
    unready = deadline(workload, settings, is_elsewhere=is_elsewhere)
    moments = (unready and unready[1], execution_end(workload))
    return min((moment for moment in moments if moment is not None and moment > now), default=None)
