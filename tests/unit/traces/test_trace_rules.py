"""Rules for traces: reading them, and what they make of jobs."""

from pathlib import Path

import numpy as np
import pytest

from kueuecore.errors import ManifestError
from kueuecore.traces import (
    ColumnSource,
    GpuFractions,
    JobRule,
    Scale,
    TextColumn,
    Trace,
    TraceRules,
    made_trace,
    queues_for,
    read_rules,
)
from kueuecore.traces.queue_names import labels_of
from kueuecore.traces.scaling import sampled

HEAD = "apiVersion: kueuecore/v1\nkind: TraceRules\n"


def trace(*users: str, gpu_milli: tuple[int, ...] = (), queue: tuple[str, ...] = ()) -> Trace:
    """A job a minute for each user, of one CPU."""
    n = len(users)
    fields = {"user": TextColumn.of(users), **({"queue": TextColumn.of(queue)} if queue else {})}
    gpus = {"gpu": gpu_milli} if gpu_milli else {}
    return made_trace(
        at=60.0 * np.arange(n),
        run_seconds=np.full(n, 600.0),
        pods=np.ones(n),
        requests={"cpu": np.full(n, 1000), **gpus},
        drop=(),
        fields=fields,
    )


def queues_of(jobs: Trace, rules: TraceRules) -> list[tuple[float, str]]:
    """When each job comes, and its queue."""
    found: list[tuple[float, str]] = []
    for batch in jobs.submissions(rules):
        names = [f"{batch.namespace}/{batch.local_queues[entry]}" for entry in np.asarray(batch.queue).tolist()]
        found += zip(np.asarray(batch.at).tolist(), names, strict=True)
    return sorted(found)


def read(folder: Path, text: str) -> TraceRules:
    (folder / "rules.yaml").write_text(HEAD + text)
    return read_rules(folder / "rules.yaml")


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        read(folder, text)
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def test_all_fields_of_a_file_of_rules_are_read(tmp_path: Path) -> None:
    rules = read(
        tmp_path,
        """
rules:
- when: {queue: 1, user: ["a*", bob]}
  queue: team-a/jobs
  priority: -5
  requests: {cpu: 1500m, memory: 1Gi, nvidia.com/gpu: 2}
default: {queue: "{user}/jobs"}
resources: {gpu: example.com/device, memory: null}
gpuFractions: thousandths
scale: {time: 0.5, runs: 2, sample: 0.1, seed: 7}
begin: 1970-01-01T00:01:00
columns: {at: Submit, cpu_milli: {column: Cores, times: 1000}}
""",
    )
    assert rules == TraceRules(
        rules=(
            JobRule(
                queue="team-a/jobs",
                when={"queue": ("1",), "user": ("a*", "bob")},
                priority=-5,
                requests={"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 2},
            ),
        ),
        default=JobRule(queue="{user}/jobs"),
        resources={"cpu": "cpu", "memory": None, "gpu": "example.com/device"},
        gpu_fractions=GpuFractions.THOUSANDTHS,
        scale=Scale(time=0.5, runs=2.0, sample=0.1, seed=7),
        begin=60.0,
        columns={"at": ColumnSource(column="Submit"), "cpu_milli": ColumnSource(column="Cores", times=1000.0)},
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rules: []", "rules.yaml:1: default: there are no rules; write `default: {queue: namespace/localqueue}`"),
        (
            "default: a/b",
            "rules.yaml:3: default: must be a mapping, not a string; write `default: {queue: namespace/loc",
        ),
        ("default: {}", "rules.yaml:3: default.queue: Required value; write namespace/localqueue"),
        ("default: {queue: jobs}", 'rules.yaml:3: default.queue: Invalid value: "jobs"; write namespace/localqueue'),
        ("default: {queue: a/b/c}", 'rules.yaml:3: default.queue: Invalid value: "a/b/c"; write namespace/localqueue'),
        ("default: {queue: A/b}", 'rules.yaml:3: default.queue: Invalid value: "A": a lowercase RFC 1123 label must'),
        ('default: {queue: "{u}/B"}', 'rules.yaml:3: default.queue: Invalid value: "B": a lowercase RFC 1123 subdo'),
        ('default: {queue: "{}/b"}', "rules.yaml:3: default.queue: the braces are empty; name a field of the trace"),
        ("default: {queue: a/b, when: {user: a}}", "rules.yaml:3: default.when: unknown field; the known fields are"),
        (
            "rules: [{queue: a/b, when: {user: [1.5]}}]",
            "rules.yaml:3: rules[0].when.user: not a pattern: a list; write a",
        ),
        (
            "rules: [{queue: a/b, when: {user: []}}]",
            "rules.yaml:3: rules[0].when.user: not a pattern: a list; write a p",
        ),
        ("rules: [{queue: a/b, priority: 3e9}]", "rules.yaml:3: rules[0].priority: Invalid value: 3000000000; write "),
        ("rules: [{queue: a/b, requests: {cpu: 1x}}]", 'rules.yaml:3: rules[0].requests.cpu: not a quantity: "1x"; wr'),
        ("rules: [{queue: a/b, requests: {pods: 1}}]", "rules.yaml:3: rules[0].requests.pods: Kueue counts the pod"),
        ("default: {queue: a/b}\nresources: {gpu: cpu}", 'rules.yaml:4: resources: two resources are named "cpu"; '),
        ("default: {queue: a/b}\ngpuFractions: half", 'rules.yaml:4: gpuFractions: Unsupported value: "half"; write'),
        ("default: {queue: a/b}\nscale: {time: -1}", "rules.yaml:4: scale.time: Invalid value: -1; write a factor fr"),
        ("default: {queue: a/b}\nscale: {runs: 1e9}", "rules.yaml:4: scale.runs: Invalid value: 1e+09; write a fact"),
        (
            "default: {queue: a/b}\nbegin: monday",
            'rules.yaml:4: begin: Invalid value: "monday"; write seconds, or a',
        ),
        ("default: {queue: a/b}\nbegin: nan", 'rules.yaml:4: begin: Invalid value: "nan"; write'),
        ("default: {queue: a/b}\nscale: {sample: 0}", "rules.yaml:4: scale.sample: Invalid value: 0; write a share a"),
        ("default: {queue: a/b}\ncolumns: {at: {times: 2}}", "rules.yaml:4: columns.at: must be a column; write the n"),
        ("default: {queue: a/b}\ncolumns: {at: T, end: T}", 'rules.yaml:4: columns: two columns come from "T"; give'),
        ("defualt: {queue: a/b}\nrules: [{queue: a/b}]", "rules.yaml:3: defualt: unknown field; write default"),
    ],
)
def test_what_is_wrong_with_rules_is_reported_with_line_field_and_remedy(
    tmp_path: Path, text: str, problem: str
) -> None:
    problems = problems_of(tmp_path, text)
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("apiVersion: kueuecore/v1\nkind: Scenario\n")
    with pytest.raises(ManifestError, match="one document of kind TraceRules"):
        read_rules(tmp_path / "rules.yaml")


def test_the_first_rule_that_matches_counts() -> None:
    rules = TraceRules(
        rules=(
            JobRule(when={"user": ("al*", "bob")}, queue="a/first", priority=7),
            JobRule(when={"user": ("alice",)}, queue="a/second"),
            JobRule(when={"user": ("c?d",), "queue": ("gpu",)}, queue="b/third"),
        ),
        default=JobRule(queue="b/rest"),
    )
    jobs = trace("alice", "bob", "cid", "cid", "Alice", queue=("gpu", "gpu", "gpu", "cpu", "gpu"))
    assert queues_of(jobs, rules) == [
        (0, "a/first"),
        (60, "a/first"),
        (120, "b/third"),
        (180, "b/rest"),
        (240, "b/rest"),
    ]
    assert [np.asarray(submission.priority).tolist() for submission in jobs.submissions(rules)] == [[7, 7], [0, 0, 0]]


def test_fields_in_braces_give_each_value_its_own_queue() -> None:
    jobs = trace("Ann", "bob", "", "Ann", queue=("x", "x", "y", "z_1"))
    assert queues_of(jobs, TraceRules(default=JobRule(queue="team-{user}/{queue}.q"))) == [
        (0, "team-ann/x-q"),
        (60, "team-bob/x-q"),
        (120, "team-unknown/y-q"),
        (180, "team-ann/z-1-q"),
    ]


def test_a_part_of_a_queue_that_is_written_out_stays_as_it_is() -> None:
    assert queues_of(trace("Ann"), TraceRules(default=JobRule(queue="{user}/a.b"))) == [(0, "ann/a.b")]


def test_values_that_would_collide_get_distinct_labels() -> None:
    jobs = trace("vcA", "vca", "vc_a", "vcA")
    queues = [queue for _, queue in queues_of(jobs, TraceRules(default=JobRule(queue="x/{user}")))]
    assert queues[1] == "x/vca"
    assert len(set(queues)) == 3
    assert queues[0] == queues[3]


def test_labels_stay_within_63_characters() -> None:
    labels = labels_of(["a" * 100, "a" * 101, "-" * 5, "é"])
    assert sorted(map(len, labels.values())) == [7 + 6, 7 + 6, 63, 63]
    assert len(set(labels.values())) == 4


def test_a_field_that_the_trace_lacks_is_reported_with_its_place(tmp_path: Path) -> None:
    rules = read(tmp_path, "rules:\n- {when: {partition: gpu}, queue: a/b}\ndefault: {queue: a/b}\n")
    with pytest.raises(ManifestError) as caught:
        trace("ann").submissions(rules)
    assert str(caught.value.problems[0]) == (
        f'{tmp_path}/rules.yaml:4: rules[0].when.partition: the trace has no field "partition"; its fields are user'
    )
    with pytest.raises(ManifestError, match=r'default\.queue: the trace has no field "team"'):
        trace("ann").submissions(TraceRules(default=JobRule(queue="{team}/b")))


def test_jobs_that_no_rule_matches_are_an_error() -> None:
    rules = TraceRules(rules=(JobRule(when={"user": ("a*",)}, queue="a/b"),))
    with pytest.raises(ManifestError) as caught:
        trace("ann", "bob", "cid").submissions(rules)
    assert str(caught.value.problems[0]) == (
        'rules: no rule matches 2 of 3 jobs, such as one with user: "bob"; '
        "add a rule, or `default: {queue: namespace/localqueue}`"
    )


@pytest.mark.parametrize(
    ("fractions", "expected"),
    [
        (GpuFractions.UP, [0, 1, 1, 2]),
        (GpuFractions.NEAREST, [0, 0, 1, 2]),
        (GpuFractions.DOWN, [0, 0, 0, 1]),
        (GpuFractions.THOUSANDTHS, [0, 220, 500, 1500]),
    ],
)
def test_parts_of_a_gpu_are_rounded_as_the_rules_say(fractions: GpuFractions, expected: list[int]) -> None:
    jobs = trace("a", "b", "c", "d", gpu_milli=(0, 220, 500, 1500))
    (batch,) = jobs.submissions(TraceRules(default=JobRule(queue="a/b"), gpu_fractions=fractions))
    assert np.asarray(batch.requests["nvidia.com/gpu"]).tolist() == expected


def test_rules_rename_replace_and_remove_requests() -> None:
    rules = TraceRules(
        rules=(JobRule(when={"user": ("b",)}, queue="a/b", requests={"cpu": 0, "memory": 5}),),
        default=JobRule(queue="a/b"),
        resources={"gpu": None},
    )
    (batch,) = trace("a", "b", gpu_milli=(1000, 1000)).submissions(rules)
    assert {name: np.asarray(request).tolist() for name, request in batch.requests.items()} == {
        "cpu": [1000, 0],
        "memory": [0, 5],
    }


def test_scaling_stretches_arrivals_and_runs_apart() -> None:
    rules = TraceRules(default=JobRule(queue="a/b"), scale=Scale(time=0.5, runs=3))
    (batch,) = trace("a", "b", "c").submissions(rules)
    assert np.asarray(batch.at).tolist() == [0, 30, 60]
    assert np.asarray(batch.run_seconds).tolist() == [1800] * 3


def test_scaling_leaves_jobs_that_run_forever() -> None:
    jobs = made_trace(at=[0, 1], run_seconds=[np.inf, 5], pods=[1, 1], requests={}, drop=())
    assert jobs.scaled(TraceRules(scale=Scale(runs=0))).run_seconds.tolist() == [np.inf, 0]


def test_rules_may_say_when_time_starts() -> None:
    jobs = made_trace(at=[500, 600, 700], run_seconds=[1] * 3, pods=[1] * 3, requests={}, drop=())
    early, late = (jobs.scaled(TraceRules(begin=begin, scale=Scale(time=2))) for begin in (450.0, 550.0))
    assert (early.at.tolist(), early.dropped) == ([100, 300, 500], {})
    assert (late.at.tolist(), late.dropped) == ([100, 300], {"before `begin`": 1})
    with pytest.raises(ManifestError) as caught:
        jobs.scaled(TraceRules(begin=-1e10))
    assert (caught.value.field, caught.value.remedy) == ("begin", "write 500, the time of the first job, or later")


@pytest.mark.parametrize(("scale", "field"), [(Scale(time=1000), "scale.time"), (Scale(runs=1000), "scale.runs")])
def test_times_beyond_a_century_are_refused(scale: Scale, field: str) -> None:
    jobs = made_trace(at=[0, 1e8], run_seconds=[1e8, 5], pods=[1, 1], requests={}, drop=())
    with pytest.raises(ManifestError) as caught:
        jobs.scaled(TraceRules(scale=scale))
    assert caught.value.field == field
    assert caught.value.remedy == "write a smaller factor"


def test_a_sample_is_the_same_each_time_and_another_with_another_seed() -> None:
    rows = sampled(10_000, 0.1, seed=3)
    assert sampled(10_000, 0.1, seed=3).tolist() == rows.tolist()
    assert sampled(10_000, 0.1, seed=4).tolist() != rows.tolist()
    assert 900 < len(rows) < 1100
    # A larger sample has all jobs of a smaller one.
    assert set(rows.tolist()) <= set(sampled(10_000, 0.2, seed=3).tolist())


def test_submissions_contain_only_the_sample() -> None:
    rules = TraceRules(default=JobRule(queue="a/b"), scale=Scale(sample=0.5, seed=1))
    jobs = trace(*"abcdefghij" * 10)
    (batch,) = jobs.submissions(rules)
    assert np.asarray(batch.at).tolist() == [60.0 * row for row in sampled(100, 0.5, seed=1).tolist()]
    assert jobs.scaled(rules).dropped == {"not in the sample": 100 - len(np.asarray(batch.at))}


def test_no_jobs_give_no_submissions() -> None:
    assert trace().submissions(TraceRules(default=JobRule(queue="{user}/b"))) == ()


def test_queues_lack_no_resource_that_jobs_request() -> None:
    rules = TraceRules(default=JobRule(queue="a/b"))
    with pytest.raises(ValueError, match='quota: jobs request "cpu"; add a quota for it'):
        queues_for(trace("a"), rules, quota={"memory": "1Gi"})
    with pytest.raises(ValueError, match="is not a quantity"):
        queues_for(trace("a"), rules, quota={"cpu": "much"})


def test_each_queue_has_a_cluster_queue_in_the_cohort() -> None:
    rules = TraceRules(default=JobRule(queue="{user}/jobs"))
    made = [queue.object for queue in queues_for(trace("ann", "bob"), rules, quota={"cpu": 4}, cohort="all")]
    assert [(other["kind"], other["metadata"]["name"]) for other in made] == [  # type: ignore[index,call-overload]
        ("ResourceFlavor", "default-flavor"),
        ("Namespace", "ann"),
        ("ClusterQueue", "ann.jobs"),
        ("LocalQueue", "jobs"),
        ("Namespace", "bob"),
        ("ClusterQueue", "bob.jobs"),
        ("LocalQueue", "jobs"),
    ]
    assert [other["spec"]["cohortName"] for other in made if other["kind"] == "ClusterQueue"] == ["all"] * 2  # type: ignore[index,call-overload]
