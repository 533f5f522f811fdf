//! How long single steps of the engine take: `kernels [--json] [--list] [--once] [--growing] [--seconds S] [NAME...]`.
//!
//! A NAME selects the row of that name, or else the rows whose names contain it. `--once` takes a single sample of each,
//! for a tool that counts instructions in `rows::measured`. `--growing` takes the rows that come in a series of sizes. Each
//! row checks its outcome.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::Duration;

use kueuecore_bench::kernels;
use kueuecore_bench::rows::Row;
use serde_json::json;

/// Many small pieces come and go in a cycle.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Default)]
struct Options {
    json: bool,
    list: bool,
    once: bool,
    growing: bool,
    seconds: Option<f64>,
    names: Vec<String>,
}

fn options() -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => options.json = true,
            "--list" => options.list = true,
            "--once" => options.once = true,
            "--growing" => options.growing = true,
            "--seconds" => {
                let seconds = arguments.next().and_then(|text| text.parse().ok()).filter(|s: &f64| *s >= 0.0);
                options.seconds = Some(seconds.ok_or("--seconds: a number of seconds is missing")?);
            }
            unknown if unknown.starts_with('-') => return Err(format!("{unknown}: no such option")),
            name => options.names.push(name.to_owned()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let rows = if options.growing { kernels::growing() } else { kernels::rows() };
    let budget = Duration::try_from_secs_f64(options.seconds.unwrap_or(1.0)).unwrap_or(Duration::MAX);
    for row in &kernels::select(rows, &options.names) {
        if options.list {
            println!("{}", row.name);
        } else if options.once {
            row.once();
            println!("{}", json!({"name": row.name, "calls": row.n_calls}));
        } else {
            print(row, budget, options.json);
        }
    }
    ExitCode::SUCCESS
}

fn print(row: &Row, budget: Duration, as_json: bool) {
    let figure = row.measure(budget);
    let (best, median) = (figure.best_ns, figure.median_ns);
    if as_json {
        let line = json!({
            "name": row.name, "heads": row.n_heads, "best_ns": best, "median_ns": median, "runs": figure.n_samples,
        });
        println!("{line}");
    } else {
        println!("{:<52} {:>12} {:>12}  {} runs", row.name, duration(best), duration(median), figure.n_samples);
    }
}

/// Nanoseconds in a unit that suits them.
fn duration(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{ns:.0} ns"),
        _ if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        _ => format!("{:.3} ms", ns / 1e6),
    }
}
