"""The Standard Workload Format of the Parallel Workloads Archive, version 2.2.

https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kueuecore._text import counted, quoted
from kueuecore.errors import ManifestError, Problem
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace
from kueuecore.traces.trace_file import MAX_NUMBER, MAX_PROBLEMS, ROWS_LIMIT, check_text

__all__ = ["read_swf"]

_FIELDS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
_PLACES = {name: place for place, name in enumerate(_FIELDS)}
_STATUSES = {0: "failed", 1: "completed", 2: "partial", 3: "partial", 4: "partial", 5: "cancelled"}
_FAILED, _CANCELLED = 0, 5
_COMMENT = re.compile(rb"^[ \t]*+;[; \t]*+(\w++):(.*)$", re.MULTILINE)
_DATA = re.compile(rb"^[ \t]*[^;\s]", re.MULTILINE)
_NAMED = re.compile(r"(\d+)[ \t:]+(\S+)")
_KILOBYTE = 1024
_MAX_SHOWN = 3
_CPU_MILLI = 1000


def read_swf(data: bytes, file: str) -> Trace:
    r"""Read a log in the Standard Workload Format.

    A job gets a pod with one CPU for each processor that it requested, or if that is unknown, got. Its memory is that
    requested per processor, or if unknown, used. Jobs with status 0 (failed) or 5 (cancelled) end as failed. A first
    line of names and fields after the 18th are left out, with a note.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.

    Raises:
        ManifestError: A line does not begin with 18 numbers, or a number is out of range.

    Example:
        >>> log = b"; MaxProcs: 64\n1 0 10 60 4 -1 -1 4 -1 1024 1 7 2 -1 1 1 -1 -1\n"
        >>> trace = read_swf(log, "log.swf")
        >>> trace.pods.tolist(), trace.requests["memory"].tolist(), trace.fields["user"].texts(), trace.header
        ([4], [1048576], ['7'], {'MaxProcs': '64'})
    """
    check_text(data, file)
    header, queues, partitions = _comments(data)
    notes: list[str] = []
    data = _without_names(data, file, notes)
    table = _numbers(data, file, notes)
    column = {name: table[:, place] for place, name in enumerate(_FIELDS)}
    status, run = column["status"], column["run time"]
    processors = _first_known(column["requested processors"], column["allocated processors"])
    memory = _first_known(column["requested memory"], column["used memory"])
    return made_trace(
        at=column["submit time"],
        run_seconds=run,
        pods=processors,
        requests={
            "cpu": np.full(len(table), _CPU_MILLI),
            "memory": np.where(memory > 0, memory * _KILOBYTE, 0),
        },
        drop=[
            ("part of a job with a line of its own", np.isin(status, (2, 3, 4))),
            ("cancelled before it started", (status == _CANCELLED) & (run <= 0)),
            ("no run time", run == -1),
            ("no number of processors", processors == -1),
        ],
        ends_failed=np.isin(status, (_FAILED, _CANCELLED)),
        fields={
            "user": _texts(column["user"]),
            "group": _texts(column["group"]),
            "executable": _texts(column["executable"]),
            "requestedSeconds": _texts(column["requested time"]),
            "queue": _texts(column["queue"], queues),
            "partition": _texts(column["partition"], partitions),
            "status": _texts(status, _STATUSES),
        },
        header=header,
        wait_seconds=_known(column["wait time"], column["wait time"] >= 0),
        limit_seconds=_known(column["requested time"], column["requested time"] > 0),
        ids=_texts(column["job number"]),
        notes=notes,
        lines=np.fromiter((line for line, _ in _data_lines(data)), np.int64, len(table)),
        file=file,
    )


def _known(numbers: npt.NDArray[np.float64], are_known: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    return np.where(are_known, numbers, np.nan)


def _first_known(wanted: npt.NDArray[np.float64], instead: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(wanted > 0, wanted, instead)


def _comments(data: bytes) -> tuple[dict[str, str], dict[int, str], dict[int, str]]:
    """Read the header, and the names of queues and partitions by number."""
    header: dict[str, str] = {}
    names: dict[str, dict[int, str]] = {"Queue": {}, "Partition": {}}
    for found in _COMMENT.finditer(data):
        key, value = found[1].decode("latin-1"), found[2].lstrip(b" \t").rstrip(b" \t\r").decode("latin-1")
        named = _NAMED.match(value) if key in names else None
        if named:
            names[key][int(named[1][:9])] = named[2]
        else:
            header.setdefault(key, value)
    return header, names["Queue"], names["Partition"]


def _texts(numbers: npt.NDArray[np.float64], names: Mapping[int, str] | None = None) -> TextColumn:
    """Turn numbers into strings, by their names if they have any; -1 is unknown."""
    unique, codes = np.unique(numbers, return_inverse=True)
    texts = ["" if entry < 0 else (names or {}).get(int(entry), f"{entry:.0f}") for entry in unique.tolist()]
    return TextColumn(codes.astype(np.int64), tuple(map(str, unique.tolist()))).renamed(texts)


def _without_names(data: bytes, file: str, notes: list[str]) -> bytes:
    """Turn a first line without any number, which names the columns, into a comment."""
    first = _DATA.search(data)
    if first is None:
        return data
    begin = first.end() - 1
    line = data[begin:].partition(b"\n")[0].partition(b";")[0].decode("latin-1").strip()
    if any(map(_is_number, line.split())):
        return data
    number = data.count(b"\n", 0, begin) + 1
    notes.append(str(Problem(f"left out, as it has no numbers: {quoted(line)}", file=file, line=number)))
    return data[:begin] + b";" + data[begin + 1 :]


def _numbers(data: bytes, file: str, notes: list[str]) -> npt.NDArray[np.float64]:
    """Read the table of 18 columns."""
    if not _DATA.search(data):
        return np.zeros((0, len(_FIELDS)))
    table = _loaded(data)
    if table is None or table.shape[1] != len(_FIELDS):
        table = _loaded(data, columns=range(len(_FIELDS)))
        notes += _surplus(data, file) if table is not None else ()
    if table is None or not (np.abs(table) <= MAX_NUMBER).all():
        raise ManifestError(_broken_lines(data, file))
    if len(table) > ROWS_LIMIT:
        raise ManifestError.of(f"it has more than {ROWS_LIMIT} jobs", remedy="split it into several traces", file=file)
    return table


def _loaded(data: bytes, *, columns: Sequence[int] | None = None) -> npt.NDArray[np.float64] | None:
    """Read these columns, or all; None: some line does not have them, or has more, or something else than a number."""
    try:
        return np.loadtxt(io.BytesIO(data), comments=";", usecols=columns, ndmin=2, encoding="latin-1")
    except ValueError:
        return None


def _surplus(data: bytes, file: str) -> Iterator[str]:
    """Say which lines have more fields than the format."""
    longer = [(number, cells) for number, line in _data_lines(data) if len(cells := line.split()) > len(_FIELDS)]
    if longer:
        number, cells = longer[0]
        more = ", ".join(quoted(cell.decode("latin-1")) for cell in cells[len(_FIELDS) :][:_MAX_SHOWN])
        message = f"the fields after the {len(_FIELDS)} of the format are not read{_how_often(len(longer))}: {more}"
        yield str(Problem(message, file=file, line=number))


def _data_lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(data.split(b"\n"), 1):
        content = line.partition(b";")[0].strip()
        if content:
            yield number, content


def _broken_lines(data: bytes, file: str) -> list[Problem]:
    """Report each kind of mistake once, at the first line that has it."""
    found: dict[tuple[int, str], tuple[str, list[int]]] = {}
    for number, content in _data_lines(data):
        cells = content.split()
        if len(cells) < len(_FIELDS):
            kind, message = (len(cells), ""), f"{counted(len(cells), 'field')} instead of {len(_FIELDS)}"
        else:
            wrong = next((entry for entry in zip(_FIELDS, cells, strict=False) if not _is_number(entry[1])), None)
            if wrong is None:
                continue
            kind, message = (0, wrong[0]), f"not a number up to 1e30: {quoted(wrong[1].decode('latin-1'))}"
        if kind in found or len(found) < MAX_PROBLEMS:
            found.setdefault(kind, (message, []))[1].append(number)
    remedy = "write 18 numbers separated by spaces, -1 for unknown"
    problems = [
        Problem(f"{message}{_how_often(len(lines))}", field=name, file=file, line=lines[0], remedy=remedy)
        for (_, name), (message, lines) in found.items()
    ]
    return problems or [Problem("it cannot be read as numbers", file=file, remedy="check that it is a log in SWF")]


def _how_often(n_lines: int) -> str:
    return f", on {n_lines} lines" if n_lines > 1 else ""


def _is_number(cell: bytes | str) -> bool:
    try:
        return abs(float(cell)) <= MAX_NUMBER
    except ValueError:
        return False
