"""`kueuecore dump`: writes the state of a cluster to one file, which every command reads."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from kueuecore._json import JsonObject
from kueuecore._replaced_files import replaced
from kueuecore._text import counted, shown
from kueuecore.cli.cluster_options import add_cluster
from kueuecore.cli.cluster_source import ClusterSource
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.streams import to_stderr, write
from kueuecore.errors import ManifestError
from kueuecore.times import format_time

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Lists what decisions depend on in a cluster, and writes it as one List in JSON: Kueue's objects,
Namespaces, LimitRanges, PriorityClasses and so on, Nodes and Pods if a flavor names a topology, and
Kueue's Deployment and ConfigMap, which show its release and Configuration. Every command reads such a
file, with --trusted. Reads only; `kueuecore anonymise` removes names from it."""

EXAMPLES = """\
  kueuecore dump -o state.json.gz                 of the current context, compressed
  kueuecore explain state.json.gz team-a/train --trusted
  kueuecore dump --context prod --events -o state.json.gz     with the Events, for `kueuecore history`
  kueuecore dump | kueuecore anonymise - --trusted -o share.yaml
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_cluster(add)
    add.add_argument("--events", action="store_true", help="list Events too, which servers keep for an hour or so")
    out = add.add_argument_group("output")
    help_text = "write to this file, compressed if its name ends in .gz; by default to stdout"
    out.add_argument("-o", "--output", metavar="FILE", default="-", help=help_text)
    out.add_argument("-q", "--quiet", action="store_true", help="no notes on stderr")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore dump`; returns the exit code."""
    now = time.time_ns()
    source = ClusterSource(options)
    objects = source.dumped(with_events=options.events)
    plain: JsonObject = {"apiVersion": "v1", "kind": "List", "items": [*objects]}
    text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False) + "\n"
    if options.output == "-":
        write(text)
    else:
        _save(text.encode(), Path(options.output))
    if not options.quiet:
        to_stderr(*(f"warning: {unlisted}" for unlisted in source.unlisted))
        where = "" if options.output == "-" else f" to {shown(options.output)}"
        to_stderr(
            f"note: wrote {counted(len(objects), 'object')}{where}; read it with --trusted --now {format_time(now)}"
        )
    return ExitCode.OK


def _save(data: bytes, path: Path) -> None:
    """Write a file, which only its owner may read.

    Raises:
        ManifestError: It cannot be written.
    """
    if path.suffix == ".gz":
        import gzip

        # Without a time, so that the same objects give the same bytes.
        data = gzip.compress(data, compresslevel=6, mtime=0)
    try:
        with replaced(path, mode=0o600) as file:
            file.write(data)
    except OSError as error:
        remedy = "choose another file"
        raise ManifestError.of(error.strerror or str(error), field="--output", remedy=remedy, file=str(path)) from None
