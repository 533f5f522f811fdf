//! Jobs and their timers as bytes ([`crate::snapshot`]). Their workloads may be gone, so that is not checked.

use super::{Job, Jobs, Timer, TimerKind};
use crate::base::ids::WorkloadId;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};

stored!(struct Job {
    plan, is_running, n_admissions, are_pods_ready, was_ready, stands_still, misses_pods, has_lost_pods, saved_ns,
    done_ns, idle_ns, stint, has_ended, timers
});
stored!(enum TimerKind { 0 = Stopped, 1 = Finished, 2 = PodsReady, 3 = PodFailed });

impl Stored for Timer {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { time, kind, key, workload } = self;
        time.write_to(out);
        kind.write_to(out);
        key.write_to(out);
        workload.0.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Ok(Self {
            time: Stored::read_from(from)?,
            kind: Stored::read_from(from)?,
            key: Stored::read_from(from)?,
            workload: WorkloadId(Stored::read_from(from)?),
        })
    }
}

impl Stored for Jobs {
    fn write_to(&self, out: &mut Writer<'_>) {
        let Self { jobs, timers } = self;
        let mut jobs: Vec<_> = jobs.iter().collect();
        jobs.sort_unstable_by_key(|(id, _)| **id);
        out.count(jobs.len());
        for (id, job) in jobs {
            id.0.write_to(out);
            job.write_to(out);
        }
        timers.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        let jobs = from.list(<(u32, Job)>::read_from)?;
        from.check(jobs.is_sorted_by(|a, b| a.0 < b.0), "jobs that are not in order")?;
        let jobs = jobs.into_iter().map(|(id, job)| (WorkloadId(id), job)).collect();
        Ok(Self { jobs, timers: Stored::read_from(from)? })
    }
}
