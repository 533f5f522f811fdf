"""What it costs a dry run to judge a decision of Kueue beside many Workloads: `python benches/judging.py`.

    judging.py [--workloads 20000] [--decisions 300]

A cluster of 40 ClusterQueues in four cohorts, full, with everything else waiting. Workloads end, and a Kueue admits the
next ones; each event goes to the judge, which sees all of them in order, so that nearly all are the expected decisions.
Then as many decisions that no Kueue makes: the whole search through the states that Kueue can have seen. Time of the
process, by decision; memory at the end.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kueuecore import Configuration
from kueuecore.kubernetes.dry_run.judge import Judge, Verdict
from kueuecore.times import SECOND_NS, format_time

_KUEUE = "kueue.x-k8s.io/v1beta2"
_START = 1_767_225_600 * SECOND_NS
_N_QUEUES, _QUOTA = 40, 50
_Object = dict[str, Any]


class Cluster:
    """A judge, and the Kueue whose decisions it sees."""

    def __init__(self, n_workloads: int) -> None:
        self.judge = Judge(Configuration())
        self.now = _START
        self._version = 1
        self.running: list[_Object] = []
        self.waiting: list[list[_Object]] = [[] for _ in range(_N_QUEUES)]
        made = [_workload(number, number % _N_QUEUES) for number in range(n_workloads)]
        for number, workload in enumerate(made):
            queue = number % _N_QUEUES
            is_first = number // _N_QUEUES < _QUOTA
            (self.running if is_first else self.waiting[queue]).append(workload)
            workload["status"] = _admitted(queue, self.now) if is_first else {}
        kinds: dict[str, list[_Object]] = {"Workload": made}
        for other in _queues():
            kinds.setdefault(other["kind"], []).append(other)
        for kind in self.judge.view.kinds:
            self.judge.take_list(kind, kinds.get(kind, []), version="1", now=self.now)
        self.judge.tick(self.now)

    def end_one(self) -> int:
        """End a workload; return the number of its queue."""
        workload = self.running.pop(0)
        finished = _condition("Finished", "Succeeded", "Job finished successfully", self.now)
        status = {**workload["status"], "conditions": [*workload["status"]["conditions"], finished]}
        self._show(workload, status)
        return int(workload["spec"]["queueName"][1:])

    def admit(self, workload: _Object, queue: int) -> None:
        """Show that Kueue has admitted a workload."""
        self.running.append(self._show(workload, _admitted(queue, self.now)))

    def _show(self, workload: _Object, status: _Object) -> _Object:
        self._version += 1
        metadata = {**workload["metadata"], "resourceVersion": str(self._version)}
        changed = {**workload, "metadata": metadata, "status": status}
        self.judge.observe({"type": "MODIFIED", "object": changed}, now=self.now)
        return changed

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.now += round(seconds * SECOND_NS)
        self.judge.tick(self.now)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", type=int, default=20_000)
    parser.add_argument("--decisions", type=int, default=300)
    options = parser.parse_args()
    began = time.process_time()
    cluster = Cluster(options.workloads)
    print(f"{options.workloads} workloads, taken in and parked in {time.process_time() - began:.1f} s")
    _report("as expected", _expected(cluster, options.decisions), cluster, Verdict.AGREED)
    _report("never right", _wrong(cluster, options.decisions // 10), cluster, Verdict.DIFFERED)
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB at most")


def _expected(cluster: Cluster, n: int) -> list[float]:
    times = []
    for _ in range(n):
        queue = cluster.end_one()
        cluster.pass_time(1.1)
        workload = cluster.waiting[queue].pop(0)
        began = time.process_time()
        cluster.admit(workload, queue)
        cluster.judge.tick(cluster.now)
        times.append(time.process_time() - began)
    return times


def _wrong(cluster: Cluster, n: int) -> list[float]:
    """Admit where there is no quota."""
    cluster.judge.take()
    times = []
    for number in range(n):
        queue = number % _N_QUEUES
        began = time.process_time()
        cluster.admit(cluster.waiting[queue].pop(), queue)
        cluster.pass_time(3.5)
        times.append(time.process_time() - began)
    return times


def _report(what: str, times: list[float], cluster: Cluster, verdict: Verdict) -> None:
    judged = [it.verdict for it in cluster.judge.take() if it.kind == "admission"]
    p95 = quantiles(times, n=20)[-1]
    found = f"{sum(it is verdict for it in judged)} of {len(judged)} {verdict.value}"
    print(f"{what}: median {median(times) * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms; {found}")


def _queues() -> list[_Object]:
    found: list[_Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}},
        {"apiVersion": _KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}},
    ]
    for number in range(_N_QUEUES):
        name = f"q{number}"
        resources = [{"name": "cpu", "nominalQuota": str(_QUOTA)}]
        groups = [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": resources}]}]
        spec = {"cohortName": f"c{number % 4}", "namespaceSelector": {}, "resourceGroups": groups}
        found.append({"apiVersion": _KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        metadata = {"namespace": "lab", "name": name}
        found.append({"apiVersion": _KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}})
    return found


def _workload(number: int, queue: int) -> _Object:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    pod_sets = [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}]
    metadata = {
        "namespace": "lab",
        "name": f"w{number}",
        "uid": f"u{number}",
        "resourceVersion": "1",
        "creationTimestamp": format_time(_START - (100_000 - number) * SECOND_NS),
    }
    spec = {"queueName": f"q{queue}", "priority": 0, "active": True, "podSets": pod_sets}
    return {"apiVersion": _KUEUE, "kind": "Workload", "metadata": metadata, "spec": spec}


def _admitted(queue: int, at: int) -> _Object:
    assignment = {"name": "main", "count": 1, "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
    conditions = [
        _condition("QuotaReserved", "QuotaReserved", f"Quota reserved in ClusterQueue q{queue}", at),
        _condition("Admitted", "Admitted", "The workload is admitted", at),
    ]
    return {"conditions": conditions, "admission": {"clusterQueue": f"q{queue}", "podSetAssignments": [assignment]}}


def _condition(kind: str, reason: str, message: str, at: int) -> _Object:
    time_ = format_time(at // SECOND_NS * SECOND_NS)
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time_}


if __name__ == "__main__":
    main()
