"""Kueue's Configuration as another release reads it: what that refuses, and which of its defaults differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kueuecore._configuration_sources import gates_in, place_of
from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.cli.configured import Configured, shipped_configuration
from kueuecore.configuration import Configuration, known_gate_remedy
from kueuecore.errors import ConfigurationError, Problem
from kueuecore.manifests import Manifest
from kueuecore.releases import Release
from kueuecore.upgrades import Switch, SwitchKind, Upgrade

__all__ = ["ChangedDefault", "RefusedGate", "UpgradedSettings", "changed_defaults", "upgraded_settings"]

_WAITS_FOR_PODS = Release.named("0.19.0")
_ALL_GATES = ("AllAlpha", "AllBeta")
_ORCHESTRATED = "MultiKueueOrchestratedPreemption"
_MULTIKUEUE = "kueue.x-k8s.io/multikueue"


@dataclass(frozen=True, slots=True)
class RefusedGate:
    """A feature gate with which another release does not start.

    Args:
        name: Name.
        is_on: Whether the Configuration turns it on.
        place: Where it does.
        why: Why it is refused.
        remedy: What to do.
    """

    name: str
    is_on: bool
    place: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class UpgradedSettings:
    """A Configuration as another release reads it.

    Args:
        configuration: What the release runs with once refused gates are left out.
        refused: These gates, in their order.
        problems: What else it refuses; then the settings of the old release are used unchecked.
        with_old_kinds: The same with the kinds of jobs that the old release ships with, if those are in effect.
    """

    configuration: Configuration
    refused: tuple[RefusedGate, ...] = ()
    problems: tuple[Problem, ...] = ()
    with_old_kinds: Configuration | None = None

    @property
    def is_refused(self) -> bool:
        """Whether the release does not start with the Configuration as it is."""
        return bool(self.refused or self.problems)


def upgraded_settings(kueue: Configured, gates: Sequence[tuple[str, bool]], release: Release) -> UpgradedSettings:
    """Read a Configuration as another release does.

    Args:
        kueue: The Configuration, as the old release reads it.
        gates: The gates of `--feature-gates`.
        release: The other release.
    """
    written = None if kueue.written is None else kueue.written.object
    own = _flags(object_at(written or {}, "featureGates"))
    of_arguments = {**kueue.gates, **dict(gates)}
    refused = tuple(_refused({**own, **of_arguments}, kueue, dict(gates), release))
    names = {gate.name for gate in refused}
    left = {name: is_on for name, is_on in of_arguments.items() if name not in names}
    try:
        if written is None:
            shipped = shipped_configuration(left, release)
            return UpgradedSettings(shipped, refused, (), _with_kinds_of(kueue.configuration.release, left, shipped))
        plain: JsonObject = {name: value for name, value in written.items() if name != "featureGates"}
        left_own = {name: is_on for name, is_on in own.items() if name not in names}
        if left_own:
            # Kueue takes gates from one place only.
            plain["featureGates"], left = {**left_own, **left}, {}
        source = kueue.written.source if kueue.written else None
        manifest = Manifest(plain) if source is None else Manifest(plain, source)
        return UpgradedSettings(Configuration.of([manifest], feature_gates=left, release=release), refused)
    except ConfigurationError as error:
        settings = kueue.configuration.to_dict()
        if not kueue.configuration.names_wait_for_pods_ready:
            settings.pop("waitForPodsReady", None)
        configuration = Configuration.trusted(settings, feature_gates={**own, **left}, release=release)
        return UpgradedSettings(configuration, refused, error.problems)


def _with_kinds_of(old: Release, gates: Mapping[str, bool], shipped: Configuration) -> Configuration:
    """Return what a release ships, with the kinds of jobs of another one, if it knows them all."""
    with suppress(ConfigurationError):
        return shipped_configuration(gates, shipped.release, kinds_of=old)
    return shipped


def _refused(
    gates: Mapping[str, bool], kueue: Configured, asked: Mapping[str, bool], release: Release
) -> Iterator[RefusedGate]:
    known = {gate.name: gate for gate in release.feature_gates()}
    for name, is_on in gates.items():
        gate = known.get(name)
        place = "--feature-gates" if name in asked else _place(kueue, name)
        if gate is None and name not in _ALL_GATES:
            why, _, remedy = known_gate_remedy(name, release).partition("; ")
            why, _, remedy = (why, "", remedy) if remedy else why.partition(": ")
            yield RefusedGate(name, is_on, place, why or f"{release.title} has no such gate", remedy or "leave it out")
        elif gate is not None and gate.locked and gate.default != is_on:
            yield RefusedGate(name, is_on, place, f"it is locked {'on' if gate.default else 'off'}", "leave it out")


def _place(kueue: Configured, name: str) -> str:
    """Return the file and line, or the object, in which a gate is set."""
    written = kueue.written
    if written is not None and name in object_at(written.object, "featureGates"):
        line = written.source.line_of(f"featureGates.{name}")
        return f"{written.source.file}:{line}" if line else written.source.file
    for source in gates_in(kueue.holders):
        if name in source.gates:
            return place_of(source.holder)
    return ""


def _flags(gates: Mapping[str, object]) -> dict[str, bool]:
    return {name: is_on for name, is_on in gates.items() if isinstance(is_on, bool)}


@dataclass(frozen=True, slots=True)
class ChangedDefault:
    """A default that differs between two releases, and that matters here.

    Args:
        name: A gate, or a field of the Configuration.
        before: Its value in the old release.
        after: Its value in the new one.
        n_decisions: How many of the decisions that change depend on it.
        what: What it does.
    """

    name: str
    before: str
    after: str
    n_decisions: int
    what: str


def changed_defaults(
    found: Upgrade, configuration: Configuration, manifests: Iterable[Manifest]
) -> Iterator[ChangedDefault]:
    """List the defaults on which decisions depend that change; first gates, those of most decisions first.

    Args:
        found: What changes.
        configuration: The Configuration for the new release.
        manifests: The objects.
    """
    counts: Counter[str] = Counter()
    switches: dict[str, Switch] = {}
    for cause in found.causes:
        for switch in cause.switches:
            if switch.kind is not SwitchKind.CHANGE:
                switches[switch.name] = switch
                counts[switch.name] += len(cause.differences)
    for refusal in found.refusals:
        switches |= {switch.name: switch for switch in refusal.switches if switch.kind is SwitchKind.GATE}
    ranked = sorted(switches.values(), key=lambda switch: (-counts[switch.name], switch.name))
    for other in ranked:
        is_gate = other.kind is SwitchKind.GATE
        before, after = (
            (_on(other.before), _on(other.after)) if is_gate else (f"of {found.old.line}", f"of {found.new.line}")
        )
        yield ChangedDefault(other.name, before, after, counts[other.name], other.what)
    if found.n_workloads and _waits_since(found.old, found.new, configuration):
        what = "workloads whose pods are not ready after 30 minutes are evicted and queued again, which a run does not "
        what += "show; featureGates: {DisableWaitForPodsReady: true} turns it off"
        yield ChangedDefault("waitForPodsReady", "off", "30m", 0, what)
    is_on_since = any(switch.name == _ORCHESTRATED and switch.after for switch in found.switches)
    if is_on_since and _ORCHESTRATED not in switches and any(map(_is_of_multikueue, manifests)):
        what = (
            "workers preempt once the manager lets them, which a run does not show; upgrade them, too: older ones do "
        )
        what += f"not wait. featureGates: {{{_ORCHESTRATED}: false}} turns it off"
        yield ChangedDefault(_ORCHESTRATED, _on(False), _on(True), 0, what)


def _is_of_multikueue(manifest: Manifest) -> bool:
    it = manifest.object
    return text_at(it, "kind") == "AdmissionCheck" and text_at(it, "spec", "controllerName") == _MULTIKUEUE


def _waits_since(old: Release, new: Release, configuration: Configuration) -> bool:
    """Return whether the new release waits for pods of itself, and the old one does not."""
    is_since = old < _WAITS_FOR_PODS and not new < _WAITS_FOR_PODS
    return is_since and not configuration.names_wait_for_pods_ready and "waitForPodsReady" in configuration.to_dict()


def _on(is_on: bool) -> str:
    return "on" if is_on else "off"
