"""`kueuecore anonymise`: writes a dump without names that leads to the same decisions."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kueuecore._text import shown
from kueuecore.cli.dump_commands import add_output, deciding_of, save_text, write_objects
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.options import add_inputs, seed
from kueuecore.cli.state_file import time_of
from kueuecore.cli.streams import to_stderr
from kueuecore.dumps import anonymise
from kueuecore.errors import ManifestError

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Anonymises a dump: namespaces, queues, cohorts, flavors, workloads, nodes, labels and their values
become numbers that sort as the names did; images, programs, environments and messages are removed.
Runs both, and writes nothing if they lead to different decisions."""

EXAMPLES = """\
  kueuecore anonymise dump.yaml --trusted -o shared.yaml      a cluster's dump, to attach to a bug report
  kueuecore anonymise manifests/ --names names.json > out.yaml   and keep the mapping of names
  kueuecore anonymise dump.yaml --seed 7 --move-to 2026-01-01T00:00:00Z
"""
_MAX_DIFFERENCES = 20


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_inputs(add, takes_engines=False)
    out = add.add_argument_group("output")
    add_output(out)
    help_text = "write the mapping of names to this file, as JSON; do not share it"
    out.add_argument("--names", type=Path, metavar="FILE", help=help_text)
    help_text = "skip numbers at random: 0 to 2^53; so that they do not reveal how many names there are"
    out.add_argument("--seed", type=seed, metavar="N", help=help_text)
    help_text = "shift all times so that the decisions happen at this one"
    out.add_argument("--move-to", type=time_of, metavar="TIME", help=help_text)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore anonymise`; returns the exit code."""
    if options.names is not None and options.names.resolve() == Path(options.output).resolve():
        raise ManifestError.of("--names and --output name the same file", remedy="write the names to another file")
    manifests, deciding = deciding_of(options)
    found = anonymise(manifests, deciding, seed=options.seed, move_to=options.move_to)
    if found.differences:
        lines = [shown(difference) for difference in found.differences[:_MAX_DIFFERENCES]]
        n_more = len(found.differences) - len(lines)
        more = [f"and {n_more} more"] if n_more else []
        to_stderr(*lines, *more, "kueuecore: the anonymised dump leads to other decisions, nothing was written")
        return ExitCode.PENDING
    if options.names is not None:
        save_text(json.dumps(found.names.by_category, indent=2) + "\n", options.names, field="--names", is_private=True)
    write_objects(found.objects, options, now=found.now)
    if not options.quiet:
        dropped = ", ".join(f"{kind} ({n})" for kind, n in found.dropped.items())
        n_names = sum(map(len, found.names.by_category.values()))
        to_stderr(
            *([f"note: left out, as no decision depends on them: {dropped}"] if dropped else []),
            f"note: {len(found.objects)} objects, {n_names} names; the decisions are the same",
        )
    return ExitCode.OK
