#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| kueuecore_trials::snapshots::snapshots(data));
