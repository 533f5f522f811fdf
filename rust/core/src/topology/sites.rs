//! The nodes of topology-aware flavors, and what workloads take of them (rules/08 §4).

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::base::ids::FlavorId;
use crate::base::shared::Shared;
use crate::objects::{ResourceFlavor, TopologyAssignment, Workload};
use crate::snapshot::{Damage, Reader, Stored, Writer, stored};
use crate::topology::capacity::{Amounts, PODS};
use crate::topology::placement::{Ground, Seen};
use crate::topology::standing::Standing;
use crate::topology::tree::{Tree, id_of};

/// Where the pods of a pod set stand, and what each of them takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// Its flavors: each of them is charged.
    pub flavors: SmallVec<[FlavorId; 1]>,
    /// What a pod takes, itself included.
    pub per_pod: Arc<Amounts>,
    /// On which leaves, and how many on each. Mostly that of the admission itself, which is shared with it.
    pub place: Shared<TopologyAssignment>,
}

impl Stand {
    /// The place is that of the admission, if that has the same.
    pub(crate) fn share(&mut self, workload: &Workload) {
        let assignments = workload.status.admission.iter().flat_map(|admission| &*admission.pod_set_assignments);
        let mut places = assignments.filter_map(|assigned| assigned.topology_assignment.as_ref());
        if let Some(same) = places.find(|place| **place == self.place) {
            self.place = same.clone();
        }
    }

    /// Its leaves by id, and how many pods each has.
    pub fn domains(&self) -> impl Iterator<Item = (Arc<str>, i64)> {
        self.place.domains.iter().map(|domain| (id_of(&domain.values), i64::from(domain.count)))
    }
}

stored!(struct Stand { flavors, per_pod, place });
stored!(struct Tried { flavor, leaf, per_pod, n });

/// What pods take is shared only until it is written.
impl Stored for Arc<Amounts> {
    fn write_to(&self, out: &mut Writer<'_>) {
        (**self).write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Amounts::read_from(from).map(Arc::new)
    }
}

/// What is tried is written; all else follows from nodes, pods and charges.
impl Stored for Sites {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.log.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Ok(Self { log: Stored::read_from(from)?, is_stale: true, ..Self::default() })
    }
}

/// A flavor whose nodes are known.
#[derive(Clone, Debug)]
pub struct Site {
    /// The flavor.
    pub flavor: Arc<ResourceFlavor>,
    /// Its nodes.
    pub tree: Tree,
}

/// The nodes of all topology-aware flavors.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    /// The flavors whose nodes are known.
    pub by_flavor: BTreeMap<FlavorId, Site>,
    /// Has something changed on which the trees depend?
    pub is_stale: bool,
    /// The workloads that stand somewhere.
    pub standing: Standing,
    /// By node, what pods take of it that Kueue has not placed.
    pub taken: BTreeMap<String, Amounts>,
    /// What placements have seen of these nodes.
    pub seen: BTreeMap<FlavorId, Seen>,
    /// What a cycle has tried, to be undone.
    log: Vec<Tried>,
}

/// Pods of a flavor that were tried on a leaf, or taken off it.
#[derive(Clone, Debug)]
struct Tried {
    flavor: FlavorId,
    leaf: Arc<str>,
    per_pod: Arc<Amounts>,
    n: i64,
}

/// A point to which usage can be taken back.
#[derive(Clone, Copy, Debug)]
pub struct SitesMark(usize);

impl Sites {
    /// Is there any?
    pub fn is_empty(&self) -> bool {
        self.by_flavor.is_empty()
    }

    /// Does this flavor have nodes that are known?
    pub fn has(&self, flavor: FlavorId) -> bool {
        self.by_flavor.contains_key(&flavor)
    }

    /// The labels of a flavor's levels.
    pub fn levels(&self, flavor: FlavorId) -> Option<&[String]> {
        self.by_flavor.get(&flavor).map(|site| site.tree.keys.as_slice())
    }

    /// Are the leaves of a flavor hosts?
    pub fn is_by_hostname(&self, flavor: FlavorId) -> bool {
        self.by_flavor.get(&flavor).is_some_and(|site| site.tree.is_by_hostname())
    }

    /// The nodes on which a flavor places pods.
    pub fn ground(&self, flavor: FlavorId) -> Option<Ground<'_>> {
        let Site { flavor, tree } = self.by_flavor.get(&flavor)?;
        Some(Ground { topology: &flavor.topology_name, tree, tolerations: &flavor.tolerations })
    }

    /// The point to which [`Sites::rollback`] goes back.
    pub fn mark(&self) -> SitesMark {
        SitesMark(self.log.len())
    }

    /// Takes back what was tried since.
    pub fn rollback(&mut self, mark: SitesMark) {
        for tried in self.log.split_off(mark.0).into_iter().rev() {
            self.take(&Tried { n: -tried.n, ..tried });
        }
    }

    fn take(&mut self, tried: &Tried) {
        let Some(site) = self.by_flavor.get_mut(&tried.flavor) else { return };
        if let Some(leaf) = site.tree.find_leaf_by_id(&tried.leaf) {
            site.tree.capacity.take(leaf, &tried.per_pod, tried.n);
        }
    }

    /// Tries again on new trees what was tried on those before.
    pub fn try_again(&mut self) {
        let log = std::mem::take(&mut self.log);
        log.iter().for_each(|tried| self.take(tried));
        self.log = log;
    }

    /// Takes back all that was tried.
    pub fn rollback_all(&mut self) {
        self.rollback(SitesMark(0));
    }

    /// Tries what it is like with pods there. Only their own flavors see it, even where others have the same nodes.
    pub fn try_with(&mut self, stands: &[Stand]) {
        self.try_stands(stands, 1, |_| true);
    }

    /// Tries what it is like without pods there, on those flavors of theirs that their ClusterQueue still `has`.
    pub fn try_without(&mut self, stands: &[Stand], has: impl Fn(FlavorId) -> bool) {
        self.try_stands(stands, -1, has);
    }

    fn try_stands(&mut self, stands: &[Stand], sign: i64, has: impl Fn(FlavorId) -> bool) {
        for stand in stands {
            for &flavor in stand.flavors.iter().filter(|flavor| has(**flavor)) {
                for (leaf, n) in stand.domains() {
                    let n = sign * n;
                    let tried = Tried { flavor, leaf, per_pod: Arc::clone(&stand.per_pod), n };
                    self.take(&tried);
                    self.log.push(tried);
                }
            }
        }
    }

    /// Is there room for each of these by itself (rules/08 §11.6)?
    pub fn have_room_for(&self, stands: &[Stand]) -> bool {
        stands.iter().all(|stand| {
            let mut template = Amounts::clone(&stand.per_pod);
            template.remove(PODS);
            let sites = stand.flavors.iter().filter_map(|flavor| self.by_flavor.get(flavor));
            sites.into_iter().all(|site| {
                let demand = site.tree.capacity.demand(&template);
                stand.domains().all(|(id, n)| {
                    let leaf = site.tree.find_leaf_by_id(&id);
                    leaf.is_some_and(|leaf| {
                        site.tree.capacity.remaining(leaf, true, (None, None)).fits(&demand, None).0 >= n
                    })
                })
            })
        })
    }

    /// What workloads have taken for good, or given back; all flavors that share hosts see it if `pools`.
    pub fn charge(&mut self, stands: &[Stand], adds: bool, pools: bool) {
        for stand in stands {
            for flavor in &stand.flavors {
                let Some(of_hosts) = self.by_flavor.get(flavor).map(|site| site.tree.is_by_hostname()) else {
                    continue;
                };
                let seen_by = |(id, site): &(&FlavorId, &mut Site)| {
                    *id == flavor || (pools && of_hosts && site.tree.is_by_hostname())
                };
                for (_, site) in self.by_flavor.iter_mut().filter(seen_by) {
                    for (id, n) in stand.domains() {
                        if let Some(leaf) = site.tree.find_leaf_by_id(&id) {
                            site.tree.capacity.take(leaf, &stand.per_pod, if adds { n } else { -n });
                        }
                    }
                }
            }
        }
    }
}
