//! What became of the work of jobs, in columns: what was lost, and how long they held quota without working.

use crate::base::text::Text;
use crate::objects::Time;
use crate::snapshot::{Damage, Reader, stored};

/// A run of a job is from its admission until it is evicted or ends. Rows say what of a run was no useful work: one where
/// it is evicted, one where it begins anew as a node has failed, one where it ends and did not work all the time. A run
/// without rows has worked all the time, and nothing of that is lost.
#[derive(Clone, Debug, Default)]
pub struct WorkLog {
    /// When it was evicted, began anew or ended, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// Whose it was, by its number in the run.
    pub workloads: Vec<u32>,
    /// How many pods had started.
    pub pods: Vec<i64>,
    /// How much work is to be done again, in nanoseconds: all since the last checkpoint of the job.
    pub lost_ns: Vec<i64>,
    /// How long it did not work: its pods were not ready, or it stood still as a node had failed.
    pub idle_ns: Vec<i64>,
    /// Whose jobs have ended otherwise than `Succeeded`: number, and the index of the reason.
    pub endings: Vec<(u32, u32)>,
    /// The reasons of their conditions Finished.
    pub reasons: Vec<Text>,
    /// The workloads that were there when the run began.
    pub present: Vec<Present>,
}

/// A workload that was there when the run began, as the cluster has it that it comes from.
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

/// How much of a log there was.
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
        // There are a few of them.
        let known = self.reasons.iter().position(|known| known == reason);
        let index = known.unwrap_or_else(|| {
            self.reasons.push(reason.clone());
            self.reasons.len() - 1
        });
        self.endings.push((workload, u32::try_from(index).expect("fewer than 2^32 reasons")));
    }

    /// How much there is.
    pub(super) fn mark(&self) -> WorkMark {
        WorkMark {
            n_rows: self.times.len(),
            n_endings: self.endings.len(),
            n_reasons: self.reasons.len(),
            n_present: self.present.len(),
        }
    }

    /// What has been added since a mark.
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

    /// Adds what follows.
    ///
    /// # Errors
    /// [`Damage`]: it can't be of a run with so many workloads.
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
