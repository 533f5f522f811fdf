"""`kueuecore plan`, and what is behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kueuecore import ManifestError
from kueuecore.cli import ExitCode, main
from kueuecore.scenarios import Scenario, parse_edit, read_scenario, run_scenario
from kueuecore.scenarios.edits import with_edits
from kueuecore.studies import Plan, Quota, QuotaScale, WaitTarget, plan, processes, quota_scales, run_trial
from tests.command import Ran

EXAMPLE = "examples/scenario/scenario.yaml"
FLEET = "examples/multikueue/scenario.yaml"
QUOTA = "spec.resourceGroups[0].flavors[0].resources[0]"

NODES = """
apiVersion: kueuecore/v1
kind: Scenario
cluster:
  objects:
  - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: old}}
  - {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: new}}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {name: cq}
    spec:
      cohortName: all
      namespaceSelector: {}
      resourceGroups:
      - coveredResources: [cpu, memory, example.com/gpu]
        flavors:
        - name: old
          resources:
          - {name: cpu, nominalQuota: 32}
          - {name: memory, nominalQuota: 50Gi}
          - {name: example.com/gpu, nominalQuota: 4, lendingLimit: 3}
        - name: new
          resources:
          - {name: cpu, nominalQuota: 0}
          - {name: memory, nominalQuota: 0}
          - {name: example.com/gpu, nominalQuota: 0}
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: Cohort
    metadata: {name: all}
    spec:
      resourceGroups:
      - coveredResources: [cpu]
        flavors: [{name: old, resources: [{name: cpu, nominalQuota: 1500m}]}]
  - apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {name: lq, namespace: default}
    spec: {clusterQueue: cq}
work:
- name: train
  job:
    apiVersion: batch/v1
    kind: Job
    metadata: {name: train, labels: {kueue.x-k8s.io/queue-name: lq}}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - {name: main, image: example.com/train, resources: {limits: {cpu: 8, memory: 10Gi, example.com/gpu: 1}}}
  count: 12
  every: 1m
  runs: 10m
"""


@pytest.fixture
def nodes(tmp_path: Path) -> Scenario:
    (tmp_path / "nodes.yaml").write_text(NODES)
    return read_scenario(tmp_path / "nodes.yaml")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str) -> Ran:
        code = main(["plan", *arguments, "--workers", "1"])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def five_minutes() -> Plan:
    return found(read_scenario(EXAMPLE), "p95<=5m", seeds=range(1, 6))


def found(scenario: Scenario, target: str, **others: Any) -> Plan:
    (scale,) = quota_scales(scenario)
    return plan(scenario, WaitTarget.parse(target), scale, **others)


# What is asked for.


@pytest.mark.parametrize(
    ("text", "figure", "seconds"),
    [("p95<=1h", "p95", 3600), (" p99.9 <= 90 ", "p99.9", 90), ("max<=1d", "max", 86400), ("mean<=1.5", "mean", 1.5)],
)
def test_a_target_is_a_figure_and_a_span(text: str, figure: str, seconds: float) -> None:
    assert WaitTarget.parse(text) == WaitTarget(figure, seconds)


@pytest.mark.parametrize("text", ["", "p95", "p95<1h", "p100<=1h", "p0<=1h", "median<=1h", "p95<=soon", "max<=-1"])
def test_an_invalid_target_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(ManifestError, match="write p95<=1h, mean<=10m or max<=2h"):
        WaitTarget.parse(text)


def test_a_job_never_admitted_waits_forever() -> None:
    waits = np.array([5.0] * 18 + [7.0, np.nan])
    assert WaitTarget("p90", 1).wait_of(waits) == 5
    assert WaitTarget("p95", 1).wait_of(waits) == 7
    assert WaitTarget("p96", 1).wait_of(waits) == WaitTarget("mean", 1).wait_of(waits) == inf
    assert WaitTarget("mean", 1).wait_of(waits[:-1]) == pytest.approx(97 / 19)
    assert WaitTarget("p95", 1).wait_of(waits[:0]) == 0


# What varies.


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 300))
def test_quotas_are_shared_in_whole_units_and_none_shrinks_as_the_total_grows(weights: list[int], n: int) -> None:
    quotas = tuple(
        Quota(kind="ClusterQueue", name=str(index), flavor="f", resource="cpu", path="p", nominal=Fraction(weight))
        for index, weight in enumerate(weights)
    )
    scale = QuotaScale(quotas=quotas, flavor="f", resource="cpu")
    shares, more = scale.split(n), scale.split(n + 1)
    assert sum(shares) == n
    assert all(share >= weight * n // sum(weights) for share, weight in zip(shares, weights, strict=True))
    assert all(a <= b for a, b in zip(shares, more, strict=True))
    assert scale.split(sum(weights)) == tuple(weights)


def test_all_resources_of_a_flavor_grow_with_the_scarcest_and_quotas_of_0_stay_0(nodes: Scenario) -> None:
    (scale,) = quota_scales(nodes, flavors=["old"])
    assert (scale.name, float(scale.now)) == ("old/example.com/gpu", 4)
    names = [(quota.kind, quota.resource) for quota in scale.quotas]
    assert names == [("ClusterQueue", name) for name in ("cpu", "memory", "example.com/gpu")] + [("Cohort", "cpu")]
    # 33.5 cores by 6 / 4 are 50.25, of which the cohort has a 22nd.
    assert scale.split(6) == (49, 75, 6, 2)
    values = {(edit.kind, edit.path.rpartition(".")[2]): edit.value for edit in scale.edits(2)}
    assert values["ClusterQueue", "lendingLimit"] == "2"
    assert not [edit for edit in scale.edits(3) if edit.path.endswith("lendingLimit")]
    (cpu,) = quota_scales(nodes, cluster_queues=["cq"], resources=["cpu"], together=True)
    assert [(quota.kind, quota.flavor, quota.resource) for quota in cpu.quotas] == [("ClusterQueue", "old", "cpu")]


def test_a_quota_of_0_has_no_proportion_unless_it_is_the_only_one(nodes: Scenario) -> None:
    with pytest.raises(ManifestError, match="quotas of cq are all 0, so they have no proportions; choose one quota"):
        quota_scales(nodes, flavors=["new"])
    (scale,) = quota_scales(nodes, flavors=["new"], resources=["cpu"])
    assert [edit.value for edit in scale.edits(5)] == ["5"]
    assert run_trial(with_edits(nodes, scale.edits(scale.most)), 1).ending.value == "Complete"


def test_flavors_vary_each_by_itself_or_together(nodes: Scenario) -> None:
    path = "ClusterQueue/cq:spec.resourceGroups[0].flavors[name=new].resources[name=cpu].nominalQuota=8"
    more = with_edits(nodes, [parse_edit(path)])
    assert [(scale.name, len(scale.quotas)) for scale in quota_scales(more)] == [
        ("new/cpu", 1),
        ("old/example.com/gpu", 4),
    ][::-1]
    (together,) = quota_scales(more, together=True)
    assert (together.name, len(together.quotas)) == ("old/example.com/gpu", 5)
    assert together.split(8)[:4] == (64, 100, 8, 16)


def test_a_fleet_has_no_plan() -> None:
    with pytest.raises(
        ManifestError,
        match=r"fleet: this scenario has a fleet, but a plan varies .*; plan each .*`kueuecore sweep SCENARIO",
    ):
        quota_scales(read_scenario(FLEET))


# What is found.


def test_the_answer_is_the_smallest_quota_that_meets_the_target_with_all_that_are_larger(nodes: Scenario) -> None:
    (scale,) = quota_scales(nodes, flavors=["old"])
    target = WaitTarget.parse("p75<=4m")
    waits = {n: run_scenario(with_edits(nodes, scale.edits(n))).jobs for n in range(1, 13)}
    p75 = {}
    for n, jobs in waits.items():
        ordered = sorted(inf if job.wait_ns is None else job.wait_ns / 1e9 for job in jobs)
        p75[n] = ordered[8]
    smallest = min(n for n in p75 if all(p75[number] <= 240 for number in range(n, 13)))
    for now in (1, 4, 11):
        edits = [parse_edit(f"ClusterQueue/cq:{path}={row}") for path, row in _scaled(now)]
        other = with_edits(nodes, edits)
        (scale,) = quota_scales(other, flavors=["old"])
        answer = plan(other, target, scale, seeds=[1]).answer
        assert answer is not None
        assert (answer.n_units, answer.wait) == (smallest, p75[smallest])
    assert 1 < smallest < 11


def _scaled(n: int) -> list[tuple[str, object]]:
    resources = "spec.resourceGroups[0].flavors[0].resources"
    gpus = [(f"{resources}[2].lendingLimit", 0), (f"{resources}[2].nominalQuota", n)]
    return [*gpus, (f"{resources}[0].nominalQuota", 8 * n), (f"{resources}[1].nominalQuota", f"{25 * n / 2:g}Gi")]


def test_where_more_quota_makes_waits_longer_the_answer_lies_above(five_minutes: Plan) -> None:
    it = five_minutes
    assert it.answer is not None
    assert it.answer.n_units == 12
    tried = {point.n_units: it.meets(point) for point in it.points}
    assert (tried[10], tried[11]) == (True, False)
    assert {9, 13, 14, 15} <= tried.keys()
    assert all(meets == (n >= 12 or n == 10) for n, meets in tried.items())
    assert [(a.n_units, b.n_units) for a, b in it.rises] == [(10, 11)]
    assert [point.n_units for point in it.smaller] == [10]


def test_each_point_is_that_of_the_scenario_with_this_quota() -> None:
    it = found(read_scenario(EXAMPLE), "p95<=5m", seeds=[3, 1])
    point = next(point for point in it.points if point.n_units == 8)
    outcomes = [run_scenario(read_scenario(EXAMPLE, seed=seed)) for seed in (3, 1)]
    assert point.waits == tuple(outcome.all.p95 for outcome in outcomes)
    assert point.n_never == (0, 0)


def test_the_share_of_the_seeds_decides_which_of_their_waits_counts(five_minutes: Plan) -> None:
    half, most = five_minutes, found(read_scenario(EXAMPLE), "p95<=5m", seeds=range(1, 6), share=0.9)
    for point in half.points:
        assert point.wait == sorted(point.waits)[2]
    assert (half.n_needed, most.n_needed) == (3, 5)
    assert half.points[0].wait == inf
    for point in most.points:
        assert point.wait == max(point.waits)
    assert most.answer is not None
    assert half.answer is not None
    assert most.answer.n_units >= half.answer.n_units


def test_the_plan_does_not_depend_on_the_executor() -> None:
    scenario = read_scenario(EXAMPLE, edits=[parse_edit("work[0].count=10")])
    plain = found(scenario, "mean<=1m", seeds=[1, 2])
    with ThreadPoolExecutor(3) as threads:
        assert found(scenario, "mean<=1m", seeds=[1, 2], executor=threads) == plain
    with processes(2) as pool:
        assert found(scenario, "mean<=1m", seeds=[1, 2], executor=pool) == plain


def test_quotas_are_multiples_of_the_step(nodes: Scenario) -> None:
    (scale,) = quota_scales(nodes, flavors=["old"])
    it = plan(nodes, WaitTarget.parse("max<=1s"), scale, seeds=[1], step=4)
    assert it.answer is not None
    assert it.answer.n_units == 12
    assert all(point.n_units % 4 == 0 for point in it.points)


def test_a_target_that_is_met_without_quota_needs_none() -> None:
    edits = [parse_edit(f"ClusterQueue/team-*:{QUOTA}.nominalQuota=40")]
    scenario = read_scenario(EXAMPLE, edits=edits)
    (scale,) = quota_scales(scenario, cluster_queues=["team-a"])
    it = plan(scenario, WaitTarget.parse("p95<=1h"), scale, cluster_queues=["team-a"], seeds=[1])
    assert it.answer is not None
    assert it.answer.n_units == 0


def test_seeds_share_and_step_must_be_possible() -> None:
    scenario = read_scenario(EXAMPLE)
    with pytest.raises(ValueError, match="seeds"):
        found(scenario, "p95<=1h", seeds=[1, 1])
    for wrong in ({"share": 0}, {"share": 1.1}, {"step": 0}):
        with pytest.raises(ValueError, match="share must be"):
            found(scenario, "p95<=1h", **wrong)


# The command.


def test_json_has_everything(run: Callable[..., Ran]) -> None:
    ran = run(EXAMPLE, "--wait", "p95<=5m", "--cluster-queue", "team-b", "--seeds", "2", "-o", "json")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    document = json.loads(ran.out)
    assert document["target"] == {"figure": "p95", "seconds": 300, "share": 0.5}
    assert document["seeds"] == [1, 2]
    (only,) = document["plans"]
    quota = {"kind": "ClusterQueue", "name": "team-b", "flavor": "default", "resource": "cpu", "now": 4, "needed": 6}
    assert only["quotas"] == [quota]
    assert [point["meets"] for point in only["points"] if point["quota"] in (5, 6)] == [False, True]
    nothing = only["points"][0]
    assert (nothing["quota"], nothing["waitSeconds"], nothing["neverAdmittedBySeed"]) == (0, None, [10, 10])
    # Its jobs need six cores, and it may borrow four of its own and team-a's: only team-b's jobs count.
    assert all(point["neverAdmittedBySeed"] == [0, 0] for point in only["points"] if point["quota"] >= 2)


def test_if_no_quota_is_enough_the_command_says_so(tmp_path: Path, run: Callable[..., Ran]) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(NODES)
    # A ClusterQueue has one head a cycle, and here jobs come faster than cycles go.
    edits = ["--set", "cluster.cycle=10s", "--set", "work[0].every=7s"]
    ran = run(str(path), "--wait", "max<=1s", "--flavor", "old", "--seeds", "1", *edits)
    assert ran.code == ExitCode.FOUND
    lines = ran.out.splitlines()
    assert lines[2] == "old/example.com/gpu: no quota meets it: max is 33s even with unlimited quota"
    assert "jobs wait for something else" in lines[3]
    assert lines[-1].split()[:2] == ["unlimited", "33s"]
    assert (
        json.loads(run(str(path), "--wait", "max<=1s", "--flavor", "old", *edits, "-o", "json").out)["plans"][0][
            "needed"
        ]
        is None
    )


def test_jobs_that_no_quota_admits_are_named_with_their_reason(tmp_path: Path, run: Callable[..., Ran]) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(NODES.replace("limits: {cpu: 8, memory: 10Gi", "limits: {cpu: 8, memory: 60Gi"))
    ran = run(str(path), "--wait", "p95<=1h", "--flavor", "old", "--resource", "cpu", "--seeds", "1")
    assert ran.code == ExitCode.FOUND
    lines = ran.out.splitlines()
    assert lines[2] == (
        "old/cpu: no quota meets it, as 12 of the jobs are never admitted even with unlimited quota, because:"
    )
    assert "insufficient quota for memory in flavor old" in lines[3]
    assert "(60Gi) > maximum capacity (50Gi)" in lines[3]


def test_jobs_that_the_target_leaves_out_are_noted(run: Callable[..., Ran]) -> None:
    # The ten large ones of sixty: seven tenths of the jobs are small.
    ran = run(EXAMPLE, "--wait", "p70<=30m", "--seeds", "1")
    assert ran.code == ExitCode.OK
    assert "note: 10 of the jobs are never admitted with 4\n" in ran.out


def test_only_the_quota_of_the_manifests_is_marked_as_now(nodes: Scenario) -> None:
    (scale,) = quota_scales(nodes, flavors=["old"])
    # The cohort has a core and a half.
    assert not any(scale.is_now(n) for n in range(10))
    (scale,) = quota_scales(nodes, cluster_queues=["cq"], flavors=["old"])
    assert [n for n in range(10) if scale.is_now(n)] == [4]


def test_a_timetable_that_sets_what_is_planned_is_a_warning(run: Callable[..., Ran]) -> None:
    week = "examples/working-week/scenario.yaml"
    ran = run(
        week, "--wait", "p95<=10h", "--cluster-queue", "people", "--seeds", "1", "--set", "until=2d", "-o", "json"
    )
    assert "warning: timetable[1] sets the quota of ClusterQueue people, which this plan varies" in ran.err
    assert "nightly" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--wait", "p95"], "write p95<=1h, mean<=10m or max<=2h"),
        (["--wait", "p95<=1h", "--cluster-queue", "x"], 'no ClusterQueue "x" has quota; write one of team-a, team-b'),
        (["--wait", "p95<=1h", "--flavor", "x"], 'no flavor "x" has quota; write one of default'),
        (["--wait", "p95<=1h", "--resource", "x"], 'no resource "x" has quota; write one of cpu'),
        (["--wait", "p95<=1h", "--share", "0"], "'0' is not a number above 0 and up to 1"),
        (["--wait", "p95<=1h", "--share", "1.01"], "is not a number above 0 and up to 1"),
        (["--wait", "p95<=1h", "--step", "0"], "is not a whole number"),
        ([], "--wait"),
    ],
)
def test_bad_input_is_refused_with_a_remedy(run: Callable[..., Ran], arguments: list[str], message: str) -> None:
    ran = run(EXAMPLE, *arguments)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert message.replace("'", "").replace('"', "") in ran.err.replace("'", "").replace('"', "")


def test_nothing_waits_if_no_job_arrives(run: Callable[..., Ran]) -> None:
    ran = run(EXAMPLE, "--wait", "p95<=1h", "--cluster-queue", "team-b", "--set", "work[1]=null")
    assert ran.code == ExitCode.BAD_INPUT
    assert "no job arrives at team-b, so none waits; give the scenario work there" in ran.err


def test_the_page_has_the_curve(tmp_path: Path, run: Callable[..., Ran]) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "out.html"
    ran = run(EXAMPLE, "--wait", "p95<=5m", "--seeds", "2", "--report", str(page), "-o", "json")
    assert ran.code == ExitCode.OK
    text = page.read_text()
    assert text.count("<svg") == 1
    needed = json.loads(ran.out)["plans"][0]["needed"]
    assert f"{needed} is the smallest quota with which 95 of 100 jobs wait 5m00s or less." in text
