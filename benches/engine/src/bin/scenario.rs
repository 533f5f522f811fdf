//! Runs a recorded scenario through virtual time and prints what it took: `scenario FILE...`.
//!
//! A FILE is JSON: `objects`, `input.events` and `config` (`now`, `cycleStepMs`, `quietCycles`). Reading the manifests is
//! timed apart from the run.
#![forbid(unsafe_code)]
// A clock is what a benchmark is for.
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use kueuecore::engine::Engine;
use kueuecore::simulate::{Options, Step, simulate};
use kueuecore_wire::configuration::Configuration;
use kueuecore_wire::decode::{Door, decode};
use kueuecore_wire::scenario::happenings;
use kueuecore_wire::time::parse_time;
use serde_json::Value;

/// Many small pieces come and go in a cycle.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn lines(values: &Value) -> Vec<u8> {
    let mut lines = Vec::new();
    for value in values.as_array().into_iter().flatten() {
        lines.extend(value.to_string().into_bytes());
        lines.push(b'\n');
    }
    lines
}

fn main() {
    for path in std::env::args().skip(1) {
        let text = std::fs::read(&path).expect("a file that can be read");
        let case: Value = serde_json::from_slice(&text).expect("JSON");
        let config = &case["config"];
        let start = parse_time(config["now"].as_str().expect("config.now")).expect("a time");
        let (objects, events) = (lines(&case["objects"]), lines(&case["input"]["events"]));
        drop((text, case.clone()));

        let began = Instant::now();
        let mut engine = Engine::new(Configuration::default().for_simulation());
        let decoded = decode(&objects, Door::Trusted).expect("objects");
        engine.apply(decoded.objects.into_iter().map(|(object, _)| object).collect(), start);
        let gates = engine.state.config.gates;
        let happenings = happenings(&events, Door::Trusted, &gates, start).expect("events");
        let read = began.elapsed();

        let options = Options {
            cycle_step_ns: config["cycleStepMs"].as_i64().expect("config.cycleStepMs") * 1_000_000,
            quiet_cycles: config["quietCycles"].as_u64().and_then(|n| usize::try_from(n).ok()),
            max_cycles: None,
            eviction_ns: 0,
            keeps_messages: false,
        };
        let began = Instant::now();
        let run = simulate(&mut engine, happenings, options, start, || false);
        let took = began.elapsed();
        let admissions: usize = run.cycles.iter().map(|cycle| cycle.decision.admissions.len()).sum();
        let preemptions: usize = run.cycles.iter().map(|cycle| cycle.decision.preemptions.len()).sum();
        let finished = run.steps.iter().filter(|(_, step, _)| *step == Step::Finished).count();
        let name = std::path::Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        println!(
            "{name:<20} read {:.3} s  run {:.3} s  {} cycles, {admissions} admissions, {preemptions} preemptions, \
             {finished} finished",
            read.as_secs_f64(),
            took.as_secs_f64(),
            run.n_cycles,
        );
    }
}
