//! From the chosen domains down to leaves (rules/08 §8).

use crate::topology::capacity::Row;
use crate::topology::counts::{Counts, Unit};
use crate::topology::search::{Algorithm, Chosen, Search};

mod with_tail;

/// The share of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub row: Row,
    pub n_pods: i64,
    pub n_leaders: i64,
}

/// The shares of leaves, in path order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Leaf and number of pods.
    pub workers: Vec<(Row, i64)>,
    /// The leaves of leaders.
    pub leaders: Vec<(Row, i64)>,
}

impl Search<'_> {
    /// Fills the chosen domains, and everything below down to the leaves; `None`: they are not enough after all.
    pub fn descend(&self, chosen: Chosen, is_balanced: bool) -> Option<Placed> {
        let Chosen { mut level, rows } = chosen;
        let size = self.request.slice_size;
        let counts = |level: usize| move |row: Row| self.counts(level, row);
        let in_slices = |level: usize, rows: Vec<Row>| {
            if self.has_tail() {
                return self.distribute_with_tail(level, rows);
            }
            self.distribute(&counts(level), rows, self.n_pods, self.n_leaders, (Unit::Slices, size))
        };
        let mut shares = in_slices(level, rows)?;
        if !is_balanced {
            // Down to the slice level, children compete across parents.
            while level < self.tree.lowest().min(self.request.slice_level) {
                let mut rows: Vec<Row> = shares.iter().flat_map(|share| self.tree.children(level, share.row)).collect();
                level += 1;
                self.sort_plain(level, &mut rows, self.algorithm);
                shares = in_slices(level, rows)?;
            }
        }
        while level < self.tree.lowest() {
            // Still above the level of slices only after balanced placement (rules/08 §8 rule 3).
            let size = if level < self.request.slice_level { size } else { self.request.inner_sizes[level + 1] };
            let in_units = |row: Row| {
                let it = self.counts(level + 1, row);
                if size == 1 {
                    return it;
                }
                Counts { slices: it.pods / size, slices_with_leader: it.pods_with_leader / size, ..it }
            };
            let unit = if size > 1 { Unit::Slices } else { Unit::Pods };
            let mut below = Vec::new();
            for share in shares {
                let mut rows: Vec<Row> = self.tree.children(level, share.row).collect();
                self.sort_plain(level + 1, &mut rows, self.algorithm);
                below.extend(self.distribute(&in_units, rows, share.n_pods, share.n_leaders, (unit, size))?);
            }
            shares = below;
            level += 1;
        }
        // Rows are in the order of full paths, so that hosts of one rack stay together (rules/08 §8 rule 4).
        shares.sort_unstable_by_key(|share| share.row);
        let some = |n: fn(&Share) -> i64| {
            let pairs = shares.iter().map(|share| (share.row, n(share)));
            pairs.filter(|pair| pair.1 > 0).collect()
        };
        Some(Placed { workers: some(|share| share.n_pods), leaders: some(|share| share.n_leaders) })
    }

    /// Fills domains in order, and the last one as tightly as possible.
    fn distribute(
        &self,
        counts: &dyn Fn(Row) -> Counts,
        mut list: Vec<Row>,
        n_pods: i64,
        mut n_leaders: i64,
        (unit, size): (Unit, i64),
    ) -> Option<Vec<Share>> {
        let mut need = n_pods / size;
        let best_fit = self.algorithm == Algorithm::BestFit;
        self.put_leader_first(counts, &mut list, unit, n_leaders, need);
        let mut shares = Vec::new();
        for at in 0..list.len() {
            let (rest, mut row) = (&list[at..], list[at]);
            if n_leaders > 0 {
                let is_enough = |row| counts(row).of(unit, true) >= need && counts(row).leaders >= n_leaders;
                if best_fit && is_enough(row) {
                    row = rest[self.best_fit(counts, rest, unit, need, n_leaders)];
                }
                if is_enough(row) {
                    shares.push(Share { row, n_pods: need * size, n_leaders });
                    return Some(shares);
                }
                let n = counts(row).of(unit, true).min(need);
                let leaders = counts(row).leaders.min(n_leaders);
                shares.push(Share { row, n_pods: n * size, n_leaders: leaders });
                need -= n;
                n_leaders -= leaders;
                continue;
            }
            let is_enough = |row| counts(row).of(unit, false) >= need;
            if best_fit && is_enough(row) {
                row = rest[self.best_fit(counts, rest, unit, need, 0)];
            }
            if is_enough(row) {
                shares.push(Share { row, n_pods: need * size, n_leaders: 0 });
                return Some(shares);
            }
            let n = counts(row).of(unit, false);
            shares.push(Share { row, n_pods: n * size, n_leaders: 0 });
            need -= n;
        }
        None
    }
}
