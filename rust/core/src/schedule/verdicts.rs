//! Verdicts that still hold: a head is evaluated again only once something has changed on which its verdict depended.
//!
//! A verdict depends on the quota tree with its usage and candidates for preemption
//! ([`crate::quota::forest::Forest::version`]), on the ClusterQueue's rules and ResourceFlavors, which are in its plan,
//! and on the head. Heads without a plan are few, and are evaluated each time.
//!
//! Heads return if they stay in their heaps: those of StrictFIFO queues, and those that wait for their victims.

use std::sync::Arc;

use crate::assign::plan::Plan;
use crate::assign::{self, Mode};
use crate::schedule::entry::Entry;
use crate::schedule::round::Cycle;
use crate::state::State;
use crate::state::verdicts::{Known, Question, Verdict};

impl State {
    /// The verdict on a head, on the usage at the start of a cycle: the previous one, if it still holds.
    pub(crate) fn verdict(&mut self, entry: &Entry, cycle: &mut Cycle) -> Verdict {
        self.drop_outdated_progress(entry);
        cycle.mark(&mut self.ledger.forest, entry.tree);
        let plan = self.plan(entry.queue, entry.workload);
        let version = self.ledger.forest.version(entry.tree);
        let comes_again = plan.as_ref().filter(|_| !self.depends_on_more(entry));
        if let Some(plan) = comes_again
            && let Some(known) = self.queues[entry.queue].verdicts.find(version, self.question(entry, plan))
        {
            return known.clone();
        }
        let verdict = self.evaluate(entry, plan.as_ref(), cycle);
        // A head that fits is admitted, or others are and change the tree.
        if let Some(plan) = comes_again
            && verdict.assignment.mode() != Mode::Fit
        {
            let known = Known::new(self.question(entry, plan), verdict.clone());
            self.queues[entry.queue].verdicts.remember(version, known);
        }
        verdict
    }

    /// The verdict on a workload that joins a cycle, on the usage so far: victims still use their quota.
    pub(super) fn verdict_now(&mut self, entry: &Entry) -> Verdict {
        self.drop_outdated_progress(entry);
        let plan = self.plan(entry.queue, entry.workload);
        self.evaluate(entry, plan.as_ref(), &mut Cycle::default())
    }

    fn evaluate(&mut self, entry: &Entry, plan: Option<&Arc<Plan>>, cycle: &mut Cycle) -> Verdict {
        let (assignment, targets) = self.find_assignment(entry, plan, None, &mut cycle.victims);
        let pod_sets = &self.workloads.get(entry.workload).spec.original;
        let message = assign::messages::assignment(&self.names, &assignment, pod_sets);
        Verdict { assignment, targets, message }
    }

    /// Does the verdict depend on more than the question?
    fn depends_on_more(&self, entry: &Entry) -> bool {
        self.evaluates_always
            || self.config.admission_fair_sharing.is_some()
            || self.config.experiments.are_on()
            || self.ledger.forest.tree(entry.tree).has_saturated()
    }

    /// The question about a head.
    fn question<'a>(&'a self, entry: &Entry, plan: &'a Arc<Plan>) -> Question<'a> {
        let tried = self.workloads.get(entry.workload).resume.as_ref().map(|resume| &resume.tried);
        Question { plan, priority: entry.priority, time: entry.time, tried }
    }
}

#[cfg(test)]
mod tests {
    use crate::objects::config::{AdmissionFairSharing, Config};
    use crate::objects::{ClusterQueue, Kind, Object, Preemption, PreemptionPolicy, QueueingStrategy, Workload};
    use crate::testing::{World, cluster_queue, flavor, local_queue, workload};

    const MARK: &str = "remembered";

    fn world() -> World {
        world_with(Config::default())
    }

    /// A StrictFIFO queue with quota for `a`, and after it `b`, which does not fit and has a condition that says so.
    fn world_with(config: Config) -> World {
        let mut world = World::new(config);
        world.change_cluster_queue(|queue| queue.queueing_strategy = QueueingStrategy::StrictFIFO);
        world.submit(workload("a", "6"));
        world.cycle();
        world.submit(workload("b", "6"));
        world.cycle();
        world
    }

    /// Marks the remembered verdict, and returns whether the next cycle uses it.
    fn is_remembered(world: &mut World) -> bool {
        let state = &mut world.engine.state;
        for queue in state.queues.ids() {
            for known in &mut state.queues[queue].verdicts.known {
                known.verdict.message = MARK.into();
            }
        }
        world.cycle().pending.iter().any(|kept| kept.message.text().contains(MARK))
    }

    #[test]
    fn a_head_is_not_evaluated_again_while_nothing_changes() {
        let mut world = world();
        assert!(is_remembered(&mut world));
        world.engine.state.evaluates_always = true;
        assert!(!is_remembered(&mut world));
    }

    #[test]
    fn changes_in_another_tree_cause_no_evaluation() {
        let mut world = world();
        let (queue, local_queue) = (cluster_queue("other", "4"), local_queue("other", "other"));
        world.apply([Object::ClusterQueue(queue), Object::LocalQueue(local_queue)]);
        world.cycle();
        world.submit(Workload { queue_name: "other".into(), ..workload("c", "1") });
        assert!(is_remembered(&mut world));
        assert!(is_remembered(&mut world), "usage has changed elsewhere");
    }

    #[test]
    fn changes_that_the_verdict_depends_on_cause_an_evaluation() {
        type Change = fn(&mut World);
        let changes: [(&str, Change); 5] = [
            ("usage", |world| world.delete(Kind::Workload, "a")),
            ("quota", |world| world.change_cluster_queue(|queue| queue.cohort_name = "all".to_owned())),
            ("rules", |world| {
                world.change_cluster_queue(|queue| {
                    let within_cluster_queue = PreemptionPolicy::LowerPriority;
                    queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
                });
            }),
            ("the flavor", |world| world.apply([flavor("default")])),
            ("the head", |world| world.change("b", |workload| workload.priority = Some(3))),
        ];
        for (what, change) in changes {
            let mut world = world();
            change(&mut world);
            assert!(!is_remembered(&mut world), "{what}");
        }
    }

    #[test]
    fn a_head_is_always_evaluated_with_saturated_sums_or_usage_history() {
        for (used, is_kept) in [("1", true), ("10P", false)] {
            let mut world = world();
            world.change_cluster_queue(|queue| queue.cohort_name = "all".to_owned());
            let huge = ClusterQueue { cohort_name: "all".to_owned(), ..cluster_queue("huge", used) };
            world.apply([Object::ClusterQueue(huge), Object::LocalQueue(local_queue("huge", "huge"))]);
            world.submit(Workload { queue_name: "huge".into(), ..workload("c", used) });
            assert_eq!(world.cycle().admissions.len(), 1);
            world.cycle();
            assert_eq!(is_remembered(&mut world), is_kept, "{used}");
        }
        let admission_fair_sharing = Some(AdmissionFairSharing::default());
        assert!(!is_remembered(&mut world_with(Config { admission_fair_sharing, ..Config::default() })));
    }

    #[test]
    fn a_preemptor_is_evaluated_again_once_a_victim_has_changed() {
        let mut world = World::new(Config::default());
        world.change_cluster_queue(|queue| {
            let within_cluster_queue = PreemptionPolicy::LowerPriority;
            queue.preemption = Some(Preemption { within_cluster_queue, ..Preemption::default() });
        });
        world.submit(workload("a", "6"));
        world.cycle();
        world.submit(Workload { priority: Some(1), ..workload("b", "6") });
        assert_eq!(world.cycle().preemptions.len(), 1);
        assert!(!is_remembered(&mut world), "the victim has become one that is evicted");
        assert!(is_remembered(&mut world));
        let id = world.engine.state.workloads.find("ns", "a").expect("it is there");
        world.engine.release(id, world.now);
        assert!(!is_remembered(&mut world));
    }
}
