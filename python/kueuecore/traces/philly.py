"""Microsoft's Philly trace: the file `cluster_job_log`, JSON.

https://github.com/msr-fiddle/philly-traces
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kueuecore._json import JsonObject, JsonValue, list_at, object_at
from kueuecore._text import quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.traces.csv_columns import date_seconds
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace
from kueuecore.traces.trace_file import MAX_PROBLEMS, ROWS_LIMIT, check_text

__all__ = ["read_philly"]

_GPU_MILLI = 1000
_FAILED = ("Failed", "Killed")
_DATE_REMEDY = 'write it as "2017-10-07 01:12:09", or null'


def read_philly(data: bytes, file: str) -> Trace:
    """Read `cluster_job_log`.

    A job gets a pod for each server of its first attempt that names servers, with the GPUs it had there; if the
    servers differ in GPUs, a pod for each GPU. It runs as long as all its attempts together. The trace has no CPU or
    memory use. Jobs with status Failed or Killed end as failed.

    Times are US Pacific time without a zone and are used as they are: jobs that ran across the end of daylight saving
    time in November 2017 appear an hour shorter.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.

    Raises:
        ManifestError: It is not JSON, or an entry has another format.
    """
    check_text(data, file)
    jobs = _Jobs(file)
    for index, entry in enumerate(_entries(data, file)):
        jobs.add(f"[{index}]", entry)
        if len(jobs.problems) >= MAX_PROBLEMS:
            break
    if jobs.problems:
        raise ManifestError(jobs.problems[:MAX_PROBLEMS])
    submitted = jobs.dates([f"[{index}].submitted_time" for index in range(len(jobs.submitted))], jobs.submitted)
    run, first = _run_seconds(jobs, len(submitted))
    pods, gpus = np.array(jobs.pods, np.float64), np.array(jobs.gpus, np.float64)
    never = np.array(jobs.n_attempts, np.int64) == 0
    fields = {name: TextColumn.of(texts) for name, texts in jobs.texts.items()}
    return made_trace(
        at=submitted,
        run_seconds=run,
        pods=pods,
        requests={"gpu": gpus * _GPU_MILLI},
        drop=[("never started", never), ("no attempt with a start and an end", np.isnan(run)), ("no GPUs", pods == 0)],
        ends_failed=fields["status"].is_one_of(_FAILED),
        fields=fields,
        wait_seconds=first - submitted,
        file=file,
    )


def _entries(data: bytes, file: str) -> list[JsonValue]:
    try:
        found: JsonValue = json.loads(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ManifestError.of(f"not JSON: {error}", remedy="check the format", file=file) from None
    except json.JSONDecodeError as error:
        remedy = "fetch or copy it again"
        problem = Problem(f"not JSON: {error.msg}", file=file, line=error.lineno, column=error.colno, remedy=remedy)
        raise ManifestError([problem]) from None
    if not isinstance(found, list):
        raise ManifestError.of("must be a list of jobs", remedy="name the file cluster_job_log", file=file)
    if len(found) > ROWS_LIMIT:
        raise ManifestError.of(f"it has more than {ROWS_LIMIT} jobs", remedy="split it into several", file=file)
    return found


@dataclass(slots=True)
class _Jobs:
    """The entries as columns."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)
    n_attempts: list[int] = field(default_factory=list)
    pods: list[int] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    texts: Mapping[str, list[str]] = field(default_factory=lambda: {"user": [], "virtualCluster": [], "status": []})
    # For all attempts of all jobs.
    job_of: list[int] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    is_last: list[bool] = field(default_factory=list)

    def add(self, place: str, entry: JsonValue) -> None:
        """Add a job."""
        if not isinstance(entry, dict):
            self._complain(place, "must be a job, `{...}`", "remove this entry")
            return
        self.submitted.append(self._text(entry, place, "submitted_time"))
        for name, key in (("user", "user"), ("virtualCluster", "vc"), ("status", "status")):
            self.texts[name].append(self._text(entry, place, key))
        attempts = list(self._objects(entry, place, "attempts"))
        self.n_attempts.append(len(attempts))
        for number, (path, attempt) in enumerate(attempts):
            self.job_of.append(len(self.submitted) - 1)
            self.places.append(path)
            self.starts.append(self._text(attempt, path, "start_time"))
            self.ends.append(self._text(attempt, path, "end_time"))
            self.is_last.append(number == len(attempts) - 1)
        pods, gpus = self._pods(attempts)
        self.pods.append(pods)
        self.gpus.append(gpus)

    def dates(self, paths: Iterable[str], texts: list[str]) -> npt.NDArray[np.float64]:
        """Parse dates, NaN where unknown.

        Raises:
            ManifestError: A string is not a date.
        """
        try:
            return date_seconds(texts)
        except ValueError:
            for path, text in zip(paths, texts, strict=True):
                try:
                    date_seconds([text])
                except ValueError:
                    self._complain(path, f"not a date: {quoted(text)}", _DATE_REMEDY)
            raise ManifestError(self.problems[:MAX_PROBLEMS]) from None

    def _pods(self, attempts: list[tuple[str, JsonObject]]) -> tuple[int, int]:
        """Return the number of pods, and the GPUs of each."""
        for path, attempt in attempts:
            servers = [len(list_at(server, "gpus")) for _, server in self._objects(attempt, path, "detail")]
            servers = [n_gpus for n_gpus in servers if n_gpus]
            if servers:
                return (len(servers), servers[0]) if len(set(servers)) == 1 else (sum(servers), 1)
        return 0, 0

    def _text(self, entry: JsonObject, place: str, key: str) -> str:
        value = entry.get(key)
        if value is not None and not isinstance(value, str):
            self._complain(f"{place}.{key}", "must be a string", "put it in quotes")
        return value if isinstance(value, str) else ""

    def _objects(self, entry: JsonObject, place: str, key: str) -> Iterator[tuple[str, JsonObject]]:
        value = entry.get(key)
        if value is not None and not isinstance(value, list):
            self._complain(f"{place}.{key}", "must be a list", "write [] if there is none")
        for index, json_value in enumerate(list_at(entry, key)):
            if not isinstance(json_value, dict):
                self._complain(f"{place}.{key}[{index}]", "must be a mapping", "write {...}")
            yield f"{place}.{key}[{index}]", object_at(json_value)

    def _complain(self, path: str, message: str, remedy: str) -> None:
        self.problems.append(Problem(message, field=path, file=self.file, remedy=remedy))


def _run_seconds(jobs: _Jobs, n: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return how long all attempts of each job took, and when the first of them started, NaN if none has both times.

    Infinite: the last had not ended.
    """
    starts = jobs.dates([f"{place}.start_time" for place in jobs.places], jobs.starts)
    ends = jobs.dates([f"{place}.end_time" for place in jobs.places], jobs.ends)
    job_of = np.array(jobs.job_of, np.int64)
    runs_on = np.array(jobs.is_last, np.bool_) & ~np.isnan(starts) & np.isnan(ends)
    spans = np.where(runs_on, np.inf, ends - starts)
    known = ~np.isnan(spans)
    run = np.bincount(job_of[known], weights=spans[known], minlength=n)
    first = np.full(n, np.inf)
    np.minimum.at(first, job_of[known], starts[known])
    return np.where(np.bincount(job_of[known], minlength=n) > 0, run, np.nan), np.where(first < np.inf, first, np.nan)
