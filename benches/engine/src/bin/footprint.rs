//! What nodes and places take of memory: `footprint [NODES...]`. Prints an object of JSON for each number of nodes.
//!
//! A program of its own, since counting takes time.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::process::ExitCode;

use kueuecore_bench::footprint::footprint;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    for argument in std::env::args().skip(1) {
        let Some(n_nodes) = argument.parse().ok().filter(|n| *n >= 1_000) else {
            eprintln!("{argument}: not a number of nodes from 1000 on");
            return ExitCode::from(2);
        };
        let found = footprint(n_nodes);
        let line = json!({
            "nodes": found.n_nodes, "bytes_per_leaf": found.bytes_per_leaf,
            "bytes_per_leaf_and_kind": found.bytes_per_leaf_and_kind, "bytes_per_domain": found.bytes_per_domain,
        });
        println!("{line}");
    }
    ExitCode::SUCCESS
}
