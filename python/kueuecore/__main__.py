"""The process of the command `kueuecore`, which `python -m kueuecore` is too."""

import signal
import sys

__all__ = ["main"]


def main() -> int:
    """Run the command; returns its exit code."""
    # Python would raise KeyboardInterrupt: in the middle of an import with a traceback, and only after a long call of
    # the engine. There is nothing to tidy up, so Ctrl-C may end the process at once; where it is ignored, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from kueuecore.cli import main as command  # takes a while

    return command()


if __name__ == "__main__":
    sys.exit(main())
