"""Signals of processes that tests start."""

import signal


def listen_to_ctrl_c() -> None:
    """Hear SIGINT in the process that calls it, which a shell has ignored where it runs tests in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
