"""`kueuecore serve` against the API server for tests: many Jobs at once, one alone, and many that are released.

    python benches/serving.py --jobs 1000
    python benches/serving.py --release 2000     they wait for quota, which comes at once; others come meanwhile
    KUBE_APISERVER=... ETCD=... python benches/serving.py --release 2000 --cluster real

Both run as processes of their own on this machine, so the server's share of the two cores is in the times. `unlimited`
lifts Kueue's limit of 300 requests a second with bursts of 500.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kueuecore._json import object_at, text_at
from kueuecore.kubernetes import Api, follow, list_all
from scripts.clusters.real import RealCluster, missing_binaries

KUEUE = "kueue.x-k8s.io/v1beta2"
KINDS = {
    "Job": ("batch/v1", "jobs"),
    "Namespace": ("v1", "namespaces"),
    "ResourceFlavor": (KUEUE, "resourceflavors"),
    "ClusterQueue": (KUEUE, "clusterqueues"),
    "LocalQueue": (KUEUE, "localqueues"),
}
CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {{leaderElect: false}}
clientConnection: {{qps: {qps}, burst: 500}}
metrics: {{bindAddress: "0"}}
health: {{healthProbeBindAddress: "0"}}
integrations: {{frameworks: [batch/job]}}
"""


def queues(n: int, quota: str = "100000", *, cohorts: int = 1) -> Iterator[dict[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}}
    yield {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": "default"}, "spec": {}}
    for number in range(n):
        flavor = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": quota}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [flavor]}]
        spec = {"namespaceSelector": {}, "cohortName": f"cohort-{number % cohorts}", "resourceGroups": groups}
        yield {"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": f"q{number}"}, "spec": spec}
        metadata = {"name": f"q{number}", "namespace": "lab"}
        yield {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": f"q{number}"}}


def job(name: str, queue: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    metadata = {"name": name, "namespace": "lab", "labels": {"kueue.x-k8s.io/queue-name": queue}}
    spec = {"suspend": True, "parallelism": 1, "completions": 1, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def used(pid: int) -> tuple[float, float]:
    """CPU seconds and peak memory in MiB of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return ticks / 100, int(status["VmHWM"].split()[0]) / 1024


def measure(n_jobs: int, qps: float, n_alone: int) -> dict[str, Any]:
    """Starts both, creates the jobs, and says how long all took."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "configuration.yaml"
        configuration.write_text(CONFIGURATION.format(qps=qps))
        kubeconfig = Path(folder) / "kubeconfig"
        serve_api = ["-m", "kueuecore_apiserver", "--kueue", "--kubeconfig", str(kubeconfig)]
        with running(serve_api) as server:
            while not kubeconfig.exists():
                time.sleep(0.05)
            api = Api.connect(kubeconfig=kubeconfig, kinds=KINDS)
            for manifest in queues(30):
                create(api, manifest)
            serve = ["-m", "kueuecore", "serve", "--kubeconfig", str(kubeconfig), "--config", str(configuration)]
            with running(serve) as process:
                feed = started(api)
                time.sleep(2)
                alone = []
                for number in range(n_alone):
                    began = time.perf_counter()
                    create(api, job(f"alone-{number}", "q0"))
                    wait(feed, {f"alone-{number}"})
                    alone.append((time.perf_counter() - began) * 1000)
                    time.sleep(0.2)
                before, of_server = used(process.pid)[0], used(server.pid)[0]
                began = time.perf_counter()
                for number in range(n_jobs):
                    create(api, job(f"j{number:05}", f"q{number % 30}"))
                created = time.perf_counter() - began
                wait(feed, {f"j{number:05}" for number in range(n_jobs)})
                seconds = time.perf_counter() - began
                cpu, memory = used(process.pid)
                return {
                    "jobs": n_jobs,
                    "qps": qps,
                    "created_s": round(created, 1),
                    "all_started_s": round(seconds, 1),
                    "jobs_a_second": round(n_jobs / seconds, 1),
                    "cpu_s": round(cpu - before, 1),
                    "peak_mib": round(memory),
                    "server_cpu_s": round(used(server.pid)[0] - of_server, 1),
                    "alone_ms": {"median": round(statistics.median(alone), 1), "worst": round(max(alone), 1)},
                }


@contextmanager
def cluster_of(name: str, folder: str) -> Iterator[tuple[Path, Path]]:
    """A cluster, and the kubeconfigs of its owner and of `serve`."""
    if name == "real":
        # Its etcd and its controllers share the machine.
        with RealCluster() as cluster:
            yield cluster.admin_kubeconfig, cluster.serve_kubeconfig
        return
    kubeconfig = Path(folder) / "kubeconfig"
    with running(["-m", "kueuecore_apiserver", "--kueue", "--kubeconfig", str(kubeconfig)]):
        while not kubeconfig.exists():
            time.sleep(0.05)
        yield kubeconfig, kubeconfig


def events_of_jobs(api: Api) -> dict[str, Any]:
    """How many Event objects there are for each Job and its Workload, by reason."""
    api.kinds["Event"] = ("v1", "events")
    ours = [event for event in list_all(api, "Event")[0] if text_at(event, "source", "component").startswith("kueue")]
    reasons = Counter(text_at(event, "reason") for event in ours)
    about = Counter(text_at(event, "involvedObject", "uid") for event in ours)
    return {"objects": len(ours), "most_of_one_object": max(about.values(), default=0), "by_reason": dict(reasons)}


def release(n_jobs: int, qps: float, place: str) -> dict[str, Any]:
    """Starts both, lets jobs wait, gives them quota, and says when they start and what that means for new ones."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder) / "configuration.yaml"
        configuration.write_text(CONFIGURATION.format(qps=qps))
        with cluster_of(place, folder) as (admin, kubeconfig):
            api = Api.connect(kubeconfig=admin, kinds=KINDS)
            for manifest in queues(2, quota="0", cohorts=2):
                create(api, manifest)
            give(api, "q1", "100000")
            for number in range(n_jobs):
                create(api, job(f"j{number:05}", "q0"))
            serve = ["-m", "kueuecore", "serve", "--kubeconfig", str(kubeconfig), "--config", str(configuration)]
            with running(serve) as process:
                wait_for_workloads(api, n_jobs)
                starts: dict[str, float] = {}
                threading.Thread(target=note_starts, args=(api, starts), daemon=True).start()
                time.sleep(2)
                cpu = used(process.pid)[0]
                began = time.perf_counter()
                give(api, "q0", "100000")
                created: dict[str, float] = {}
                while sum(name.startswith("j") for name in starts) < n_jobs:
                    name = f"new-{len(created)}"
                    created[name] = time.perf_counter()
                    create(api, job(name, "q1"))
                    time.sleep(0.5)
                while created.keys() - starts.keys():
                    time.sleep(0.05)
                released = sorted(at - began for name, at in starts.items() if name.startswith("j"))
                delays = sorted(starts[name] - at for name, at in created.items() if name in starts)
                cpu = used(process.pid)[0] - cpu
                time.sleep(5)  # for the last events
                return {
                    "cluster": place,
                    "released": n_jobs,
                    "qps": qps,
                    "first_start_s": round(released[0], 2),
                    "start_p50_s": round(statistics.median(released), 1),
                    "start_p99_s": round(released[int(0.99 * n_jobs)], 1),
                    "jobs_a_second": round(n_jobs / released[-1], 1),
                    "cpu_s": round(cpu, 1),
                    "peak_mib": round(used(process.pid)[1]),
                    "events": events_of_jobs(api),
                    "new_jobs": len(created),
                    "new_median_s": round(statistics.median(delays), 2),
                    "new_worst_s": round(max(delays), 2),
                }


def give(api: Api, queue: str, cpus: str) -> None:
    """Set the quota of a ClusterQueue."""
    path = api.path("ClusterQueue", name=queue)
    found = api.get(path)
    spec = object_at(found, "spec")
    spec["resourceGroups"] = [
        {
            "coveredResources": ["cpu"],
            "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": cpus}]}],
        }
    ]
    api.send("PUT", path, found)


def wait_for_workloads(api: Api, n: int) -> None:
    """Wait until all have a status, as cycles have looked at them."""
    api.kinds["Workload"] = (KUEUE, "workloads")
    while True:
        found, _ = list_all(api, "Workload")
        if sum(bool(object_at(entry, "status").get("conditions")) for entry in found) >= n:
            return
        time.sleep(1)


def note_starts(api: Api, starts: dict[str, float]) -> None:
    for name in started(api):
        starts.setdefault(name, time.perf_counter())


def create(api: Api, manifest: dict[str, Any]) -> None:
    api.send("POST", api.path(manifest["kind"], text_at(manifest, "metadata", "namespace")), manifest)


def started(api: Api) -> Iterator[str]:
    """The names of jobs as they start, as a watch shows it."""
    for news in follow(api, "Job"):
        for object_ in (news.listed or [object_at(news.event, "object")]) if news is not None else ():
            if object_at(object_, "spec").get("suspend") is False:
                yield text_at(object_, "metadata", "name")


def wait(feed: Iterator[str], names: set[str]) -> None:
    for name in feed:
        names.discard(name)
        if not names:
            return


def main() -> None:
    """Measure, and print a line of JSON for each limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000, help="how many at once")
    parser.add_argument("--alone", type=int, default=30, help="how many come one by one")
    parser.add_argument("--qps", type=float, action="append", help="clientConnection.qps; -1: no limit")
    parser.add_argument("--release", type=int, metavar="N", help="how many wait for quota that comes at once")
    parser.add_argument("--cluster", choices=["own", "real"], default="own", help="with --release: where")
    options = parser.parse_args()
    if options.cluster == "real" and (missing := missing_binaries()):
        parser.error(missing)
    if options.release:
        for qps in options.qps or (-1.0, 300.0):
            print(json.dumps(release(options.release, qps, options.cluster)), flush=True)
        return
    for qps in options.qps or (-1.0, 300.0):
        print(json.dumps(measure(options.jobs, qps, options.alone)), flush=True)


if __name__ == "__main__":
    main()
