//! The workloads that hold quota of a ClusterQueue, as candidates for preemption (rules/04 §2, §3). They stand by the
//! flavors that they use, so that a search for one flavor does not walk over those of the others.

use std::collections::{BTreeSet, btree_set};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::base::amount::Amount;
use crate::base::ids::{FlavorId, FlavorResourceId, WorkloadId};
use crate::base::names::Names;
use crate::workloads::assigned::Charged;
use crate::workloads::charge::CandidateKey;

/// All that hold quota of one ClusterQueue.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// Who uses several flavors stands with each of them.
    of_flavors: Vec<OfFlavor>,
    /// The victims of a cycle, which its later searches do not find.
    hidden: Vec<CandidateKey>,
}

/// Those that use a flavor, in the order in which they would be preempted.
#[derive(Clone, Debug)]
struct OfFlavor {
    /// `None`: they use none.
    flavor: Option<FlavorId>,
    keys: BTreeSet<CandidateKey>,
    /// What they use of it, by priority.
    sums: FxHashMap<(i64, FlavorResourceId), i128>,
}

impl Candidates {
    /// Adds one.
    pub(crate) fn insert(&mut self, names: &Names, key: CandidateKey) {
        for &flavor in &flavors(names, &key.uses) {
            let known = self.of_flavors.iter().position(|it| it.flavor == flavor);
            let at = known.unwrap_or_else(|| {
                self.of_flavors.push(OfFlavor { flavor, keys: BTreeSet::new(), sums: FxHashMap::default() });
                self.of_flavors.len() - 1
            });
            let of_flavor = &mut self.of_flavors[at];
            of_flavor.count(names, &key, 1);
            of_flavor.keys.insert(key.clone());
        }
    }

    /// Takes one out.
    pub(crate) fn remove(&mut self, names: &Names, key: &CandidateKey) {
        for &flavor in &flavors(names, &key.uses) {
            let of_flavor = self.of_flavors.iter_mut().find(|it| it.flavor == flavor);
            let of_flavor = of_flavor.expect("it stands with each of its flavors");
            if of_flavor.keys.remove(key) {
                of_flavor.count(names, key, -1);
            }
        }
    }

    /// Hides one from searches until [`Candidates::show_hidden`].
    pub(crate) fn hide(&mut self, names: &Names, key: &CandidateKey) {
        self.remove(names, key);
        self.hidden.push(key.clone());
    }

    /// Shows those again that were hidden.
    pub(crate) fn show_hidden(&mut self, names: &Names) {
        for key in std::mem::take(&mut self.hidden) {
            self.insert(names, key);
        }
    }

    /// Does one stand wherever it should?
    pub fn contains(&self, names: &Names, key: &CandidateKey) -> bool {
        let stands_with = |flavor| self.of_flavors.iter().any(|it| it.flavor == flavor && it.keys.contains(key));
        flavors(names, &key.uses).into_iter().all(stands_with)
    }

    /// All workloads, hidden or not.
    pub fn workloads(&self) -> BTreeSet<WorkloadId> {
        self.of_flavors.iter().flat_map(|it| &it.keys).chain(&self.hidden).map(|key| key.id).collect()
    }

    /// Those that use a flavor, in order.
    pub(crate) fn of_flavor(&self, flavor: FlavorId) -> btree_set::Iter<'_, CandidateKey> {
        let found = self.of_flavors.iter().find(|it| it.flavor == Some(flavor));
        found.map_or_else(btree_set::Iter::default, |it| it.keys.iter())
    }

    /// What those of some priorities use of a flavor-resource.
    pub(crate) fn sum(&self, names: &Names, fr: FlavorResourceId, is_meant: impl Fn(i64) -> bool) -> Amount {
        let flavor = names.parts(fr).0;
        let found = self.of_flavors.iter().find(|it| it.flavor == Some(flavor));
        let sums = found.into_iter().flat_map(|it| &it.sums);
        let sum: i128 = sums.filter(|((priority, of), _)| *of == fr && is_meant(*priority)).map(|(_, sum)| sum).sum();
        Amount::new(i64::try_from(sum).unwrap_or(i64::MAX))
    }
}

impl OfFlavor {
    fn count(&mut self, names: &Names, key: &CandidateKey, sign: i128) {
        for &(fr, amount) in key.uses.iter().filter(|(fr, _)| Some(names.parts(*fr).0) == self.flavor) {
            *self.sums.entry((key.priority, fr)).or_default() += sign * i128::from(amount.get());
        }
    }
}

/// The flavors of what is used; one that is none where nothing is.
fn flavors(names: &Names, uses: &Charged) -> SmallVec<[Option<FlavorId>; 1]> {
    let mut found = SmallVec::new();
    for &(fr, _) in uses.iter() {
        let flavor = Some(names.parts(fr).0);
        if !found.contains(&flavor) {
            found.push(flavor);
        }
    }
    if found.is_empty() {
        found.push(None);
    }
    found
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use crate::base::key::Key;
    use crate::objects::Time;

    /// One of this number and priority that uses as much of each of these flavors, with the flavor-resources.
    fn key(names: &mut Names, number: u32, priority: i64, flavors: &[&str]) -> CandidateKey {
        let cpu = names.resource("cpu");
        let uses = flavors.iter().map(|flavor| {
            let flavor = names.flavors.intern(*flavor);
            (names.flavor_resource(flavor, cpu), Amount::new(i64::from(number)))
        });
        CandidateKey {
            not_evicted: true,
            priority,
            reserved: Reverse(Time(0)),
            key: Key::new("ns", &number.to_string(), ""),
            id: WorkloadId(number),
            queue_time: Time(0),
            uses: uses.collect(),
        }
    }

    #[test]
    fn one_stands_with_each_flavor_that_it_uses_and_is_counted_there() {
        let mut names = Names::default();
        let mut all = Candidates::default();
        let keys = [(1, 0, &["a"][..]), (2, 5, &["a", "b"]), (3, 5, &["b"]), (4, 0, &[])];
        let keys = keys.map(|(number, priority, flavors)| key(&mut names, number, priority, flavors));
        keys.iter().for_each(|key| all.insert(&names, key.clone()));
        let seen = |all: &Candidates, names: &Names| {
            ["a", "b"].map(|name| {
                let flavor = names.flavors.find(name).expect("it was met");
                let fr = names.find_flavor_resource(flavor, names.find_resource("cpu").expect("it was met"));
                let sum = all.sum(names, fr.expect("it was met"), |priority| priority > 0).get();
                (all.of_flavor(flavor).map(|key| key.id.0).collect::<Vec<_>>(), sum)
            })
        };
        let whole = [(vec![1, 2], 2), (vec![2, 3], 5)];
        assert_eq!(seen(&all, &names), whole);
        all.hide(&names, &keys[1]);
        assert_eq!(seen(&all, &names), [(vec![1], 0), (vec![3], 3)]);
        assert_eq!(all.workloads().len(), 4, "hidden ones hold their quota");
        all.show_hidden(&names);
        assert_eq!(seen(&all, &names), whole);
        keys.iter().for_each(|key| all.remove(&names, key));
        assert_eq!(seen(&all, &names), [(vec![], 0), (vec![], 0)]);
        assert!(all.workloads().is_empty());
    }
}
