"""What differs between two releases of Kueue, one switch for each gate and change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kueuecore.configuration import Configuration
from kueuecore.jobs import installed_frameworks
from kueuecore.releases import FeatureGate, Release, changes, releases
from kueuecore.releases.upgrade_rows import pulls_of_gate

__all__ = [
    "KINDS_FIELD",
    "Switch",
    "SwitchKind",
    "kinds_switch",
    "settable_gates",
    "switches_between",
    "with_dependent_gates",
]

KINDS_FIELD = "integrations.frameworks"
"""The field of a Configuration with the kinds of jobs that Kueue manages."""


class SwitchKind(StrEnum):
    """What is switched."""

    GATE = "Gate"
    """A feature gate whose effective value differs."""
    CHANGE = "Change"
    """A change of Kueue without a gate."""
    SETTING = "Setting"
    """A setting that each release ships with."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A gate, change or shipped setting that differs between two releases.

    Args:
        name: Name of the gate, or of the change in `kueuecore.releases.changes`; the field of a setting.
        kind: Which of the three.
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
    line = max(old.release, new.release).line
    gates = [
        Switch(gate.name, SwitchKind.GATE, before, after, gate.what, pulls_of_gate(gate.name, line=line))
        for gate in _known_gates()
        if (before := old.is_enabled(gate.name)) != (after := new.is_enabled(gate.name))
    ]
    others = [
        Switch(
            change.name,
            SwitchKind.CHANGE,
            old.has_change(change.name),
            new.has_change(change.name),
            change.what,
            change.pulls,
        )
        for change in changes()
    ]
    return (*gates, *(other for other in others if other.before != other.after))


def kinds_switch(old: Release, new: Release) -> Switch | None:
    """Return the switch between the kinds of jobs that two releases ship with; `None` if they are the same.

    Example:
        >>> kinds_switch(Release.named("0.18"), Release.named("0.19")).what
        'the shipped Configuration no longer enables paddlejob, pytorchjob, tfjob, xgboostjob, jaxjob'
    """
    before, after = installed_frameworks(old), installed_frameworks(new)
    gone, added = (
        [entry.rpartition("/")[2] for entry in a if entry not in b] for a, b in ((before, after), (after, before))
    )
    parts = [f"no longer enables {', '.join(gone)}" if gone else "", f"enables {', '.join(added)}" if added else ""]
    if not gone and not added:
        return None
    what = f"the shipped Configuration {' and '.join(filter(None, parts))}"
    return Switch(KINDS_FIELD, SwitchKind.SETTING, False, True, what, (12606,) if gone else ())


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
