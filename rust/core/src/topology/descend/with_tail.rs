//! Fills domains with whole slices and a last, shorter one (rules/08 §8).

use crate::topology::capacity::Row;
use crate::topology::counts::Unit;
use crate::topology::descend::Share;
use crate::topology::search::{Algorithm, Search};

impl Search<'_> {
    /// Fills domains in order, with all slices and the shorter one (rules/08 §8).
    pub fn distribute_with_tail(&self, level: usize, mut list: Vec<Row>) -> Option<Vec<Share>> {
        let (size, best_fit) = (self.request.slice_size, self.algorithm == Algorithm::BestFit);
        let (mut need, mut n_leaders, mut is_held) = (self.n_slices(), self.n_leaders, false);
        let counts = |row| self.counts(level, row);
        self.put_leader_first_with_tail(level, &mut list);
        let mut shares: Vec<Share> = Vec::new();
        for at in 0..list.len() {
            let (rest, mut row) = (&list[at..], list[at]);
            if !is_held && let Some(row) = self.last_with_tail(level, rest, need, n_leaders) {
                shares.push(Share { row, n_pods: need * size + self.request.tail, n_leaders });
                return Some(shares);
            }
            let room = |row| counts(row).of(Unit::Slices, n_leaders > 0);
            let is_enough = |row| room(row) >= need && counts(row).leaders >= n_leaders;
            if best_fit && is_enough(row) {
                row = rest[self.best_fit(&counts, rest, Unit::Slices, need, n_leaders)];
            }
            let is_last = is_enough(row);
            let (n, leaders) = (room(row).min(need), counts(row).leaders.min(n_leaders));
            shares.push(Share { row, n_pods: n * size, n_leaders: leaders });
            is_held = is_held || self.holds_tail(level, row, n, leaders > 0);
            if is_last {
                return self.add_tail(level, shares, &list);
            }
            (need, n_leaders) = (need - n, n_leaders - leaders);
        }
        None
    }

    /// The domain that takes all that is left, unless only one with more whole slices than needed could (rules/08 §8).
    fn last_with_tail(&self, level: usize, rest: &[Row], need: i64, n_leaders: i64) -> Option<Row> {
        let counts = |row: Row| self.counts(level, row);
        let room = |row: Row| counts(row).of(Unit::Slices, n_leaders > 0);
        let first = rest[0];
        if room(first) < need || counts(first).leaders < n_leaders {
            return None;
        }
        let (row, tightest) = match self.algorithm {
            Algorithm::BestFit => (
                self.best_fit_with_tail(level, rest, need, n_leaders),
                rest[self.best_fit(&counts, rest, Unit::Slices, need, n_leaders)],
            ),
            Algorithm::LeastFree => (first, first),
        };
        let is_enough = self.room_beside_tail(level, row, n_leaders > 0) >= need && counts(row).leaders >= n_leaders;
        (is_enough && room(row) <= room(tightest)).then_some(row)
    }

    /// Gives the shorter slice to one of the domains in use, or else opens another one for it.
    fn add_tail(&self, level: usize, mut shares: Vec<Share>, list: &[Row]) -> Option<Vec<Share>> {
        let (tail, size) = (self.request.tail, self.request.slice_size);
        let holds = |it: &&mut Share| self.holds_tail(level, it.row, it.n_pods / size, it.n_leaders > 0);
        if let Some(share) = shares.iter_mut().find(holds) {
            share.n_pods += tail;
            return Some(shares);
        }
        let is_free = |row: &&Row| !shares.iter().any(|it| it.row == **row) && self.takes_tail(level, **row);
        let &row = list.iter().find(is_free)?;
        shares.push(Share { row, n_pods: tail, n_leaders: 0 });
        Some(shares)
    }
}
