"""How a process is asked to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["stopped_by_signals"]


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

    def handle(number: int, _: FrameType | None) -> None:
        signal.signal(number, before[number])
        stop()

    for number in map(int, (signal.SIGTERM, signal.SIGINT)):
        before[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
