//! Consequences of changes: controllers, jobs and checks act until nothing is left to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Simulation;
use crate::base::ids::WorkloadId;
use crate::engine::Engine;
use crate::objects::Time;

/// The external controllers that decide on AdmissionChecks, and when to ask them.
#[derive(Clone, Debug)]
pub(super) struct Asking {
    /// `spec.controllerName` of the checks on which they decide.
    controllers: Vec<String>,
    /// When time alone gives them something to say.
    wake: Option<Time>,
    /// Ask them again, even if no workload has changed.
    is_due: bool,
}

impl Simulation {
    /// External controllers with these `spec.controllerName`s decide on their AdmissionChecks from now on;
    /// [`crate::simulate::Turn::Ask`] says when. All other checks are ready at once.
    pub fn ask(&mut self, controllers: Vec<String>) {
        self.asking = Some(Asking { controllers, wake: None, is_due: true });
    }

    /// [`crate::simulate::Turn::Ask`] was answered, perhaps with nothing. `wake`: when time alone gives the controllers
    /// something to say. `again`: they have more to say once Kueue's controllers have seen that.
    pub fn answered(&mut self, wake: Option<Time>, again: bool) {
        if let Some(asking) = &mut self.asking {
            asking.wake = wake;
            asking.is_due |= again;
        }
    }

    pub(super) fn is_asked_for(&self, controller: &str) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.controllers.iter().any(|name| name == controller))
    }

    /// Something may have happened that no workload shows.
    pub(super) fn ask_anyway(&mut self) {
        if let Some(asking) = &mut self.asking {
            asking.is_due = true;
        }
    }

    /// When time alone gives the external controllers something to say; `None`: never, or it is due.
    pub fn next_wake(&self) -> Option<Time> {
        self.asking.as_ref().and_then(|asking| asking.wake)
    }

    /// The time is now `time`.
    pub(super) fn wake(&mut self, time: Time) {
        if let Some(asking) = &mut self.asking {
            asking.is_due |= asking.wake.take_if(|wake| *wake <= time).is_some();
        }
    }

    /// Runs controllers and jobs until nothing is left to do; then returns the changed workloads if external
    /// controllers must be asked about them.
    pub(super) fn settle(&mut self, engine: &mut Engine) -> Option<Vec<WorkloadId>> {
        let mut events = Vec::new();
        let mut changed = BTreeSet::new();
        self.note_usage(engine);
        self.note_losses(&mut engine.state);
        loop {
            let state = &engine.state;
            let touched = state.feeds.agenda.touched();
            let mut due: Vec<WorkloadId> = touched.collect();
            if due.is_empty() {
                let Some(more) = self.look_at_next_node(engine) else { break };
                events.extend(more);
                continue;
            }
            let key = |id: &WorkloadId| state.workloads.get(*id).key();
            due.sort_unstable_by(|a, b| key(a).cmp(key(b)));
            if self.asking.is_some() {
                changed.extend(due.iter().map(|id| (key(id).clone(), *id)));
            }
            for id in due {
                // A job sees each write before the controller's next pass.
                engine.state.pass_over(id, self.clock, &mut events);
                self.play(engine, id);
            }
        }
        self.note_usage(engine);
        if self.options.keeps_messages {
            let now = self.clock;
            Arc::make_mut(&mut self.log).events.extend(events.into_iter().map(|event| (now, event)));
        }
        let state = &mut engine.state;
        state.ledger.forest.flush(&state.names);
        let asking = self.asking.as_mut()?;
        let is_due = std::mem::take(&mut asking.is_due);
        (is_due || !changed.is_empty()).then(|| changed.into_iter().map(|(_, id)| id).collect())
    }
}
