"""Handles the signals that ask a process to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["ended_by_sigterm", "stopped_by_signals"]


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Raise SystemExit on SIGTERM: the first process of a container has no default handler, so would ignore it."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM or SIGINT; a second signal does what it did before.

    Args:
        stop: Asks to stop. Outside of the main thread, which alone gets signals, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def handle(_: int, __: FrameType | None) -> None:
        # Any further signal is the second one.
        for number, handler in before.items():
            signal.signal(number, handler)
        stop()

    for number in map(int, (signal.SIGTERM, signal.SIGINT)):
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
