//! Workloads as columns that appear in the course of a run.

use std::sync::Arc;

use super::copies::{Copies, CopiesError};
use super::plan::{Change, Happening};
use crate::engine::columns::{Columns, ColumnsError};
use crate::objects::Time;

/// Workloads as columns that appear in the course of a run.
#[derive(Clone, Debug, Default)]
pub struct Submissions {
    /// The workloads.
    pub columns: Columns,
    /// When each appears, in nanoseconds since 1970.
    pub at: Vec<i64>,
    /// How long its job runs once it is admitted, in nanoseconds; negative: for ever.
    pub run_ns: Vec<i64>,
}

impl Submissions {
    /// One happening a row.
    ///
    /// # Errors
    /// As [`Engine::submit`](crate::engine::Engine::submit).
    pub fn happenings(self) -> Result<Vec<Happening>, ColumnsError> {
        self.columns.check()?;
        let expected = self.columns.queue.len();
        for (column, actual) in [("at", self.at.len()), ("run_seconds", self.run_ns.len())] {
            if actual != expected {
                return Err(ColumnsError::Length { column, actual, expected });
            }
        }
        let columns = Arc::new(self.columns);
        let rows = self.at.into_iter().zip(self.run_ns).enumerate();
        let happening = |(row, (at, run_ns)): (usize, (i64, i64))| {
            let run_ns = (run_ns >= 0).then_some(run_ns);
            Happening { at: Time(at), change: Change::Submit { columns: Arc::clone(&columns), row, run_ns } }
        };
        Ok(rows.map(happening).collect())
    }
}

impl Copies {
    /// One happening a row.
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
