"""Alibaba's GPU traces of 2020 (PAI) and 2023 (openb).

https://github.com/alibaba/clusterdata
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kueuecore.traces.csv_columns import CsvColumns, Kind, read_csv
from kueuecore.traces.text_column import TextColumn
from kueuecore.traces.trace import Trace, made_trace

__all__ = ["OPENB_COLUMNS", "read_openb", "read_pai"]

OPENB_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
"""The start of the first line of a pod list."""

_TASK_NAMES = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)
_TASK_KINDS = {
    "job_name": Kind.TEXT,
    "task_name": Kind.TEXT,
    "inst_num": Kind.NUMBER,
    "status": Kind.TEXT,
    "start_time": Kind.NUMBER,
    "end_time": Kind.NUMBER,
    "plan_cpu": Kind.NUMBER,
    "plan_mem": Kind.NUMBER,
    "plan_gpu": Kind.NUMBER,
    "gpu_type": Kind.TEXT,
}
_JOB_NAMES = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
_JOB_KINDS = {"job_name": Kind.TEXT, "user": Kind.TEXT, "start_time": Kind.NUMBER}
_POD_KINDS = {
    "cpu_milli": Kind.NUMBER,
    "memory_mib": Kind.NUMBER,
    "num_gpu": Kind.NUMBER,
    "gpu_milli": Kind.NUMBER,
    "gpu_spec": Kind.TEXT,
    "qos": Kind.TEXT,
    "pod_phase": Kind.TEXT,
    "creation_time": Kind.NUMBER,
    "deletion_time": Kind.NUMBER,
    "scheduled_time": Kind.NUMBER,
}
_RUNNING, _FAILED = "Running", "Failed"
_UNSUCCESSFUL = (_RUNNING, "Waiting", _FAILED)
_GIB = 2**30
_MIB = 2**20
_PERCENT_MILLI = 10


def read_pai(data: bytes, file: str, *, jobs: bytes | None = None, jobs_file: str = "") -> Trace:
    """Read `pai_task_table.csv` of 2020, which has no header, and its `pai_job_table.csv`.

    Each task becomes a job with a pod per instance, because the tasks of a job have different requests. Tasks that
    ended in any other status than Terminated end as failed.

    Args:
        data: The task table, decompressed.
        file: Its name, for errors.
        jobs: The job table, if available, which has submission times and users. Without it, a task is submitted when it
            started, and users are unknown.
        jobs_file: Its name, for errors.

    Raises:
        ManifestError: Lines are broken.
    """
    tasks = read_csv(data, file, _TASK_KINDS, names=_TASK_NAMES)
    start, end = tasks.numbers["start_time"], tasks.numbers["end_time"]
    submitted, user = start, TextColumn(np.zeros(len(start), np.int64), ("",))
    if jobs is not None:
        submitted, user = _of_jobs(tasks, read_csv(jobs, jobs_file, _JOB_KINDS, names=_JOB_NAMES))
    runs_on = tasks.texts["status"].is_one_of([_RUNNING]) & np.isnan(end)
    return made_trace(
        at=submitted,
        run_seconds=np.where(runs_on, np.inf, end - start),
        pods=tasks.numbers["inst_num"],
        requests={
            "cpu": tasks.numbers["plan_cpu"] * _PERCENT_MILLI,
            "memory": tasks.numbers["plan_mem"] * _GIB,
            "gpu": tasks.numbers["plan_gpu"] * _PERCENT_MILLI,
        },
        drop=[("never started", np.isnan(start)), ("no end, and not running", np.isnan(end) & ~runs_on)],
        ends_failed=tasks.texts["status"].is_one_of(_UNSUCCESSFUL),
        fields={
            "user": user,
            "task": tasks.texts["task_name"],
            "gpuType": tasks.texts["gpu_type"],
            "status": tasks.texts["status"],
        },
        wait_seconds=start - submitted,
        lines=tasks.lines,
        file=file,
    )


def _of_jobs(tasks: CsvColumns, jobs: CsvColumns) -> tuple[npt.NDArray[np.float64], TextColumn]:
    """Return when the job of each task was submitted, and its user; for tasks without a job, when they started."""
    job_names, of_task = jobs.texts["job_name"], tasks.texts["job_name"]
    # If a job occurs twice, the first line counts.
    found, first = np.unique(job_names.codes, return_index=True)
    row_of = {job_names.names[code]: row for code, row in zip(found.tolist(), first.tolist(), strict=True)}
    rows = np.array([row_of.get(name, -1) for name in of_task.names], np.int64)[of_task.codes]
    times = np.append(jobs.numbers["start_time"], np.nan)[rows]
    users = jobs.texts["user"]
    names = users.names if "" in users.names else (*users.names, "")
    known = TextColumn(np.append(users.codes, names.index(""))[rows], names)
    unknown = np.isnan(times)
    return np.where(unknown, tasks.numbers["start_time"], times), known


def read_openb(data: bytes, file: str) -> Trace:
    """Read a pod list of 2023, `openb_pod_list_*.csv`. Each pod is a job; one in phase Failed ends as failed.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.

    Raises:
        ManifestError: Columns are missing, or lines are broken.

    Example:
        >>> names = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        >>> times = b"creation_time,deletion_time,scheduled_time"
        >>> pod = b"openb-pod-0022,4000,15258,1,220,,BE,Running,9679175,9973826,9679175"
        >>> trace = read_openb(names + times + bytes([10]) + pod, "pods.csv")
        >>> trace.run_seconds.tolist(), trace.requests["gpu"].tolist(), trace.fields["qos"].texts()
        ([294651.0], [220], ['BE'])
    """
    table = read_csv(data, file, _POD_KINDS)
    numbers = table.numbers
    scheduled = numbers["scheduled_time"]
    end = np.where(np.isnan(numbers["deletion_time"]), np.inf, numbers["deletion_time"])
    return made_trace(
        at=numbers["creation_time"],
        run_seconds=end - scheduled,
        pods=np.ones(len(end)),
        requests={
            "cpu": numbers["cpu_milli"],
            "memory": numbers["memory_mib"] * _MIB,
            "gpu": np.nan_to_num(numbers["num_gpu"]) * np.nan_to_num(numbers["gpu_milli"]),
        },
        drop=[("never started", np.isnan(scheduled))],
        ends_failed=table.texts["pod_phase"].is_one_of([_FAILED]),
        fields={
            "qos": table.texts["qos"],
            "gpuSpec": table.texts["gpu_spec"],
            "status": table.texts["pod_phase"],
        },
        wait_seconds=scheduled - numbers["creation_time"],
        lines=table.lines,
        file=file,
    )
