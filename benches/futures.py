"""How fast futures are played; run by hand: `python -m benches.futures [OLDER PACKAGE]`.

The states: a machine of 100 processors with one queue, and a cluster with 1,000 workloads in 20 ClusterQueues in 4
cohorts. Asked is for one workload that waits, as `eta` and as the command, which includes its start. With the folder of
an older package, such as `older/python`, that one is asked too, and ratios are printed. The times are those of a
processor, as other work on the machine matters less to them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

Json = dict[str, Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
_DAY = 86_400


def machine(*, n_running: int = 40, n_waiting: int = 60, per_day: int = 85) -> Iterator[Json]:
    """Yield one ClusterQueue of 100 processors, in use, with a week of finished jobs."""
    random = Random(7)
    yield from _common(["cq"], {"cq": ""}, quota=100)
    yield from _jobs(random, ["lq-cq"], n_running, n_waiting, n_finished=7 * per_day, span=7 * _DAY, quota=100)


def cohorts(*, n_queues: int = 20, n_cohorts: int = 4, n_workloads: int = 1000) -> Iterator[Json]:
    """Yield many ClusterQueues that borrow from each other: half of the workloads have ended."""
    random = Random(8)
    names = [f"cq{number}" for number in range(n_queues)]
    yield from _common(names, {name: f"cohort{number % n_cohorts}" for number, name in enumerate(names)}, quota=40)
    for name in names:
        n = n_workloads // n_queues
        yield from _jobs(random, [f"lq-{name}"], n // 4, n // 4, n_finished=n // 2, span=_DAY, quota=40, prefix=name)


def _common(queues: list[str], cohort_of: Mapping[str, str], *, quota: int) -> Iterator[Json]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    yield {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "main"}}
    for name in queues:
        flavor: Json = {"name": "main", "resources": [{"name": "cpu", "nominalQuota": str(quota)}]}
        spec: Json = {
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
        }
        if cohort_of[name]:
            spec["cohortName"] = cohort_of[name]
        yield {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
        metadata = {"name": f"lq-{name}", "namespace": "ns"}
        yield {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": name}}


def _jobs(
    random: Random,
    queues: list[str],
    n_running: int,
    n_waiting: int,
    *,
    n_finished: int,
    span: float,
    quota: int,
    prefix: str = "w",
) -> Iterator[Json]:
    n_cpus = quota / max(n_running, 1)
    for number in range(n_finished):
        end = span * (number + random.random()) / n_finished
        seconds = random.lognormvariate(8.5, 1.4)
        yield _workload(random, f"{prefix}-done{number}", queues, end + seconds + 60, end + seconds, end, n_cpus)
    for number in range(n_running):
        begun = random.expovariate(1 / 7200)
        yield _workload(random, f"{prefix}-runs{number}", queues, begun + 60, begun, None, n_cpus)
    for number in range(n_waiting):
        yield _workload(random, f"{prefix}-waits{number}", queues, 7200 - 60 * number, None, None, n_cpus)


def _workload(
    random: Random,
    name: str,
    queues: list[str],
    created: float,
    admitted: float | None,
    finished: float | None,
    n_cpus: float,
) -> Json:
    queue = random.choice(queues)
    cpu = max(1, int(n_cpus)) if admitted is not None else random.choice([1, 2, 4, 8])
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    pods = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    plain: Json = {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "creationTimestamp": _ago(created), "generation": 1},
        "spec": {"queueName": queue, "priority": 0, "active": True, "podSets": [pods]},
    }
    if admitted is not None:
        assigned = {"name": "main", "count": 1, "flavors": {"cpu": "main"}, "resourceUsage": {"cpu": str(cpu)}}
        since = [("QuotaReserved", admitted), ("Admitted", admitted)]
        since += [("Finished", finished)] if finished is not None else []
        plain["status"] = {
            "admission": {"clusterQueue": queue.removeprefix("lq-"), "podSetAssignments": [assigned]},
            "conditions": [
                {"type": type_, "status": "True", "reason": type_, "message": "", "lastTransitionTime": _ago(at)}
                for type_, at in since
            ],
        }
    return plain


def _ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


STATES: Mapping[str, tuple[Callable[[], Iterator[Json]], str]] = {
    "machine": (machine, "ns/w-waits30"),
    "cohorts": (cohorts, "ns/cq7-waits6"),
}


def ask(path: str, target: str, seeds: Sequence[int]) -> dict[str, float]:
    """Return milliseconds of `eta` for each number of futures, of the state in a file, in this process."""
    from kueuecore import read_manifests
    from kueuecore.forecasts import eta
    from kueuecore.scenarios import ClusterPart, Scenario

    scenario = Scenario(cluster=ClusterPart(objects=read_manifests(path)), start=int(NOW.timestamp()) * 10**9)
    found: dict[str, float] = {}
    # The first call imports what others need, too.
    for label, n_seeds in (("eta, the first call", 1), *((_label("eta", n_seeds), n_seeds) for n_seeds in seeds)):
        begin = process_time()
        forecast = eta(scenario, [target], seeds=range(n_seeds), trusted=True).forecasts[0]
        found[label] = 1000 * (process_time() - begin)
        found["median wait, minutes"] = forecast.quantile(0.5) / 60
    few, many = seeds[0], seeds[-1]
    found["a future"] = (found[_label("eta", many)] - found[_label("eta", few)]) / (many - few)
    return found


def _label(what: str, n_seeds: int) -> str:
    return f"{what}, {n_seeds} futures"


def _asked(python: Path, name: str, path: str, seeds: Sequence[int]) -> dict[str, float]:
    """Return the milliseconds of a state, asked in a process of its own and of the command."""
    target = STATES[name][1]
    environment = {**os.environ, "PYTHONPATH": f"{python}{os.pathsep}."}
    asked = f"{path!r}, {target!r}, {[1, *seeds]}"
    call = [sys.executable, "-c", f"import json, benches.futures as f; print(json.dumps(f.ask({asked})))"]
    found: dict[str, float] = json.loads(subprocess.run(call, env=environment, check=True, capture_output=True).stdout)
    for n_seeds in seeds:
        command = [sys.executable, "-m", "kueuecore", "eta", path, target, "--seeds", str(n_seeds), "--trusted", "-q"]
        begin = _children_seconds()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        found[_label("command", n_seeds)] = 1000 * (_children_seconds() - begin)
    return found


def _children_seconds() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def main() -> None:
    """Print how long each state takes."""
    before = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        for name, (made, _) in STATES.items():
            path = Path(folder) / f"{name}.yaml"
            path.write_text("\n---\n".join(map(json.dumps, made())) + "\n", encoding="utf-8")
            now = _asked(Path("python").resolve(), name, str(path), (20, 200))
            earlier = _asked(Path(before).resolve(), name, str(path), (20,)) if before else {}
            print(f"{name}: milliseconds of a processor" + (", before, ratio" if before else ""))
            for label, value in now.items():
                was = earlier.get(label)
                print(f"  {label:24}{value:10.1f}" + ("" if was is None else f"{was:10.1f}{was / value:8.1f}"))


if __name__ == "__main__":
    main()
