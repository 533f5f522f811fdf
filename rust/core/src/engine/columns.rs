//! Workloads as columns: how simulators add many at once, with one pod set each.

use std::fmt::Write;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::base::key::Key;
use crate::base::quantity::Quantity;
use crate::base::text::Text;
use crate::engine::Engine;
use crate::objects::resource_names::quantity_from_value;
use crate::objects::{Container, PodSet, PodSpec, PodTemplate, Resources, Time, Workload, WorkloadMeta};
use crate::workloads::Spec;

/// Columns of equal length, one row per workload.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Namespace of all of them.
    pub namespace: String,
    /// Names are the prefix and a number from `first` on; UIDs equal the names.
    pub prefix: String,
    /// Number of the first workload.
    pub first: u64,
    /// The LocalQueues that `queue` refers to.
    pub local_queues: Vec<Text>,
    /// Index of the LocalQueue.
    pub queue: Vec<u32>,
    pub priority: Vec<i32>,
    /// Creation time in nanoseconds since 1970.
    pub created: Vec<i64>,
    pub count: Vec<i32>,
    /// The resources of the columns of `requests`.
    pub resources: Vec<String>,
    /// Row by row: the requests of one pod, in milli-units of `cpu` and whole units of the rest. Zero: not requested.
    pub requests: Vec<i64>,
}

/// Errors in columns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ColumnsError {
    /// A column has another length than the rest.
    #[error("{column}: has {actual} values where {expected} are needed")]
    Length {
        column: &'static str,
        actual: usize,
        /// The expected length.
        expected: usize,
    },
    /// A value that no workload can have.
    #[error("{column}[{row}]: {value}: {what}")]
    Value {
        column: &'static str,
        row: usize,
        value: i64,
        /// What it must be.
        what: &'static str,
    },
    /// Numbers of workloads that do not fit into 64 bits.
    #[error("first: {first}: must leave room for {n_rows} numbers of 64 bits")]
    Numbers {
        /// The first number.
        first: u64,
        /// How many there would be.
        n_rows: usize,
    },
    /// A workload of this name exists.
    #[error("prefix: Workload {namespace}/{name} already exists; change prefix or first")]
    Exists { namespace: String, name: String },
}

impl Columns {
    /// Checks that columns have one length, and that each row is a valid workload.
    pub(crate) fn check(&self) -> Result<(), ColumnsError> {
        let n = self.queue.len();
        let lengths = [
            ("priority", self.priority.len(), n),
            ("created", self.created.len(), n),
            ("count", self.count.len(), n),
            ("requests", self.requests.len(), n * self.resources.len()),
        ];
        for (column, actual, expected) in lengths {
            if actual != expected {
                return Err(ColumnsError::Length { column, actual, expected });
            }
        }
        if n > 0 && self.first.checked_add(n as u64 - 1).is_none() {
            return Err(ColumnsError::Numbers { first: self.first, n_rows: n });
        }
        let bad = |column, row, value, what| ColumnsError::Value { column, row, value, what };
        if let Some(row) = self.queue.iter().position(|&q| q as usize >= self.local_queues.len()) {
            return Err(bad("queue", row, i64::from(self.queue[row]), "must be an index of local_queues"));
        }
        if let Some(row) = self.count.iter().position(|&count| count < 0) {
            return Err(bad("count", row, i64::from(self.count[row]), "must be greater than or equal to 0"));
        }
        if let Some(at) = self.requests.iter().position(|&value| value < 0) {
            let row = at / self.resources.len();
            return Err(bad("requests", row, self.requests[at], "must be greater than or equal to 0"));
        }
        Ok(())
    }

    /// The workload of a row.
    pub(crate) fn workload(&self, row: usize) -> Workload {
        let pod_sets = vec![self.pod_set(row)].into();
        Workload { pod_sets, ..self.without_pod_sets(row, &mut String::new()) }
    }

    /// The requests of one pod of a row, resource by resource.
    fn requests_of(&self, row: usize) -> &[i64] {
        let n = self.resources.len();
        &self.requests[row * n..(row + 1) * n]
    }

    fn pod_set(&self, row: usize) -> PodSet {
        let values = self.resources.iter().zip(self.requests_of(row));
        let requests = values
            .filter(|(_, value)| **value != 0)
            .map(|(name, value)| -> (String, Quantity) { (name.clone(), quantity_from_value(name, *value, false)) })
            .collect();
        let resources = Resources { requests, ..Resources::default() };
        let container = Container { name: "main".to_owned(), resources, ..Container::default() };
        let spec = PodSpec { containers: vec![container], ..PodSpec::default() };
        PodSet {
            name: "main".to_owned(),
            count: self.count[row],
            template: PodTemplate { spec, ..PodTemplate::default() },
            ..PodSet::default()
        }
    }

    /// Writes the name of a row into `name`.
    fn put_name(&self, row: usize, name: &mut String) {
        name.clear();
        name.push_str(&self.prefix);
        write!(name, "{}", self.first + row as u64).expect("writing to text never fails");
    }

    fn without_pod_sets(&self, row: usize, name: &mut String) -> Workload {
        self.put_name(row, name);
        Workload {
            meta: WorkloadMeta {
                key: Key::new(&self.namespace, name, name),
                created: Time(self.created[row]),
                generation: 1,
                ..WorkloadMeta::default()
            },
            queue_name: self.local_queues[self.queue[row] as usize].clone(),
            priority: Some(self.priority[row]),
            ..Workload::default()
        }
    }
}

impl Engine {
    /// Applies new workloads given as columns. All or nothing.
    ///
    /// # Errors
    /// The first column of another length, the first invalid value, or the first name already in use.
    pub fn submit(&mut self, columns: &Columns, now: Time) -> Result<(), ColumnsError> {
        columns.check()?;
        self.check_new(columns)?;
        self.state.now = now;
        self.state.workloads.reserve(columns.queue.len());
        // Many rows have the same requests.
        let mut specs: FxHashMap<(i32, &[i64]), Arc<Spec>> = FxHashMap::default();
        let mut local_queues = vec![None; columns.local_queues.len()];
        // Queued LocalQueue by LocalQueue, so that each queue's data stays in the cache.
        let mut arrivals = vec![Vec::new(); columns.local_queues.len()];
        let mut name = String::new();
        for row in 0..columns.queue.len() {
            let queue = columns.queue[row] as usize;
            let local_queue = *local_queues[queue]
                .get_or_insert_with(|| self.state.local_queue(&columns.namespace, &columns.local_queues[queue]));
            let spec = specs
                .entry((columns.count[row], columns.requests_of(row)))
                .or_insert_with(|| self.state.share_spec(&columns.namespace, vec![columns.pod_set(row)].into()));
            let workload = columns.without_pod_sets(row, &mut name);
            arrivals[queue].push(self.state.store_workload_in(None, workload, Arc::clone(spec), local_queue));
        }
        for ids in arrivals {
            self.state.enqueue_new(&ids);
        }
        self.settle();
        Ok(())
    }

    /// Rows have different numbers, so no two of them share a name.
    fn check_new(&self, columns: &Columns) -> Result<(), ColumnsError> {
        let workloads = &self.state.workloads;
        if workloads.is_empty() {
            return Ok(());
        }
        let mut name = String::new();
        for row in 0..columns.queue.len() {
            columns.put_name(row, &mut name);
            if workloads.find(&columns.namespace, &name).is_some() {
                return Err(ColumnsError::Exists { namespace: columns.namespace.clone(), name });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Columns {
        Columns {
            namespace: "ns".into(),
            prefix: "w".into(),
            first: 7,
            local_queues: vec!["lq".into()],
            queue: vec![0, 0],
            priority: vec![1, 2],
            created: vec![0, 1],
            count: vec![1, 3],
            resources: vec!["cpu".into(), "memory".into()],
            requests: vec![500, 0, 1000, 1024],
        }
    }

    #[test]
    fn rows_become_workloads() {
        let mut engine = Engine::default();
        engine.submit(&two(), Time(5)).expect("valid");
        let id = engine.state.workloads.find("ns", "w8").expect("the second");
        let requests: Vec<i64> = engine.state.workloads.get(id).totals[0].requests.iter().map(|r| r.1).collect();
        assert_eq!(requests, [3072, 3000], "memory before cpu, for three pods");
    }

    #[test]
    fn a_workload_that_exists_is_not_replaced() {
        let mut engine = Engine::default();
        engine.submit(&two(), Time(5)).expect("valid");
        let refused = engine.submit(&Columns { first: 8, ..two() }, Time(6)).expect_err("the first one exists");
        assert_eq!(refused.to_string(), "prefix: Workload ns/w8 already exists; change prefix or first");
        assert_eq!(engine.state.workloads.len(), 2, "the second one is not there either");
        engine.submit(&Columns { first: 9, ..two() }, Time(6)).expect("new names");
    }

    #[test]
    fn mismatched_columns_change_nothing() {
        let refused = |change: fn(&mut Columns)| {
            let (mut engine, mut columns) = (Engine::default(), two());
            change(&mut columns);
            let error = engine.submit(&columns, Time(5)).expect_err("refused").to_string();
            assert!(engine.state.workloads.is_empty());
            error
        };
        assert_eq!(refused(|c| c.priority.truncate(1)), "priority: has 1 values where 2 are needed");
        assert_eq!(refused(|c| c.queue[1] = 9), "queue[1]: 9: must be an index of local_queues");
        assert_eq!(refused(|c| c.count[0] = -1), "count[0]: -1: must be greater than or equal to 0");
        let too_far = "first: 18446744073709551615: must leave room for 2 numbers of 64 bits";
        assert_eq!(refused(|c| c.first = u64::MAX), too_far);
        assert_eq!(refused(|c| c.requests[3] = -4), "requests[1]: -4: must be greater than or equal to 0");
    }
}
