//! The engine behind a lock.

use std::sync::Mutex;

use kueuecore::base::ids::Id;
use kueuecore::engine as core;
use kueuecore::objects::config::Config;
use kueuecore::objects::{Kind, Object, Time};
use kueuecore::status::reasons::OF_DECISIONS;
use kueuecore_wire::decode::decode_with;
use kueuecore_wire::defaults::storing;
use kueuecore_wire::field_error::Rejection;
use kueuecore_wire::intake::intake;
use kueuecore_wire::{encode, explain, gauges, held, report};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::columns::{columns_error, decode_columns};
use crate::configuration::Configuration;
use crate::convert::to_python;
use crate::decision::{Decision, EventRow, WhatIfRow, event_row, what_if_row};
use crate::errors::{manifest_error, unknown_object};
use crate::intake_report::{Report, door, report_of};
use crate::journal::{CallRow, Journal};
use crate::run::{Kept, load, read_journal, run};

/// A scheduler that decides and does nothing.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Engine {
    pub(crate) inner: Mutex<Kept>,
    pub(crate) keeps_calls: bool,
}

/// Of ClusterQueues, flavors, resources and reasons.
type Names = (Vec<String>, Vec<String>, Vec<String>, Vec<&'static str>);

/// Why a question was not answered.
enum Refused {
    Manifests(Vec<Rejection>),
    Value(String),
}

#[pymethods]
impl Engine {
    /// `models_readiness`: pods become ready or not, so that waitForPodsReady counts even by default.
    /// `batches_retries`: retries wait for others. `keeps_calls`: records calls for `journal`.
    #[new]
    fn new(configuration: &Configuration, models_readiness: bool, batches_retries: bool, keeps_calls: bool) -> Self {
        let configuration = &configuration.inner;
        let given = if models_readiness { configuration.scheduling.clone() } else { configuration.for_simulation() };
        let config = Config { batches_retries, ..given };
        let kept = Kept { engine: Some(core::Engine::new(config)), journal: Journal::default() };
        Self { inner: Mutex::new(kept), keeps_calls }
    }

    /// Evaluates every head of every cycle from now on, even if nothing has changed; for tests.
    fn _evaluate_always(&self, py: Python<'_>) -> PyResult<()> {
        self.read(py, |engine| engine.state.evaluates_always = true)
    }

    /// The whole engine as bytes, with a note of the caller's and the time of the last call.
    fn save<'py>(&self, py: Python<'py>, note: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let save = |engine: &mut core::Engine, journal: &mut Journal| {
            engine.save(&[&journal.now.to_le_bytes(), note].concat())
        };
        Ok(PyBytes::new(py, &self.run(py, save)?))
    }

    /// The engine that was saved, and the note. It keeps no calls.
    #[staticmethod]
    fn load<'py>(py: Python<'py>, saved: &[u8]) -> PyResult<(Self, Bound<'py, PyBytes>)> {
        let (kept, note) = load(py, saved)?;
        Ok((Self { inner: Mutex::new(kept), keeps_calls: false }, PyBytes::new(py, &note)))
    }

    /// The latest time that any call named, and the calls that have changed the engine, if they are kept: names,
    /// arguments but the last, and the last, which is the time.
    fn journal(&self, py: Python<'_>) -> (i64, Option<Vec<CallRow>>) {
        let journal = read_journal(py, &self.inner, Journal::clone);
        (journal.now, self.keeps_calls.then(|| journal.calls(py)))
    }

    /// The latest time that any call named, in nanoseconds since 1970.
    fn now(&self, py: Python<'_>) -> i64 {
        read_journal(py, &self.inner, |journal| journal.now)
    }

    // What changes the engine takes the time last, in nanoseconds since 1970; `None`: the latest that a call named.

    /// Applies objects given as JSON. All or nothing.
    fn apply(&self, py: Python<'_>, data: &Bound<'_, PyBytes>, trusted: bool, now: Option<i64>) -> PyResult<Report> {
        let call = self.call(py, "apply", (data, trusted))?;
        let data = data.as_bytes();
        let applied = self.change(py, call, now, |engine, at| {
            let decoded = intake(engine, data, door(trusted), at)?;
            let report = report_of(&decoded);
            engine.apply(decoded.objects.into_iter().map(|(object, _)| object).collect(), at);
            Ok(report)
        })?;
        applied.map_err(|rejections: Vec<Rejection>| manifest_error(py, &rejections))
    }

    /// What `apply` would report or refuse; nothing changes.
    fn check(&self, py: Python<'_>, data: &Bound<'_, PyBytes>, trusted: bool, now: i64) -> PyResult<Report> {
        let data = data.as_bytes();
        let checked = self.read(py, |engine| intake(engine, data, door(trusted), Time(now)))?;
        checked.map(|decoded| report_of(&decoded)).map_err(|rejections| manifest_error(py, &rejections))
    }

    /// Applies workloads given as columns: queue u32, priority i32, created i64, count i32, requests i64. All or
    /// nothing.
    fn submit(
        &self,
        py: Python<'_>,
        namespace: String,
        prefix: String,
        first: u64,
        columns: &Bound<'_, PyTuple>,
        now: Option<i64>,
    ) -> PyResult<()> {
        let call = self.call(py, "submit", (&namespace, &prefix, first, columns))?;
        let columns = decode_columns(namespace, prefix, first, columns.extract()?);
        self.change(py, call, now, |engine, at| engine.submit(&columns, at))?.map_err(|error| columns_error(&error))
    }

    /// Deletes an object; `False` if there was none.
    fn delete(&self, py: Python<'_>, kind: &str, namespace: &str, name: &str, now: Option<i64>) -> PyResult<bool> {
        let call = self.call(py, "delete", (kind, namespace, name))?;
        let Some(kind) = Kind::kept(kind) else {
            return Err(PyValueError::new_err(format!(
                "objects of kind {kind:?} are not kept; supported: {}",
                Kind::KEPT.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
            )));
        };
        self.change_always(py, call, now, |engine, at| engine.delete(kind, namespace, name, at))
    }

    /// Runs one cycle.
    fn cycle(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Decision> {
        let call = self.call(py, "cycle", ())?;
        self.advance(py, call, now, |engine, at| Decision { inner: engine.cycle(at), gates: engine.state.config.gates })
    }

    /// Marks a workload Finished.
    fn finish(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        reason: &str,
        message: &str,
        now: Option<i64>,
    ) -> PyResult<bool> {
        let call = self.call(py, "finish", (namespace, name, reason, message))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, at| engine.finish(id, reason, message, at))
    }

    /// Marks a workload Evicted; `stopped`: its job has stopped, too.
    #[allow(clippy::too_many_arguments)]
    fn evict(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        reason: &str,
        message: &str,
        stopped: bool,
        now: Option<i64>,
    ) -> PyResult<bool> {
        let call = self.call(py, "evict", (namespace, name, reason, message, stopped))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, at| {
            let is_new = engine.evict(id, reason, message, at);
            if stopped {
                engine.release(id, at);
            }
            is_new
        })
    }

    /// The job of an evicted workload has stopped.
    fn release(&self, py: Python<'_>, namespace: &str, name: &str, now: Option<i64>) -> PyResult<bool> {
        let call = self.call(py, "release", (namespace, name))?;
        self.change_workload(py, call, (namespace, name), now, core::Engine::release)
    }

    /// The pods of a workload's job are ready, or no longer ready.
    fn note_readiness(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        are_ready: bool,
        now: Option<i64>,
    ) -> PyResult<bool> {
        let call = self.call(py, "note_readiness", (namespace, name, are_ready))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, at| {
            engine.note_readiness(id, are_ready, at)
        })
    }

    /// The pods of a workload's job have nodes, or lack them.
    fn note_scheduling(
        &self,
        py: Python<'_>,
        namespace: &str,
        name: &str,
        are_scheduled: bool,
        now: Option<i64>,
    ) -> PyResult<bool> {
        let call = self.call(py, "note_scheduling", (namespace, name, are_scheduled))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, at| {
            engine.note_scheduling(id, are_scheduled, at)
        })
    }

    /// A reservation of the last cycle could not be written.
    fn forget(&self, py: Python<'_>, namespace: &str, name: &str, gone: bool, now: Option<i64>) -> PyResult<bool> {
        let call = self.call(py, "forget", (namespace, name, gone))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, at| engine.forget(id, gone, at))
    }

    /// A write to a workload was refused: its nodes are checked again.
    fn _look_at_nodes_again(&self, py: Python<'_>, namespace: &str, name: &str, now: Option<i64>) -> PyResult<bool> {
        let call = self.call(py, "_look_at_nodes_again", (namespace, name))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, _| engine.look_at_nodes_again(id))
    }

    /// A reservation was written.
    fn confirm(&self, py: Python<'_>, namespace: &str, name: &str, now: Option<i64>) -> PyResult<bool> {
        let call = self.call(py, "confirm", (namespace, name))?;
        self.change_workload(py, call, (namespace, name), now, |engine, id, _| engine.confirm(id))
    }

    /// Makes all requested retries due.
    fn _retry_at_once(&self, py: Python<'_>, now: Option<i64>) -> PyResult<()> {
        self.change_always(py, self.call(py, "_retry_at_once", ())?, now, |engine, _| engine.state.retry_at_once())
    }

    /// The rows of the workloads that may have been written to since the last call.
    fn _take_written<'py>(&self, py: Python<'py>, now: Option<i64>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.change_always(py, self.call(py, "_take_written", ())?, now, |engine, _| {
            let written = engine.take_written();
            written.into_iter().map(|id| report::workload_row(&engine.state, id)).collect()
        })?;
        to_python(py, &serde_json::Value::Array(rows))
    }

    /// Namespace and name of the pods that were failed since the last call, and the condition that says so.
    fn _take_failed_pods<'py>(
        &self,
        py: Python<'py>,
        now: Option<i64>,
    ) -> PyResult<Vec<(String, String, Bound<'py, PyAny>)>> {
        let call = self.call(py, "_take_failed_pods", ())?;
        let failed = self.change_always(py, call, now, |engine, _| engine.take_failed_pods())?;
        let row = |(namespace, name, condition)| Ok((namespace, name, to_python(py, &encode::condition(&condition))?));
        failed.into_iter().map(row).collect()
    }

    /// Kind, namespace and name of the queues and cohorts whose status may have changed since the last call.
    fn _take_changed_queues(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Vec<(&'static str, String, String)>> {
        self.change_always(py, self.call(py, "_take_changed_queues", ())?, now, |engine, _| {
            let changed = engine.take_changed_queues();
            report::changed_queues(&engine.state, &changed)
        })
    }

    /// Writes what Kueue's workload controller writes outside of cycles; the events, as `Decision.events`.
    fn reconcile(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Vec<EventRow>> {
        let events = self.advance(py, self.call(py, "reconcile", ())?, now, core::Engine::reconcile)?;
        Ok(events.iter().map(event_row).collect())
    }

    /// The places and stages of all workloads as one number, for comparison.
    fn _standings(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |engine| engine.state.standings())
    }

    /// The same for states at different times: without times, but with how long experiments still make somebody wait.
    fn _standings_over_time(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |engine| engine.state.standings_over_time())
    }

    /// When the next wait of an experiment ends, after a time.
    fn _next_experiment(&self, py: Python<'_>, now: i64) -> PyResult<Option<i64>> {
        self.read(py, |engine| engine.state.next_experiment(Time(now)).map(|time| time.0))
    }

    /// Namespace and name of the workloads that were evicted and still hold their quota.
    fn _evicted_with_quota(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let keys = self.read(py, |engine| engine.state.evicted_with_quota())?;
        Ok(keys.iter().map(|key| (key.namespace().to_owned(), key.name().to_owned())).collect())
    }

    /// Namespace and name of each workload that has owners, with their kinds and names.
    fn _workload_owners(&self, py: Python<'_>) -> PyResult<Vec<held::WorkloadOwners>> {
        self.read(py, |engine| held::owners(&engine.state))
    }

    /// How many changes of nodes and pods there were.
    fn _n_cluster_changes(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |engine| engine.state.nodes.cluster.n_changes())
    }

    /// When time alone will change something, in nanoseconds since 1970.
    fn next_wake(&self, py: Python<'_>, now: i64) -> PyResult<Option<i64>> {
        self.read(py, |engine| engine.state.next_wake(Time(now)).map(|time| time.0))
    }

    /// The outcome for a Workload, given as JSON, if it were decided on next; nothing changes. Outcome,
    /// ClusterQueue, admission, preemptions as in `Decision`, reason, message, how many are ahead of it, and the
    /// field and message of what is undecided.
    fn what_if<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'_, PyBytes>,
        trusted: bool,
        now: i64,
    ) -> PyResult<WhatIfRow<'py>> {
        let call = self.call(py, "what_if", (data, trusted))?;
        let data = data.as_bytes();
        let considered = self.ask(py, call, now, |engine, at| {
            let gates = engine.state.config.gates;
            let decoded = decode_with(data, door(trusted), &engine.state.config).map_err(Refused::Manifests)?;
            let mut objects = decoded.objects.into_iter().map(|(mut object, _)| {
                if !trusted {
                    storing(None, &mut object, at);
                }
                object
            });
            match (objects.next(), objects.next()) {
                (Some(Object::Workload(workload)), None) => {
                    let considered = engine.what_if(*workload, at);
                    considered.map(|it| (it, gates)).map_err(|error| Refused::Value(error.to_string()))
                }
                _ => Err(Refused::Value("workload: give one object, a Workload".to_owned())),
            }
        })?;
        let (it, gates) = considered.map_err(|refused| match refused {
            Refused::Manifests(rejections) => manifest_error(py, &rejections),
            Refused::Value(message) => PyValueError::new_err(message),
        })?;
        what_if_row(py, it, &gates)
    }

    /// Why a workload waits or, if it has quota, where it would go without it; nothing changes. Returns what `what_if`
    /// does, and what was tried.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        namespace: &str,
        name: &str,
        now: i64,
    ) -> PyResult<(WhatIfRow<'py>, Bound<'py, PyAny>)> {
        let found = self.read(py, |engine| {
            let gates = engine.state.config.gates;
            let found = engine.explain(namespace, name, Time(now))?;
            let explanation = explain::explanation(&found);
            Some((found.what_if, gates, explanation))
        })?;
        let (what_if, gates, explanation) = found.ok_or_else(|| unknown_object(py, "Workload", namespace, name))?;
        Ok((what_if_row(py, what_if, &gates)?, to_python(py, &explanation)?))
    }

    /// An independent copy; parts that neither changes are shared.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let copy =
            run(py, &self.inner, |engine, journal| Kept { engine: Some(engine.fork()), journal: journal.clone() })?;
        Ok(Self { inner: Mutex::new(copy), keeps_calls: self.keeps_calls })
    }

    /// May a cycle have something to do?
    fn has_heads(&self, py: Python<'_>) -> PyResult<bool> {
        self.read(py, |engine| engine.has_heads())
    }

    /// Number of workloads.
    fn n_workloads(&self, py: Python<'_>) -> PyResult<usize> {
        self.read(py, |engine| engine.state.workloads.len())
    }

    /// The names of ClusterQueues, flavors, resources and reasons, indexed by their numbers in tables.
    fn names(&self, py: Python<'_>) -> PyResult<Names> {
        self.read(py, |engine| {
            let names = &engine.state.names;
            let queues = names.queues.iter().map(ToString::to_string).collect();
            let (flavors, resources) = (names.flavors.iter().cloned().collect(), names.resources().cloned().collect());
            (queues, flavors, resources, OF_DECISIONS.to_vec())
        })
    }

    /// Keys of the workloads by number; `None`: it is free.
    fn workload_keys(&self, py: Python<'_>) -> PyResult<Vec<Option<(String, String)>>> {
        self.read(py, |engine| {
            let workloads = &engine.state.workloads;
            let mut keys = Vec::new();
            for (id, record) in workloads.iter() {
                keys.resize(id.index() + 1, None);
                keys[id.index()] = Some((record.key().namespace().to_owned(), record.key().name().to_owned()));
            }
            keys
        })
    }

    /// The row of a workload, with its status.
    fn workload<'py>(&self, py: Python<'py>, namespace: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let row = self.read(py, |engine| {
            let id = engine.state.workloads.find(namespace, name)?;
            Some(report::workload_row(&engine.state, id))
        })?;
        to_python(py, &row.ok_or_else(|| unknown_object(py, "Workload", namespace, name))?)
    }

    /// All workloads, by namespace and name.
    fn workloads<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.read(py, |engine| {
            let mut all: Vec<_> = engine.state.workloads.iter().map(|(id, r)| (r.key().clone(), id)).collect();
            all.sort();
            all.into_iter().map(|(_, id)| report::workload_row(&engine.state, id)).collect()
        })?;
        to_python(py, &serde_json::Value::Array(rows))
    }

    /// Pending workloads of a ClusterQueue in queue order.
    fn pending<'py>(&self, py: Python<'py>, cluster_queue: &str) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.read(py, |engine| report::pending_workloads(&engine.state, cluster_queue))?;
        let rows = rows.ok_or_else(|| unknown_object(py, "ClusterQueue", "", cluster_queue))?;
        to_python(py, &serde_json::Value::Array(rows))
    }

    /// `status` of a ClusterQueue.
    fn cluster_queue_status<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let status = self.read(py, |engine| report::cluster_queue_status(&engine.state, name))?;
        to_python(py, &status.ok_or_else(|| unknown_object(py, "ClusterQueue", "", name))?)
    }

    /// `status` of a LocalQueue.
    fn local_queue_status<'py>(&self, py: Python<'py>, namespace: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let status = self.read(py, |engine| report::local_queue_status(&engine.state, namespace, name))?;
        to_python(py, &status.ok_or_else(|| unknown_object(py, "LocalQueue", namespace, name))?)
    }

    /// `status` of a Cohort.
    fn cohort_status<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let status = self.read(py, |engine| report::cohort_status(&engine.state, name))?;
        to_python(py, &status.ok_or_else(|| unknown_object(py, "Cohort", "", name))?)
    }

    /// The accounts of admission fair sharing by LocalQueue.
    fn _local_queue_accounts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.read(py, |engine| report::local_queue_accounts(&engine.state).into())?)
    }

    /// What placed workloads take from the nodes of each flavor, by domain.
    fn _topology_usage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.read(py, |engine| report::topology_usage(&engine.state))?)
    }

    /// Quota and usage of every node.
    fn quota<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let rows = self.read(py, |engine| report::quota_rows(&engine.state))?;
        to_python(py, &serde_json::Value::Array(rows.into_iter().map(serde_json::Value::Object).collect()))
    }

    /// Capacity of every domain of every topology, one row per resource.
    fn domain_capacity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.read(py, |engine| report::capacity_rows(&mut engine.state))?)
    }

    /// Where the pods of workloads are placed.
    fn placements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.read(py, |engine| report::placement_rows(&mut engine.state))?)
    }

    /// The stored objects of a kind, or one of them; `None`: the kind is not stored.
    fn objects<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        only: Option<(String, String)>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let only = only.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let found = self.read(py, |engine| held::objects(&engine.state, kind, only))?;
        found.map(|it| to_python(py, &serde_json::Value::Array(it))).transpose()
    }

    /// Gauges of queues and cohorts, for metrics.
    fn _gauges<'py>(&self, py: Python<'py>, lists_workloads: bool) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.read(py, |engine| gauges::gauges(&engine.state, lists_workloads))?)
    }

    /// Names of the ClusterQueues.
    fn cluster_queues(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, |engine| report::cluster_queue_names(&engine.state))
    }
}
