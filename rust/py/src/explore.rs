//! Explores what may happen in a cluster.

use std::sync::Mutex;

use kueuecore::explore::properties::Property;
use kueuecore::explore::{Explorer as Core, Move};
use kueuecore::objects::{Object, Time};
use kueuecore_wire::field_error::Rejection;
use kueuecore_wire::intake::intake;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::decode_column;
use crate::engine::Engine;
use crate::errors::manifest_error;
use crate::intake_report::door;
use crate::journal::Journal;
use crate::run::Kept;

/// The upper bits of a move say what it is, the others of what.
const KIND: u16 = 0xC000;
const BURST: u16 = 0x4000;
const END: u16 = 0x8000;
const LOSE: u16 = 0xC000;

/// A cluster, and the shapes of workloads that may arrive.
#[pyclass(frozen, module = "kueuecore._core")]
pub struct Explorer {
    inner: Core,
}

/// Broken properties by number, with the moves; how many moves were played, and how many of them led to no end.
type FindingsRow<'py> = (Vec<(usize, Bound<'py, PyBytes>)>, u64, u64);

/// Broken properties by number, with how many moves it took; how many moves were possible; how many preemptions there
/// were, and of what kinds; who has quota in the end.
type PlayedRow = (Vec<(usize, usize)>, usize, usize, u64, u64);

fn moves_of(bytes: &[u8]) -> Vec<Move> {
    let read = |code: u16| match code & KIND {
        BURST => Move::ArriveInBurst(code & !KIND),
        END => Move::End(code & !KIND),
        LOSE => Move::Lose(code & !KIND),
        _ => Move::Arrive(code),
    };
    decode_column(bytes, u16::from_le_bytes).into_iter().map(read).collect()
}

fn bytes_of(moves: &[Move]) -> Vec<u8> {
    let code = |next: &Move| match *next {
        Move::Arrive(shape) => shape,
        Move::ArriveInBurst(shape) => BURST | shape,
        Move::End(n) => END | n,
        Move::Lose(node) => LOSE | node,
    };
    moves.iter().flat_map(|next| code(next).to_le_bytes()).collect()
}

fn properties(asked: &[usize]) -> PyResult<Vec<Property>> {
    let find = |number: &usize| Property::ALL.get(*number).copied();
    asked
        .iter()
        .map(|it| find(it).ok_or_else(|| PyValueError::new_err(format!("no property has number {it}"))))
        .collect()
}

fn number(property: Property) -> usize {
    Property::ALL.iter().position(|it| *it == property).expect("one of all")
}

#[pymethods]
impl Explorer {
    /// `shapes`: Workloads as JSON. `queues`: the number of each one's ClusterQueue. `classes`: which ClusterQueues are
    /// alike. `nodes`: which may be lost. `patience`: the most flavors of a resource group.
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        engine: &Engine,
        shapes: &[u8],
        queues: Vec<u16>,
        classes: Vec<u16>,
        nodes: Vec<String>,
        patience: usize,
        now: i64,
    ) -> PyResult<Self> {
        let made = crate::run::run(py, &engine.inner, |engine, _| {
            let decoded = intake(engine, shapes, door(false), Time(now))?;
            let workloads = decoded.objects.into_iter().filter_map(|(object, _)| match object {
                Object::Workload(workload) => Some(*workload),
                _ => None,
            });
            let shapes = workloads.zip(queues).collect();
            Ok(Core::new(engine.fork(), Time(now), shapes, classes, nodes, patience))
        })?;
        made.map(|inner| Self { inner }).map_err(|rejections: Vec<Rejection>| manifest_error(py, &rejections))
    }

    /// The names of all properties, by number.
    #[staticmethod]
    fn properties() -> Vec<&'static str> {
        Property::ALL.iter().map(|property| property.name()).collect()
    }

    /// Would each shape be admitted if it were alone?
    fn fit_alone(&self) -> Vec<bool> {
        self.inner.fit_alone()
    }

    /// Tries all moves after the given ones, up to `depth` more.
    fn search<'py>(
        &self,
        py: Python<'py>,
        first: &[u8],
        depth: usize,
        asked: Vec<usize>,
    ) -> PyResult<FindingsRow<'py>> {
        let asked = properties(&asked)?;
        let first = moves_of(first);
        let found = py.detach(|| self.inner.search(&first, depth, &asked));
        let row = |(property, moves): (Property, Vec<Move>)| (number(property), PyBytes::new(py, &bytes_of(&moves)));
        Ok((found.broken.into_iter().map(row).collect(), found.n_moves, found.n_unsettled))
    }

    /// Plays several lists of moves.
    fn play(&self, py: Python<'_>, lists: Vec<Vec<u8>>, asked: Vec<usize>) -> PyResult<Vec<PlayedRow>> {
        let asked = properties(&asked)?;
        let played = py.detach(|| {
            let each = lists.iter().map(|moves| self.inner.play(&moves_of(moves), &asked));
            each.collect::<Vec<_>>()
        });
        let row = |it: kueuecore::explore::search::Played| {
            let broken = it.broken.into_iter().map(|(property, n)| (number(property), n)).collect();
            (broken, it.n_moves, it.n_preemptions, it.preemptions, it.served)
        };
        Ok(played.into_iter().map(row).collect())
    }

    /// Each list of moves with one more move, and a number for where the cluster stands then.
    fn expand<'py>(&self, py: Python<'py>, moves: &[u8]) -> Vec<(Bound<'py, PyBytes>, u64)> {
        let found = py.detach(|| self.inner.expand(&moves_of(moves)));
        found.into_iter().map(|(moves, standing)| (PyBytes::new(py, &bytes_of(&moves)), standing)).collect()
    }

    /// The engine after some moves, and its time; `None`: one of them is impossible.
    fn engine_after(&self, py: Python<'_>, moves: &[u8]) -> Option<(Engine, i64)> {
        let (engine, now) = py.detach(|| self.inner.engine_after(&moves_of(moves)))?;
        let kept = Kept { engine: Some(engine), journal: Journal::at(now.0) };
        Some((Engine { inner: Mutex::new(kept), keeps_calls: false }, now.0))
    }
}
