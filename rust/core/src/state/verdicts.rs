//! Verdicts on the heads of a ClusterQueue that may still hold.

use std::sync::Arc;

use crate::assign::plan::Plan;
use crate::assign::{Assignment, ScanProgress};
use crate::objects::Time;
use crate::objects::message::Message;
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

/// All that an evaluation reads of a head, and of all others but what is in its quota tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// By what it gets its flavors: another one after pod sets, rules or flavors have changed.
    pub plan: &'a Arc<Plan>,
    pub priority: i64,
    pub time: Time,
    /// Where the scan of flavors goes on.
    pub tried: Option<&'a ScanProgress>,
}

/// A verdict, and on what it was given.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    plan: Arc<Plan>,
    priority: i64,
    time: Time,
    tried: Option<ScanProgress>,
    pub verdict: Verdict,
}

impl Known {
    pub fn new(question: Question<'_>, verdict: Verdict) -> Self {
        let Question { plan, priority, time, tried } = question;
        Self { plan: Arc::clone(plan), priority, time, tried: tried.cloned(), verdict }
    }

    fn answers(&self, question: Question<'_>) -> bool {
        Arc::ptr_eq(&self.plan, question.plan)
            && (self.priority, self.time) == (question.priority, question.time)
            && self.tried.as_ref() == question.tried
    }
}

/// The verdicts on heads of one ClusterQueue.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// Version of the tree for which they hold.
    version: u64,
    pub(crate) known: Vec<Known>,
}

impl Verdicts {
    /// The verdict on a question, if it is known.
    pub(crate) fn find(&self, version: u64, question: Question<'_>) -> Option<&Verdict> {
        let known = if self.version == version { self.known.as_slice() } else { &[] };
        known.iter().find(|known| known.answers(question)).map(|known| &known.verdict)
    }

    /// Remembers a verdict, and forgets those of other versions.
    pub(crate) fn remember(&mut self, version: u64, known: Known) {
        if self.version != version {
            self.version = version;
            self.known.clear();
        }
        if self.known.len() == N_KEPT {
            self.known.remove(0);
        }
        self.known.push(known);
    }
}
