"""`kueuecore history`: shows what has happened to a workload, step by step."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from kueuecore._files import contents
from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.cli.documents import document_head
from kueuecore.cli.exit_codes import ExitCode
from kueuecore.cli.history_output import timeline_document, timeline_text
from kueuecore.cli.named_workload import WORKLOAD_HELP, named_workload
from kueuecore.cli.state_file import SettledState, add_state, source_in
from kueuecore.cli.state_source import FileSource, StateSource
from kueuecore.cli.streams import output, to_stderr, write
from kueuecore.cli.study_options import add_look
from kueuecore.cli.table import Style
from kueuecore.errors import ManifestError, Problem
from kueuecore.histories.log_lines import LogLine, read_log
from kueuecore.histories.recorded import history_of, history_of_gone
from kueuecore.histories.timeline import Timeline
from kueuecore.world import is_workload, key_of

__all__ = ["DESCRIPTION", "EXAMPLES", "add_arguments", "run"]

DESCRIPTION = """\
Shows what has happened to a workload, as far as it is recorded: created, queued, quota, checks, admitted,
pods ready, preempted or evicted by whom and by which rule, queued again, finished. It reads the
Workload's conditions, the Events about it and its job, and with --journal a log of `kueuecore serve`, or the
folder that `kueuecore serve --dry-run` keeps.
What is no longer recorded is listed, never guessed. `kueuecore run` and `simulate` take
--history NAMESPACE/NAME, for the workloads of their own runs."""

EXAMPLES = """\
  kueuecore history team-a/train              in the cluster of the current context, with its Events
  kueuecore dump --events -o dump.json.gz
  kueuecore history dump.json.gz --trusted Job/team-a/train -o wide
  kubectl -n kueue-system logs deploy/kueuecore | kueuecore history --journal - team-a/train
"""


def add_arguments(add: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    given = add_state(add)
    add.add_argument("workload", metavar="WORKLOAD", help=WORKLOAD_HELP)
    help_text = "what `kueuecore serve` wrote to standard error, or - for stdin; a folder: of a dry run; repeatable"
    given.add_argument("--journal", metavar="FILE", action="append", default=[], help=help_text)
    out = add.add_argument_group("output")
    help_text = "table (the default); wide: where each step is recorded, no wrapping; json: everything, as one document"
    out.add_argument("-o", "--output", choices=["table", "wide", "json"], default="table", help=help_text)
    add_look(out)


def run(options: argparse.Namespace) -> int:
    """Run `kueuecore history`; returns the exit code."""
    _refuse_two_inputs(options)
    log = _log(options)
    source = source_in(options) or FileSource(options)
    state = source.state()
    objects = [manifest.object for manifest in source.manifests()]
    try:
        namespace, name = named_workload(state, options.workload)
    except ManifestError:
        gone = _gone(source, options.workload, objects, log)
        if gone is None:
            raise
        timeline = gone
    else:
        workload = _workload(objects, state, namespace, name)
        names = (name, *(text_at(owner, "name") for owner in list_at(workload, "metadata", "ownerReferences")))
        events = _events(source, namespace, names)
        timeline = history_of(workload, events=events, log=log, objects=objects)
    if options.output == "json":
        document = {**document_head(state.engine.configuration.release), **timeline_document(timeline)}
        write(json.dumps(document, indent=2) + "\n")
    else:
        style = Style.of(output(), options.color)
        write(timeline_text(timeline, style, is_wide=options.output == "wide") + "\n")
    return ExitCode.OK


def _gone(source: StateSource, text: str, objects: Sequence[JsonObject], log: Sequence[LogLine]) -> Timeline | None:
    """The history of a Workload that no longer exists, if Events about it are left."""
    *place, name = text.split("/")[-2:]
    if not place:
        return None
    events = _events(source, place[0], [name])
    # Those about a job name the Workload that was made for it.
    made = {text_at(event, "message").rpartition("/")[2] for event in events if _made(event)} - {name}
    events += _events(source, place[0], sorted(made)) if made else []
    return history_of_gone(f"{place[0]}/{name}", events=events, log=log, objects=objects)


def _made(event: JsonObject) -> bool:
    return text_at(event, "reason") == "CreatedWorkload"


def _events(source: StateSource, namespace: str, names: Sequence[str]) -> list[JsonObject]:
    """The Events about a workload and its jobs; without the right to read them, conditions have to do."""
    try:
        return source.events(namespace, names)
    except ManifestError as error:
        to_stderr(*(f"warning: {problem}" for problem in error.problems))
        return []


def _workload(objects: Sequence[JsonObject], state: SettledState, namespace: str, name: str) -> JsonObject:
    """The Workload as it was given: cycles have run on the state since."""
    ours = (plain for plain in objects if is_workload(plain) and key_of(plain) == (namespace, name))
    found = next(ours, None) or state.world.workload(name, namespace=namespace)
    return {**found, "metadata": {**object_at(found, "metadata"), "namespace": namespace}}


def _log(options: argparse.Namespace) -> tuple[LogLine, ...]:
    """The lines of all logs.

    Raises:
        ManifestError: One cannot be read, or is none.
    """
    return tuple(line for name, data in _files(options) for line in read_log(data, file=name))


def _files(options: argparse.Namespace) -> Iterator[tuple[str, str | bytes]]:
    for path in options.journal:
        if path == "-" and options.given is not None:
            yield "<stdin>", options.given
            continue
        problems: list[Problem] = []
        if Path(path).is_dir():
            yield from _dry_run(Path(path))
            continue
        yield from ((file.name, file.data) for file in contents(path, problems, recursive=False))
        if problems:
            raise ManifestError(problems)


def _dry_run(folder: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yield the files of a dry run's journal, the oldest first.

    Raises:
        ManifestError: There are none, or one cannot be read.
    """
    files = sorted(folder.glob("decisions-*.log"))
    if not files:
        raise ManifestError.of(
            "no decisions of a dry run are in it", remedy="give the folder of its --journal", file=str(folder)
        )
    for file in files:
        try:
            yield str(file), file.read_bytes()
        except OSError as error:
            raise ManifestError.of(f"cannot be read: {error.strerror or error}", file=str(file)) from None


def _refuse_two_inputs(options: argparse.Namespace) -> None:
    if [*options.paths, *options.journal].count("-") > 1:
        raise ManifestError.of("standard input can be read only once", remedy="give - only once")
