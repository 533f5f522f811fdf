"""Slurm's accounting: what `sacct -P` writes.

https://slurm.schedmd.com/sacct.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kueuecore._text import quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.traces.csv_columns import CsvColumns, Kind, delimiter_of, read_csv
from kueuecore.traces.endings import first_words, has_failed
from kueuecore.traces.node_shares import pods_of_nodes
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace
from kueuecore.traces.trace_file import MAX_PROBLEMS

__all__ = ["check_has_delimiters", "is_sacct", "read_sacct"]

_COMMAND = (
    "write it with `sacct -a -P -o JobID,Submit,Start,End,Elapsed,State,ReqTRES,AllocTRES,User,Account,Partition,QOS`"
)
_IDS = ("JobID", "JobIDRaw")
_TIMES = ("Submit", "Start", "End")
_FIELDS = {
    "User": "user",
    "Group": "group",
    "Account": "account",
    "Partition": "partition",
    "QOS": "qos",
    "JobName": "name",
    "Cluster": "cluster",
    "Reservation": "reservation",
}
_TRES = ("ReqTRES", "AllocTRES")
_CPUS = ("ReqCPUS", "AllocCPUS", "NCPUS")
_NODES = ("ReqNodes", "AllocNodes", "NNodes")
_LIMITS = ("TimelimitRaw", "Timelimit")
_UNLIMITED = frozenset(("UNLIMITED", "Partition_Limit"))
_TEXTS = (*_IDS, *_LIMITS, "Elapsed", "ElapsedRaw", "State", *_TRES, *_CPUS, *_NODES, "ReqMem", *_FIELDS)
# Columns by which a table with job numbers is Slurm's.
_OTHERS = frozenset(("Submit", "Elapsed", "State", "AllocCPUS", "AllocTRES", "ReqTRES"))
_RUNNING = ("RUNNING", "SUSPENDED")
_DURATION = re.compile(r"(?:(?:(\d{1,9})-)?(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d+)?)")
_AMOUNT = re.compile(r"(\d{1,18}(?:\.\d+)?)([KMGTPE]?)[Bcn]?")
_PREFIXES = ("", "K", "M", "G", "T", "P", "E")
_MEBIBYTE = 2**20
_MILLI = 1000
_GPU = "gres/gpu"


def is_sacct(header: Sequence[str]) -> bool:
    """Whether a table with these columns is from `sacct`.

    Example:
        >>> is_sacct(["JobID", "JobName", "State"]), is_sacct(["at", "run_seconds", "State"])
        (True, False)
    """
    return not {*_IDS}.isdisjoint(header) and not _OTHERS.isdisjoint(header) and "at" not in header


def check_has_delimiters(beginning: bytes, file: str) -> None:
    """Refuse what `sacct` prints without `-P`: columns of a fixed width, which cut names and numbers off.

    Raises:
        ManifestError: It is such a table.
    """
    first, _, rest = beginning.partition(b"\n")
    second = rest.partition(b"\n")[0].strip()
    if any(first.split()[:1] == [id_.encode()] for id_ in _IDS) and second and not second.strip(b"- "):
        raise ManifestError.of("its columns have a fixed width, which cuts cells off", remedy=_COMMAND, file=file)


def read_sacct(data: bytes, file: str) -> Trace:
    r"""Read what `sacct -P` writes, with any delimiter.

    A job gets a pod on each of its nodes, with an equal share of the CPUs, memory and GPUs of ReqTRES, or where that is
    empty, AllocTRES; if GPUs cannot be divided equally, a pod for each GPU. It runs for Elapsed, and forever if it had
    not ended. The lines of its steps belong to the job and are no jobs themselves.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.

    Raises:
        ManifestError: Columns are missing, or lines are broken.

    Example:
        >>> head = "JobID|Submit|Start|End|Elapsed|State|ReqTRES\n"
        >>> times = "2026-03-01T08:00:00|2026-03-01T08:00:05|2026-03-02T09:00:05|1-01:00:00"
        >>> job = f"7|{times}|COMPLETED|cpu=8,gres/gpu=4,mem=64G,node=2\n7.batch|{times}|COMPLETED|\n"
        >>> trace = read_sacct((head + job).encode(), "jobs.txt")
        >>> trace.pods.tolist(), trace.run_seconds.tolist(), trace.requests["gpu"].tolist()
        ([2], [90000.0], [2000])
    """
    table = read_csv(data, file, lambda header: _kinds(header, file), delimiter=delimiter_of(data), has_quotes=False)
    is_job, only_steps = _jobs(table.texts[next(id_ for id_ in _IDS if id_ in table.texts)])
    rows = np.flatnonzero(is_job | only_steps)
    jobs = CsvColumns(
        {name: column[rows] for name, column in table.numbers.items()},
        {name: column.rows(rows) for name, column in table.texts.items()},
        table.lines[rows],
    )
    read = _Reader(jobs, file)
    start, run = read.times("Start"), read.run_seconds()
    nodes, cpus, memory, gpus = read.nodes(), read.cpus(), read.memory(), read.gpus()
    pods = pods_of_nodes(nodes, gpus)
    each = np.maximum(pods, 1)
    status = first_words(read.texts("State"))
    submit = read.times("Submit")
    return made_trace(
        at=submit,
        run_seconds=run,
        pods=pods,
        requests={"cpu": cpus * _MILLI / each, "memory": memory / each, "gpu": gpus * _MILLI / each},
        drop=[
            ("only its steps are in the file", only_steps[rows]),
            ("never started", np.isnan(start) if "Start" in jobs.numbers else np.zeros(len(rows), np.bool_)),
            ("cancelled before it started", status.is_one_of(["CANCELLED"]) & (run <= 0)),
        ],
        ends_failed=has_failed(status),
        fields={
            **{name: jobs.texts[column] for column, name in _FIELDS.items() if column in jobs.texts},
            "status": status,
            "gpuType": read.gpu_types(),
        },
        wait_seconds=start - submit,
        limit_seconds=read.limit_seconds(),
        ids=read.ids(),
        lines=jobs.lines,
        file=file,
    )


def _kinds(header: Sequence[str], file: str) -> dict[str, Kind]:
    """Return the types of the columns to read."""
    needed = {"JobID": _IDS, "Submit": ("Submit",), "Elapsed": ("Elapsed", "ElapsedRaw", "End")}
    problems = [
        Problem(f"column {quoted(name)} is missing", file=file, line=1, remedy=_COMMAND)
        for name, columns in needed.items()
        if not {*columns} & {*header}
    ]
    if not {*_TRES, *_CPUS} & {*header}:
        message = 'no column says what jobs request: "ReqTRES" or "AllocTRES"'
        problems.append(Problem(message, file=file, line=1, remedy=_COMMAND))
    if problems:
        raise ManifestError(problems)
    return {
        **{time: Kind.TIME for time in _TIMES if time in header},
        **{text: Kind.TEXT for text in _TEXTS if text in header},
    }


def _jobs(numbers: TextColumn) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which rows are jobs, and which are the first step of a job that has no row of its own."""
    jobs = [name.partition(".")[0] for name in numbers.names]
    is_step = np.array([job != name for job, name in zip(jobs, numbers.names, strict=True)], np.bool_)[numbers.codes]
    job_of = numbers.renamed(jobs)
    # The job's own row if there is one, else its first step.
    order = np.lexsort((is_step, job_of.codes))
    _, first = np.unique(job_of.codes[order], return_index=True)
    chosen = np.zeros(len(is_step), np.bool_)
    chosen[order[first]] = True
    return ~is_step, chosen & is_step


class _Reader:
    """Reads the cells of jobs, each distinct text once."""

    def __init__(self, jobs: CsvColumns, file: str) -> None:
        self._jobs, self._file = jobs, file
        self._n = len(jobs.lines)

    def times(self, name: str) -> npt.NDArray[np.float64]:
        return self._jobs.numbers.get(name, np.full(self._n, np.nan))

    def texts(self, name: str) -> TextColumn:
        return self._jobs.texts.get(name, TextColumn(np.zeros(self._n, np.int64), ("",)))

    def run_seconds(self) -> npt.NDArray[np.float64]:
        """Return how long jobs ran: infinite if they had not ended."""
        start, end = self.times("Start"), self.times("End")
        run = self._first(
            self._parsed("Elapsed", _seconds, "a duration", "write it as D-HH:MM:SS"),
            self._parsed("ElapsedRaw", _number, "a number of seconds", "write a number"),
            end - start,
        )
        runs_on = first_words(self.texts("State")).is_one_of(_RUNNING)
        if {"Start", "End"} <= self._jobs.numbers.keys():
            runs_on |= ~np.isnan(start) & np.isnan(end)
        return np.where(runs_on, np.inf, run)

    def limit_seconds(self) -> npt.NDArray[np.float64]:
        """Return the limits of run times that jobs asked for, NaN: none; TimelimitRaw is in minutes."""
        return self._first(
            60 * self._parsed("TimelimitRaw", _limit(_number), "a number of minutes", "write a number"),
            self._parsed("Timelimit", _limit(_seconds), "a duration", "write it as D-HH:MM:SS"),
        )

    def ids(self) -> TextColumn:
        """Return the numbers of jobs."""
        return self.texts(next(name for name in _IDS if name in self._jobs.texts))

    def nodes(self) -> npt.NDArray[np.float64]:
        return self._first(*self._tres("node"), *map(self._amounts, _NODES), np.ones(self._n))

    def cpus(self) -> npt.NDArray[np.float64]:
        return np.nan_to_num(self._first(*self._tres("cpu"), *map(self._amounts, _CPUS)))

    def memory(self) -> npt.NDArray[np.float64]:
        """Return the bytes of each job; an amount without a unit is in MiB."""
        asked = self.texts("ReqMem")
        per = {"c": self.cpus(), "n": np.maximum(self.nodes(), 1)}
        share = np.ones(self._n)
        for suffix, factor in per.items():
            share = np.where(np.array([name.endswith(suffix) for name in asked.names])[asked.codes], factor, share)
        return np.nan_to_num(self._first(*self._tres("mem"), self._amounts("ReqMem", _bytes) * share))

    def gpus(self) -> npt.NDArray[np.float64]:
        return np.nan_to_num(self._first(*self._tres(_GPU)))

    def gpu_types(self) -> TextColumn:
        """Return the type of GPU that a job requested or got; empty if it says none."""
        types = [self._type_of(name) for name in _TRES]
        return TextColumn.of([a or b for a, b in zip(*(type_.texts() for type_ in types), strict=True)])

    def _type_of(self, name: str) -> TextColumn:
        column = self.texts(name)
        found = [
            sorted(key.partition(":")[2] for key in _pairs(name) if key.startswith(f"{_GPU}:")) for name in column.names
        ]
        return column.renamed([",".join(types) for types in found])

    def _tres(self, key: str) -> list[npt.NDArray[np.float64]]:
        """Return an amount of ReqTRES and of AllocTRES, NaN where it is absent."""
        what, remedy = "amounts such as cpu=4,mem=16G,node=1", "correct it, or leave it empty"
        return [self._parsed(name, lambda text: _tres(text, key), what, remedy) for name in _TRES]

    def _amounts(self, name: str, parse: Callable[[str], float] | None = None) -> npt.NDArray[np.float64]:
        return self._parsed(name, parse or _number, "an amount", "write a number such as 4 or 16G, or leave it empty")

    def _parsed(self, name: str, parse: Callable[[str], float], what: str, remedy: str) -> npt.NDArray[np.float64]:
        """Return the numbers of a column, NaN where it is empty.

        Raises:
            ManifestError: A cell is something else.
        """
        column, values, problems = self.texts(name), [], []
        for code, text in enumerate(column.names):
            try:
                values.append(parse(text) if text else np.nan)
            except ValueError:
                line = int(self._jobs.lines[int(np.argmax(column.codes == code))])
                message = f"not {what}: {quoted(text)}"
                problems.append(Problem(message, field=name, file=self._file, line=line, remedy=remedy))
        if problems:
            raise ManifestError(problems[:MAX_PROBLEMS])
        return np.array(values, np.float64)[column.codes]

    def _first(self, *columns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the first known number of each row."""
        found = columns[0]
        for column in columns[1:]:
            found = np.where(np.isnan(found), column, found)
        return found


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(text)
    days, hours, minutes, seconds = (float(group or 0) for group in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _limit(parse: Callable[[str], float]) -> Callable[[str], float]:
    return lambda text: np.nan if text in _UNLIMITED else parse(text)


def _number(text: str) -> float:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * 1024.0 ** _PREFIXES.index(found[2])


def _bytes(text: str) -> float:
    """Return an amount of memory, which is in MiB without a unit."""
    found = _AMOUNT.fullmatch(text)
    return _number(text) * (1 if found is None or found[2] else _MEBIBYTE)


def _tres(text: str, key: str) -> float:
    """Return an amount of `cpu=4,gres/gpu:a100=2,mem=16G`, NaN if it is absent; of GPUs the sum of all types."""
    pairs = _pairs(text)
    parse = _bytes if key == "mem" else _number
    if key in pairs:
        return parse(pairs[key])
    typed = [parse(amount) for name, amount in pairs.items() if name.startswith(f"{key}:")]
    return sum(typed) if typed else np.nan


def _pairs(text: str) -> Mapping[str, str]:
    found = {}
    for pair in filter(None, text.split(",")):
        name, equals, amount = pair.partition("=")
        if not equals:
            raise ValueError(text)
        found[name] = amount
    return found
