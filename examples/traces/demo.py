"""Simulates each trace in this folder with queues made for it: how many jobs fail, and how long jobs wait."""

from pathlib import Path

from kueuecore import simulate
from kueuecore.traces import queues_for, read_rules, read_trace

FOLDER = Path(__file__).parent
RULES = {
    "cluster.swf": "rules-swf.yaml",
    "cluster_job_log": "rules.yaml",
    "cluster_log.csv": "rules.yaml",
    "pai_task_table.csv": "rules-alibaba.yaml",
    "openb_pod_list_made_up.csv": "rules-alibaba.yaml",
    "accounting.csv": "rules-accounting.yaml",
    "sacct.txt": "rules-sacct.yaml",
}
QUOTA: dict[str, str | int] = {"cpu": 64, "memory": "64Gi", "nvidia.com/gpu": 32}

for name, rules_name in RULES.items():
    rules = read_rules(FOLDER / rules_name)
    trace = read_trace(FOLDER / name, columns=rules.columns)
    queues = queues_for(trace, rules, quota=QUOTA, cohort="all")
    run = simulate(queues, submissions=trace.submissions(rules), now="2026-01-01T00:00:00Z")
    waits = (run.outcome_table["admitted"] - run.outcome_table["created"]) / 1e9
    counts = f"{len(trace)} jobs, {sum(trace.dropped.values())} left out, {run.failed.sum()} failed"
    print(f"{name}: {counts}, {waits.mean():.0f} s mean wait")
