"""Forecasts as tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isinf

from kueuecore._json import JsonObject, JsonValue
from kueuecore._text import shown
from kueuecore.cli.documents import document_head
from kueuecore.cli.spans import seconds
from kueuecore.cli.table import Style, table
from kueuecore.releases import Release
from kueuecore.studies.forecast import Eta, Forecast
from kueuecore.studies.present_workloads import Status
from kueuecore.times import SECOND_NS, format_time

__all__ = ["forecast_document", "forecast_report", "interim_lines"]

_MOST_INTERIM = 3
_SOURCES = {
    "Priority": "this priority",
    "LocalQueue": "the LocalQueue",
    "ClusterQueue": "the ClusterQueue",
    "All": "all queues",
    "Given": "given",
}


def forecast_report(found: Eta, percentages: Sequence[float], style: Style) -> str:
    """The forecasts as text: when, and on which assumptions.

    Args:
        found: The forecasts.
        percentages: The quantiles to show, in percent.
        style: Colour and width.
    """
    parts = []
    if len(found.forecasts) == 1:
        parts.append(_single(found, found.forecasts[0], percentages, style))
    elif found.forecasts:
        parts.append(_several(found, percentages, style))
    else:
        parts.append("no workload is waiting")
    if any(it.seconds and not it.never for it in found.forecasts):
        if len(found.seeds) < found.n_asked:
            parts.append(f"stopped after {len(found.seeds)} of {found.n_asked} futures; --budget gives it more time")
        if found.is_shortened:
            far = _long(found.horizon_seconds)
            parts.append(f"looked {far} ahead, as so much happens in that time; --horizon sets how far to look")
        parts += _assumptions(found, style)
    return "\n\n".join(parts)


def interim_lines(found: Eta, percentages: Sequence[float]) -> list[str]:
    """The forecasts so far, a line for each of the first few workloads.

    Args:
        found: The forecasts.
        percentages: The quantiles to show, in percent.
    """
    open_ones = [it for it in found.forecasts if it.seconds and not it.never]
    lines = []
    for it in open_ones[:_MOST_INTERIM]:
        times = ", ".join(f"{percent:g}% within {_after(it.quantile(percent / 100), found)}" for percent in percentages)
        lines.append(f"after {len(found.seeds)} of {found.n_asked} futures: {it.workload}: {times}")
    return lines


def _single(found: Eta, forecast: Forecast, percentages: Sequence[float], style: Style) -> str:
    name, horizon = shown(forecast.workload), _long(found.horizon_seconds)
    if forecast.status is Status.FINISHED:
        return f"{name} has finished" + _since(forecast)
    if forecast.status is Status.ADMITTED:
        return f"{name} is admitted" + _since(forecast)
    if forecast.never:
        return f"{name} will never be admitted as things are, not even in an empty cluster: {shown(forecast.never)}"
    head = f"{name} {_standing(forecast)} at {_time(found.now)}; of {len(found.seeds)} futures"
    n_not = sum(map(isinf, forecast.seconds))
    reported = f"all admit it within {horizon}" if not n_not else f"{n_not} do not admit it within {horizon}"
    rows = []
    for percentage in percentages:
        after = forecast.quantile(percentage / 100)
        rows.append([f"{percentage:g}%", _after(after, found), _at(after, found)])
    return f"{head} {reported}\n\n" + table(["FUTURES", "WITHIN", "BY"], rows, style, right=["FUTURES", "WITHIN"])


def _several(found: Eta, percentages: Sequence[float], style: Style) -> str:
    names = [f"{it:g}%" for it in percentages]
    header = ["WORKLOAD", "STATUS", *names, "NOT ADMITTED", "MESSAGE"]
    rows = []
    for it in found.forecasts:
        times = ["-"] * len(names)
        if it.seconds:
            times = [_after(it.quantile(percentage / 100), found) for percentage in percentages]
        not_admitted = f"{it.share_not_admitted:.0%}" if it.seconds else "-"
        message = f"never: {it.never}" if it.never else _since(it).removeprefix(" ")
        rows.append([it.workload, it.status.value, *times, not_admitted, message])
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    head = f"{len(rows)} workloads at {_time(found.now)}, {len(found.seeds)} futures, "
    head += (
        f"up to {_long(found.horizon_seconds)}; each % column: the time within which that share of futures admits it"
    )
    return f"{head}\n\n" + table(header, rows, style, right=[*names, "NOT ADMITTED"])


def _standing(forecast: Forecast) -> str:
    return "waits" if forecast.status is Status.PENDING else "holds quota but is not admitted"


def _since(forecast: Forecast) -> str:
    return "" if forecast.since is None else f" since {_time(forecast.since)}"


def _after(after: float, found: Eta) -> str:
    return f"over {_long(found.horizon_seconds)}" if isinf(after) else seconds(after)


def _at(after: float, found: Eta) -> str:
    # Rounded as the span, or the two columns would differ by a second.
    return "-" if isinf(after) else _time(found.now // SECOND_NS * SECOND_NS + round(after) * SECOND_NS)


def _time(time: int) -> str:
    """A time to the second: nanoseconds would suggest a precision that a forecast does not have."""
    return format_time(time // SECOND_NS * SECOND_NS)


def _long(span: float) -> str:
    days = span / 86400
    return f"{days:g}d" if days >= 2 and days == int(days) else seconds(span)


def _assumptions(found: Eta, style: Style) -> list[str]:
    given = found.assumptions
    header = ["LOCAL QUEUE", "PRIORITY", "RUN TIMES FROM", "FINISHED", "RUNNING", "MEDIAN"]
    rows = []
    for it in given.run_times:
        counts = ["-", "-"] if it.source == "Given" else [str(it.n_finished), str(it.n_running)]
        priority = "any" if it.priority is None else str(it.priority)
        name = it.local_queue or "(running now)"
        rows.append([name, priority, _SOURCES[it.source], *counts, seconds(it.median_seconds)])
    parts = [f"assumed:\n{_sentences(found)}", table(header, rows, style, right=["PRIORITY", *header[3:]])]
    if given.arrivals:
        rows = [[it.local_queue, str(it.n_seen), f"{it.per_hour:.3g}"] for it in given.arrivals]
        parts.append(table(["LOCAL QUEUE", "ARRIVED", "PER HOUR"], rows, style, right=["ARRIVED", "PER HOUR"]))
    return parts


def _sentences(found: Eta) -> str:
    given = found.assumptions
    holding = "1 workload holds" if given.n_running == 1 else f"{given.n_running} workloads hold"
    waiting = "1 waits" if given.n_pending == 1 else f"{given.n_pending} wait"
    lines = [f"- {holding} quota and {waiting}; run times are as in the table"]
    work = f"the {given.n_work} jobs of the scenario arrive" if given.n_work else ""
    if given.arrivals and given.window_seconds is not None:
        more = f"workloads keep arriving as in the last {seconds(given.window_seconds)}"
        lines.append(f"- {work + ', and ' if work else ''}{more}")
    else:
        lines.append(f"- {work or 'no more workloads arrive'}" + (" and no others" if work else ""))
    lines.append("- an evicted job starts over; admission checks are ready at once")
    lines.append("- quotas, queues and nodes stay as they are, unless a scenario changes them")
    return "\n".join(lines)


def forecast_document(found: Eta, percentages: Sequence[float], release: Release) -> str:
    """The forecasts as one JSON document.

    Args:
        found: The forecasts.
        percentages: The quantiles to show, in percent.
        release: The release of Kueue that decides.
    """
    given = found.assumptions
    document: JsonObject = {
        **document_head(release),
        "now": format_time(found.now),
        "horizonSeconds": found.horizon_seconds,
        "futures": len(found.seeds),
        "futuresAsked": found.n_asked,
        "isShortened": found.is_shortened,
        "seeds": [*found.seeds],
        "workloads": [_workload(found, it, percentages) for it in found.forecasts],
        "assumptions": {
            "holdingQuota": given.n_running,
            "pending": given.n_pending,
            "jobsOfScenario": given.n_work,
            "arrivalWindowSeconds": given.window_seconds,
            "arrivals": [
                {"localQueue": it.local_queue, "seen": it.n_seen, "perHour": it.per_hour} for it in given.arrivals
            ],
            "runTimes": [
                {
                    "localQueue": it.local_queue or None,
                    "priority": it.priority,
                    "source": it.source,
                    "finished": it.n_finished,
                    "running": it.n_running,
                    "medianSeconds": it.median_seconds,
                }
                for it in given.run_times
            ],
            "warnings": [*given.warnings],
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _workload(found: Eta, forecast: Forecast, percentages: Sequence[float]) -> JsonValue:
    namespace, _, name = forecast.workload.partition("/")
    quantiles: list[JsonValue] = []
    for percentage in percentages if forecast.seconds else ():
        after = forecast.quantile(percentage / 100)
        is_never = isinf(after)
        at = None if is_never else _at(after, found)
        quantiles.append({"percent": percentage, "seconds": None if is_never else after, "time": at})
    return {
        "namespace": namespace,
        "name": name,
        "job": forecast.job or None,
        "status": forecast.status.value,
        "since": None if forecast.since is None else format_time(forecast.since),
        "quantiles": quantiles,
        "shareNotAdmitted": forecast.share_not_admitted if forecast.seconds else None,
        "never": forecast.never or None,
        "draws": [None if isinf(it) else it for it in forecast.seconds],
    }
