//! Recorded histories: the engine must decide, report, count and queue as the reference model did.
//!
//! The reference has written the answers (`make record-worlds`), so nothing here implements a rule.
#![forbid(unsafe_code)]

mod play;
mod seen;

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::GzDecoder;
use play::Play;
use seen::{Seen, first_difference};
use serde_json::{Value, json};

const RECORDED: &[u8] = include_bytes!("recorded.jsonl.gz");
/// The number of parts played in parallel: most machines have at least four cores.
pub const PARTS: usize = 4;

fn recorded() -> String {
    let mut text = String::new();
    GzDecoder::new(RECORDED).read_to_string(&mut text).expect("the recording is text under gzip");
    text
}

/// Plays a line; returns the first difference between engine and reference.
fn difference(line: &str) -> Option<String> {
    let line: Value = serde_json::from_str(line).expect("a line is JSON");
    let moves = line["moves"].as_array().expect("moves");
    let answers = line["answers"].as_array().expect("answers");
    assert_eq!(answers.len(), moves.len() + 1, "there is an answer at first and after each move");
    let mut play = Play::of(&line);
    let mut expected = Seen::nothing();
    for (index, answer) in answers.iter().enumerate() {
        let told = if index == 0 { json!({}) } else { play.go(&moves[index - 1]) };
        expected.change(answer);
        let found = first_difference(&seen::told_in(answer), &told, "told")
            .or_else(|| first_difference(&expected.0, &Seen::of(&play.engine).0, "seen"));
        if let Some(found) = found {
            let after = if index == 0 { "at first".to_owned() } else { format!("after move {}", index - 1) };
            return Some(format!("{after}: {found}"));
        }
    }
    None
}

/// Has a test found a difference? Then the others stop.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Plays one part of the recording.
///
/// # Panics
/// The engine differs from the reference; the message says where first.
pub fn check(part: usize) {
    let text = recorded();
    assert!(text.lines().count() >= 10 * PARTS, "there is something to play");
    for (number, line) in (1..).zip(text.lines()).skip(part).step_by(PARTS) {
        if HAS_FAILED.load(Ordering::Relaxed) {
            return;
        }
        if let Some(difference) = difference(line) {
            HAS_FAILED.store(true, Ordering::Relaxed);
            panic!("line {number}, {difference}");
        }
    }
}
