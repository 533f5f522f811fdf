//! Runs recorded scenarios through virtual time and prints what it took: `scenario [--json] FILE...`.
//!
//! A FILE is JSON: `objects`, `input.events` and `config` (`now`, `cycleStepMs`, `quietCycles`). Reading the manifests is
//! timed apart from the run.
#![forbid(unsafe_code)]

use kueuecore::engine::Engine;
use kueuecore::objects::Time;
use kueuecore::simulate::{Happening, Options, Step, Timers, simulate};
use kueuecore_bench::memory::Memory;
use kueuecore_bench::rows::timed;
use kueuecore_wire::configuration::Configuration;
use kueuecore_wire::decode::{Door, decode};
use kueuecore_wire::scenario::happenings;
use kueuecore_wire::time::parse_time;
use serde_json::{Value, json};

/// Many small pieces come and go in a cycle.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A scenario as it is recorded, a manifest a line.
struct Scenario {
    start: Time,
    options: Options,
    objects: Vec<u8>,
    events: Vec<u8>,
}

fn lines(values: &Value) -> Vec<u8> {
    let mut lines = Vec::new();
    for value in values.as_array().into_iter().flatten() {
        lines.extend(value.to_string().into_bytes());
        lines.push(b'\n');
    }
    lines
}

fn read(path: &str) -> Scenario {
    let text = std::fs::read(path).expect("a file that can be read");
    let case: Value = serde_json::from_slice(&text).expect("JSON");
    let config = &case["config"];
    Scenario {
        start: parse_time(config["now"].as_str().expect("config.now")).expect("a time"),
        options: Options {
            cycle_step_ns: config["cycleStepMs"].as_i64().expect("config.cycleStepMs") * 1_000_000,
            quiet_cycles: config["quietCycles"].as_u64().and_then(|n| usize::try_from(n).ok()),
            max_cycles: None,
            eviction_ns: 0,
            keeps_messages: false,
            keeps_cycles: true,
            keeps_finished: true,
            keeps_log: true,
            keeps_beat: false,
            timers: Timers::AfterRound,
        },
        objects: lines(&case["objects"]),
        events: lines(&case["input"]["events"]),
    }
}

fn load(scenario: &Scenario) -> (Engine, Vec<Happening>) {
    let mut engine = Engine::new(Configuration::default().for_simulation());
    let decoded = decode(&scenario.objects, Door::Trusted).expect("objects");
    engine.apply(decoded.objects.into_iter().map(|(object, _)| object).collect(), scenario.start);
    let config = engine.state.config.clone();
    let happenings = happenings(&scenario.events, Door::Trusted, &config, scenario.start, &[]).expect("events");
    (engine, happenings)
}

fn main() {
    let (flags, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|text| text == "--json");
    for path in paths {
        let scenario = read(&path);
        Memory::forget_peak();
        let (read, (mut engine, happenings)) = timed(1, || load(&scenario));
        let mut happenings = Some(happenings);
        let (took, run) = timed(1, || {
            let happenings = happenings.take().expect("once");
            simulate(&mut engine, happenings, scenario.options, scenario.start, || false)
        });
        let admissions: usize = run.log.cycles.iter().map(|cycle| cycle.decision.admissions.len()).sum();
        let preemptions: usize = run.log.cycles.iter().map(|cycle| cycle.decision.preemptions.len()).sum();
        let finished = run.log.steps.iter().filter(|(_, step, _)| *step == Step::Finished).count();
        let name = std::path::Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (read_s, run_s) = (read.time.as_secs_f64(), took.time.as_secs_f64());
        let peak_bytes = Memory::read().peak_bytes;
        if !flags.is_empty() {
            let line = json!({
                "name": name, "read_s": read_s, "run_s": run_s, "cycles": run.n_cycles, "admissions": admissions,
                "preemptions": preemptions, "finished": finished, "peak_bytes": peak_bytes,
            });
            println!("{line}");
            continue;
        }
        println!(
            "{name:<20} read {read_s:.3} s  run {run_s:.3} s  {} cycles, {admissions} admissions, {preemptions} \
             preemptions, {finished} finished, {} MiB at the peak",
            run.n_cycles,
            peak_bytes >> 20,
        );
    }
}
