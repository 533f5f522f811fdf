"""Reads the STATE of a command, manifests or a saved engine, and runs cycles until nothing changes."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kueuecore._configuration_sources import is_configuration
from kueuecore._file_kinds import OF_ENGINE, is_about_objects, is_of_command, skipped_files, use_of
from kueuecore._files import OF_TEXT, File, contents
from kueuecore._json import JsonObject, text_at
from kueuecore._near_names import near_names
from kueuecore._text import shortened
from kueuecore.cli.cluster_options import add_cluster
from kueuecore.cli.configured import add_configuration, configured, read_configuration
from kueuecore.cli.namespace_labels import add_namespace_labels, with_namespaces
from kueuecore.cli.streams import to_stderr
from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.findings.active_checks import READ_KINDS, activity_of, is_check, with_active_checks
from kueuecore.findings.labels import names_of
from kueuecore.findings.repeats import repeated
from kueuecore.held_objects import HELD_KINDS
from kueuecore.journal import holds_journal
from kueuecore.manifests import API_VERSIONS, Manifest, object_ref, objects_of
from kueuecore.releases import DEFAULT_RELEASE
from kueuecore.saved_engine import configuration_of, holds_engine
from kueuecore.steady_state import Settled, settle
from kueuecore.times import END_NS, format_time, nanoseconds
from kueuecore.world import AppliedWorld, World

if TYPE_CHECKING:
    from kueuecore.cli.state_source import StateSource

__all__ = [
    "SettledState",
    "add_assumed_checks",
    "add_state",
    "add_strict",
    "add_trusted",
    "given_objects",
    "manifests_of",
    "parsed",
    "read_files",
    "read_state",
    "settled_of",
    "source_in",
    "time_of",
]

# Remedies of the Python functions, put in terms of the command.
_REMEDIES = {
    "pass recursive=True to read its subdirectories": "add -R to read its directories too",
    OF_TEXT: "check the name",
}

# Gates that would change more than they do here: `kueuecore.releases.unplayed` says what, and takes time to import.
_PARTLY_PLAYED = (
    "ElasticJobsViaWorkloadSlicesForProvisioningRequests",
    "ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp",
    "MultiKueueRayInTreeAutoscaling",
    "SchedulerLibraryIntegration",
)

# A pipe hides that the command before it has failed.
_NOTHING_READ = Problem("it is empty", file="<stdin>", remedy="see if the command before it failed: set -o pipefail")


@dataclass(frozen=True, slots=True)
class SettledState:
    """A state as read from files, after cycles ran until nothing changed any more.

    Args:
        engine: The engine.
        world: The objects that were given, or that a saved engine holds.
        settled: The cycles that ran, and how they ended.
        now: The time at which they ran, in nanoseconds since 1970.
        given: The objects as they were given, without any added ones; none for a saved engine.
        after_cycles: Makes the state anew, as it was after so many of the cycles.
    """

    engine: Engine
    world: World
    settled: Settled
    now: int
    given: tuple[Manifest, ...] = ()
    after_cycles: Callable[[int], Engine] | None = None


def add_state(
    command: argparse.ArgumentParser, *, paths: str = "STATE", takes_engines: bool = True, asks_release: bool = True
) -> argparse._ArgumentGroup:
    """Add the arguments that name a state and say how to read it.

    Args:
        command: The command.
        paths: The name of the paths in the help.
        takes_engines: Accept a saved engine, which has no manifests?
        asks_release: Add `--kueue`?

    Returns:
        The group of these options, to add more input options to.
    """
    engines = ", - for stdin, or one file with a saved engine" if takes_engines else ", or - for stdin"
    help_text = f"a YAML or JSON file, a directory{engines}; without any, the cluster"
    command.add_argument("paths", metavar=paths, nargs="*", help=help_text)
    add_cluster(command)
    given = command.add_argument_group("input")
    given.add_argument("-R", "--recursive", action="store_true", help="read subdirectories too")
    add_configuration(given, asks_release=asks_release)
    given.add_argument(
        "--now",
        metavar="TIME",
        type=time_of,
        help="the current time, such as 2026-01-01T00:00:00Z; by default the newest time in the objects, or "
        "1970-01-01T00:00:00Z if they have none, so that the same objects always give the same output",
    )
    add_trusted(given)
    add_namespace_labels(given)
    add_assumed_checks(given)
    add_strict(given)
    return given


def add_trusted(given: argparse._ArgumentGroup) -> None:
    """Add `--trusted`."""
    given.add_argument(
        "--trusted",
        action="store_true",
        help="the objects are a dump of a cluster: take them as they are, without defaulting, validating or adding any",
    )


def add_strict(given: argparse._ArgumentGroup) -> None:
    """Add `--strict`."""
    help_text = "refuse objects with duplicate keys; without it the last one counts, with a warning"
    given.add_argument("--strict", action="store_true", help=help_text)


def add_assumed_checks(given: argparse._ArgumentGroup) -> None:
    """Add `--assume-checks-active`."""
    given.add_argument(
        "--assume-checks-active",
        action="store_true",
        help="treat AdmissionChecks without a condition Active as active; by default only those of "
        "ProvisioningRequests are, if their configuration is given",
    )


def read_state(options: argparse.Namespace, *, span: int = 0) -> SettledState:
    """Read the state named by the options of `add_state`, warn of oddities, and run cycles until nothing changes.

    Args:
        options: The options of `add_state`, and `quiet`; those that name a cluster are completed.
        span: Nanoseconds that may pass, with cycles at each time at which something changes by itself.

    Raises:
        ManifestError: Everything that is wrong with it.
    """
    source = source_in(options)
    if source is not None:
        return settled_of(source.manifests(), options, span) if span else source.state(getattr(options, "workload", ""))
    files = read_files(options.paths, recursive=options.recursive, given=options.given)
    saved = [file for file in files if holds_engine(file.data) or holds_journal(file.data)]
    if not saved:
        given = parsed(files, quiet=options.quiet, strict=options.strict)
        _refuse_other_files(given, options.paths)
        return settled_of(given, options, span)
    if len(files) > 1:
        remedy = "give it alone, or give manifests only"
        raise ManifestError.of("a saved engine is a complete state", remedy=remedy, file=saved[0].name)
    return _of_engine(saved[0], options, span)


def source_in(options: argparse.Namespace) -> StateSource | None:
    """Return where the state comes from if no files are named: what the caller gave, or the cluster.

    Raises:
        ManifestError: The cluster cannot be read.
    """
    if options.source is None and not options.paths:
        # It needs the extra `kubernetes`, and takes time to import.
        from kueuecore.cli.cluster_source import ClusterSource

        options.source = ClusterSource(options)
        vars(options).update(options.source.settings)
    source: StateSource | None = options.source
    return source


def given_objects(options: argparse.Namespace, *, takes_scenario: bool = False) -> tuple[Manifest, ...]:
    """Return the objects that the options of a command name: those in files, or those of the cluster.

    Args:
        options: `paths`, `recursive`, `quiet` and `strict`; those that name a cluster are completed.
        takes_scenario: Accept a Scenario among them?

    Raises:
        ManifestError: Something cannot be read.
    """
    source = source_in(options)
    if source is not None:
        return source.manifests()
    return manifests_of(
        options.paths,
        recursive=options.recursive,
        quiet=options.quiet,
        takes_scenario=takes_scenario,
        strict=options.strict,
        given=options.given,
    )


def read_files(paths: Sequence[str], *, recursive: bool = False, given: str | None = None) -> tuple[File, ...]:
    """Read the files that the arguments of a command name, `-` for standard input.

    Args:
        paths: Files, directories, or `-`.
        recursive: Read subdirectories too?
        given: What `-` stands for; by default standard input.

    Raises:
        ManifestError: Those that cannot be read.
    """
    if list(paths).count("-") > 1:
        raise ManifestError.of("standard input can be read only once", remedy="give - only once")
    problems: list[Problem] = []
    files = [
        file
        for path in paths
        for file in (
            [File("<stdin>", given)]
            if path == "-" and given is not None
            else contents(path, problems, recursive=recursive)
        )
    ]
    problems += [_NOTHING_READ for file in files if file.name == "<stdin>" and not file.data.strip()]
    problems = [replace(problem, remedy=_REMEDIES.get(problem.remedy, problem.remedy)) for problem in problems]
    if not problems:
        return tuple(files)
    # Report the problems of readable files along with the unreadable ones.
    for file in files:
        try:
            objects_of(file, [], strict=False)
        except ManifestError as error:
            problems += error.problems
    raise ManifestError(problems)


def manifests_of(
    paths: Sequence[str],
    *,
    recursive: bool,
    quiet: bool,
    takes_scenario: bool = False,
    strict: bool = False,
    given: str | None = None,
) -> tuple[Manifest, ...]:
    """Read the objects in some paths; a note names what is skipped.

    Args:
        paths: Files, directories, or `-`.
        recursive: Read subdirectories too?
        quiet: No note?
        takes_scenario: Accept a Scenario among them?
        strict: Refuse duplicate keys?
        given: What `-` stands for; by default standard input.

    Raises:
        ManifestError: Something cannot be read; remedies are in terms of the command.
    """
    files = read_files(paths, recursive=recursive, given=given)
    for file in files:
        if holds_engine(file.data) or holds_journal(file.data):
            raise ManifestError.of("this is a saved engine", remedy=OF_ENGINE, file=file.name)
    manifests = parsed(files, quiet=quiet, strict=strict)
    if not (takes_scenario and any(text_at(manifest.object, "kind") == "Scenario" for manifest in manifests)):
        _refuse_other_files(manifests, paths)
    return manifests


def settled_of(given: tuple[Manifest, ...], options: argparse.Namespace, span: int = 0) -> SettledState:
    """Make a state of objects, warn of oddities, and run cycles until nothing changes.

    Args:
        given: The objects.
        options: As for `read_state`; `paths` do not matter.
        span: As for `read_state`.

    Raises:
        ManifestError: Everything that is wrong with them.
    """
    manifests = with_namespaces(given, options.namespace_labels)
    found = configured(options.config, options.feature_gates, manifests, kueue=options.kueue)
    configuration = found.configuration
    world = World.of(manifests, configuration=configuration, trusted=options.trusted)
    newest = world.newest_time()
    now = options.now if options.now is not None else newest if newest is not None else 0
    world = with_active_checks(world, now=now, assumes_active=options.assume_checks_active)
    engine = Engine(configuration)
    applied = world.apply_to(engine, now=now)
    if not options.quiet:
        repeats = (f"warning: {problem}" for _, problem in repeated(manifests, unread=applied.unread))
        to_stderr(*found.notes, *repeats, *_notes(world, applied, found.holders), *_unplayed(configuration, manifests))
    settled = settle(engine, now=now, until=min(now + span, END_NS))

    def after_cycles(n_cycles: int) -> Engine:
        again = Engine(configuration)
        world.apply_to(again, now=now)
        settle(again, now=now, until=min(now + span, END_NS), max_cycles=n_cycles)
        return again

    return SettledState(engine, world, settled, now, manifests, after_cycles)


def _unplayed(configuration: Configuration, manifests: Sequence[Manifest]) -> Iterator[str]:
    is_default = configuration.release.name == DEFAULT_RELEASE
    if is_default and not any(map(configuration.is_enabled, _PARTLY_PLAYED)):
        return
    from kueuecore.releases.unplayed import unplayed  # only older releases and these gates need it

    notes = unplayed(
        configuration.release,
        (manifest.object for manifest in manifests),
        fair_sharing=bool(configuration.to_dict().get("fairSharing")),
        is_enabled=configuration.is_enabled,
        is_asked_for=not is_default,
    )
    yield from (f"note: {note}" for note in notes)


def _of_engine(file: File, options: argparse.Namespace, span: int) -> SettledState:
    name, data = file.name, file.data
    options_of_manifests = {
        "--trusted": options.trusted,
        "--namespace-labels": options.namespace_labels,
        "--assume-checks-active": options.assume_checks_active,
    }
    useless = " and ".join(option for option, value in options_of_manifests.items() if value)
    if useless:
        message = "a saved engine has already accepted its objects"
        raise ManifestError.of(message, remedy=f"leave out {useless}", file=name)
    data = data.encode() if isinstance(data, str) else data
    try:
        saved: bytes | JsonObject = data if holds_engine(data) else json.loads(data)
        configuration = _configuration_of_engine(saved, options, file=name)
        engine = _restored(saved, configuration)
    except ManifestError:
        raise
    except (ValueError, RecursionError) as error:
        raise ManifestError.of(str(error), file=name) from None
    now = options.now if options.now is not None else engine.now
    if now < engine.now:
        raise ManifestError.of(
            f"--now is before {format_time(engine.now)}, the time of this saved engine, and time does not go back",
            remedy="leave out --now, or name a later time",
            file=name,
        )
    objects = [object_ for kind in HELD_KINDS for object_ in engine.objects(kind)]
    world = World.of(objects, configuration=configuration, trusted=True)
    settled = settle(engine, now=now, until=min(now + span, END_NS))

    def after_cycles(n_cycles: int) -> Engine:
        again = _restored(saved, configuration)
        settle(again, now=now, until=min(now + span, END_NS), max_cycles=n_cycles)
        return again

    return SettledState(engine, world, settled, now, (), after_cycles)


def _configuration_of_engine(saved: bytes | JsonObject, options: argparse.Namespace, *, file: str) -> Configuration:
    """Return the Configuration that the options name, for the release of a saved engine, or else the engine's own.

    Raises:
        ManifestError: They name another release, or something is wrong with their Configuration.
        ValueError: The engine cannot be read.
    """
    own = configuration_of(saved)
    if options.kueue not in (None, own.release):
        message = f"this saved engine decides as {own.release.title}, and goes on as that"
        raise ManifestError.of(message, remedy="leave out --kueue", file=file)
    if options.config or options.feature_gates:
        return read_configuration(options.config, options.feature_gates, own.release)
    return own


def _restored(saved: bytes | JsonObject, configuration: Configuration) -> Engine:
    if isinstance(saved, bytes):
        return Engine.load(saved, configuration=configuration)
    return Engine.replay(saved, configuration=configuration)


def parsed(files: Iterable[File], *, quiet: bool, strict: bool) -> tuple[Manifest, ...]:
    """Return the objects in files; a note names those of a directory that are skipped.

    Args:
        files: The files.
        quiet: No note?
        strict: Refuse duplicate keys?

    Raises:
        ManifestError: Everything that is wrong with them.
    """
    manifests: list[Manifest] = []
    problems: list[Problem] = []
    others: list[Problem] = []
    for file in files:
        try:
            manifests += objects_of(file, others, strict=strict)
        except ManifestError as error:
            problems += error.problems
    if problems:
        raise ManifestError(problems)
    if not quiet:
        to_stderr(*(f"note: {note}" for note in skipped_files(others)))
    return tuple(manifests)


def _refuse_other_files(manifests: Sequence[Manifest], paths: Sequence[str]) -> None:
    """Refuse files that were named, rather than found in a directory, and are for another command or option.

    Raises:
        ManifestError: Some are.
    """
    in_directories = {manifest.source.file for manifest in manifests} - {
        "<stdin>" if path == "-" else path for path in paths
    }
    named = [manifest for manifest in manifests if manifest.source.file not in in_directories]
    problems = [
        manifest.problem("it is not an object of a cluster", remedy=use_of([manifest.object]))
        for manifest in named
        if is_of_command(manifest.object)
    ]
    if named and all(is_configuration(manifest.object) for manifest in manifests):
        problems += [
            manifest.problem("it is not an object of a cluster", remedy=use_of([manifest.object])) for manifest in named
        ]
    if problems:
        raise ManifestError(problems)


def _notes(world: World, applied: AppliedWorld, holders: Iterable[Manifest]) -> Iterator[str]:
    for warning in applied.warnings:
        yield f"warning: {warning}"
    for missing in world.waiting:
        yield f"warning: {missing}; until then the job waits"
    for ignored in world.ignored:
        yield f"note: {ignored}; it gets no Workload"
    for assumed in world.assumed:
        yield f"note: {assumed}"
    if world.namespaces:
        yield f"note: added the Namespaces that the objects are in: {', '.join(world.namespaces)}"
    unsaid = (
        manifest.object for manifest in world.manifests if is_check(manifest) and not activity_of(manifest.object)
    )
    names = names_of(dict.fromkeys(shortened(object_ref(other).name) for other in unsaid))
    if names:
        yield f"note: these AdmissionChecks have no condition Active: {names}; see --assume-checks-active"
    said = (*holders, *(manifest for manifest in world.manifests if is_about_objects(manifest.object)))
    counts = Counter(applied.unread) - Counter(text_at(manifest.object, "kind") for manifest in said)
    unread = {kind: n for kind, n in counts.items() if kind not in (*READ_KINDS, "Event")}
    if unread:
        kinds = ", ".join(f"{shortened(kind)} ({n})" for kind, n in unread.items())
        others = [kind for kind in unread if kind in API_VERSIONS and kind != "Configuration"]
        hint = "".join(f"; {kind}: did you mean {near}?" for kind, near in _meant_kinds(world))
        hint += "".join(f"; a {kind} is read as {API_VERSIONS[kind]}" for kind in others)
        yield f"warning: these kinds are not read: {kinds}{hint}"


def _meant_kinds(world: World) -> Iterator[tuple[str, str]]:
    """Kinds that are not read, and the kind of the same API group that each may mean."""
    groups = {name: version.rpartition("/")[0] for name, version in API_VERSIONS.items()}
    groups |= {kind: group for group, kind in world.integrations}
    known: dict[str, list[str]] = {}
    for kind, group in groups.items():
        known.setdefault(group, []).append(kind)
    given = dict.fromkeys(
        (text_at(manifest.object, "apiVersion"), text_at(manifest.object, "kind")) for manifest in world.manifests
    )
    for version, kind in given:
        if kind not in groups and (near := near_names(kind, known.get(version.rpartition("/")[0], ()))):
            yield shortened(kind), near[0]


def time_of(text: str) -> int:
    """Parse the time of an option; returns nanoseconds since 1970."""
    try:
        return nanoseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
