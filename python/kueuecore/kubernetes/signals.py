"""How a process is asked to stop."""

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
    """SIGTERM raises SystemExit, as nothing else ends the first process of a container, which has no default for it."""

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
    """SIGTERM and SIGINT ask to stop; the second one does what it did before.

    Args:
        stop: Asks to stop. Nothing happens outside of the main thread, which alone gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}

    def handle(_: int, __: FrameType | None) -> None:
        # Whichever comes next is the second one.
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
