//! The workloads that a search has removed so far.

use std::ops::Deref;

use super::{Placing, World};
use crate::base::amount::Amount;
use crate::base::ids::{FlavorResourceId, QueueId};
use crate::quota::tree::{Row, Tree};
use crate::state::searches::Recorder;
use crate::workloads::charge::{CandidateKey, Target};

/// A target, and what was removed from the tree for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removed<'a> {
    pub target: Target,
    pub row: Row,
    pub usage: &'a [(FlavorResourceId, Amount)],
}

impl<'a> Removed<'a> {
    /// Removes a candidate from the tree.
    pub fn take_out(tree: &mut Tree, key: &'a CandidateKey, queue: QueueId, row: Row, reason: &'static str) -> Self {
        tree.remove_all(row, &key.uses);
        Self { target: Target { workload: key.id, queue, reason }, row, usage: &key.uses }
    }
}

/// The list of removals. Placement is notified of each change, since lists may be long.
pub(super) struct Removals<'a> {
    list: Vec<Removed<'a>>,
    placing: Option<&'a dyn Placing>,
    recorder: Option<&'a Recorder>,
}

impl<'a> Removals<'a> {
    pub fn new(world: &World<'a>) -> Self {
        Self { list: Vec::new(), placing: world.placing, recorder: world.recorder }
    }

    fn note(&self, target: &Target, is_gone: bool) {
        if let Some(placing) = self.placing {
            placing.note(target, is_gone);
        }
    }

    pub fn push(&mut self, removed: Removed<'a>) {
        self.note(&removed.target, true);
        if let Some(recorder) = self.recorder {
            recorder.take(removed.target.workload);
        }
        self.list.push(removed);
    }

    /// Removes one from the list; the last one moves to its place.
    pub fn swap_remove(&mut self, at: usize) {
        let removed = self.list.swap_remove(at);
        self.note(&removed.target, false);
    }

    /// Undoes that.
    pub fn undo_swap_remove(&mut self, at: usize, removed: Removed<'a>) {
        self.push(removed);
        let last = self.list.len() - 1;
        self.list.swap(at, last);
    }

    /// Is there a place without them, if one is needed?
    pub fn leave_place(&self) -> bool {
        self.placing.is_none_or(|placing| placing.has_place(&|| self.targets()))
    }

    pub fn targets(&self) -> Vec<Target> {
        self.list.iter().map(|removed| removed.target).collect()
    }
}

impl<'a> Deref for Removals<'a> {
    type Target = [Removed<'a>];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

/// The next search starts with all of them back.
impl Drop for Removals<'_> {
    fn drop(&mut self) {
        self.list.iter().for_each(|removed| self.note(&removed.target, false));
    }
}
