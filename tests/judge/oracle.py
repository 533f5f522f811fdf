"""The program that plays cases with a released Kueue: a line for each case, and a line for each answer."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Self

__all__ = ["CycleTime", "Oracle", "OracleError", "Verdict"]

_MAX_AT_ONCE = 64 * 1024
_TIMES = ("schedulingNanos", "storeNanos", "writingNanos")
_PANICS = (b"panic:", b"fatal error:")


class OracleError(Exception):
    """The program does not start, or what it writes is no answer."""


@dataclass(frozen=True, slots=True)
class CycleTime:
    """How long Kueue's scheduler took for one cycle, in nanoseconds.

    Args:
        all_ns: All of it.
        store_ns: Of this, in the store that takes the place of an API server.
        writing_ns: Of this, in the store or in the status patches of admissions, which Kueue writes beside its cycles.
    """

    all_ns: int
    store_ns: int = 0
    writing_ns: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one case.

    Args:
        answer: What Kueue answers, as recorded runs have it under `expect`; empty if it does not.
        crash: How Kueue itself failed.
        error: Why the case cannot be played.
        left_out: What chance decides in it: `messages`, `statuses`.
        is_chance: Whether chance decides all of it.
        times: How long each cycle took, if the program says so.
    """

    answer: dict[str, Any] = field(default_factory=dict)
    crash: str = ""
    error: str = ""
    left_out: tuple[str, ...] = ()
    is_chance: bool = False
    times: tuple[CycleTime, ...] = ()


class Oracle:
    """A program that is started with the first case, and again when it has ended or hung.

    What it was playing then is a crash; cases that were sent after that one are sent again.

    Args:
        command: How to start it.
        patience: The longest time for one case, in seconds.

    Raises:
        OracleError: From `send` and `read`: the program does not start, or what it writes is no answer.
    """

    def __init__(self, command: Sequence[str], *, patience: float = 30.0) -> None:
        self._command = list(command)
        self._patience = patience
        self._running: _Running | None = None
        self._sent: deque[tuple[str, bytes]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None

    def send(self, case: dict[str, Any]) -> None:
        """Let a case be played after those sent before."""
        line = json.dumps(case, separators=(",", ":")).encode() + b"\n"
        self._sent.append((case["id"], line))
        self._start().write(line)

    def read(self) -> Verdict:
        """Return the verdict of the oldest case that was sent and not read; wait for it."""
        name, _ = self._sent[0]
        running = self._start()
        line = running.line(time.monotonic() + self._patience)
        self._sent.popleft()
        if line is not None:
            return _verdict(line, name)
        self._running = None
        crash = running.end() or f"no answer in {self._patience:.0f} s"
        for _, each in self._sent:
            self._start().write(each)
        return Verdict(crash=crash)

    def plays(self, case: dict[str, Any], times: int) -> list[Verdict]:
        """Return the verdicts of a case that is played several times; nothing else may be under way."""
        for _ in range(times):
            self.send(case)
        return [self.read() for _ in range(times)]

    def _start(self) -> _Running:
        if self._running is None:
            try:
                self._running = _Running(self._command)
            except OSError as error:
                raise OracleError(f"cannot start {self._command[0]}: {error.strerror}") from error
        return self._running


class _Running:
    """One process of the program, and the threads that write to it and read what it complains of."""

    def __init__(self, command: Sequence[str]) -> None:
        # In a session of its own, Ctrl-C does not end it in the middle of a case.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._rest, self._last_words = b"", b""
        # Threads, as both sides would wait for ever if both pipes were full.
        self._threads = [threading.Thread(target=entry, daemon=True) for entry in (self._pour, self._listen)]
        for each in self._threads:
            each.start()

    def write(self, line: bytes) -> None:
        self._lines.put(line)

    def line(self, until: float) -> bytes | None:
        """Return the next line that it writes; `None`: it has ended, or takes longer."""
        pieces = [self._rest]
        while b"\n" not in pieces[-1]:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._stdout], [], [], left)[0]:
                return None
            some = os.read(self._stdout.fileno(), _MAX_AT_ONCE)
            if not some:
                return None
            pieces.append(some)
        line, _, self._rest = b"".join(pieces).partition(b"\n")
        return line

    def end(self) -> str:
        """End it; return how it ended by itself, in a line, or nothing if it was still running."""
        self._lines.put(None)
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A panic takes a moment to write all its goroutines.
            self._process.wait(1)
        is_ended = self._process.returncode is not None
        self._process.kill()
        status = self._process.wait()
        for each in self._threads:
            each.join(1)
        for pipe in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        words = [line for line in self._last_words.decode(errors="replace").splitlines() if line.strip()]
        last = next((word for word in words if word.encode().startswith(_PANICS)), words[-1] if words else "")
        return f"ended with {status}: {last[:300]}" if is_ended else ""

    def _pour(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (line := self._lines.get()) is not None:
                self._stdin.write(line)
                self._stdin.flush()
            self._stdin.close()

    def _listen(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while some := os.read(self._stderr.fileno(), _MAX_AT_ONCE):
                words = self._last_words + some
                at = [panic for panic in map(words.find, _PANICS) if panic >= 0]
                # What follows a panic are stacks, which are long.
                self._last_words = words[min(at) :][:_MAX_AT_ONCE] if at else words[-_MAX_AT_ONCE:]


def _verdict(line: bytes, name: str) -> Verdict:
    try:
        said = json.loads(line)
    except ValueError as error:
        raise OracleError(f"no JSON: {line[:200]!r}") from error
    # A case that cannot be read has no id in its answer.
    if not isinstance(said, dict) or said.get("id") not in (name, *[None, ""] * ("error" in said)):
        raise OracleError(f"no answer to {name}: {line[:200]!r}")
    if said.get("crash") or said.get("error"):
        return Verdict(crash=str(said.get("crash", "")), error=str(said.get("error", "")))
    if not isinstance(said.get("expect"), dict):
        raise OracleError(f"no answer to {name}: {line[:200]!r}")
    return Verdict(
        said["expect"],
        left_out=tuple(said.get("leftOut", ())),
        is_chance=bool(said.get("chance")),
        times=tuple(map(CycleTime, *(said.get(name, ()) for name in _TIMES))),
    )
