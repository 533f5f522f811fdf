"""`kueuecore convert`: writes manifests with Kueue's own kinds in the newest version."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from kueuecore._json import JsonObject
from kueuecore._text import shown
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.dump_commands import save_text
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.output_files import require_folder
from kueuecore.cli.state_file import manifests_of
from kueuecore.cli.streams import is_utf8, to_stderr, write
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.preferred_versions import converted

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Writes manifests with Kueue's own kinds in v1beta2, as Kueue 0.20 serves them; v1beta1 is read, all
other objects stay as they are. The values are the same; comments are lost."""

EXAMPLES = """\
  kueuecore convert queues.yaml > queues-v1beta2.yaml
  kueuecore convert manifests/ -R --output-dir converted/
  kubectl get clusterqueues.v1beta1.kueue.x-k8s.io -o yaml | kueuecore convert -
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    help_text = "a file with YAML or JSON, a directory, or - for stdin"
    add.add_argument("paths", metavar="PATH", nargs="+", help=help_text)
    add.add_argument("-R", "--recursive", action="store_true", help="read subdirectories, too")
    help_text = "write a file for each that was read into this directory; under its name; by default all to stdout"
    add.add_argument("-o", "--output-dir", type=Path, metavar="DIR", help=help_text)
    add.add_argument("-q", "--quiet", action="store_true", help="no notes on stderr")


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore convert`; returns the exit code."""
    require_folder("--output-dir", options.output_dir)
    manifests = manifests_of(options.paths, recursive=options.recursive, quiet=options.quiet)
    pairs = [(manifest, converted(manifest)) for manifest in manifests]
    if options.output_dir is None:
        write(_text((after for _, after in pairs), is_ascii=not is_utf8()))
    else:
        _write_files(pairs, options)
    if not options.quiet:
        n_changed = sum(pair.object is not after for pair, after in pairs)
        to_stderr(f"note: {n_changed} of {len(pairs)} objects were in an older version")
    return ExitCode.OK


def _text(objects: Iterable[JsonObject], *, is_ascii: bool) -> str:
    return "---\n".join(yaml_document(object_, is_ascii=is_ascii) for object_ in objects)


def _write_files(pairs: list[tuple[Manifest, JsonObject]], options: argparse.Namespace) -> None:
    by_file: dict[str, list[JsonObject]] = {}
    for manifest, after in pairs:
        by_file.setdefault(manifest.source.file, []).append(after)
    targets: dict[Path, str] = {}
    for file in by_file:
        target = options.output_dir / _name(file, options.paths)
        if target in targets:
            message = f"{shown(targets[target])} and {shown(file)} would both be written to {shown(str(target))}"
            raise ManifestError.of(message, remedy="convert them into two directories")
        targets[target] = file
    for target, file in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        save_text(_text(by_file[file], is_ascii=False), target, field="--output-dir")


def _name(file: str, paths: Iterable[str]) -> Path:
    """Return where a file goes below the output directory: its place in the directory that was given, as YAML."""
    if file == "<stdin>":
        return Path("stdin.yaml")
    path = Path(file)
    below = (path.relative_to(other) for other in map(Path, paths) if other != path and path.is_relative_to(other))
    return next(below, Path(path.name)).with_suffix(".yaml")
