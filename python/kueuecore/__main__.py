"""The entry points: `kueuecore`, which is also `python -m kueuecore`, and the two that kubectl looks for."""

import gc
import os
import signal
import sys

__all__ = ["FEW_COLLECTIONS", "kubectl", "kubectl_complete", "main"]

FEW_COLLECTIONS = 50_000
"""Threshold of the garbage collector: large files are many objects, of which few are in cycles."""


def main() -> int:
    """Run the command and return its exit code."""
    _prepare()
    from kueuecore.cli import main as command  # slow

    code = command()
    if sys.argv[1:2] == ["serve"]:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End the process without waiting for its threads.

    Python would stop those that watch and elect in the middle of a call, and one in the extension aborts the process.
    """
    import atexit  # no other command needs it

    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # nobody reads them any more
        pass
    os._exit(code)


def kubectl() -> int:
    """Run the command as `kubectl kueuecore`: kubectl runs `kubectl-kueuecore`."""
    _prepare()
    from kueuecore.cli import main as command

    return command(program="kubectl kueuecore")


def kubectl_complete() -> int:
    """Complete `kubectl kueuecore`: kubectl runs `kubectl_complete-kueuecore` with the words after it."""
    _prepare()
    from kueuecore.cli.completions import completion_lines

    sys.stdout.write("".join(f"{line}\n" for line in completion_lines(sys.argv[1:])))
    return 0


def _prepare() -> None:
    # By default Ctrl-C raises KeyboardInterrupt: a traceback in the middle of an import, and only after a long engine
    # call has ended. There is nothing to clean up, so let it end the process at once. If it is ignored, keep that.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(FEW_COLLECTIONS)


if __name__ == "__main__":
    sys.exit(main())
