//! A pending workload as flavor assignment and the search for victims see it, in the middle of a cycle.

use std::sync::Arc;

use kueuecore::assign::plan::Plan;
use kueuecore::assign::{Assignment, Candidate};
use kueuecore::base::ids::{QueueId, WorkloadId};
use kueuecore::preempt::{Demand, Preemptor, Simulation, World, find_targets};
use kueuecore::quota::tree::Tree;
use kueuecore::state::State;
use kueuecore::workloads::charge::Target;

/// A head with all that is read for it.
pub(crate) struct Head<'a> {
    plan: Arc<Plan>,
    candidate: Candidate<'a>,
    world: World<'a>,
    preemptor: Preemptor,
    tree: &'a mut Tree,
}

impl Head<'_> {
    /// One flavor assignment at full counts, by the plan, as a cycle makes it.
    pub fn assign(&mut self) -> Assignment {
        let mut oracle = Simulation::new(self.world, self.preemptor);
        self.plan.assign(self.tree, self.preemptor.row, None, &mut oracle)
    }

    /// One search for the victims of an assignment.
    pub fn victims(&mut self, assignment: &Assignment) -> Vec<Target> {
        let requests = assignment.requests_to_preempt_for(&self.candidate, self.world.names, self.world.config.changes);
        let demand = Demand::of_assignment(assignment, &requests, self.tree);
        find_targets(&self.world, self.tree, &self.preemptor, &demand).targets
    }

    /// One flavor assignment, and the victims for it, as a cycle looks for both: with one oracle.
    pub fn decide(&mut self) -> (Assignment, Vec<Target>) {
        let mut oracle = Simulation::new(self.world, self.preemptor);
        let assignment = self.plan.assign(self.tree, self.preemptor.row, None, &mut oracle);
        let requests = assignment.requests_to_preempt_for(&self.candidate, self.world.names, self.world.config.changes);
        let demand = Demand::of_assignment(&assignment, &requests, self.tree);
        let targets = oracle.targets(self.tree, demand);
        (assignment, targets)
    }
}

/// Looks at a pending workload of a ClusterQueue as its head; the state is the same afterwards.
pub(crate) fn with_head<T>(
    state: &mut State,
    queue: QueueId,
    workload: WorkloadId,
    look: impl FnOnce(&mut Head<'_>) -> T,
) -> T {
    let preemptor = state.preemptor(queue, workload);
    let plan = state.plan(queue, workload).expect("nothing is special about it");
    let mut tree = state.ledger.forest.lend_tree(preemptor.tree);
    let record = state.workloads.get(workload);
    let result = look(&mut Head {
        plan,
        candidate: Candidate {
            pod_sets: &record.spec.adjusted,
            totals: &record.totals,
            of_one_pod: &[],
            resume: None,
            allowed_flavors: None,
            replaced_slice: None,
            nomination: None,
            places: &[],
        },
        world: state.world(),
        preemptor,
        tree: &mut tree,
    });
    state.ledger.forest.return_tree(preemptor.tree, tree);
    result
}
