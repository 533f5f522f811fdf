"""Mutate the engine in small ways, one at a time, and see whether the Rust tests notice: `make mutants`.

`.cargo/mutants.toml` says what is changed and which tests run; cargo-mutants does the work. A mutant that no test
notices survives. `tests/mutants/survivors.toml` lists the accepted survivors with reasons; it names them without line
numbers, and numbers those with the same name in the same file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SURVIVORS = ROOT / "tests" / "mutants" / "survivors.toml"
# The mutated copy and its build, kept between runs.
COPY = ROOT / "target" / "mutants" / "tree"
# The unit tests, which build fastest, notice most mutants; the recorded worlds run on the rest.
PACKAGES = ("kueuecore", "kueuecore-worlds")
# Of a test, in seconds; a busy machine can be many times slower than an idle one.
TIMEOUT = 100
WANTED = 0.9
# A test that hangs has noticed the mutant too.
NOTICED, UNNOTICED = ("CaughtMutant", "Timeout"), "MissedMutant"


def plain_names(mutants: Iterable[str]) -> dict[str, str]:
    """Return names without lines, by cargo-mutants' names; `(2)` is the second with that name in a file."""
    by_plain: defaultdict[str, list[str]] = defaultdict(list)
    for name in mutants:
        by_plain[re.sub(r"^([^:]+):\d+:\d+", r"\1", name)].append(name)
    return {
        name: plain if index == 1 else f"{plain} ({index})"
        for plain, names in by_plain.items()
        for index, name in enumerate(names, start=1)
    }


def copy_tree() -> None:
    """Copy files that git tracks or would add, and only those that differ, so that cargo rebuilds only what changed.

    An interrupted run has left a mutant behind: its file differs, although it is as new as its copy.
    """
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
    files = {name for name in names if name and (ROOT / name).is_file()}
    COPY.mkdir(parents=True, exist_ok=True)
    for folder, below, found in os.walk(COPY):
        if Path(folder) == COPY and "target" in below:
            below.remove("target")
        for old in (Path(folder, name) for name in found):
            if old.relative_to(COPY).as_posix() not in files:
                old.unlink()
    for name in files:
        source, copy = ROOT / name, COPY / name
        if not copy.is_file() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def all_mutants() -> list[str]:
    """Return the names of all mutants."""
    command = ["cargo", "mutants", "--list", "--colors", "never"]
    listed = subprocess.run(command, cwd=COPY, check=True, stdout=subprocess.PIPE, text=True)
    return listed.stdout.splitlines()


def sample(listed: list[str], n: int, seed: int) -> list[str]:
    """Sample n mutants, in order. cargo-mutants always tests those that delete a field."""
    always = [name for name in listed if ": delete field " in name]
    others = [name for name in listed if name not in always]
    drawn = {*always, *random.Random(seed).sample(others, min(max(0, n - len(always)), len(others)))}
    return [name for name in listed if name in drawn]


def run(names: list[str], package: str) -> dict[str, str]:
    """Run one package's tests on some mutants; return the outcome of each."""
    exact = "|".join(re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", name) for name in names)
    output = COPY.parent / package
    output.mkdir(exist_ok=True)
    command = ["cargo", "mutants", "--in-place", "--baseline", "skip", "--timeout", str(TIMEOUT), "--colors", "never"]
    command += ["--output", str(output), "--test-package", package, "--re", f"^(?:{exact})$"]
    # It exits with 2 if mutants survive and with 3 if tests hang; we judge both.
    done = subprocess.run(command, cwd=COPY, check=False)
    if done.returncode not in (0, 2, 3):
        sys.exit(done.returncode)
    outcomes: list[dict[str, Any]] = json.loads((output / "mutants.out" / "outcomes.json").read_text())["outcomes"]
    found = {
        outcome["scenario"]["Mutant"]["name"]: outcome["summary"]
        for outcome in outcomes
        if outcome["scenario"] != "Baseline"
    }
    return {name: found[name] for name in names}


def reasons() -> dict[str, str]:
    """Return the reasons of accepted survivors by name."""
    if not SURVIVORS.exists():
        return {}
    entries = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])
    return {entry["mutant"]: entry["reason"] for entry in entries}


def report(outcomes: dict[str, str], plain: dict[str, str]) -> bool:
    """Print the score, survivors with reasons, and outdated entries; return whether the score is good enough."""
    known = reasons()
    counts = Counter(outcomes.values())
    n_noticed, n_survivors = sum(counts[entry] for entry in NOTICED), counts[UNNOTICED]
    survivors = sorted(plain[name] for name, outcome in outcomes.items() if outcome == UNNOTICED)
    print("\nsurvivors:" if survivors else "\nno survivors")
    for name in survivors:
        print(f"  {name}\n      {known.get(name, 'NO REASON YET')}")
    noticed = {plain[name] for name, outcome in outcomes.items() if outcome in NOTICED}
    for name in known:
        if name not in plain.values():
            print(f"{SURVIVORS.name}: this mutant no longer exists: {name}")
        elif name in noticed:
            print(f"{SURVIVORS.name}: this mutant is noticed now: {name}")
    n_viable = n_noticed + n_survivors
    score = n_noticed / n_viable if n_viable else 1.0
    others = ", ".join(f"{n} {name}" for name, n in sorted(counts.items()) if name not in (*NOTICED, UNNOTICED))
    print(f"\n{len(outcomes)} of {len(plain)} mutants: {n_noticed} noticed ({counts['Timeout']} by hanging), ", end="")
    print(f"{n_survivors} survived{', ' if others else ''}{others}: {score:.1%}")
    return score >= WANTED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", default="60", help="how many mutants, or all")
    parser.add_argument("--seed", type=int, default=1, help="which ones")
    arguments = parser.parse_args()
    os.environ.setdefault("CARGO_TERM_COLOR", "never")
    # With a shared target folder, cargo would mistake a mutant in another worktree for the engine.
    os.environ["CARGO_TARGET_DIR"] = str(COPY / "target")
    copy_tree()
    tests = [part for package in PACKAGES for part in ("--package", package)]
    subprocess.run(["cargo", "test", "--quiet", "--profile", "mutants", "--tests", *tests], cwd=COPY, check=True)
    listed = all_mutants()
    names = listed if arguments.sample == "all" else sample(listed, int(arguments.sample), arguments.seed)
    outcomes: dict[str, str] = {}
    for package in PACKAGES:
        if left := [name for name in names if outcomes.get(name, UNNOTICED) == UNNOTICED]:
            outcomes |= run(left, package)
    return 0 if report(outcomes, plain_names(listed)) else 1


if __name__ == "__main__":
    sys.exit(main())
