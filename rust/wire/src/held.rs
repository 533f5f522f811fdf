//! The objects that an engine holds, as JSON of v1beta2: the fields that scheduling reads.

use kueuecore::objects::{OwnerReference, Workload};
use kueuecore::state::State;
use serde_json::Value;

use crate::encode::objects::{self, workload};
use crate::kinds::Kind;

/// The objects of a kind by namespace and name, or only the requested one.
///
/// `None`: the kind is unknown, or too little of its objects is kept.
#[must_use]
pub fn objects(state: &State, kind: &str, only: Option<(&str, &str)>) -> Option<Vec<Value>> {
    let kind = Kind::kept(kind)?;
    if let (Kind::Workload, Some((namespace, name))) = (kind, only) {
        let found = state.held_workload(namespace, name);
        return Some(found.map(|it| workload(&it, &state.config.gates)).into_iter().collect());
    }
    let wanted = |namespace: &str, name: &str| only.is_none_or(|only| only == (namespace, name));
    macro_rules! those {
        ($($held:ident).+, $encode:path) => {
            state
                .$($held).+()
                .filter(|it| wanted(&it.meta.namespace, &it.meta.name))
                .map(|it| ((it.meta.namespace.clone(), it.meta.name.clone()), $encode(it)))
                .collect()
        };
    }
    let mut found: Vec<((String, String), Value)> = match kind {
        Kind::Namespace => state
            .held_namespaces()
            .filter(|(name, _)| wanted("", name))
            .map(|(name, labels)| ((String::new(), name.to_owned()), objects::namespace(name, labels)))
            .collect(),
        Kind::ResourceFlavor => those!(objects.held_flavors, objects::resource_flavor),
        Kind::Topology => those!(objects.held_topologies, objects::topology),
        Kind::AdmissionCheck => those!(objects.held_checks, objects::admission_check),
        Kind::WorkloadPriorityClass => those!(objects.held_priority_classes, objects::workload_priority_class),
        Kind::Cohort => those!(held_cohorts, objects::cohort),
        Kind::ClusterQueue => those!(held_cluster_queues, objects::cluster_queue),
        Kind::LocalQueue => those!(held_local_queues, objects::local_queue),
        Kind::Node => {
            let nodes = state.nodes.cluster.nodes().filter(|it| wanted("", &it.meta.name));
            nodes.map(|it| ((String::new(), it.meta.name.clone()), objects::node(it))).collect()
        }
        Kind::Workload => {
            let key = |it: &Workload| (it.meta.key.namespace().to_owned(), it.meta.key.name().to_owned());
            state.held_workloads().map(|it| (key(&it), workload(&it, &state.config.gates))).collect()
        }
        _ => return None,
    };
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Some(found.into_iter().map(|(_, value)| value).collect())
}

/// Namespace and name of a workload, and kinds and names of its owners.
pub type WorkloadOwners = (String, String, Vec<(String, String)>);

/// The workloads that have owners, in the order of their names.
#[must_use]
pub fn owners(state: &State) -> Vec<WorkloadOwners> {
    let named = |it: &OwnerReference| (it.kind.to_string(), it.name.to_string());
    let all = state.workloads.iter().map(|(_, record)| {
        let key = record.key();
        let found = record.workload.meta.details.owners.iter().map(named).collect();
        (key.namespace().to_owned(), key.name().to_owned(), found)
    });
    let mut rows: Vec<WorkloadOwners> = all.filter(|row: &WorkloadOwners| !row.2.is_empty()).collect();
    rows.sort();
    rows
}
