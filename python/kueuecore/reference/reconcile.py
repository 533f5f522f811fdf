"""What the workload controller writes between cycles, one pass over one workload (rules/07 §12)."""

from __future__ import annotations

from kueuecore.reference import conditions, eviction, times
from kueuecore.reference.decision import Event
from kueuecore.reference.nominate import inadmissible_because
from kueuecore.reference.objects import ClusterQueue, local_queue_key, names_of
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.state import State

__all__ = ["reconcile", "required_checks"]

# What the scheduler said last stays until it says something else (rules/07 §11).
_SCHEDULERS = (
    "NoMatchingFlavor",
    "WaitingForQuota",
    "ExceedsMaxQuota",
    "TopologyPlacementFailed",
    "WaitingForPreemptedWorkloads",
    "WaitingForPodsReady",
    "PendingEvaluation",
)
_STALE = ("", "PendingEvaluation", "Pending", "Suspended", "Deactivated")


def required_checks(workload: Json, queue: ClusterQueue) -> list[str]:
    """The checks that a workload has to pass (rules/07 §2)."""
    admission = (workload.get("status") or {}).get("admission")
    if not admission:
        return sorted(name for name, flavors in queue.checks.items() if flavors >= queue.flavors)
    assignments = admission.get("podSetAssignments") or ()
    used = {flavor for assignment in assignments for flavor in (assignment.get("flavors") or {}).values()}
    return sorted(name for name, flavors in queue.checks.items() if flavors & used)


def reconcile(world: State, name: str) -> None:
    """One pass. Each step that writes ends it (rules/07 §12)."""
    workload = world.owned(name)
    if conditions.is_finished(workload):
        return
    _Pass(world, workload, name).run()


class _Pass:
    def __init__(self, world: State, workload: Json, name: str) -> None:
        self.world, self.workload, self.name, self.now = world, workload, name, world.now
        self.settings: Settings = world.settings
        self.local_queue = world.kind("LocalQueue").get(local_queue_key(workload))
        self.stop = ((self.local_queue or {}).get("spec") or {}).get("stopPolicy") or "None"
        target = world.local_queues.get(local_queue_key(workload), "")
        manifest = world.kind("ClusterQueue").get(target) if target in world.queues else None
        self.target = target
        self.queue = None if manifest is None else ClusterQueue.read(manifest)

    def run(self) -> None:
        """The steps, in order."""
        steps = (self._retry_time, self._activity, self._restarted, self._gate, self._checks, self._conditions)
        if not any(step() for step in steps) and conditions.has_reservation(self.workload):
            _ = self._failed_checks() or self._stopped_local_queue() or self._stopped_cluster_queue()

    def _write(self) -> bool:
        self.world.write(self.workload)
        return True

    def _say(self, kind: str, reason: str, message: str) -> None:
        text = conditions.cut(message, conditions.EVENT_BYTES)
        self.world.events.append(Event(kind, reason, *names_of(self.workload), text))

    def _evict(self, reason: str, message: str, cause: str = "") -> bool:
        event = eviction.evict(self.workload, reason, message, self.now, cause=cause)
        if event is not None:
            self.world.events.append(event)
        return self._write()

    def _requeue_at(self) -> int | None:
        written = (self.workload["status"].get("requeueState") or {}).get("requeueAt")
        return None if written is None else times.moment(written)

    def _retry_time(self) -> bool:
        """Checks ask to wait (rules/07 §3)."""
        latest = max_retry_time(self.workload)
        if latest is None or latest <= self.now or (self._requeue_at() or 0) >= latest:
            return False
        self.workload["status"].setdefault("requeueState", {})["requeueAt"] = times.text(latest)
        return self._write()

    def _activity(self) -> bool:
        return self._active() if conditions.is_active(self.workload) else self._inactive()

    def _active(self) -> bool:
        """Deactivation, backoff, and the way back into the queue (rules/07 §12 7)."""
        workload, requeue_at = self.workload, self._requeue_at()
        if conditions.is_true(workload, "DeactivationTarget"):
            workload["spec"] = {**workload["spec"], "active": False}
            return self._write()
        if requeue_at is not None:
            if requeue_at > self.now:
                return True
            if conditions.stage(workload) == "Pending":
                workload["status"]["requeueState"].pop("requeueAt")
                return self._write()
        requeued = conditions.find(workload, "Requeued")
        if requeued is None or requeued["status"] != "False":
            return False
        if requeued["reason"] == "Deactivated":
            message = "The workload was reactivated"
            conditions.put(workload, "Requeued", True, "Reactivated", message, self.now)
            return self._write()
        if requeued["reason"] in ("PodsReadyTimeout", "AdmissionCheck"):
            (workload["status"].get("requeueState") or {}).pop("requeueAt", None)
            message = "The workload backoff was finished"
            conditions.put(workload, "Requeued", True, "BackoffFinished", message, self.now)
            return self._write()
        return False

    def _inactive(self) -> bool:
        """Nobody wants it to run (rules/07 §9)."""
        workload, message, cause = self.workload, "The workload is deactivated", ""
        target = conditions.find(workload, "DeactivationTarget")
        had_state = workload["status"].pop("requeueState", None) is not None
        if conditions.is_evicted(workload):
            return self._write() if had_state else False
        if target is not None:
            cause, message = target["reason"], f"{message} due to {target['message']}"
            kept = [c for c in workload["status"]["conditions"] if c["type"] != "DeactivationTarget"]
            workload["status"]["conditions"] = kept
        return self._evict("Deactivated", message, cause)

    def _restarted(self) -> bool:
        """A LocalQueue runs again (rules/07 §8)."""
        is_running = self.local_queue is not None and self.stop == "None"
        return is_running and self._requeue_after("LocalQueueStopped", "LocalQueue")

    def _requeue_after(self, reason: str, kind: str) -> bool:
        requeued = conditions.find(self.workload, "Requeued")
        if requeued is None or (requeued["status"], requeued["reason"]) != ("False", reason):
            return False
        message = f"The {kind} was restarted after being stopped"
        conditions.put(self.workload, "Requeued", True, f"{kind}Restarted", message, self.now)
        return self._write()

    def _gate(self) -> bool:
        """Somebody holds it back from the queue, or does no longer (rules/07 §8)."""
        if not self.settings.on("AdmissionGatedBy"):
            return False
        gate = conditions.admission_gate(self.workload, self.settings)
        condition = conditions.find(self.workload, "QuotaReserved")
        is_noted = condition is not None and condition["reason"] == "AdmissionGated"
        if bool(gate) == is_noted:
            return False
        if gate:
            message = f"Admission is gated by: {gate}"
            conditions.unreserve(self.workload, "AdmissionGated", message, self.now, self.settings)
            self._say("Normal", "AdmissionGated", f"Workload admission is gated by: {gate}")
        else:
            message = "AdmissionGatedBy cleared, waiting for quota reservation"
            reason = "PendingEvaluation" if self.settings.on("UnadmittedWorkloadsObservability") else "Pending"
            conditions.unreserve(self.workload, reason, message, self.now, self.settings)
            self._say("Normal", "AdmissionGateCleared", "Admission gate cleared, workload is now admissible")
        return self._write()

    def _checks(self) -> bool:
        """A ClusterQueue runs again, or asks for other checks (rules/07 §2, §8)."""
        if self.queue is None:
            return False
        if self.queue.stop_policy == "None" and self._requeue_after("ClusterQueueStopped", "ClusterQueue"):
            return True
        required = required_checks(self.workload, self.queue)
        states = conditions.check_states(self.workload)
        known = {state["name"] for state in states}
        added = [name for name in required if name not in known]
        states += [
            {"name": n, "state": "Pending", "message": "", "lastTransitionTime": times.text(self.now)} for n in added
        ]
        is_longer = len(states) > len(required)
        if not added and not is_longer:
            return False
        kept = [state for state in states if not is_longer or state["name"] in required]
        self.workload["status"]["admissionChecks"] = sorted(kept, key=lambda state: str(state["name"]))
        return self._write()

    def _conditions(self) -> bool:
        """Why it waits, and whether it may start (rules/07 §11). Ends no pass."""
        workload = self.workload
        if conditions.is_admitted(workload):
            return False
        changed = False
        if not conditions.has_reservation(workload):
            reason, message = self._why_unreserved()
            if reason:
                changed = conditions.put(workload, "QuotaReserved", False, reason, message, self.now)
        if conditions.sync_admitted(workload, self.now, self.settings) or changed:
            self._write()
            # What is written later in this pass is a version of its own.
            self.workload = conditions.own(workload)
        if conditions.is_admitted(workload):
            since = times.moment((conditions.find(workload, "QuotaReserved") or {}).get("lastTransitionTime"))
            queue = workload["status"]["admission"]["clusterQueue"]
            waited = f"{times.seconds_of(self.now - since):.0f}s"
            self._say(
                "Normal", "Admitted", f"Admitted by ClusterQueue {queue}, wait time since reservation was {waited}"
            )
        return False

    def _blocker(self) -> tuple[str, str]:
        """What is wrong with its queues (rules/07 §11)."""
        name = self.workload["spec"].get("queueName", "")
        if self.local_queue is None:
            return "Misconfigured", f"LocalQueue {name} doesn't exist"
        if self.stop != "None":
            return "Suspended", f"LocalQueue {name} is inactive"
        if self.queue is None:
            return "Misconfigured", f"ClusterQueue {self.target} doesn't exist"
        if not self.world.cache.is_active(self.target):
            return "Suspended", f"ClusterQueue {self.target} is inactive"
        return "", ""

    def _why_unreserved(self) -> tuple[str, str]:
        """Reason and message of QuotaReserved=False, none to leave it (rules/07 §11)."""
        workload, settings = self.workload, self.settings
        condition = conditions.find(workload, "QuotaReserved")
        blocker = self._blocker()
        if not settings.on("UnadmittedWorkloadsObservability"):
            return ("Inadmissible", blocker[1]) if blocker[1] else ("", "")
        if not conditions.is_active(workload):
            return "Deactivated", "The workload is deactivated"
        if condition is not None and conditions.is_on_hold(workload):
            return condition["reason"], condition["message"]
        if blocker[0]:
            return blocker
        assert self.queue is not None, "a missing ClusterQueue is a blocker"
        limits = self.world.limit_ranges(workload)
        selector = self.queue.namespace_selector
        if why := inadmissible_because(workload, selector, self.world.namespaces, limits):
            return "Misconfigured", why
        if gate := conditions.admission_gate(workload, settings):
            return "AdmissionGated", f"Admission is gated by: {gate}"
        explicit = settings.on("UnadmittedWorkloadsExplicitStatus")
        is_stale = explicit if condition is None else condition["reason"] in _STALE
        if is_stale and settings.on("SchedulingEquivalenceHashing"):
            pending = self.world.queues[self.target]
            parked = pending.inadmissible.get(self.name)
            if parked is not None and parked.shape in pending.marked:
                message = "Bypassed scheduling evaluation because an equivalent workload recently failed"
                return pending.marked[parked.shape], message
        if condition is not None and condition["reason"] in _SCHEDULERS:
            return condition["reason"], condition["message"]
        if condition is None and not explicit:
            return "", ""
        if condition is not None and condition["reason"] == "PendingEvaluation":
            # Such as the message of an eviction (rules/07 §12).
            return condition["reason"], condition["message"]
        return "PendingEvaluation", "Workload is pending evaluation in the scheduling queue"

    def _failed_checks(self) -> bool:
        """Checks that say no, or not now (rules/07 §3)."""
        if conditions.is_evicted(self.workload):
            return False
        states = conditions.check_states(self.workload)
        rejected = [state for state in states if state["state"] == "Rejected"]
        retried = [state for state in states if state["state"] == "Retry"]
        if rejected:
            message = _checks_text(rejected, "Rejected")
            conditions.put(self.workload, "DeactivationTarget", True, "AdmissionCheck", message, self.now)
            self._say("Warning", "AdmissionCheckRejected", f"Deactivated due to {message}")
            return self._write()
        return bool(retried) and self._evict("AdmissionCheck", f"Evicted due to {_checks_text(retried, 'Retry')}")

    def _stopped_local_queue(self) -> bool:
        name = self.workload["spec"].get("queueName", "")
        if conditions.is_admitted(self.workload):
            return self._drain(self.stop, "LocalQueue")
        if self.local_queue is None:
            return self._lose("Misconfigured", f"LocalQueue {name} is terminating or missing")
        return self.stop != "None" and self._lose("Suspended", f"LocalQueue {name} is stopped")

    def _stopped_cluster_queue(self) -> bool:
        if conditions.is_admitted(self.workload):
            return self._drain(self.queue.stop_policy if self.queue else "None", "ClusterQueue")
        if self.queue is None:
            return self._lose("Misconfigured", f"ClusterQueue {self.target} is terminating or missing")
        return self.queue.stop_policy != "None" and self._lose("Suspended", f"ClusterQueue {self.target} is stopped")

    def _drain(self, stop_policy: str, kind: str) -> bool:
        """Those that run have to stop too (rules/07 §10)."""
        if stop_policy != "HoldAndDrain" or conditions.is_evicted(self.workload):
            return False
        return self._evict(f"{kind}Stopped", f"The {kind} is stopped")

    def _lose(self, reason: str, message: str) -> bool:
        """A mere reservation is taken back (rules/07 §10)."""
        told = reason if self.settings.on("UnadmittedWorkloadsObservability") else "Inadmissible"
        conditions.unreserve(self.workload, told, message, self.now, self.settings)
        return self._write()


def _checks_text(states: list[Json], state: str) -> str:
    """Which checks said what (rules/07 §3)."""
    noun = "AdmissionCheck" if len(states) == 1 else "AdmissionChecks"
    told = [
        f'"{check["name"]}"' + (f" ({check['message']})" if check.get("message") else "")
        for check in sorted(states, key=lambda check: str(check["name"]))
    ]
    return f"{noun} in {state} state: {'; '.join(told)}"


def max_retry_time(workload: Json) -> int | None:
    """When the last check wants to be asked again (rules/07 §3)."""
    moments = [
        times.moment(state["lastTransitionTime"]) + state["requeueAfterSeconds"] * times.SECOND
        for state in conditions.check_states(workload)
        if state["state"] == "Retry" and state.get("lastTransitionTime") and "requeueAfterSeconds" in state
    ]
    return max(moments, default=None)
