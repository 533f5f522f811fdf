"""Measure `kueuecore explain` beside many Workloads: the first question, which lists them, and the next ones.

    live.py [--workloads 50000] [--questions 20]

The API server for tests runs in a process of its own on this machine. Between two questions some workloads change.
Times are those of whole processes; what is spent on listing is the difference between the first and the others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.crds import crds

_KUEUE = "kueue.x-k8s.io/v1beta2"
_N_QUEUES = 200
_N_CHANGED = 20
_TIME = "2026-11-{day:02d}T{hour:02d}:{minute:02d}:00Z"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.workloads)
        return
    command = [sys.executable, __file__, "--serve", "--workloads", str(options.workloads)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
        tempfile.TemporaryDirectory() as cache,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        first = _asked(url, cache)
        print(f"{options.workloads} workloads")
        print(f"first question: {first:.2f} s")
        times = []
        for _ in range(options.questions):
            server.stdin.write("change\n")
            server.stdin.flush()
            server.stdout.readline()
            times.append(_asked(url, cache))
        times.sort()
        p95 = times[min(len(times) - 1, int(0.95 * len(times)))]
        print(f"next {len(times)}: median {median(times):.2f} s, p95 {p95:.2f} s, most {times[-1]:.2f} s")
        file = next(Path(cache).rglob("clusters/*"))
        print(f"cache: {file.stat().st_size / 2**20:.1f} MiB")
        server.stdin.close()


def _asked(url: str, cache: str) -> float:
    command = [sys.executable, "-m", "kueuecore", "explain", "-q", "team-0/w-00200", "--server", url]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "XDG_CACHE_HOME": cache})
    return time.perf_counter() - begin


def _serve(n_workloads: int) -> None:
    """Serve until standard input ends; each line on it changes some workloads."""
    server = HttpApiServer(ApiServer(), clock=time.time_ns)
    server.load([*crds(), *_objects(n_workloads)])
    with server:
        print(server.url, flush=True)
        for number, _ in enumerate(sys.stdin):
            server.call(lambda api, number=number: _change(api, number))  # type: ignore[misc]
            print("changed", flush=True)


def _change(api: ApiServer, number: int) -> None:
    for index in range(_N_CHANGED):
        patch: dict[str, Any] = {"metadata": {"labels": {"changed": str(number)}}}
        api.patch("Workload", f"w-{(number * 7 + index) % 200:05d}", patch, namespace="team-1")


def _objects(n_workloads: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}}
    ]
    n_each = n_workloads // _N_QUEUES
    for number in range(_N_QUEUES):
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(n_each // 3)}]}
        spec = {
            "cohortName": f"cohort-{number % 20}",
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        team = f"team-{number}"
        found += [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}},
            {"apiVersion": _KUEUE, "kind": "ClusterQueue", "metadata": {"name": team}, "spec": spec},
            {
                "apiVersion": _KUEUE,
                "kind": "LocalQueue",
                "metadata": {"name": "main", "namespace": team},
                "spec": {"clusterQueue": team},
            },
            *(_workload(team, index, is_admitted=index < n_each // 3) for index in range(n_each)),
        ]
    return found


def _workload(team: str, index: int, *, is_admitted: bool) -> dict[str, Any]:
    at = _TIME.format(day=1 + index % 27, hour=index % 24, minute=index % 60)
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    container = {
        "name": "main",
        "image": "registry.example.com/train:1.2.3",
        "command": ["python", "train.py", "--epochs=10"],
        "env": [{"name": f"SETTING_{number}", "value": "some value of a setting"} for number in range(12)],
        "resources": resources,
    }
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "containers": [container]}}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{index}", "uid": f"{team}-{index}"}
    metadata = {
        "name": f"w-{index:05d}",
        "namespace": team,
        "creationTimestamp": at,
        "ownerReferences": [{**owner, "controller": True}],
    }
    conditions = {"type": "QuotaReserved", "lastTransitionTime": at, "observedGeneration": 1}
    if is_admitted:
        usage = {"flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
        admission = {"clusterQueue": team, "podSetAssignments": [{"name": "main", "count": 1, **usage}]}
        reserved = {**conditions, "status": "True", "reason": "QuotaReserved", "message": f"in ClusterQueue {team}"}
        admitted = {**reserved, "type": "Admitted", "reason": "Admitted", "message": "The workload is admitted"}
        status: dict[str, Any] = {"admission": admission, "conditions": [reserved, admitted]}
    else:
        message = "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default"
        status = {"conditions": [{**conditions, "status": "False", "reason": "Pending", "message": message}]}
    pod_set = {"name": "main", "count": 1, "template": template}
    spec = {"queueName": "main", "podSets": [pod_set]}
    return {"apiVersion": _KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec, "status": status}


if __name__ == "__main__":
    main()
