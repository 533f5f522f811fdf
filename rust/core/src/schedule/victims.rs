//! The victims of a cycle so far, which count as gone for later entries (rules/04 §7, rules/05 §6.4).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::base::amount::Amount;
use crate::base::changes::Change;
use crate::base::ids::{FlavorResourceId, QueueId, WorkloadId};
use crate::preempt::{remove_from_tree, remove_workload, restore};
use crate::quota::forest::{Forest, TreeId};
use crate::quota::tree::{Ledger, Row, Tree};
use crate::schedule::entry::Entry;
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::state::State;
use crate::workloads::charge::Target;

/// The victims of a cycle, by tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Victims {
    of_trees: BTreeMap<TreeId, VictimsOfTree>,
    nobody: BTreeSet<WorkloadId>,
}

#[derive(Clone, Debug, Default)]
struct VictimsOfTree {
    workloads: BTreeSet<WorkloadId>,
    /// The usage of the tree without them, computed on demand.
    rest: Option<Ledger>,
    /// Those that `rest` still includes.
    in_rest: Vec<Target>,
    /// Those that searches can still find.
    in_sight: Vec<Target>,
    /// The ClusterQueues of the others.
    hidden_in: BTreeSet<QueueId>,
}

impl Victims {
    /// Those in a tree.
    pub fn in_tree(&self, tree: TreeId) -> &BTreeSet<WorkloadId> {
        self.of_trees.get(&tree).map_or(&self.nobody, |victims| &victims.workloads)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = WorkloadId> + '_ {
        self.of_trees.values().flat_map(|victims| victims.workloads.iter().copied())
    }

    /// Adds the targets of an entry.
    pub fn add(&mut self, tree: TreeId, targets: &[Target]) {
        if targets.is_empty() {
            return;
        }
        let victims = self.of_trees.entry(tree).or_default();
        // The slice that an entry replaces may be among those that it preempts, too.
        for target in targets.iter().filter(|target| victims.workloads.insert(target.workload)) {
            victims.in_rest.push(*target);
            victims.in_sight.push(*target);
        }
    }

    /// Usage added to a tree is also added to its usage without the victims.
    pub fn note_usage(&mut self, id: TreeId, tree: &mut Tree, row: Row, usage: &[(FlavorResourceId, Amount)]) {
        if let Some(rest) = self.of_trees.get_mut(&id).and_then(|victims| victims.rest.as_mut()) {
            tree.exchange_ledger(rest);
            tree.add_all(row, usage);
            tree.exchange_ledger(rest);
        }
    }

    /// Are any targets of an entry among them?
    pub fn overlap_with(&self, entry: &Entry) -> bool {
        let victims = self.in_tree(entry.tree);
        entry.targets.iter().any(|target| victims.contains(&target.workload))
    }
}

/// Does a target that is listed twice leave twice (rules/04 §7)? One that an entry replaces and preempts is.
pub(crate) fn leaves_again(state: &State) -> bool {
    !state.config.changes.has(Change::TargetsLeaveOnce)
}

impl VictimsOfTree {
    /// Evaluates a tree without their usage and that of other targets. `None`: a sum may have lost something.
    fn look_without<T>(
        &mut self,
        state: &State,
        (id, tree): (TreeId, &mut Tree),
        targets: &[Target],
        look: impl Fn(&State, &mut Tree) -> T,
    ) -> Option<T> {
        if tree.may_saturate() {
            return None;
        }
        let world = state.world();
        let rest = self.rest.get_or_insert_with(|| tree.copy_ledger());
        tree.exchange_ledger(rest);
        for target in self.in_rest.drain(..) {
            remove_workload(&world, tree, target.queue, target.workload);
        }
        let mark = tree.mark();
        let mut gone = BTreeSet::new();
        let is_here = |target: &&Target| !self.workloads.contains(&target.workload);
        let leaves = |target: &&Target| gone.insert(target.workload) || leaves_again(state);
        for target in targets.iter().filter(is_here).filter(leaves) {
            remove_workload(&world, tree, target.queue, target.workload);
        }
        let seen = look(state, tree);
        tree.rollback(mark);
        tree.exchange_ledger(rest);
        if rest.may_saturate() {
            return None;
        }
        debug_assert!(
            {
                let mark = tree.mark();
                remove_from_tree(&world, tree, id, &self.workloads);
                let is_same = tree.uses_as_much_as(rest);
                tree.rollback(mark);
                is_same || tree.may_saturate()
            },
            "the same is left when all victims are taken out anew"
        );
        Some(seen)
    }
}

impl State {
    /// Evaluates a tree without the victims so far and these targets, and restores it. May evaluate twice.
    pub(crate) fn look_without<T>(
        &mut self,
        victims: &mut Victims,
        id: TreeId,
        targets: &[Target],
        look: impl Fn(&State, &mut Tree) -> T,
    ) -> T {
        let mut tree = self.ledger.forest.lend_tree(id);
        if let Some(victims) = victims.of_trees.get_mut(&id)
            && let Some(seen) = victims.look_without(self, (id, &mut tree), targets, &look)
        {
            self.ledger.forest.return_tree(id, tree);
            return seen;
        }
        // If a sum may lose something, remove the victims one by one each time, as Kueue does.
        let victims = victims.in_tree(id);
        let gone = match targets {
            [] => Cow::Borrowed(victims),
            _ => Cow::Owned(victims.iter().copied().chain(targets.iter().map(|t| t.workload)).collect()),
        };
        let world = self.world();
        let mark = tree.mark();
        let mut removed = remove_from_tree(&world, &mut tree, id, &gone);
        if leaves_again(self) {
            let mut seen = victims.clone();
            for target in targets.iter().filter(|target| !seen.insert(target.workload)) {
                remove_workload(&world, &mut tree, target.queue, target.workload);
                removed.push(*target);
            }
        }
        let seen = look(self, &mut tree);
        restore(&world, &mut tree, mark, &removed);
        self.ledger.forest.return_tree(id, tree);
        seen
    }

    /// Hides the victims so far from searches.
    pub(crate) fn hide_victims(&mut self, victims: &mut Victims, id: TreeId) {
        let Some(victims) = victims.of_trees.get_mut(&id) else { return };
        for target in victims.in_sight.drain(..) {
            if let Some(charge) = &self.workloads.get(target.workload).charge {
                self.queues[charge.queue].candidates.hide(&self.names, &charge.candidate);
                victims.hidden_in.insert(charge.queue);
            }
        }
    }

    /// Shows all victims to searches again.
    pub(crate) fn show_victims(&mut self, victims: &Victims) {
        let Self { queues, workloads, names, .. } = self;
        let key = |id| &workloads.get(id).charge.as_ref().expect("a candidate holds quota").candidate;
        for &queue in victims.of_trees.values().flat_map(|victims| &victims.hidden_in) {
            queues[queue].candidates.show_hidden(names, key);
        }
    }
}

stored!(struct VictimsOfTree { workloads, rest, in_rest, in_sight, hidden_in });

impl Victims {
    /// Writes them, with trees by their numbers in the save.
    pub fn store(&self, out: &mut Writer<'_>) {
        let mut of_trees: Vec<_> = self.of_trees.iter().map(|(tree, victims)| (out.trees[&tree.0], victims)).collect();
        of_trees.sort_unstable_by_key(|(number, _)| *number);
        out.count(of_trees.len());
        for (number, victims) in of_trees {
            number.write_to(out);
            victims.write_to(out);
        }
    }

    /// Reads those in the trees of a forest.
    pub fn restore(forest: &Forest, from: &mut Reader<'_>) -> Result<Self, Damage> {
        let mut victims = Self::default();
        for _ in 0..from.count()? {
            let tree = forest.tree_of_number(usize::read_from(from)?);
            let tree = tree.ok_or_else(|| from.damage("victims in no tree"))?;
            let of_tree = VictimsOfTree::read_from(from)?;
            let is_of_tree = of_tree.rest.as_ref().is_none_or(|rest| rest.is_of(forest.tree(tree)));
            from.check(is_of_tree, "usage of another tree")?;
            victims.of_trees.insert(tree, of_tree);
        }
        Ok(victims)
    }
}
