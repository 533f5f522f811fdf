//! A small world and what happens in it, both made of the bytes: whatever the order, nothing panics, all that is kept
//! up to date step by step stays true, and what only asks changes nothing.

mod draw;
mod objects;

use arbitrary::{Result, Unstructured};
use kueuecore::engine::what_if::WhatIfError;
use kueuecore::engine::{Engine, Kind};
use kueuecore::objects::{Object, Time};
use kueuecore::schedule::decision::Decision;
use kueuecore_wire::report::quota_rows;

use crate::audit::{audit, audit_rebuilt};
use crate::observe::observe;
use draw::Draw;

/// So much happens at most: the bytes of longer histories are left.
const MAX_STEPS: usize = 32;

/// Panics where an engine does not hold together.
pub fn histories(data: &[u8]) {
    let mut draw = Draw::new(Unstructured::new(data));
    // It ends where the bytes do.
    let _ = play(&mut draw);
}

fn play(draw: &mut Draw<'_>) -> Result<()> {
    let config = draw.config()?;
    let mut engine = Engine::new(config);
    let mut now = Time(1_767_225_600_000_000_000);
    engine.apply(draw.world()?, now);
    audit(&engine);
    for step in 0..MAX_STEPS {
        if draw.is_empty() {
            break;
        }
        now = draw.later(now)?;
        happen(&mut engine, draw, now)?;
        audit(&engine);
        if step % 16 == 15 {
            audit_rebuilt(&engine);
        }
    }
    audit_rebuilt(&engine);
    Ok(())
}

/// One thing that happens.
fn happen(engine: &mut Engine, draw: &mut Draw<'_>, now: Time) -> Result<()> {
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
        5..=8 => cycle(engine, now),
        9 => {
            engine.reconcile(now);
            assert!(engine.reconcile(now).is_empty(), "a second look at the same time finds something to say");
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
    Ok(())
}

/// A cycle decides the same on a copy, and leaves the copy's origin alone.
fn cycle(engine: &mut Engine, now: Time) {
    let mut fork = engine.fork();
    // What the engine remembers of earlier cycles changes nothing either.
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

/// A question changes nothing: not what is told, and not what is decided next.
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
