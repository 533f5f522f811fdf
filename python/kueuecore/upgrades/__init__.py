"""What an upgrade of Kueue changes about a state: the decisions, and the changes of Kueue that cause each.

And what a change of manifests does: `revise`.

Example:
    >>> from kueuecore import Configuration, read_manifests
    >>> from kueuecore.dumps import Deciding
    >>> old, new = Configuration(release="0.18"), Configuration(release="0.19")
    >>> found = upgrade(read_manifests("examples/two-teams"), Deciding(now=0), old, new)
    >>> found.is_any, len(found.causes)
    (False, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.upgrades.differences import Difference
    from kueuecore.upgrades.fates import Fate
    from kueuecore.upgrades.mixtures import MAX_RUNS
    from kueuecore.upgrades.revisions import Revision, revise
    from kueuecore.upgrades.switches import KINDS_FIELD, Switch, SwitchKind, switches_between
    from kueuecore.upgrades.upgrading import Cause, Kept, Refusal, Upgrade, upgrade

__all__ = [
    "KINDS_FIELD",
    "MAX_RUNS",
    "Cause",
    "Difference",
    "Fate",
    "Kept",
    "Refusal",
    "Revision",
    "Switch",
    "SwitchKind",
    "Upgrade",
    "revise",
    "switches_between",
    "upgrade",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.upgrades.differences": "Difference",
        "kueuecore.upgrades.fates": "Fate",
        "kueuecore.upgrades.mixtures": "MAX_RUNS",
        "kueuecore.upgrades.revisions": "Revision revise",
        "kueuecore.upgrades.switches": "KINDS_FIELD Switch SwitchKind switches_between",
        "kueuecore.upgrades.upgrading": "Cause Kept Refusal Upgrade upgrade",
    },
)
