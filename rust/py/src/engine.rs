//! The engine behind a lock.

use std::sync::Mutex;

use kueuecore::columns::{Columns, Submissions};
use kueuecore::engine as core;
use kueuecore::ids::{Id, WorkloadId};
use kueuecore::objects::{Object, Time};
use kueuecore::reasons::OF_DECISIONS;
use kueuecore::simulate::{Options, simulate};
use kueuecore_wire::decode::{Decoded, Door, decode, decode_with};
use kueuecore_wire::defaults::storing;
use kueuecore_wire::field_error::Rejection;
use kueuecore_wire::intake::intake;
use kueuecore_wire::scenario::happenings;
use kueuecore_wire::{encode, report};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::configuration::Configuration;
use crate::convert::to_python;
use crate::decision::{Decision, EventRow, PreemptionRow, event_row, preemption_row};
use crate::errors::{manifest_error, unknown_object};
use crate::run::run;
use crate::simulation::Simulation;

/// A scheduler that decides and does nothing.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Engine {
    inner: Mutex<Option<core::Engine>>,
}

/// Warnings as (index, kind, namespace, name, field, message), foreign objects as (index, apiVersion, kind, namespace,
/// name).
type Report = (Vec<(usize, String, String, String, String, String)>, Vec<(usize, String, String, String, String)>);

fn report_of(decoded: &Decoded) -> Report {
    let warnings = decoded.warnings.iter().map(|w| {
        let object = w.object.clone();
        (w.index, object.kind, object.namespace, object.name, w.field.clone(), w.message.clone())
    });
    let foreign = decoded.foreign.iter().map(|f| {
        let f = f.clone();
        (f.index, f.api_version, f.kind, f.namespace, f.name)
    });
    (warnings.collect(), foreign.collect())
}

fn door(trusted: bool) -> Door {
    if trusted { Door::Trusted } else { Door::People }
}

/// LocalQueues, queue, priority, created, count, resources, requests: the columns as little-endian bytes.
type ColumnBytes =
    (Vec<String>, PyBackedBytes, PyBackedBytes, PyBackedBytes, PyBackedBytes, Vec<String>, PyBackedBytes);

/// The values of a column that came as bytes.
fn decode_column<const N: usize, T>(bytes: &[u8], value: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|chunk| value(chunk.try_into().expect("chunks have this length"))).collect()
}

fn decode_columns(namespace: String, prefix: String, first: u64, columns: ColumnBytes) -> Columns {
    let (local_queues, queue, priority, created, count, resources, requests) = columns;
    Columns {
        namespace,
        prefix,
        first,
        local_queues: local_queues.into_iter().map(Into::into).collect(),
        queue: decode_column(&queue, u32::from_le_bytes),
        priority: decode_column(&priority, i32::from_le_bytes),
        created: decode_column(&created, i64::from_le_bytes),
        count: decode_column(&count, i32::from_le_bytes),
        resources,
        requests: decode_column(&requests, i64::from_le_bytes),
    }
}

/// Namespace, prefix, first, columns, and when they appear and how long they run, in nanoseconds (i64).
type SubmissionBytes = (String, String, u64, ColumnBytes, PyBackedBytes, PyBackedBytes);

/// Of ClusterQueues, flavors, resources and reasons.
type Names = (Vec<String>, Vec<String>, Vec<String>, Vec<&'static str>);

/// Why a question was not answered.
enum Refused {
    Manifests(Vec<Rejection>),
    Value(String),
}

/// Outcome, ClusterQueue, admission, preemptions; reason, message, how many stand before it, what is not decided.
type WhatIfRow<'py> = (
    &'static str,
    String,
    Option<Bound<'py, PyAny>>,
    Vec<PreemptionRow>,
    (String, String, usize, Option<(String, String)>),
);

impl Engine {
    fn on_workload<R: Send>(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        work: impl FnOnce(&mut core::Engine, WorkloadId) -> R + Send,
    ) -> PyResult<R> {
        let found = run(py, &self.inner, |engine| {
            let id = engine.state.workloads.find(namespace, name)?;
            Some(work(engine, id))
        })?;
        found.ok_or_else(|| unknown_object(py, "Workload", namespace, name))
    }
}

#[pymethods]
impl Engine {
    /// `models_readiness`: pods become ready or not, so that waitForPodsReady counts even by default.
    #[new]
    fn new(configuration: &Configuration, models_readiness: bool) -> Self {
        let configuration = &configuration.inner;
        let config = if models_readiness { configuration.scheduling.clone() } else { configuration.for_simulation() };
        Self { inner: Mutex::new(Some(core::Engine::new(config))) }
    }

    /// From now on every head of every cycle is evaluated, also where nothing has changed.
    fn evaluate_always(&self, py: Python<'_>) -> PyResult<()> {
        run(py, &self.inner, |engine| engine.state.evaluates_always = true)
    }

    /// Applies objects given as JSON at `now` (nanoseconds since 1970). All or nothing.
    fn apply(&self, py: Python<'_>, data: &[u8], now: i64, trusted: bool) -> PyResult<Report> {
        let applied = run(py, &self.inner, |engine| {
            let decoded = intake(engine, data, door(trusted), Time(now))?;
            let report = report_of(&decoded);
            engine.apply(decoded.objects.into_iter().map(|(object, _)| object).collect(), Time(now));
            Ok(report)
        })?;
        applied.map_err(|rejections: Vec<Rejection>| manifest_error(py, &rejections))
    }

    /// Applies workloads given as columns: queue u32, priority i32, created i64, count i32, requests i64. All or nothing.
    fn submit(
        &self,
        py: Python<'_>,
        namespace: String,
        prefix: String,
        first: u64,
        columns: ColumnBytes,
        now: i64,
    ) -> PyResult<()> {
        let columns = decode_columns(namespace, prefix, first, columns);
        run(py, &self.inner, |engine| engine.submit(&columns, Time(now)))?
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))
    }

    /// Deletes an object; `False` if there was none.
    fn delete(&self, py: Python<'_>, kind: &str, namespace: &str, name: &str, now: i64) -> PyResult<bool> {
        let Some(kind) = core::Kind::from_name(kind) else {
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "objects of kind {kind:?} are not kept; supported: {}",
                core::Kind::ALL.map(core::Kind::name).join(", ")
            )));
        };
        run(py, &self.inner, |engine| engine.delete(kind, namespace, name, Time(now)))
    }

    /// Runs one cycle.
    fn cycle(&self, py: Python<'_>, now: i64) -> PyResult<Decision> {
        Ok(Decision { inner: run(py, &self.inner, |engine| engine.cycle(Time(now)))? })
    }

    /// Marks a workload Finished.
    fn finish(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        reason: &str,
        message: &str,
        now: i64,
    ) -> PyResult<bool> {
        self.on_workload(py, namespace, name, |engine, id| engine.finish(id, reason, message, Time(now)))
    }

    /// Marks a workload Evicted.
    fn evict(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        reason: &str,
        message: &str,
        now: i64,
    ) -> PyResult<bool> {
        self.on_workload(py, namespace, name, |engine, id| engine.evict(id, reason, message, Time(now)))
    }

    /// The job of an evicted workload has stopped.
    fn release(&self, py: Python<'_>, namespace: &str, name: &str, now: i64) -> PyResult<bool> {
        self.on_workload(py, namespace, name, |engine, id| engine.release(id, Time(now)))
    }

    /// The pods of a workload's job are ready, or not any more.
    fn note_readiness(&self, py: Python<'_>, namespace: &str, name: &str, are_ready: bool, now: i64) -> PyResult<bool> {
        self.on_workload(py, namespace, name, |engine, id| engine.note_readiness(id, are_ready, Time(now)))
    }

    /// A reservation of the last cycle could not be written.
    fn forget(&self, py: Python<'_>, namespace: &str, name: &str, gone: bool, now: i64) -> PyResult<bool> {
        self.on_workload(py, namespace, name, |engine, id| engine.forget(id, gone, Time(now)))
    }

    /// A reservation was written.
    fn confirm(&self, py: Python<'_>, namespace: &str, name: &str) -> PyResult<bool> {
        self.on_workload(py, namespace, name, |engine, id| engine.confirm(id))
    }

    /// Where the workloads stand to which something may have been written since the last call.
    fn _take_written<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = run(py, &self.inner, |engine| {
            let written = engine.take_written();
            written.into_iter().map(|id| report::workload_row(&engine.state, id)).collect()
        })?;
        to_python(py, &serde_json::Value::Array(rows))
    }

    /// Writes what Kueue's workload controller writes outside of cycles; the events, as `Decision.events`.
    fn reconcile(&self, py: Python<'_>, now: i64) -> PyResult<Vec<EventRow>> {
        let events = run(py, &self.inner, |engine| engine.reconcile(Time(now)))?;
        Ok(events.iter().map(event_row).collect())
    }

    /// When time alone will change something, in nanoseconds since 1970.
    fn next_wake(&self, py: Python<'_>, now: i64) -> PyResult<Option<i64>> {
        run(py, &self.inner, |engine| engine.state.next_wake(Time(now)).map(|time| time.0))
    }

    /// Does what was asked for: parked workloads go back to their heaps.
    fn _flush(&self, py: Python<'_>, now: i64) -> PyResult<usize> {
        run(py, &self.inner, |engine| {
            engine.state.now = Time(now);
            engine.state.flush()
        })
    }

    /// Takes over newer versions of ClusterQueues in what holds quota, without telling the queues.
    fn _update_in_cache(&self, py: Python<'_>, data: &[u8], now: i64) -> PyResult<()> {
        let decoded = py.detach(|| decode(data, Door::Trusted)).map_err(|r| manifest_error(py, &r))?;
        run(py, &self.inner, |engine| {
            engine.state.now = Time(now);
            for (object, _) in decoded.objects {
                if let Object::ClusterQueue(queue) = object {
                    let _ = engine.state.put_cluster_queue(queue);
                }
            }
        })
    }

    /// Runs through time from `now` (nanoseconds since 1970) until nothing is left to happen. `events`: JSON, one a
    /// line; they come after the `submissions`. `options`: nanoseconds of a cycle, quiet cycles that end a round, most cycles, nanoseconds of an eviction,
    /// whether messages are kept.
    fn simulate(
        &self,
        py: Python<'_>,
        submissions: Vec<SubmissionBytes>,
        events: &[u8],
        trusted: bool,
        now: i64,
        options: (i64, Option<usize>, Option<u64>, i64, bool),
    ) -> PyResult<Simulation> {
        let (cycle_step_ns, quiet_cycles, max_cycles, eviction_ns, keeps_messages) = options;
        let options = Options { cycle_step_ns, quiet_cycles, max_cycles, eviction_ns, keeps_messages };
        let mut submitted = Vec::new();
        for (namespace, prefix, first, columns, at, run_ns) in submissions {
            let columns = decode_columns(namespace, prefix, first, columns);
            let (at, run_ns) = (decode_column(&at, i64::from_le_bytes), decode_column(&run_ns, i64::from_le_bytes));
            let rows = Submissions { columns, at, run_ns }.happenings();
            submitted.extend(rows.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?);
        }
        let mut raised = None;
        let simulated = run(py, &self.inner, |engine| {
            let gates = engine.state.config.gates;
            submitted.extend(happenings(events, door(trusted), &gates, Time(now))?);
            Ok::<_, Vec<Rejection>>(simulate(engine, submitted, options, Time(now), || {
                // Ctrl-C ends the run between two cycles.
                raised = Python::attach(|py| py.check_signals()).err();
                raised.is_some()
            }))
        })?;
        match (simulated, raised) {
            (_, Some(error)) => Err(error),
            (Ok(inner), None) => Ok(Simulation { inner }),
            (Err(rejections), None) => Err(manifest_error(py, &rejections)),
        }
    }

    /// What would become of a Workload, given as JSON, if it were decided on next; nothing changes. Outcome,
    /// ClusterQueue, admission, preemptions as in `Decision`, reason, message, how many stand before it, and the field
    /// and message of what is not decided.
    fn what_if<'py>(&self, py: Python<'py>, data: &[u8], trusted: bool, now: i64) -> PyResult<WhatIfRow<'py>> {
        let considered = run(py, &self.inner, |engine| {
            let gates = engine.state.config.gates;
            let decoded = decode_with(data, door(trusted), &gates).map_err(Refused::Manifests)?;
            let mut objects = decoded.objects.into_iter().map(|(mut object, _)| {
                if !trusted {
                    storing(None, &mut object, Time(now));
                }
                object
            });
            match (objects.next(), objects.next()) {
                (Some(Object::Workload(workload)), None) => {
                    engine.what_if(*workload, Time(now)).map_err(|error| Refused::Value(error.to_string()))
                }
                _ => Err(Refused::Value("give one object, a Workload".to_owned())),
            }
        })?;
        let it = considered.map_err(|refused| match refused {
            Refused::Manifests(rejections) => manifest_error(py, &rejections),
            Refused::Value(message) => pyo3::exceptions::PyValueError::new_err(message),
        })?;
        let admission = it.admission.as_ref().map(|admission| to_python(py, &encode::admission(admission)));
        let preemptions = it.preemptions.iter().map(preemption_row).collect();
        let undecided = it.undecided.map(|undecided| (undecided.field, undecided.message));
        let told = (it.reason, it.message, it.n_ahead, undecided);
        Ok((it.outcome.name(), it.queue, admission.transpose()?, preemptions, told))
    }

    /// A copy that shares nothing that changes.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let copy = run(py, &self.inner, |engine| engine.clone())?;
        Ok(Self { inner: Mutex::new(Some(copy)) })
    }

    /// May a cycle have something to do?
    fn has_heads(&self, py: Python<'_>) -> PyResult<bool> {
        run(py, &self.inner, |engine| engine.has_heads())
    }

    /// Number of workloads.
    fn n_workloads(&self, py: Python<'_>) -> PyResult<usize> {
        run(py, &self.inner, |engine| engine.state.workloads.len())
    }

    /// The names of ClusterQueues, of flavors, of resources and of reasons, by the numbers that stand for them in tables.
    fn names(&self, py: Python<'_>) -> PyResult<Names> {
        run(py, &self.inner, |engine| {
            let names = &engine.state.names;
            let queues = names.queues.iter().map(ToString::to_string).collect();
            let [flavors, resources] = [names.flavors.iter(), names.resources()].map(|all| all.cloned().collect());
            (queues, flavors, resources, OF_DECISIONS.to_vec())
        })
    }

    /// Keys of the workloads by number; `None`: it is free.
    fn workload_keys(&self, py: Python<'_>) -> PyResult<Vec<Option<(String, String)>>> {
        run(py, &self.inner, |engine| {
            let workloads = &engine.state.workloads;
            let mut keys = Vec::new();
            for (id, record) in workloads.iter() {
                keys.resize(id.index() + 1, None);
                keys[id.index()] = Some((record.key().namespace().to_owned(), record.key().name().to_owned()));
            }
            keys
        })
    }

    /// Where a workload stands, with its status.
    fn workload<'py>(&self, py: Python<'py>, namespace: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let row = self.on_workload(py, namespace, name, |engine, id| report::workload_row(&engine.state, id))?;
        to_python(py, &row)
    }

    /// All workloads, by namespace and name.
    fn workloads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = run(py, &self.inner, |engine| {
            let mut all: Vec<_> = engine.state.workloads.iter().map(|(id, r)| (r.key().clone(), id)).collect();
            all.sort();
            all.into_iter().map(|(_, id)| report::workload_row(&engine.state, id)).collect()
        })?;
        to_python(py, &serde_json::Value::Array(rows))
    }

    /// Pending workloads of a ClusterQueue in queue order.
    fn pending<'py>(&self, py: Python<'py>, cluster_queue: &str) -> PyResult<Bound<'py, PyAny>> {
        let rows = run(py, &self.inner, |engine| report::pending_workloads(&engine.state, cluster_queue))?;
        let rows = rows.ok_or_else(|| unknown_object(py, "ClusterQueue", "", cluster_queue))?;
        to_python(py, &serde_json::Value::Array(rows))
    }

    /// `status` of a ClusterQueue.
    fn cluster_queue_status<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let status = run(py, &self.inner, |engine| report::cluster_queue_status(&engine.state, name))?;
        to_python(py, &status.ok_or_else(|| unknown_object(py, "ClusterQueue", "", name))?)
    }

    /// `status` of a LocalQueue.
    fn local_queue_status<'py>(&self, py: Python<'py>, namespace: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let status = run(py, &self.inner, |engine| report::local_queue_status(&engine.state, namespace, name))?;
        to_python(py, &status.ok_or_else(|| unknown_object(py, "LocalQueue", namespace, name))?)
    }

    /// The accounts of admission fair sharing by LocalQueue.
    fn _local_queue_accounts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let accounts = run(py, &self.inner, |engine| report::local_queue_accounts(&engine.state))?;
        to_python(py, &serde_json::Value::Object(accounts))
    }

    /// Quota and usage of every node.
    fn quota<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = run(py, &self.inner, |engine| report::quota_rows(&engine.state))?;
        to_python(py, &serde_json::Value::Array(rows.into_iter().map(serde_json::Value::Object).collect()))
    }

    /// Names of the ClusterQueues.
    fn cluster_queues(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        run(py, &self.inner, |engine| report::cluster_queue_names(&engine.state))
    }
}
