"""Tables of the workloads that hold what another one needs, with the verdict of the search for victims on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from kueuecore._text import shown
from kueuecore.answers import Explanation, Fate
from kueuecore.answers.amounts import quantity_of, units_of
from kueuecore.answers.explanation import Holder, Search
from kueuecore.answers.obstacles import why_so
from kueuecore.cli.table import Cell, Painted, Style, table

__all__ = ["holder_tables"]

# With more holders, those of one ClusterQueue and verdict share a row; JSON and wide tables have all of them.
_MAX_HOLDERS = 20
_MAX_NAMES = 2
_HEADER = ["HOLDS IT", "CLUSTER QUEUE", "PRIORITY", "USES", "VERDICT", "RULE", "WHY"]
_COLORS = {Fate.VICTIM: "red", Fate.NOT_ENOUGH: "yellow", Fate.NOT_NEEDED: "green"}
_SPARED = tuple(entry for entry in Fate if entry not in (Fate.VICTIM, Fate.NOT_NEEDED, Fate.NOT_ENOUGH))


def holder_tables(found: Explanation, style: Style, *, is_wide: bool) -> list[str]:
    """Show the workloads that use what is contested: a table for each search that says something of its own."""
    searches = _distinct(found.searches)
    return [_of_search(search, found, style, is_wide=is_wide) for search in searches]


def _distinct(searches: Iterable[Search]) -> list[Search]:
    """The last of the searches for the same, without those whose holders and verdicts another one shows."""
    # Each flavor is tried first, and the chosen one is searched again: the last search counts.
    last = list({(search.contested, search.asks_for_place): search for search in searches}.values())
    merged: list[Search] = []
    for search in last:
        twin = next((n for n, other in enumerate(merged) if _verdicts(other) == _verdicts(search)), None)
        if twin is None:
            merged.append(search)
        else:
            merged[twin] = _union(merged[twin], search)
    return [search for search in merged if not any(_shows_less(search, other) for other in merged)]


def _verdicts(search: Search) -> object:
    return search.asks_for_place, search.is_found, {holder.key: holder.fate for holder in search.holders}


def _shows_less(search: Search, other: Search) -> bool:
    """Whether another search has all that this one is about, and the same verdicts."""
    fates = {holder.key: holder.fate for holder in other.holders}
    return (
        (search.asks_for_place, search.is_found) == (other.asks_for_place, other.is_found)
        and set(search.contested) < set(other.contested)
        and all(fates.get(holder.key) is holder.fate for holder in search.holders)
    )


def _union(first: Search, second: Search) -> Search:
    """One search for what two are about, with the verdicts that they share."""
    uses = {holder.key: holder.uses for holder in second.holders}
    holders = tuple(replace(holder, uses={**holder.uses, **uses[holder.key]}) for holder in first.holders)
    contested = tuple(dict.fromkeys((*first.contested, *second.contested)))
    return replace(first, contested=contested, holders=holders)


def _of_search(search: Search, found: Explanation, style: Style, *, is_wide: bool) -> str:
    holders = sorted(search.holders, key=lambda holder: (holder.fate is not Fate.VICTIM, holder.fate in _SPARED))
    is_grouped = len(holders) > _MAX_HOLDERS and not is_wide
    groups = _groups(holders) if is_grouped else [[holder] for holder in holders]
    listed = groups if is_wide else groups[:_MAX_HOLDERS]
    rows = [_row(group, found, search) for group in listed]
    n_left = sum(map(len, groups[len(listed) :]))
    is_whole = len(listed) == len(holders)
    more = [f"and {n_left} more (-o wide)"] if n_left else [] if is_whole else ["-o wide lists each of them"]
    users = table(_HEADER, rows, style, right=["PRIORITY"]) if rows else "no workload uses it"
    return "\n".join([_title(search, found), users, *more])


def _title(search: Search, found: Explanation) -> str:
    what = shown(", ".join(f"{resource} in {flavor}" for flavor, resource in sorted(search.contested)))
    verdict = "preempting the victims makes room" if search.is_found else "no preemption makes room"
    if search.asks_for_place:
        room = "quota and a place on nodes" if search.is_found else "both quota and a place on nodes"
        does = "preempting the victims gives" if search.is_found else "no preemption of those that use it gives"
        return f"places for {what}: {does} {room}"
    is_partial = found.is_about_quota_alone(search)
    return f"quota of {what}, without regard to places: {verdict}" if is_partial else f"{what}: {verdict}"


def _groups(holders: Sequence[Holder]) -> list[list[Holder]]:
    groups: dict[tuple[str, Fate], list[Holder]] = {}
    for holder in holders:
        groups.setdefault((holder.cluster_queue, holder.fate), []).append(holder)
    return list(groups.values())


def _row(group: Sequence[Holder], found: Explanation, search: Search) -> list[Cell]:
    first = group[0]
    rule, why = why_so(first, found, search)
    priorities = [holder.priority for holder in group]
    least, most = min(priorities), max(priorities)
    name, priority = first.key, str(least) if least == most else f"{least} to {most}"
    if len(group) > 1:
        names = ", ".join(holder.key for holder in group[:_MAX_NAMES])
        name = f"{len(group)} workloads: {names}{', ...' if len(group) > _MAX_NAMES else ''}"
        if len({why_so(holder, found, search) for holder in group}) > 1:
            why = f"of {first.key}: {why}"
    fate = Painted(str(first.fate), _COLORS.get(first.fate, ""))
    return [name, first.cluster_queue, priority, _uses(group, search), fate, rule, why]


def _uses(group: Sequence[Holder], search: Search) -> str:
    """What they use of it in all; with flavors if several are contested."""
    total: Counter[tuple[str, str]] = Counter()
    for holder in group:
        total.update({key: units_of(key[1], amount) for key, amount in holder.uses.items()})
    has_flavors = len({flavor for flavor, _ in search.contested}) > 1
    in_order = [pair for pair in sorted(search.contested) if pair in total]
    if len(group) == 1:
        amounts = {pair: group[0].uses[pair] for pair in in_order}
    else:
        amounts = {pair: quantity_of(pair[1], total[pair]) for pair in in_order}
    return ", ".join(
        f"{amount} {resource}{f' in {flavor}' if has_flavors else ''}" for (flavor, resource), amount in amounts.items()
    )
