"""The releases of Kueue that kueuecore follows: what each has, and what changed between them.

All of it is data, written from the table that the engine reads; nothing here loads the engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kueuecore.version import DEFAULT_RELEASE

__all__ = [
    "DEFAULT_RELEASE",
    "Change",
    "FeatureGate",
    "Release",
    "UnknownReleaseError",
    "changes",
    "gone_gate_remedy",
    "near_releases",
    "newest_releases",
    "releases",
]


class UnknownReleaseError(ValueError):
    """Kueue has no such release, or kueuecore does not know it."""


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """A feature gate of a release of Kueue.

    Args:
        name: Name, such as `PartialAdmission`.
        default: Whether it is on by default.
        stage: Alpha, Beta, GA or Deprecated.
        what: What it does when on.
        locked: Whether it is an error to set it to anything but its default.
        needs: The gates that must be on while it is.
    """

    name: str
    default: bool
    stage: str
    what: str
    locked: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """A change of Kueue that has no feature gate: kueuecore plays both sides of it.

    Args:
        name: Name of the new behaviour.
        pulls: Kueue's pull requests.
        since: The first release of each line that has it. Lines after the last one have it, too.
        what: What Kueue does since, and what it did before.
        rule: The rule that it amends, such as `rules/03 §4`.
        proof: `recorded` if recorded runs of releases on both sides are met, `read` if the code of both was read or a
            test of Kueue, `proposal` if a proposal, a pull request or an issue describes it, `changelog` if a sentence
            there is all that was found.
    """

    name: str
    pulls: tuple[int, ...]
    since: tuple[str, ...]
    what: str
    rule: str
    proof: str

    def is_in(self, release: Release) -> bool:
        """Return whether a release has it."""
        firsts = {_line(name): name for name in self.since}
        if release.line in firsts:
            return _key(release.name) >= _key(firsts[release.line])
        return _key(release.name) > _key(self.since[-1])


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Kueue, or the commit of its development that kueuecore was first written from.

    Args:
        name: Version without the `v`, such as `0.17.3`.
        line: The line it belongs to, such as `0.17`.
        commit: The commit, of a release without a tag; else empty.

    Example:
        >>> Release.named("0.17").name
        '0.17.8'
        >>> Release.named("v0.17.3").default_gates()["SchedulingEquivalenceHashing"]
        False
    """

    name: str
    line: str
    commit: str = ""

    @staticmethod
    def named(name: str) -> Release:
        """Return the release of a name: `0.17.3`, `0.17` for the newest patch of its line, `0.20-dev` for the commit.

        Each may begin with a `v`.

        Raises:
            UnknownReleaseError: There is none of that name.
        """
        plain = name.strip().removeprefix("v")
        for release in releases():
            if plain == release.name or (release.commit and _is_development(plain, release)):
                return release
        for release in newest_releases():
            if plain == release.line and not release.commit:
                return release
        *first, last = [near_release.name for near_release in near_releases(plain)]
        near = f"{', '.join(first)} or {last}" if first else last
        shown = name if name.isprintable() and 0 < len(name) <= 40 else repr(name[:40])
        raise UnknownReleaseError(f"kueuecore does not know the release {shown} of Kueue: write {near}")

    def __lt__(self, other: Release) -> bool:
        return _key(self.name) < _key(other.name)

    @property
    def tag(self) -> str:
        """Its name as Kueue tags it, such as `v0.17.8`."""
        return f"v{self.name}"

    @property
    def title(self) -> str:
        """Its name in a sentence, such as `Kueue v0.17.8`."""
        return f"Kueue {self.tag}" + (f" (commit {self.commit[:12]})" if self.commit else "")

    def feature_gates(self) -> tuple[FeatureGate, ...]:
        """Return the gates that it has, by name."""
        return tuple(gate for row in _table()["gates"] if (gate := _gate(row, self)) is not None)

    def default_gates(self) -> dict[str, bool]:
        """Return what every gate of any release is here unless something sets it, by name.

        A gate that the release does not have may still be on: what it turns on elsewhere is always on here.
        """
        return {row["name"]: bool(past[2]) if (past := _past(row, self)) else False for row in _table()["gates"]}

    def changes(self) -> frozenset[str]:
        """Return the names of the changes that it has."""
        return frozenset(change.name for change in changes() if change.is_in(self))


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_name("table.json").read_text(encoding="utf-8"))
    return table


@cache
def releases() -> tuple[Release, ...]:
    """Return every release that kueuecore follows, oldest first."""
    return tuple(Release(**row) for row in _table()["releases"])


@cache
def newest_releases() -> tuple[Release, ...]:
    """Return the newest release of each line, oldest first."""
    return tuple({release.line: release for release in releases()}.values())


@cache
def changes() -> tuple[Change, ...]:
    """Return every change without a gate, oldest first."""
    return tuple(
        Change(**{**row, "pulls": tuple(row["pulls"]), "since": tuple(row["since"])}) for row in _table()["changes"]
    )


def _is_development(name: str, release: Release) -> bool:
    return name == f"{release.line}-dev" or (len(name) > 6 and release.commit.startswith(name))


def near_releases(name: str) -> tuple[Release, ...]:
    """Return the releases that are nearest to one that is not known: the newest of its line, or of the nearest line.

    Example:
        >>> [it.name for it in near_releases("0.17.12")], [it.name for it in near_releases("0.9.1")]
        (['0.17.8'], ['0.16.9'])
    """
    numbers = re.match(r"0\.(\d{1,4})(?!\d)", name)
    if numbers is None:
        return newest_releases()
    return (min(newest_releases(), key=lambda release: abs(_key(release.name)[0] - int(numbers[1]))),)


def gone_gate_remedy(name: str, release: Release) -> str:
    """Return what to do about a gate that a release no longer has; empty if it never had one of that name.

    Example:
        >>> gone_gate_remedy("LendingLimit", Release.named("0.19"))
        'Kueue 0.19 removed it; leave it out: what it turned on stays on'
    """
    for row in _table()["gates"]:
        if row["name"] == name and (past := _past(row, release)) and past[4] and not past[1]:
            return f"Kueue {_line(past[0])} removed it; {past[4]}"
    return ""


def _gate(row: Mapping[str, Any], release: Release) -> FeatureGate | None:
    past = _past(row, release)
    if past is None or not past[1]:
        return None
    return FeatureGate(row["name"], past[2], past[1], row["what"], past[3], tuple(row["needs"]))


def _past(row: Mapping[str, Any], release: Release) -> tuple[str, str, bool, bool, str] | None:
    """Return what a gate is in a release: since when, stage or empty, default, locked, remedy."""
    pasts = [past for past in row["history"] if _key(past[0]) <= _key(release.name)]
    return tuple(pasts[-1]) if pasts else None


@cache
def _key(version: str) -> tuple[int, int]:
    """Return what versions are ordered by: a development comes before its `.0`."""
    minor, patch = re.findall(r"\d+", version)[1:3]
    return int(minor), -1 if version.endswith("-devel") else int(patch)


def _line(version: str) -> str:
    return version[: version.rindex(".")]
