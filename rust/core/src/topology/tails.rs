//! The last, shorter slice of a pod set whose count is no multiple of the size of its slices (rules/08 §7.1).

use crate::topology::capacity::Row;
use crate::topology::counts::Levels;
use crate::topology::request::Request;
use crate::topology::tree::Tree;

/// A domain that cannot hold the shorter slice; less than any number of slices.
pub const NONE: i64 = -1;

/// How many whole slices fit into a domain that also holds the shorter one, and beside a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub slices: i64,
    pub with_leader: i64,
}

/// What the two cheapest domains lose if they take something. Two, as another thing may take the first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cheapest {
    first: Option<(Row, i64)>,
    second: Option<i64>,
}

impl Cheapest {
    /// Adds a domain, and what it loses.
    pub fn add(&mut self, row: Row, loss: i64) {
        match self.first {
            Some((_, least)) if least <= loss => self.second = Some(self.second.map_or(loss, |it| it.min(loss))),
            first => *self = Self { first: Some((row, loss)), second: first.map(|it| it.1) },
        }
    }

    /// The least loss without this domain.
    pub fn beside(&self, row: Row) -> Option<i64> {
        self.first.and_then(|(first, least)| if first == row { self.second } else { Some(least) })
    }
}

/// What fits beside the shorter slice, in the domains of each level down to that of slices.
pub fn tails(tree: &Tree, request: &Request, levels: &Levels, needs_leader: bool) -> Vec<Vec<Tail>> {
    let mut tails: Vec<Vec<Tail>> = vec![Vec::new(); request.slice_level + 1];
    let beside = |pods: i64| if pods < request.tail { NONE } else { (pods - request.tail) / request.slice_size };
    for level in (0..=request.slice_level).rev() {
        let of_row = |row: Row| {
            let it = levels[level][row];
            let most = Tail { slices: beside(it.pods), with_leader: beside(it.pods_with_leader) };
            if level == request.slice_level {
                return most;
            }
            let children = tree.children(level, row);
            let lower = children.map(|child| (child, levels[level + 1][child], tails[level + 1][child]));
            let (mut sum, mut both): (i64, Option<i64>) = (0, None);
            let (mut of_tail, mut of_leader) = (Cheapest::default(), Cheapest::default());
            for (child, counts, tail) in lower {
                sum += counts.slices;
                if tail.slices != NONE {
                    of_tail.add(child, counts.slices - tail.slices);
                }
                if needs_leader && counts.leaders > 0 {
                    of_leader.add(child, counts.slices - counts.slices_with_leader);
                    if tail.with_leader != NONE {
                        let loss = counts.slices - tail.with_leader;
                        both = Some(both.map_or(loss, |it| it.min(loss)));
                    }
                }
            }
            // The leader and the shorter slice in different children: if one child is the best for both, one of them
            // goes to its second best.
            let apart = of_leader.first.zip(of_tail.first).and_then(|(leader, tail)| {
                let yields = of_leader.beside(tail.0).map(|loss| loss + tail.1);
                let stays = of_tail.beside(leader.0).map(|loss| loss + leader.1);
                yields.into_iter().chain(stays).min()
            });
            let limit = |loss: Option<i64>, most: i64| loss.map_or(NONE, |loss| most.min(sum - loss));
            let together = both.into_iter().chain(apart).min();
            Tail {
                slices: limit(of_tail.first.map(|it| it.1), most.slices),
                with_leader: limit(together, most.with_leader),
            }
        };
        tails[level] = (0..tree.n_domains(level)).map(of_row).collect();
    }
    tails
}
