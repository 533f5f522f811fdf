//! Verdicts on the heads of a ClusterQueue that may still hold.

use std::sync::Arc;

use crate::assign::{Assignment, ScanProgress};
use crate::objects::Time;
use crate::objects::message::Message;
use crate::pods::totals::Totals;
use crate::workloads::Spec;
use crate::workloads::charge::Target;

/// So many verdicts are kept of a ClusterQueue, the latest.
const N_KEPT: usize = 4;

/// What an evaluation on the usage at the start of a cycle came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The flavors.
    pub assignment: Arc<Assignment>,
    /// The workloads to preempt.
    pub targets: Vec<Target>,
    /// What is in the way, in Kueue's words.
    pub message: Message,
}

/// All that an evaluation reads of a head.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub spec: Arc<Spec>,
    pub totals: Arc<[Totals]>,
    pub priority: i64,
    pub time: Time,
    /// Where the scan of flavors goes on.
    pub tried: ScanProgress,
}

impl Question {
    fn is(&self, other: &Question) -> bool {
        Arc::ptr_eq(&self.spec, &other.spec)
            && (Arc::ptr_eq(&self.totals, &other.totals) || self.totals == other.totals)
            && (self.priority, self.time, &self.tried) == (other.priority, other.time, &other.tried)
    }
}

/// The verdicts on heads of one ClusterQueue.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// Versions of the tree and of the settings for which they hold.
    versions: (u64, u64),
    pub(crate) known: Vec<(Question, Verdict)>,
}

impl Verdicts {
    /// The verdict on a question, if it is known.
    pub(crate) fn find(&self, versions: (u64, u64), question: &Question) -> Option<&Verdict> {
        let known = if self.versions == versions { self.known.as_slice() } else { &[] };
        known.iter().find(|(asked, _)| asked.is(question)).map(|(_, verdict)| verdict)
    }

    /// Remembers a verdict, and forgets those of other versions.
    pub(crate) fn remember(&mut self, versions: (u64, u64), question: Question, verdict: Verdict) {
        if self.versions != versions {
            self.versions = versions;
            self.known.clear();
        }
        if self.known.len() == N_KEPT {
            self.known.remove(0);
        }
        self.known.push((question, verdict));
    }
}
