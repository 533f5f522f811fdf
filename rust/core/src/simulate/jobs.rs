//! The jobs behind the workloads: they run, stop when evicted, and end.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Simulation, Step};
use crate::conditions::{EVICTED, find_true};
use crate::decision::Key;
use crate::ids::WorkloadId;
use crate::objects::{CheckState, Time};
use crate::queue_order::{has_quota_reservation, is_admitted, is_finished};

/// What a timer is for; of the same instant the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKind {
    /// The job of an evicted workload has stopped.
    Stopped,
    /// The job has run its time.
    Finished,
}

/// Something that happens of itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timer {
    pub time: Time,
    pub kind: TimerKind,
    pub key: Key,
    pub workload: WorkloadId,
}

#[derive(Clone, Debug, Default)]
struct Job {
    run_ns: Option<i64>,
    stopped_at: Option<Time>,
    is_running: bool,
    finished_at: Option<Time>,
}

/// All jobs, and the timers that are not void.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    jobs: FxHashMap<WorkloadId, Job>,
    timers: BTreeSet<Timer>,
}

impl Jobs {
    pub(super) fn add(&mut self, id: WorkloadId, run_ns: Option<i64>) {
        self.jobs.insert(id, Job { run_ns, ..Job::default() });
    }

    /// Forgets a job, whose slot may soon be another's. One that is stopping stops at its time all the same.
    pub(super) fn remove(&mut self, id: WorkloadId, key: &Key) {
        self.set(id, key, TimerKind::Finished, None);
        self.jobs.remove(&id);
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.timers.first().map(|timer| timer.time)
    }

    /// Takes out the next timer of exactly this time; whose it is, unless the workload is gone.
    pub(super) fn take_due(&mut self, time: Time) -> Option<(TimerKind, Option<WorkloadId>)> {
        let timer = self.timers.first().filter(|timer| timer.time == time)?.clone();
        self.timers.remove(&timer);
        let job = self.jobs.get_mut(&timer.workload);
        let set = job.map(|job| match timer.kind {
            TimerKind::Stopped => &mut job.stopped_at,
            TimerKind::Finished => &mut job.finished_at,
        });
        let is_its_own = set.is_some_and(|set| set.take_if(|set| *set == time).is_some());
        Some((timer.kind, is_its_own.then_some(timer.workload)))
    }

    /// Sets the timer of one kind; `None` makes it void.
    pub(super) fn set(&mut self, id: WorkloadId, key: &Key, kind: TimerKind, at: Option<Time>) {
        let job = self.jobs.entry(id).or_default();
        let set = match kind {
            TimerKind::Stopped => &mut job.stopped_at,
            TimerKind::Finished => &mut job.finished_at,
        };
        let old = std::mem::replace(set, at);
        if old == at {
            return;
        }
        let timer = |time| Timer { time, kind, key: Arc::clone(key), workload: id };
        if let Some(old) = old {
            self.timers.remove(&timer(old));
        }
        if let Some(at) = at {
            self.timers.insert(timer(at));
        }
    }
}

impl<F: FnMut() -> bool> Simulation<'_, F> {
    /// What the job of a workload and its admission checks do about its status.
    pub(super) fn play(&mut self, id: WorkloadId) {
        let record = self.engine.state.workloads.get(id);
        let (workload, key) = (&record.workload, Arc::clone(&record.key));
        let evicted = find_true(&workload.status.conditions, EVICTED).map(|evicted| evicted.last_transition);
        let is_over = is_finished(workload);
        let holds_quota = has_quota_reservation(workload) && !is_over;
        let is_running = is_admitted(workload) && !is_over && evicted.is_none();
        let waits_for_checks = workload.status.admission_checks.iter().any(|check| check.state == CheckState::Pending);

        let job = self.jobs.jobs.entry(id).or_default();
        let was_running = std::mem::replace(&mut job.is_running, is_running);
        let run_ns = job.run_ns;
        if is_running != was_running {
            let end = run_ns.filter(|_| is_running).map(|ns| Time(self.clock.0.saturating_add(ns)));
            self.jobs.set(id, &key, TimerKind::Finished, end);
            if is_running {
                self.note(Step::Admitted, id);
            }
        }
        let stopping = evicted.filter(|_| holds_quota);
        if stopping.is_some() && self.options.eviction_ns == 0 {
            return self.stop(id);
        }
        let stopped_at = stopping.map(|since| Time(since.0.saturating_add(self.options.eviction_ns)));
        self.jobs.set(id, &key, TimerKind::Stopped, stopped_at);
        if holds_quota && evicted.is_none() && waits_for_checks {
            self.make_checks_ready(id);
        }
    }

    /// The job of an evicted workload has stopped: it gives its quota back.
    pub(super) fn stop(&mut self, id: WorkloadId) {
        if self.engine.release(id, self.clock) {
            self.note(Step::Stopped, id);
        }
    }

    /// The job has ended.
    pub(super) fn finish(&mut self, id: WorkloadId) {
        if self.engine.finish(id, "Succeeded", "done", self.clock) {
            self.note(Step::Finished, id);
        }
    }

    fn make_checks_ready(&mut self, id: WorkloadId) {
        let state = &mut self.engine.state;
        let old = state.workloads.get(id).clone();
        for check in &mut state.workloads.get_mut(id).workload.status.admission_checks {
            if check.state == CheckState::Pending {
                check.state = CheckState::Ready;
                "Ready at once".clone_into(&mut check.message);
                check.last_transition = self.clock;
            }
        }
        state.settle_status_change(id, &old);
    }
}
