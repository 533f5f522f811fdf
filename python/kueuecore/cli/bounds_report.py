"""What is known of a wait without knowing how long jobs run, as lines of text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

from kueuecore._json import JsonValue
from kueuecore._spans import seconds
from kueuecore._text import shown
from kueuecore.forecasts.bounds import Bounds, Latest, NotBefore, PastWaits
from kueuecore.times import SECOND_NS, format_time

__all__ = ["bounds_lines", "bounds_value"]

_MOST_NAMES = 5


def bounds_lines(bounds: Bounds, now: int) -> list[str]:
    """Return a line for each bound.

    Args:
        bounds: The bounds.
        now: The present, in nanoseconds since 1970.
    """
    lines = []
    if bounds.not_before is not None:
        lines.append(f"- not before {_ends(bounds.not_before)}")
    if bounds.latest is not None:
        how = "at the latest" if bounds.latest.is_bound else "at about"
        lines.append(
            f"- {how} {_time(now, bounds.latest)}, in {seconds(bounds.latest.seconds)}, if nobody arrives and no job "
            "runs beyond its time limit"
        )
    if bounds.past_waits is not None:
        lines.append(f"- {_past(bounds.past_waits)}")
    return lines


def bounds_value(bounds: Bounds | None, now: int) -> JsonValue:
    """Return bounds as JSON; null: there are none.

    Args:
        bounds: The bounds.
        now: The present, in nanoseconds since 1970.
    """
    if bounds is None:
        return None
    before, latest, waits = bounds.not_before, bounds.latest, bounds.past_waits
    return {
        "notBefore": None
        if before is None
        else {
            "ends": before.n_ends,
            "isExact": before.is_exact,
            "holding": before.n_holding,
            "goFirst": before.n_first,
            "workloads": [*before.workloads],
        },
        "latest": None
        if latest is None
        else {"seconds": latest.seconds, "time": _time(now, latest), "isBound": latest.is_bound},
        "pastWaits": None
        if waits is None
        else {
            "clusterQueue": waits.cluster_queue,
            "n": waits.n,
            "quantiles": [
                {"percent": percent, "seconds": None if isinf(after) else after} for percent, after in waits.quantiles
            ],
        },
    }


def _ends(bound: NotBefore) -> str:
    names = _named(bound.workloads)
    hold = "hold quota or get it first" if bound.n_first else "hold quota"
    if bound.n_holding == 1 and names:
        return f"{names} ends, the only workload that {hold.replace('hold', 'holds').replace('get', 'gets')}"
    of_all = f"of the {bound.n_holding} workloads that {hold}"
    if not bound.is_exact:
        return f"at least {bound.n_ends} {of_all} {'ends' if bound.n_ends == 1 else 'end'}"
    if bound.n_ends == bound.n_holding:
        return f"all {bound.n_holding} workloads that {hold} end"
    if bound.n_ends > 1:
        return f"{bound.n_ends} {of_all} end; enough would be {names}"
    which = "enough would be" if len(bound.workloads) == 1 else "enough would be any of"
    return f"1 {of_all} ends; {which} {names}"


def _named(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MOST_NAMES} more" if len(keys) > _MOST_NAMES else ""
    return ", ".join(map(shown, keys[:_MOST_NAMES])) + more


def _past(waits: PastWaits) -> str:
    known = [(percent, after) for percent, after in waits.quantiles if not isinf(after)]
    of_all = f"of {waits.n} past waits in ClusterQueue {shown(waits.cluster_queue)}"
    if not known:
        return f"{of_all} more than half were longer than the histogram shows"
    return f"{of_all}, " + ", ".join(f"{percent:g} % were at most {seconds(after)}" for percent, after in known)


def _time(now: int, latest: Latest) -> str:
    return format_time(now // SECOND_NS * SECOND_NS + round(latest.seconds) * SECOND_NS)
