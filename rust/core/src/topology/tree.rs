//! The domains of a flavor's nodes as dense rows, in the order of their names (rules/08 §4).

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::base::changes::Changes;
use crate::objects::{ConditionStatus, Node, StringMap};
use crate::pods::values;
use crate::topology::capacity::{Amounts, Capacity, Row};

/// The label whose value is unique to every node.
pub const HOSTNAME: &str = "kubernetes.io/hostname";

/// The domains of one flavor and what their nodes offer. A leaf is a domain of the lowest level.
///
/// An assignment names domains of the last level that the Topology has. If that is not the hostname, the nodes may be one
/// more level below, which nothing names.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The label of each level of the Topology, the coarsest first.
    pub keys: Vec<String>,
    levels: Vec<Level>,
    /// For each leaf, its first node by name.
    nodes: Vec<Arc<Node>>,
    /// The domains that an assignment may name.
    by_id: FxHashMap<Arc<str>, u32>,
    /// Capacity of the leaves, and their usage by workloads if assignments name them.
    pub capacity: Capacity,
    /// With nodes below the domains that assignments name, capacity and usage of those domains.
    bounds: Option<Capacity>,
    /// What the release does.
    pub changes: Changes,
}

/// The domains of one level, in path order.
#[derive(Clone, Debug, Default)]
struct Level {
    values: Vec<Arc<str>>,
    /// 32-bit rows: there are as many as leaves.
    parents: Vec<u32>,
    /// Where the children of each start in the next level, and where the last ones end; empty in the lowest level.
    first_children: Vec<u32>,
}

/// A node of the flavor, and what pods take of it that Kueue has not placed.
pub struct Offer<'a> {
    pub node: &'a Arc<Node>,
    /// The sum of their requests, including their number.
    pub taken: Option<&'a Amounts>,
}

/// Does a node belong to a flavor with these labels and levels (rules/08 §4.1)?
///
/// `any_condition`: accept nodes that are not ready or unschedulable; that is checked later.
pub fn belongs(node: &Node, labels: &StringMap, levels: &[String], any_condition: bool) -> bool {
    let is_usable = || node.ready.as_ref().is_some_and(|it| it.status == ConditionStatus::True) && !node.unschedulable;
    labels.iter().all(|(key, value)| node.meta.labels.get(key) == Some(value))
        && levels.iter().all(|key| node.meta.labels.contains_key(key))
        && (any_condition || is_usable())
}

impl Tree {
    /// The domains of these nodes, which are sorted by name and have a value for each level. `to_nodes`: the leaves are
    /// nodes, even if the last level is not the hostname.
    pub fn new<'a>(
        keys: &[String],
        offers: impl IntoIterator<Item = Offer<'a>>,
        changes: Changes,
        to_nodes: bool,
    ) -> Self {
        let by_hostname = ends_with_hostname(keys);
        let adds_level = to_nodes && !by_hostname;
        let mut leaves: BTreeMap<Vec<String>, (Arc<Node>, Amounts)> = BTreeMap::new();
        let mut path_of_host: FxHashMap<String, Vec<String>> = FxHashMap::default();
        for Offer { node, taken } in offers {
            let mut path: Vec<String> = keys.iter().map(|key| node.meta.labels[key].clone()).collect();
            if by_hostname {
                // Nodes with one hostname are one domain, whatever their other labels.
                let host = path.last().cloned().unwrap_or_default();
                path = path_of_host.entry(host).or_insert(path).clone();
            }
            if adds_level {
                // Not by label: nodes that share a hostname stay apart (rules/08 §4.2).
                path.push(node.meta.name.clone());
            }
            let (_, offered) = leaves.entry(path).or_insert_with(|| (Arc::clone(node), Amounts::new()));
            for (resource, value) in values(&node.allocatable) {
                let sum = offered.entry(resource).or_default();
                *sum = sum.wrapping_add(value);
            }
            for (resource, value) in taken.into_iter().flatten() {
                let sum = offered.entry(resource.clone()).or_default();
                *sum = sum.wrapping_sub(*value);
            }
        }
        let mut levels: Vec<Level> = vec![Level::default(); keys.len() + usize::from(adds_level)];
        let mut last: &[String] = &[];
        for path in leaves.keys() {
            let n_same = path.iter().zip(last).take_while(|(a, b)| a == b).count();
            for depth in n_same..path.len() {
                let parent = depth.checked_sub(1).map_or(0, |above| levels[above].values.len() - 1);
                let first_child = levels.get(depth + 1).map(|below| below.values.len());
                let level = &mut levels[depth];
                level.values.push(path[depth].as_str().into());
                level.parents.push(narrow(parent));
                level.first_children.extend(first_child.map(narrow));
            }
            last = path;
        }
        for depth in 0..levels.len() {
            let end = levels.get(depth + 1).map(|below| below.values.len());
            let Level { values, parents, first_children } = &mut levels[depth];
            first_children.extend(end.map(narrow));
            values.shrink_to_fit();
            parents.shrink_to_fit();
            first_children.shrink_to_fit();
        }
        let capacity = Capacity::new(leaves.values().map(|(_, offered)| offered), changes);
        let by_id = FxHashMap::default();
        let mut tree = Self { keys: keys.to_vec(), levels, nodes: Vec::new(), by_id, capacity, bounds: None, changes };
        if adds_level {
            tree.bounds = Some(tree.sums(leaves.values().map(|(_, offered)| offered)));
        }
        tree.nodes = leaves.into_values().map(|(node, _)| node).collect();
        let n_named = tree.n_domains(tree.named_level());
        tree.by_id = (0..n_named).map(|row| (id_of(&tree.assigned_values(row)), narrow(row))).collect();
        tree
    }

    /// The capacity of the domains that assignments name, from that of their nodes.
    fn sums<'a>(&self, offers: impl Iterator<Item = &'a Amounts>) -> Capacity {
        let level = self.named_level();
        let mut sums = vec![Amounts::new(); self.n_domains(level)];
        for (leaf, offered) in offers.enumerate() {
            let of_domain = &mut sums[self.parent_of(level + 1, leaf)];
            for (resource, value) in offered {
                let sum = of_domain.entry(resource.clone()).or_default();
                *sum = sum.wrapping_add(*value);
            }
        }
        Capacity::new(sums.iter(), self.changes)
    }

    /// The number of levels.
    pub fn n_levels(&self) -> usize {
        self.levels.len()
    }

    /// The lowest level.
    pub fn lowest(&self) -> usize {
        self.levels.len() - 1
    }

    /// The level of the domains that assignments name: the last of the Topology.
    pub fn named_level(&self) -> usize {
        self.keys.len() - 1
    }

    /// The number of leaves.
    pub fn n_leaves(&self) -> usize {
        self.nodes.len()
    }

    /// The number of domains of a level.
    pub fn n_domains(&self, level: usize) -> usize {
        self.levels[level].values.len()
    }

    /// The level with this label.
    pub fn level_of(&self, key: &str) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }

    /// Do assignments name hosts?
    pub fn is_by_hostname(&self) -> bool {
        ends_with_hostname(&self.keys)
    }

    /// Is each leaf one node, with labels and taints of its own?
    pub fn has_nodes(&self) -> bool {
        self.is_by_hostname() || self.bounds.is_some()
    }

    /// With nodes below the domains that assignments name, capacity and usage of those domains.
    pub fn bounds(&self) -> Option<&Capacity> {
        self.bounds.as_ref()
    }

    /// Capacity and usage of the domains that assignments name.
    pub fn named_capacity(&self) -> &Capacity {
        self.bounds.as_ref().unwrap_or(&self.capacity)
    }

    /// Adds the usage of some pods to a domain that an assignment names; a negative number subtracts it.
    pub fn occupy(&mut self, named: Row, requests: &Amounts, n_pods: i64) {
        self.bounds.as_mut().unwrap_or(&mut self.capacity).take(named, requests, n_pods);
    }

    /// Subtracts what pods outside Kueue take of a leaf. Returns whether all these resources are known; otherwise
    /// nothing changes.
    #[must_use]
    pub fn take_outside(&mut self, leaf: Row, amounts: &Amounts, n_pods: i64) -> bool {
        if !self.capacity.take_outside(leaf, amounts, n_pods) {
            return false;
        }
        if self.bounds.is_some() {
            let named = self.parent_of(self.lowest(), leaf);
            // All resources of nodes are known above them.
            return self.bounds.as_mut().is_none_or(|bounds| bounds.take_outside(named, amounts, n_pods));
        }
        true
    }

    /// The children of a domain, in the next level.
    pub fn children(&self, level: usize, row: Row) -> Range<Row> {
        self.children_of(level, row..row + 1)
    }

    /// The children of adjacent domains.
    fn children_of(&self, level: usize, rows: Range<Row>) -> Range<Row> {
        let first = &self.levels[level].first_children;
        first[rows.start] as Row..first[rows.end] as Row
    }

    /// The parent of a domain, in the level above.
    fn parent_of(&self, level: usize, row: Row) -> Row {
        self.levels[level].parents[row] as Row
    }

    /// The domain of a higher level that contains a domain.
    pub fn ancestor(&self, level: usize, row: Row, above: usize) -> Row {
        (above + 1..=level).rev().fold(row, |row, level| self.parent_of(level, row))
    }

    /// The domains of a lower level in a domain.
    pub fn below(&self, level: usize, row: Row, lower: usize) -> Range<Row> {
        (level..lower).fold(row..row + 1, |rows, level| self.children_of(level, rows))
    }

    /// The values of a domain from the top.
    pub fn path(&self, level: usize, row: Row) -> Vec<&str> {
        self.values(level, row).map(|value| &**value).collect()
    }

    fn values(&self, level: usize, row: Row) -> impl Iterator<Item = &Arc<str>> {
        (0..=level).map(move |above| &self.levels[above].values[self.ancestor(level, row, above)])
    }

    /// The values by which an assignment names a domain: its hostname alone, or all levels.
    pub fn assigned_values(&self, named: Row) -> SmallVec<[Arc<str>; 1]> {
        if self.is_by_hostname() {
            return [Arc::clone(&self.levels[self.lowest()].values[named])].into();
        }
        self.values(self.named_level(), named).cloned().collect()
    }

    /// The labels of the levels that an assignment names.
    pub fn assigned_keys(&self) -> &[String] {
        if self.is_by_hostname() { &self.keys[self.lowest()..] } else { &self.keys }
    }

    /// The domain that an assignment names, in [`Tree::named_level`].
    pub fn find(&self, values: &[Arc<str>]) -> Option<Row> {
        self.find_by_id(&id_of(values))
    }

    /// The same by its id, the joined values.
    pub fn find_by_id(&self, id: &str) -> Option<Row> {
        self.by_id.get(id).map(|&row| row as Row)
    }

    /// The leaf of a node of the flavor.
    pub fn leaf_of(&self, node: &Node) -> Option<Row> {
        let values: SmallVec<[Arc<str>; 4]> =
            self.assigned_keys().iter().map(|key| node.meta.labels[key].as_str().into()).collect();
        let named = self.find(&values)?;
        if self.bounds.is_none() {
            return Some(named);
        }
        let leaves = self.children(self.named_level(), named);
        let names = &self.levels[self.lowest()].values[leaves.clone()];
        let at = names.binary_search_by(|name| (**name).cmp(&node.meta.name)).ok()?;
        Some(leaves.start + at)
    }

    /// The domain that names a leaf in an assignment.
    pub fn named_of(&self, leaf: Row) -> Row {
        self.ancestor(self.lowest(), leaf, self.named_level())
    }

    /// The leaves in a domain that an assignment names.
    pub fn leaves_of(&self, named: Row) -> Range<Row> {
        self.below(self.named_level(), named, self.lowest())
    }

    /// The node whose labels and taints count for a leaf.
    pub fn node(&self, leaf: Row) -> &Node {
        &self.nodes[leaf]
    }
}

/// Is the lowest level the hostname?
pub fn ends_with_hostname(keys: &[String]) -> bool {
    keys.last().is_some_and(|key| key == HOSTNAME)
}

/// The id of a domain by its values; for a host, its name.
pub fn id_of(values: &[Arc<str>]) -> Arc<str> {
    match values {
        [only] => Arc::clone(only),
        _ => values.join(",").into(),
    }
}

fn narrow(row: Row) -> u32 {
    u32::try_from(row).expect("not 4 billion nodes")
}
