//! A log of nodes that were lost or came back, in columns.

use rustc_hash::FxHashMap;

use crate::objects::Time;
use crate::snapshot::{Damage, Reader, stored};

/// The losses and returns of nodes in a run, in order of time.
#[derive(Clone, Debug, Default)]
pub struct NodeLog {
    /// When, in nanoseconds since 1970.
    pub times: Vec<i64>,
    /// Which node, as an index into `names`.
    pub nodes: Vec<u32>,
    /// 1: it was lost; 0: it is back.
    pub losses: Vec<u8>,
    /// The names of the nodes, each once.
    pub names: Vec<String>,
    /// The index of each in `names`.
    places: FxHashMap<String, u32>,
}

/// What was added to it.
pub(super) struct NodePart {
    times: Vec<i64>,
    nodes: Vec<u32>,
    losses: Vec<u8>,
    names: Vec<String>,
}

stored!(struct NodePart { times, nodes, losses, names });

impl NodeLog {
    pub(super) fn push(&mut self, time: Time, node: &str, is_lost: bool) {
        let node = match self.places.get(node) {
            Some(place) => *place,
            None => self.name(node.to_owned()),
        };
        self.times.push(time.0);
        self.nodes.push(node);
        self.losses.push(u8::from(is_lost));
    }

    fn name(&mut self, name: String) -> u32 {
        let place = u32::try_from(self.names.len()).expect("fewer than 2^32 nodes");
        self.names.push(name.clone());
        self.places.insert(name, place);
        place
    }

    /// The rows and names from these on.
    pub(super) fn part(&self, n: usize, n_names: usize) -> NodePart {
        NodePart {
            times: self.times[n..].to_vec(),
            nodes: self.nodes[n..].to_vec(),
            losses: self.losses[n..].to_vec(),
            names: self.names[n_names..].to_vec(),
        }
    }

    /// Appends a part.
    ///
    /// # Errors
    /// [`Damage`]: incomplete rows, or unknown nodes.
    pub(super) fn add(&mut self, part: NodePart, from: &Reader<'_>) -> Result<(), Damage> {
        let NodePart { times, nodes, losses, names } = part;
        for name in names {
            from.check(!self.places.contains_key(&name), "a node twice")?;
            self.name(name);
        }
        let is_known = nodes.iter().all(|node| (*node as usize) < self.names.len()) && losses.iter().all(|it| *it < 2);
        let is_whole = [nodes.len(), losses.len()] == [times.len(); 2];
        from.check(is_known && is_whole, "incomplete losses of nodes")?;
        self.times.extend(times);
        self.nodes.extend(nodes);
        self.losses.extend(losses);
        Ok(())
    }
}
