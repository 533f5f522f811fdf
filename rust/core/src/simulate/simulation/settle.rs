//! What follows from changes: controllers, jobs and checks act until nothing follows any more.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Simulation;
use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::engine::Engine;
use crate::objects::Time;

/// Who is asked about workloads, because they decide on AdmissionChecks outside of the run.
#[derive(Debug)]
pub(super) struct Asking {
    /// `spec.controllerName` of the checks on which they decide.
    controllers: Vec<String>,
    /// When time alone gives them something to say.
    wake: Option<Time>,
    /// Ask once more, also where no workload has changed.
    is_due: bool,
}

impl Simulation {
    /// From now on somebody outside decides on the AdmissionChecks of these `spec.controllerName`s: [`crate::simulate::Turn::Ask`]
    /// says when. All others are ready at once.
    pub fn ask(&mut self, controllers: Vec<String>) {
        self.asking = Some(Asking { controllers, wake: None, is_due: true });
    }

    /// An answer to [`crate::simulate::Turn::Ask`] was given, or there was none. `wake`: when time alone gives them something to
    /// say. `again`: they have more to say once the controllers have seen that.
    pub fn answered(&mut self, wake: Option<Time>, again: bool) {
        if let Some(asking) = &mut self.asking {
            asking.wake = wake;
            asking.is_due |= again;
        }
    }

    pub(super) fn is_asked_for(&self, controller: &str) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.controllers.iter().any(|name| name == controller))
    }

    /// Something may have happened of which no workload tells.
    pub(super) fn ask_anyway(&mut self) {
        if let Some(asking) = &mut self.asking {
            asking.is_due = true;
        }
    }

    /// When time alone gives those something to say who are asked; `None`: never, or it has come.
    pub fn next_wake(&self) -> Option<Time> {
        self.asking.as_ref().and_then(|asking| asking.wake)
    }

    /// Time has come up to `time`.
    pub(super) fn wake(&mut self, time: Time) {
        if let Some(asking) = &mut self.asking {
            asking.is_due |= asking.wake.take_if(|wake| *wake <= time).is_some();
        }
    }

    /// Controllers and jobs do what follows, until nothing follows any more; then somebody may have to be asked about the
    /// workloads that have changed.
    pub(super) fn settle(&mut self, engine: &mut Engine) -> Option<Vec<WorkloadId>> {
        let mut events = Vec::new();
        let mut changed = BTreeSet::new();
        self.note_usage(engine);
        self.note_losses(&mut engine.state);
        loop {
            let state = &engine.state;
            let touched = state.agenda.touched();
            let mut due: Vec<(Key, WorkloadId)> =
                touched.map(|id| (state.workloads.get(id).key().clone(), id)).collect();
            if due.is_empty() {
                let Some(more) = self.look_at_next_node(engine) else { break };
                events.extend(more);
                continue;
            }
            due.sort();
            for (_, id) in &due {
                // A job hears of each write before the controller looks at it again.
                engine.state.pass_over(*id, self.clock, &mut events);
                self.play(engine, *id);
            }
            if self.asking.is_some() {
                changed.extend(due);
            }
        }
        self.note_usage(engine);
        if self.options.keeps_messages {
            let now = self.clock;
            Arc::make_mut(&mut self.log).events.extend(events.into_iter().map(|event| (now, event)));
        }
        let state = &mut engine.state;
        state.forest.flush(&state.names);
        let asking = self.asking.as_mut()?;
        let is_due = std::mem::take(&mut asking.is_due);
        (is_due || !changed.is_empty()).then(|| changed.into_iter().map(|(_, id)| id).collect())
    }
}
