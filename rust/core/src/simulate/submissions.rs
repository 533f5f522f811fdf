//! Workloads, as columns, that appear during a run.

use std::sync::Arc;

use super::copies::{Copies, CopiesError};
use super::plan::{Change, Happening};
use crate::engine::columns::{Columns, ColumnsError};
use crate::objects::Time;

/// Workloads, as columns, that appear during a run.
#[derive(Clone, Debug, Default)]
pub struct Submissions {
    pub columns: Columns,
    /// When each appears, in nanoseconds since 1970.
    pub at: Vec<i64>,
    /// How long its job runs once it is admitted, in nanoseconds; negative: for ever.
    pub run_ns: Vec<i64>,
    /// Does it fail at the end of its run time?
    pub ends_failed: Vec<bool>,
}

impl Submissions {
    /// One event per row.
    ///
    /// # Errors
    /// As [`Engine::submit`](crate::engine::Engine::submit).
    pub fn happenings(self) -> Result<Vec<Happening>, ColumnsError> {
        self.columns.check()?;
        let expected = self.columns.queue.len();
        let lengths =
            [("at", self.at.len()), ("run_seconds", self.run_ns.len()), ("ends_failed", self.ends_failed.len())];
        for (column, actual) in lengths {
            if actual != expected {
                return Err(ColumnsError::Length { column, actual, expected });
            }
        }
        let columns = Arc::new(self.columns);
        let rows = self.at.into_iter().zip(self.run_ns).zip(self.ends_failed).enumerate();
        let happening = |(row, ((at, run_ns), ends_failed)): (usize, ((i64, i64), bool))| {
            let run_ns = (run_ns >= 0).then_some(run_ns);
            let change = Change::Submit { columns: Arc::clone(&columns), row, run_ns, ends_failed };
            Happening { at: Time(at), change }
        };
        Ok(rows.map(happening).collect())
    }
}

impl Copies {
    /// One event per row.
    ///
    /// # Errors
    /// The first column of another length, or the first value that makes no workload.
    pub fn happenings(self) -> Result<Vec<Happening>, CopiesError> {
        self.check()?;
        let copies = Arc::new(self);
        let happening = |row: usize| {
            let change = Change::Copy { copies: Arc::clone(&copies), row };
            Happening { at: Time(copies.at[row]), change }
        };
        Ok((0..copies.at.len()).map(happening).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Submissions {
        let columns = Columns {
            local_queues: vec!["lq".into()],
            queue: vec![0, 0],
            priority: vec![0, 0],
            created: vec![0, 0],
            count: vec![1, 1],
            ..Columns::default()
        };
        Submissions { columns, at: vec![3, 5], run_ns: vec![-1, 7], ends_failed: vec![false, true] }
    }

    #[test]
    fn a_row_gives_arrival_run_time_and_outcome_of_its_job() {
        let rows = two().happenings().expect("columns of one length");
        let jobs = rows.iter().map(|it| match &it.change {
            Change::Submit { row, run_ns, ends_failed, .. } => (it.at, *row, *run_ns, *ends_failed),
            change => panic!("{change:?}"),
        });
        assert_eq!(jobs.collect::<Vec<_>>(), [(Time(3), 0, None, false), (Time(5), 1, Some(7), true)]);
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let refused = |change: fn(&mut Submissions)| {
            let mut rows = two();
            change(&mut rows);
            rows.happenings().expect_err("refused").to_string()
        };
        assert_eq!(refused(|it| it.at.truncate(1)), "at: has 1 values where 2 are needed");
        assert_eq!(refused(|it| it.ends_failed.truncate(1)), "ends_failed: has 1 values where 2 are needed");
    }
}
