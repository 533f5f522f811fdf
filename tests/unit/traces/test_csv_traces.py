"""Helios, Alibaba's traces and tables of one's own."""

import pytest

from kueuecore.errors import ManifestError
from kueuecore.traces.alibaba import read_openb, read_pai
from kueuecore.traces.helios import read_helios
from kueuecore.traces.rules import ColumnSource
from kueuecore.traces.table_files import read_csv_table
from kueuecore.traces.trace import Trace

HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)


def helios(lines: str) -> Trace:
    return read_helios((HELIOS + lines).encode(), "cluster_log.csv")


def openb(lines: str) -> Trace:
    return read_openb((OPENB + lines).encode(), "pods.csv")


def table(text: str, **columns: ColumnSource) -> Trace:
    return read_csv_table(text.encode(), "jobs.csv", columns)


def requests_of(trace: Trace) -> dict[str, list[int]]:
    return {name: amounts.tolist() for name, amounts in trace.requests.items()}


def problems_of(error: pytest.ExceptionInfo[ManifestError]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


def test_helios_reads_the_published_example() -> None:
    trace = helios(
        "1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n"
        "1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n"
    )
    assert (trace.at.tolist(), trace.run_seconds.tolist(), trace.pods.tolist()) == ([0, 26], [36848, 249], [1, 1])
    assert requests_of(trace) == {"cpu": [1000, 16000], "gpu": [1000, 4000]}
    assert {name: field.texts() for name, field in trace.fields.items()} == {
        "user": ["uXBbc", "uVMrF"],
        "virtualCluster": ["vcJkd", "vchbv"],
        "status": ["COMPLETED", "FAILED"],
    }


def test_helios_shares_a_job_among_its_nodes_or_else_its_gpus() -> None:
    times = "2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:42:01,60,0\n"
    trace = helios(f"1,u,v,16,32,2,COMPLETED,{times}2,u,v,5,10,2,COMPLETED,{times}3,u,v,0,10,3,COMPLETED,{times}")
    assert trace.pods.tolist() == [2, 5, 3]
    # A third of ten CPUs is rounded up to a thousandth.
    assert requests_of(trace) == {"cpu": [16000, 2000, 3334], "gpu": [8000, 1000, 0]}


def test_helios_leaves_out_jobs_without_start_or_nodes() -> None:
    trace = helios(
        "1,u,v,1,1,1,CANCELLED,2020-06-09 18:41:01,,2020-06-09 18:42:01,,\n"
        "2,u,v,1,1,0,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:42:01,60,0\n"
    )
    assert (len(trace), trace.dropped) == (0, {"never started": 1, "no nodes": 1})


def test_broken_lines_of_a_csv_file_are_reported_with_their_numbers() -> None:
    with pytest.raises(ManifestError) as caught:
        helios(
            "\n"
            "1,u,v,many,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:42:01,inf,0\n"
            "2,u,v\n"
            "3,u,v,1,1,1,COMPLETED,09/06/2020,2020-06-09 18:41:01,2020-06-09 18:42:01,60,0\n"
        )
    remedy = "write a number such as 4 or 0.5, or leave it empty"
    assert sorted(problems_of(caught)) == [
        f'cluster_log.csv:3: duration: not a number up to 1e30: "inf"; {remedy}',
        f'cluster_log.csv:3: gpu_num: not a number up to 1e30: "many"; {remedy}',
        "cluster_log.csv:4: 3 fields instead of 12; complete the line or remove it",
        'cluster_log.csv:5: submit_time: not a date: "09/06/2020"; write it as 2020-06-09 18:41:01, or leave it empty',
    ]


def test_a_missing_column_is_reported_with_those_that_are_there() -> None:
    with pytest.raises(ManifestError) as caught:
        read_openb(b"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,gone\n", "p.csv")
    assert [problem.message for problem in caught.value.problems] == [
        'column "deletion_time" is missing',
        'column "scheduled_time" is missing',
    ]
    assert caught.value.remedy.startswith('the first line has "name", "cpu_milli"')


# The tables of the published description: job_0 with 14 CPUs and one GPU.
TASKS = (
    "job_0,ps,1.0,Terminated,110.0,200.0,600.0,29.296875,,\njob_0,worker,2.0,Terminated,115.0,195.0,400.0,,50.0,V100\n"
)
JOBS = "job_0,8cb3,58540f,Terminated,100.0,200.0\njob_1,9999,aaaaaa,Waiting,90.0,\n"


def test_pai_has_a_job_for_each_task_with_times_and_users_of_its_job() -> None:
    trace = read_pai(TASKS.encode(), "pai_task_table.csv", jobs=JOBS.encode())
    assert (trace.at.tolist(), trace.run_seconds.tolist(), trace.pods.tolist()) == ([0, 0], [90, 80], [1, 2])
    assert requests_of(trace) == {"cpu": [6000, 4000], "memory": [30_000 * 2**20, 0], "gpu": [0, 500]}
    assert {name: field.texts() for name, field in trace.fields.items()} == {
        "user": ["58540f", "58540f"],
        "task": ["ps", "worker"],
        "gpuType": ["", "V100"],
        "status": ["Terminated", "Terminated"],
    }


def test_pai_without_its_table_of_jobs_has_tasks_come_when_they_started() -> None:
    trace = read_pai(TASKS.encode(), "pai_task_table.csv")
    assert (trace.at.tolist(), trace.fields["user"].names) == ([0, 5], ("",))


def test_pai_submits_a_task_of_an_unknown_job_when_it_started() -> None:
    tasks = TASKS + "job_7,worker,1.0,Terminated,130.0,140.0,100.0,1.0,,\n"
    trace = read_pai(tasks.encode(), "pai_task_table.csv", jobs=JOBS.encode())
    assert (trace.at.tolist(), trace.fields["user"].texts()[-1]) == ([0, 0, 30], "")


def test_pai_counts_what_did_not_start_or_has_no_end() -> None:
    lines = (
        "a,worker,1.0,Waiting,,,600.0,1.0,,\n"
        "b,worker,1.0,Running,10.0,,600.0,1.0,,\n"
        "c,worker,1.0,Failed,10.0,,600.0,1.0,,\n"
        "d,worker,,Terminated,10.0,20.0,600.0,1.0,,\n"
        "e,worker,1.0,Terminated,10.0,20.0,,,,\n"
    )
    trace = read_pai(lines.encode(), "pai_task_table.csv")
    assert trace.run_seconds.tolist() == [float("inf")]
    assert trace.dropped == {"never started": 1, "no end, and not running": 1, "no pods": 1, "requests nothing": 1}


def test_pai_may_have_a_header() -> None:
    names = "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n"
    assert len(read_pai((names + TASKS).encode(), "pai_task_table.csv")) == 2


def test_openb_reads_the_published_example() -> None:
    trace = openb(
        "openb-pod-0017,88000,327680,8,1000,,Burstable,Succeeded,9437497,10769854,9437497\n"
        "openb-pod-0022,4000,15258,1,220,nan,BE,Running,9679175,9973826,9679175\n"
        "openb-pod-0035,16000,32768,1,1000,V100M16|V100M32,LS,Running,9967058,9968575,9967063\n"
        "openb-pod-0047,12500,57344,0,0,,LS,Pending,12606088,12606376,\n"
    )
    assert trace.at.tolist() == [0, 241678, 529561]
    assert trace.run_seconds.tolist() == [1332357, 294651, 1512]
    assert requests_of(trace) == {
        "cpu": [88000, 4000, 16000],
        "memory": [327680 * 2**20, 15258 * 2**20, 32768 * 2**20],
        "gpu": [8000, 220, 1000],
    }
    assert trace.fields["gpuSpec"].texts() == ["", "", "V100M16|V100M32"]
    assert trace.dropped == {"never started": 1}


def test_a_table_has_the_columns_of_a_trace_and_fields_besides() -> None:
    trace = table(
        "at,run_seconds,pods,priority,cpu_milli,memory_bytes,gpu_milli,requests.example.com/fpga,team\n"
        '10,60,2,5,500,1024,250,3,"a, b"\n'
        "4.5,90,,,1000,,,,\n"
    )
    assert (trace.at.tolist(), trace.run_seconds.tolist()) == ([0], [60])
    assert (trace.pods.tolist(), trace.priority.tolist(), trace.fields["team"].texts()) == ([2], [5], ["a, b"])
    assert requests_of(trace) == {"cpu": [500], "memory": [1024], "gpu": [250], "example.com/fpga": [3]}
    assert trace.dropped == {"no pods": 1}


def test_columns_of_a_table_may_have_other_names_and_units() -> None:
    trace = table(
        "Submit,Start,End,CPUs,User,user\n"
        "2026-03-01T08:00:00,2026-03-01T08:05:00,2026-03-01T08:06:30,1.5,ann,x\n"
        "2026-03-01T09:00:00+01:00,2026-03-01T08:05:00,Unknown,2,bob,y\n"
        "2026-03-01T08:00:00,Unknown,Unknown,2,cid,z\n",
        at=ColumnSource(column="Submit"),
        start=ColumnSource(column="Start"),
        end=ColumnSource(column="End"),
        cpu_milli=ColumnSource(column="CPUs", times=1000),
        user=ColumnSource(column="User"),
    )
    assert (trace.at.tolist(), trace.run_seconds.tolist()) == ([0, 0], [90, float("inf")])
    assert requests_of(trace) == {"cpu": [1500, 2000]}
    assert {name: field.texts() for name, field in trace.fields.items()} == {"user": ["ann", "bob"]}
    assert trace.dropped == {"never started": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run_seconds,pods\n", 'column "at" is missing'),
        ("at,start\n", 'column "run_seconds" is missing, or "start" and "end" instead of it'),
        ("at,at,run_seconds\n", 'column "at" occurs more than once'),
        ("", 'column "at" is missing'),
    ],
)
def test_a_table_without_its_columns_is_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        table(text)
    assert caught.value.problems[0].message == message


def test_a_mapped_column_that_is_not_there_is_reported_by_its_field() -> None:
    with pytest.raises(ManifestError) as caught:
        table("at,run_seconds\n", pods=ColumnSource(column="Nodes"))
    assert problems_of(caught) == [
        'jobs.csv: columns.pods: column "Nodes" is missing; its columns are "at", "run_seconds"'
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0,60,1e11,1", "jobs.csv:2: pods: Invalid value: 1e+11 is more than 2147483647 pods"),
        ("0,1e12,1,1", "jobs.csv:2: run_seconds: Invalid value: 1e+12 is more than 3162240000 seconds"),
        ("0,60,1,1e19", "jobs.csv:2: memory: Invalid value: 1e+19 is more than 4.611686018e+18 units"),
        ("0,60,1,1e999", 'jobs.csv:2: memory_bytes: not a number up to 1e30: "1e999"'),
        ("2026-03-01T08:00:00,60,1,1\n0,60,1,1", 'jobs.csv:3: at: not a date: "0"'),
        ("0,60,1,1\n2026-03-01T08:00:00,60,1,1", "jobs.csv:3: at: not a number up to 1e30: "),
        ("0,60,1,\0", "jobs.csv:2: it is a binary file, not text"),
        ('0,60,1,"1', "jobs.csv:2: not CSV: unexpected end of data"),
    ],
)
def test_values_that_no_job_can_have_are_refused_with_their_line(line: str, message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        table(f"at,run_seconds,pods,memory_bytes\n{line}\n")
    assert problems_of(caught)[0].startswith(message)


def test_unknown_numbers_request_nothing() -> None:
    trace = table("at,run_seconds,cpu_milli,memory_bytes\n0,60,nan,5\n")
    assert requests_of(trace) == {"cpu": [0], "memory": [5]}


def test_a_table_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(ManifestError, match="it is not UTF-8"):
        read_csv_table(b"at,run_seconds,team\n0,1,\xff\n", "jobs.csv", {})


def test_reading_stops_after_twenty_broken_lines() -> None:
    with pytest.raises(ManifestError) as caught:
        table("at,run_seconds\n" + "0\n" * 1000)
    assert len(caught.value.problems) == 20


def test_blanks_around_values_do_not_count() -> None:
    trace = table("at, run_seconds, pods , team\n 1 , 60 ,  , a\n2,60, 1,None\n")
    assert trace.fields["team"].texts() == [""]
    assert trace.dropped == {"no pods": 1}


def test_units_leave_no_rounding_errors() -> None:
    trace = table(
        "at,run_seconds,cores\n0,1,4.03\n1,1,1.1\n2,1,0.0001\n", cpu_milli=ColumnSource(column="cores", times=1000)
    )
    assert requests_of(trace) == {"cpu": [4030, 1100, 1]}
