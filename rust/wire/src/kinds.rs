//! The kinds that are read, their groups, versions and scopes.

pub use kueuecore::objects::{KUEUE_GROUP, Kind, group_of};

/// Are objects of this version read as they are, without being converted first?
pub(crate) fn is_read_as_it_is(kind: Kind, api_version: &str) -> bool {
    !kind.is_kueue() || api_version == kind.preferred_version()
}
