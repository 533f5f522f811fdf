//! What the job behind a workload does.

use crate::snapshot::stored;

stored!(struct JobPlan { run_ns, pods, lingers_ns, node_loss, saves_ns, ends_failed, done_ns });
stored!(enum NodeLoss { 0 = RunsOn, 1 = Waits, 2 = StartsOver });
stored!(struct PodsPlan { ready_ns, fails_ns, recovers_ns });

/// What a job does once it may start.
#[derive(Clone, Debug, Default)]
pub struct JobPlan {
    /// How long it runs, in nanoseconds; `None`: for ever. Where somebody waits for pods to be ready, it begins when they
    /// first are.
    pub run_ns: Option<i64>,
    /// When its pods are ready, where somebody waits for that; `None`: at once.
    pub pods: Option<Box<PodsPlan>>,
    /// How long its pods stay on a node that has failed, in nanoseconds (rules/08 §13.2); `None`: they are gone at once.
    pub lingers_ns: Option<i64>,
    /// What becomes of its run when pods are gone from a node that has failed.
    pub node_loss: NodeLoss,
    /// How much work lies between two checkpoints, in nanoseconds: whoever begins anew goes on from the last. `None`: it
    /// has none.
    pub saves_ns: Option<i64>,
    /// Does it fail once it has run its time?
    pub ends_failed: bool,
    /// How much of its run was done when it appeared, in nanoseconds; an eviction loses that, too.
    pub done_ns: i64,
}

/// What becomes of the run of a job from when its workload has a node in `status.unhealthyNodes` until it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeLoss {
    /// It runs on, as in Kueue's recorded runs.
    #[default]
    RunsOn,
    /// It stands still, and then goes on: what was done is kept elsewhere.
    Waits,
    /// It stands still, and then begins anew, as after an eviction.
    StartsOver,
}

impl NodeLoss {
    /// The one that a word names.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "RunsOn" => Some(NodeLoss::RunsOn),
            "Waits" => Some(NodeLoss::Waits),
            "StartsOver" => Some(NodeLoss::StartsOver),
            _ => None,
        }
    }
}

/// When the pods of a job are ready, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct PodsPlan {
    /// After its n-th admission; the last entry holds for all later ones; `None`: never.
    pub ready_ns: Vec<Option<i64>>,
    /// So long after they are first ready in an admission, one fails; `None`: never.
    pub fails_ns: Option<i64>,
    /// So long after the failure all are ready again; `None`: never.
    pub recovers_ns: Option<i64>,
}
