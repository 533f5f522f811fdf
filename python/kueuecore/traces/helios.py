"""SenseTime's Helios traces: the files `cluster_log.csv`.

https://github.com/S-Lab-System-Group/HeliosData
"""

from __future__ import annotations

import numpy as np

from kueuecore.traces.csv_columns import Kind, read_csv
from kueuecore.traces.node_shares import pods_of_nodes
from kueuecore.traces.trace import Trace, made_trace

__all__ = ["HELIOS_COLUMNS", "read_helios"]

HELIOS_COLUMNS = ("job_id", "user", "vc", "gpu_num", "cpu_num", "node_num", "state")
"""The start of the first line."""

_KINDS = {
    "user": Kind.TEXT,
    "vc": Kind.TEXT,
    "gpu_num": Kind.NUMBER,
    "cpu_num": Kind.NUMBER,
    "node_num": Kind.NUMBER,
    "state": Kind.TEXT,
    "submit_time": Kind.DATE,
    "start_time": Kind.DATE,
    "duration": Kind.NUMBER,
}
_FAILED = ("FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
_MILLI = 1000


def read_helios(data: bytes, file: str) -> Trace:
    """Read `cluster_log.csv`.

    A job gets a pod on each of its nodes, with an equal share of GPUs and CPUs; if the GPUs cannot be divided equally,
    a pod for each GPU. The trace has no memory. Jobs that are FAILED, CANCELLED, TIMEOUT or NODE_FAIL end as failed.

    Args:
        data: The file, decompressed.
        file: Its name, for errors.

    Raises:
        ManifestError: Columns are missing, or lines are broken.
    """
    table = read_csv(data, file, _KINDS)
    gpus, cpus, nodes = (np.nan_to_num(table.numbers[name]) for name in ("gpu_num", "cpu_num", "node_num"))
    pods = pods_of_nodes(nodes, gpus)
    each = np.maximum(pods, 1)
    return made_trace(
        at=table.numbers["submit_time"],
        run_seconds=table.numbers["duration"],
        pods=pods,
        requests={"cpu": cpus * _MILLI / each, "gpu": gpus * _MILLI / each},
        drop=[("never started", np.isnan(table.numbers["start_time"])), ("no nodes", nodes == 0)],
        ends_failed=table.texts["state"].is_one_of(_FAILED),
        fields={
            "user": table.texts["user"],
            "virtualCluster": table.texts["vc"],
            "status": table.texts["state"],
        },
        wait_seconds=table.numbers["start_time"] - table.numbers["submit_time"],
        lines=table.lines,
        file=file,
    )
