//! The behaviour of the job behind a workload.

use crate::snapshot::stored;

stored!(struct JobPlan { run_ns, pods, lingers_ns, node_loss, saves_ns, ends_failed, done_ns });
stored!(enum NodeLoss { 0 = RunsOn, 1 = Waits, 2 = StartsOver });
stored!(struct PodsPlan { ready_ns, fails_ns, recovers_ns });

/// What a job does once it is admitted.
#[derive(Clone, Debug, Default)]
pub struct JobPlan {
    /// How long it runs, in nanoseconds; `None`: forever. If Kueue waits for ready pods, it starts when they first are.
    pub run_ns: Option<i64>,
    /// When its pods are ready, if Kueue waits for that; `None`: at once.
    pub pods: Option<Box<PodsPlan>>,
    /// How long its pods stay on a failed node, in nanoseconds (rules/08 §13.2); `None`: they are gone at once.
    pub lingers_ns: Option<i64>,
    /// What happens to its run when pods are gone from a failed node.
    pub node_loss: NodeLoss,
    /// Work between two checkpoints, in nanoseconds: a job that starts over continues from the last one. `None`: no
    /// checkpoints.
    pub saves_ns: Option<i64>,
    /// Does it fail at the end of its run time?
    pub ends_failed: bool,
    /// How much of its run was already done when it appeared, in nanoseconds; an eviction loses that, too.
    pub done_ns: i64,
}

/// What happens to the run of a job while its workload has a node in `status.unhealthyNodes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeLoss {
    /// It keeps running, as in Kueue's recorded runs.
    #[default]
    RunsOn,
    /// It stops, and then continues: its progress is kept elsewhere.
    Waits,
    /// It stops, and then starts over, as after an eviction.
    StartsOver,
}

impl NodeLoss {
    /// The variant with this name.
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
    /// After its n-th admission; the last entry applies to all later ones; `None`: never.
    pub ready_ns: Vec<Option<i64>>,
    /// How long after they are first ready in an admission one fails; `None`: never.
    pub fails_ns: Option<i64>,
    /// How long after the failure all are ready again; `None`: never.
    pub recovers_ns: Option<i64>,
}
