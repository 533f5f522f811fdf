"""`kueuecore serve --webhooks` on one core: how long reviews take at a fixed rate, over TLS, for a client elsewhere.

    python benches/webhooks.py --rate 200 --seconds 30

Reviews are sent at their times whether or not earlier ones were answered, and measured from those times. The API server
for tests, the webhooks and this client are processes of their own; the webhooks have one core.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benches.serving import KINDS, create, job, queues, running, used
from kueuecore.kubernetes import Api
from kueuecore.kubernetes.https.certificates import Authority

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
leaderElection: {{leaderElect: false}}
metrics: {{bindAddress: "0"}}
health: {{healthProbeBindAddress: "0"}}
webhook: {{host: 127.0.0.1, port: {port}, certDir: {folder}}}
internalCertManagement: {{enable: false}}
integrations: {{frameworks: [batch/job, pod]}}
"""
N_CONNECTIONS = 16


def reviews() -> Iterator[tuple[str, bytes]]:
    """Path and body of reviews: jobs and pods that are created, jobs that change, queues and Workloads."""
    new = job("j", "q0")
    new["spec"]["suspend"] = False
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": new["metadata"], "spec": new["spec"]["template"]["spec"]}
    queue = next(row for row in queues(1) if row["kind"] == "ClusterQueue")
    pod_sets = [{"name": "main", "count": 1, "template": new["spec"]["template"]}]
    workload = {
        "apiVersion": queue["apiVersion"],
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "lab"},
        "spec": {"queueName": "q0", "podSets": pod_sets},
    }
    own = "kueue-x-k8s-io-v1beta2"
    for path, row, old in (
        ("/mutate-batch-v1-job", new, None),
        ("/validate-batch-v1-job", new, None),
        ("/validate-batch-v1-job", new, new),
        ("/mutate--v1-pod", pod, None),
        ("/validate--v1-pod", pod, None),
        (f"/validate-{own}-clusterqueue", queue, queue),
        (f"/validate-{own}-workload", workload, workload),
    ):
        request = {"uid": "u", "operation": "UPDATE" if old else "CREATE", "object": row, "oldObject": old}
        body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        yield path, json.dumps(body).encode()


def sent(port: int, context: ssl.SSLContext, mine: list[tuple[float, str, bytes]], found: list[float]) -> None:
    """Send reviews at their times on one connection; collect how long each took, in milliseconds."""
    with closing(http.client.HTTPSConnection("localhost", port, context=context, timeout=60)) as connection:
        connection.connect()
        for due, path, body in mine:
            time.sleep(max(0.0, due - time.perf_counter()))
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            assert json.loads(answer.read())["response"]["allowed"]
            found.append((time.perf_counter() - due) * 1000)


def measure(rate: int, seconds: int, n_queues: int) -> dict[str, Any]:
    """Start all, send reviews, and say how long they took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        authority = Authority.made("bench", now=datetime.now(UTC))
        pair = authority.sign(["localhost"], now=datetime.now(UTC))
        (folder / "tls.crt").write_text(pair.certificate)
        (folder / "tls.key").write_text(pair.key)
        kubeconfig, configuration, port = folder / "kubeconfig", folder / "configuration.yaml", 19443
        configuration.write_text(CONFIGURATION.format(port=port, folder=folder))
        with running(["-m", "kueuecore_apiserver", "--kueue", "--kubeconfig", str(kubeconfig)]):
            while not kubeconfig.exists():
                time.sleep(0.05)
            api = Api.connect(kubeconfig=kubeconfig, kinds=KINDS)
            for manifest in queues(n_queues):
                create(api, manifest)
            serve = ["-m", "kueuecore", "serve", "--webhooks", "--kubeconfig", str(kubeconfig)]
            with running([*serve, "--config", str(configuration)]) as process:
                os.sched_setaffinity(process.pid, {0})
                time.sleep(8)
                context = ssl.create_default_context(cadata=authority.certificate)
                cpu = used(process.pid)[0]
                times = at_rate(port, context, rate, seconds)
                cpu = used(process.pid)[0] - cpu
                return {
                    "rate": rate,
                    "reviews": len(times),
                    "p50_ms": round(statistics.median(times), 2),
                    "p99_ms": round(statistics.quantiles(times, n=100)[98], 2),
                    "worst_ms": round(max(times), 2),
                    "cpu_ms_each": round(cpu * 1000 / len(times), 2),
                }


def at_rate(port: int, context: ssl.SSLContext, rate: int, seconds: int) -> list[float]:
    begin = time.perf_counter() + 1
    plan = [
        (begin + number / rate, path, body)
        for number, (path, body) in enumerate(islice(cycle(reviews()), rate * seconds))
    ]
    times: list[float] = []
    threads = [
        threading.Thread(target=sent, args=(port, context, plan[number::N_CONNECTIONS], times))
        for number in range(N_CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200, help="reviews a second")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--queues", type=int, default=30)
    options = parser.parse_args()
    print(json.dumps(measure(options.rate, options.seconds, options.queues)))


if __name__ == "__main__":
    main()
