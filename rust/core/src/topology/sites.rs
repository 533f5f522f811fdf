//! The nodes of topology-aware flavors, and the usage of workloads (rules/08 §4).

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

/// The placement of a pod set, and what each of its pods takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// Its flavors, all of which are charged.
    pub flavors: SmallVec<[FlavorId; 1]>,
    /// What a pod takes, including itself.
    pub per_pod: Arc<Amounts>,
    /// The leaves, and the number of pods on each. Usually shared with the admission.
    pub place: Shared<TopologyAssignment>,
}

impl Stand {
    /// Shares the admission's placement, if it is the same.
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

/// Pod requests are shared until they are written.
impl Stored for Arc<Amounts> {
    fn write_to(&self, out: &mut Writer<'_>) {
        (**self).write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Amounts::read_from(from).map(Arc::new)
    }
}

/// Trial usage is written; everything else follows from nodes, pods and charges.
impl Stored for Sites {
    fn write_to(&self, out: &mut Writer<'_>) {
        self.log.write_to(out);
    }

    fn read_from(from: &mut Reader<'_>) -> Result<Self, Damage> {
        Ok(Self { log: Stored::read_from(from)?, is_stale: true, ..Self::default() })
    }
}

/// A flavor with known nodes.
#[derive(Clone, Debug)]
pub struct Site {
    pub flavor: Arc<ResourceFlavor>,
    pub tree: Tree,
}

/// The nodes of all topology-aware flavors.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    /// The flavors with known nodes.
    pub by_flavor: BTreeMap<FlavorId, Site>,
    /// Do the trees need a rebuild?
    pub is_stale: bool,
    /// The workloads with a placement.
    pub standing: Standing,
    /// By node, what pods take that Kueue has not placed.
    pub taken: BTreeMap<String, Amounts>,
    /// What placements cache about these nodes.
    pub seen: BTreeMap<FlavorId, Seen>,
    /// What a cycle has tried, to be undone.
    log: Vec<Tried>,
}

/// Pods of a flavor tried on a leaf, or removed from it.
#[derive(Clone, Debug)]
struct Tried {
    flavor: FlavorId,
    leaf: Arc<str>,
    per_pod: Arc<Amounts>,
    n: i64,
}

/// A point to roll usage back to.
#[derive(Clone, Copy, Debug)]
pub struct SitesMark(usize);

impl Sites {
    /// Are there any nodes?
    pub fn is_empty(&self) -> bool {
        self.by_flavor.is_empty()
    }

    /// Does this flavor have known nodes?
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

    /// Undoes what was tried since.
    pub fn rollback(&mut self, mark: SitesMark) {
        for tried in self.log.split_off(mark.0).into_iter().rev() {
            self.take(&Tried { n: -tried.n, ..tried });
        }
    }

    fn take(&mut self, tried: &Tried) {
        let Some(site) = self.by_flavor.get_mut(&tried.flavor) else { return };
        if let Some(named) = site.tree.find_by_id(&tried.leaf) {
            site.tree.occupy(named, &tried.per_pod, tried.n);
        }
    }

    /// Repeats on new trees what was tried on the old ones.
    pub fn try_again(&mut self) {
        let log = std::mem::take(&mut self.log);
        log.iter().for_each(|tried| self.take(tried));
        self.log = log;
    }

    /// Undoes all trials.
    pub fn rollback_all(&mut self) {
        self.rollback(SitesMark(0));
    }

    /// Tries adding pods. If `pools`, all flavors that share hosts see it, else only their own.
    pub fn try_with(&mut self, stands: &[Stand], pools: bool) {
        self.try_stands(stands, 1, pools, |_| true);
    }

    /// Tries removing pods, from those of their flavors that their ClusterQueue still `has`.
    pub fn try_without(&mut self, stands: &[Stand], pools: bool, has: impl Fn(FlavorId) -> bool) {
        self.try_stands(stands, -1, pools, has);
    }

    fn try_stands(&mut self, stands: &[Stand], sign: i64, pools: bool, has: impl Fn(FlavorId) -> bool) {
        for stand in stands {
            for &own in stand.flavors.iter().filter(|flavor| has(**flavor)) {
                let others = self.by_flavor.keys().filter(|_| pools);
                let others = others.filter(|other| **other != own && self.share_hosts(own, **other));
                let seen_by: SmallVec<[FlavorId; 4]> = std::iter::once(own).chain(others.copied()).collect();
                for flavor in seen_by {
                    for (leaf, n) in stand.domains() {
                        let n = sign * n;
                        let tried = Tried { flavor, leaf, per_pod: Arc::clone(&stand.per_pod), n };
                        self.take(&tried);
                        self.log.push(tried);
                    }
                }
            }
        }
    }

    /// Do the assignments of both flavors name hosts?
    pub fn share_hosts(&self, a: FlavorId, b: FlavorId) -> bool {
        self.is_by_hostname(a) && self.is_by_hostname(b)
    }

    /// Does each of these have room on its own (rules/08 §11.6)?
    pub fn have_room_for(&self, stands: &[Stand]) -> bool {
        stands.iter().all(|stand| {
            let mut template = Amounts::clone(&stand.per_pod);
            // Kueue does not count the pod itself here.
            template.entry(PODS.to_owned()).and_modify(|n| *n -= 1);
            template.retain(|name, n| name != PODS || *n > 0);
            let sites = stand.flavors.iter().filter_map(|flavor| self.by_flavor.get(flavor));
            sites.into_iter().all(|site| {
                let tree = &site.tree;
                let named = tree.named_capacity().demand(&template);
                // Each pod needs a node that takes it whole (rules/08 §11.6).
                let of_nodes = tree.bounds().map(|_| tree.capacity.demand(&template));
                stand.domains().all(|(id, n)| {
                    let Some(row) = tree.find_by_id(&id) else { return false };
                    let room = tree.named_capacity().remaining(row, true, (None, None)).fits(&named, None).0;
                    let of_nodes = of_nodes.as_ref().map(|demand| {
                        let fits = |leaf| tree.capacity.remaining(leaf, true, (None, None)).fits(demand, None).0;
                        tree.leaves_of(row).map(fits).sum::<i64>()
                    });
                    room >= n && of_nodes.is_none_or(|room| room >= n)
                })
            })
        })
    }

    /// Adds or subtracts permanent usage of workloads; if `pools`, all flavors that share hosts see it.
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
                        if let Some(named) = site.tree.find_by_id(&id) {
                            site.tree.occupy(named, &stand.per_pod, if adds { n } else { -n });
                        }
                    }
                }
            }
        }
    }
}
