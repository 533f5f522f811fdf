//! The statuses of Kueue's other kinds, as far as lists in them may be too long (rules/01 §1-3).

use super::{Field, Schema, any, field, list, object};

/// Counts, usages and shares of a ClusterQueue.
pub(super) fn cluster_queue(old: bool) -> Schema {
    let mut fields = counts(old);
    fields.push(usages("flavorsUsage"));
    if old {
        fields.push(field("pendingWorkloadsStatus", any()));
    }
    object(fields)
}

/// The same of a LocalQueue.
pub(super) fn local_queue(old: bool) -> Schema {
    let mut fields = counts(old);
    if old {
        let topology = object([field("name", any()), field("levels", list(any()).at_least(1).at_most(16))]);
        let flavor = object([
            field("name", any()),
            field("resources", list(any()).at_most(64)),
            field("nodeLabels", any()),
            field("nodeTaints", list(any()).at_most(8)),
            field("topology", topology),
        ]);
        fields.extend([usages("flavorUsage"), field("flavors", list(flavor).at_most(64))]);
    } else {
        fields.push(usages("flavorsUsage"));
    }
    object(fields)
}

/// The share of a Cohort.
pub(super) fn cohort() -> Schema {
    object([field("fairSharing", any())])
}

/// A status of conditions alone.
pub(super) fn with_conditions(old: bool) -> Schema {
    object([conditions(old)])
}

fn counts(old: bool) -> Vec<Field> {
    vec![
        conditions(old),
        usages("flavorsReservation"),
        field("pendingWorkloads", any()),
        field("reservingWorkloads", any()),
        field("admittedWorkloads", any()),
        field("fairSharing", any()),
    ]
}

fn conditions(old: bool) -> Field {
    field("conditions", if old { list(any()) } else { list(any()).at_most(16) })
}

fn usages(name: &'static str) -> Field {
    let usage = object([field("name", any()), field("resources", list(any()).at_most(64))]);
    field(name, list(usage).at_most(64))
}
