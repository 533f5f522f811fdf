"""`kueuecore shrink`: writes the smallest dump that still shows a decision."""

from __future__ import annotations

import argparse

from kueuecore.cli.dump_commands import add_output, deciding_of, write_objects
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.options import add_inputs
from kueuecore.cli.progress import ctrl_c_raises, shrink_progress
from kueuecore.cli.streams import to_stderr
from kueuecore.dumps import Admits, KeepsPending, Preempts, Showing, Unsettled, shrink
from kueuecore.errors import ManifestError

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Writes the smallest dump that still shows a decision: removes objects, then fields, flavors and pod
sets, and makes numbers smaller, as long as the decision stays the same. None of the objects left can
be removed without changing it. Name Workloads, or their jobs."""

EXAMPLES = """\
  kueuecore shrink dump.yaml --trusted --pending team-a/train      the few objects that keep it waiting
  kueuecore shrink dump.yaml --pending team-a/train --message 'insufficient unused quota'
  kueuecore shrink manifests/ --preempts team-a/release team-b/sweep -o small.yaml
  kueuecore shrink loop.yaml --unsettled | kueuecore anonymise - -o share.yaml
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_inputs(add, takes_engines=False)
    what = add.add_argument_group("the decision to keep")
    one = what.add_mutually_exclusive_group(required=True)
    one.add_argument("--pending", metavar="NS/NAME", help="it stays pending, with the same message apart from numbers")
    one.add_argument("--admitted", metavar="NS/NAME", help="it is admitted, to the same ClusterQueue and flavors")
    help_text = "A preempts B, for the same reason"
    one.add_argument("--preempts", nargs=2, metavar=("A", "B"), help=help_text)
    one.add_argument("--unsettled", action="store_true", help="workloads keep evicting each other")
    help_text = "with --pending: any message with this will do; ignoring case"
    what.add_argument("--message", metavar="TEXT", default="", help=help_text)
    add_output(add.add_argument_group("output"))


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore shrink`; returns the exit code."""
    showing = _showing(options)
    manifests, deciding = deciding_of(options)
    with ctrl_c_raises(), shrink_progress(quiet=options.quiet) as progress:
        found = shrink(manifests, deciding, showing, progress=progress)
    write_objects(found.objects, options, now=deciding.now)
    if not options.quiet:
        to_stderr(f"note: {len(found.objects)} of {found.n_before} objects are left, after {found.n_tries} tries")
    return ExitCode.INTERRUPTED if found.is_interrupted else ExitCode.OK


def _showing(options: argparse.Namespace) -> Showing:
    """The decision to keep.

    Raises:
        ManifestError: The options contradict each other.
    """
    if options.message and not options.pending:
        raise ManifestError.of("--message works with --pending only", remedy="add --pending NAMESPACE/NAME")
    if options.pending:
        return KeepsPending(name=options.pending, message=options.message)
    if options.admitted:
        return Admits(name=options.admitted)
    if options.preempts:
        preemptor, victim = options.preempts
        return Preempts(preemptor=preemptor, victim=victim)
    return Unsettled()
