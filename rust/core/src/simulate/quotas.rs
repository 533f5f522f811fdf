//! A log of quotas and cohort membership.

use crate::quota::tree::Quota;
use crate::snapshot::stored;

/// What a ClusterQueue or Cohort declares from a time on.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeQuota {
    /// When, in nanoseconds since 1970.
    pub time: i64,
    /// Which, as an index into [`QuotaLog::nodes`].
    pub node: u32,
    /// Was it deleted? Then the other fields do not matter.
    pub is_gone: bool,
    /// The cohort above it.
    pub parent: Option<u32>,
    /// `fairSharing.weight`.
    pub weight: f64,
    /// Its own quotas by flavor and resource, as an index into [`super::UsageLog::pair_names`].
    pub quotas: Vec<(u32, Quota)>,
}

stored!(struct NodeQuota { time, node, is_gone, parent, weight, quotas });

/// All changes of quota in a run, in order of time; the initial quotas come first.
#[derive(Clone, Debug, Default)]
pub struct QuotaLog {
    pub changes: Vec<NodeQuota>,
    /// ClusterQueues (`true`) and Cohorts, with their names.
    pub nodes: Vec<(bool, String)>,
}
