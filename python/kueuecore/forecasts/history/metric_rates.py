"""Turns Kueue's metrics into what happened to each ClusterQueue, hour by hour."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from math import ceil, isnan
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonValue
from kueuecore._text import quoted
from kueuecore.controller.metric_families import full_name
from kueuecore.errors import ManifestError
from kueuecore.forecasts.history.metric_answers import Series, SeriesTable, take_answer
from kueuecore.forecasts.history.queue_rates import QueueRates, RateWindow, SpanHistogram
from kueuecore.forecasts.history.taken import Taken
from kueuecore.times import SECOND_NS

__all__ = ["Ask", "asked_rates", "rates_of"]

Ask: TypeAlias = Callable[[str, int, int, int], JsonValue]
"""Answers a query of a range: the query, its begin and end in nanoseconds since 1970, and the step in seconds."""

_ADMITTED, _RESERVED = full_name("admitted_workloads_total"), full_name("quota_reserved_workloads_total")
_EVICTED, _FINISHED = full_name("evicted_workloads_total"), full_name("finished_workloads_total")
_PENDING, _HOLDING = full_name("pending_workloads"), full_name("reserving_active_workloads")
_WAITS, _RUNS = (full_name(f"{name}_seconds") + "_bucket" for name in ("admission_wait_time", "execution_time"))
_RESERVED_WAITS = full_name("quota_reserved_wait_time_seconds") + "_bucket"
_METRICS = (_ADMITTED, _RESERVED, _EVICTED, _FINISHED, _PENDING, _HOLDING, _WAITS, _RESERVED_WAITS, _RUNS)
# The labels of a process: counters of each begin at zero, and replicas report the same gauges.
_PROCESS = ("cluster", "job", "instance", "pod", "replica_role")
_QUEUE, _BOUND = "cluster_queue", "le"
_HOUR_NS = 3600 * SECOND_NS
_ASKED_DAYS = 28
_STEP_SECONDS = 3600
# More than two years by the hour: one sample with a wrong time must not make millions.
_MOST_WINDOWS = 20_000
_SCRAPED = (
    "check that Prometheus scrapes Kueue's manager (its metrics begin with kueue_), and that the queues have admitted "
    "something since"
)

_Windows: TypeAlias = "defaultdict[str, defaultdict[int, float]]"
"""Amounts by ClusterQueue and number of the window."""
_Buckets: TypeAlias = "dict[str, dict[int, list[SpanHistogram]]]"


def asked_rates(ask: Ask, address: str, *, now: int) -> Taken:
    """Ask a Prometheus for the last four weeks of Kueue's metrics.

    Args:
        ask: Sends a query of a range, and returns the answer.
        address: Its address, for errors.
        now: The present, in nanoseconds since 1970.

    Raises:
        ManifestError: It does not answer, or has no metrics of Kueue.
    """
    end = now // _HOUR_NS * _HOUR_NS
    begin = max(end - _ASKED_DAYS * 24 * _HOUR_NS, 0)
    table = SeriesTable()
    for metric in _METRICS:
        kept = [_QUEUE, *_PROCESS, *([_BOUND] if metric.endswith("_bucket") else [])]
        query = f"sum by ({', '.join(kept)}) ({metric})"
        take_answer(ask(query, begin, end, _STEP_SECONDS), table, file=address, place=metric, name=metric)
    return rates_of(table, address, now=now)


def rates_of(table: SeriesTable, file: str, *, now: int) -> Taken:
    """Return what a table of series knows of each ClusterQueue.

    Admissions are increases of a counter; one that is smaller than before has been reset. Arrivals are reservations
    without those after an eviction, and the change of what waits. Increases are spread over the hours between samples.

    Args:
        table: The series.
        file: Their file or address, for errors.
        now: The present, in nanoseconds since 1970; later samples are left out.

    Raises:
        ManifestError: None of them is of Kueue's ClusterQueues, or a bound of a histogram is no number.
    """
    metrics = _Metrics(table, file, now)
    queues = metrics.queues()
    if not queues:
        found = ", ".join(table.names[:5])
        message = f"no series of Kueue's ClusterQueues{f'; there are {found}' if found else ''}"
        raise ManifestError.of(message, remedy=_SCRAPED, file=file)
    counters = {name: metrics.increases(name) for name in (_ADMITTED, _RESERVED, _EVICTED, _FINISHED)}
    gauges = {name: metrics.levels(name) for name in (_PENDING, _HOLDING)}
    waits = metrics.histograms(_WAITS if metrics.has(_WAITS) else _RESERVED_WAITS)
    runs = metrics.histograms(_RUNS)
    rates = []
    for queue in queues:
        windows = tuple(_windows(queue, metrics, counters, gauges, waits, runs))
        rates.append(
            QueueRates(
                cluster_queue=queue,
                windows=windows,
                waits=SpanHistogram.sum_of(part for parts in waits.get(queue, {}).values() for part in parts),
                runs=SpanHistogram.sum_of(part for parts in runs.get(queue, {}).values() for part in parts),
            )
        )
    left_out = {
        "samples that are no number": table.n_without_value,
        "series without a ClusterQueue": metrics.n_without_queue,
        "samples later than now": metrics.n_later,
    }
    return Taken(file=file, rates=tuple(rates), left_out=left_out, notes=tuple(metrics.notes()))


class _Metrics:
    """The series of Kueue's metrics, on a grid of windows."""

    def __init__(self, table: SeriesTable, file: str, now: int) -> None:
        self._file = file
        self.n_without_queue = self.n_later = 0
        self._of = {name: [*self._until(table.series(name), now)] for name in _METRICS}
        times = [at for series in self._all() for at, _ in series.samples]
        self.first, self.last = min(times, default=0), max(times, default=0)
        steps = Counter(after[0] - before[0] for series in self._all() for before, after in pairwise(series.samples))
        self.step = steps.most_common(1)[0][0] if steps else _HOUR_NS
        hours = max(self.step / _HOUR_NS, (self.last - self.first) / _HOUR_NS / _MOST_WINDOWS, 1)
        self.width = ceil(hours) * _HOUR_NS

    def _until(self, found: Iterable[Series], now: int) -> Iterator[Series]:
        for series in found:
            samples = tuple((at, value) for at, value in series.samples if at <= now)
            self.n_later += len(series.samples) - len(samples)
            if not series.labels.get(_QUEUE):
                self.n_without_queue += 1
            elif samples:
                yield Series(series.name, series.labels, samples)

    def _all(self) -> Iterator[Series]:
        return (series for found in self._of.values() for series in found)

    def has(self, name: str) -> bool:
        """Return whether there are samples of a metric."""
        return bool(self._of[name])

    def queues(self) -> list[str]:
        """Return the ClusterQueues."""
        return sorted({series.labels[_QUEUE] for series in self._all()})

    def edges(self) -> Iterator[tuple[int, int, int]]:
        """Yield number, begin and end of each window."""
        if self.first < self.last:
            for number in range(self.first // self.width, -(-self.last // self.width)):
                yield number, max(number * self.width, self.first), min((number + 1) * self.width, self.last)

    def increases(self, name: str) -> _Windows:
        """Return by how much a counter has increased in each window."""
        found: _Windows = defaultdict(lambda: defaultdict(float))
        for series in self._of[name]:
            self._add_increases(series, found[series.labels[_QUEUE]])
        return found

    def levels(self, name: str) -> dict[str, tuple[list[int], list[float]]]:
        """Return times and values of a gauge: the sum of a process, of the one that reports most."""
        sums: dict[str, dict[int, dict[tuple[str, ...], float]]] = {}
        for series in self._of[name]:
            process = _process(series.labels)
            of_queue = sums.setdefault(series.labels[_QUEUE], {})
            for at, value in series.samples:
                at_once = of_queue.setdefault(at, {})
                at_once[process] = at_once.get(process, 0.0) + value
        return {
            queue: (sorted(by_time), [max(by_time[at].values()) for at in sorted(by_time)])
            for queue, by_time in sums.items()
        }

    def histograms(self, name: str) -> _Buckets:
        """Return what was added to a histogram in each window; if there is one moment only, all of it, in window 0."""
        grown: dict[tuple[str, tuple[str, ...]], dict[float, defaultdict[int, float]]] = {}
        for series in self._of[name]:
            bounds = grown.setdefault((series.labels[_QUEUE], _process(series.labels)), {})
            amounts = bounds.setdefault(self._bound(series), defaultdict(float))
            if self.first < self.last:
                self._add_increases(series, amounts)
            else:
                amounts[0] += series.samples[-1][1]
        found: _Buckets = {}
        for (queue, _), bounds in grown.items():
            ordered = sorted(bounds)
            for number in sorted({number for amounts in bounds.values() for number in amounts}):
                below = [bounds[bound].get(number, 0.0) for bound in ordered]
                counts = [max(after - before, 0.0) for before, after in pairwise([0.0, *below])]
                if any(counts):
                    found.setdefault(queue, {}).setdefault(number, []).append(
                        SpanHistogram(tuple(ordered), tuple(counts))
                    )
        return found

    def notes(self) -> Iterator[str]:
        """Yield what is odd about the series."""
        clusters = {series.labels.get("cluster", "") for series in self._all()}
        if len(clusters) > 1:
            names = ", ".join(map(quoted, sorted(clusters)[:5]))
            yield f"{self._file}: it has series of several clusters ({names}): queues of one name count as one"
        if self.first == self.last:
            yield f"{self._file}: it has one moment only: waits since Kueue started, and no rates; query a range"
            return
        missing = [name for name in (_ADMITTED, _PENDING, _HOLDING) if not self.has(name)]
        if missing:
            yield f"{self._file}: it has no {' and no '.join(missing)}: what needs that stays unknown"

    def _bound(self, series: Series) -> float:
        text = series.labels.get(_BOUND, "")
        try:
            bound = float(text)
        except ValueError:
            bound = np.nan
        if isnan(bound):
            message = f"{series.name} has a bound {quoted(text)}, which is no number"
            raise ManifestError.of(message, field=_BOUND, remedy="keep the label le of its buckets", file=self._file)
        return bound

    def _add_increases(self, series: Series, amounts: defaultdict[int, float]) -> None:
        begin, value = series.samples[0]
        if begin > self.first:
            # Kueue shows a counter from its first event on, so it has come from zero.
            self._spread(max(begin - self.step, self.first), begin, value, amounts)
        for at, later in series.samples[1:]:
            self._spread(begin, at, later - value if later >= value else later, amounts)
            begin, value = at, later

    def _spread(self, begin: int, end: int, amount: float, amounts: defaultdict[int, float]) -> None:
        """Spread an amount evenly over the windows between two moments."""
        if amount <= 0:
            return
        number = begin // self.width
        while begin < end:
            until = min((number + 1) * self.width, end)
            amounts[number] += amount * (until - begin) / (end - begin)
            amount -= amount * (until - begin) / (end - begin)
            begin, number = until, number + 1


def _process(labels: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in _PROCESS)


class _Level:
    """A gauge of one ClusterQueue.

    Args:
        times: Times of its samples, ascending.
        values: Their values.
    """

    def __init__(self, times: list[int], values: list[float]) -> None:
        self._first, self._times = times[0], np.array(times, np.int64)
        self._values = np.array(values)
        self._sums = np.concatenate([[0.0], np.cumsum(self._values)])

    def at(self, moments: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return its values at some moments, on straight lines between its samples."""
        # From the first sample on: a double cannot tell nanoseconds since 1970 apart.
        found: npt.NDArray[np.float64] = np.interp(moments - self._first, self._times - self._first, self._values)
        return found

    def means(self, begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> list[float | None]:
        """Return the mean of the samples within each window; None: there are none."""
        first, last = (np.searchsorted(self._times, edge, side="right") for edge in (begins, ends))
        sums, counts = self._sums[last] - self._sums[first], last - first
        return [total / n if n else None for total, n in zip(sums.tolist(), counts.tolist(), strict=True)]


def _windows(
    queue: str,
    metrics: _Metrics,
    counters: Mapping[str, _Windows],
    gauges: Mapping[str, Mapping[str, tuple[list[int], list[float]]]],
    waits: _Buckets,
    runs: _Buckets,
) -> Iterator[RateWindow]:
    """Yield what happened to a ClusterQueue in each window."""
    edges = [*metrics.edges()]
    begins, ends = (np.array([edge[place] for edge in edges], np.int64) for place in (1, 2))
    levels = {name: _Level(*of[queue]) if queue in of else None for name, of in gauges.items()}
    means = {
        name: [None] * len(edges) if level is None else level.means(begins, ends) for name, level in levels.items()
    }
    pending = levels[_PENDING]
    changes = None if pending is None else (pending.at(ends) - pending.at(begins)).tolist()
    reserved = _RESERVED if metrics.has(_RESERVED) else _ADMITTED

    def count(name: str, number: int) -> float | None:
        return counters[name][queue][number] if metrics.has(name) else None

    for place, (number, begin, end) in enumerate(edges):
        came = count(reserved, number)
        if came is not None and changes is not None:
            came = max(came - (count(_EVICTED, number) or 0.0) + changes[place], 0.0)
        yield RateWindow(
            begin=begin,
            end=end,
            admitted=count(_ADMITTED, number),
            arrivals=None if changes is None else came,
            finished=count(_FINISHED, number),
            mean_pending=means[_PENDING][place],
            mean_running=means[_HOLDING][place],
            waits=SpanHistogram.sum_of(waits.get(queue, {}).get(number, ())),
            runs=SpanHistogram.sum_of(runs.get(queue, {}).get(number, ())),
        )
