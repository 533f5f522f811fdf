"""The `kueuecore` command: shows what Kueue would decide about some manifests, without a cluster."""

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
Shows what Kueue would decide about some manifests: which workloads get quota, from which
flavors, and why the others wait. Reads files only; `serve` alone talks to a cluster."""

_RUN_DESCRIPTION = """\
Reads manifests, runs scheduling cycles until nothing changes any more, and shows the outcome.
Time stands still unless you give --for; no workload finishes, and evicted pods stop at once.

Reads Kueue's kinds (v1beta2 and v1beta1), Namespaces, LimitRanges, RuntimeClasses,
PriorityClasses, ResourceClaimTemplates, DeviceClasses, Nodes and Pods. Jobs are turned into Workloads first."""

_RUN_EPILOG = """\
examples:
  kueuecore run queues.yaml jobs.yaml         what would happen to these jobs?
  kueuecore run -R manifests/ -o wide         a directory and its subdirectories, with more columns
  kueuecore run . --feature-gates PartialAdmission=false
  kueuecore run manifests/ --fail-on-pending  a check for CI
  kubectl get -A -o yaml \\
    ns,resourceflavors,clusterqueues,cohorts,admissionchecks,workloadpriorityclasses,localqueues,workloads \\
    | kueuecore run - --trusted               what would a running Kueue do next?
  kueuecore run . -o json | jq -r '.workloads[] | select(.status == "Pending").message'

exit codes:
"""


_SIMULATE_DESCRIPTION = """\
Runs a scenario in virtual time until nothing is left to happen, and shows what became of each
job and how long jobs waited. The same scenario and seed always give the same result.
docs/scenarios.md describes the file."""

_SIMULATE_EPILOG = """\
examples:
  kueuecore simulate examples/scenario/scenario.yaml
  kueuecore simulate scenario.yaml --seed 2 -o wide   another seed, and a row for every job
  kueuecore simulate scenario.yaml -o json | jq '.clusterQueues[].waitSeconds'
  kueuecore simulate year.yaml --checkpoint year.checkpoint --resume   continue an interrupted run

exit codes:
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The arguments; by default `sys.argv[1:]`.

    Returns:
        The exit code, one of `ExitCode`.
    """
    try:
        return _main(arguments)
    except OutputError as error:
        if not error.has_reader:
            return ExitCode.BROKEN_PIPE
        to_stderr(f"kueuecore: cannot write {shown(error.what)}: {error}")
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
    except SystemExit as end:  # --help, --version, or wrong usage, which argparse has already reported
        return end.code if isinstance(end.code, int) else ExitCode.OK
    code: int = options.command(options)
    return code


class _Parser(argparse.ArgumentParser):
    """A parser that copes with closed streams and escapes what the user typed."""

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
        write(f"kueuecore {version()}, which follows Kueue {KUEUE_VERSION} at commit {KUEUE_COMMIT}\n")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="kueuecore", description=_DESCRIPTION, formatter_class=formatter)
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show this version, and the version of Kueue that it follows"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    add = commands.add_parser(
        "run",
        help="show what Kueue would do with the workloads in some manifests",
        description=_RUN_DESCRIPTION,
        epilog=_RUN_EPILOG + _exit_codes(),
        formatter_class=formatter,
    )
    add.set_defaults(command=run)
    _add_inputs(add)
    shown = add.add_argument_group("output")
    shown.add_argument("-o", "--output", choices=["table", "wide", "json", "yaml"], default="table", help=_OUTPUT_HELP)
    shown.add_argument("--events", action="store_true", help="show events too (json always has them)")
    _add_style(shown)

    add = commands.add_parser(
        "simulate",
        help="run a scenario in virtual time and show how long jobs wait",
        description=_SIMULATE_DESCRIPTION,
        epilog=_SIMULATE_EPILOG + _exit_codes(),
        formatter_class=formatter,
    )
    add.set_defaults(command=simulate)
    add.add_argument("scenario", metavar="SCENARIO", help="a YAML file of kind Scenario")
    add.add_argument("--seed", type=_seed, help="use this seed instead of the one in the file: 0 to 2^53")
    add.add_argument(
        "--allow-code",
        action="store_true",
        help="run the program that fleet.policy.use names; read it first, as it runs with your privileges",
    )
    saved = add.add_argument_group("checkpoints")
    help_text = "save the run to this file from time to time and on Ctrl-C; deleted when the run ends"
    saved.add_argument("--checkpoint", type=Path, metavar="FILE", help=help_text)
    saved.add_argument("--resume", action="store_true", help="continue from that file if it exists")
    help_text = "how often to save, such as 5m; by default every minute"
    saved.add_argument("--checkpoint-every", type=_step_seconds, metavar="DURATION", help=help_text)
    shown = add.add_argument_group("output")
    help_text = "table (the default); wide: every job, no wrapping; json: everything, as one document"
    shown.add_argument("-o", "--output", choices=["table", "wide", "json"], default="table", help=help_text)
    help_text = "write an HTML page with charts to this file; needs the extra `report`"
    shown.add_argument("--report", type=Path, metavar="FILE", help=help_text)
    help_text = "write tables of jobs, ClusterQueues, cohorts, measures and Kueue's metrics to this folder"
    shown.add_argument("--results", type=Path, metavar="DIR", help=help_text)
    help_text = "the format of these tables; parquet and arrow need the extra `arrow`"
    shown.add_argument("--results-format", choices=["csv", "parquet", "arrow"], default="csv", help=help_text)
    help_text = "write a row per ClusterQueue and cohort at this interval, such as 1m; by default at each change"
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
    add = commands.add_parser("gates", help="list Kueue's feature gates, their defaults and what they do")
    add.set_defaults(command=gates)
    add.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )
    return parser


def _add_inputs(add: argparse.ArgumentParser, *, takes_engines: bool = True) -> None:
    """Add the input options of every command that decides about manifests."""
    given = add_state(add, paths="PATH", takes_engines=takes_engines)
    given.add_argument(
        "--for",
        dest="span",
        metavar="DURATION",
        type=_duration,
        default=0,
        help="let this much time pass, such as 10s or 1h30m, with cycles whenever a backoff ends, a failed node is "
        "replaced, or anything else is due; by default time stands still",
    )


def _add_style(shown: argparse._ArgumentGroup) -> None:
    shown.add_argument(
        "--color",
        choices=["auto", "always", "never"],
        default="auto",
        help="use colours; by default only on a terminal",
    )
    shown.add_argument("--no-color", dest="color", action="store_const", const="never", help="same as --color=never")
    shown.add_argument("-q", "--quiet", action="store_true", help="no notes and warnings on stderr")
    shown.add_argument(
        "--fail-on-pending",
        action="store_true",
        help="exit with 1 if a workload is still pending at the end, or a job still waits for its Workload",
    )


def _exit_codes() -> str:
    return "\n".join(f"  {code.value:<4} {code.meaning}" for code in ExitCode)


_OUTPUT_HELP = """table (the default); wide: more columns, no wrapping; json: everything, as one document;
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
        raise argparse.ArgumentTypeError(f"{quoted(text)} is not greater than 0")
    return found / 1e9


def _duration(text: str) -> int:
    try:
        found = duration_ns(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if found < 0:
        raise argparse.ArgumentTypeError(f"{quoted(text)} is less than 0")
    return found
