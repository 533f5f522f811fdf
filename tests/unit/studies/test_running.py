"""Processes end whatever happens to them, and say so once."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures.process import BrokenProcessPool

import pytest

from kueuecore.studies import processes


@pytest.mark.skipif(os.name != "posix", reason="Windows has no SIGKILL")
def test_a_process_that_dies_after_a_call_was_cancelled_ends_all_others() -> None:
    """As with Ctrl-C while a result is written: the processes die of it, and the calls that are left are cancelled."""
    with processes(2) as pool:
        assert pool is not None
        process = pool.submit(os.getpid).result(60)
        calls = [pool.submit(time.sleep, 600) for _ in range(8)]
        assert calls[-2].cancel()
        os.kill(process, signal.SIGKILL)
        for call in (calls[0], calls[-1]):
            with pytest.raises(BrokenProcessPool):
                call.result(60)
