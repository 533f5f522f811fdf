//! Tries all moves up to a number of them, or those that somebody has chosen.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::properties::{Property, in_use};
use super::{Course, Ending, Explorer, Move, Spot};

/// What a search has found.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Each broken property with the first moves that break it.
    pub broken: Vec<(Property, Vec<Move>)>,
    /// How many moves were played.
    pub n_moves: u64,
    /// How many of them led to no end.
    pub n_unsettled: u64,
}

/// What some moves did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// The properties that they break, and after how many moves.
    pub broken: Vec<(Property, usize)>,
    /// How many moves were possible; the others were left out.
    pub n_moves: usize,
    /// How often a workload was preempted.
    pub n_preemptions: usize,
    /// A number for what kinds of preemptions there were.
    pub preemptions: u64,
    /// In which ClusterQueues workloads hold quota in the end, a bit each, by the number of the ClusterQueue.
    pub served: u64,
}

struct Search<'a> {
    explorer: &'a Explorer,
    asked: Vec<Property>,
    moves: Vec<Move>,
    /// From each state to how many moves were tried from there.
    seen: FxHashMap<u64, usize>,
    findings: Findings,
}

impl Explorer {
    /// Tries all moves after the given ones, up to `depth` more. Only the last move of each is judged: those before it
    /// have been, in searches that were less deep.
    ///
    /// Of ClusterQueues that differ in nothing but their names, only the first one without workloads gets its first.
    pub fn search(&self, first: &[Move], depth: usize, asked: &[Property]) -> Findings {
        let mut search = Search {
            explorer: self,
            asked: asked.to_vec(),
            moves: Vec::new(),
            seen: FxHashMap::default(),
            findings: Findings::default(),
        };
        let mut spot = self.base.clone().fork();
        for &next in first {
            let is_usual = self.is_first_of_its_class(&spot, next);
            match self.play_move(&mut spot, next) {
                Some(course) if is_usual && course.ending == Ending::Rest => search.moves.push(next),
                _ => return search.findings,
            }
        }
        search.visit(&mut spot, depth);
        search.findings
    }

    /// Plays moves, leaving out those that are impossible.
    pub fn play(&self, moves: &[Move], asked: &[Property]) -> Played {
        let mut played = Played::default();
        let mut asked = asked.to_vec();
        let mut spot = self.base.clone().fork();
        let mut kinds = FxHasher::default();
        let mut before = in_use(&spot);
        for &next in moves {
            let Some(course) = self.play_move(&mut spot, next) else { continue };
            played.n_moves += 1;
            for preempted in course.preempted() {
                played.n_preemptions += 1;
                (spot.shape_of(preempted.workload), spot.shape_of(preempted.preemptor_id)).hash(&mut kinds);
                preempted.reason.hash(&mut kinds);
            }
            if matches!(next, Move::ArriveInBurst(_)) {
                continue;
            }
            let broken: Vec<_> =
                asked.iter().copied().filter(|it| self.is_broken(*it, &before, &mut spot, &course)).collect();
            asked.retain(|property| !broken.contains(property));
            played.broken.extend(broken.into_iter().map(|property| (property, played.n_moves)));
            if course.ending != Ending::Rest {
                break;
            }
            before = in_use(&spot);
        }
        played.preemptions = kinds.finish();
        for arrival in spot.arrivals.iter().filter(|it| spot.holds_quota(**it)) {
            let queue = arrival.shape.map_or(0, |shape| self.shapes[usize::from(shape)].queue);
            played.served |= 1 << (queue % 64);
        }
        played
    }

    /// The moves with one more move each, after which the cluster comes to rest, and a number for where it stands then:
    /// the same for states that go on alike.
    pub fn expand(&self, moves: &[Move]) -> Vec<(Vec<Move>, u64)> {
        let mut spot = self.base.clone().fork();
        if !moves.iter().all(|next| self.play_move(&mut spot, *next).is_some()) {
            return Vec::new();
        }
        let possible = self.moves_from(&spot);
        let after = |next: Move| {
            let mut then = spot.fork();
            let is_at_rest = self.play_move(&mut then, next)?.ending == Ending::Rest;
            is_at_rest.then(|| ([moves, &[next]].concat(), self.standing(&then)))
        };
        possible.into_iter().filter_map(after).collect()
    }

    /// The moves that are possible, but for symmetry.
    fn moves_from(&self, spot: &Spot) -> Vec<Move> {
        let arrivals = (0..self.shapes.len()).map(|shape| Move::Arrive(shape as u16));
        let arrivals = arrivals.filter(|next| self.is_first_of_its_class(spot, *next));
        let ends = (0..spot.arrivals.len()).filter(|n| spot.holds_quota(spot.arrivals[*n]));
        let nodes = (0..self.nodes.len().min(64)).filter(|node| spot.lost & (1 << node) == 0);
        let nodes = if spot.lost == 0 { nodes.map(|node| Move::Lose(node as u16)).collect() } else { Vec::new() };
        arrivals.chain(ends.map(|n| Move::End(n as u16))).chain(nodes).collect()
    }

    /// Is no other ClusterQueue like that of an arrival as free of workloads, and before it?
    fn is_first_of_its_class(&self, spot: &Spot, next: Move) -> bool {
        let (Move::Arrive(shape) | Move::ArriveInBurst(shape)) = next else { return true };
        let Some(shape) = self.shapes.get(usize::from(shape)) else { return false };
        let is_used = |queue: u16| {
            let of = |it: &super::Arrival| it.shape.map(|shape| self.shapes[usize::from(shape)].queue);
            spot.arrivals.iter().any(|it| of(it) == Some(queue))
        };
        let class = self.classes.get(usize::from(shape.queue));
        let is_like = |queue: u16| self.classes.get(usize::from(queue)) == class;
        is_used(shape.queue) || !(0..shape.queue).any(|queue| is_like(queue) && !is_used(queue))
    }
}

impl Spot {
    fn shape_of(&self, id: crate::base::ids::WorkloadId) -> Option<u16> {
        self.arrivals.iter().find(|arrival| arrival.id == id).and_then(|arrival| arrival.shape)
    }
}

impl Search<'_> {
    fn visit(&mut self, spot: &mut Spot, left: usize) {
        if left == 0 || self.asked.is_empty() {
            return;
        }
        let tried = self.seen.entry(self.explorer.standing(spot)).or_default();
        if *tried >= left {
            return;
        }
        *tried = left;
        let before = in_use(spot);
        for next in self.explorer.moves_from(spot) {
            let mut then = spot.fork();
            let Some(course) = self.explorer.play_move(&mut then, next) else { continue };
            self.findings.n_moves += 1;
            self.moves.push(next);
            if left == 1 {
                self.judge(&before, &mut then, &course);
            }
            if course.ending == Ending::Rest {
                self.visit(&mut then, left - 1);
            } else {
                self.findings.n_unsettled += u64::from(course.ending == Ending::Unsettled);
            }
            self.moves.pop();
        }
    }

    fn judge(&mut self, before: &super::properties::InUse, spot: &mut Spot, course: &Course) {
        let is_broken = |property: &Property| self.explorer.is_broken(*property, before, spot, course);
        let (broken, intact): (Vec<_>, Vec<_>) = std::mem::take(&mut self.asked).into_iter().partition(is_broken);
        self.asked = intact;
        self.findings.broken.extend(broken.into_iter().map(|property| (property, self.moves.clone())));
    }
}
