//! What the fuzzer has found before holds, without any fuzzer: `fuzz/corpus` leads everywhere, `fuzz/regressions` to
//! what was wrong once.

use std::fs;
use std::path::{Path, PathBuf};

use kueuecore_trials::histories::histories;
use kueuecore_trials::manifests::manifests;
use kueuecore_trials::quantities::quantities;

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
fn quantities_are_what_they_say() {
    replay("quantities", quantities);
}

#[test]
fn histories_leave_the_engine_whole() {
    replay("histories", histories);
}
