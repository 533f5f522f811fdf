"""Forecasts as tables and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import isinf

from kueuecore._json import JsonObject, JsonValue
from kueuecore._spans import seconds
from kueuecore._text import shown
from kueuecore.cli.bounds_report import bounds_lines, bounds_value
from kueuecore.cli.documents import document_head
from kueuecore.cli.table import Style, table
from kueuecore.forecasts.answer import Eta, Forecast, quantile
from kueuecore.forecasts.bounds import MAX_BOUNDED
from kueuecore.forecasts.present_workloads import Status
from kueuecore.releases import Release
from kueuecore.times import SECOND_NS, format_time

__all__ = ["forecast_document", "forecast_report", "interim_lines"]

_MAX_INTERIM = 3
# With fewer comparisons a share says little.
_LEAST_COMPARED = 30
_SOURCES = {
    "Program": "this program",
    "LocalQueue": "the LocalQueue",
    "ClusterQueue": "the ClusterQueue",
    "All": "all queues",
    "Limit": "time limits",
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
    parts += _bounds(found)
    if found.unknown and any(_is_open(forecast) for forecast in found.forecasts):
        parts.append(f"no forecast: {found.unknown}")
    if any(forecast.seconds and not forecast.never for forecast in found.forecasts):
        parts.append(_trust(found))
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
    open_ones = [forecast for forecast in found.forecasts if forecast.seconds and not forecast.never]
    lines = []
    for one in open_ones[:_MAX_INTERIM]:
        times = ", ".join(
            f"{percent:g}% within {_after(one.quantile(percent / 100), found)}" for percent in percentages
        )
        lines.append(f"after {len(found.seeds)} of {found.n_asked} futures: {one.workload}: {times}")
    return lines


def _single(found: Eta, forecast: Forecast, percentages: Sequence[float], style: Style) -> str:
    name, horizon = shown(forecast.workload), _long(found.horizon_seconds)
    if forecast.status is Status.FINISHED:
        return f"{name} has finished" + _since(forecast)
    if forecast.status is Status.ADMITTED:
        return f"{name} is admitted" + _since(forecast)
    if forecast.never:
        return f"{name} will never be admitted as things are, not even in an empty cluster: {shown(forecast.never)}"
    head = f"{name} {_standing(forecast)} at {_time(found.now)}"
    if not forecast.seconds:
        knows_bounds = forecast.bounds is not None and bounds_lines(forecast.bounds, found.now)
        return f"{head}; nothing says when it is admitted" + (", but" if knows_bounds else "")
    head += f"; of {len(found.seeds)} futures"
    n_not = sum(map(isinf, forecast.seconds))
    do_not = f"{n_not} {'does' if n_not == 1 else 'do'} not"
    reported = f"{do_not if n_not else 'all'} admit it within {horizon}"
    if found.record is not None and found.record.n >= _LEAST_COMPARED:
        reported += f"; {round(10 * found.record.n_held / found.record.n)} of 10 such forecasts held"
    rows = []
    for percentage in percentages:
        after = forecast.quantile(percentage / 100)
        rows.append([f"{percentage:g}%", _after(after, found), _at(after, found)])
    column = "FUTURES" if forecast.calibration is None else "CHANCE"
    return f"{head} {reported}\n\n" + table([column, "WITHIN", "BY"], rows, style, right=[column, "WITHIN"])


def _several(found: Eta, percentages: Sequence[float], style: Style) -> str:
    names = [f"{percentage:g}%" for percentage in percentages]
    header = ["WORKLOAD", "STATUS", *names, "NOT ADMITTED", "MESSAGE"]
    rows = []
    for forecast in found.forecasts:
        times = ["-"] * len(names)
        if forecast.seconds:
            times = [_after(forecast.quantile(percentage / 100), found) for percentage in percentages]
        not_admitted = f"{forecast.share_not_admitted:.0%}" if forecast.seconds else "-"
        message = f"never: {forecast.never}" if forecast.never else _since(forecast).removeprefix(" ")
        rows.append([forecast.workload, forecast.status.value, *times, not_admitted, message])
    if not any(row[-1] for row in rows):
        header, rows = header[:-1], [row[:-1] for row in rows]
    head = f"{len(rows)} workloads at {_time(found.now)}"
    if found.seeds:
        is_calibrated = any(forecast.calibration is not None for forecast in found.forecasts)
        what = "it is admitted with that probability" if is_calibrated else "that share of futures admits it"
        head += f", {len(found.seeds)} futures, up to {_long(found.horizon_seconds)}; "
        head += f"each % column: the time within which {what}"
    return f"{head}\n\n" + table(header, rows, style, right=[*names, "NOT ADMITTED"])


def _is_open(forecast: Forecast) -> bool:
    return forecast.status in (Status.PENDING, Status.QUOTA_RESERVED) and not forecast.never


def _bounds(found: Eta) -> list[str]:
    """What holds however long jobs run; with a heading where it stands beside a forecast, or is about several."""
    blocks = []
    for forecast in found.forecasts:
        lines = [] if forecast.bounds is None else bounds_lines(forecast.bounds, found.now)
        if not lines:
            continue
        name = f" of {shown(forecast.workload)}" if len(found.forecasts) > 1 else ""
        title = "" if found.unknown and not name else f"however long jobs run, the admission{name} is\n"
        blocks.append(title + "\n".join(lines))
    if len(blocks) >= MAX_BOUNDED < sum(map(_is_open, found.forecasts)):
        blocks.append(f"these are the first {MAX_BOUNDED}; name another workload for its own")
    return blocks


def _trust(found: Eta) -> str:
    """How such forecasts of the past turned out, or why that is unknown."""
    record = found.record
    if all(forecast.calibration is None for forecast in found.forecasts):
        return "not checked against the past, as run times, arrivals or changes are given: each future counts the same"
    elsewhere = "the intervals are corrected by what was seen on other clusters"
    if record is None or not record.n:
        return f"no past wait was compared: {elsewhere}"
    if record.n < _LEAST_COMPARED:
        waits = "wait" if record.n == 1 else "waits"
        return f"only {record.n} past {waits} could be compared: {elsewhere}"
    waits = "wait was" if record.n_early == 1 else "waits were"
    share = f"{record.n_held} of {record.n} such 80% intervals held"
    return f"checked against this cluster's past: {share}, {record.n_early} {waits} shorter, {record.n_late} longer"


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
    for time in given.run_times:
        counts = ["-", "-"] if time.source == "Given" else [str(time.n_finished), str(time.n_running)]
        priority = "any" if time.priority is None else str(time.priority)
        name = time.local_queue or "(running now)"
        rows.append([name, priority, _SOURCES[time.source], *counts, seconds(time.median_seconds)])
    parts = [f"assumed:\n{_sentences(found)}", table(header, rows, style, right=["PRIORITY", *header[3:]])]
    if given.arrivals:
        rows = [[arrival.local_queue, str(arrival.n_seen), f"{arrival.per_hour:.3g}"] for arrival in given.arrivals]
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
        "unknown": found.unknown or None,
        "nMoments": found.n_moments,
        "record": None
        if found.record is None
        else {
            "n": found.record.n,
            "nHeld": found.record.n_held,
            "nEarly": found.record.n_early,
            "nLate": found.record.n_late,
        },
        "workloads": [_workload(found, forecast, percentages) for forecast in found.forecasts],
        "assumptions": {
            "holdingQuota": given.n_running,
            "pending": given.n_pending,
            "jobsOfScenario": given.n_work,
            "arrivalWindowSeconds": given.window_seconds,
            "arrivals": [
                {"localQueue": arrival.local_queue, "seen": arrival.n_seen, "perHour": arrival.per_hour}
                for arrival in given.arrivals
            ],
            "runTimes": [
                {
                    "localQueue": time.local_queue or None,
                    "priority": time.priority,
                    "source": time.source,
                    "finished": time.n_finished,
                    "running": time.n_running,
                    "medianSeconds": time.median_seconds,
                }
                for time in given.run_times
            ],
            "warnings": [*given.warnings],
        },
    }
    return json.dumps(document, indent=2) + "\n"


def _workload(found: Eta, forecast: Forecast, percentages: Sequence[float]) -> JsonValue:
    namespace, _, name = forecast.workload.partition("/")
    shares = [percentage / 100 for percentage in percentages] if forecast.seconds else []
    return {
        "namespace": namespace,
        "name": name,
        "job": forecast.job or None,
        "status": forecast.status.value,
        "since": None if forecast.since is None else format_time(forecast.since),
        "quantiles": _quantiles(percentages, map(forecast.quantile, shares), found),
        "futures": _quantiles(percentages, (quantile(forecast.seconds, share) for share in shares), found),
        "isCalibrated": forecast.calibration is not None,
        "shareNotAdmitted": forecast.share_not_admitted if forecast.seconds else None,
        "never": forecast.never or None,
        "bounds": bounds_value(forecast.bounds, found.now),
        "draws": [None if isinf(second) else second for second in forecast.seconds],
    }


def _quantiles(percentages: Sequence[float], times: Iterable[float], found: Eta) -> list[JsonValue]:
    return [
        {
            "percent": percentage,
            "seconds": None if isinf(after) else after,
            "time": None if isinf(after) else _at(after, found),
        }
        for percentage, after in zip(percentages, times, strict=False)
    ]
