"""The benchmark programs of `benches/engine`: built, run, and what they do counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from benches.machine import ROOT

__all__ = ["Counts", "allocations", "build", "counts", "kernel_names", "lines", "read_counts", "time_kernels"]

_CACHES = ("--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64")
"""Of the same size on every machine, so that misses can be compared."""


def build(root: Path = ROOT, target: Path | None = None) -> Path:
    """Builds the programs of a work tree for release.

    Args:
        root: The work tree.
        target: Where to build; as cargo wants it if absent.

    Raises:
        subprocess.CalledProcessError: They do not compile.

    Returns:
        The folder with the programs.
    """
    environment = os.environ | ({} if target is None else {"CARGO_TARGET_DIR": str(target)})
    command = ["cargo", "build", "--quiet", "--release", "-p", "kueuecore-bench", "--bins"]
    if root == ROOT:
        command.append("--locked")
    subprocess.run(command, cwd=root, env=environment, check=True)
    return Path(environment.get("CARGO_TARGET_DIR", root / "target")) / "release"


def lines(program: Path, *arguments: str) -> Iterator[dict[str, Any]]:
    """Runs a program that prints an object of JSON a line.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        yield json.loads(line)


def kernel_names(programs: Path) -> list[str]:
    """The names of all kernels, in the order of the tables."""
    done = subprocess.run([programs / "kernels", "--list"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


def time_kernels(
    programs: Path, *, seconds: float, names: Sequence[str] = (), growing: bool = False
) -> dict[str, dict[str, Any]]:
    """Times kernels for about so many seconds each.

    Args:
        programs: Where they were built.
        seconds: For each.
        names: Parts of their names; none: all.
        growing: Those that come in a series of sizes, instead of those of the table?

    Returns:
        By name: `best_ns`, `median_ns`, `runs`, and `heads` where it is a cycle.
    """
    arguments = ["--json", "--seconds", str(seconds), *["--growing"] * growing, *names]
    return {line.pop("name"): line for line in lines(programs / "kernels", *arguments)}


def allocations(programs: Path, names: Sequence[str] = ()) -> dict[str, float]:
    """How often one call of each kernel asks for memory, by name; parts of the names select some."""
    return {line["name"]: line["allocations"] for line in lines(programs / "allocations", *names)}


@dataclass(frozen=True, slots=True)
class Counts:
    """What one call of a kernel does, counted on a simulated processor: the same on a busy machine as on a quiet one.

    Args:
        instructions: Instructions executed.
        d1_misses: Reads and writes that the first cache of data did not have.
        i1_misses: Instructions that the first cache of instructions did not have.
    """

    instructions: int
    d1_misses: int
    i1_misses: int


def counts(programs: Path, name: str) -> Counts | None:
    """Counts what one call of a kernel does.

    Args:
        programs: Where they were built.
        name: The kernel, in full.

    Returns:
        The counts; `None` without valgrind.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        options = ["--tool=callgrind", "--toggle-collect=*rows::measured*", f"--callgrind-out-file={folder}/out"]
        command = [valgrind, *options, *_CACHES, str(programs / "kernels"), "--once", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    calls: Mapping[str, int] = {line["name"]: line["calls"] for line in map(json.loads, done.stdout.splitlines())}
    return read_counts(done.stderr, calls[name]) if name in calls else None


def read_counts(reported: str, calls: int) -> Counts | None:
    """Counts of one call, from what callgrind says at its end of so many; `None` if it says nothing."""
    events = re.search(r"Events\s*:(.*)", reported)
    collected = re.search(r"Collected\s*:(.*)", reported)
    if events is None or collected is None:
        return None
    # Zeros at the end of the line are left out.
    each = zip_longest(events[1].split(), collected[1].split(), fillvalue="0")
    total = {event: int(number) for event, number in each}

    def of_a_call(*names: str) -> int:
        return round(sum(total[name] for name in names) / calls)

    return Counts(of_a_call("Ir"), of_a_call("D1mr", "D1mw"), of_a_call("I1mr"))
