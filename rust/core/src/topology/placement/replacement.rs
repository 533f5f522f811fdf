//! Moves pods from a failed host to others (rules/08 §13.5).

use crate::base::changes::Change;
use crate::base::gates::{Gate, Gates};
use crate::objects::{TopologyAssignment, TopologyDomain, TopologyRequest};
use crate::topology::capacity::Row;
use crate::topology::placement::slice_order::Slices;
use crate::topology::placement::{Ask, Assumed, Ground, Places, Seen, Terms};
use crate::topology::request::Wish;

/// The leaves in which lost pods must stay, and the request there if it is less than that of the pod set.
pub(super) struct Within<'a> {
    pub(super) leaf: Box<dyn Fn(Row) -> bool + 'a>,
    pub(super) request: Option<TopologyRequest>,
}

impl<'a> Ground<'a> {
    /// Moves pods from a failed host (rules/08 §13.5); returns whether there is no place for them.
    pub(super) fn replace(
        &self,
        group: &[&Ask<'a>],
        terms: Terms<'_>,
        assumed: &mut Assumed,
        places: &mut Places,
        (uid, seen): (&str, &mut Seen),
    ) -> bool {
        for ask in group {
            let Some(current) = ask.current else { continue };
            if terms.stays {
                places.push((ask.index, Ok(current.clone())));
                continue;
            }
            match self.replaced(ask, current, terms, assumed, (uid, &mut *seen)) {
                Ok((moved, whole)) => {
                    self.assume(assumed, &moved, ask.requests);
                    places.push((ask.index, Ok(whole)));
                }
                Err(reason) => {
                    places.push((ask.index, Err(reason)));
                    return true;
                }
            }
        }
        false
    }

    fn replaced(
        &self,
        ask: &Ask<'a>,
        current: &TopologyAssignment,
        terms: Terms<'_>,
        assumed: &Assumed,
        seen: (&str, &mut Seen),
    ) -> Result<(TopologyAssignment, TopologyAssignment), String> {
        let host = terms.unhealthy.unwrap_or_default();
        let is_lost = |domain: &&TopologyDomain| domain.values.last().is_some_and(|value| **value == *host);
        let n_lost = current.domains.iter().rfind(is_lost).map_or(0, |domain| i64::from(domain.count));
        let domains = current.domains.iter().filter(|domain| !is_lost(domain)).cloned().collect();
        let rest = TopologyAssignment { levels: current.levels.clone(), domains };
        if let Some(stale) = self.stale_domain(&rest) {
            let stale = stale.values.first().map_or("", |value| &**value);
            return Err(format!(
                "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale \
                 domain {stale}"
            ));
        }
        let within = self.replacement_domain(ask, &rest, n_lost, terms.gates)?;
        let moved = self.find(ask, None, n_lost, terms, assumed, within.as_ref(), seen)?.workers;
        if moved.domains.is_empty() {
            return Err(format!("cannot find replacement assignment for unhealthy node: {host}"));
        }
        let mut whole = self.merged(&moved, &rest);
        if let Some(slices) = self.slices_of(ask).filter(|_| terms.gates.enabled(Gate::TASPartialSlices)) {
            self.put_tail_last(&mut whole, slices);
            if !self.has_whole_slices(&whole, slices) {
                return Err(format!("cannot replace the node {host} without splitting a PodSet slice"));
            }
        }
        Ok((moved, whole))
    }

    /// The outermost slices that a pod set requests, if they have more than one pod.
    fn slices_of(&self, ask: &Ask<'_>) -> Option<Slices> {
        let wish = Wish::new(ask.pod_set.topology_request.as_deref(), ask.is_implied, &self.tree.keys);
        let &(key, size) = wish.layers.first().filter(|layer| layer.1 > 1)?;
        Some((self.tree.level_of(key)?, size))
    }

    /// Where lost pods must go: to complete their slice, or to stay in the required domain.
    fn replacement_domain(
        &self,
        ask: &Ask<'a>,
        rest: &TopologyAssignment,
        n_lost: i64,
        gates: Gates,
    ) -> Result<Option<Within<'a>>, String> {
        let tree = self.tree;
        let request = ask.pod_set.topology_request.as_deref();
        let wish = Wish::new(request, ask.is_implied, &tree.keys);
        if wish.layers.first().is_some_and(|layer| layer.1 <= 0) {
            return Err("slice topology requested, but slice size not provided".to_owned());
        }
        let Some(level) = wish.key.and_then(|key| tree.level_of(key)).filter(|_| !rest.domains.is_empty()) else {
            return Ok(None);
        };
        if let Some(&(_, size)) = wish.layers.first().filter(|layer| n_lost % layer.1 != 0) {
            let divides = |layer: &&(&'a str, i64)| layer.1 > 0 && n_lost % layer.1 == 0;
            let broken = if wish.layers.len() > 1 {
                wish.layers.iter().rev().find(|layer| !divides(layer))
            } else {
                wish.layers.first()
            };
            let &(key, size) = broken.unwrap_or(&(wish.layers[0].0, size));
            let Some(of_slice) = tree.level_of(key) else { return Ok(None) };
            let has_tail = gates.enabled(Gate::TASPartialSlices);
            let Some(row) = self.incomplete_slice(rest, of_slice, (n_lost, size), has_tail) else {
                let nowhere = || Within { leaf: Box::new(|_| false), request: None };
                return Ok(tree.changes.has(Change::LostDomainStopsReplacement).then(nowhere));
            };
            // Only the smallest slices that the lost pods fill are kept whole.
            let kept = wish.layers.iter().rev().find(divides);
            let part = request.map(|request| TopologyRequest {
                constraints: Vec::new(),
                slice_required_topology: kept.map(|layer| layer.0.to_owned()),
                slice_size: Some(kept.map_or(1, |layer| i32::try_from(layer.1).unwrap_or(i32::MAX))),
                ..request.clone()
            });
            return Ok(Some(Within { leaf: self.leaves_of(of_slice, row), request: part }));
        }
        if !wish.required {
            return Ok(None);
        }
        let first = rest.domains.first().and_then(|domain| tree.find(&domain.values));
        let row = first.map(|row| tree.ancestor(tree.named_level(), row, level));
        Ok(row.map(|row| Within { leaf: self.leaves_of(level, row), request: None }))
    }

    /// The domain in which the remaining and the lost pods make whole slices, or in the last one whole slices and a
    /// shorter one.
    fn incomplete_slice(
        &self,
        rest: &TopologyAssignment,
        level: usize,
        (n_lost, size): (i64, i64),
        has_tail: bool,
    ) -> Option<Row> {
        let mut pods = self.pods_above(rest, level);
        let (mut tail, mut last) = (0, None);
        if has_tail && size > 0 {
            let all: i64 = pods.iter().map(|it| it.1).sum();
            (tail, last) = ((all + n_lost) % size, pods.last().map(|it| it.0));
        } else {
            pods.sort_unstable();
        }
        let expected = |row: Row| if Some(row) == last { tail } else { 0 };
        pods.into_iter().find(|&(row, n)| size > 0 && (n + n_lost) % size == expected(row)).map(|it| it.0)
    }

    /// Kueue compares full paths with the id of the domain, which for a host below other levels is just its name: then
    /// none matches.
    fn leaves_of(&self, level: usize, row: Row) -> Box<dyn Fn(Row) -> bool + 'a> {
        let tree = self.tree;
        if level == tree.lowest() && tree.is_by_hostname() && tree.n_levels() > 1 {
            return Box::new(|_| false);
        }
        let leaves = tree.below(level, row, tree.lowest());
        Box::new(move |leaf| leaves.contains(&leaf))
    }
}
