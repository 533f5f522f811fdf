//! The record of a simulation; cycles are converted only when read.

use std::collections::BTreeMap;
use std::sync::Arc;

use kueuecore::base::gates::Gates;
use kueuecore::base::key::Key;
use kueuecore::objects::Time;
use kueuecore::simulate::{Cycle, Ending, NodeQuota, Run, Series, Waiting};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::columns::decode_column;
use crate::decision::Decision;

/// A domain: the index of its list of levels, and its value at each of them.
type DomainRow = (u32, Vec<String>);

/// Time, index of the node, whether it is gone, and nominal quotas by pair.
type NominalRow = (i64, u32, bool, Vec<(u32, i64)>);

/// The record of a simulation so far.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Record {
    pub inner: Run,
    pub gates: Gates,
}

fn text(key: &Key) -> String {
    key.to_string()
}

fn bytes<'py>(py: Python<'py>, column: impl Iterator<Item = u8>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &column.collect::<Vec<u8>>())
}

#[pymethods]
impl Record {
    /// A record as `log_part` and these figures of it: why and when it ended, numbers of cycles and of workloads. It
    /// has no cycles.
    #[staticmethod]
    fn of_log_part(log: &[u8], ending: &str, end: i64, n_cycles: u64, n_workloads: u32) -> PyResult<Self> {
        let ending = Ending::named(ending).ok_or_else(|| PyValueError::new_err("no such ending"))?;
        let inner = Run::of_log_part(log, n_workloads, ending, Time(end), n_cycles);
        let inner = inner.map_err(|damage| PyValueError::new_err(format!("this is not the log of a run: {damage}")))?;
        Ok(Self { inner, gates: Gates::default() })
    }

    /// All but the cycles, as bytes.
    fn log_part<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.inner.log_part()))
    }

    /// Why it ended.
    #[getter]
    fn ending(&self) -> &'static str {
        self.inner.ending.name()
    }

    /// The time at its end, in nanoseconds since 1970.
    #[getter]
    fn end(&self) -> i64 {
        self.inner.end.0
    }

    /// Number of cycles, recorded or not.
    #[getter]
    fn n_cycles(&self) -> u64 {
        self.inner.n_cycles
    }

    /// Number of recorded cycles.
    fn n_recorded_cycles(&self) -> usize {
        self.inner.log.cycles.len()
    }

    /// One of the recorded cycles: number, time, decision, how many workloads it parked, and their keys.
    fn cycle(&self, index: usize) -> PyResult<(u64, i64, Decision, usize, Vec<String>)> {
        let cycle = self.inner.log.cycles.get(index);
        let cycle = cycle.ok_or_else(|| pyo3::exceptions::PyIndexError::new_err("no such cycle"))?;
        let decision = Decision { inner: cycle.decision.clone(), gates: self.gates };
        Ok((cycle.number, cycle.time.0, decision, cycle.n_parked, cycle.parked.iter().map(text).collect()))
    }

    /// What happened to the workloads, as columns: times, words, keys.
    fn steps(&self) -> (Vec<i64>, Vec<&'static str>, Vec<String>) {
        let steps = &self.inner.log.steps;
        let times = steps.iter().map(|(time, ..)| time.0).collect();
        let words = steps.iter().map(|(_, step, _)| step.name()).collect();
        (times, words, steps.iter().map(|(.., number)| text(self.inner.log.key(*number))).collect())
    }

    /// The same as arrays of bytes: times (i64), codes of the words (u8), numbers of the workloads (u32).
    fn step_columns<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let steps = &self.inner.log.steps;
        let times: Vec<u8> = steps.iter().flat_map(|(time, ..)| time.0.to_le_bytes()).collect();
        let codes: Vec<u8> = steps.iter().map(|(_, step, _)| *step as u8).collect();
        let numbers: Vec<u8> = steps.iter().flat_map(|(.., number)| number.to_le_bytes()).collect();
        (PyBytes::new(py, &times), PyBytes::new(py, &codes), PyBytes::new(py, &numbers))
    }

    /// The recorded cycles as an array of i64, row by row: number, time, how many workloads got quota, were preempted,
    /// and were parked.
    fn cycle_columns<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let row = |cycle: &Cycle| {
            let decision = &cycle.decision;
            let counts = [decision.admissions.len(), decision.preemptions.len(), cycle.n_parked];
            let [admissions, preemptions, parked] = counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
            let number = i64::try_from(cycle.number).unwrap_or(i64::MAX);
            [number, cycle.time.0, admissions, preemptions, parked]
        };
        let bytes: Vec<u8> = self.inner.log.cycles.iter().flat_map(row).flat_map(i64::to_le_bytes).collect();
        PyBytes::new(py, &bytes)
    }

    /// Changes of usage, one by one: times (i64), numbers of the workloads (u32), ClusterQueues (u32), whether quota
    /// was taken or released (u8), where its amounts end (u32).
    fn usage_changes<'py>(&self, py: Python<'py>) -> [Bound<'py, PyBytes>; 5] {
        let usage = &self.inner.log.usage;
        let wide = |column: &[u32]| bytes(py, column.iter().flat_map(|it| it.to_le_bytes()));
        [
            bytes(py, usage.times.iter().flat_map(|it| it.to_le_bytes())),
            wide(&usage.workloads),
            wide(&usage.queues),
            PyBytes::new(py, &usage.adds),
            wide(&usage.ends),
        ]
    }

    /// The amounts of these changes: flavor and resource (u32), amount (i64).
    fn usage_amounts<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Bound<'py, PyBytes>) {
        let usage = &self.inner.log.usage;
        let pairs = bytes(py, usage.pairs.iter().flat_map(|it| it.to_le_bytes()));
        (pairs, bytes(py, usage.amounts.iter().flat_map(|it| it.to_le_bytes())))
    }

    /// The names behind the numbers in these columns: ClusterQueues, and pairs of flavor and resource.
    fn usage_names(&self) -> (Vec<String>, Vec<(String, String)>) {
        let usage = &self.inner.log.usage;
        (usage.queue_names.clone(), usage.pair_names.clone())
    }

    /// Usage and quota of ClusterQueues or Cohorts over time, with the changes in the number of waiting jobs: times
    /// (i64), ClusterQueues (u32) and by how many (i8). Returns the names of the nodes, and columns: times (i64), nodes
    /// (u32), pairs (u32), then as i64 nominal, usage, borrowed, lent, pending, share.
    fn series<'py>(
        &self,
        py: Python<'py>,
        is_queue: bool,
        start: i64,
        end: i64,
        every: Option<i64>,
        waiting: (&[u8], &[u8], &[u8]),
    ) -> (Vec<String>, Vec<Bound<'py, PyBytes>>) {
        let log = &self.inner.log;
        let (times, queues, changes) = waiting;
        let series = py.detach(|| {
            let (times, queues, changes) = (
                decode_column(times, i64::from_le_bytes),
                decode_column(queues, u32::from_le_bytes),
                decode_column(changes, i8::from_le_bytes),
            );
            let waiting = Waiting { times: &times, queues: &queues, changes: &changes };
            Series::of(log, is_queue, start, end, every, waiting)
        });
        // These columns are large: free each before building the next.
        let wide = |column: Vec<i64>| bytes(py, column.into_iter().flat_map(i64::to_le_bytes));
        let narrow = |column: Vec<u32>| bytes(py, column.into_iter().flat_map(u32::to_le_bytes));
        let mut columns = vec![wide(series.times), narrow(series.nodes), narrow(series.pairs)];
        let numbers = [series.nominal, series.usage, series.borrowed, series.lent, series.pending, series.share];
        columns.extend(numbers.into_iter().map(wide));
        (log.quotas.nodes.iter().map(|(_, name)| name.clone()).collect(), columns)
    }

    /// Changes of nominal quotas: time, index of the node, whether it is gone, and nominal quotas by pair.
    fn nominal_changes(&self) -> Vec<NominalRow> {
        let nominal = |it: &NodeQuota| it.quotas.iter().map(|(pair, quota)| (*pair, quota.nominal.get())).collect();
        self.inner.log.quotas.changes.iter().map(|it| (it.time, it.node, it.is_gone, nominal(it))).collect()
    }

    /// The priority class of each workload by number: indices (u32), and the names of the classes.
    fn priority_classes<'py>(&self, py: Python<'py>) -> (Bound<'py, PyBytes>, Vec<String>) {
        let (log, labels) = (&self.inner.log, &self.inner.log.labels);
        let mut classes = vec![0u32; log.workloads.len()];
        for (number, class) in log.named.iter().zip(&labels.classes) {
            classes[*number as usize] = *class;
        }
        let names = labels.class_names.clone();
        (bytes(py, classes.iter().flat_map(|it| it.to_le_bytes())), names)
    }

    /// Each eviction: number of the workload, index of the cause, and ClusterQueue (2^32 - 1 for none), all u32;
    /// reasons with their underlying causes.
    fn evictions<'py>(&self, py: Python<'py>) -> ([Bound<'py, PyBytes>; 3], Vec<(String, String)>) {
        let labels = &self.inner.log.labels;
        let columns = [
            bytes(py, labels.evictions.iter().flat_map(|it| it.workload.to_le_bytes())),
            bytes(py, labels.evictions.iter().flat_map(|it| it.cause.to_le_bytes())),
            bytes(py, labels.evictions.iter().flat_map(|it| it.queue.to_le_bytes())),
        ];
        (columns, labels.causes.clone())
    }

    /// The ClusterQueue of each workload by number (u32), 2^32 - 1 for none; may end before the last workloads.
    fn homes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        bytes(py, self.inner.log.usage.homes.iter().flat_map(|it| it.to_le_bytes()))
    }

    /// The preemptions: times (i64), numbers of the preempted workload and its preemptor (u32), and codes of the
    /// reasons (u8).
    fn preemption_columns<'py>(&self, py: Python<'py>) -> [Bound<'py, PyBytes>; 4] {
        let log = &self.inner.log.preemptions;
        [
            bytes(py, log.times.iter().flat_map(|it| it.to_le_bytes())),
            bytes(py, log.workloads.iter().flat_map(|it| it.to_le_bytes())),
            bytes(py, log.preemptors.iter().flat_map(|it| it.to_le_bytes())),
            PyBytes::new(py, &log.reasons),
        ]
    }

    /// Where pods were placed: times (i64), numbers of the workloads (u32), pod sets (u32), domains (u32), counts
    /// (i32).
    fn placement_columns<'py>(&self, py: Python<'py>) -> [Bound<'py, PyBytes>; 5] {
        let rows = &self.inner.log.placements.rows;
        let wide = |column: &[u32]| bytes(py, column.iter().flat_map(|it| it.to_le_bytes()));
        [
            bytes(py, rows.times.iter().flat_map(|it| it.to_le_bytes())),
            wide(&rows.workloads),
            wide(&rows.pod_sets),
            wide(&rows.domains),
            bytes(py, rows.counts.iter().flat_map(|it| it.to_le_bytes())),
        ]
    }

    /// The domains behind these numbers: lists of levels, and for each domain the index of its list and its values.
    fn domains(&self) -> (Vec<Vec<String>>, Vec<DomainRow>) {
        let log = &self.inner.log.placements;
        let values = |values: &[Arc<str>]| values.iter().map(|value| value.to_string()).collect();
        (log.levels.clone(), log.domains.iter().map(|(levels, it)| (*levels, values(it))).collect())
    }

    /// Losses and returns of nodes: times (i64), nodes (u32), whether they were lost (u8); and the names of the nodes.
    fn node_columns<'py>(&self, py: Python<'py>) -> ([Bound<'py, PyBytes>; 3], Vec<String>) {
        let log = &self.inner.log.nodes;
        let columns = [
            bytes(py, log.times.iter().flat_map(|it| it.to_le_bytes())),
            bytes(py, log.nodes.iter().flat_map(|it| it.to_le_bytes())),
            PyBytes::new(py, &log.losses),
        ];
        (columns, log.names.clone())
    }

    /// Lost work and downtime of jobs: times (i64), numbers of the workloads (u32), pods (i64), both spans in
    /// nanoseconds (i64).
    fn work_columns<'py>(&self, py: Python<'py>) -> [Bound<'py, PyBytes>; 5] {
        let log = &self.inner.log.work;
        let long = |column: &[i64]| bytes(py, column.iter().flat_map(|it| it.to_le_bytes()));
        [
            long(&log.times),
            bytes(py, log.workloads.iter().flat_map(|it| it.to_le_bytes())),
            long(&log.pods),
            long(&log.lost_ns),
            long(&log.idle_ns),
        ]
    }

    /// Jobs that ended otherwise than `Succeeded`: numbers (u32) and reasons (u32), and the words for these.
    fn endings<'py>(&self, py: Python<'py>) -> ([Bound<'py, PyBytes>; 2], Vec<String>) {
        let log = &self.inner.log.work;
        let columns = [
            bytes(py, log.endings.iter().flat_map(|(workload, _)| workload.to_le_bytes())),
            bytes(py, log.endings.iter().flat_map(|(_, reason)| reason.to_le_bytes())),
        ];
        (columns, log.reasons.iter().map(ToString::to_string).collect())
    }

    /// Workloads present at the start of the run: numbers (u32), when they were created (i64; 0: unknown) and last
    /// admitted (i64; -1: not admitted), whether they had been evicted (u8).
    fn present_columns<'py>(&self, py: Python<'py>) -> [Bound<'py, PyBytes>; 4] {
        let present = &self.inner.log.work.present;
        [
            bytes(py, present.iter().flat_map(|it| it.workload.to_le_bytes())),
            bytes(py, present.iter().flat_map(|it| it.created.0.to_le_bytes())),
            bytes(py, present.iter().flat_map(|it| it.admitted.map_or(-1, |at| at.0).to_le_bytes())),
            bytes(py, present.iter().map(|it| u8::from(it.was_evicted))),
        ]
    }

    /// How many workloads have a number.
    fn n_workloads(&self) -> usize {
        self.inner.log.workloads.len()
    }

    /// Namespaces (u32) of the workloads by number and the words for these, and names; both are empty for one that
    /// never appeared.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Vec<&str>, Bound<'py, PyList>)> {
        let workloads = &self.inner.log.workloads;
        let (mut words, mut known, mut codes) = (Vec::new(), BTreeMap::new(), Vec::new());
        for key in workloads {
            let namespace = key.as_ref().map_or("", Key::namespace);
            let code: &u32 = known.entry(namespace).or_insert_with(|| {
                words.push(namespace);
                u32::try_from(words.len() - 1).expect("no more than workloads")
            });
            codes.extend(code.to_le_bytes());
        }
        let names = PyList::new(py, workloads.iter().map(|key| key.as_ref().map_or("", Key::name)))?;
        Ok((PyBytes::new(py, &codes), words, names))
    }

    /// Keys of the workloads by number; `None`: it never appeared.
    fn keys(&self) -> Vec<Option<String>> {
        self.inner.log.workloads.iter().map(|key| key.as_ref().map(text)).collect()
    }
}
