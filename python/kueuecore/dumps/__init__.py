"""Make dumps of clusters that can be shared: anonymised, or shrunk to the smallest that shows a decision.

Example:
    >>> from kueuecore import read_manifests
    >>> anonymise(read_manifests("examples/two-teams"), Deciding(now=0)).differences
    ()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.dumps.anonymising import Anonymised, anonymise
    from kueuecore.dumps.decided import Decided, Deciding
    from kueuecore.dumps.renaming import Names
    from kueuecore.dumps.shown import Admits, KeepsPending, Preempts, Showing, Unsettled
    from kueuecore.dumps.shrinking import Shrunk, shrink

__all__ = [
    "Admits",
    "Anonymised",
    "Decided",
    "Deciding",
    "KeepsPending",
    "Names",
    "Preempts",
    "Showing",
    "Shrunk",
    "Unsettled",
    "anonymise",
    "shrink",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.dumps.anonymising": "Anonymised anonymise",
        "kueuecore.dumps.decided": "Decided Deciding",
        "kueuecore.dumps.renaming": "Names",
        "kueuecore.dumps.shown": "Admits KeepsPending Preempts Showing Unsettled",
        "kueuecore.dumps.shrinking": "Shrunk shrink",
    },
)
