"""Kueue's Configuration for a command: that of `--config`, or the one that its objects hold."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kueuecore._configuration_sources import ConfigurationSource, GateSource, gates_in, sources_in
from kueuecore.configuration import Configuration
from kueuecore.errors import ConfigurationError, ManifestError, Problem
from kueuecore.jobs import INSTALLED_FRAMEWORKS
from kueuecore.manifests import Manifest, object_ref, parse_manifests

__all__ = ["Configured", "add_configuration", "add_feature_gates", "configured", "read_configuration"]

_WITHOUT_FILE = f"""
{{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration,
  integrations: {{frameworks: [{", ".join(INSTALLED_FRAMEWORKS)}]}}}}
"""
_CONFIG_HELP = """Kueue's Configuration, its ConfigMap, values of its Helm chart, or OpenShift's Kueue; by default the
one among the objects, else that of Kueue's release manifest"""
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Configured:
    """A Configuration and where it comes from.

    Args:
        configuration: The Configuration.
        written: It as it is written; `None` if it is Kueue's own.
        holders: The objects among those of the command that it comes from.
        notes: What to say about that.
        gates: The feature gates of a Deployment among them.
    """

    configuration: Configuration
    written: Manifest | None = None
    holders: tuple[Manifest, ...] = ()
    notes: tuple[str, ...] = ()
    gates: Mapping[str, bool] = field(default_factory=dict)


def add_configuration(given: argparse._ArgumentGroup) -> None:
    """Add `--config` and `--feature-gates`."""
    given.add_argument("--config", metavar="FILE", help=_CONFIG_HELP)
    add_feature_gates(given)


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


def configured(file: str | None, gates: Sequence[tuple[str, bool]], manifests: Sequence[Manifest]) -> Configured:
    """Return the Configuration of a command that decides about objects.

    Args:
        file: The file of `--config`, which goes before what the objects hold.
        gates: The gates of `--feature-gates`, which replace those of the objects one by one.
        manifests: The objects.

    Raises:
        ManifestError: Everything that is wrong with it.
    """
    if file is not None:
        return Configured(read_configuration(file, gates), _written(file))
    sources, gated = sources_in(manifests), gates_in(manifests)
    notes = [*_undecided("Configurations", sources), *_undecided("sets of feature gates", gated)]
    source = sources[0] if len({it.content for it in sources}) == 1 else None
    of_deployment = gated[0] if len({it.content for it in gated}) == 1 else None
    holders = [it.holder for it in (source, of_deployment) if it is not None]
    if source is not None:
        notes.append(f"note: Kueue's Configuration is that of {_place(source.holder)}; --config names another")
    if of_deployment is not None:
        notes.append(f"note: {_shown(of_deployment.gates)} as in the arguments of {_place(of_deployment.holder)}")
    of_objects = {} if of_deployment is None else dict(of_deployment.gates)
    if source is None:
        configuration, written = _of_release(of_objects | dict(gates)), None
    else:
        configuration, written = Configuration.of(holders, feature_gates=dict(gates)), source.written()
    return Configured(configuration, written, tuple(holders), tuple(notes), of_objects)


def read_configuration(file: str | None, gates: Sequence[tuple[str, bool]]) -> Configuration:
    """Read the Configuration of `--config` and `--feature-gates`.

    Raises:
        ConfigurationError: Everything that is wrong with it.
    """
    return _of_release(dict(gates)) if file is None else Configuration.read(file, feature_gates=dict(gates))


def _of_release(gates: Mapping[str, bool]) -> Configuration:
    """Return the Configuration of Kueue's release manifest."""
    try:
        return Configuration.parse(_WITHOUT_FILE, feature_gates=gates)
    except ConfigurationError as error:
        # Only the gates can be wrong, and they are in no file.
        raise ConfigurationError(
            [Problem(it.message, field="--feature-gates", remedy=it.remedy) for it in error.problems]
        ) from None


def _written(file: str) -> Manifest | None:
    """Return the Configuration as it is written in a file; `None` if that is no Kubernetes object."""
    try:
        sources = sources_in(parse_manifests(Path(file).read_bytes(), file=file))
    except ManifestError:
        return None
    return sources[0].written() if sources else None


def _undecided(what: str, found: Sequence[ConfigurationSource] | Sequence[GateSource]) -> list[str]:
    """Say that the objects have several, so that none is used."""
    if len({it.content for it in found}) < 2:
        return []
    places = [_place(it.holder) for it in found]
    more = f" and {len(places) - _MOST_SHOWN} more" if len(places) > _MOST_SHOWN else ""
    option = "--config" if isinstance(found[0], ConfigurationSource) else "--feature-gates"
    shown = ", ".join(places[:_MOST_SHOWN])
    return [f"warning: the objects have several {what}, so none is used: {shown}{more}; choose with {option}"]


def _place(holder: Manifest) -> str:
    ref = object_ref(holder.object)
    return f"{ref if ref.name else ref.kind} ({holder.source})"


def _shown(gates: Mapping[str, bool]) -> str:
    return ", ".join(f"{name}={str(is_on).lower()}" for name, is_on in gates.items())


def _feature_gates(text: str) -> list[tuple[str, bool]]:
    found = []
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or value.lower() not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"{part!r} is not of the form Name=true or Name=false")
        found.append((name.strip(), value.lower() == "true"))
    return found
