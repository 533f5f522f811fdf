//! Replays what the fuzzer found, without a fuzzer: `fuzz/corpus` reaches all code, `fuzz/regressions` once failed.

use std::fs;
use std::path::{Path, PathBuf};

use kueuecore_trials::histories::histories;
use kueuecore_trials::manifests::manifests;
use kueuecore_trials::quantities::quantities;
use kueuecore_trials::snapshots::{each_byte, snapshots};

fn replay(name: &str, trial: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for folder in ["corpus", "regressions"] {
        let files = files(&root.join(folder).join(name));
        assert!(!files.is_empty() || folder == "regressions", "no corpus of {name}");
        for file in files {
            let data = fs::read(&file).expect("a file of the corpus");
            let held = std::panic::catch_unwind(|| trial(&data));
            assert!(held.is_ok(), "{} breaks a promise", file.display());
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder to read").path()).collect();
    files.sort();
    files
}

#[test]
fn manifests_are_taken_or_refused() {
    replay("manifests", manifests);
}

#[test]
fn quantities_have_their_exact_value() {
    replay("quantities", quantities);
}

#[test]
fn modified_saves_are_rejected_or_load() {
    replay("snapshots", snapshots);
}

/// A small save, and one with a waiting cycle.
#[test]
fn each_byte_of_a_save_may_be_changed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/histories");
    let mut histories: Vec<Vec<u8>> = files(&root).iter().map(|file| fs::read(file).expect("a history")).collect();
    histories.sort_by_key(Vec::len);
    each_byte(&histories[histories.len() / 2], &[0x01, 0x80]);
}

#[test]
fn histories_leave_the_engine_whole() {
    replay("histories", histories);
}
