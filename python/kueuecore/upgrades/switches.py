"""What differs between two releases of Kueue, one switch for each gate and change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kueuecore.configuration import Configuration
from kueuecore.releases import FeatureGate, Release, changes, releases
from kueuecore.releases.upgrade_rows import pulls_of_gate

__all__ = ["Switch", "SwitchKind", "settable_gates", "switches_between", "with_dependent_gates"]


class SwitchKind(StrEnum):
    """What is switched."""

    GATE = "Gate"
    """A feature gate whose effective value differs."""
    CHANGE = "Change"
    """A change of Kueue without a gate."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A gate or change that differs between two releases.

    Args:
        name: Name of the gate, or of the change in `kueuecore.releases.changes`.
        kind: Which of the two.
        before: Whether it is on in the old release, with the Configuration's own gates.
        after: The same in the new release.
        what: What the gate does when on; what Kueue does since the change, and what it did before.
        pulls: Kueue's pull requests, as far as they are known.
    """

    name: str
    kind: SwitchKind
    before: bool
    after: bool
    what: str
    pulls: tuple[int, ...] = ()


def switches_between(old: Configuration, new: Configuration) -> tuple[Switch, ...]:
    """List the gates and changes that differ between two Configurations: gates by name, then changes by time.

    Example:
        >>> old, new = Configuration(release="0.18.1"), Configuration(release="0.18.2")
        >>> "FlavorsAreMatchedByTheirOwnLabels" in [it.name for it in switches_between(old, new)]
        True
    """
    gates = [
        Switch(it.name, SwitchKind.GATE, before, after, it.what, pulls_of_gate(it.name))
        for it in _known_gates()
        if (before := old.is_enabled(it.name)) != (after := new.is_enabled(it.name))
    ]
    others = [
        Switch(it.name, SwitchKind.CHANGE, old.has_change(it.name), new.has_change(it.name), it.what, it.pulls)
        for it in changes()
    ]
    return (*gates, *(it for it in others if it.before != it.after))


def settable_gates(release: Release) -> frozenset[str]:
    """Return the gates that a Configuration for a release may set to either value."""
    return frozenset(gate.name for gate in release.feature_gates() if not gate.locked)


def with_dependent_gates(names: Iterable[str], configuration: Configuration) -> tuple[str, ...]:
    """Return gates that are to be turned off, and those that are on and need them.

    Example:
        >>> with_dependent_gates(["KueueDRAIntegration"], Configuration(release="0.19"))[:2]
        ('KueueDRAIntegration', 'KueueDRAIntegrationExtendedResource')
    """
    found = list(dict.fromkeys(names))
    # Grows while it is walked: a gate may need one that was added.
    for name in found:
        found += [
            gate.name
            for gate in configuration.release.feature_gates()
            if name in gate.needs and configuration.is_enabled(gate.name) and gate.name not in found
        ]
    return tuple(found)


def _known_gates() -> list[FeatureGate]:
    """Return every gate of any release as its newest release has it, by name."""
    found = {gate.name: gate for release in releases() for gate in release.feature_gates()}
    return [found[name] for name in sorted(found)]
