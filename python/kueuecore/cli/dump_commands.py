"""What the commands that write dumps share: which objects they read, how to decide about them, and the output."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from kueuecore._json import JsonObject
from kueuecore._replaced_files import replaced
from kueuecore.cli.configured import configured
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.namespace_labels import with_namespaces
from kueuecore.cli.state_file import given_objects
from kueuecore.cli.streams import is_utf8, to_stderr, write
from kueuecore.configuration import Configuration
from kueuecore.dumps import Deciding
from kueuecore.errors import ManifestError
from kueuecore.findings.active_checks import with_active_checks
from kueuecore.manifests import Manifest
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore.times import format_time
from kueuecore.world import World

__all__ = ["add_output", "deciding_about", "deciding_of", "given_of", "save_text", "write_objects"]


def add_output(out: argparse._ArgumentGroup) -> None:
    """Add `--output` and `--quiet`."""
    out.add_argument("-o", "--output", metavar="FILE", default="-", help="write to this file; by default to stdout")
    out.add_argument("-q", "--quiet", action="store_true", help="no notes and no progress on stderr")


def given_of(options: argparse.Namespace) -> tuple[Manifest, ...]:
    """Read the objects."""
    return with_namespaces(given_objects(options), options.namespace_labels)


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
    active = with_active_checks(replace(world, manifests=manifests), now=now, assumes_active=assumes_active)
    given = tuple(active.manifests)
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
    head = f"# kueuecore run --now {format_time(now)}{''.join(f' {option}' for option in _options_of_run(options))}\n"
    text = head + "---\n".join(yaml_document(object_, is_ascii=is_ascii) for object_ in objects)
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
