//! The decision of a cycle; values are converted only when read.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kueuecore::base::gates::Gates;
use kueuecore::engine::what_if::WhatIf;
use kueuecore::schedule::decision as core;
use kueuecore_wire::encode;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::convert::to_python;
use crate::tables;

/// The decisions of one cycle.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Decision {
    pub inner: core::Decision,
    /// The gates that affect how admissions are written.
    pub gates: Gates,
}

type Key = (String, String);

/// Type, reason, key and message of an event.
pub type EventRow = (&'static str, String, Key, String);

/// An event as a Python row.
pub fn event_row(event: &core::Event) -> EventRow {
    (event.kind, event.reason.to_string(), key(&event.key), event.text().to_string())
}

fn key(key: &kueuecore::base::key::Key) -> Key {
    (key.namespace().to_owned(), key.name().to_owned())
}

/// Key, `status.admission`, whether it is Admitted, and when.
type AdmissionRow<'py> = (Key, Bound<'py, PyAny>, bool, i64);

/// Key, ClusterQueue, key of the preemptor, reason and message.
type PreemptionRow = (Key, String, Key, &'static str, String);

fn preemption_row(it: &core::Preempted) -> PreemptionRow {
    (key(&it.key), it.queue.to_string(), key(&it.preemptor), it.reason, it.message.to_string())
}

/// Outcome, ClusterQueue, admission, preemptions; reason, message, how many are ahead of it, what is undecided.
pub type WhatIfRow<'py> = (
    &'static str,
    String,
    Option<Bound<'py, PyAny>>,
    Vec<PreemptionRow>,
    (String, String, usize, Option<(String, String)>),
);

/// An answer as Python gets it.
pub fn what_if_row<'py>(py: Python<'py>, it: WhatIf, gates: &Gates) -> PyResult<WhatIfRow<'py>> {
    let admission = it.admission.as_ref().map(|admission| to_python(py, &encode::admission(admission, gates)));
    let preemptions = it.preemptions.iter().map(preemption_row).collect();
    let undecided = it.undecided.map(|undecided| (undecided.field, undecided.message));
    let details = (it.reason, it.message, it.n_ahead, undecided);
    Ok((it.outcome.name(), it.queue, admission.transpose()?, preemptions, details))
}

#[pymethods]
impl Decision {
    /// Number of the cycle; 0 if there was none.
    #[getter]
    fn cycle(&self) -> u64 {
        self.inner.cycle
    }

    /// Did the cycle change anything but messages?
    #[getter]
    fn has_changed_something(&self) -> bool {
        self.inner.has_changed_something()
    }

    /// Numbers of admissions, preemptions, and heads that stayed pending.
    fn counts(&self) -> (usize, usize, usize) {
        (self.inner.admissions.len(), self.inner.preemptions.len(), self.inner.pending.len())
    }

    /// The head for which the cycle waits until the pods of others are ready.
    fn waits_for_pods(&self) -> Option<Key> {
        self.inner.waits_for_pods.as_ref().map(key)
    }

    /// Key, `status.admission`, whether it is Admitted, and when.
    fn admissions<'py>(&self, py: Python<'py>) -> PyResult<Vec<AdmissionRow<'py>>> {
        let rows = self.inner.admissions.iter();
        rows.map(|a| {
            Ok((key(&a.key), to_python(py, &encode::admission(&a.admission, &self.gates))?, a.is_admitted, a.at.0))
        })
        .collect()
    }

    /// The same for workloads that already had quota and now got a topology assignment.
    fn placed<'py>(&self, py: Python<'py>) -> PyResult<Vec<AdmissionRow<'py>>> {
        let rows = self.inner.placed.iter();
        rows.map(|a| {
            let admission = to_python(py, &encode::admission(&a.admission, &self.gates))?;
            Ok((key(&a.key), admission, a.is_admitted, a.at.0))
        })
        .collect()
    }

    /// Key, reason, message, whether it was Evicted before, and the message if that cannot be written.
    fn evictions(&self) -> Vec<(Key, &'static str, String, bool, String)> {
        let row =
            |of: &core::Evicted| (key(&of.key), of.reason, of.message.to_string(), of.again, of.unwritten.to_string());
        self.inner.evictions.iter().map(row).collect()
    }

    /// Key, ClusterQueue, key of the preemptor, reason and message.
    fn preemptions(&self) -> Vec<PreemptionRow> {
        self.inner.preemptions.iter().map(preemption_row).collect()
    }

    /// Keys of the replaced slices and of their replacements, with messages.
    fn replaced(&self) -> Vec<(Key, Key, String)> {
        self.inner.replaced.iter().map(|r| (key(&r.key), key(&r.successor), r.message.to_string())).collect()
    }

    /// Per ClusterQueue: results of assigning entries again.
    fn target_recomputations(&self) -> BTreeMap<String, BTreeMap<&'static str, u32>> {
        self.inner.target_recomputations.clone()
    }

    /// Key, ClusterQueue, reason, message, and whether it is parked.
    fn pending(&self) -> Vec<(Key, String, &'static str, String, bool)> {
        let rows = self.inner.pending.iter();
        rows.map(|p| (key(&p.key), p.queue.to_string(), p.reason, p.message.to_string(), p.parked)).collect()
    }

    /// Keys of the workloads parked together with a head of their shape.
    fn parked(&self) -> Vec<Key> {
        self.inner.parked_keys().map(key).collect()
    }

    /// Type, reason, key and message.
    fn events(&self) -> Vec<(&'static str, Cow<'static, str>, Key, String)> {
        self.inner.events.iter().map(|e| (e.kind, e.reason.clone(), key(&e.key), e.text().to_string())).collect()
    }

    /// Per ClusterQueue: skipped preemptions.
    fn skipped_preemptions(&self) -> BTreeMap<String, u32> {
        self.inner.skipped_preemptions.clone()
    }

    /// Key, field and message of workloads that need a decision the engine does not make.
    fn undecided(&self) -> Vec<(Key, String, String)> {
        self.inner.undecided.iter().map(|u| (key(&u.key), u.field.clone(), u.message.to_string())).collect()
    }

    /// The admissions as rows: workload, ClusterQueue (u32), whether it is Admitted (u8), and when (i64).
    fn admission_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        tables::admissions(py, &self.inner.admissions)
    }

    /// Their flavors as rows: admission, pod set (u32), pods (i32), resource, flavor (u32), amount (i64).
    fn flavor_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        tables::flavors(py, &self.inner.flavors)
    }

    /// The preemptions as rows: workload, ClusterQueue, preemptor (u32), reason (u8).
    fn preemption_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        tables::preemptions(py, &self.inner.preemptions)
    }

    /// The heads that stayed pending as rows: workload, ClusterQueue (u32), reason, whether it is parked (u8).
    fn pending_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        tables::pending(py, &self.inner.pending)
    }
}
