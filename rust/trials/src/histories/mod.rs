//! A small world and its events, both made from the bytes: in any order, nothing panics, everything kept up to date
//! incrementally stays correct, and questions change nothing.

mod draw;
mod objects;

use arbitrary::{Result, Unstructured};
use kueuecore::engine::Engine;
use kueuecore::engine::what_if::WhatIfError;
use kueuecore::objects::{Kind, Object, Time};
use kueuecore::schedule::decision::Decision;
use kueuecore_wire::report::quota_rows;

use crate::audit::{audit, audit_rebuilt};
use crate::observe::observe;
use draw::Draw;

/// The limit on steps; the bytes of longer histories are ignored.
const MAX_STEPS: usize = 32;

/// Panics if an engine breaks an invariant, or behaves differently after it was saved and loaded.
pub fn histories(data: &[u8]) {
    let mut going = Play::of(data, 0);
    let went = (going.engine.save(b""), observe(&going.engine), going.reported);
    // Once at every step, and once at some steps.
    for reloads in [u32::MAX, crc32fast::hash(data)] {
        let mut other = Play::of(data, reloads);
        let saved = other.engine.save(b"");
        assert_eq!((saved, observe(&other.engine), other.reported), went, "a loaded engine differs from the original");
    }
}

/// The engine at the end of a history.
pub(crate) fn engine_of(data: &[u8]) -> Engine {
    Play::of(data, 0).engine
}

/// An engine, and everything it has decided and reported.
struct Play {
    engine: Engine,
    reported: Vec<String>,
    /// After which steps it is saved and loaded, as bits.
    reloads: u32,
    /// Are decisions carried out, and some of them confirmed?
    is_followed: bool,
}

impl Play {
    fn of(data: &[u8], reloads: u32) -> Self {
        let is_followed = crc32fast::hash(data).is_multiple_of(4);
        let mut play = Self { engine: Engine::default(), reported: Vec::new(), reloads, is_followed };
        // It ends where the bytes end.
        let _ = play.go(&mut Draw::new(Unstructured::new(data)));
        play
    }

    fn go(&mut self, draw: &mut Draw<'_>) -> Result<()> {
        let Self { engine, reported, reloads, is_followed } = self;
        *engine = Engine::new(draw.config()?);
        let mut now = Time(1_767_225_600_000_000_000);
        engine.apply(draw.world()?, now);
        audit(engine);
        for step in 0..MAX_STEPS {
            if draw.is_empty() {
                break;
            }
            now = draw.later(now)?;
            reported.extend(happen(engine, draw, now)?);
            if *is_followed {
                let written = engine.take_written();
                written.first().into_iter().for_each(|id| _ = engine.confirm(*id));
                reported.push(format!("{written:?} {:?}", engine.take_changed_queues()));
            }
            audit(engine);
            if *reloads >> step & 1 == 1 {
                *engine = reloaded(engine);
                audit(engine);
            }
            if step % 16 == 15 {
                audit_rebuilt(engine);
            }
        }
        audit_rebuilt(engine);
        Ok(())
    }
}

/// The engine read from its own bytes; saving that one gives the same bytes.
fn reloaded(engine: &mut Engine) -> Engine {
    let saved = engine.save(b"note");
    let (mut loaded, note) = Engine::load(&saved).unwrap_or_else(|error| panic!("what was saved is refused: {error}"));
    assert!(loaded.save(&note) == saved, "what is loaded is saved in other bytes");
    loaded
}

/// One event, and what the engine reports.
fn happen(engine: &mut Engine, draw: &mut Draw<'_>, now: Time) -> Result<Option<String>> {
    match draw.number(0, 15)? {
        0..=2 => {
            let workload = draw.workload(engine)?;
            engine.apply(vec![Object::Workload(Box::new(workload))], now);
        }
        3 => {
            let object = draw.object()?;
            engine.apply(vec![object], now);
        }
        4 => {
            let (kind, namespace, name) = draw.named()?;
            let was_there = engine.delete(kind, namespace, &name, now);
            assert!(!engine.delete(kind, namespace, &name, now), "{name} is deleted twice, {was_there}");
        }
        5..=8 => return Ok(Some(cycle(engine, now))),
        9 => {
            let events = engine.reconcile(now);
            assert!(engine.reconcile(now).is_empty(), "a second look at the same time finds something to say");
            return Ok(Some(format!("{events:?}")));
        }
        10 => on_workload(engine, draw, |engine, id| engine.finish(id, "JobFinished", "done", now))?,
        11 => on_workload(engine, draw, |engine, id| engine.evict(id, "Preempted", "moved", now))?,
        12 => on_workload(engine, draw, |engine, id| engine.release(id, now))?,
        13 => {
            let gone = draw.flag()?;
            on_workload(engine, draw, |engine, id| engine.forget(id, gone, now))?;
        }
        14 => what_if(engine, draw, now)?,
        _ => {
            let columns = draw.columns()?;
            let before = observe(engine);
            if engine.submit(&columns, now).is_err() {
                assert_eq!(observe(engine), before, "columns that were refused");
            }
        }
    }
    Ok(None)
}

/// A cycle decides the same on a copy, and does not affect the original.
fn cycle(engine: &mut Engine, now: Time) -> String {
    let mut fork = engine.fork();
    // What the engine remembers of earlier cycles changes nothing, either.
    fork.state.evaluates_always = true;
    let before = quota_rows(&engine.state);
    let forked = fork.cycle(now);
    assert_eq!(quota_rows(&engine.state), before, "an engine whose copy decides");
    let decided = engine.cycle(now);
    assert_eq!(shown(&forked), shown(&decided), "what a copy decides");
    assert_eq!(observe(engine), observe(&fork), "what a copy comes to");
    if decided.admissions.is_empty() && decided.replaced.is_empty() {
        assert_eq!(quota_rows(&engine.state), before, "quota after a cycle without admissions");
    }
    shown(&decided)
}

fn shown(decision: &Decision) -> String {
    format!("{decision:?}")
}

fn on_workload(
    engine: &mut Engine,
    draw: &mut Draw<'_>,
    change: impl FnOnce(&mut Engine, kueuecore::base::ids::WorkloadId) -> bool,
) -> Result<()> {
    let (namespace, name) = draw.workload_key()?;
    if let Some(id) = engine.state.workloads.find(namespace, &name) {
        change(engine, id);
    }
    Ok(())
}

/// A question changes nothing: neither the observable state nor the next decision.
fn what_if(engine: &mut Engine, draw: &mut Draw<'_>, now: Time) -> Result<()> {
    let workload = draw.workload(engine)?;
    let key = workload.meta.key.clone();
    let before = observe(engine);
    let mut untouched = engine.fork();
    match engine.what_if(workload, now) {
        Ok(_) => assert!(
            untouched.state.workloads.find(key.namespace(), key.name()).is_none(),
            "asked about one that is there"
        ),
        Err(WhatIfError::Exists(..)) => assert!(untouched.state.workloads.find(key.namespace(), key.name()).is_some()),
    }
    assert_eq!(observe(engine), before, "an engine that was asked");
    let mut asked = engine.fork();
    assert_eq!(shown(&asked.cycle(now)), shown(&untouched.cycle(now)), "what is decided after a question");
    assert!(!engine.delete(Kind::Workload, key.namespace(), "no such workload", now));
    Ok(())
}
