"""Makes the traces in this folder: invented jobs in the formats of published traces, the same on every run."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parent
SEED = 2026
BEGIN = datetime(2020, 6, 9, 8, 0, 0)
PHILLY_BEGIN = datetime(2017, 10, 7, 1, 0, 0)
N_JOBS = 40


@dataclass(frozen=True)
class Job:
    """An invented job: when it arrives, how long it waits and runs, and what it needs."""

    number: int
    submit: int
    wait: int
    run: int
    nodes: int
    gpus_a_node: int
    user: int
    group: int
    is_cancelled: bool
    has_failed: bool


def jobs(random: Random) -> list[Job]:
    """Draw the jobs."""
    found, clock = [], 0
    for number in range(1, N_JOBS + 1):
        clock += round(random.expovariate(1 / 120))
        user = random.randint(1, 6)
        found.append(
            Job(
                number=number,
                submit=clock,
                wait=round(random.expovariate(1 / 60)),
                run=round(random.lognormvariate(6.5, 1.2)) + 1,
                nodes=random.choice([1, 1, 1, 1, 2, 4]),
                gpus_a_node=random.choice([1, 1, 2, 4, 8]),
                user=user,
                group=(user + 1) // 2,
                is_cancelled=number % 10 == 0,
                has_failed=number % 10 == 7,
            )
        )
    return found


def swf(found: Iterable[Job]) -> str:
    """Write them in the Standard Workload Format: 18 fields, -1 for what is unknown."""
    header = [
        "; Version: 2.2",
        "; Computer: none, these jobs are invented",
        "; UnixStartTime: 1591689600",
        "; MaxNodes: 16",
        "; MaxProcs: 64",
        "; Queue: 0 interactive",
        "; Queue: 1 batch",
    ]
    lines = []
    for job in found:
        queue = 0 if job.run < 300 else 1
        processors = job.nodes * 4
        if job.is_cancelled:
            fields = [job.number, job.submit, job.wait, -1, -1, -1, -1, processors, 3600, -1, 5]
        else:
            fields = [job.number, job.submit, job.wait, job.run, processors, -1, -1, processors, 3600, 524288]
            fields.append(0 if job.has_failed else 1)
        lines.append(" ".join(map(str, [*fields, job.user, job.group, -1, queue, 1, -1, -1])))
    return "\n".join([*header, *lines, ""])


def philly(found: Iterable[Job], random: Random) -> str:
    """Write them as Philly's cluster_job_log."""
    entries = []
    for job in found:
        submitted = PHILLY_BEGIN + timedelta(seconds=job.submit)
        attempts: list[dict[str, object]] = []
        begin = submitted + timedelta(seconds=job.wait)
        for number in range(0 if job.is_cancelled else random.choice([1, 1, 2])):
            end: datetime | None = begin + timedelta(seconds=job.run)
            gpus = [f"gpu{gpu}" for gpu in range(job.gpus_a_node)]
            detail = [{"ip": f"m{random.randint(1, 500)}", "gpus": gpus} for _ in range(job.nodes)]
            if job.number == N_JOBS - 1:
                end = None
            attempts.append({"start_time": str(begin), "end_time": end and str(end), "detail": detail})
            if end is None:
                break
            begin = end + timedelta(seconds=7 + number)
        entries.append(
            {
                "status": "Killed" if job.is_cancelled else "Failed" if job.has_failed else "Pass",
                "vc": f"{job.group:02x}9e8c",
                "jobid": f"application_1506638472019_{job.number:05}",
                "attempts": attempts,
                "submitted_time": str(submitted),
                "user": f"{job.user:02x}2f4c",
            }
        )
    return json.dumps(entries, indent=1) + "\n"


def helios(found: Iterable[Job]) -> list[Sequence[object]]:
    """Write them as Helios' cluster_log.csv."""
    names = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue"
    rows: list[Sequence[object]] = [names.split(",")]
    for job in found:
        submit = BEGIN + timedelta(seconds=job.submit)
        start = submit + timedelta(seconds=job.wait)
        run = 0 if job.is_cancelled else job.run
        gpus = job.nodes * job.gpus_a_node
        state = "CANCELLED" if job.is_cancelled else "FAILED" if job.has_failed else "COMPLETED"
        end = start + timedelta(seconds=run)
        who = [f"uMa{job.user}e", f"vcMa{job.group}e"]
        rows.append([1425510 + job.number, *who, gpus, gpus * 4, job.nodes, state, submit, start, end, run, job.wait])
    return rows


def pai(found: Iterable[Job]) -> tuple[list[Sequence[object]], list[Sequence[object]]]:
    """Write them as Alibaba's task and job tables of 2020, without headers."""
    tasks: list[Sequence[object]] = []
    rows: list[Sequence[object]] = []
    for job in found:
        name, begin = f"{job.number:024x}", 1_000_000.0 + job.submit
        start, end = begin + job.wait, begin + job.wait + job.run
        status = "Failed" if job.is_cancelled or job.has_failed else "Terminated"
        rows.append([name, f"{job.number:060x}", f"{job.user:012x}", status, begin, end])
        times: Sequence[object] = ["", ""] if job.is_cancelled else [start, end]
        if job.nodes > 1:
            tasks.append([name, "ps", 1.0, status, *times, 600.0, 29.296875, "", ""])
        gpu = [25.0, 50.0, 100.0][job.user % 3]
        tasks.append([name, "worker", float(job.nodes), status, *times, 400.0, 14.6484375, gpu, "MISC"])
    return tasks, rows


def openb(found: Iterable[Job]) -> list[Sequence[object]]:
    """Write them as Alibaba's pod list of 2023."""
    names = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,"
    rows: list[Sequence[object]] = [(names + "scheduled_time").split(",")]
    for job in found:
        created = 9_000_000 + job.submit
        scheduled = created + job.wait
        times: Sequence[object] = [created, scheduled + job.run, "" if job.is_cancelled else scheduled]
        phase = "Pending" if job.is_cancelled else "Failed" if job.has_failed else "Succeeded"
        gpu_milli = [220, 1000][job.gpus_a_node > 1 or job.user % 2]
        qos = ["LS", "BE", "Burstable"][job.user % 3]
        spec = "V100M16|V100M32" if job.user == 1 else ""
        pod = [f"openb-pod-{job.number:04}", 4000 * job.gpus_a_node, 15258, job.gpus_a_node, gpu_milli]
        rows.append([*pod, spec, qos, phase, *times])
    return rows


def accounting(found: Iterable[Job]) -> list[Sequence[object]]:
    """Write them as a custom table, as `sacct` might print it."""
    rows: list[Sequence[object]] = [["Submit", "Start", "End", "Account", "User", "CPUs", "Nodes", "State"]]
    for job in found:
        submit = BEGIN + timedelta(seconds=job.submit)
        start = submit + timedelta(seconds=job.wait)
        end = start + timedelta(seconds=job.run)
        times = [entry.isoformat() for entry in (submit, start, end)]
        if job.is_cancelled:
            times[1] = times[2] = "Unknown"
        state = "CANCELLED by 1000" if job.is_cancelled else "FAILED" if job.has_failed else "COMPLETED"
        rows.append([*times, f"lab{job.group}", f"user{job.user}", job.gpus_a_node * 4, job.nodes, state])
    return rows


def sacct(found: Iterable[Job]) -> str:
    """Write them as `sacct -P` does: a line for each job, and one for its first step."""
    lines = ["JobID|Submit|Start|End|Elapsed|State|ReqTRES|User|Account"]
    for job in found:
        submit = BEGIN + timedelta(seconds=job.submit)
        start = submit + timedelta(seconds=job.wait)
        end = start + timedelta(seconds=job.run)
        first = start.isoformat()
        if job.is_cancelled:
            end, first = start, "None"
        state = "CANCELLED by 1000" if job.is_cancelled else "FAILED" if job.has_failed else "COMPLETED"
        gpus = job.nodes * job.gpus_a_node
        asked = f"billing={4 * gpus},cpu={4 * gpus},gres/gpu={gpus},mem={2 * gpus}G,node={job.nodes}"
        times = f"{submit.isoformat()}|{first}|{end.isoformat()}|{elapsed((end - start).total_seconds())}|{state}"
        lines.append(f"{job.number}|{times}|{asked}|user{job.user}|lab{job.group}")
        if not job.is_cancelled:
            lines.append(f"{job.number}.batch|{times}|||lab{job.group}")
    return "\n".join([*lines, ""])


def elapsed(seconds: float) -> str:
    """Write a duration as Slurm does: `1-02:03:04`."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hour:02}:{minute:02}:{second:02}"


def write_csv(name: str, rows: Iterable[Sequence[object]]) -> None:
    """Write rows."""
    with (FOLDER / name).open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def main() -> None:
    """Write all files."""
    random = Random(SEED)
    found = jobs(random)
    (FOLDER / "cluster.swf").write_text(swf(found))
    (FOLDER / "cluster_job_log").write_text(philly(found, random))
    write_csv("cluster_log.csv", helios(found))
    tasks, rows = pai(found)
    write_csv("pai_task_table.csv", tasks)
    write_csv("pai_job_table.csv", rows)
    write_csv("openb_pod_list_made_up.csv", openb(found))
    write_csv("accounting.csv", accounting(found))
    (FOLDER / "sacct.txt").write_text(sacct(found))


if __name__ == "__main__":
    main()
