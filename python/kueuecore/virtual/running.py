"""What the jobs of a virtual cluster do to their workloads: they run, stop when they are evicted, and end."""

from __future__ import annotations

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.engine import Engine
from kueuecore.errors import UnknownObjectError
from kueuecore.runs import StepKind
from kueuecore.states import Stage, WorkloadState
from kueuecore.times import nanoseconds
from kueuecore.virtual.jobs import Job, JobPlan, Jobs, TimerKind
from kueuecore.virtual.record import Record

__all__ = ["Running", "has_quota"]


class Running:
    """The jobs, and who tells the engine of them.

    Args:
        engine: The engine.
        record: Where it is noted what becomes of workloads.
        eviction_ns: How long the job of an evicted workload takes to stop, holding its quota.
    """

    def __init__(self, engine: Engine, record: Record, *, eviction_ns: int) -> None:
        settings = engine.configuration
        self._engine = engine
        self._record = record
        self._jobs = Jobs()
        self._eviction_ns = eviction_ns
        self.waits_for_pods = settings.names_wait_for_pods_ready and not settings.is_enabled("DisableWaitForPodsReady")
        """Does anybody wait for pods to be ready?"""
        self.has_released = False
        """Has quota come free by an eviction, since somebody set this to False?"""

    def add(self, key: str, plan: JobPlan) -> None:
        """A workload with a job appears."""
        self._jobs.add(key, plan)

    def remove(self, key: str) -> None:
        """A workload has gone."""
        self._jobs.remove(key)

    def is_running(self, key: str) -> bool:
        """May a job run?"""
        return self._jobs.get(key).is_running

    def next_time(self) -> int | None:
        """When something happens of itself."""
        return self._jobs.next_time()

    def ring(self, time: int, *, now: int) -> bool:
        """Do the next thing that happens of itself at exactly this time, if there is one; is there?"""
        due = self._jobs.take_due(time)
        if due is None:
            return False
        kind, job, is_there = due
        match kind if is_there else None:
            case TimerKind.STOPPED:
                self._stop(job, now)
            case TimerKind.FINISHED:
                self.finish(job.key, "Succeeded", "done", now=now)
            case TimerKind.PODS_READY | TimerKind.POD_FAILED:
                self._change_pods(job, kind is TimerKind.PODS_READY, now)
        return True

    def finish(self, key: str, reason: str, message: str, *, now: int) -> bool:
        """The job of a workload ends, whether it runs or not; False if it has ended before, or there is none."""
        namespace, _, name = key.partition("/")
        try:
            has_ended = self._engine.finish(name, namespace=namespace, now=now, reason=reason, message=message)
        except UnknownObjectError:
            return False
        if has_ended:
            self._record.note(now, StepKind.FINISHED, key)
        return has_ended

    def follow(self, state: WorkloadState, *, now: int) -> bool:
        """The job does what follows from the status of its workload; does it write anything itself?"""
        job = self._jobs.get(state.key)
        evicted, is_over = _condition(state, "Evicted"), state.stage is Stage.FINISHED
        was_running, job.is_running = job.is_running, state.stage is Stage.ADMITTED and evicted is None
        if job.is_running and not was_running:
            self._record.note(now, StepKind.ADMITTED, job.key)
            self._start(job, now)
        elif was_running and not job.is_running:
            self._jobs.set(job, TimerKind.FINISHED, None)
            # What its pods were about to do happens after its end, too; nobody is told.
            for kind in () if is_over else (TimerKind.PODS_READY, TimerKind.POD_FAILED):
                self._jobs.set(job, kind, None)
        if is_over:
            # The moment at which an evicted job was to have stopped still comes, and with it a round of cycles.
            return False
        if self._tell_readiness(job, now):
            return True
        stops_at = None
        if evicted is not None and _condition(state, "QuotaReserved") is not None:
            if self._eviction_ns == 0:
                self._stop(job, now)
                return True
            stops_at = nanoseconds(text_at(evicted, "lastTransitionTime")) + self._eviction_ns
        self._jobs.set(job, TimerKind.STOPPED, stops_at)
        return False

    def _start(self, job: Job, now: int) -> None:
        """A job starts: its pods are to become ready, and it is to end."""
        index, ready = job.n_admissions, job.plan.ready_ns
        job.n_admissions += 1
        job.was_ready = False
        job.are_pods_ready = not ready
        if ready:
            self._after(job, TimerKind.PODS_READY, ready[min(index, len(ready) - 1)], now)
        else:
            self._run_on(job, now)

    def _run_on(self, job: Job, now: int) -> None:
        """The pods of a job are ready for the first time since its admission."""
        job.was_ready = True
        self._after(job, TimerKind.FINISHED, job.plan.run_ns, now)
        self._after(job, TimerKind.POD_FAILED, job.plan.fails_ns, now)

    def _change_pods(self, job: Job, are_ready: bool, now: int) -> None:
        """All pods of a running job have become ready, or one of them has failed."""
        job.are_pods_ready = are_ready
        if are_ready and not job.was_ready:
            self._run_on(job, now)
        elif not are_ready:
            self._after(job, TimerKind.PODS_READY, job.plan.recovers_ns, now)
        self._tell_readiness(job, now)

    def _tell_readiness(self, job: Job, now: int) -> bool:
        """Writes condition PodsReady where somebody waits for it; was it anything new?"""
        if not self.waits_for_pods:
            return False
        namespace, _, name = job.key.partition("/")
        return self._engine.note_readiness(name, namespace=namespace, now=now, are_ready=job.are_pods_ready)

    def _stop(self, job: Job, now: int) -> None:
        """The job of an evicted workload has stopped: it gives its quota back."""
        job.are_pods_ready = False
        namespace, _, name = job.key.partition("/")
        has_ended = self._engine.workload(name, namespace=namespace).stage is Stage.FINISHED
        if not has_ended and self._engine.release(name, namespace=namespace, now=now):
            self.has_released = True
            self._record.note(now, StepKind.STOPPED, job.key)

    def _after(self, job: Job, kind: TimerKind, span: int | None, now: int) -> None:
        self._jobs.set(job, kind, None if span is None else now + span)


def has_quota(state: WorkloadState) -> bool:
    """Does a workload hold quota, and is not about to lose it by an eviction?"""
    is_over = state.stage is Stage.FINISHED
    return not is_over and _condition(state, "QuotaReserved") is not None and _condition(state, "Evicted") is None


def _condition(state: WorkloadState, kind: str) -> JsonObject | None:
    """A condition that holds."""
    conditions = list_at(dict(state.status), "conditions")
    held = (it for it in map(object_at, conditions) if it.get("type") == kind and it.get("status") == "True")
    return next(held, None)
