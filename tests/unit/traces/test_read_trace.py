"""Files of traces: their formats, compression, and whole runs."""

import gzip
import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pytest
from pyarrow import parquet

from kueuecore import simulate
from kueuecore.errors import ManifestError
from kueuecore.scenarios import read_scenario
from kueuecore.traces import ColumnSource, JobRule, TraceRules, queues_for, read_rules, read_trace, table_files

EXAMPLES = Path(__file__).parents[3] / "examples" / "traces"
RULES = {
    "cluster.swf": "rules-swf.yaml",
    "cluster_job_log": "rules.yaml",
    "cluster_log.csv": "rules.yaml",
    "pai_task_table.csv": "rules-alibaba.yaml",
    "openb_pod_list_made_up.csv": "rules-alibaba.yaml",
    "accounting.csv": "rules-accounting.yaml",
    "sacct.txt": "rules-sacct.yaml",
}
SWF = b"1 0 10 60 4 -1 -1 4 -1 -1 1 7 2 -1 1 1 -1 -1\n"


def message_of(path: Path, trace_format: str | None = None) -> str:
    with pytest.raises(ManifestError) as caught:
        read_trace(path, trace_format=trace_format)
    return str(caught.value.problems[0]).removeprefix(str(path))


@pytest.mark.parametrize("name", RULES)
def test_an_example_runs_to_its_end_and_nothing_is_lost(name: str) -> None:
    rules = read_rules(EXAMPLES / RULES[name])
    trace = read_trace(EXAMPLES / name, columns=rules.columns)
    quota: dict[str, str | int] = {"cpu": 128, "memory": "512Gi", "nvidia.com/gpu": 64}
    run = simulate(
        queues_for(trace, rules, quota=quota), submissions=trace.submissions(rules), now="2026-01-01T00:00:00Z"
    )
    table = run.outcome_table
    assert len(table) == len(trace)
    # Those whose end was not recorded hold their quota forever.
    assert (table["finished"] >= 0).sum() == np.isfinite(trace.run_seconds).sum()
    assert (table["admitted"] >= 0).all()


def test_jobs_arrive_and_run_as_in_the_trace(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_bytes(SWF + SWF.replace(b"1 0 10 60", b"2 30 0 5"))
    trace, rules = read_trace(tmp_path / "log.swf"), TraceRules(default=JobRule(queue="{user}/jobs"))
    queues = queues_for(trace, rules, quota={"cpu": 4})
    run = simulate(queues, submissions=trace.submissions(rules), now=0, cycle_seconds=0)
    second = 1_000_000_000
    assert list(run.workload_keys) == ["7/job-0", "7/job-1"]
    # The second has to wait until the first is gone.
    rows = [[int(row[name]) // second for name in ("created", "admitted", "finished")] for row in run.outcome_table]
    assert rows == [[0, 0, 60], [30, 60, 65]]


def test_the_examples_are_what_their_script_makes(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "make.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "make.py"], check=True)
    made = sorted(path.name for path in tmp_path.iterdir() if path.name != "make.py")
    assert made == sorted([*RULES, "pai_job_table.csv"])
    assert [name for name in made if (tmp_path / name).read_bytes() != (EXAMPLES / name).read_bytes()] == []


@pytest.mark.parametrize("name", RULES)
def test_a_compressed_trace_is_read_as_it_is(tmp_path: Path, name: str) -> None:
    columns = read_rules(EXAMPLES / RULES[name]).columns
    for entry in (name, "pai_job_table.csv"):
        (tmp_path / f"{entry}.gz").write_bytes(gzip.compress((EXAMPLES / entry).read_bytes()))
    plain, packed = (read_trace(entry, columns=columns) for entry in (EXAMPLES / name, tmp_path / f"{name}.gz"))
    assert packed.at.tolist() == plain.at.tolist()
    assert [field.texts() for field in packed.fields.values()] == [field.texts() for field in plain.fields.values()]


def test_a_compressed_file_that_is_cut_off_or_damaged_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(SWF * 1000)
    path = tmp_path / "log.swf.gz"
    path.write_bytes(packed[:-10])
    assert message_of(path) == ": the compressed file is cut off; fetch or copy it again"
    path.write_bytes(packed[:20] + b"\xff" * 20 + packed[40:])
    assert message_of(path).startswith(": the compressed file is damaged: ")


def test_archives_and_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    assert message_of(path) == ": there is no such file; check the name"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("log.swf")
        entry.size = len(SWF)
        archive.addfile(entry, io.BytesIO(SWF))
    assert message_of(path) == ": it is a tar archive; unpack it and name the file inside"
    path.write_bytes(b"PK\x03\x04rest")
    assert message_of(path) == ": it is a zip archive; unpack it and name the file inside"
    assert message_of(tmp_path).startswith(": cannot be read: ")


def test_the_format_is_detected_from_the_first_bytes_if_not_from_the_name(tmp_path: Path) -> None:
    for name in ("cluster.swf", "cluster_job_log", "cluster_log.csv", "openb_pod_list_made_up.csv", "sacct.txt"):
        shutil.copy(EXAMPLES / name, tmp_path / "trace")
        assert len(read_trace(tmp_path / "trace")) == len(read_trace(EXAMPLES / name))


def test_a_format_that_cannot_be_detected_must_be_given(tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text("at,run_seconds\n0,1\n")
    assert message_of(tmp_path / "jobs.txt").startswith(": cannot detect the format from its name or first bytes")
    assert len(read_trace(tmp_path / "jobs.txt", trace_format="csv")) == 1
    with pytest.raises(ValueError, match='trace_format: "xml" is not one of swf, philly'):
        read_trace(tmp_path / "jobs.txt", trace_format="xml")


@pytest.mark.parametrize("delimiter", [",", "\t", "|"])
def test_a_table_may_have_tabs_or_bars_between_its_cells(tmp_path: Path, delimiter: str) -> None:
    lines = [["at", "run_seconds", "cpu_milli", "team"], ["0", "60", "500", '"a, b"'], ["5", "", "", "c"]]
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(delimiter.join(line) for line in lines) + "\n", encoding="utf-8")
    trace = read_trace(path)
    assert (trace.run_seconds.tolist(), trace.fields["team"].texts()) == ([60], ["a, b"])
    if delimiter != ",":
        # Such a first line is enough to detect it by.
        assert len(read_trace(path.rename(tmp_path / "jobs.txt"))) == 1


def test_parquet_reads_the_same_as_csv(tmp_path: Path) -> None:
    table = arrow.table(
        {
            "Submit": arrow.array([90_000, 0, None], arrow.timestamp("ms")),
            "run_seconds": arrow.array([60, 30, 1], arrow.int32()),
            "pods": arrow.array([1, 2, 3], arrow.int64()),
            "gpu_milli": arrow.array([None, 500, 1], arrow.float32()),
            "team": arrow.array(["a", None, "b"]).dictionary_encode(),
            "id": arrow.array([7, 8, 9]),
        }
    )
    parquet.write_table(table, tmp_path / "jobs.parquet")
    trace = read_trace(tmp_path / "jobs.parquet", columns={"at": ColumnSource(column="Submit")})
    assert (trace.at.tolist(), trace.run_seconds.tolist(), trace.pods.tolist()) == ([0], [30], [2])
    assert {name: field.texts() for name, field in trace.fields.items()} == {"team": [""], "id": ["8"]}
    assert trace.requests["gpu"].tolist() == [500]
    assert trace.dropped == {"no time of submission": 1, "requests nothing": 1}


def test_parquet_that_is_damaged_or_holds_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.parquet"
    parquet.write_table(arrow.table({"at": [0.0], "run_seconds": [1.0], "pods": [[1]]}), path)
    assert message_of(path).startswith(': pods: column "pods" holds list<')
    parquet.write_table(arrow.table({"at": [0.0], "run_seconds": ["long"]}), path)
    assert message_of(path).startswith(
        ': run_seconds: column "run_seconds" holds string, which cannot be read as a num'
    )
    path.write_bytes(path.read_bytes()[:-30])
    assert message_of(path).startswith(": not a Parquet file: ")


def scenario(folder: Path, text: str) -> Path:
    for name in ("cluster_log.csv", "rules.yaml", "cluster.swf", "rules-swf.yaml"):
        shutil.copy(EXAMPLES / name, folder)
    path = folder / "scenario.yaml"
    path.write_text(f"apiVersion: kueuecore/v1\nkind: Scenario\ncluster: {{objects: []}}\n{text}\n")
    return path


def test_a_scenario_has_the_jobs_of_its_traces(tmp_path: Path) -> None:
    path = scenario(
        tmp_path,
        """
traces:
- {file: cluster_log.csv, rules: rules.yaml}
- {file: cluster.swf, format: swf, rules: rules-swf.yaml, name: batch}
""",
    )
    parts = read_scenario(path).traces
    assert [part.name for part in parts] == ["cluster-log", "batch"]
    batches = [submission for part in parts for submission in part.submissions()]
    assert [(batch.namespace, batch.prefix) for batch in batches] == [
        ("vcma1e", "cluster-log-"),
        ("vcma2e", "cluster-log-"),
        ("vcma3e", "cluster-log-"),
        ("cluster", "batch-"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("traces: [{rules: rules.yaml}]", "scenario.yaml:4: traces[0].file: Required value; name a file"),
        ("traces: [{file: cluster.swf}]", "scenario.yaml:4: traces[0].rules: Required value; name a file"),
        ("traces: [{file: none.swf, rules: rules.yaml}]", "none.swf: there is no such file; check the name"),
        ("traces: [{file: cluster.swf, rules: rules.yaml}]", "rules.yaml:6: rules[0].queue: the trace has no field"),
        (
            "traces: [{file: a.swf, rules: rules.yaml, format: xml}]",
            "scenario.yaml:4: traces[0].format: Unsupported va",
        ),
        (
            "traces: [{file: a.swf, rules: rules.yaml, nmae: b}]",
            "scenario.yaml:4: traces[0].nmae: unknown field; write",
        ),
        ("traces: {file: a.swf}", "scenario.yaml:4: traces: must be a list, not a mapping; start each entry with"),
    ],
)
def test_what_is_wrong_with_a_trace_of_a_scenario_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read_scenario(scenario(tmp_path, text))
    problems = [str(problem).removeprefix(f"{tmp_path}/") for problem in caught.value.problems]
    assert any(other.startswith(problem) for other in problems), problems


def test_two_traces_with_the_same_name_are_refused(tmp_path: Path) -> None:
    entry = "{file: cluster.swf, rules: rules-swf.yaml}"
    with pytest.raises(ManifestError, match='Duplicate value: "cluster"; give each trace its own `name`'):
        read_scenario(scenario(tmp_path, f"traces: [{entry}, {entry}]"))


def test_a_fleet_has_no_traces(tmp_path: Path) -> None:
    path = scenario(tmp_path, "traces: [{file: cluster.swf, rules: rules-swf.yaml}]")
    path.write_text(path.read_text().replace("cluster: {objects: []}", "fleet: {manager: {}, workers: {a: {}}}"))
    with pytest.raises(ManifestError) as caught:
        read_scenario(path)
    messages = [(problem.field, problem.message) for problem in caught.value.problems]
    assert ("traces", "traces are for one cluster") in messages


def test_only_the_fields_that_are_asked_for_are_read(tmp_path: Path) -> None:
    table = arrow.table(
        {"at": [0.0], "run_seconds": [1.0], "user": ["a"], "note": ["b"], "status": ["FAILED"], "log": [[b"\xff"]]}
    )
    parquet.write_table(table, tmp_path / "jobs.parquet")
    lines = "at,run_seconds,user,note,status,log\n0,1,a,b,FAILED,c\n"
    (tmp_path / "jobs.csv").write_text(lines, encoding="utf-8")
    for name in ("jobs.parquet", "jobs.csv"):
        trace = read_trace(tmp_path / name, fields={"user"})
        assert {field: column.texts() for field, column in trace.fields.items()} == {
            "user": ["a"],
            "status": ["FAILED"],
        }
    # Without a choice, lists are left out: they are no texts.
    assert sorted(read_trace(tmp_path / "jobs.parquet").fields) == ["note", "status", "user"]


def test_rules_that_use_a_missing_field_are_told_which_there_are(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("at,run_seconds,user,team\n0,1,a,b\n", encoding="utf-8")
    rules = TraceRules(default=JobRule(queue="{squad}/jobs"))
    trace = read_trace(tmp_path / "jobs.csv", fields=rules.fields())
    with pytest.raises(ManifestError, match="its fields are team, user"):
        trace.submissions(rules)


def test_parquet_of_repeated_strings_takes_memory_for_one(tmp_path: Path) -> None:
    rows = 100_000
    user = arrow.DictionaryArray.from_arrays(arrow.array([0] * rows, arrow.int32()), arrow.array(["u" * 20_000]))
    table = arrow.table({"at": range(rows), "run_seconds": range(rows), "user": user})
    parquet.write_table(table, tmp_path / "jobs.parquet")
    before = arrow.default_memory_pool().max_memory()
    assert read_trace(tmp_path / "jobs.parquet").fields["user"].names == ("u" * 20_000,)
    assert arrow.default_memory_pool().max_memory() - before < 100 * 2**20


def test_parquet_is_refused_by_the_size_of_the_columns_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = arrow.table({"at": [0.0], "run_seconds": [1.0], "user": ["u" * 5_000], "team": ["a"]})
    parquet.write_table(table, tmp_path / "jobs.parquet")
    monkeypatch.setattr(table_files, "LARGEST", 5_000)
    assert message_of(tmp_path / "jobs.parquet").startswith(": the columns to read have 0.0 GiB once decompressed")
    assert read_trace(tmp_path / "jobs.parquet", fields={"team"}).fields["team"].texts() == ["a"]


def test_parquet_with_two_columns_of_a_name_is_refused(tmp_path: Path) -> None:
    column = arrow.array([0.0])
    table = arrow.Table.from_arrays([column, column, column], ["at", "run_seconds", "at"])
    parquet.write_table(table, tmp_path / "jobs.parquet")
    assert "'Field \"at\" exists 2 times in schema'" in message_of(tmp_path / "jobs.parquet")
