"""Coverage-guided fuzzing with bytes: run each trial in rust/trials for a given time.

It starts from the corpora in fuzz/corpus and keeps inputs that increase coverage in target/fuzz. It names each failing
input and how to replay it; once it is a file in fuzz/regressions, every `cargo test` replays it. Stable Rust and a C++
compiler are enough: libFuzzer is built in, and no sanitizer is used.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
# The longest input, in bytes.
TARGETS = {"manifests": 4096, "quantities": 64, "histories": 400, "snapshots": 416}
# The compiler flags of `cargo fuzz`, without the sanitizer, which needs nightly Rust.
COVERAGE = ("level=4", "inline-8bit-counters", "pc-table", "trace-compares")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a target."""

    executions: int
    coverage: int
    features: int
    found: Sequence[Path]
    log: Path

    @property
    def has_failed(self) -> bool:
        """Whether it found anything or did not run at all."""
        return bool(self.found) or not self.executions


def build_folder() -> Path:
    """Return cargo's target folder for the fuzzer."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "fuzz"


def build() -> Path:
    """Build the targets; return the folder with the programs."""
    reported = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host = next(line.removeprefix("host: ") for line in reported.splitlines() if line.startswith("host: "))
    flags = [
        "-Cpasses=sancov-module",
        *(f"-Cllvm-args=-sanitizer-coverage-{entry}" for entry in COVERAGE),
        "--cfg=fuzzing",
    ]
    environment = {
        **os.environ,
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags),
        "CARGO_TARGET_DIR": str(build_folder()),
    }
    # With --target, the flags do not apply to build scripts and macros.
    command = ["cargo", "build", "--release", "--locked", "--quiet", "--target", host]
    subprocess.run(command, check=True, cwd=FUZZ, env=environment)
    return build_folder() / host / "release"


def run(program: Path, *, seconds: int, seed: int) -> Outcome:
    """Run one target."""
    name = program.name
    folder = build_folder() / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    (corpus := folder / "corpus").mkdir(parents=True)
    known = [entry for entry in (FUZZ / "corpus" / name, FUZZ / "regressions" / name) if entry.is_dir()]
    dictionary = FUZZ / "dictionaries" / f"{name}.txt"
    command = [
        str(program),
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-max_len={TARGETS[name]}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        "-timeout=20",
        # A busy machine is not a finding.
        "-report_slow_units=20",
        # A short history shows little: use all lengths from the start.
        *(["-len_control=0"] if name in ("histories", "snapshots") else []),
        *([f"-dict={dictionary}"] if dictionary.exists() else []),
        str(corpus),
        *map(str, known),
    ]
    log = folder / "log.txt"
    with log.open("wb") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    text = log.read_text(errors="replace")
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    reached = re.findall(r"cov: (\d+) ft: (\d+)", text)
    found = sorted(path for path in folder.iterdir() if path.is_file() and path != log)
    coverage, features = map(int, reached[-1]) if reached else (0, 0)
    return Outcome(int(executions[-1]) if executions else 0, coverage, features, found, log)


def keep(program: Path) -> None:
    """Minimise the corpus: keep the smallest file for each coverage feature, and drop the rest."""
    name = program.name
    found, corpus = build_folder() / "runs" / name / "corpus", FUZZ / "corpus" / name
    smallest = build_folder() / "runs" / name / "smallest"
    shutil.rmtree(smallest, ignore_errors=True)
    smallest.mkdir(parents=True)
    command = [str(program), "-set_cover_merge=1", f"-max_len={TARGETS[name]}", str(smallest), str(corpus), str(found)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    kept = {path.read_bytes() for path in smallest.iterdir()}
    for file in corpus.iterdir():
        if file.read_bytes() in kept:
            kept.discard(file.read_bytes())
        else:
            file.unlink()
    for file in smallest.iterdir():
        if file.read_bytes() in kept:
            shutil.copy(file, corpus)


def main() -> int:
    """Build and run the chosen targets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="how long each target runs")
    parser.add_argument("--seed", type=int, help="the seed of all choices; random by default")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    parser.add_argument(
        "--keep", action="store_true", help="minimise the corpora with what the last run found, then exit"
    )
    arguments = parser.parse_args()
    names = arguments.target or list(TARGETS)
    programs = build()
    if arguments.keep:
        for name in names:
            keep(programs / name)
        return 0
    seed = arguments.seed or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}, {arguments.seconds} s each of {', '.join(names)}", flush=True)

    def play(name: str) -> Outcome:
        return run(programs / name, seconds=arguments.seconds, seed=seed)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        outcomes = dict(zip(names, threads.map(play, names), strict=True))
    for name, outcome in outcomes.items():
        print(
            f"{name:<11} {outcome.executions:>9} executions, {outcome.coverage:>6} edges, "
            f"{outcome.features:>6} features"
        )
    for name, outcome in outcomes.items():
        if outcome.has_failed:
            print(f"\n{name} failed; its log is {outcome.log}:\n")
            log = outcome.log.read_text(errors="replace").splitlines()
            said = [number for number, line in enumerate(log) if "panicked at" in line] or [max(0, len(log) - 20)]
            print("\n".join(log[said[0] : said[0] + 12]))
        for file in outcome.found:
            print(f"\nreplay it:  {programs / name} {file}\nkeep it:    cp {file} {FUZZ}/regressions/{name}/")
    return int(any(outcome.has_failed for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())
