"""The benchmark programs of `benches/engine`: built, run, and their instructions counted."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benches.machine import ROOT

__all__ = ["build", "instructions", "kernel_names", "lines", "time_kernels"]


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


def time_kernels(programs: Path, *, seconds: float, names: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Times kernels for about so many seconds each: `best_ns`, `median_ns` and `runs` by name."""
    arguments = ["--json", "--seconds", str(seconds), *names]
    return {line.pop("name"): line for line in lines(programs / "kernels", *arguments)}


def instructions(programs: Path, name: str) -> int | None:
    """How many instructions one call of a kernel takes. Says the same on a busy machine as on a quiet one.

    Args:
        programs: Where they were built.
        name: The kernel, in full.

    Returns:
        The number; `None` without valgrind.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        options = ["--tool=callgrind", "--toggle-collect=*rows::measured*", f"--callgrind-out-file={folder}/out"]
        command = [valgrind, *options, str(programs / "kernels"), "--once", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    calls: Mapping[str, int] = {line["name"]: line["calls"] for line in map(json.loads, done.stdout.splitlines())}
    return round(int(found[1]) / calls[name]) if found and name in calls else None
