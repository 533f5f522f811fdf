"""Feed bad input to every entry point ("door").

The outcome must be a documented error or a correct answer, with time and memory in proportion to the input. Each case
follows from a seed, a door and a number; `--door` and `--case` replay one. Cases run in separate processes, so that
crashes and hangs are found too.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.attack.doors import DOORS

_CASES_OF_A_PROCESS = 100
_PATIENCE = 180.0
_IDLE = 0.5
"""A process that is silent for so many seconds, and uses less CPU time than that, sleeps or waits for a lock."""
_MAX_FINDINGS = 20


@dataclass(slots=True)
class Tally:
    """The outcomes of a door's cases."""

    taken: int = 0
    refused: int = 0
    wrong: int = 0
    seconds: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)


@dataclass(slots=True)
class Attack:
    """A whole attack.

    Args:
        seed: The seed of all cases.
        until: When it ends.
        doors: The doors to attack.
    """

    seed: int
    until: float
    doors: tuple[str, ...]
    tallies: dict[str, Tally] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)
    next_batch: int = 0

    def work(self) -> None:
        """Run batches, each on the next door, until the end."""
        while time.time() < self.until and len(self.findings) < _MAX_FINDINGS:
            with self.lock:
                batch, self.next_batch = self.next_batch, self.next_batch + 1
            door = self.doors[batch % len(self.doors)]
            first = batch // len(self.doors) * _CASES_OF_A_PROCESS
            end = first + _CASES_OF_A_PROCESS
            while first < end and time.time() < self.until:
                first = self.play(door, first, end - first)

    def play(self, door: str, first: int, count: int) -> int:
        """Run cases in a separate process; return the number of the next one."""
        number, title, open_case = first, "", False
        for line, ended in _lines(door, self.seed, first, count, self.until):
            if line is None:
                if open_case:
                    self.note(door, number, title, {"taken": False, "wrong": f"the process {ended}", "seconds": 0.0})
                    return number + 1
                return first + count
            if "begins" in line:
                number, title, open_case = line["begins"], "", True
            elif "title" in line:
                title = line["title"]
            else:
                open_case = False
                self.note(door, number, title, line)
        return first + count

    def note(self, door: str, number: int, title: str, line: dict[str, Any]) -> None:
        """Count the outcome of a case, and keep failures."""
        with self.lock:
            tally = self.tallies.setdefault(door, Tally())
            tally.seconds += line["seconds"]
            tally.slowest = max(tally.slowest, (line["seconds"], number))
            if not line["wrong"]:
                tally.taken += line["taken"]
                tally.refused += not line["taken"]
                return
            tally.wrong += 1
            kind = f"{door}: {re.sub(r'[0-9]+', '0', line['wrong'].splitlines()[0])[:80]}"
            self.kinds[kind] += 1
            if kind not in self.findings:
                again = f"make attack SEED={self.seed} DOOR={door} CASE={number}"
                self.findings[kind] = f"{door} {number}: {title}\n    {line['wrong']}\n    again: {again}"
                print(self.findings[kind], flush=True)


def _lines(door: str, seed: int, first: int, count: int, until: float) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """Yield a process's output line by line, and finally how it ended."""
    reading, writing = os.pipe()
    arguments = [door, str(seed), str(first), str(count), str(until), str(writing)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.attack.worker", *arguments],
        pass_fds=[writing],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as reported, process:
        errors: list[bytes] = []
        drain = threading.Thread(target=_drain, args=(process.stderr, errors))
        drain.start()
        while True:
            is_read = threading.Event()
            threading.Thread(target=_end_if_idle, args=(process, is_read)).start()
            line = reported.readline()
            is_read.set()
            if not line.endswith("\n"):
                break
            yield json.loads(line), ""
        process.kill() if process.poll() is None and _is_stuck(process) else None
        code = process.wait()
        drain.join()
    last = b"".join(errors).decode(errors="replace").strip()[-3000:]
    yield None, f"ended with {code}" + (f"\n{last}" if last else "")


def _end_if_idle(process: subprocess.Popen[bytes], is_read: threading.Event) -> None:
    """Kill a process that is silent and uses no CPU time: on a busy machine others may only be slow."""
    used = _cpu_seconds(process.pid)
    while not is_read.wait(_PATIENCE):
        before, used = used, _cpu_seconds(process.pid)
        if used - before < _IDLE:
            process.kill()
            return


def _cpu_seconds(pid: int) -> float:
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _is_stuck(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        return True
    return False


def _drain(stream: IO[bytes] | None, into: list[bytes]) -> None:
    while stream is not None and (data := stream.read(65536)):
        into.append(data)
        del into[:-4]


def _again(door: str, seed: int, number: int) -> int:
    """Replay one case in this process, with its traceback."""
    from random import Random

    from tests.attack.judging import judged

    case = DOORS[door](Random(f"{seed} {door} {number}"))
    print(f"{door} {number}: {case.title} ({case.size} bytes)", flush=True)
    verdict = judged(case)
    print(verdict.wrong or ("taken" if verdict.taken else "refused"), f"after {verdict.seconds:.2f} s")
    return 1 if verdict.wrong else 0


def main() -> int:
    """Attack; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--door", choices=[*DOORS], default=None)
    parser.add_argument("--case", type=int, default=None, help="replay this case of the door")
    given = parser.parse_args()
    seed = secrets.randbelow(10**6) if given.seed is None else given.seed
    if given.case is not None:
        if given.door is None:
            parser.error("--case needs --door")
        return _again(given.door, seed, given.case)
    attack = Attack(seed, time.time() + given.seconds, tuple(DOORS) if given.door is None else (given.door,))
    print(f"seed {seed}, {given.seconds:.0f} s", flush=True)
    threads = [threading.Thread(target=attack.work) for _ in range(os.cpu_count() or 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"\n{'DOOR':<12}{'CASES':>8}{'REFUSED':>9}{'TAKEN':>8}{'WRONG':>7}{'CPU':>9}   SLOWEST")
    for door, tally in sorted(attack.tallies.items()):
        n_cases = tally.taken + tally.refused + tally.wrong
        slowest, number = tally.slowest
        row = f"{door:<12}{n_cases:>8}{tally.refused:>9}{tally.taken:>8}{tally.wrong:>7}{tally.seconds:>7.0f} s"
        print(f"{row}   {slowest:.1f} s in case {number}")
    return 1 if attack.findings else 0


if __name__ == "__main__":
    sys.exit(main())
