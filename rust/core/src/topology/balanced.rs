//! Balanced placement: spreads pods evenly over domains (rules/08 §9).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::base::changes::Change;
use crate::topology::capacity::Row;
use crate::topology::counts::{Counts, Levels, roll_up};
use crate::topology::descend::Placed;
use crate::topology::request::Request;
use crate::topology::search::{Chosen, Search};
use crate::topology::tree::Tree;

/// The result of greedy filling.
struct Greedy {
    n_domains: usize,
    /// The last domain used for a leader, and the last one used otherwise.
    last_with_leader: Option<Row>,
    last: Option<Row>,
}

/// A set of domains over which pods may be balanced.
pub struct Candidate {
    /// The domains, at the requested level.
    pub rows: Vec<Row>,
    /// The minimum number of slices in each domain used.
    pub threshold: i64,
    n_domains: usize,
}

/// Why pods are not balanced.
pub struct Unbalanced {
    /// What failed; empty: there is nothing to balance.
    pub reason: &'static str,
    /// What fits, as the attempt left it.
    pub levels: Levels,
}

const NO_SET: &str = "TAS Balanced Placement: Cannot find optimal domain set to fit the request";
const TOO_FEW_SLICES: &str = "TAS Balanced Placement: Not enough slices to meet the threshold";
const NOT_ALL: &str = "TAS Balanced Placement: Not all slices or leaders could be placed";

/// Is a balance that fails replaced by the ordinary placement (rules/08 §9 rule 5)?
pub fn falls_back(tree: &Tree) -> bool {
    tree.changes.has(Change::BalanceFallsBack)
}

impl Search<'_> {
    /// Places pods evenly, if possible.
    pub fn balance(&self) -> Result<Placed, Unbalanced> {
        let mut levels = self.levels.clone();
        let Some(best) = self.best_candidate(&mut levels) else { return Err(Unbalanced { reason: "", levels }) };
        self.prune(&mut levels, &best.rows, best.threshold);
        let placed = Search { levels: &levels, ..*self }.place_in_balance(&best);
        placed.map_err(|reason| Unbalanced { reason, levels })
    }

    /// Where greedy filling would end (§9.1).
    fn greedy(&self, level: usize, rows: &[Row]) -> Option<Greedy> {
        let (mut rest, mut n_leaders) = (self.n_slices(), self.n_leaders);
        let mut result = Greedy { n_domains: 0, last_with_leader: None, last: None };
        let mut list = rows.to_vec();
        if n_leaders > 0 {
            self.sort_with_leader(level, &mut list, self.algorithm);
            while n_leaders > 0 {
                let row = *list.first().filter(|&&row| self.counts(level, row).leaders > 0)?;
                list.remove(0);
                rest -= self.counts(level, row).slices_with_leader;
                n_leaders -= self.counts(level, row).leaders;
                result.last_with_leader = Some(row);
                result.n_domains += 1;
            }
        }
        self.sort_plain(level, &mut list, self.algorithm);
        for row in list {
            let slices = self.counts(level, row).slices;
            if rest <= 0 || slices <= 0 {
                break;
            }
            rest -= slices;
            result.last = Some(row);
            result.n_domains += 1;
        }
        (rest <= 0).then_some(result)
    }

    /// The set whose smallest domain holds the most slices (§9.2). `levels`: a copy of the counts, on which candidates
    /// are tried; restored at the end.
    pub fn best_candidate(&self, levels: &mut Levels) -> Option<Candidate> {
        let (level, falls_back) = (self.request.level, falls_back(self.tree));
        let sets: Vec<Vec<Row>> = match level.checked_sub(1) {
            None => vec![(0..self.tree.n_domains(0)).collect()],
            Some(above) => {
                (0..self.tree.n_domains(above)).map(|row| self.tree.children(above, row).collect()).collect()
            }
        };
        let mut best: Option<Candidate> = None;
        for rows in sets {
            let best_threshold = best.as_ref().map_or(0, |best| best.threshold);
            let (base_level, base) = if level < self.request.slice_level {
                (level + 1, rows.iter().flat_map(|&row| self.tree.children(level, row)).collect())
            } else {
                (level, rows.clone())
            };
            let Some(greedy) = self.greedy(base_level, &base) else { continue };
            // Nothing to place and no leader: there is nothing to balance.
            let Some(even) = self.n_slices().checked_div(greedy.n_domains as i64) else { continue };
            let counts = |row| self.counts(base_level, row);
            let with_leader = greedy.last_with_leader.map(|row| counts(row).slices_with_leader);
            let last =
                greedy.last.map(|row| if falls_back { counts(row).slices } else { counts(row).slices_with_leader });
            let threshold = [with_leader, last].into_iter().flatten().fold(even, i64::min);
            let lower = greedy
                .last
                .filter(|_| self.n_leaders > 0)
                .map_or(threshold, |row| threshold.min(counts(row).slices_with_leader));
            if threshold < best_threshold {
                continue;
            }
            let mut tried = |threshold| {
                self.prune(levels, &rows, threshold);
                let greedy = Search { levels: &*levels, ..*self }.greedy(level, &rows);
                if !falls_back {
                    // Not tried on a copy, and what does not fit any more counts as the fewest domains.
                    return Some(Candidate {
                        rows: rows.clone(),
                        threshold,
                        n_domains: greedy.map_or(0, |it| it.n_domains),
                    });
                }
                self.restore(levels, &rows);
                Some(Candidate { rows: rows.clone(), threshold, n_domains: greedy?.n_domains })
            };
            let candidate = tried(threshold).or_else(|| {
                (lower < threshold && lower > 0 && lower >= best_threshold).then(|| tried(lower)).flatten()
            });
            let Some(candidate) = candidate else { continue };
            let is_better = |best: &Candidate| {
                (Reverse(candidate.threshold), candidate.n_domains) < (Reverse(best.threshold), best.n_domains)
            };
            if best.as_ref().map_or(candidate.threshold > 0, is_better) {
                best = Some(candidate);
            }
        }
        best
    }

    /// Prunes counts so that each domain holds at least the threshold: any with less counts as empty.
    fn prune(&self, levels: &mut Levels, rows: &[Row], threshold: i64) {
        let (tree, level, needs_leader) = (self.tree, self.request.level, self.n_leaders > 0);
        let needs_host = needs_leader && tree.changes.has(Change::LeadersNeedDomains);
        for &row in rows {
            if level < tree.lowest() {
                for child in tree.children(level, row) {
                    prune(tree, levels, (level + 1, child), threshold, needs_leader);
                }
            }
            // Recomputed counts ignore sizes within slices.
            for above in (level..tree.lowest()).rev() {
                let (upper, lower) = levels.split_at_mut(above + 1);
                for row in tree.below(level, row, above) {
                    let bound = if above == tree.named_level() { self.bounds.get(row).copied() } else { None };
                    let children = &lower[0][tree.children(above, row)];
                    upper[above][row] = roll_up(self.request, above, children, (1, bound), needs_host);
                }
            }
            prune(tree, levels, (level, row), threshold, needs_leader);
        }
    }

    /// Undoes pruning.
    fn restore(&self, levels: &mut Levels, rows: &[Row]) {
        let level = self.request.level;
        for (below, (now, before)) in levels.iter_mut().zip(self.levels).enumerate().skip(level) {
            for &row in rows {
                let rows = self.tree.below(level, row, below);
                now[rows.clone()].copy_from_slice(&before[rows]);
            }
        }
    }

    fn place_in_balance(&self, candidate: &Candidate) -> Result<Placed, &'static str> {
        let (mut level, mut rows) = (self.request.level, candidate.rows.clone());
        if level < self.request.slice_level {
            rows = self.optimal(level, &rows, true).ok_or(NO_SET)?;
            rows = rows.iter().flat_map(|&row| self.tree.children(level, row)).collect();
            level += 1;
        }
        let (rows, levels) = self.share_out(level, &rows, candidate.threshold)?;
        let search = Search { levels: &levels, ..*self };
        search.descend(Chosen { level, rows }, true).ok_or(NOT_ALL)
    }

    /// Gives the threshold to each of the domains that leave the least over, and the rest to the first of them (§9.3).
    /// Returns them in filling order, and the counts with each one's share.
    pub fn share_out(&self, level: usize, rows: &[Row], threshold: i64) -> Result<(Vec<Row>, Levels), &'static str> {
        let mut rows = self.optimal(level, rows, false).ok_or(NO_SET)?;
        let mut extra = self.n_slices() - rows.len() as i64 * threshold;
        if extra < 0 {
            return Err(TOO_FEW_SLICES);
        }
        self.sort_with_leader(level, &mut rows, self.algorithm);
        let mut levels = self.levels.clone();
        let mut n_leaders = self.n_leaders;
        for &row in &rows {
            let counts = &mut levels[level][row];
            let takes_leader = n_leaders > 0;
            let room = if takes_leader { counts.slices_with_leader } else { counts.slices };
            let more = if takes_leader || extra > 0 { (room - threshold).min(extra) } else { 0 };
            let leaders = if takes_leader { counts.leaders.min(n_leaders) } else { 0 };
            n_leaders -= leaders;
            extra -= more;
            let slices = threshold + more;
            let pods = slices * self.request.slice_size;
            let pods_with_leader = pods - leaders;
            *counts =
                Counts { pods, slices, pods_with_leader, slices_with_leader: slices, leaders, score: counts.score };
        }
        if extra > 0 || n_leaders > 0 {
            return Err(NOT_ALL);
        }
        Ok((rows, levels))
    }

    /// The domains that hold everything with the least left over, as few as greedy filling uses (§9.4).
    pub fn optimal(&self, level: usize, rows: &[Row], by_entropy: bool) -> Option<Vec<Row>> {
        let n_domains = self.greedy(level, rows)?.n_domains;
        let mut order = rows.to_vec();
        let counts = |row| self.counts(level, row);
        if by_entropy {
            let mut keyed: Vec<(Row, f64)> = order.iter().map(|&row| (row, self.entropy(level, row))).collect();
            keyed.sort_by(|a, b| {
                let key = |row| (Reverse(counts(row).leaders), Reverse(counts(row).slices_with_leader));
                key(a.0).cmp(&key(b.0)).then(b.1.total_cmp(&a.1)).then(a.0.cmp(&b.0))
            });
            order = keyed.into_iter().map(|it| it.0).collect();
        } else {
            order.sort_unstable();
        }
        // By remaining leaders and pods, the domains that leave these.
        let mut table: Vec<BTreeMap<(i64, i64), Vec<Row>>> = vec![BTreeMap::new(); n_domains + 1];
        table[0].insert((self.n_leaders, self.n_slices() * self.request.slice_size), Vec::new());
        for row in order {
            let it = counts(row);
            for n in (1..=n_domains).rev() {
                let (before, after) = table.split_at_mut(n);
                for (&(leaders, pods), list) in &before[n - 1] {
                    if leaders <= 0 && pods <= 0 {
                        continue;
                    }
                    let mut enter = |key| {
                        after[0].entry(key).or_insert_with(|| list.iter().copied().chain([row]).collect());
                    };
                    if leaders > 0 && it.leaders > 0 {
                        enter((leaders - it.leaders, pods - it.pods_with_leader));
                    }
                    if it.slices > 0 {
                        enter((leaders, pods - it.pods));
                    }
                }
            }
        }
        let found = table[n_domains].range((0, i64::MIN)..=(0, 0)).next_back();
        found.map(|(_, rows)| rows.clone())
    }

    /// How evenly the pods of a domain are spread over its children.
    fn entropy(&self, level: usize, row: Row) -> f64 {
        if level == self.tree.lowest() {
            return 0.0;
        }
        let pods = || self.tree.children(level, row).map(|child| self.counts(level + 1, child).pods as f64);
        let all: f64 = pods().sum();
        pods().filter(|&pods| pods > 0.0).map(|pods| pods / all).map(|share| -share * share.log2()).sum()
    }
}

/// A domain below the threshold counts as empty, and so does everything below it.
fn prune(tree: &Tree, levels: &mut Levels, (level, row): (usize, Row), threshold: i64, needs_leader: bool) {
    let it = levels[level][row];
    let slices = if falls_back(tree) { it.slices } else { it.slices_with_leader };
    let clear: fn(&mut Counts) = if slices < threshold {
        |counts| *counts = Counts { score: counts.score, ..Counts::default() }
    } else if needs_leader && it.leaders > 0 && it.slices_with_leader < threshold {
        |counts| *counts = Counts { leaders: 0, pods_with_leader: 0, slices_with_leader: 0, ..*counts }
    } else {
        return;
    };
    for below in level..tree.n_levels() {
        levels[below][tree.below(level, row, below)].iter_mut().for_each(clear);
    }
}

/// Is balancing requested?
pub fn is_wanted(request: &Request) -> bool {
    !request.required && !request.unconstrained
}
