//! A log of nodes that are lost and come back, for callers that follow it.

use std::collections::{BTreeMap, BTreeSet};

use crate::objects::{Node, Taint};
use crate::snapshot::stored;
use crate::state::node_watch::{is_ready, keeps_away};

/// The changes since the last call; empty unless followed.
#[derive(Clone, Debug, Default)]
pub struct NodeChanges {
    followed: Option<Followed>,
}

#[derive(Clone, Debug, Default)]
struct Followed {
    /// Node name, and whether it was lost.
    changes: Vec<(String, bool)>,
    /// Lost nodes, with the taints they had before: a node may have taints by design.
    lost: BTreeMap<String, Vec<Taint>>,
    /// Nodes that are gone or not ready: no pod there is ready.
    down: BTreeSet<String>,
    /// Which of them have changed in that.
    turned: Vec<String>,
}

stored!(struct NodeChanges { followed });
stored!(struct Followed { changes, lost, down, turned });

impl NodeChanges {
    /// Starts recording; a node that is not ready counts as lost already.
    pub fn follow<'a>(&mut self, nodes: impl Iterator<Item = &'a Node>) {
        if self.followed.is_none() {
            let mut followed = Followed::default();
            for node in nodes.filter(|node| !is_ready(node)) {
                followed.note(&node.meta.name, None, Some(node));
            }
            self.followed = Some(followed);
        }
    }

    /// Takes the changes since the last call: names of nodes, and whether they were lost or are back.
    pub fn take(&mut self) -> Vec<(String, bool)> {
        self.followed.as_mut().map(|followed| std::mem::take(&mut followed.changes)).unwrap_or_default()
    }

    /// The nodes that are lost now, in the order of their names.
    pub fn lost(&self) -> impl Iterator<Item = &str> {
        self.followed.iter().flat_map(|followed| followed.lost.keys()).map(String::as_str)
    }

    /// Has a node gone, or is it not ready?
    pub fn is_down(&self, name: &str) -> bool {
        self.followed.as_ref().is_some_and(|followed| followed.down.contains(name))
    }

    /// Takes the names of nodes for which [`Self::is_down`] changed since the last call.
    pub fn take_turned(&mut self) -> Vec<String> {
        self.followed.as_mut().map(|followed| std::mem::take(&mut followed.turned)).unwrap_or_default()
    }

    /// A node was created, changed or removed.
    pub(super) fn note(&mut self, name: &str, old: Option<&Node>, new: Option<&Node>) {
        if let Some(followed) = &mut self.followed {
            followed.note(name, old, new);
        }
    }
}

impl Followed {
    fn note(&mut self, name: &str, old: Option<&Node>, new: Option<&Node>) {
        self.note_down(name, new);
        let before = self.lost.get(name);
        let was_lost = before.is_some();
        let own = before.map(Vec::as_slice).or_else(|| old.or(new).map(|node| node.taints.as_slice())).unwrap_or(&[]);
        let keeps_away = |taint: &Taint| keeps_away(taint) && !own.contains(taint);
        let is_lost = new.is_none_or(|node| !is_ready(node) || node.taints.iter().any(keeps_away));
        if is_lost == was_lost {
            return;
        }
        if is_lost {
            let own = own.to_vec();
            self.lost.insert(name.to_owned(), own);
        } else {
            self.lost.remove(name);
        }
        self.changes.push((name.to_owned(), is_lost));
    }

    fn note_down(&mut self, name: &str, new: Option<&Node>) {
        let is_down = new.is_none_or(|node| !is_ready(node));
        if is_down == self.down.contains(name) {
            return;
        }
        if is_down {
            self.down.insert(name.to_owned());
        } else {
            self.down.remove(name);
        }
        self.turned.push(name.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ConditionStatus, NodeReady};
    use crate::testing::at;
    use crate::testing::hosts::node;

    fn taint(key: &str, effect: &str) -> Taint {
        Taint { key: key.to_owned(), effect: effect.to_owned(), ..Taint::default() }
    }

    fn with(taints: &[Taint], is_ready: bool) -> Node {
        let status = if is_ready { ConditionStatus::True } else { ConditionStatus::False };
        Node { taints: taints.to_vec(), ready: Some(NodeReady { status, since: at(0) }), ..node("n", "1") }
    }

    #[test]
    fn a_node_is_lost_while_gone_not_ready_or_newly_tainted() {
        let own = taint("gpu", "NoSchedule");
        let well = with(std::slice::from_ref(&own), true);
        let cases = [
            (None, Some(true)),
            (Some(with(std::slice::from_ref(&own), false)), Some(true)),
            (Some(with(&[own.clone(), taint("down", "NoExecute")], true)), Some(true)),
            (Some(with(&[own.clone(), taint("soft", "PreferNoSchedule")], true)), None),
        ];
        for (then, expected) in cases {
            let mut changes = NodeChanges::default();
            changes.note("n", Some(&well), None);
            assert_eq!(changes.take(), [], "nobody follows it");
            changes.follow(std::iter::once(&well));
            changes.note("n", Some(&well), then.as_ref());
            changes.note("n", then.as_ref(), then.as_ref());
            assert_eq!(changes.lost().count(), usize::from(expected.is_some()), "{then:?}");
            changes.note("n", then.as_ref(), Some(&well));
            let expected: Vec<_> =
                expected.into_iter().flat_map(|_| [("n".to_owned(), true), ("n".to_owned(), false)]).collect();
            assert_eq!(changes.take(), expected, "{then:?}");
        }
    }

    #[test]
    fn a_node_is_down_while_gone_or_not_ready_whatever_its_taints() {
        let (well, down) = (with(&[], true), with(&[], false));
        let tainted = with(&[taint("down", "NoExecute")], true);
        let mut changes = NodeChanges::default();
        changes.follow(std::iter::once(&well));
        let mut seen = Vec::new();
        for then in [Some(&tainted), Some(&down), Some(&down), Some(&tainted), None, Some(&well)] {
            changes.note("n", Some(&well), then);
            seen.push((changes.is_down("n"), changes.take_turned().len()));
        }
        assert_eq!(seen, [(false, 0), (true, 1), (true, 0), (false, 1), (true, 1), (false, 1)]);
        assert!(!changes.is_down("never there"));
    }

    #[test]
    fn a_node_not_ready_from_the_start_is_lost_and_a_new_one_is_no_recovery() {
        let mut changes = NodeChanges::default();
        changes.follow([&with(&[], false), &with(&[taint("gpu", "NoSchedule")], true)].into_iter());
        changes.note("new", None, Some(&with(&[taint("gpu", "NoSchedule")], true)));
        changes.note("n", Some(&with(&[], false)), Some(&with(&[], true)));
        assert_eq!(changes.take(), [("n".to_owned(), true), ("n".to_owned(), false)]);
    }
}
