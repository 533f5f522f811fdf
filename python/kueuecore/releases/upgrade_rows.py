"""What changed in Kueue from one release to the next, as the page on upgrades lists it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["UpgradeRow", "pulls_of_gate", "upgrade_rows"]


@dataclass(frozen=True, slots=True)
class UpgradeRow:
    """A row of the page on upgrades.

    Args:
        line: The release of Kueue that first has it, such as `0.17`.
        text: What changed, in Markdown.
        since: The first release that has it, then patch releases of older lines that have it, too.
        look_for: A command that prints lines of a cluster's files if it may concern them, or what to look at.
        pulls: Kueue's pull requests, the first one first.
        gates: The feature gates behind it.
        setting: The field of the Configuration that each release ships with its own value for; empty if it is none.
        world: The section of the page of small worlds that shows it; empty if none does.
        is_run: Whether a test runs it.
        known: Of what 0.20.0 has over the commit of its development: how it is known, by the part that is known least:
            `read`, `proposal` or `changelog`, as the proof of a change; empty for all else.
        changes: Names of changes of kueuecore behind it that have no pull request.
        as_before: Whether kueuecore decides as before it, under every release.
    """

    line: str
    text: str
    since: str
    look_for: str
    pulls: tuple[int, ...]
    gates: tuple[str, ...] = ()
    setting: str = ""
    world: str = ""
    is_run: bool = False
    known: str = ""
    changes: tuple[str, ...] = ()
    as_before: bool = False


@cache
def upgrade_rows() -> tuple[UpgradeRow, ...]:
    """Return all rows, oldest line first, within a line those first that are most likely to change a decision."""
    import yaml  # slow, and few commands need the rows

    text = files("kueuecore.releases").joinpath("upgrade_rows.yaml").read_text(encoding="utf-8")
    return tuple(
        UpgradeRow(
            row["line"],
            row["text"],
            row["in"],
            row["look_for"],
            tuple(row["pulls"]),
            tuple(row.get("gates", ())),
            row.get("setting", ""),
            row.get("world", ""),
            row.get("is_run", False),
            row.get("known", ""),
            tuple(row.get("changes", ())),
            row.get("as_before", False),
        )
        for row in yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    )


def pulls_of_gate(name: str, *, line: str = "") -> tuple[int, ...]:
    """Return Kueue's pull requests behind a feature gate, from the row about it; none if no row names it.

    Args:
        name: The gate.
        line: The newest release whose rows are looked at, such as `0.19`; empty: all.

    Example:
        >>> pulls_of_gate("TASHandleOverlappingFlavors")
        (11210,)
        >>> pulls_of_gate("MultiKueueOrchestratedPreemption", line="0.20")
        (16235,)
    """
    rows = [
        upgrade_row
        for upgrade_row in upgrade_rows()
        if name in upgrade_row.gates and (not line or _minor(upgrade_row.line) <= _minor(line))
    ]
    # A row about several gates does not say which pull request is whose. Of rows about one, the newest changed it last.
    row = min(rows, key=lambda row: (len(row.gates), -_minor(row.line)), default=None)
    return () if row is None else row.pulls


def _minor(line: str) -> int:
    return int(line.partition(".")[2])
