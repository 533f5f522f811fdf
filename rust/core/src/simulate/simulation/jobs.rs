//! The jobs behind the workloads: they run, stop when evicted, and end.

mod stored;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::Simulation;
use crate::base::gates::Gate;
use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::engine::Engine;
use crate::objects::conditions::{EVICTED, find_true};
use crate::objects::variants::is_variant;
use crate::objects::{AdmissionCheckState, CheckState, Time};
use crate::simulate::job_plan::{JobPlan, NodeLoss};
use crate::simulate::record::Step;
use crate::state::State;
use crate::status::readiness::note_readiness;
use crate::status::stage::{has_quota_reservation, is_admitted, is_finished};
use crate::topology::hosts::used_hosts;

/// The kinds of timers, in the order in which they act at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKind {
    /// The job of an evicted workload has stopped.
    Stopped,
    /// The job has reached its run time.
    Finished,
    /// All pods are ready.
    PodsReady,
    /// A pod fails.
    PodFailed,
}

const N_TIMER_KINDS: usize = 4;

/// A timer of a job. The workload may be gone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Timer {
    pub time: Time,
    pub kind: TimerKind,
    pub key: Key,
    pub workload: WorkloadId,
}

#[derive(Clone, Debug, Default)]
struct Job {
    plan: JobPlan,
    is_running: bool,
    n_admissions: usize,
    are_pods_ready: bool,
    /// Were they ready at any time since the last admission?
    was_ready: bool,
    /// Is the run stopped because pods are gone from a failed node?
    stands_still: bool,
    /// With waiting for pods: are some on a lost node, where none is ready, or gone from there?
    misses_pods: bool,
    /// Were some gone from there since all were there last?
    has_lost_pods: bool,
    /// Work saved in its last checkpoint, in nanoseconds.
    saved_ns: i64,
    /// Work done up to the last change, in nanoseconds.
    done_ns: i64,
    /// How long it has held quota without working since its last admission.
    idle_ns: i64,
    /// Since when it works or idles; `None`: it is not running.
    stint: Option<(Time, bool)>,
    /// Is it recorded how it ended?
    has_ended: bool,
    /// Its timers, by kind.
    timers: [Option<Time>; N_TIMER_KINDS],
}

impl Job {
    /// The remaining run time; `None`: forever.
    fn left_ns(&self) -> Option<i64> {
        self.plan.run_ns.map(|run_ns| run_ns.saturating_sub(self.done_ns))
    }

    /// From now on it works, or idles; `None`: it stops running.
    fn turn(&mut self, now: Time, works: Option<bool>) {
        if let Some((since, worked)) = std::mem::replace(&mut self.stint, works.map(|works| (now, works))) {
            let sum = if worked { &mut self.done_ns } else { &mut self.idle_ns };
            *sum = sum.saturating_add(now.since(since));
        }
    }

    /// Saves its last checkpoint before now.
    fn save(&mut self) {
        if let Some(every_ns) = self.plan.saves_ns {
            self.saved_ns = self.done_ns - self.done_ns.checked_rem(every_ns).unwrap_or(0);
        }
    }

    /// Returns to its last checkpoint; returns how much work that loses.
    fn go_back(&mut self) -> i64 {
        std::mem::replace(&mut self.done_ns, self.saved_ns) - self.saved_ns
    }
}

/// All jobs, and the valid timers.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    jobs: FxHashMap<WorkloadId, Job>,
    timers: BTreeSet<Timer>,
}

impl Jobs {
    pub(super) fn add(&mut self, id: WorkloadId, plan: JobPlan) {
        self.jobs.insert(id, Job { done_ns: plan.done_ns, plan, ..Job::default() });
    }

    /// Forgets a job, since its slot may be reused soon. A job that is stopping still stops at its time.
    pub(super) fn remove(&mut self, id: WorkloadId, key: &Key) {
        for kind in [TimerKind::Finished, TimerKind::PodsReady, TimerKind::PodFailed] {
            self.set(id, key, kind, None);
        }
        self.jobs.remove(&id);
    }

    /// Forgets a job to which nothing more happens; returns whether it was known.
    pub(super) fn forget(&mut self, id: WorkloadId) -> bool {
        let is_quiet = self.jobs.get(&id).is_none_or(|job| job.timers.iter().all(Option::is_none));
        if is_quiet {
            self.jobs.remove(&id);
        }
        is_quiet
    }

    /// How long the pods of a job stay on a failed node; `None`: not at all.
    pub(super) fn lingers_ns(&self, id: WorkloadId) -> Option<i64> {
        self.jobs.get(&id).and_then(|job| job.plan.lingers_ns)
    }

    /// Notes that it is recorded how a job ended; returns whether it was before.
    pub(super) fn note_ending(&mut self, id: WorkloadId) -> bool {
        std::mem::replace(&mut self.jobs.entry(id).or_default().has_ended, true)
    }

    /// Does a job fail at the end of its run time?
    pub(super) fn ends_failed(&self, id: WorkloadId) -> bool {
        self.jobs.get(&id).is_some_and(|job| job.plan.ends_failed)
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.timers.first().map(|timer| timer.time)
    }

    /// Sets how long a job runs in total, and how much of that is done by now. If it works now, returns when it ends
    /// (`None`: never); else that is set when it starts to.
    pub(super) fn set_run(
        &mut self,
        id: WorkloadId,
        run_ns: Option<i64>,
        done_ns: i64,
        now: Time,
    ) -> Option<Option<Time>> {
        let job = self.jobs.get_mut(&id)?;
        (job.plan.run_ns, job.plan.done_ns, job.done_ns) = (run_ns, done_ns, done_ns);
        let (since, works) = job.stint.as_mut().map(|(since, works)| (since, *works))?;
        *since = now;
        works.then(|| job.left_ns().map(|ns| Time(now.0.saturating_add(ns))))
    }

    /// Takes the next timer of exactly this time, with its workload unless that is gone.
    pub(super) fn take_due(&mut self, time: Time) -> Option<(TimerKind, Option<WorkloadId>)> {
        let timer = self.timers.first().filter(|timer| timer.time == time)?.clone();
        self.timers.remove(&timer);
        let set = self.jobs.get_mut(&timer.workload).map(|job| &mut job.timers[timer.kind as usize]);
        let is_its_own = set.is_some_and(|set| set.take_if(|set| *set == time).is_some());
        Some((timer.kind, is_its_own.then_some(timer.workload)))
    }

    /// Sets the timer of one kind; `None` cancels it.
    pub(super) fn set(&mut self, id: WorkloadId, key: &Key, kind: TimerKind, at: Option<Time>) {
        let old = std::mem::replace(&mut self.jobs.entry(id).or_default().timers[kind as usize], at);
        if old == at {
            return;
        }
        let timer = |time| Timer { time, kind, key: key.clone(), workload: id };
        if let Some(old) = old {
            self.timers.remove(&timer(old));
        }
        if let Some(at) = at {
            self.timers.insert(timer(at));
        }
    }
}

impl Simulation {
    /// Updates the job of a workload for its status, and the admission checks that no external controller decides.
    pub(super) fn play(&mut self, engine: &mut Engine, id: WorkloadId) {
        self.note_evictions(engine, id);
        let record = engine.state.workloads.get(id);
        let (workload, key) = (&record.workload, record.key().clone());
        let evicted = find_true(&workload.status.conditions, EVICTED).map(|evicted| evicted.last_transition);
        let is_over = is_finished(workload);
        let holds_quota = has_quota_reservation(workload);
        let is_running = is_admitted(workload) && !is_over && evicted.is_none();
        let is_left = |check: &AdmissionCheckState| self.is_left_to_be_ready(engine, check);
        let waits_for_checks = workload.status.rare.admission_checks.iter().any(is_left);
        if is_variant(workload) && engine.state.gate(Gate::ConcurrentAdmission) {
            // The job belongs to the parent, so what the variant holds stops with it.
            if holds_quota && !is_over && evicted.is_none() && waits_for_checks {
                self.make_checks_ready(engine, id);
            }
            return;
        }

        let job = self.jobs.jobs.entry(id).or_default();
        let was_running = std::mem::replace(&mut job.is_running, is_running);
        if is_running && !was_running {
            self.note(engine, Step::Admitted, id);
            self.start(engine, id, &key);
        } else if was_running && !is_running {
            job.turn(self.clock, None);
            let idle_ns = std::mem::take(&mut job.idle_ns);
            if !is_over {
                job.save();
                let lost_ns = job.go_back();
                self.note_work(engine, id, lost_ns, idle_ns);
            } else if idle_ns > 0 {
                self.note_work(engine, id, 0, idle_ns);
            }
            self.jobs.set(id, &key, TimerKind::Finished, None);
            // Its pods may still change after its end, but nobody is notified.
            for kind in [TimerKind::PodsReady, TimerKind::PodFailed].into_iter().filter(|_| !is_over) {
                self.jobs.set(id, &key, kind, None);
            }
        }
        if is_running {
            let is_short = !engine.state.workloads.get(id).workload.status.rare.unhealthy_nodes.is_empty();
            self.follow_nodes(engine, id, &key, is_short);
            self.follow_pods(engine, id, &key);
        }
        if self.report_readiness(engine, id) {
            // The rest follows once the controllers have seen that.
            return;
        }
        if is_over {
            self.note_ending(engine, id);
            // The time at which an evicted job was to stop still comes, and with it a round of cycles.
            return;
        }
        let stopping = evicted.filter(|_| holds_quota);
        if stopping.is_some() && self.options.eviction_ns == 0 {
            return self.stop(engine, id);
        }
        let stopped_at = stopping.map(|since| Time(since.0.saturating_add(self.options.eviction_ns)));
        self.jobs.set(id, &key, TimerKind::Stopped, stopped_at);
        if holds_quota && evicted.is_none() && waits_for_checks {
            self.make_checks_ready(engine, id);
        }
    }

    /// May the job of a workload run?
    pub fn is_running(&self, id: WorkloadId) -> bool {
        self.jobs.jobs.get(&id).is_some_and(|job| job.is_running)
    }

    pub(super) fn after(&self, ns: i64) -> Time {
        Time(self.clock.0.saturating_add(ns))
    }

    /// Handles a running job that has lost pods with a node, or has all of them again.
    fn follow_nodes(&mut self, engine: &Engine, id: WorkloadId, key: &Key, is_short: bool) {
        let job = self.jobs.jobs.entry(id).or_default();
        if job.plan.node_loss == NodeLoss::RunsOn || job.stands_still == is_short {
            return;
        }
        job.stands_still = is_short;
        job.turn(self.clock, Some(!is_short && job.was_ready));
        if is_short {
            job.save();
            return self.jobs.set(id, key, TimerKind::Finished, None);
        }
        let lost_ns = if job.plan.node_loss == NodeLoss::StartsOver { job.go_back() } else { 0 };
        let left_ns = job.left_ns().filter(|_| job.was_ready);
        if lost_ns > 0 {
            self.note_work(engine, id, lost_ns, 0);
        }
        self.jobs.set(id, key, TimerKind::Finished, left_ns.map(|ns| self.after(ns)));
    }

    /// If Kueue waits for pods: they are not ready on a lost node, nor until others have replaced them (rules/07 §6).
    fn follow_pods(&mut self, engine: &Engine, id: WorkloadId, key: &Key) {
        let (misses_pods, has_lost_pods) = missing_pods(&engine.state, id);
        let job = self.jobs.jobs.entry(id).or_default();
        job.has_lost_pods |= has_lost_pods;
        let missed_pods = std::mem::replace(&mut job.misses_pods, misses_pods);
        if misses_pods || !missed_pods {
            return;
        }
        if std::mem::take(&mut job.has_lost_pods) {
            self.start_pods(id, key);
        } else if job.are_pods_ready && !job.was_ready {
            self.run_on(id, key);
        }
    }

    /// Starts a job: sets the timers for its pods and its end.
    fn start(&mut self, engine: &Engine, id: WorkloadId, key: &Key) {
        let (misses_pods, has_lost_pods) = missing_pods(&engine.state, id);
        let job = self.jobs.jobs.entry(id).or_default();
        job.n_admissions += 1;
        job.was_ready = false;
        job.stands_still = false;
        job.misses_pods = misses_pods;
        job.has_lost_pods = has_lost_pods;
        job.turn(self.clock, Some(false));
        self.start_pods(id, key);
    }

    /// Starts the pods of a job, or those that replace lost ones.
    fn start_pods(&mut self, id: WorkloadId, key: &Key) {
        let job = self.jobs.jobs.entry(id).or_default();
        let index = job.n_admissions.saturating_sub(1);
        let ready_ns =
            job.plan.pods.as_deref().map(|pods| pods.ready_ns.get(index).or(pods.ready_ns.last()).copied().flatten());
        job.are_pods_ready = ready_ns.is_none();
        match ready_ns {
            None if job.was_ready || job.misses_pods => {}
            None => self.run_on(id, key),
            Some(ready_ns) => self.jobs.set(id, key, TimerKind::PodsReady, ready_ns.map(|ns| self.after(ns))),
        }
    }

    /// The pods of a job are ready for the first time since its admission.
    fn run_on(&mut self, id: WorkloadId, key: &Key) {
        let job = self.jobs.jobs.entry(id).or_default();
        job.was_ready = true;
        let fails_ns = job.plan.pods.as_ref().and_then(|pods| pods.fails_ns);
        job.turn(self.clock, Some(!job.stands_still));
        // The pods of a job that has ended may still become ready, and fail; it does not end again.
        let end = job.left_ns().filter(|_| !job.stands_still && job.is_running).map(|ns| self.after(ns));
        self.jobs.set(id, key, TimerKind::Finished, end);
        self.jobs.set(id, key, TimerKind::PodFailed, fails_ns.map(|ns| self.after(ns)));
    }

    /// All pods of a running job have become ready, or one of them has failed.
    pub(super) fn change_pods(&mut self, engine: &mut Engine, id: WorkloadId, are_ready: bool) {
        let key = engine.state.workloads.get(id).key().clone();
        let job = self.jobs.jobs.entry(id).or_default();
        job.are_pods_ready = are_ready;
        let (was_ready, plan) = (job.was_ready, job.plan.pods.clone().unwrap_or_default());
        if are_ready && !was_ready {
            if !job.misses_pods {
                self.run_on(id, &key);
            }
        } else if !are_ready {
            self.jobs.set(id, &key, TimerKind::PodsReady, plan.recovers_ns.map(|ns| self.after(ns)));
        }
        self.report_readiness(engine, id);
    }

    /// Writes condition PodsReady if Kueue waits for it; returns whether it changed.
    fn report_readiness(&self, engine: &mut Engine, id: WorkloadId) -> bool {
        let state = &engine.state;
        if state.config.wait_for_pods_ready.is_none() || is_finished(&state.workloads.get(id).workload) {
            return false;
        }
        let are_ready = self.jobs.jobs.get(&id).is_some_and(|job| job.are_pods_ready && !job.misses_pods);
        let config = state.config.wait_for_pods_ready.clone();
        engine.change(id, self.clock, |workload| note_readiness(workload, are_ready, config.as_ref(), self.clock))
    }

    /// The job of an evicted workload has stopped: it releases its quota.
    pub(super) fn stop(&mut self, engine: &mut Engine, id: WorkloadId) {
        if let Some(job) = self.jobs.jobs.get_mut(&id) {
            job.are_pods_ready = false;
        }
        let has_ended = is_finished(&engine.state.workloads.get(id).workload);
        if !has_ended && engine.release(id, self.clock) {
            self.note(engine, Step::Stopped, id);
        }
    }

    /// Ends the job of a workload, whether it is running or not; `false` if it had ended before.
    pub fn finish(&mut self, engine: &mut Engine, id: WorkloadId, reason: &str, message: &str) -> bool {
        let has_ended = engine.finish(id, reason, message, self.clock);
        if has_ended {
            self.note(engine, Step::Finished, id);
            if !self.options.keeps_finished {
                self.over.push(id);
            }
        }
        has_ended
    }

    /// Is there a pending check that no external controller decides?
    fn is_left_to_be_ready(&self, engine: &Engine, check: &AdmissionCheckState) -> bool {
        let decides =
            || engine.state.objects.checks.get(&check.name).is_some_and(|it| self.is_asked_for(&it.controller_name));
        check.state == CheckState::Pending && !decides()
    }

    fn make_checks_ready(&mut self, engine: &mut Engine, id: WorkloadId) {
        let mut checks = engine.state.workloads.get(id).workload.status.rare.admission_checks.clone();
        for check in checks.iter_mut().filter(|check| self.is_left_to_be_ready(engine, check)) {
            check.state = CheckState::Ready;
            "Ready at once".clone_into(&mut check.message);
            check.last_transition = self.clock;
        }
        engine.change(id, self.clock, |workload| {
            workload.status.rare.admission_checks = checks;
            true
        });
    }
}

/// If Kueue waits for pods: are some of them on a lost node or gone from there, and are some gone?
fn missing_pods(state: &State, id: WorkloadId) -> (bool, bool) {
    if state.config.wait_for_pods_ready.is_none() {
        return (false, false);
    }
    let workload = &state.workloads.get(id).workload;
    let are_gone = !workload.status.rare.unhealthy_nodes.is_empty();
    (are_gone || used_hosts(workload).any(|host| state.feeds.node_changes.is_down(host)), are_gone)
}

#[cfg(test)]
mod tests;
