//! Rows: a state that is built once, and samples of how long something takes with it.
//!
//! What is measured is the time that the processor spent on this thread, as that of a busy machine is still of use: other
//! programs that run in between do not count, though they take the caches. The engine has one thread and waits for nothing.
//! Allocations are counted in programs that allocate with [`INSTRUMENTED_SYSTEM`], which is too slow to be timed.

// A clock is what a benchmark is for.
#![allow(clippy::disallowed_methods)]

use std::hint::black_box;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use stats_alloc::INSTRUMENTED_SYSTEM;

/// Takes one sample of so many calls. What has to be reset is reset outside of what is measured.
pub type Sampler = Box<dyn FnMut(u32) -> Sample>;

/// What some calls took.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub time: Duration,
    /// How often they asked for memory, to grow what they had included; 0 where that is not counted.
    pub n_allocations: usize,
}

impl AddAssign for Sample {
    fn add_assign(&mut self, other: Self) {
        self.time += other.time;
        self.n_allocations += other.n_allocations;
    }
}

/// One row of a table.
pub struct Row {
    /// Its name: parts with `/` between them.
    pub name: String,
    /// Calls of a sample; more than one for what a clock could not tell.
    pub n_calls: u32,
    /// Heads of a call, which is a cycle; `None`: it is none.
    pub n_heads: Option<usize>,
    /// Builds the state.
    pub prepare: Box<dyn Fn() -> Sampler>,
}

/// How long one call takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The least of all samples.
    pub best_ns: f64,
    /// The one in the middle.
    pub median_ns: f64,
    pub n_samples: usize,
}

impl Row {
    /// A row whose state is built by `prepare`.
    pub fn new(name: String, n_calls: u32, prepare: impl Fn() -> Sampler + 'static) -> Self {
        Self { name, n_calls, n_heads: None, prepare: Box::new(prepare) }
    }

    /// The same as a cycle with so many heads.
    pub fn of_heads(self, n_heads: usize) -> Self {
        Self { n_heads: Some(n_heads), ..self }
    }

    /// Warms up, then takes samples for about `budget`, at least 5 and at most 500.
    pub fn measure(&self, budget: Duration) -> Figure {
        let mut sampler = (self.prepare)();
        sampler(self.n_calls);
        let began = Instant::now();
        let mut samples: Vec<f64> = Vec::new();
        while samples.len() < 5 || (samples.len() < 500 && began.elapsed() < budget) {
            samples.push(sampler(self.n_calls).time.as_secs_f64() * 1e9 / f64::from(self.n_calls));
        }
        samples.sort_by(f64::total_cmp);
        Figure { best_ns: samples[0], median_ns: samples[samples.len() / 2], n_samples: samples.len() }
    }

    /// Takes a single sample, for what is counted: in it, or by a tool in [`measured`].
    pub fn once(&self) -> Sample {
        (self.prepare)()(self.n_calls)
    }
}

/// What so many calls take, and what the last of them gave.
pub fn timed<T>(n_calls: u32, call: impl FnMut() -> T) -> (Sample, T) {
    let n_before = n_allocations();
    let began = time_of_thread();
    let last = measured(n_calls, call);
    let time = time_of_thread() - began;
    (Sample { time, n_allocations: n_allocations() - n_before }, last)
}

fn n_allocations() -> usize {
    let stats = INSTRUMENTED_SYSTEM.stats();
    stats.allocations + stats.reallocations
}

/// Memory of somebody else, more than the caches hold: what is read after it comes from memory.
pub struct OtherMemory(Vec<u64>);

impl Default for OtherMemory {
    /// Other than zeros, which the system would keep in one page.
    fn default() -> Self {
        Self(vec![1; (96 << 20) / size_of::<u64>()])
    }
}

impl OtherMemory {
    /// What so many calls take that find the caches cold, and what the last of them gave. Each is timed on its own, so that
    /// reading the clock is in its time; only the clock is warm.
    pub fn timed<T>(&self, n_calls: u32, mut call: impl FnMut() -> T) -> (Sample, T) {
        let cold = |call: &mut _| {
            black_box(self.0.iter().step_by(64 / size_of::<u64>()).sum::<u64>());
            black_box((n_allocations(), time_of_thread(), time_of_thread()));
            timed(1, call)
        };
        let (mut took, mut last) = cold(&mut call);
        for _ in 1..n_calls {
            let (more, given) = cold(&mut call);
            took += more;
            last = given;
        }
        (took, last)
    }
}

fn time_of_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("a time after the start of the thread")
}

/// A function of its own, so that a tool can count the instructions in it: `--toggle-collect=*rows::measured*`.
#[inline(never)]
pub fn measured<T>(n_calls: u32, mut call: impl FnMut() -> T) -> T {
    for _ in 1..n_calls {
        black_box(call());
    }
    black_box(call())
}
