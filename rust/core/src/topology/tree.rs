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
#[derive(Clone, Debug)]
pub struct Tree {
    /// The label of each level, the coarsest first.
    pub keys: Vec<String>,
    levels: Vec<Level>,
    /// For each leaf, its first node by name.
    nodes: Vec<Arc<Node>>,
    by_id: FxHashMap<Arc<str>, u32>,
    /// Capacity and usage of the leaves.
    pub capacity: Capacity,
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
    /// The node.
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
    /// The domains of these nodes, which are sorted by name and have a value for each level.
    pub fn new<'a>(keys: &[String], offers: impl IntoIterator<Item = Offer<'a>>, changes: Changes) -> Self {
        let by_hostname = ends_with_hostname(keys);
        let mut leaves: BTreeMap<Vec<String>, (Arc<Node>, Amounts)> = BTreeMap::new();
        let mut path_of_host: FxHashMap<String, Vec<String>> = FxHashMap::default();
        for Offer { node, taken } in offers {
            let mut path: Vec<String> = keys.iter().map(|key| node.meta.labels[key].clone()).collect();
            if by_hostname {
                // Nodes with one hostname are one domain, whatever their other labels.
                let host = path.last().cloned().unwrap_or_default();
                path = path_of_host.entry(host).or_insert(path).clone();
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
        let mut levels: Vec<Level> = vec![Level::default(); keys.len()];
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
        let nodes: Vec<Arc<Node>> = leaves.into_values().map(|(node, _)| node).collect();
        let mut tree = Self { keys: keys.to_vec(), levels, nodes, by_id: FxHashMap::default(), capacity, changes };
        tree.by_id = (0..tree.n_leaves()).map(|leaf| (id_of(&tree.assigned_values(leaf)), narrow(leaf))).collect();
        tree
    }

    /// The number of levels.
    pub fn n_levels(&self) -> usize {
        self.levels.len()
    }

    /// The lowest level.
    pub fn lowest(&self) -> usize {
        self.levels.len() - 1
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

    /// Is each leaf one host?
    pub fn is_by_hostname(&self) -> bool {
        ends_with_hostname(&self.keys)
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

    /// The values by which an assignment names a leaf: its hostname alone, or all levels.
    pub fn assigned_values(&self, leaf: Row) -> SmallVec<[Arc<str>; 1]> {
        if self.is_by_hostname() {
            return [Arc::clone(&self.levels[self.lowest()].values[leaf])].into();
        }
        self.values(self.lowest(), leaf).cloned().collect()
    }

    /// The labels of the levels that an assignment names.
    pub fn assigned_keys(&self) -> &[String] {
        if self.is_by_hostname() { &self.keys[self.lowest()..] } else { &self.keys }
    }

    /// The leaf that an assignment names.
    pub fn find_leaf(&self, values: &[Arc<str>]) -> Option<Row> {
        self.find_leaf_by_id(&id_of(values))
    }

    /// The same by its id, the joined values.
    pub fn find_leaf_by_id(&self, id: &str) -> Option<Row> {
        self.by_id.get(id).map(|&leaf| leaf as Row)
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
