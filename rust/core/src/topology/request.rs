//! The topology request of a pod set, and what of it no topology can provide (rules/08 §2, §10).

use crate::base::changes::{Change, Changes};
use crate::base::gates::{Gate, Gates};
use crate::objects::TopologyRequest;
use crate::topology::tree::Tree;

/// A request in terms of the levels of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The level at which domains are searched first.
    pub level: usize,
    /// Must all pods be in one domain of it?
    pub required: bool,
    /// May they be anywhere?
    pub unconstrained: bool,
    /// How many pods must stay together.
    pub slice_size: i64,
    /// At which level they must.
    pub slice_level: usize,
    /// By level, how many pods of a slice must stay together in one of its domains; 1: no restriction.
    pub inner_sizes: Vec<i64>,
    /// Level and size of each layer of slices.
    pub layers: Vec<(usize, i64)>,
    /// How many pods make a last, shorter slice; 0: there is none.
    pub tail: i64,
}

impl Request {
    /// The same for a number of pods, of which those beyond whole slices may make a shorter slice (rules/08 §7.1).
    #[must_use]
    pub fn with_tail(mut self, n_pods: i64, gates: Gates) -> Self {
        if gates.enabled(Gate::TASPartialSlices) && self.layers.len() == 1 && self.slice_size > 1 {
            self.tail = n_pods % self.slice_size;
        }
        self
    }
}

/// Layers of slices, the coarsest first: label of the level, and number of pods.
pub type Layers<'a> = Vec<(&'a str, i64)>;

/// Which level a pod set requests, and how strictly, independent of a tree.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The label; `None`: none is requested.
    pub key: Option<&'a str>,
    /// See [`Request`].
    pub required: bool,
    /// See [`Request`].
    pub unconstrained: bool,
    /// The layers of slices.
    pub layers: Layers<'a>,
}

impl<'a> Wish<'a> {
    /// What a pod set requests of a topology with these levels. `implied`: it requests none itself, but its
    /// ClusterQueue has no other flavors.
    pub fn new(request: Option<&'a TopologyRequest>, implied: bool, levels: &'a [String]) -> Self {
        let highest = || levels.first().map(String::as_str);
        let lowest = || levels.last().map(String::as_str);
        let Some(request) = request else {
            let key = if implied { lowest() } else { None };
            return Self { key, required: false, unconstrained: implied, layers: Vec::new() };
        };
        let layers: Layers<'a> = request.layers().into_iter().map(|(key, size)| (key, i64::from(size))).collect();
        let unconstrained = request.unconstrained == Some(true);
        let named = request.required.as_deref().or(request.preferred.as_deref());
        let key = named.or_else(|| {
            if !layers.is_empty() {
                highest()
            } else if unconstrained || implied {
                lowest()
            } else {
                None
            }
        });
        let is_free = !layers.is_empty() && named.is_none();
        Self { key, required: request.required.is_some(), unconstrained: unconstrained || implied || is_free, layers }
    }

    /// Without the layers below the outermost, if they do not count (rules/08 §2.3).
    pub fn within(mut self, gates: Gates, changes: Changes) -> Self {
        if !gates.enabled(Gate::TASMultiLayerTopology) && !changes.has(Change::LayersNeedNoGate) {
            self.layers.truncate(1);
        }
        self
    }

    /// Does a topology have all requested levels (rules/08 §3)?
    pub fn fits_levels(&self, levels: &[String]) -> bool {
        let has = |key: &str| levels.iter().any(|level| level == key);
        self.key.is_some_and(has) && self.layers.iter().all(|layer| has(layer.0))
    }

    /// The same in terms of the levels of a tree, or why that is impossible.
    pub fn in_tree(&self, tree: &Tree) -> Result<Request, String> {
        if self.layers.first().is_some_and(|layer| layer.1 <= 0) {
            return Err("slice topology requested, but slice size not provided".to_owned());
        }
        let Some(key) = self.key else { return Err("topology level not specified".to_owned()) };
        let Some(level) = tree.level_of(key) else { return Err(format!("no requested topology level: {key}")) };
        let (slice_key, slice_size) =
            self.layers.first().copied().unwrap_or_else(|| (tree.keys[tree.named_level()].as_str(), 1));
        let Some(slice_level) = tree.level_of(slice_key) else {
            return Err(format!("no requested topology level for slices: {slice_key}"));
        };
        if slice_level < level {
            return Err(format!("podset slice topology {slice_key} is above the podset topology {key}"));
        }
        let mut inner_sizes = vec![1; tree.n_levels()];
        let mut layers = vec![(slice_level, slice_size)];
        let (mut above, mut above_key) = (slice_level, slice_key);
        let mut above_size = slice_size;
        for &(key, size) in self.layers.iter().skip(1) {
            let Some(level) = tree.level_of(key) else {
                return Err(format!("no requested topology level for additional slice layer: {key}"));
            };
            if level <= above {
                return Err(format!("additional slice layer topology {key} must be at a lower level than {above_key}"));
            }
            if size <= 0 || above_size % size != 0 {
                return Err(format!(
                    "additional slice layer size {size} must evenly divide parent layer size {above_size}"
                ));
            }
            inner_sizes[above + 1..=level].fill(size);
            layers.push((level, size));
            (above, above_key, above_size) = (level, key, size);
        }
        if self.layers.is_empty() {
            layers.clear();
        }
        let (required, unconstrained) = (self.required, self.unconstrained);
        Ok(Request { level, required, unconstrained, slice_size, slice_level, inner_sizes, layers, tail: 0 })
    }
}
