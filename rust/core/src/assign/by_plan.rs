//! Assignment with a plan.

use std::sync::Arc;

use super::assignment::Assignment;
use super::modes::{GranularMode, PreemptionMode};
use super::plan::{Found, Plan, ScanPlan, Scanned};
use super::trial::Trial;
use super::{Oracle, Resume, Row, Tree, Usage};

impl Plan {
    /// Assigns flavors to a workload at full counts, as [`super::assign`] does.
    pub fn assign(
        self: &Arc<Self>,
        tree: &mut Tree,
        row: Row,
        resume: Option<&Resume>,
        oracle: &mut dyn Oracle,
    ) -> Assignment {
        let mut found = Found::default();
        found.trials.reserve_exact(self.n_requests);
        let (mut usage, mut borrowing, mut is_fit) = (Usage::default(), 0, !self.pod_sets.is_empty());
        for (index, pod_set) in self.pod_sets.iter().enumerate() {
            let resume = resume.filter(|_| self.fungible);
            let n_before = found.scans.len();
            let mut has_flavors = !pod_set.scans.is_empty();
            for scan in &pod_set.scans {
                let start = resume.map_or(0, |resume| resume.next_index(index, scan.lead()));
                let mode = self.scan(scan, start, &usage, (tree, row), &mut found, oracle);
                is_fit &= mode == PreemptionMode::Fit;
                if found.scans.last().is_some_and(|scanned| scanned.chosen.is_none()) {
                    has_flavors = false;
                    break;
                }
            }
            if pod_set.unavailable.is_some() {
                (has_flavors, is_fit) = (false, false);
            }
            if has_flavors {
                for (scan, &scanned) in pod_set.scans.iter().zip(&found.scans[n_before..]) {
                    let Some((chosen, at)) = scanned.chosen else { continue };
                    for (request, trial) in scan.requests.iter().zip(&found.trials[at as usize..]) {
                        usage.add(scan.group(self).pair(chosen as usize, request.covered()), request.units);
                        borrowing = borrowing.max(trial.level);
                    }
                }
            } else if !pod_set.requests.is_empty() {
                break;
            }
        }
        if is_fit {
            return Assignment::by_plan(Arc::clone(self), found, usage, borrowing);
        }
        Assignment::new(self.unfold(&found), usage, borrowing).with_reason(&self.rules, self.observing)
    }

    /// One scan over the flavors of a group (rules/03 §4). Returns the result of the chosen flavor; a group without
    /// flavors left is not recorded, and does not count against the pod set.
    fn scan(
        &self,
        scan: &ScanPlan,
        start: usize,
        assumed: &Usage,
        (tree, row): (&mut Tree, Row),
        found: &mut Found,
        oracle: &mut dyn Oracle,
    ) -> PreemptionMode {
        let (group, n_requests) = (scan.group(self), scan.requests.len());
        let n_flavors = group.flavors.len();
        let fungibility = &self.rules.fungibility;
        let (mut chosen, mut best, mut end) = (None, GranularMode::WORST, start.min(n_flavors));
        for index in start..n_flavors {
            end = index + 1;
            if scan.refusal(index).is_some() {
                continue;
            }
            let at = found.trials.len();
            if found.trials.capacity() - at < n_requests {
                // Usually one flavor is enough; after a second one, reserve room for all.
                found.trials.reserve_exact(self.n_trials - at);
            }
            let mut worst = GranularMode::BEST;
            for request in &scan.requests {
                let ask = request.ask(group, index, assumed);
                let trial = Trial::new(ask, (tree, row), self.preempts_while_borrowing, oracle);
                found.trials.push(trial);
                worst = worst.or_worse(trial.mode(), fungibility);
            }
            let (is_better, is_last) = worst.compare(best, fungibility, self.fungible);
            if is_better {
                (chosen, best) = (Some((index as u32, at as u32)), worst);
            }
            if is_last {
                break;
            }
        }
        found.scans.push(Scanned { start: start.min(n_flavors) as u32, end: end as u32, chosen });
        if end == start.min(n_flavors) { PreemptionMode::Fit } else { best.preemption }
    }
}

#[cfg(test)]
mod tests;
