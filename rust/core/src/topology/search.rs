//! Chooses the level and the domains for pods (rules/08 §6, §7).

use std::cmp::Reverse;

use crate::base::gates::{Gate, Gates};
use crate::topology::capacity::Row;
use crate::topology::counts::{Bound, Counts, Levels, Unit};
use crate::topology::request::Request;
use crate::topology::tails::Tail;
use crate::topology::tree::Tree;

mod beside_tail;

/// How domains are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The smallest domain that is large enough.
    BestFit,
    /// The domain with the least room first.
    LeastFree,
}

/// A placement in progress.
pub struct Search<'a> {
    pub tree: &'a Tree,
    pub request: &'a Request,
    /// What fits into each domain.
    pub levels: &'a Levels,
    /// What the room of the domains allows that assignments name; empty if these are leaves.
    pub bounds: &'a [Bound],
    /// What fits into each domain beside a shorter slice; empty if there is none.
    pub tails: &'a [Vec<Tail>],
    /// How domains are preferred.
    pub algorithm: Algorithm,
    /// Do scores count?
    pub scores: bool,
    /// Pods to place.
    pub n_pods: i64,
    /// Leaders to place beside them.
    pub n_leaders: i64,
}

/// Domains that are enough together, in filling order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub level: usize,
    pub rows: Vec<Row>,
}

/// Why there are none: how many pods would fit, and where it was searched last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There is no domain at this level.
    NoDomains(usize),
    /// Only this many fit into a domain of a level.
    Fits {
        /// The number in the message.
        shown: i64,
        /// The level of the domain.
        level: usize,
    },
}

impl<'a> Search<'a> {
    /// A placement of some pods, and leaders next to them (rules/08 §6.2).
    pub fn new(
        tree: &'a Tree,
        (request, levels): (&'a Request, &'a Levels),
        (n_pods, n_leaders): (i64, i64),
        gates: Gates,
    ) -> Self {
        let is_free = (request.unconstrained && gates.enabled(Gate::TASProfileMixed))
            || gates.enabled(Gate::TASProfileLeastFreeCapacity);
        let algorithm = if is_free { Algorithm::LeastFree } else { Algorithm::BestFit };
        let scores = gates.enabled(Gate::TASRespectNodeAffinityPreferred);
        Self { tree, request, levels, bounds: &[], tails: &[], algorithm, scores, n_pods, n_leaders }
    }

    /// What fits into a domain.
    pub fn counts(&self, level: usize, row: Row) -> Counts {
        self.levels[level][row]
    }

    /// Number of slices to place.
    pub fn n_slices(&self) -> i64 {
        // A remainder that is no slice of its own is dropped, as Kueue does: those pods are placed nowhere (rules/08
        // §7).
        self.n_pods / self.request.slice_size
    }

    /// Sorts domains by what they hold next to a leader.
    pub fn sort_with_leader(&self, level: usize, rows: &mut [Row], algorithm: Algorithm) {
        rows.sort_unstable_by_key(|&row| {
            let it = self.counts(level, row);
            let score = if self.scores { it.score } else { 0 };
            let slices = it.slices_with_leader;
            let slices = if algorithm == Algorithm::BestFit { -slices } else { slices };
            // Pods ascend whatever the algorithm: of equally many slices the domain goes first that wastes fewer pods
            // (rules/08 §6).
            (Reverse(it.leaders), Reverse(score), slices, it.pods_with_leader, row)
        });
    }

    /// Sorts domains by what they hold.
    pub fn sort_plain(&self, level: usize, rows: &mut [Row], algorithm: Algorithm) {
        rows.sort_unstable_by_key(|&row| {
            let it = self.counts(level, row);
            let score = if self.scores { it.score } else { 0 };
            let slices = if algorithm == Algorithm::BestFit { -it.slices } else { it.slices };
            (Reverse(score), slices, it.pods, row)
        });
    }

    /// The index of the smallest domain that is large enough, else of the first one.
    pub fn best_fit(&self, counts: &dyn Fn(Row) -> Counts, list: &[Row], unit: Unit, n: i64, n_leaders: i64) -> usize {
        let first_score = list.first().map_or(0, |&row| counts(row).score);
        // A tighter fit must not beat a better score, so only the leading run of equal scores contends (rules/08 §6
        // rule 3).
        let is_in_run = |row: Row| !self.scores || counts(row).score == first_score;
        let candidates = list.iter().enumerate().take_while(|it| is_in_run(*it.1)).filter_map(|(at, &row)| {
            let it = counts(row);
            let room = it.of(unit, n_leaders > 0);
            (it.leaders >= n_leaders && room >= n).then_some((room, at))
        });
        candidates.min().map_or(0, |it| it.1)
    }

    /// Moves a domain to the front in which a leader leaves enough room for the rest.
    pub fn put_leader_first(
        &self,
        counts: &dyn Fn(Row) -> Counts,
        list: &mut [Row],
        unit: Unit,
        n_leaders: i64,
        need: i64,
    ) {
        if n_leaders == 0 || list.len() < 2 {
            return;
        }
        let all: i64 = list.iter().map(|&row| counts(row).of(unit, false)).sum();
        let leaves_enough = |&row: &Row| {
            let it = counts(row);
            it.leaders >= n_leaders && all - (it.of(unit, false) - it.of(unit, true)) >= need
        };
        if let Some(at) = list.iter().position(leaves_enough) {
            list[..=at].rotate_right(1);
        }
    }

    fn is_sufficient(&self, level: usize, row: Row) -> bool {
        let counts = self.counts(level, row);
        let room = if self.has_tail() {
            self.room_beside_tail(level, row, self.n_leaders > 0)
        } else {
            counts.slices_with_leader
        };
        room >= self.n_slices() && counts.leaders >= self.n_leaders
    }

    /// Chooses the domains to fill.
    pub fn choose(&self) -> Result<Chosen, Lack> {
        self.choose_at(self.request.level)
    }

    fn choose_at(&self, level: usize) -> Result<Chosen, Lack> {
        let (n, n_leaders) = (self.n_slices(), self.n_leaders);
        let mut rows: Vec<Row> = (0..self.tree.n_domains(level)).collect();
        let counts = |row| self.counts(level, row);
        self.sort_with_leader(level, &mut rows, self.algorithm);
        let Some(&first) = rows.first() else { return Err(Lack::NoDomains(level)) };
        let one = |row| Ok(Chosen { level, rows: vec![row] });
        match self.algorithm {
            // The first holds the most slices, but another one may hold the shorter one beside them.
            Algorithm::BestFit if self.has_tail() => {
                let best = self.best_fit_with_tail(level, &rows, n, n_leaders);
                if counts(first).leaders >= n_leaders && self.is_sufficient(level, best) {
                    return one(best);
                }
            }
            Algorithm::BestFit if self.is_sufficient(level, first) => {
                return one(rows[self.best_fit(&counts, &rows, Unit::Slices, n, n_leaders)]);
            }
            Algorithm::LeastFree => {
                if let Some(&enough) = rows.iter().find(|&&row| self.is_sufficient(level, row)) {
                    return one(enough);
                }
            }
            Algorithm::BestFit => {}
        }
        if self.request.required {
            // With scores, the best one need not be the largest.
            let enough = rows.iter().skip(1).position(|&row| self.is_sufficient(level, row));
            if let Some(at) = enough.filter(|_| self.scores && self.algorithm == Algorithm::BestFit) {
                let rest = &rows[at + 1..];
                if self.has_tail() {
                    return one(self.best_fit_with_tail(level, rest, n, n_leaders));
                }
                return one(rest[self.best_fit(&counts, rest, Unit::Slices, n, n_leaders)]);
            }
            let shown = match self.algorithm {
                Algorithm::BestFit => counts(first).slices,
                // The last one looked at, in pods (gate TASProfileLeastFreeCapacity).
                Algorithm::LeastFree => rows.last().map_or(0, |&last| counts(last).pods),
            };
            return Err(Lack::Fits { shown, level });
        }
        if !self.request.unconstrained && level > 0 {
            return self.choose_at(level - 1);
        }
        self.choose_several(level, rows)
    }

    fn choose_several(&self, level: usize, mut list: Vec<Row>) -> Result<Chosen, Lack> {
        let (n, best_fit) = (self.n_slices(), self.algorithm == Algorithm::BestFit);
        let (mut rest, mut n_leaders) = (n, self.n_leaders);
        let counts = |row| self.counts(level, row);
        if self.has_tail() {
            self.put_leader_first_with_tail(level, &mut list);
        } else {
            self.put_leader_first(&counts, &mut list, Unit::Slices, n_leaders, n);
        }
        let (mut rows, mut holds_tail) = (Vec::new(), !self.has_tail());
        while n_leaders > 0 && list.first().is_some_and(|&row| counts(row).leaders > 0) {
            let enough = best_fit && counts(list[0]).slices_with_leader >= rest;
            let at = if enough { self.best_fit(&counts, &list, Unit::Slices, rest, n_leaders) } else { 0 };
            let row = list[at];
            // The first goes, whichever is taken: if it is another one, no more slices are left to place.
            list.remove(0);
            let room = counts(row).slices_with_leader;
            holds_tail = holds_tail || self.holds_tail(level, row, room.min(rest), true);
            rest -= room;
            n_leaders -= counts(row).leaders;
            rows.push(row);
        }
        if n_leaders > 0 {
            return Err(Lack::Fits { shown: self.n_leaders - n_leaders, level });
        }
        self.sort_plain(level, &mut list, self.algorithm);
        let all = list;
        let mut list = all.as_slice();
        while rest > 0 {
            let Some(&first) = list.first() else { return Err(Lack::Fits { shown: n - rest, level }) };
            let enough = best_fit && counts(first).slices >= rest;
            let row = if enough { list[self.best_fit(&counts, list, Unit::Slices, rest, 0)] } else { first };
            let room = counts(row).slices;
            holds_tail = holds_tail || self.holds_tail(level, row, room.min(rest), false);
            rest -= room;
            rows.push(row);
            list = &list[1..];
        }
        if !holds_tail {
            let other = all.iter().find(|row| !rows.contains(row) && self.takes_tail(level, **row));
            rows.push(*other.ok_or(Lack::Fits { shown: n, level })?);
        }
        Ok(Chosen { level, rows })
    }
}
