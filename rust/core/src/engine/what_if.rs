//! What would happen to a workload in the next cycle: evaluated on the journalled quota, then rolled back.

use std::sync::Arc;

use thiserror::Error;

use crate::assign::Assignment;
use crate::base::ids::{QueueId, WorkloadId};
use crate::base::shared::Shared;
use crate::engine::Engine;
use crate::objects::{Admission, Time, Workload};
use crate::schedule::decision::{Preempted, Undecided};
use crate::schedule::entry::EntryStatus;
use crate::schedule::round::Round;
use crate::state::State;
use crate::status::admissible::is_admissible;

/// The outcome for a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It would get quota.
    Fits,
    /// It would get quota after preemptions.
    Preempts,
    /// It would stay pending.
    Waits,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Fits => "Fits",
            Outcome::Preempts => "Preempts",
            Outcome::Waits => "Waits",
        }
    }
}

#[derive(Clone, Debug)]
pub struct WhatIf {
    pub outcome: Outcome,
    /// The ClusterQueue in which it would wait; empty if there is none.
    pub queue: String,
    /// The quota that it would get, at once or after its preemptions.
    pub admission: Option<Shared<Admission>>,
    /// The preemptions it would need.
    pub preemptions: Vec<Preempted>,
    /// The granular reason of its condition QuotaReserved; empty if there is none to write.
    pub reason: String,
    /// Kueue's message.
    pub message: String,
    /// How many workloads of the ClusterQueue are ahead of it.
    pub n_ahead: usize,
    /// What is missing, if no decision can be made.
    pub undecided: Option<Undecided>,
}

/// Errors of a what-if.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WhatIfError {
    /// A workload of this name exists.
    #[error("Workload {0}/{1} exists: ask about one that is not there yet")]
    Exists(String, String),
}

impl Engine {
    /// What would happen to a workload if it were applied now and were the only head of the next cycle. Changes
    /// nothing.
    ///
    /// # Errors
    /// A workload of this name exists.
    pub fn what_if(&mut self, workload: Workload, now: Time) -> Result<WhatIf, WhatIfError> {
        let state = &mut self.state;
        let meta = &workload.meta;
        if state.workloads.find(meta.key.namespace(), meta.key.name()).is_some() {
            return Err(WhatIfError::Exists(meta.key.namespace().to_owned(), meta.key.name().to_owned()));
        }
        let before = std::mem::replace(&mut state.now, now);
        state.settle_before_look();
        let id = state.store_workload(workload);
        let (answer, _) = state.consider(id);
        let record = state.workloads.remove(id);
        state.local_queues[record.row.local_queue].workloads.remove(id);
        state.feeds.agenda.forget(id);
        state.now = before;
        Ok(answer)
    }
}

impl State {
    /// The outcome, and the assignment behind it.
    pub(super) fn consider(&mut self, id: WorkloadId) -> (WhatIf, Option<Arc<Assignment>>) {
        let may_queue = is_admissible(&self.workloads.get(id).workload, self.config.gates);
        let queue = self.queue_of(id);
        let mut answer = WhatIf {
            outcome: Outcome::Waits,
            queue: queue.map_or_else(String::new, |queue| self.names.queues[queue].to_string()),
            admission: None,
            preemptions: Vec::new(),
            reason: String::new(),
            message: String::new(),
            n_ahead: 0,
            undecided: None,
        };
        let may_queue = may_queue && !self.is_refused(id);
        let mut assignment = None;
        match queue.filter(|queue| may_queue && self.queues[*queue].is_active()) {
            Some(queue) => assignment = self.consider_as_head(id, queue, &mut answer),
            None => {
                if let Some((reason, message)) = self.explain_unreserved(id) {
                    (answer.reason, answer.message) = (reason, message);
                }
            }
        }
        (answer, assignment)
    }

    fn consider_as_head(&mut self, id: WorkloadId, queue: QueueId, answer: &mut WhatIf) -> Option<Arc<Assignment>> {
        let pending = &self.queues[queue].pending;
        answer.n_ahead = pending.n_before(&pending.key(&self.item(id)));
        let Round { mut entries, not_nominated: mut refused, mut cycle, .. } = self.nominate(vec![(queue, id, None)]);
        if let Some(entry) = entries.first_mut() {
            self.process(entry, false, &mut cycle);
        }
        self.take_back(&mut cycle);
        answer.undecided = cycle.decision.undecided.pop();
        let entry = entries.pop().or_else(|| refused.pop())?;
        answer.reason = entry.reason.to_owned();
        answer.message = entry.message.to_string();
        if entry.status == EntryStatus::Assumed {
            answer.outcome = Outcome::Fits;
            answer.admission = cycle.assumed.pop().map(|assumed| assumed.admission);
            let reserved = cycle.decision.events.iter().find(|event| event.reason == "QuotaReserved");
            answer.message = reserved.map_or_else(String::new, |event| event.text().to_string());
        } else if !cycle.preemptions.is_empty() {
            answer.outcome = Outcome::Preempts;
            answer.admission = Some(self.admission(&entry).0);
            let targets = cycle.preemptions.iter();
            answer.preemptions = targets.map(|(target, ..)| self.preempted(*target, id, queue).0).collect();
        }
        entry.assignment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::config::Config;
    use crate::objects::{ConditionStatus, Kind, Node, NodeReady, Object, Preemption, PreemptionPolicy};
    use crate::testing::hosts::{self, node, pods};
    use crate::testing::{World, at, cluster_queue, workload};

    fn world() -> World {
        let mut world = World::new(Config::default());
        world.change_cluster_queue(|queue| {
            queue.preemption =
                Some(Preemption { within_cluster_queue: PreemptionPolicy::LowerPriority, ..Preemption::default() });
        });
        world.submit(workload("a", "6"));
        world.cycle();
        world
    }

    fn ask(world: &mut World, workload: Workload) -> WhatIf {
        let before = format!("{:?}", world.engine.state.workloads.iter().collect::<Vec<_>>());
        let answer = world.engine.what_if(workload, at(20)).expect("a new name");
        assert_eq!(format!("{:?}", world.engine.state.workloads.iter().collect::<Vec<_>>()), before);
        answer
    }

    #[test]
    fn a_workload_fits_preempts_or_waits_and_nothing_changes() {
        let mut world = world();
        let fits = ask(&mut world, workload("b", "3"));
        assert_eq!((fits.outcome, fits.n_ahead), (Outcome::Fits, 0));
        assert!(fits.admission.is_some() && fits.preemptions.is_empty());
        let preempts = ask(&mut world, Workload { priority: Some(9), ..workload("b", "6") });
        assert_eq!(preempts.outcome, Outcome::Preempts);
        assert_eq!(preempts.preemptions[0].key.name(), "a");
        let waits = ask(&mut world, workload("b", "6"));
        assert_eq!((waits.outcome, waits.reason.as_str()), (Outcome::Waits, "WaitingForQuota"));
        let again = ask(&mut world, workload("b", "3"));
        assert_eq!((again.outcome, again.message), (fits.outcome, fits.message));
    }

    #[test]
    fn a_workload_that_cannot_be_queued_gets_a_reason() {
        let mut world = world();
        let lost = ask(&mut world, Workload { queue_name: "nowhere".into(), ..workload("b", "1") });
        assert_eq!((lost.outcome, lost.message.as_str()), (Outcome::Waits, "LocalQueue nowhere doesn't exist"));
        let error = world.engine.what_if(workload("a", "1"), at(20)).expect_err("a is there");
        assert_eq!(error, WhatIfError::Exists("ns".to_owned(), "a".to_owned()));
    }

    #[test]
    fn a_what_if_on_an_admitted_workload_leaves_no_trace() {
        let mut world = world();
        let mut asked = workload("b", "1");
        asked.status.admission = Some(Admission { cluster_queue: "later".into(), ..Admission::default() }.into());
        ask(&mut world, asked);
        world.apply([Object::ClusterQueue(cluster_queue("later", "1"))]);
        assert_eq!(world.cycle().admissions.len(), 0);
    }

    #[test]
    fn workloads_ahead_are_counted() {
        let mut world = world();
        world.submit(workload("w", "9"));
        world.cycle();
        assert_eq!(ask(&mut world, workload("x", "9")).n_ahead, 1);
        assert_eq!(ask(&mut world, Workload { priority: Some(1), ..workload("x", "9") }).n_ahead, 0);
    }

    #[test]
    fn a_question_sees_nodes_before_any_cycle() {
        let mut world = hosts::world();
        assert_eq!(ask(&mut world, pods("w", 4)).outcome, Outcome::Fits);
        assert_eq!(ask(&mut world, pods("w", 5)).outcome, Outcome::Waits);
    }

    #[test]
    fn a_question_sees_what_has_happened_to_nodes_since_the_last_cycle() {
        fn put(world: &mut World, node: Node) {
            world.apply([Object::Node(node)]);
        }
        type Change = fn(&mut World);
        let changes: [(&str, Change); 6] = [
            ("deleted", |world| world.delete(Kind::Node, "b")),
            ("cordoned", |world| put(world, Node { unschedulable: true, ..node("b", "4") })),
            ("smaller", |world| put(world, node("b", "2"))),
            ("without the label of its level", |world| {
                let mut unlabelled = node("b", "4");
                unlabelled.meta.labels.clear();
                put(world, unlabelled);
            }),
            ("not ready", |world| {
                let ready = NodeReady { status: ConditionStatus::False, since: at(10) };
                put(world, Node { ready: Some(ready), ..node("b", "4") });
            }),
            ("its topology is gone", |world| world.delete(Kind::Topology, "hosts")),
        ];
        for (what, change) in changes {
            let mut world = hosts::world();
            world.submit(pods("a", 4));
            world.submit(pods("later", 4));
            assert_eq!(world.cycle().admissions.len(), 1);
            assert_eq!(ask(&mut world, pods("w", 4)).outcome, Outcome::Fits, "{what}");
            change(&mut world);
            let mut other = World { engine: world.engine.fork(), now: world.now };
            assert_eq!(ask(&mut world, pods("w", 4)).outcome, Outcome::Waits, "{what}");
            let explained = other.engine.explain("ns", "later", at(20)).expect("it is there");
            assert_eq!(explained.what_if.outcome, Outcome::Waits, "{what}");
        }
    }

    #[test]
    fn a_second_question_finds_the_nodes_up_to_date() {
        let mut world = hosts::world();
        world.submit(pods("w", 4));
        assert!(world.engine.state.nodes.sites.is_stale);
        world.engine.explain("ns", "w", at(20));
        assert!(!world.engine.state.nodes.sites.is_stale, "not only the copy on which it is explained");
        world.apply([Object::Node(node("c", "9"))]);
        ask(&mut world, pods("x", 1));
        assert!(!world.engine.state.nodes.sites.is_stale);
    }
}
