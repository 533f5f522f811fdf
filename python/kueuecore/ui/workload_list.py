"""The list of workloads: filtered, sorted and cut into pages by the server, as there may be tens of thousands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from kueuecore.states import Stage
from kueuecore.ui.state_view import WorkloadRow

__all__ = ["COLUMNS", "ListQuery", "WorkloadPage"]

PAGE_ROWS = 50

_LAST = 2**63
_STAGES = list(Stage)
# What each column is sorted by; ties are by namespace and name.
COLUMNS: Mapping[str, Callable[[WorkloadRow], Any]] = {
    "workload": lambda row: row.key,
    "stage": lambda row: _STAGES.index(row.state.stage),
    "queue": lambda row: (row.state.cluster_queue or "", row.state.local_queue),
    "position": lambda row: _LAST if row.position is None else row.position,
    "priority": lambda row: -row.state.priority,
    "since": lambda row: _LAST if row.since is None else row.since,
}


@dataclass(frozen=True, slots=True)
class ListQuery:
    """What a reader asks of the list.

    Args:
        namespace: Only this namespace; empty: all.
        queue: Only this LocalQueue or ClusterQueue.
        stage: Only this stage.
        text: Only those with this text in their name, or in what is said of them.
        sort: A column, with `-` before it backwards.
        page: The page, from 1.
    """

    namespace: str = ""
    queue: str = ""
    stage: str = ""
    text: str = ""
    sort: str = "workload"
    page: int = 1

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> ListQuery:
        """Read the parameters of a request; what makes no sense counts as not given."""
        sort = asked.get("sort", "")
        page = asked.get("page", "")
        return cls(
            namespace=asked.get("namespace", "").strip(),
            queue=asked.get("queue", "").strip(),
            stage=asked.get("stage", "") if asked.get("stage", "") in list(map(str, Stage)) else "",
            text=asked.get("text", "").strip(),
            sort=sort if sort.removeprefix("-") in COLUMNS else "workload",
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 8 else 1,
        )

    @property
    def has_filter(self) -> bool:
        """Whether it leaves anything out."""
        return bool(self.namespace or self.queue or self.stage or self.text)

    def link(self, *, sort: str = "", page: int = 1) -> str:
        """Return the query of the same list in another order, or of another page."""
        fields = {"namespace": self.namespace, "queue": self.queue, "stage": self.stage, "text": self.text}
        fields |= {"sort": sort or self.sort, "page": str(page) if page > 1 else ""}
        return "?" + urlencode({name: value for name, value in fields.items() if value})

    def sort_link(self, column: str) -> str:
        """Return the query of the list sorted by a column, or backwards if it is sorted by that."""
        return self.link(sort=f"-{column}" if self.sort == column else column)

    def order_of(self, column: str) -> str:
        """The value of `aria-sort` of a column; empty if the list is not sorted by it."""
        return {column: "ascending", f"-{column}": "descending"}.get(self.sort, "")


@dataclass(frozen=True, slots=True)
class WorkloadPage:
    """A page of the list.

    Args:
        rows: Its workloads.
        first: The number of the first of them, from 1.
        n_found: How many there are on all pages.
        page: Its number, from 1.
        n_pages: How many pages there are.
    """

    rows: Sequence[WorkloadRow]
    first: int
    n_found: int
    page: int
    n_pages: int

    @classmethod
    def of(cls, workloads: Sequence[WorkloadRow], query: ListQuery) -> WorkloadPage:
        """Return the page that is asked for, or the last one if there are fewer."""
        found = [row for row in workloads if _matches(row, query)] if query.has_filter else list(workloads)
        column = query.sort.removeprefix("-")
        if query.sort != "workload":
            found.sort(key=COLUMNS[column], reverse=query.sort.startswith("-"))
        n_pages = max(1, -(-len(found) // PAGE_ROWS))
        page = min(query.page, n_pages)
        first = (page - 1) * PAGE_ROWS
        return cls(found[first : first + PAGE_ROWS], first + 1, len(found), page, n_pages)


def _matches(row: WorkloadRow, query: ListQuery) -> bool:
    state = row.state
    if query.namespace and state.namespace != query.namespace:
        return False
    if query.queue and query.queue not in (state.local_queue, state.cluster_queue):
        return False
    if query.stage and state.stage != query.stage:
        return False
    text = query.text.casefold()
    return not text or text in state.key.casefold() or text in state.message.casefold()
