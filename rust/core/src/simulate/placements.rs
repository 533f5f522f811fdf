//! A log of where and when pods were placed, in columns.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::objects::{PodSetAssignment, Time};
use crate::snapshot::{Damage, Reader, stored};

/// The index of a domain's levels, and its value at each of them.
pub type Domain = (u32, SmallVec<[Arc<str>; 1]>);

/// The placements of a run, in order of time. The rows of one workload at one time are one placement, which holds until
/// the next one or until the job stops.
#[derive(Clone, Debug, Default)]
pub struct PlacementLog {
    pub rows: PlacementRows,
    /// Node labels, the widest level first.
    pub levels: Vec<Vec<String>>,
    /// Each domain once.
    pub domains: Vec<Domain>,
    /// The index of each in `domains`.
    places: FxHashMap<Domain, u32>,
}

/// One row per domain.
#[derive(Clone, Debug, Default)]
pub struct PlacementRows {
    /// When, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// Which workload, by its number in the run.
    pub workloads: Vec<u32>,
    /// The index of the pod set in the admission.
    pub pod_sets: Vec<u32>,
    /// The domain, as an index into `domains`.
    pub domains: Vec<u32>,
    /// How many pods.
    pub counts: Vec<i32>,
}

/// A position in a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlacementMark {
    n_rows: usize,
    n_levels: usize,
    n_domains: usize,
}

/// What was added to it.
pub(super) struct PlacementPart {
    rows: PlacementRows,
    levels: Vec<Vec<String>>,
    domains: Vec<Domain>,
}

stored!(struct PlacementRows { times, workloads, pod_sets, domains, counts });
stored!(struct PlacementPart { rows, levels, domains });

impl PlacementLog {
    /// Records where the pods of a workload are, from its admission.
    pub(super) fn push(&mut self, time: Time, workload: u32, assignments: &[PodSetAssignment]) {
        for (pod_set, assigned) in assignments.iter().enumerate() {
            let Some(assignment) = &assigned.topology_assignment else { continue };
            let levels = self.find_levels(&assignment.levels);
            for domain in &assignment.domains {
                let place = self.find_domain((levels, domain.values.clone()));
                self.rows.times.push(time.0);
                self.rows.workloads.push(workload);
                self.rows.pod_sets.push(index(pod_set));
                self.rows.domains.push(place);
                self.rows.counts.push(domain.count);
            }
        }
    }

    fn find_levels(&mut self, levels: &[String]) -> u32 {
        // There are only as many as topologies.
        let known = self.levels.iter().position(|known| known == levels);
        index(known.unwrap_or_else(|| {
            self.levels.push(levels.to_vec());
            self.levels.len() - 1
        }))
    }

    fn find_domain(&mut self, domain: Domain) -> u32 {
        if let Some(place) = self.places.get(&domain) {
            return *place;
        }
        let place = index(self.domains.len());
        self.domains.push(domain.clone());
        self.places.insert(domain, place);
        place
    }

    /// The current position.
    pub(super) fn mark(&self) -> PlacementMark {
        PlacementMark { n_rows: self.rows.times.len(), n_levels: self.levels.len(), n_domains: self.domains.len() }
    }

    /// What was added since a mark.
    pub(super) fn part(&self, since: PlacementMark) -> PlacementPart {
        let n = since.n_rows;
        let rows = PlacementRows {
            times: self.rows.times[n..].to_vec(),
            workloads: self.rows.workloads[n..].to_vec(),
            pod_sets: self.rows.pod_sets[n..].to_vec(),
            domains: self.rows.domains[n..].to_vec(),
            counts: self.rows.counts[n..].to_vec(),
        };
        let (levels, domains) = (self.levels[since.n_levels..].to_vec(), self.domains[since.n_domains..].to_vec());
        PlacementPart { rows, levels, domains }
    }

    /// Appends a part.
    ///
    /// # Errors
    /// [`Damage`]: it does not match the number of workloads of the run.
    pub(super) fn add(&mut self, part: PlacementPart, n_workloads: usize, from: &Reader<'_>) -> Result<(), Damage> {
        let PlacementPart { rows, levels, domains } = part;
        self.levels.extend(levels);
        for domain in domains {
            let levels = self.levels.get(domain.0 as usize);
            let is_whole = levels.is_some_and(|levels| levels.len() == domain.1.len());
            let is_new = !self.places.contains_key(&domain);
            from.check(is_whole && is_new, "a domain without levels, or twice")?;
            self.find_domain(domain);
        }
        let PlacementRows { times, workloads, pod_sets, domains, counts } = rows;
        let lengths = [workloads.len(), pod_sets.len(), domains.len(), counts.len()];
        let known = |all: &[u32], n: usize| all.iter().all(|it| (*it as usize) < n);
        let is_known = known(&workloads, n_workloads) && known(&domains, self.domains.len());
        from.check(lengths == [times.len(); 4] && is_known, "placements that are not whole")?;
        self.rows.times.extend(times);
        self.rows.workloads.extend(workloads);
        self.rows.pod_sets.extend(pod_sets);
        self.rows.domains.extend(domains);
        self.rows.counts.extend(counts);
        Ok(())
    }
}

fn index(n: usize) -> u32 {
    u32::try_from(n).expect("fewer than 2^32 domains")
}

#[cfg(test)]
mod tests;
