"""Child processes that end with us, whatever happens."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["end", "free_port", "start"]

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def start(
    command: Sequence[str | Path], *, log: Path, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process that is killed when the thread ends that has started it.

    Args:
        command: What to run.
        log: The file to which its output is appended.
        environment: Variables beside ours.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            preexec_fn=_die_with_parent,
        )


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end(process: subprocess.Popen[bytes], *, seconds: float = 10.0) -> int:
    """End a process, by force if it does not end in time; return its exit code."""
    if process.poll() is None:
        # A stopped process hears no other signal.
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def free_port() -> int:
    """Return a port of loopback on which nobody listens."""
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port: int = it.getsockname()[1]
        return port
