"""What the workload controller writes between cycles, in one pass over one workload (rules/07 §12)."""

from __future__ import annotations

from kueuecore.reference import conditions, eviction, readiness, times
from kueuecore.reference.decision import Event
from kueuecore.reference.nominate import inadmissible_because
from kueuecore.reference.objects import ClusterQueue, local_queue_key, names_of
from kueuecore.reference.settings import Json, Settings
from kueuecore.reference.state import State

# The scheduler's last message stays until it writes another (rules/07 §11).
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


def required_checks(workload: Json, queue: ClusterQueue, settings: Settings) -> list[str]:
    """Return the checks that a workload must pass (rules/07 §2)."""
    admission = conditions.admission(workload)
    if not admission and settings.has("ChecksOfAllFlavorsAreListed"):
        return sorted(name for name, flavors in queue.checks.items() if flavors >= queue.flavors)
    assignments = admission.get("podSetAssignments") or ()
    used = {flavor for assignment in assignments for flavor in (assignment.get("flavors") or {}).values()}
    return sorted(queue.checks_of(used, settings))


def reconcile(world: State, name: str) -> None:
    """Run one pass. The first step that writes ends it (rules/07 §12)."""
    workload = world.owned(name)
    if not conditions.is_finished(workload):
        _Pass(world, workload, name).run()


class _Pass:
    def __init__(self, world: State, workload: Json, name: str) -> None:
        self.world, self.workload, self.name, self.now = world, workload, name, world.now
        self.settings: Settings = world.settings
        self.local_queue = world.kind("LocalQueue").get(local_queue_key(workload))
        self.stop = "None" if self.local_queue is None else self.local_queue["spec"].get("stopPolicy") or "None"
        self.target = world.local_queues.get(local_queue_key(workload), "")
        is_known = self.target in world.queues
        self.queue = ClusterQueue(world.kind("ClusterQueue")[self.target]) if is_known else None

    def run(self) -> None:
        """Run the steps, in order."""
        steps = (self._retry_time, self._activity, self._restarted, self._gate, self._checks, self._conditions)
        if not any(step() for step in steps) and conditions.has_reservation(self.workload):
            name = self.workload["spec"]["queueName"]
            stops = None if self.queue is None else self.queue.stop_policy
            _ = (
                self._failed_checks()
                or self._stopped("LocalQueue", name, None if self.local_queue is None else self.stop)
                or self._stopped("ClusterQueue", self.target, stops)
                or self._unready()
                or self._overdue()
            )

    def _write(self) -> bool:
        self.world.write(self.workload)
        return True

    def _put(self, kind: str, status: bool, reason: str, message: str) -> bool:
        """Write a condition, and with it the workload."""
        conditions.put(self.workload, kind, status, reason, message, self.now)
        return self._write()

    def _unreserve(self, reason: str, message: str) -> bool:
        conditions.unreserve(self.workload, reason, message, self.now, self.settings)
        return self._write()

    def _say(self, reason: str, message: str, kind: str = "Normal") -> None:
        text = conditions.cut(message, conditions.EVENT_BYTES)
        self.world.events.append(Event(*names_of(self.workload), kind, reason, text))

    def _evict(self, reason: str, message: str, cause: str = "") -> bool:
        event = eviction.evict(self.workload, reason, message, self.now, cause=cause)
        self.world.events += [event] if event is not None else []
        return self._write()

    def _requeue_at(self) -> int | None:
        written = (self.workload["status"].get("requeueState") or {}).get("requeueAt")
        return None if written is None else times.moment(written)

    def _retry_time(self) -> bool:
        """Set the time until which checks ask to wait (rules/07 §3). If inactive, Kueue sets and reverts it forever."""
        if not conditions.is_active(self.workload):
            return False
        moments = [
            times.moment(state["lastTransitionTime"]) + state["requeueAfterSeconds"] * times.SECOND
            for state in conditions.check_states(self.workload)
            if state["state"] == "Retry" and state.get("lastTransitionTime") and "requeueAfterSeconds" in state
        ]
        latest = max(moments, default=0)
        if latest <= self.now or (self._requeue_at() or 0) >= latest:
            return False
        self.workload["status"].setdefault("requeueState", {})["requeueAt"] = times.text(latest)
        return self._write()

    def _activity(self) -> bool:
        return self._active() if conditions.is_active(self.workload) else self._inactive()

    def _active(self) -> bool:
        """Handle deactivation, backoff, and the return to the queue (rules/07 §12 7)."""
        workload, requeue_at = self.workload, self._requeue_at()
        if conditions.is_true(workload, "DeactivationTarget"):
            workload["spec"] = {**workload["spec"], "active": False}
            metadata = workload["metadata"]
            if "generation" in metadata:
                # The API server counts versions of the spec.
                workload["metadata"] = {**metadata, "generation": metadata["generation"] + 1}
            return self._write()
        if requeue_at is not None:
            if requeue_at > self.now:
                return True
            if conditions.stage(workload) == "Pending":
                workload["status"]["requeueState"].pop("requeueAt")
                return self._write()
        is_derived = self.settings.has("DerivedDeactivationIsUndone")
        match conditions.said(workload, "Requeued"):
            case "False", reason if reason == "Deactivated" or (is_derived and reason.startswith("Deactivated")):
                return self._put("Requeued", True, "Reactivated", "The workload was reactivated")
            case "False", ("PodsReadyTimeout" | "AdmissionCheck"):
                (workload["status"].get("requeueState") or {}).pop("requeueAt", None)
                return self._put("Requeued", True, "BackoffFinished", "The workload backoff was finished")
        return False

    def _inactive(self) -> bool:
        """Evict a workload that is deactivated (rules/07 §9)."""
        workload, message, cause = self.workload, "The workload is deactivated", ""
        had_state = workload["status"].pop("requeueState", None) is not None
        is_evicted = conditions.is_true(workload, "Evicted")
        if is_evicted and not had_state:
            return False
        if target := conditions.find(workload, "DeactivationTarget"):
            cause, message = target["reason"], f"{message} due to {target['message']}"
            workload["status"]["conditions"].remove(target)
        if is_evicted:
            return self._write()
        return self._evict("Deactivated", message, cause)

    def _restarted(self) -> bool:
        """Requeue after a restart of the LocalQueue (rules/07 §8)."""
        return self.local_queue is not None and self.stop == "None" and self._requeue_after("LocalQueue")

    def _requeue_after(self, kind: str) -> bool:
        if conditions.said(self.workload, "Requeued") != ("False", f"{kind}Stopped"):
            return False
        return self._put("Requeued", True, f"{kind}Restarted", f"The {kind} was restarted after being stopped")

    def _gate(self) -> bool:
        """Write whether a gate keeps it out of the queue (rules/07 §8)."""
        gate = conditions.admission_gate(self.workload, self.settings)
        is_noted = conditions.said(self.workload, "QuotaReserved")[1] == "AdmissionGated"
        if bool(gate) == is_noted or not self.settings.on("AdmissionGatedBy"):
            return False
        if gate:
            self._say("AdmissionGated", f"Workload admission is gated by: {gate}")
            return self._unreserve("AdmissionGated", f"Admission is gated by: {gate}")
        self._say("AdmissionGateCleared", "Admission gate cleared, workload is now admissible")
        reason = "PendingEvaluation" if self.settings.on("UnadmittedWorkloadsObservability") else "Pending"
        return self._unreserve(reason, "AdmissionGatedBy cleared, waiting for quota reservation")

    def _checks(self) -> bool:
        """Handle a restart of the ClusterQueue, or a change of its checks (rules/07 §2, §8)."""
        if self.queue is None:
            return False
        if self.queue.stop_policy == "None" and self._requeue_after("ClusterQueue"):
            return True
        required = required_checks(self.workload, self.queue, self.settings)
        states = conditions.check_states(self.workload)
        added = sorted(set(required) - {state["name"] for state in states})
        blank = {"state": "Pending", "message": "", "lastTransitionTime": times.text(self.now)}
        states += [{"name": name, **blank} for name in added]
        is_longer = len(states) > len(required)
        if not added and not is_longer:
            return False
        kept = [state for state in states if not is_longer or state["name"] in required]
        self.workload["status"]["admissionChecks"] = sorted(kept, key=lambda state: str(state["name"]))
        return self._write()

    def _conditions(self) -> bool:
        """Write why it waits, and whether it may start (rules/07 §11). Ends no pass."""
        workload, changed = self.workload, False
        if conditions.is_true(workload, "Admitted"):
            return False
        if not conditions.has_reservation(workload):
            reason, message = self._why_unreserved()
            changed = bool(reason) and conditions.put(workload, "QuotaReserved", False, reason, message, self.now)
        if conditions.sync_admitted(workload, self.now, self.settings) or changed:
            self._write()
            # Later writes in this pass have a version of their own.
            self.workload = conditions.own(workload)
        if conditions.is_true(workload, "Admitted"):
            queue = conditions.admission(workload)["clusterQueue"]
            waited = f"{(self.now - conditions.since(workload, 'QuotaReserved')) / times.SECOND:.0f}s"
            self._say("Admitted", f"Admitted by ClusterQueue {queue}, wait time since reservation was {waited}")
        return False

    def _blocker(self) -> tuple[str, str]:
        """Return what is wrong with its queues (rules/07 §11)."""
        name = self.workload["spec"]["queueName"]
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
        """Return reason and message of QuotaReserved=False; empty to leave it (rules/07 §11)."""
        workload, settings, blocker = self.workload, self.settings, self._blocker()
        condition = conditions.find(workload, "QuotaReserved")
        as_before = condition.get("reason", ""), condition.get("message", "")
        if not settings.on("UnadmittedWorkloadsObservability"):
            return ("Inadmissible", blocker[1]) if blocker[1] else ("", "")
        if not conditions.is_active(workload):
            return "Deactivated", "The workload is deactivated"
        if conditions.is_on_hold(workload):
            return as_before
        if blocker[0]:
            return blocker
        assert self.queue is not None, "a missing ClusterQueue is a blocker"
        limits, namespaces = self.world.limit_ranges(workload), self.world.kind("Namespace")
        if why := inadmissible_because(workload, self.queue.namespace_selector, namespaces, limits, settings):
            return "Misconfigured", why
        if gate := conditions.admission_gate(workload, settings):
            return "AdmissionGated", f"Admission is gated by: {gate}"
        explicit = settings.on("UnadmittedWorkloadsExplicitStatus")
        is_stale = condition["reason"] in _STALE if condition else explicit
        pending = self.world.queues[self.target]
        parked = pending.inadmissible.get(self.name)
        is_bypassed = parked is not None and parked.shape in pending.marked
        if parked is not None and is_bypassed and is_stale and settings.on("SchedulingEquivalenceHashing"):
            message = "Bypassed scheduling evaluation because an equivalent workload recently failed"
            return pending.marked[parked.shape or ""], message
        if as_before[0] in _SCHEDULERS or (not condition and not explicit):
            return as_before
        return "PendingEvaluation", "Workload is pending evaluation in the scheduling queue"

    def _failed_checks(self) -> bool:
        """Handle checks that reject, or ask to retry (rules/07 §3)."""
        is_evicted = conditions.is_true(self.workload, "Evicted")
        # rules/07 §3: until 0.20.0 no check counted during an eviction.
        if is_evicted and not self.settings.has("RejectionCountsDuringEviction"):
            return False
        are_described = self.settings.has("FailedChecksAreDescribed")
        if message := self._checks_in("Rejected"):
            event = f"Deactivated due to {message}"
            if not are_described:
                message, event = self._plain_rejection()
            self._say("AdmissionCheckRejected", event, "Warning")
            return self._put("DeactivationTarget", True, "AdmissionCheck", message)
        if is_evicted:
            return False
        message = self._checks_in("Retry")
        evicted = f"Evicted due to {message}" if are_described else "At least one admission check is false"
        return bool(message) and self._evict("AdmissionCheck", evicted)

    def _plain_rejection(self) -> tuple[str, str]:
        """Return the messages of condition and event about rejecting checks, as of old (rules/07 §3)."""
        checks = [check for check in conditions.check_states(self.workload) if check["state"] == "Rejected"]
        name, why = checks[0]["name"], checks[0].get("message", "")
        names = ",".join(check["name"] for check in checks)
        event = f"Deactivating workload because AdmissionCheck for {name} was Rejected: {why}"
        return f"Admission check(s): {names}, were rejected", event

    def _checks_in(self, state: str) -> str:
        """Return the messages of the checks in a state (rules/07 §3)."""
        checks = [check for check in conditions.check_states(self.workload) if check["state"] == state]
        listed = [
            f'"{check["name"]}"' + (f" ({check['message']})" if check.get("message") else "")
            for check in sorted(checks, key=lambda check: str(check["name"]))
        ]
        return f"AdmissionCheck{'s' * (len(listed) > 1)} in {state} state: {'; '.join(listed)}" if listed else ""

    def _unready(self) -> bool:
        """Evict a workload whose pods are not ready in time; deactivate it after too many times (rules/07 §6)."""
        is_elsewhere = self.world.runs_elsewhere(self.workload)
        late = readiness.deadline(self.workload, self.settings, is_elsewhere=is_elsewhere)
        if late is None or late[1] > self.now:
            return False
        if not readiness.back_off(self.workload, self.settings, self.now):
            message = "exceeding the maximum number of re-queuing retries"
            return self._put("DeactivationTarget", True, "RequeuingLimitExceeded", message)
        return self._evict("PodsReadyTimeout", f"Exceeded the PodsReady timeout {self.name}", late[0])

    def _overdue(self) -> bool:
        """Deactivate a workload that runs for too long (rules/07 §7)."""
        end = readiness.execution_end(self.workload)
        if end is None or end > self.now or conditions.is_true(self.workload, "DeactivationTarget"):
            return False
        self.workload["status"].pop("accumulatedPastExecutionTimeSeconds", None)
        most, reason = self.workload["spec"]["maximumExecutionTimeSeconds"], "MaximumExecutionTimeExceeded"
        self._say(reason, f"The maximum execution time ({most}s) exceeded", "Warning")
        return self._put("DeactivationTarget", True, reason, "exceeding the maximum execution time")

    def _stopped(self, kind: str, name: str, stop_policy: str | None) -> bool:
        """Take back a mere reservation if its queue stops; running workloads may have to stop, too (rules/07 §10)."""
        if conditions.is_true(self.workload, "Admitted"):
            drains = stop_policy == "HoldAndDrain" and not conditions.is_true(self.workload, "Evicted")
            return drains and self._evict(f"{kind}Stopped", f"The {kind} is stopped")
        if stop_policy == "None":
            return False
        missing, stopped = ("Misconfigured", "terminating or missing"), ("Suspended", "stopped")
        reason, what = missing if stop_policy is None else stopped
        shown = reason if self.settings.on("UnadmittedWorkloadsObservability") else "Inadmissible"
        return self._unreserve(shown, f"{kind} {name} is {what}")
