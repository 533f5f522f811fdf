//! The kinds that are read, their groups, versions and scopes, and what their objects are called.

use kueuecore::base::changes::{Change, Changes};
use kueuecore::objects::Object;
pub use kueuecore::objects::{KUEUE_GROUP, Kind, group_of};

/// Are objects of this version read as they are, without being converted first?
pub(crate) fn is_read_as_it_is(kind: Kind, api_version: &str) -> bool {
    !kind.is_kueue() || api_version == kind.preferred_version()
}

/// Does a Kueue with these changes have this kind?
pub(crate) fn is_known(kind: Kind, changes: Changes) -> bool {
    kind != Kind::PreemptionConfig || changes.has(Change::PreemptionConfigIsAKind)
}

/// Does a Kueue with these changes serve a version of a kind (rules/01 §8)?
#[must_use]
pub fn is_served(kind: Kind, api_version: &str, changes: Changes) -> bool {
    if !is_known(kind, changes) {
        return false;
    }
    is_read_as_it_is(kind, api_version) || !changes.has(Change::OldVersionIsNotServed)
}

/// Namespace and name of a decoded object.
#[must_use]
pub(crate) fn names_of(object: &Object) -> (&str, &str) {
    match object {
        Object::Workload(workload) => (workload.meta.key.namespace(), workload.meta.key.name()),
        _ => object.meta().map_or(("", ""), |meta| (&meta.namespace, &meta.name)),
    }
}

/// The UID of a decoded object; empty for none.
pub(crate) fn uid_of(object: &Object) -> &str {
    match object {
        Object::Workload(workload) => workload.meta.key.uid(),
        _ => object.meta().map_or("", |meta| &meta.uid),
    }
}
