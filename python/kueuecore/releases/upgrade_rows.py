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
        line: The release of Kueue that first has it, such as `0.17`; `0.20` is the commit that kueuecore follows.
        text: What changed, in Markdown.
        since: The first release that has it, then patch releases of older lines that have it, too.
        look_for: A command that prints lines of a cluster's files if it may concern them, or what to look at.
        pulls: Kueue's pull requests, the first one first.
        gates: The feature gates behind it.
        setting: The field of the Configuration that each release ships with its own value for; empty if it is none.
        world: The section of the page of small worlds that shows it; empty if none does.
        is_run: Whether a test runs it.
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
        )
        for row in yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    )


def pulls_of_gate(name: str) -> tuple[int, ...]:
    """Return Kueue's pull requests behind a feature gate, from the row about it; none if no row names it.

    Example:
        >>> pulls_of_gate("TASHandleOverlappingFlavors")
        (11210,)
    """
    rows = (it for it in upgrade_rows() if name in it.gates)
    # A row about several gates does not say which pull request is whose.
    row = min(rows, key=lambda it: len(it.gates), default=None)
    return () if row is None else row.pulls
