//! Lost and idle work of jobs, in columns.

use crate::base::text::Text;
use crate::objects::Time;
use crate::snapshot::{Damage, Reader, stored};

/// A run of a job lasts from its admission until it is evicted or ends. Rows record the part of a run that was not
/// useful work: when it is evicted, when it starts over because a node failed, and when it ends without having worked
/// all the time. A run without rows has worked all the time, and lost nothing.
#[derive(Clone, Debug, Default)]
pub struct WorkLog {
    /// When it was evicted, started over or ended, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// The workload, by its number in the run.
    pub workloads: Vec<u32>,
    /// How many pods had started.
    pub pods: Vec<i64>,
    /// Work to be done again, in nanoseconds: everything since the job's last checkpoint.
    pub lost_ns: Vec<i64>,
    /// How long it did not work: its pods were not ready, or it stopped because a node had failed.
    pub idle_ns: Vec<i64>,
    /// Jobs that ended otherwise than `Succeeded`: number, and index of the reason.
    pub endings: Vec<(u32, u32)>,
    /// The reasons of their conditions Finished.
    pub reasons: Vec<Text>,
    /// The workloads present at the start of the run.
    pub present: Vec<Present>,
}

/// A workload present at the start of the run, with its state in the source cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Its number in the run.
    pub workload: u32,
    /// When it was created.
    pub created: Time,
    /// When it was last admitted, if it is.
    pub admitted: Option<Time>,
    /// Was it evicted before? Then that was not its first admission.
    pub was_evicted: bool,
}

/// A position in a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkMark {
    n_rows: usize,
    n_endings: usize,
    n_reasons: usize,
    n_present: usize,
}

stored!(struct WorkLog { times, workloads, pods, lost_ns, idle_ns, endings, reasons, present });
stored!(struct Present { workload, created, admitted, was_evicted });

impl WorkLog {
    pub(super) fn push(&mut self, time: Time, workload: u32, pods: i64, lost_ns: i64, idle_ns: i64) {
        self.times.push(time.0);
        self.workloads.push(workload);
        self.pods.push(pods);
        self.lost_ns.push(lost_ns);
        self.idle_ns.push(idle_ns);
    }

    pub(super) fn push_ending(&mut self, workload: u32, reason: &Text) {
        // There are only a few.
        let known = self.reasons.iter().position(|known| known == reason);
        let index = known.unwrap_or_else(|| {
            self.reasons.push(reason.clone());
            self.reasons.len() - 1
        });
        self.endings.push((workload, u32::try_from(index).expect("fewer than 2^32 reasons")));
    }

    /// The current position.
    pub(super) fn mark(&self) -> WorkMark {
        WorkMark {
            n_rows: self.times.len(),
            n_endings: self.endings.len(),
            n_reasons: self.reasons.len(),
            n_present: self.present.len(),
        }
    }

    /// What was added since a mark.
    pub(super) fn part(&self, since: WorkMark) -> Self {
        let n = since.n_rows;
        Self {
            times: self.times[n..].to_vec(),
            workloads: self.workloads[n..].to_vec(),
            pods: self.pods[n..].to_vec(),
            lost_ns: self.lost_ns[n..].to_vec(),
            idle_ns: self.idle_ns[n..].to_vec(),
            endings: self.endings[since.n_endings..].to_vec(),
            reasons: self.reasons[since.n_reasons..].to_vec(),
            present: self.present[since.n_present..].to_vec(),
        }
    }

    /// Appends a part.
    ///
    /// # Errors
    /// [`Damage`]: it does not match the number of workloads of the run.
    pub(super) fn add(&mut self, part: Self, n_workloads: usize, from: &Reader<'_>) -> Result<(), Damage> {
        let Self { times, workloads, pods, lost_ns, idle_ns, endings, reasons, present } = part;
        self.reasons.extend(reasons);
        let lengths = [workloads.len(), pods.len(), lost_ns.len(), idle_ns.len()];
        let numbers = workloads.iter().chain(endings.iter().map(|it| &it.0));
        let mut numbers = numbers.chain(present.iter().map(|it| &it.workload));
        let is_known = numbers.all(|number| (*number as usize) < n_workloads)
            && endings.iter().all(|(_, reason)| (*reason as usize) < self.reasons.len());
        from.check(lengths == [times.len(); 4] && is_known, "work that is not whole")?;
        self.times.extend(times);
        self.workloads.extend(workloads);
        self.pods.extend(pods);
        self.lost_ns.extend(lost_ns);
        self.idle_ns.extend(idle_ns);
        self.endings.extend(endings);
        self.present.extend(present);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
