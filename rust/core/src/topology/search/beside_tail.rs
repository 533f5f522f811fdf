//! Room beside a last, shorter slice (rules/08 §7.1).

use crate::topology::capacity::Row;
use crate::topology::counts::Unit;
use crate::topology::search::Search;
use crate::topology::tails::{Cheapest, NONE};

impl Search<'_> {
    /// Is there a shorter slice?
    pub fn has_tail(&self) -> bool {
        self.request.tail > 0
    }

    /// How many whole slices fit into a domain beside the shorter one, and a leader.
    pub fn room_beside_tail(&self, level: usize, row: Row, with_leader: bool) -> i64 {
        let it = self.tails[level][row];
        if with_leader { it.with_leader } else { it.slices }
    }

    /// Can a domain hold the shorter slice on its own?
    pub fn takes_tail(&self, level: usize, row: Row) -> bool {
        self.tails[level][row].slices != NONE
    }

    /// Can a domain hold the shorter slice beside these?
    pub fn holds_tail(&self, level: usize, row: Row, n_slices: i64, with_leader: bool) -> bool {
        let room = self.room_beside_tail(level, row, with_leader);
        room != NONE && n_slices <= room
    }

    /// The smallest domain that is large enough for slices and the shorter one, else the first.
    pub fn best_fit_with_tail(&self, level: usize, list: &[Row], n: i64, n_leaders: i64) -> Row {
        let score = |row: Row| if self.scores { self.counts(level, row).score } else { 0 };
        let run = list.iter().enumerate().take_while(|it| score(*it.1) == score(list[0]));
        let able = run.filter_map(|(at, &row)| {
            let room = self.room_beside_tail(level, row, n_leaders > 0);
            let it = self.counts(level, row);
            (it.leaders >= n_leaders && room >= n).then(|| (room, it.of(Unit::Slices, n_leaders > 0), at))
        });
        able.min().map_or(list[0], |it| list[it.2])
    }

    /// Moves a domain to the front in which a leader leaves enough room for the rest, and a domain for the shorter
    /// slice.
    pub fn put_leader_first_with_tail(&self, level: usize, list: &mut [Row]) {
        if self.n_leaders == 0 || list.len() < 2 {
            return;
        }
        let counts = |row: Row| self.counts(level, row);
        let all: i64 = list.iter().map(|&row| counts(row).slices).sum();
        let mut of_tail = Cheapest::default();
        for &row in list.iter().filter(|&&row| self.takes_tail(level, row)) {
            of_tail.add(row, counts(row).slices - self.room_beside_tail(level, row, false));
        }
        let loss = |row: Row| {
            let it = counts(row);
            let room = self.room_beside_tail(level, row, true);
            let together = Some(it.slices - room).filter(|_| room != NONE);
            let apart = of_tail.beside(row).map(|loss| it.slices - it.slices_with_leader + loss);
            together.into_iter().chain(apart).min()
        };
        let leaves_enough = |&row: &Row| {
            counts(row).leaders >= self.n_leaders && loss(row).is_some_and(|loss| all - loss >= self.n_slices())
        };
        if let Some(at) = list.iter().position(leaves_enough) {
            list[..=at].rotate_right(1);
        }
    }
}
