"""The command `kueuecore`: what Kueue would decide on some manifests, without a cluster."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kueuecore._text import quoted, shown
from kueuecore.cli.checking import add_check
from kueuecore.cli.commands import gates, run
from kueuecore.cli.comparing import add_compare
from kueuecore.cli.completion import add_completion
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.explaining import add_explain
from kueuecore.cli.forecasting import add_eta
from kueuecore.cli.planning import add_plan
from kueuecore.cli.policy_testing import add_test
from kueuecore.cli.serving import add_serve
from kueuecore.cli.sharing import add_anonymise
from kueuecore.cli.shrinking import add_shrink
from kueuecore.cli.simulating import simulate
from kueuecore.cli.state_file import add_state, time_of
from kueuecore.cli.streams import OutputError, to_stderr, write
from kueuecore.cli.sweeping import add_sweep
from kueuecore.cli.unblocking import add_unblock
from kueuecore.cli.what_if import add_what_if
from kueuecore.errors import ManifestError
from kueuecore.times import duration_ns
from kueuecore.version import KUEUE_COMMIT, KUEUE_VERSION, version

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

__all__ = ["ExitCode", "main"]

_DESCRIPTION = """\
Decides what Kueue would decide on the objects in some manifests: which workloads get
quota, from which flavors, and why the others wait. No cluster is asked, none is changed."""

_RUN_DESCRIPTION = """\
Reads manifests, runs scheduling cycles until nothing changes any more, and shows the outcome.
Time stands still unless --for lets it go on, no workload finishes, and what is evicted stops at once.

Read are Kueue's kinds (v1beta2 and v1beta1), Namespaces, LimitRanges, RuntimeClasses,
PriorityClasses, ResourceClaimTemplates, DeviceClasses, Nodes and Pods; jobs become Workloads first."""

_RUN_EPILOG = """\
examples:
  kueuecore run queues.yaml jobs.yaml         what would become of these jobs?
  kueuecore run -R manifests/ -o wide         a directory and those in it, with more columns
  kueuecore run . --feature-gates PartialAdmission=false
  kueuecore run manifests/ --fail-on-pending  a test for CI
  kubectl get -A -o yaml \\
    ns,resourceflavors,clusterqueues,cohorts,admissionchecks,workloadpriorityclasses,localqueues,workloads \\
    | kueuecore run - --trusted               what would a running Kueue do next?
  kueuecore run . -o json | jq -r '.workloads[] | select(.status == "Pending").message'

exit codes:
"""


_SIMULATE_DESCRIPTION = """\
Reads a scenario, runs it through virtual time until nothing is left to happen, and shows what
became of each job, and how long jobs waited. The same scenario always comes to the same; what is
drawn comes from its seed. docs/cli.md describes the file."""

_SIMULATE_EPILOG = """\
examples:
  kueuecore simulate examples/scenario/scenario.yaml
  kueuecore simulate scenario.yaml --seed 2 -o wide   other draws, every job by itself
  kueuecore simulate scenario.yaml -o json | jq '.clusterQueues[].waitSeconds'
  kueuecore simulate year.yaml --checkpoint year.checkpoint --resume   goes on where it was cut off

exit codes:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: Its arguments; by default those of the process.

    Returns:
        The exit code, one of `ExitCode`.
    """
    try:
        return _main(arguments)
    except OutputError as error:
        if not error.has_reader:
            return ExitCode.BROKEN_PIPE
        to_stderr(f"kueuecore: cannot write standard output: {error}")
        return ExitCode.UNWRITABLE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except ManifestError as error:
        n_problems = len(error.problems)
        to_stderr(
            *map(str, error.problems),
            *(f"warning: {warning}" for warning in error.warnings),
            f"kueuecore: {n_problems} problem{'' if n_problems == 1 else 's'}, nothing was decided",
        )
        return ExitCode.BAD_INPUT
    except Exception:
        to_stderr(*traceback.format_exc().splitlines(), "kueuecore: this is a bug, please report it")
        return ExitCode.BUG


def _main(arguments: Sequence[str] | None) -> int:
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as end:  # --help, --version, or wrong usage, which has been reported
        return end.code if isinstance(end.code, int) else ExitCode.OK
    code: int = options.command(options)
    return code


class _Parser(argparse.ArgumentParser):
    """A parser that survives closed streams and escapes what people typed."""

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        if file is not None:
            super().print_help(file)
        else:
            write(self.format_help())

    def error(self, message: str) -> NoReturn:
        to_stderr(*self.format_usage().splitlines(), f"{self.prog}: error: {shown(message)}")
        raise SystemExit(ExitCode.BAD_INPUT)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        write(f"kueuecore {version()}, which decides as Kueue {KUEUE_VERSION} at commit {KUEUE_COMMIT}\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="kueuecore", description=_DESCRIPTION, formatter_class=formatter)
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version, and that of Kueue")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    add = commands.add_parser(
        "run",
        help="what becomes of the workloads in some manifests",
        description=_RUN_DESCRIPTION,
        epilog=_RUN_EPILOG + _exit_codes(),
        formatter_class=formatter,
    )
    add.set_defaults(command=run)
    _add_inputs(add)
    shown = add.add_argument_group("what comes out")
    shown.add_argument("-o", "--output", choices=["table", "wide", "json", "yaml"], default="table", help=_OUTPUT_HELP)
    shown.add_argument("--events", action="store_true", help="show the events too (always in json)")
    _add_style(shown)

    add = commands.add_parser(
        "simulate",
        help="how long jobs wait in a scenario, through virtual time",
        description=_SIMULATE_DESCRIPTION,
        epilog=_SIMULATE_EPILOG + _exit_codes(),
        formatter_class=formatter,
    )
    add.set_defaults(command=simulate)
    add.add_argument("scenario", metavar="SCENARIO", help="a YAML file of kind Scenario")
    add.add_argument("--seed", type=_seed, help="draw from this seed, not from that of the file: 0 to 2^53")
    add.add_argument(
        "--allow-code",
        action="store_true",
        help="run the program that fleet.policy.use names; read it first: it runs with your privileges",
    )
    saved = add.add_argument_group("runs that may be cut off")
    help_text = "save the run into this file now and then, and after Ctrl-C; it is deleted when the run is over"
    saved.add_argument("--checkpoint", type=Path, metavar="FILE", help=help_text)
    saved.add_argument("--resume", action="store_true", help="go on from that file, if it is there")
    help_text = "how often to save it, such as 5m; by default every minute"
    saved.add_argument("--checkpoint-every", type=_step_seconds, metavar="DURATION", help=help_text)
    shown = add.add_argument_group("what comes out")
    help_text = "table (the default); wide: every job, nothing wrapped; json: one document with everything"
    shown.add_argument("-o", "--output", choices=["table", "wide", "json"], default="table", help=help_text)
    help_text = "write a page of HTML with pictures into this file; takes the extra `report`"
    shown.add_argument("--report", type=Path, metavar="FILE", help=help_text)
    help_text = "write tables of jobs, ClusterQueues and cohorts, measures and Kueue's metrics into this folder"
    shown.add_argument("--results", type=Path, metavar="DIR", help=help_text)
    help_text = "the form of these tables; parquet and arrow take the extra `arrow`"
    shown.add_argument("--results-format", choices=["csv", "parquet", "arrow"], default="csv", help=help_text)
    help_text = "a row of ClusterQueues and cohorts every so often, such as 1m; by default at each change"
    shown.add_argument("--results-step", type=_step_seconds, metavar="DURATION", help=help_text)
    _add_style(shown)

    add_check(commands, exit_codes=_exit_codes())
    add_test(commands, exit_codes=_exit_codes())
    add_compare(commands, exit_codes=_exit_codes())
    add_sweep(commands, exit_codes=_exit_codes())
    add_explain(commands, exit_codes=_exit_codes())
    add_what_if(commands, exit_codes=_exit_codes())
    add_unblock(commands, exit_codes=_exit_codes())
    add_eta(commands, exit_codes=_exit_codes())
    add_plan(commands, exit_codes=_exit_codes())
    add_manifests = partial(_add_inputs, takes_engines=False)
    add_anonymise(commands, exit_codes=_exit_codes(), add_inputs=add_manifests, time=time_of, seed=_seed)
    add_shrink(commands, exit_codes=_exit_codes(), add_inputs=add_manifests)
    add_serve(commands, exit_codes=_exit_codes())
    add_completion(commands, parser)
    add = commands.add_parser("gates", help="list the feature gates of Kueue, their defaults and what they do")
    add.set_defaults(command=gates)
    add.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="by default on a terminal")
    return parser


def _add_inputs(add: argparse.ArgumentParser, *, takes_engines: bool = True) -> None:
    """What goes in: the options of all commands that decide on manifests."""
    given = add_state(add, paths="PATH", takes_engines=takes_engines)
    given.add_argument(
        "--for",
        dest="span",
        metavar="DURATION",
        type=_duration,
        default=0,
        help="go on for so long, as 10s or 1h30m, at each time at which time alone changes something: backoffs end, "
        "failed nodes are replaced; by default time stands still",
    )


def _add_style(shown: argparse._ArgumentGroup) -> None:
    shown.add_argument("--color", choices=["auto", "always", "never"], default="auto", help="by default on a terminal")
    shown.add_argument("--no-color", dest="color", action="store_const", const="never", help="as --color=never")
    shown.add_argument("-q", "--quiet", action="store_true", help="no notes and warnings on stderr")
    shown.add_argument(
        "--fail-on-pending",
        action="store_true",
        help="exit with 1 if a workload is still pending, or a job waits for its own, in the end",
    )


def _exit_codes() -> str:
    return "\n".join(f"  {code.value:<4} {code.meaning}" for code in ExitCode)


_OUTPUT_HELP = """table (the default); wide: more columns, nothing wrapped; json: one document with everything;
yaml: the objects with the status that Kueue would write"""


def _seed(text: str) -> int:
    from kueuecore.scenarios.scenario import MOST_SEED

    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_SEED))
    if not is_short or int(text) > MOST_SEED:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not a whole number from 0 to {MOST_SEED}")
    return int(text)


def _step_seconds(text: str) -> float:
    found = _duration(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not more than 0")
    return found / 1e9


def _duration(text: str) -> int:
    try:
        found = duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found < 0:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is less than 0")
    return found
