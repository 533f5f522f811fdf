//! Nodes and pods: capacity and usage (rules/08 §4, §12, §13).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::conditions::ConditionStatus;
use super::kinds::{Meta, ResourceList, Taint};
use super::pod_set::PodSpec;
use super::time::Time;

/// `Node` (v1): the fields that decide where pods fit (rules/08 §4) and whether they can stay (rules/08 §13).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Node {
    #[serde(skip)]
    pub meta: Meta,
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    /// Condition Ready; `None` if absent.
    #[serde(skip)]
    pub ready: Option<NodeReady>,
    #[serde(skip)]
    pub allocatable: ResourceList,
    #[serde(skip)]
    /// The statuses of all conditions by type: a change retries workloads that fit nowhere (rules/08 §11.11).
    pub condition_statuses: BTreeMap<String, ConditionStatus>,
}

/// Condition Ready of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeReady {
    pub status: ConditionStatus,
    /// Its last transition.
    pub since: Time,
}

/// `Pod` (v1): what it takes from its node (rules/08 §4.4), and how it is released (rules/08 §12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub meta: Meta,
    /// Empty: not bound to a node.
    pub node_name: String,
    /// `status.phase`; empty when absent.
    pub phase: String,
    /// Names of `spec.schedulingGates`.
    pub scheduling_gates: Vec<String>,
    /// Containers only with `resources` and whether they are sidecars; otherwise only `nodeSelector`, `overhead` and
    /// `resources`.
    pub spec: PodSpec,
}
