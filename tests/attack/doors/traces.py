"""Traces of clusters, and the rules that map them to queues: files of each format with a few bytes wrong."""

from __future__ import annotations

import gzip
import io
import tempfile
from pathlib import Path
from random import Random

import pyarrow as arrow
from pyarrow import parquet

from kueuecore import simulate
from kueuecore.traces import read_rules, read_trace
from tests.attack.case import Case, Wrong
from tests.attack.documents import ROOT

__all__ = ["draw"]

_EXAMPLES = ROOT / "traces"
_FILES = {
    "cluster.swf": ("swf", "rules-swf.yaml"),
    "cluster_job_log": ("philly", "rules.yaml"),
    "cluster_log.csv": ("helios", "rules.yaml"),
    "pai_task_table.csv": ("alibaba2020", "rules-alibaba.yaml"),
    "openb_pod_list_made_up.csv": ("alibaba2023", "rules-alibaba.yaml"),
    "accounting.csv": ("csv", "rules-accounting.yaml"),
    "sacct.txt": ("sacct", "rules-sacct.yaml"),
    "accounting.parquet": ("parquet", "rules-accounting.yaml"),
}
_PIECES = (
    *(b"-1", b"0", b"nan", b"inf", b"1e308", b"99999999999999999999", b"1e18", b"null", b"true"),
    *(b",", b"\n", b"\r", b" ", b'"', b"{", b"}", b"[", b"]", b";", b"*", b"/", b"\0", b"\xff", b"\x1f\x8b"),
    *(b"2020-06-09T18:41+00", b"0001-01-01 00:00:00", b"9999-12-31 23:59:59", b"{user}", b"\xc3\x9cnits"),
)


def draw(rng: Random) -> Case:
    """A trace and rules, of which one is damaged, or both; a right answer has all jobs, and they run."""
    name = rng.choice(list(_FILES))
    trace_format, rules_name = _FILES[name]
    trace = _parquet() if trace_format == "parquet" else (_EXAMPLES / name).read_bytes()
    rules = (_EXAMPLES / rules_name).read_bytes()
    which = rng.choice(["trace", "trace", "rules", "both"])
    trace = trace if which == "rules" else _damaged(rng, trace)
    rules = rules if which == "trace" else _damaged(rng, rules)
    if rng.random() < 0.1:
        trace = gzip.compress(trace)[: rng.choice([None, -5])]

    def act() -> None:
        with tempfile.TemporaryDirectory() as folder:
            trace_file, rules_file = Path(folder, name), Path(folder, "rules.yaml")
            trace_file.write_bytes(trace)
            rules_file.write_bytes(rules)
            read = read_rules(rules_file)
            jobs = read_trace(trace_file, trace_format=trace_format, columns=read.columns)
            batches = jobs.submissions(read)
            # There are no queues, so the jobs only have to come.
            run = simulate((), submissions=batches, now=0)
            if read.scale.sample == 1 and len(run.outcome_table) != len(jobs):
                raise Wrong(f"{len(run.outcome_table)} of {len(jobs)} jobs came")

    return Case(f"{name}, {which} damaged", act, size=len(trace) + len(rules))


def _damaged(rng: Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        place = rng.randrange(len(damaged) + 1)
        match rng.randrange(5):
            case 0 | 1:
                damaged[place : place + rng.randint(0, 8)] = rng.choice(_PIECES)
            case 2:
                damaged[place : place + 1] = bytes([rng.randrange(256)])
            case 3:
                del damaged[place : place + rng.randint(1, 80)]
            case 4:
                end = place + rng.randint(1, 80)
                damaged[place:place] = damaged[place:end]
    return bytes(damaged)


def _parquet() -> bytes:
    """The table of one's own as Parquet."""
    lines = (_EXAMPLES / "accounting.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    columns = dict(zip(lines[0].split(","), map(list, zip(*rows, strict=True)), strict=True))
    numbers = {name: [int(cell) for cell in columns[name]] for name in ("CPUs", "Nodes")}
    written = io.BytesIO()
    parquet.write_table(arrow.table({**columns, **numbers}), written)
    return written.getvalue()
