//! What can happen in a cluster: workloads arrive and end and nodes are lost, in any order, and after each move cycles
//! run until nothing changes.
//!
//! An [`Explorer`] has a cluster and shapes of workloads. It plays moves on forks of the cluster's engine and looks for
//! moves that break a [property](properties). Whoever calls it decides which moves to try, and for how long.

mod course;
pub mod properties;
pub mod search;
mod standing;

pub use course::{Course, Cycle, Ending};

use crate::base::ids::WorkloadId;
use crate::base::key::Key;
use crate::engine::Engine;
use crate::objects::{Kind, Object, Time, Workload, WorkloadMeta};
use crate::status::stage::Stage;
use crate::workloads::assigned::Charged;

/// The time between two cycles, and between a move and the next cycle.
pub const TICK_NS: i64 = 1_000_000_000;

/// A move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Move {
    /// A workload of a shape arrives.
    Arrive(u16),
    /// The same, and the next move comes before any cycle.
    ArriveInBurst(u16),
    /// A workload that holds quota ends: the n-th that has arrived, those that were there before included.
    End(u16),
    /// A node is lost.
    Lose(u16),
}

/// What workloads may arrive.
#[derive(Clone, Debug)]
pub struct Shape {
    /// A workload as an API server stores it; names and times are its copies' own.
    pub workload: Workload,
    /// The number of its ClusterQueue.
    pub queue: u16,
    /// What it would use of which flavor if it were alone; `None`: it would not be admitted.
    alone: Option<Charged>,
}

/// A cluster, and what may happen in it.
#[derive(Clone, Debug)]
pub struct Explorer {
    base: Spot,
    shapes: Vec<Shape>,
    /// The class of each ClusterQueue: those of one class differ in nothing but their names.
    classes: Vec<u16>,
    /// The nodes that may be lost.
    nodes: Vec<String>,
    /// How many cycles may do nothing before the next one does something: a head may have that many flavors to try.
    patience: usize,
}

/// A workload that has arrived.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// `None`: it was there before.
    shape: Option<u16>,
    id: WorkloadId,
    is_gone: bool,
}

/// A cluster after some moves.
#[derive(Clone, Debug)]
struct Spot {
    engine: Engine,
    now: Time,
    arrivals: Vec<Arrival>,
    /// Which nodes are lost, a bit each.
    lost: u64,
}

impl Spot {
    fn fork(&mut self) -> Self {
        Self { engine: self.engine.fork(), arrivals: self.arrivals.clone(), ..*self }
    }

    fn is_pending(&self, arrival: Arrival) -> bool {
        !arrival.is_gone && self.engine.stage(arrival.id) == Stage::Pending
    }

    fn holds_quota(&self, arrival: Arrival) -> bool {
        !arrival.is_gone && self.engine.stage(arrival.id).holds_quota()
    }
}

impl Explorer {
    /// A cluster at rest, and the shapes that may arrive from `now` on.
    ///
    /// `classes`: of each ClusterQueue that a shape names. `patience`: the most flavors of a resource group.
    pub fn new(
        mut engine: Engine,
        now: Time,
        shapes: Vec<(Workload, u16)>,
        classes: Vec<u16>,
        nodes: Vec<String>,
        patience: usize,
    ) -> Self {
        let mut there: Vec<_> = engine.state.workloads.iter().map(|(id, it)| (it.key().clone(), id)).collect();
        there.sort();
        let is_over = |id| engine.stage(id) == Stage::Finished;
        let arrivals: Vec<_> =
            there.iter().map(|(_, id)| Arrival { shape: None, id: *id, is_gone: is_over(*id) }).collect();
        let engine = engine.fork();
        let base = Spot { engine, now, arrivals, lost: 0 };
        let shapes = shapes.into_iter().map(|(workload, queue)| Shape { workload, queue, alone: None }).collect();
        let mut explorer = Self { base, shapes, classes, nodes, patience };
        for shape in 0..explorer.shapes.len() {
            explorer.shapes[shape].alone = explorer.alone(shape as u16);
        }
        explorer
    }

    /// Would each shape be admitted if there were no other workloads?
    pub fn fit_alone(&self) -> Vec<bool> {
        self.shapes.iter().map(|shape| shape.alone.is_some()).collect()
    }

    /// The engine after some moves, and its time; `None`: one of them is impossible.
    pub fn engine_after(&self, moves: &[Move]) -> Option<(Engine, Time)> {
        let mut spot = self.base.clone().fork();
        for &next in moves {
            self.play_move(&mut spot, next)?;
        }
        Some((spot.engine, spot.now))
    }

    fn alone(&self, shape: u16) -> Option<Charged> {
        let mut spot = self.base.clone().fork();
        for arrival in std::mem::take(&mut spot.arrivals) {
            let key = spot.engine.state.workloads.get(arrival.id).key().clone();
            spot.engine.delete(Kind::Workload, key.namespace(), key.name(), spot.now);
        }
        self.play_move(&mut spot, Move::Arrive(shape))?;
        let charge = spot.engine.state.workloads.get(spot.arrivals[0].id).charge.as_ref()?;
        Some(charge.usage.clone())
    }

    /// Plays one move; `None`: it is impossible.
    fn play_move(&self, spot: &mut Spot, next: Move) -> Option<Course> {
        match next {
            Move::Arrive(shape) => self.arrive(spot, shape)?,
            Move::ArriveInBurst(shape) => {
                self.arrive(spot, shape)?;
                return Some(Course::default());
            }
            Move::End(n) => {
                let arrival = *spot.arrivals.get(usize::from(n))?;
                if !spot.holds_quota(arrival) {
                    return None;
                }
                self.end(spot, usize::from(n));
            }
            Move::Lose(node) => {
                let name = self.nodes.get(usize::from(node))?;
                if node >= 64 || spot.lost & (1 << node) != 0 {
                    return None;
                }
                spot.lost |= 1 << node;
                spot.now.0 += TICK_NS;
                spot.engine.delete(Kind::Node, "", name, spot.now);
            }
        }
        Some(self.settle(spot))
    }

    fn arrive(&self, spot: &mut Spot, shape: u16) -> Option<()> {
        let template = &self.shapes.get(usize::from(shape))?.workload;
        spot.now.0 += TICK_NS;
        // Names and UIDs are in the order of arrival, so that ties fall the way they do for workloads of one second.
        let uid = format!("00000000-0000-0000-0000-{:012}", spot.arrivals.len());
        let name = format!("{}-{}", template.meta.key.name(), spot.arrivals.len());
        let key = Key::new(template.meta.key.namespace(), &name, &uid);
        let meta = WorkloadMeta { key: key.clone(), created: spot.now, generation: 1, ..template.meta.clone() };
        let workload = Workload { meta, ..template.clone() };
        spot.engine.apply(vec![Object::Workload(Box::new(workload))], spot.now);
        let id = spot.engine.state.workloads.find(key.namespace(), key.name())?;
        spot.arrivals.push(Arrival { shape: Some(shape), id, is_gone: false });
        Some(())
    }

    fn end(&self, spot: &mut Spot, n: usize) {
        let arrival = &mut spot.arrivals[n];
        arrival.is_gone = true;
        spot.now.0 += TICK_NS;
        let key = spot.engine.state.workloads.get(arrival.id).key().clone();
        spot.engine.finish(arrival.id, "Succeeded", "", spot.now);
        spot.engine.delete(Kind::Workload, key.namespace(), key.name(), spot.now);
    }
}
