"""The entry point of `kueuecore` and `python -m kueuecore`."""

import gc
import signal
import sys

__all__ = ["FEW_COLLECTIONS", "main"]

FEW_COLLECTIONS = 50_000
"""Threshold of the garbage collector: large files are many objects, of which few are in cycles."""


def main() -> int:
    """Run the command and return its exit code."""
    # By default Ctrl-C raises KeyboardInterrupt: a traceback in the middle of an import, and only after a long engine
    # call has ended. There is nothing to clean up, so let it end the process at once. If it is ignored, keep that.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(FEW_COLLECTIONS)
    from kueuecore.cli import main as command  # slow

    return command()


if __name__ == "__main__":
    sys.exit(main())
