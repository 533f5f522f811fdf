//! Workloads that appear during a run and differ only in name, time and run time.

use std::ops::Range;
use std::sync::Arc;

use super::job_plan::JobPlan;
use crate::base::key::Key;
use crate::objects::{Time, Workload, WorkloadMeta};

const SECOND_NS: i64 = 1_000_000_000;

/// Rows, each a copy of a template.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// The templates, and what their jobs do; run times come from the rows.
    pub templates: Arc<Vec<(Workload, JobPlan)>>,
    /// The template of each row.
    pub template: Vec<u32>,
    /// The names, concatenated.
    pub names: String,
    /// Where the name of each row ends in `names`.
    pub ends: Vec<u64>,
    /// The number in the UID of the first row; the others count up.
    pub first_uid: u64,
    /// When each appears, in nanoseconds since 1970.
    pub at: Vec<i64>,
    /// How long its job runs once it is admitted, in nanoseconds; negative: for ever.
    pub run_ns: Vec<i64>,
}

/// Errors in the columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopiesError {
    /// A column of another length.
    #[error("{column}: has {actual} values where {expected} are needed")]
    Length {
        column: &'static str,
        /// How many values it has.
        actual: usize,
        /// How many rows there are.
        expected: usize,
    },
    /// A template that does not exist.
    #[error("template[{row}]: {value}: must be an index of templates")]
    Template { row: usize, value: u32 },
    /// Ends that do not split the names.
    #[error("ends[{row}]: {value}: must not be before the one above it, nor past the end of the names")]
    Name { row: usize, value: u64 },
}

impl Copies {
    /// Checks the columns.
    pub(super) fn check(&self) -> Result<(), CopiesError> {
        let expected = self.template.len();
        let lengths = [("ends", self.ends.len()), ("at", self.at.len()), ("run_seconds", self.run_ns.len())];
        for (column, actual) in lengths {
            if actual != expected {
                return Err(CopiesError::Length { column, actual, expected });
            }
        }
        if let Some(row) = self.template.iter().position(|&it| it as usize >= self.templates.len()) {
            return Err(CopiesError::Template { row, value: self.template[row] });
        }
        let is_cut = |row: usize| self.name_at(row).and_then(|range| self.names.get(range)).is_some();
        match (0..expected).find(|row| !is_cut(*row)) {
            Some(row) => Err(CopiesError::Name { row, value: self.ends[row] }),
            None => Ok(()),
        }
    }

    /// Where the name of a row is.
    fn name_at(&self, row: usize) -> Option<Range<usize>> {
        let begin = if row == 0 { 0 } else { usize::try_from(self.ends[row - 1]).ok()? };
        Some(begin..usize::try_from(self.ends[row]).ok()?)
    }

    /// The workload of a row as an API server stores it, and what its job does.
    pub(super) fn row(&self, row: usize) -> (Workload, JobPlan) {
        let (template, job) = &self.templates[self.template[row] as usize];
        let name = self.name_at(row).and_then(|range| self.names.get(range)).unwrap_or_default();
        let uid = format!("00000000-0000-0000-0000-{:012}", self.first_uid.saturating_add(row as u64));
        let key = Key::new(template.meta.key.namespace(), name, &uid);
        // Kubernetes stores times in whole seconds.
        let created = Time(self.at[row].div_euclid(SECOND_NS).saturating_mul(SECOND_NS));
        let meta = WorkloadMeta { key, created, generation: 1, ..template.meta.clone() };
        let run_ns = Some(self.run_ns[row]).filter(|ns| *ns >= 0);
        (Workload { meta, ..template.clone() }, JobPlan { run_ns, ..job.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workload;

    fn two() -> Copies {
        let job = JobPlan { lingers_ns: Some(7), ..JobPlan::default() };
        Copies {
            templates: Arc::new(vec![(workload("template", "1"), job)]),
            template: vec![0, 0],
            names: "one".to_owned() + "twotwo",
            ends: vec![3, 9],
            first_uid: 41,
            at: vec![1_500_000_000, 3],
            run_ns: vec![-1, 5],
        }
    }

    #[test]
    fn a_row_has_its_own_name_time_and_run() {
        let (workload, job) = two().row(1);
        let key = &workload.meta.key;
        assert_eq!((key.name(), key.uid()), ("twotwo", "00000000-0000-0000-0000-000000000042"));
        assert_eq!((job.run_ns, job.lingers_ns), (Some(5), Some(7)));
        let (workload, job) = two().row(0);
        assert_eq!((workload.meta.key.name(), workload.meta.created, job.run_ns), ("one", Time(SECOND_NS), None));
        assert_eq!(workload.pod_sets, two().templates[0].0.pod_sets);
    }

    #[test]
    fn mismatched_columns_are_refused() {
        let refused = |change: fn(&mut Copies)| {
            let mut copies = two();
            change(&mut copies);
            copies.check().expect_err("refused").to_string()
        };
        assert_eq!(refused(|c| c.at.truncate(1)), "at: has 1 values where 2 are needed");
        assert_eq!(refused(|c| c.template[1] = 1), "template[1]: 1: must be an index of templates");
        let detail = "must not be before the one above it, nor past the end of the names";
        assert_eq!(refused(|c| c.ends[1] = 2), format!("ends[1]: 2: {detail}"));
        assert_eq!(refused(|c| c.ends[1] = 10), format!("ends[1]: 10: {detail}"));
        assert_eq!(refused(|c| c.names = "äöü".to_owned()), format!("ends[0]: 3: {detail}"));
    }
}
