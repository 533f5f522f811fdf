//! How often single steps of the engine ask for memory: `allocations [NAME...]`, with a NAME as for `kernels`.
//!
//! A program of its own, since counting takes time. Prints an object of JSON a line.
#![forbid(unsafe_code)]

use std::alloc::System;

use kueuecore_bench::kernels;
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for row in kernels::select(kernels::rows(), &names) {
        let n_allocations = row.once().n_allocations as f64 / f64::from(row.n_calls);
        println!("{}", json!({"name": row.name, "allocations": n_allocations}));
    }
}
