"""What figures were measured on, so that they can be read next year."""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Machine", "resident_bytes", "revision"]

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, and how busy it was.

    Args:
        cpu: Model of the processor.
        n_cores: Cores that this process may use.
        memory_gib: Memory.
        system: Operating system.
        load: How many threads wanted to run in the last minute, five and fifteen minutes.
    """

    cpu: str
    n_cores: int
    memory_gib: float
    system: str
    load: tuple[float, float, float]

    @classmethod
    def read(cls) -> Machine:
        """This one, now."""
        return cls(
            cpu=_cpu(),
            n_cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            system=f"{platform.system()} {platform.machine()}",
            load=os.getloadavg(),
        )

    def busy(self) -> str:
        """The load in words."""
        one, five, fifteen = self.load
        return f"load average {one:.1f}, {five:.1f}, {fifteen:.1f} on {self.n_cores} cores"


def resident_bytes() -> int:
    """Memory that this process takes from the system now (Linux); 0 where that is not reported."""
    for line in _text("/proc/self/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _cpu() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def revision(commit: str = "HEAD") -> str:
    """The short name of a commit of this repository, with `+` if files have changed since; empty outside of git."""
    found = _git("rev-parse", "--short", commit)
    changed = commit == "HEAD" and _git("status", "--porcelain", "--untracked-files=no", "rust", "Cargo.lock")
    return f"{found}+" if found and changed else found


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
