//! A log of preemptions, in columns.

use crate::objects::Time;
use crate::snapshot::{Damage, Reader, stored};

/// The preemptions of a run, in order of time.
#[derive(Clone, Debug, Default)]
pub struct PreemptionLog {
    /// When they were decided on, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// The preempted workload, by its number in the run.
    pub workloads: Vec<u32>,
    pub preemptors: Vec<u32>,
    /// Why, as an index into [`crate::status::reasons::OF_DECISIONS`].
    pub reasons: Vec<u8>,
}

stored!(struct PreemptionLog { times, workloads, preemptors, reasons });

impl PreemptionLog {
    pub(super) fn push(&mut self, time: Time, workload: u32, preemptor: u32, reason: u8) {
        self.times.push(time.0);
        self.workloads.push(workload);
        self.preemptors.push(preemptor);
        self.reasons.push(reason);
    }

    /// The rows from this one on.
    pub(super) fn part(&self, n: usize) -> Self {
        Self {
            times: self.times[n..].to_vec(),
            workloads: self.workloads[n..].to_vec(),
            preemptors: self.preemptors[n..].to_vec(),
            reasons: self.reasons[n..].to_vec(),
        }
    }

    /// Appends a part.
    ///
    /// # Errors
    /// [`Damage`]: it does not match the number of workloads of the run.
    pub(super) fn add(&mut self, part: Self, n_workloads: usize, from: &Reader<'_>) -> Result<(), Damage> {
        let Self { times, workloads, preemptors, reasons } = part;
        let lengths = [workloads.len(), preemptors.len(), reasons.len()];
        let mut numbers = workloads.iter().chain(&preemptors);
        let is_known = numbers.all(|number| (*number as usize) < n_workloads);
        from.check(lengths == [times.len(); 3] && is_known, "preemptions that are not whole")?;
        self.times.extend(times);
        self.workloads.extend(workloads);
        self.preemptors.extend(preemptors);
        self.reasons.extend(reasons);
        Ok(())
    }
}
