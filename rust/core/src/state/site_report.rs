//! Capacity and usage of domains, and the placement of pods, for callers (rules/08 §4).

use std::collections::BTreeMap;
use std::ops::Range;

use crate::pods::values;
use crate::state::State;
use crate::status::stage::Stage;
use crate::topology::capacity::{Amounts, Row};
use crate::topology::sites::Site;

/// Capacity of one domain of a flavor's nodes. Amounts as in placement: milli-units of `cpu`, whole units of the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCapacity {
    pub flavor: String,
    /// Its Topology.
    pub topology: String,
    /// The label of the level.
    pub level: String,
    /// The values from the top level down to this domain.
    pub path: Vec<String>,
    /// How many nodes of the flavor are in it.
    pub n_nodes: usize,
    /// By resource.
    pub resources: BTreeMap<String, Room>,
}

/// Capacity of a resource, and its usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// What the nodes offer.
    pub allocatable: i64,
    /// What pods not placed by Kueue take.
    pub outside: i64,
    /// What placed workloads take.
    pub used: i64,
}

impl Room {
    /// What is left; may be negative.
    #[must_use]
    pub fn free(&self) -> i64 {
        self.allocatable.wrapping_sub(self.outside).wrapping_sub(self.used)
    }

    fn add(&mut self, other: Room) {
        self.allocatable = self.allocatable.wrapping_add(other.allocatable);
        self.outside = self.outside.wrapping_add(other.outside);
        self.used = self.used.wrapping_add(other.used);
    }
}

/// The placement of a pod set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Namespace and name of the workload.
    pub workload: (String, String),
    /// The pod set.
    pub pod_set: String,
    /// Its flavor; if several, the one whose nodes are known.
    pub flavor: String,
    /// The labels of the levels of the flavor's topology; none if its nodes are not known.
    pub levels: Vec<String>,
    /// The domains and the number of pods in each.
    pub domains: Vec<PlacedPods>,
}

/// A number of pods in one domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedPods {
    /// What the assignment says: the hostname alone, or a value for each level.
    pub values: Vec<String>,
    /// A value for each level; `None`: no node of the flavor is there now.
    pub path: Option<Vec<String>>,
    /// The number of pods.
    pub count: i64,
}

impl State {
    /// Capacity of every domain of every flavor with known nodes: flavors by name, then levels from the top, then
    /// domains in path order.
    pub fn domain_capacities(&mut self) -> Vec<DomainCapacity> {
        self.refresh_sites();
        let mut sites: Vec<&Site> = self.nodes.sites.by_flavor.values().collect();
        sites.sort_by_key(|site| &site.flavor.meta.name);
        sites.into_iter().flat_map(|site| self.capacities_of(site)).collect()
    }

    fn capacities_of(&self, site: &Site) -> Vec<DomainCapacity> {
        let tree = &site.tree;
        let offers = self.offers_of(site);
        let room_of = |leaf: Row| {
            let (offered, _) = &offers[leaf];
            tree.capacity.amounts(leaf).map(move |(resource, free, used)| {
                let allocatable = offered.get(resource).copied().unwrap_or(0);
                (resource, Room { allocatable, outside: allocatable.wrapping_sub(free), used })
            })
        };
        let used_in = |named: Row| {
            let of_bound = tree.bounds().into_iter().flat_map(move |bounds| bounds.amounts(named));
            of_bound.map(|(resource, _, used)| (resource, Room { used, ..Room::default() }))
        };
        let domain = |level: usize, row: Row| {
            let leaves: Range<Row> = tree.below(level, row, tree.lowest());
            let mut resources: BTreeMap<String, Room> = BTreeMap::new();
            let named = tree.below(level, row, tree.named_level());
            for (resource, room) in leaves.clone().flat_map(room_of).chain(named.flat_map(used_in)) {
                match resources.get_mut(resource) {
                    Some(sum) => sum.add(room),
                    None => _ = resources.insert(resource.to_owned(), room),
                }
            }
            DomainCapacity {
                flavor: site.flavor.meta.name.clone(),
                topology: site.flavor.topology_name.clone(),
                level: tree.keys[level].clone(),
                path: tree.path(level, row).into_iter().map(str::to_owned).collect(),
                n_nodes: leaves.map(|leaf| offers[leaf].1).sum(),
                resources,
            }
        };
        let levels = (0..tree.keys.len()).flat_map(|level| (0..tree.n_domains(level)).map(move |row| (level, row)));
        levels.map(|(level, row)| domain(level, row)).collect()
    }

    /// For each leaf, what its nodes offer and how many there are.
    fn offers_of(&self, site: &Site) -> Vec<(Amounts, usize)> {
        let mut offers = vec![(Amounts::new(), 0); site.tree.n_leaves()];
        for node in self.nodes.cluster.nodes().filter(|node| self.is_of(node, &site.flavor, &site.tree.keys)) {
            let leaf = site.tree.leaf_of(node).expect("the tree has all nodes of its flavor");
            let (offered, n_nodes) = &mut offers[leaf];
            *n_nodes += 1;
            for (resource, value) in values(&node.allocatable) {
                let sum = offered.entry(resource).or_default();
                *sum = sum.wrapping_add(value);
            }
        }
        offers
    }

    /// Placement of the pods of all workloads with quota and a topology assignment: by namespace and name, then in the
    /// order of their pod sets.
    pub fn placements(&mut self) -> Vec<Placement> {
        self.refresh_sites();
        let mut placed: Vec<_> = self.nodes.sites.standing.workloads().map(|id| self.workloads.get(id)).collect();
        placed.retain(|record| Stage::of(&record.workload).holds_quota());
        placed.sort_by(|a, b| a.key().cmp(b.key()));
        let mut placements = Vec::new();
        for record in placed {
            let Some(admission) = &record.workload.status.admission else { continue };
            for assigned in admission.pod_set_assignments.iter() {
                let Some(place) = &assigned.topology_assignment else { continue };
                let site_of = |flavor: &String| {
                    let id = self.names.flavors.find(flavor.as_str())?;
                    self.nodes.sites.by_flavor.get(&id)
                };
                let site = assigned.flavors.values().find_map(site_of);
                let flavor = site.map(|site| &site.flavor.meta.name).or_else(|| assigned.flavors.values().next());
                let domains = place.domains.iter().map(|domain| {
                    let tree = site.map(|site| &site.tree);
                    let row = tree.and_then(|tree| Some((tree, tree.find(&domain.values)?)));
                    let path = row.map(|(tree, row)| tree.path(tree.named_level(), row));
                    PlacedPods {
                        values: domain.values.iter().map(|value| value.to_string()).collect(),
                        path: path.map(|path| path.into_iter().map(str::to_owned).collect()),
                        count: i64::from(domain.count),
                    }
                });
                placements.push(Placement {
                    workload: (record.key().namespace().to_owned(), record.key().name().to_owned()),
                    pod_set: assigned.name.to_string(),
                    flavor: flavor.cloned().unwrap_or_default(),
                    levels: site.map(|site| site.tree.keys.clone()).unwrap_or_default(),
                    domains: domains.collect(),
                });
            }
        }
        placements
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use crate::testing::hosts::{pods, world};

    #[test]
    fn a_host_reports_allocatable_and_used_capacity() {
        let mut world = world();
        world.submit(pods("w", 3));
        world.cycle();
        let state = &mut world.engine.state;
        let hosts = state.domain_capacities();
        let paths: Vec<_> = hosts.iter().map(|it| (it.path.join("/"), it.n_nodes)).collect();
        assert_eq!(paths, [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        let cpu = |used| Room { allocatable: 4000, outside: 0, used };
        assert_eq!([hosts[0].resources["cpu"], hosts[1].resources["cpu"]], [cpu(3000), cpu(0)]);
        assert_eq!(hosts[0].resources["cpu"].free(), 1000);
        let placements = state.placements();
        let domains: Vec<_> = placements[0].domains.iter().map(|it| (it.path.clone(), it.count)).collect();
        assert_eq!(domains, [(Some(vec!["a".to_owned()]), 3)]);
    }
}
