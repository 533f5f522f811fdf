//! The workloads that hold quota of a ClusterQueue, as candidates for preemption (rules/04 §2, §3). They are indexed by
//! flavor, so that a search for one flavor skips those of the others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::base::amount::Amount;
use crate::base::ids::{FlavorId, FlavorResourceId, WorkloadId};
use crate::base::names::Names;
use crate::base::shared::Shared;
use crate::base::sorted::{self, Sorted};
use crate::workloads::assigned::Charged;
use crate::workloads::charge::CandidateKey;

/// A flavor with this many candidates keeps sums of their usage; with fewer, they are added up on demand.
const MANY: usize = 64;

/// All workloads that hold quota of one ClusterQueue.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    /// A workload that uses several flavors is listed under each.
    of_flavors: SmallVec<[OfFlavor; 1]>,
    /// Those that use no flavor.
    idle: BTreeSet<WorkloadId>,
    /// The victims of a cycle, hidden from its later searches: listed nowhere else.
    hidden: BTreeSet<WorkloadId>,
}

/// Users of a flavor, in the order in which they would be preempted.
#[derive(Clone, Debug)]
struct OfFlavor {
    flavor: FlavorId,
    keys: Sorted<CandidateKey>,
    /// Their usage by priority; kept once there were [`MANY`].
    sums: Option<Box<Sums>>,
}

impl Default for Shared<Candidates> {
    fn default() -> Self {
        Candidates::default().into()
    }
}

type Sums = FxHashMap<(i64, FlavorResourceId), i128>;

impl Candidates {
    /// Adds a candidate.
    pub(crate) fn insert(&mut self, names: &Names, key: &CandidateKey) {
        for flavor in flavors(names, &key.uses) {
            let known = self.of_flavors.iter().position(|it| it.flavor == flavor);
            let at = known.unwrap_or_else(|| {
                self.of_flavors.push(OfFlavor { flavor, keys: Sorted::default(), sums: None });
                self.of_flavors.len() - 1
            });
            self.of_flavors[at].insert(names, key.clone());
        }
        if key.uses.is_empty() {
            self.idle.insert(key.id);
        }
    }

    /// Removes a candidate.
    pub(crate) fn remove(&mut self, names: &Names, key: &CandidateKey) {
        if self.hidden.remove(&key.id) {
            return;
        }
        for flavor in flavors(names, &key.uses) {
            let of_flavor = self.of_flavors.iter_mut().find(|it| it.flavor == flavor);
            of_flavor.expect("it stands with each of its flavors").remove(names, key);
        }
        if key.uses.is_empty() {
            self.idle.remove(&key.id);
        }
    }

    /// Gives a candidate another key; one that is hidden is listed under it once it is shown.
    pub(crate) fn rank(&mut self, names: &Names, old: &CandidateKey, new: &CandidateKey) {
        if !self.hidden.contains(&old.id) {
            self.remove(names, old);
            self.insert(names, new);
        }
    }

    /// Hides a candidate from searches until [`Candidates::show_hidden`].
    pub(crate) fn hide(&mut self, names: &Names, key: &CandidateKey) {
        self.remove(names, key);
        self.hidden.insert(key.id);
    }

    /// The hidden candidates.
    pub(crate) fn hidden(&self) -> &BTreeSet<WorkloadId> {
        &self.hidden
    }

    /// Shows the hidden candidates again, under the keys that they have now.
    pub(crate) fn show_hidden<'a>(&mut self, names: &Names, key: impl Fn(WorkloadId) -> &'a CandidateKey) {
        for id in std::mem::take(&mut self.hidden) {
            self.insert(names, key(id));
        }
    }

    /// Is the candidate listed everywhere it should be?
    pub fn contains(&self, names: &Names, key: &CandidateKey) -> bool {
        let stands_with = |flavor| self.of_flavors.iter().any(|it| it.flavor == flavor && it.keys.contains(key));
        flavors(names, &key.uses).all(stands_with) && key.uses.is_empty() == self.idle.contains(&key.id)
    }

    /// All workloads, hidden or not.
    pub fn workloads(&self) -> BTreeSet<WorkloadId> {
        let listed = self.of_flavors.iter().flat_map(|it| &it.keys).map(|key| key.id);
        listed.chain(self.idle.iter().chain(&self.hidden).copied()).collect()
    }

    /// Users of a flavor, in order.
    pub(crate) fn of_flavor(&self, flavor: FlavorId) -> sorted::Iter<'_, CandidateKey> {
        let found = self.of_flavors.iter().find(|it| it.flavor == flavor);
        found.map_or_else(sorted::Iter::default, |it| it.keys.iter())
    }

    /// The usage of a flavor-resource by candidates of some priorities.
    pub(crate) fn sum(&self, names: &Names, fr: FlavorResourceId, is_meant: impl Fn(i64) -> bool) -> Amount {
        let flavor = names.parts(fr).0;
        let Some(of_flavor) = self.of_flavors.iter().find(|it| it.flavor == flavor) else { return Amount::ZERO };
        let sums = match &of_flavor.sums {
            Some(sums) => Cow::Borrowed(&**sums),
            None => Cow::Owned(of_flavor.sums(names)),
        };
        let meant = sums.iter().filter(|((priority, of), _)| *of == fr && is_meant(*priority));
        Amount::new(i64::try_from(meant.map(|(_, sum)| sum).sum::<i128>()).unwrap_or(i64::MAX))
    }

    /// Do the kept sums match the candidates?
    pub fn sums_hold(&self, names: &Names) -> bool {
        let holds = |it: &OfFlavor| {
            let some = |sums: &Sums| -> BTreeMap<_, _> {
                sums.iter().filter(|it| *it.1 != 0).map(|it| (*it.0, *it.1)).collect()
            };
            it.sums.as_ref().is_none_or(|sums| some(sums) == some(&it.sums(names)))
        };
        self.of_flavors.iter().all(holds)
    }
}

impl OfFlavor {
    fn insert(&mut self, names: &Names, key: CandidateKey) {
        if let Some(sums) = &mut self.sums {
            count(sums, names, self.flavor, &key, 1);
        }
        self.keys.insert(key);
        if self.keys.len() == MANY && self.sums.is_none() {
            self.sums = Some(Box::new(self.sums(names)));
        }
    }

    fn remove(&mut self, names: &Names, key: &CandidateKey) {
        let was_there = self.keys.remove(key);
        debug_assert!(was_there, "what is taken out was put in");
        if let Some(sums) = &mut self.sums {
            count(sums, names, self.flavor, key, -1);
        }
    }

    fn sums(&self, names: &Names) -> Sums {
        let mut sums = Sums::default();
        self.keys.iter().for_each(|key| count(&mut sums, names, self.flavor, key, 1));
        sums
    }
}

/// Adds a candidate's usage of a flavor, or subtracts it.
fn count(sums: &mut Sums, names: &Names, flavor: FlavorId, key: &CandidateKey, sign: i128) {
    for &(fr, amount) in key.uses.iter().filter(|(fr, _)| names.parts(*fr).0 == flavor) {
        *sums.entry((key.priority, fr)).or_default() += sign * i128::from(amount.get());
    }
}

/// The flavors used, each once.
fn flavors(names: &Names, uses: &Charged) -> impl Iterator<Item = FlavorId> {
    let flavor = |used: &(FlavorResourceId, Amount)| names.parts(used.0).0;
    let is_new = move |&(index, used): &(usize, _)| uses[..index].iter().all(|before| flavor(before) != flavor(used));
    uses.iter().enumerate().filter(is_new).map(move |(_, used)| flavor(used))
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use crate::base::key::Key;
    use crate::objects::Time;

    /// A candidate with this number and priority, with equal usage of each flavor, and the flavor-resources.
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
            uid_prefix: 0,
            key: Key::new("ns", &number.to_string(), ""),
            id: WorkloadId(number),
            queue_time: Time(0),
            uses: uses.collect(),
        }
    }

    #[test]
    fn a_candidate_is_listed_and_counted_under_each_of_its_flavors() {
        let mut names = Names::default();
        let mut all = Candidates::default();
        let keys = [(1, 0, &["a"][..]), (2, 5, &["a", "b"]), (3, 5, &["b"]), (4, 0, &[])];
        let keys = keys.map(|(number, priority, flavors)| key(&mut names, number, priority, flavors));
        keys.iter().for_each(|key| all.insert(&names, key));
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
        all.show_hidden(&names, |_| &keys[1]);
        assert_eq!(seen(&all, &names), whole);
        keys.iter().for_each(|key| all.remove(&names, key));
        assert_eq!(seen(&all, &names), [(vec![], 0), (vec![], 0)]);
        assert!(all.workloads().is_empty());
    }

    #[test]
    fn sums_are_the_same_whether_they_are_kept_or_not() {
        let mut names = Names::default();
        let (mut few, mut many) = (Candidates::default(), Candidates::default());
        let keys: Vec<_> = (0..80).map(|n| key(&mut names, n, i64::from(n % 3), &["a"])).collect();
        keys.iter().for_each(|key| many.insert(&names, key));
        keys[20..].iter().for_each(|key| few.insert(&names, key));
        keys[..20].iter().for_each(|key| many.remove(&names, key));
        assert!(many.of_flavors[0].sums.is_some() && few.of_flavors[0].sums.is_none());
        let fr = keys[0].uses[0].0;
        for limit in 0..4 {
            let below = |all: &Candidates| all.sum(&names, fr, |priority| priority < limit);
            assert_eq!(below(&many), below(&few));
        }
        assert!(many.sums_hold(&names));
    }
}
