//! A program that answers one question: `{"objects": [...], "now": TIME, "explain": "NAMESPACE/NAME"}` on standard input,
//! the answer as one JSON document on standard output.
//!
//! The page `docs/playground` runs it as WebAssembly, anew for every question. It speaks WASI rather than calls of its
//! own, so that nothing here needs `unsafe`.
#![forbid(unsafe_code)]

mod answer;
mod document;
mod explanation;
mod json;
mod prepare;
mod settle;

use std::io::{Read, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut question = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut question);
    let answer = answer::answer(&question);
    match read.and_then(|_| std::io::stdout().lock().write_all(answer.as_bytes())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
