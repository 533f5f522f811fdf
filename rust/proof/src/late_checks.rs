//! Admission checks that take time in recorded runs. They are asked like any controller of checks.

use kueuecore::base::ids::WorkloadId;
use kueuecore::engine::Engine;
use kueuecore::objects::conditions::{EVICTED, QUOTA_RESERVED, find_true};
use kueuecore::objects::{AdmissionCheckState, CheckState, Object, PodSetUpdate, StringMap, Time, Workload};
use kueuecore::simulate::Simulation;
use kueuecore::status::stage::is_finished;
use serde_json::{Value, json};

use super::values::{entries, items};

const SECOND_NS: f64 = 1e9;

/// What a case says about checks, by name.
pub(super) struct LateChecks<'a> {
    plans: &'a Value,
    /// When the next one is ready.
    wake: Option<Time>,
}

impl<'a> LateChecks<'a> {
    /// They decide on all checks of the case; `None`: all of them are ready at once.
    pub(super) fn of(case: &'a Value, simulation: &mut Simulation) -> Option<Self> {
        let plans = &case["config"]["admissionChecks"];
        entries(plans).next()?;
        let checks = items(&case["objects"]).iter().filter(|it| it["kind"] == "AdmissionCheck");
        let controllers = checks.filter_map(|it| it["spec"]["controllerName"].as_str());
        simulation.ask(controllers.map(str::to_owned).collect());
        Some(Self { plans, wake: None })
    }

    /// All checks of a workload are ready once the longest of their times has passed since it got quota. A check due
    /// while cycles follow one another waits, unless something happens to the workload.
    pub(super) fn answer(&mut self, engine: &mut Engine, simulation: &mut Simulation, asked: &[WorkloadId]) {
        let now = simulation.now();
        let rung = self.wake.take().filter(|_| simulation.next_wake().is_none());
        let state = &engine.state;
        let mut waits: Vec<(WorkloadId, Time)> =
            state.workloads.iter().filter_map(|(id, it)| Some((id, self.ready_at(&it.workload)?))).collect();
        waits.retain(|(id, at)| {
            let is_ready = *at <= now && (asked.contains(id) || rung.is_some_and(|rung| *at <= rung));
            if !is_ready {
                self.wake = Some(self.wake.map_or(*at, |wake| wake.min(*at)));
            }
            is_ready
        });
        let answered = waits.into_iter().map(|(id, _)| self.answered(state.workload_object(id), now));
        let answered: Vec<Object> = answered.map(|it| Object::Workload(Box::new(it))).collect();
        let any = !answered.is_empty();
        if any {
            engine.apply(answered, now);
        }
        simulation.answered(self.wake, any);
    }

    fn ready_at(&self, workload: &Workload) -> Option<Time> {
        let conditions = &workload.status.conditions;
        let since = find_true(conditions, QUOTA_RESERVED)?.last_transition;
        if find_true(conditions, EVICTED).is_some() || is_finished(workload) {
            return None;
        }
        let pending = workload.status.rare.admission_checks.iter().filter(|check| is_pending(check));
        let spans = pending.map(|check| self.plans[&check.name]["seconds"].as_f64().unwrap_or_default());
        let longest = spans.reduce(f64::max)?;
        Some(Time(since.0 + (longest * SECOND_NS) as i64))
    }

    fn answered(&self, mut workload: Workload, now: Time) -> Workload {
        let names: Vec<String> = workload.pod_sets.iter().map(|pod_set| pod_set.name.clone()).collect();
        for check in workload.status.rare.admission_checks.iter_mut().filter(|check| is_pending(check)) {
            check.state = CheckState::Ready;
            "Ready at once".clone_into(&mut check.message);
            check.last_transition = now;
            let selector = &self.plans[&check.name]["nodeSelector"];
            let labels: StringMap =
                entries(selector).filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
            if !labels.is_empty() {
                let update = |name: &String| PodSetUpdate {
                    name: name.clone(),
                    node_selector: labels.clone(),
                    ..PodSetUpdate::default()
                };
                check.updates = names.iter().map(update).collect();
                let shown = names.iter().map(|name| json!({"name": name, "nodeSelector": selector}));
                check.pod_set_updates = shown.collect::<Value>().to_string();
            }
        }
        workload
    }
}

fn is_pending(check: &AdmissionCheckState) -> bool {
    check.state == CheckState::Pending
}
