//! Remembered verdicts on the heads of a ClusterQueue, reused while they hold.

use std::sync::Arc;

use crate::assign::plan::Plan;
use crate::assign::{Assignment, ScanProgress};
use crate::objects::Time;
use crate::objects::message::Message;
use crate::workloads::charge::Target;

/// How many verdicts of a ClusterQueue are kept, the latest ones.
const N_KEPT: usize = 4;

/// The result of an evaluation on the usage at the start of a cycle.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub assignment: Arc<Assignment>,
    /// The workloads to preempt.
    pub targets: Vec<Target>,
    /// Why it does not fit, in Kueue's words.
    pub message: Message,
}

/// Everything that an evaluation reads about a head, and about others outside its quota tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// The plan of its flavors: a new one after pod sets, rules or flavors have changed.
    pub plan: &'a Arc<Plan>,
    pub priority: i64,
    pub time: Time,
    /// Where the flavor scan continues.
    pub tried: Option<&'a ScanProgress>,
}

/// A verdict, and its inputs.
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
    /// The version of the tree for which they hold.
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
