"""Kueue's Configuration for a command: that of `--config`, or the one that its objects hold."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kueuecore._configuration_sources import (
    ConfigurationSource,
    GateSource,
    gates_in,
    gates_of_argument,
    place_of,
    read_documents,
    shown_release,
    sources_in,
)
from kueuecore._json import JsonObject, object_at
from kueuecore.cli.kueue_release import add_kueue, asked_release
from kueuecore.configuration import Configuration, known_gate_remedy
from kueuecore.errors import ConfigurationError, ManifestError, Problem
from kueuecore.jobs import installed_frameworks
from kueuecore.manifests import API_VERSIONS, Manifest
from kueuecore.releases import DEFAULT_RELEASE, Release

__all__ = [
    "Configured",
    "add_configuration",
    "add_feature_gates",
    "configured",
    "configured_by",
    "read_configuration",
    "shipped_configuration",
]

_CONFIG_HELP = """Kueue's Configuration, its ConfigMap, values of its Helm chart, or OpenShift's Kueue; by default the
one among the objects, else that of Kueue's release manifest"""
_MAX_SHOWN = 4
_ALL_GATES = ("AllAlpha", "AllBeta")


@dataclass(frozen=True, slots=True)
class Configured:
    """A Configuration for a release of Kueue, and where both come from.

    Args:
        configuration: The Configuration.
        written: The same as it is written; `None` if it is Kueue's own.
        holders: The objects among those of the command that it comes from, and that show its release.
        notes: What to say about that.
        gates: The feature gates of a Deployment among them.
    """

    configuration: Configuration
    written: Manifest | None = None
    holders: tuple[Manifest, ...] = ()
    notes: tuple[str, ...] = ()
    gates: Mapping[str, bool] = field(default_factory=dict)


def add_configuration(given: argparse._ArgumentGroup, *, asks_release: bool = True) -> None:
    """Add `--config`, `--feature-gates` and, unless it is asked for otherwise, `--kueue`."""
    given.add_argument("--config", metavar="FILE", help=_CONFIG_HELP)
    add_feature_gates(given)
    if asks_release:
        add_kueue(given)


def add_feature_gates(given: argparse._ArgumentGroup) -> None:
    """Add `--feature-gates`."""
    given.add_argument(
        "--feature-gates",
        metavar="A=true,B=false",
        type=_feature_gates,
        action="extend",
        default=[],
        help="feature gates of Kueue; `kueuecore gates` lists them",
    )


def configured(
    file: str | None, gates: Sequence[tuple[str, bool]], manifests: Sequence[Manifest], *, kueue: Release | None
) -> Configured:
    """Return the Configuration of a command that decides about objects.

    Args:
        file: The file of `--config`, which goes before what the objects hold.
        gates: The gates of `--feature-gates`, which replace those of the objects one by one.
        manifests: The objects. What Kueue would refuse among them is left out, with a warning.
        kueue: The release of `--kueue`.

    Raises:
        ManifestError: Everything that is wrong with the file or the gates.
    """
    if file is not None:
        # Once, as it may be a pipe.
        return configured_by(read_documents(file), gates, manifests, kueue=kueue)
    shown = _shown(asked_release(kueue), manifests)
    found = _among(manifests, shown)
    plain = shipped_configuration({**found.gates, **dict(gates)}, shown.release)
    if found.source is None:
        return Configured(plain, None, found.holders, found.notes, found.gates)
    try:
        configuration, written = found.configuration(dict(gates)), found.source.written()
    except ManifestError as error:
        # Kueue would not start with it; a chart of another release is no reason to decide nothing.
        unused = f"{place_of(found.source.holder)} has a Configuration that Kueue refuses, so it is not used"
        notes = [f"warning: {unused}: {problem}" for problem in error.problems]
        return Configured(plain, None, notes=(*notes, *found.notes), gates=found.gates)
    note = f"note: Kueue's Configuration is that of {place_of(found.source.holder)}; --config replaces it"
    return Configured(configuration, written, found.holders, (note, *found.notes), found.gates)


def configured_by(
    documents: Sequence[Manifest],
    gates: Sequence[tuple[str, bool]],
    manifests: Sequence[Manifest],
    *,
    kueue: Release | None,
) -> Configured:
    """Return the Configuration of a command with the file of `--config`.

    Args:
        documents: The objects in that file.
        gates: As for `configured`.
        manifests: As for `configured`.
        kueue: As for `configured`.

    Raises:
        ConfigurationError: Everything that is wrong with the file or the gates.
    """
    shown = _shown(asked_release(kueue), manifests, documents)
    configuration = Configuration.of(documents, feature_gates=dict(gates), release=shown.release)
    return Configured(configuration, _written(documents), shown.holders, shown.notes)


def read_configuration(file: str | None, gates: Sequence[tuple[str, bool]], release: Release) -> Configuration:
    """Read the Configuration of `--config` and `--feature-gates`.

    Args:
        file: The file; `None`: Kueue's release manifest.
        gates: The gates.
        release: The release of Kueue that starts with it.

    Raises:
        ConfigurationError: Everything that is wrong with it.
    """
    if file is None:
        return shipped_configuration(dict(gates), release)
    return Configuration.read(file, feature_gates=dict(gates), release=release)


def shipped_configuration(
    gates: Mapping[str, bool], release: Release, *, kinds_of: Release | None = None
) -> Configuration:
    """Return the Configuration of Kueue's release manifest.

    Args:
        gates: The feature gates of `--feature-gates`.
        release: The release.
        kinds_of: The release that enables the kinds of jobs; by default the same.

    Raises:
        ConfigurationError: The release refuses a gate.
    """
    frameworks: JsonObject = {"frameworks": list(installed_frameworks(kinds_of or release))}
    head: JsonObject = {"apiVersion": API_VERSIONS["Configuration"], "kind": "Configuration"}
    try:
        return Configuration.of([{**head, "integrations": frameworks}], feature_gates=gates, release=release)
    except ConfigurationError as error:
        # Only the gates can be wrong, and they are in no file.
        raise ConfigurationError(
            [Problem(problem.message, field="--feature-gates", remedy=problem.remedy) for problem in error.problems]
        ) from None


def _written(documents: Sequence[Manifest]) -> Manifest | None:
    """Return the Configuration as it is written in a file; `None` if it has no apiVersion."""
    sources = sources_in(documents)
    return sources[0].written() if sources else None


@dataclass(frozen=True, slots=True)
class _Shown:
    """The release of Kueue to decide as.

    Args:
        release: The release.
        holders: The objects of the command that show it.
        notes: What to say about that.
    """

    release: Release
    holders: tuple[Manifest, ...] = ()
    notes: tuple[str, ...] = ()


def _shown(asked: Release | None, manifests: Sequence[Manifest], documents: Sequence[Manifest] = ()) -> _Shown:
    """Return the release to decide as.

    Args:
        asked: The one that is asked for; else it is the one that objects show.
        manifests: The objects of the command.
        documents: Those in the file of `--config`, which go before them.
    """
    if asked is not None:
        return _Shown(asked)
    in_file = shown_release(documents, option="--kueue")
    found = in_file or shown_release(manifests, option="--kueue")
    if found is None:
        return _Shown(Release.named(DEFAULT_RELEASE))
    note = f"{'note' if found.is_certain else 'warning'}: {found.says}"
    return _Shown(found.release or Release.named(DEFAULT_RELEASE), () if in_file else found.holders, (note,))


@dataclass(frozen=True, slots=True)
class _Among:
    """What objects say about Kueue's settings.

    Args:
        source: Their Configuration, if there is one.
        gated: The object with feature gates, if there is one.
        gates: Its gates.
        shown: The release of Kueue that starts with them.
        notes: What to say about that.
    """

    source: ConfigurationSource | None
    gated: Manifest | None
    gates: Mapping[str, bool]
    shown: _Shown
    notes: tuple[str, ...]

    @property
    def holders(self) -> tuple[Manifest, ...]:
        """The objects that are used."""
        holder = None if self.source is None else self.source.holder
        found = [entry for entry in (holder, self.gated) if entry is not None]
        return (*found, *(holder for holder in self.shown.holders if holder not in found))

    def configuration(self, gates: Mapping[str, bool]) -> Configuration:
        """Return their Configuration, in which the given gates replace its own.

        Raises:
            ManifestError: Kueue would refuse it.
        """
        assert self.source is not None, "asked only of objects with a Configuration"
        release = self.shown.release
        for document in self.source.documents():
            own = object_at(document.object, "featureGates")
            if own and gates:
                plain: JsonObject = {**document.object, "featureGates": {**own, **gates}}
                holder = Manifest(plain, document.source)
                return Configuration.of([holder], feature_gates=self.gates, release=release)
        return Configuration.of([self.source.holder], feature_gates={**self.gates, **gates}, release=release)


def _among(manifests: Sequence[Manifest], shown: _Shown) -> _Among:
    """Find what objects say: one Configuration, and one set of feature gates."""
    notes = [*shown.notes]
    source = _only("Configurations", "--config", sources_in(manifests), notes)
    try:
        gated = _only("sets of feature gates", "--feature-gates", gates_in(manifests), notes)
    except ManifestError as error:
        notes += [f"warning: feature gates among the objects are not used: {problem}" for problem in error.problems]
        gated = None
    gates = {} if gated is None else _accepted(gated, shown.release, notes)
    return _Among(source, gated.holder if gated is not None and gates else None, gates, shown, tuple(notes))


def _accepted(gated: GateSource, release: Release, notes: list[str]) -> dict[str, bool]:
    """Return the gates of an object that a release takes, and say which it does not."""
    place, known = place_of(gated.holder), {*_ALL_GATES, *(gate.name for gate in release.feature_gates())}
    gates = {name: is_on for name, is_on in gated.gates.items() if name in known}
    for name in (gate for gate in gated.gates if gate not in gates):
        remedy = known_gate_remedy(name, release) or "this release has no such gate"
        notes.append(f"warning: the feature gate {name} of {place} is not used: {remedy}")
    try:
        shipped_configuration(gates, release)
    except ConfigurationError as error:
        notes += [
            f"warning: the feature gates of {place} are not used: {problem.message}" for problem in error.problems
        ]
        return {}
    if gates:
        shown = ", ".join(f"{name}={str(is_on).lower()}" for name, is_on in gates.items())
        notes.append(f"note: feature gates of {place} are used: {shown}")
    return gates


_Source = TypeVar("_Source", ConfigurationSource, GateSource)


def _only(what: str, option: str, found: Sequence[_Source], notes: list[str]) -> _Source | None:
    """Return what is found; if objects differ in it, none of it, and say so."""
    if len({source.content for source in found}) < 2:
        return next(iter(found), None)
    places = [place_of(source.holder) for source in found]
    more = f" and {len(places) - _MAX_SHOWN} more" if len(places) > _MAX_SHOWN else ""
    shown = ", ".join(places[:_MAX_SHOWN])
    notes.append(f"warning: the objects have several {what}, so none is used: {shown}{more}; choose with {option}")
    return None


def _feature_gates(text: str) -> list[tuple[str, bool]]:
    try:
        return [*gates_of_argument(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
