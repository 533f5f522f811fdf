"""`kueuecore anonymise`: writes a dump without names that leads to the same decisions."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kueuecore._json import JsonObject
from kueuecore._replaced_files import replaced
from kueuecore._text import shown
from kueuecore.cli.configured import configured
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.exit_codes import ExitCode, exit_code_help
from kueuecore.cli.namespace_labels import with_namespaces
from kueuecore.cli.options import add_inputs, seed
from kueuecore.cli.state_file import manifests_of, time_of
from kueuecore.cli.streams import is_utf8, to_stderr, write
from kueuecore.configuration import Configuration
from kueuecore.dumps import Deciding, anonymise
from kueuecore.errors import ManifestError
from kueuecore.findings.active_checks import with_active_checks
from kueuecore.manifests import Manifest
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore.times import format_time
from kueuecore.world import World

__all__ = ["add_anonymise", "add_output", "deciding_about", "deciding_of", "given_of", "save_text", "write_objects"]

_DESCRIPTION = """\
Anonymises a dump: namespaces, queues, cohorts, flavors, workloads, nodes, labels and their values
become numbers that sort as the names did; images, programs, environments and messages are removed.
Runs both, and writes nothing if they lead to different decisions."""

_EPILOG = """\
examples:
  kueuecore anonymise dump.yaml --trusted -o shared.yaml      a cluster's dump, to attach to a bug report
  kueuecore anonymise manifests/ --names names.json > out.yaml   and keep the mapping of names
  kueuecore anonymise dump.yaml --seed 7 --move-to 2026-01-01T00:00:00Z

exit codes:
"""
_MOST_DIFFERENCES = 20


def add_anonymise(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add.description, add.epilog = _DESCRIPTION, _EPILOG + exit_code_help()
    add.set_defaults(command=anonymise_command)
    add_inputs(add, takes_engines=False)
    out = add.add_argument_group("output")
    add_output(out)
    help_text = "write the mapping of names to this file, as JSON; do not share it"
    out.add_argument("--names", type=Path, metavar="FILE", help=help_text)
    help_text = "skip numbers at random, so that they do not reveal how many names there are: 0 to 2^53"
    out.add_argument("--seed", type=seed, metavar="N", help=help_text)
    help_text = "shift all times so that the decisions happen at this one"
    out.add_argument("--move-to", type=time_of, metavar="TIME", help=help_text)


def add_output(out: argparse._ArgumentGroup) -> None:
    """Add `--output` and `--quiet`."""
    out.add_argument("-o", "--output", metavar="FILE", default="-", help="write to this file; by default to stdout")
    out.add_argument("-q", "--quiet", action="store_true", help="no notes and no progress on stderr")


def anonymise_command(options: argparse.Namespace) -> int:
    """Run `kueuecore anonymise`; returns the exit code."""
    if options.names is not None and options.names.resolve() == Path(options.output).resolve():
        raise ManifestError.of("--names and --output name the same file", remedy="write the names to another file")
    manifests, deciding = deciding_of(options)
    found = anonymise(manifests, deciding, seed=options.seed, move_to=options.move_to)
    if found.differences:
        lines = [shown(it) for it in found.differences[:_MOST_DIFFERENCES]]
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


def given_of(options: argparse.Namespace) -> tuple[Manifest, ...]:
    """Read the objects."""
    given = manifests_of(options.paths, recursive=options.recursive, quiet=options.quiet, strict=options.strict)
    return with_namespaces(given, options.namespace_labels)


def deciding_of(options: argparse.Namespace) -> tuple[tuple[Manifest, ...], Deciding]:
    """Read the objects, with the conditions of checks that `run` would write, and how to decide about them."""
    manifests = given_of(options)
    kueue = configured(options.config, options.feature_gates, manifests, kueue=options.kueue)
    configuration = kueue.configuration
    # The dump lacks the objects that have it: the command that reproduces the decisions has to name it.
    options.feature_gates = [*kueue.gates.items(), *options.feature_gates]
    options.kueue = configuration.release
    if options.config is None and kueue.written is not None:
        options.config = kueue.written.source.file
    if not options.quiet:
        to_stderr(*kueue.notes)
    return deciding_about(manifests, configuration, options)


def deciding_about(
    manifests: tuple[Manifest, ...], configuration: Configuration, options: argparse.Namespace
) -> tuple[tuple[Manifest, ...], Deciding]:
    """Return objects with the conditions of checks that `run` would write, and how to decide about them."""
    world = World.of(manifests, configuration=configuration, trusted=options.trusted)
    newest = world.newest_time()
    now = options.now if options.now is not None else newest if newest is not None else 0
    assumes_active = options.assume_checks_active
    given = with_active_checks(replace(world, manifests=manifests), now=now, assumes_active=assumes_active).manifests
    deciding = Deciding(configuration=configuration, now=now, span_ns=options.span, trusted=options.trusted)
    return given, deciding


def _options_of_run(options: argparse.Namespace) -> Iterable[str]:
    if options.trusted:
        yield "--trusted"
    if options.kueue.name != DEFAULT_RELEASE:
        yield f"--kueue {options.kueue.name}"
    if options.feature_gates:
        yield "--feature-gates " + ",".join(f"{name}={str(is_on).lower()}" for name, is_on in options.feature_gates)
    if options.config:
        yield "--config FILE"
    if options.span:
        yield f"--for {options.span}ns"


def write_objects(objects: Iterable[JsonObject], options: argparse.Namespace, *, now: int) -> None:
    """Write objects as YAML to `--output`; the first line is the command that reproduces the decisions.

    Raises:
        ManifestError: The file cannot be written.
    """
    is_ascii = options.output == "-" and not is_utf8()
    head = f"# kueuecore run --now {format_time(now)}{''.join(f' {it}' for it in _options_of_run(options))}\n"
    text = head + "---\n".join(yaml_document(it, is_ascii=is_ascii) for it in objects)
    if options.output == "-":
        write(text)
    else:
        save_text(text, Path(options.output), field="--output")


def save_text(text: str, path: Path, *, field: str, is_private: bool = False) -> None:
    """Write a file.

    Args:
        text: What to write.
        path: The file.
        field: The option that names it.
        is_private: Let nobody but its owner read it.

    Raises:
        ManifestError: It cannot be written.
    """
    try:
        with replaced(path, mode=0o600 if is_private else None) as file:
            file.write(text.encode())
    except OSError as error:
        remedy = "choose another file"
        raise ManifestError.of(error.strerror or str(error), field=field, remedy=remedy, file=str(path)) from None
