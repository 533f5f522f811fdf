"""`kueuecore explain`, and what is behind it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore import Configuration, Engine
from kueuecore.answers import Explanation, Fate, explain, obstacles
from kueuecore.answers.obstacles import rule_link, why_it_borrows, why_so
from kueuecore.cli import ExitCode, main
from kueuecore.errors import UnknownObjectError
from kueuecore.steady_state import settle
from kueuecore.world import World
from tests.command import Ran
from tests.topologies import HOST, NOW, RACK, flavor, kueue, namespace, node, pod_set, queue, topology

Json = dict[str, Any]
FAIR = """
{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration,
  fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}}
"""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def run(*arguments: str) -> Ran:
        code = main(["explain", *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def workload(name: str, on: str, cpu: int, priority: int = 0, age: int = 0) -> Json:
    made = kueue("Workload", name, "ns", queueName=on, priority=priority, podSets=[pod_set(cpu=cpu)])
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:{10 - age:02}:00Z"
    return made


def cohort(**ours: Any) -> list[Json]:
    """Two ClusterQueues with 10 CPUs each in a cohort."""
    plain = kueue("ResourceFlavor", "f")
    return [
        namespace(),
        plain,
        *queue("a", 10, ("f",), cohortName="x", **ours),
        *queue("b", 10, ("f",), cohortName="x"),
    ]


def explained(objects: list[Json], name: str, configuration: str = "") -> Explanation:
    engine = Engine(Configuration.parse(configuration) if configuration else None)
    world = World.of(objects)
    world.apply_to(engine, now="2026-01-01T01:00:00Z")
    settle(engine, now="2026-01-01T01:00:00Z")
    return explain(engine, name, namespace="ns")


def fates(found: Explanation) -> dict[str, Fate]:
    return {holder.name: holder.fate for holder in found.searches[-1].holders}


def test_without_preemption_policies_every_holder_is_spared_by_policy() -> None:
    given = [workload("old", "a", 8), workload("other", "b", 6), workload("w", "a", 5, priority=9)]
    found = explained([*cohort(), *given[:2]], "old")
    assert found.now.outcome.value == "Fits"
    assert found.pod_sets[0].trials[0].is_chosen
    late = [*cohort(), workload("old", "a", 8, 9), workload("other", "b", 6, 9), workload("w", "a", 8)]
    found = explained(late, "w")
    assert fates(found) == {"old": Fate.POLICY, "other": Fate.POLICY}
    assert [obstacle.text for obstacle in obstacles(found)] == ["Cohort x has 20 cpu, of which 14 are in use: 2 short"]


def test_holders_of_higher_priority_or_age_are_spared() -> None:
    preemption = {"withinClusterQueue": "LowerOrNewerEqualPriority", "reclaimWithinCohort": "Any"}
    given = [
        *cohort(preemption=preemption),
        workload("high", "a", 4, priority=5, age=9),
        workload("older", "a", 3, age=8),
        workload("other", "b", 10, priority=9, age=9),
        workload("w", "a", 7),
    ]
    found = explained(given, "w")
    assert fates(found) == {"high": Fate.PRIORITY, "older": Fate.OLDER, "other": Fate.WITHIN_NOMINAL}


def test_a_borrower_is_the_victim_when_a_queue_reclaims_its_quota() -> None:
    given = [*cohort(preemption={"reclaimWithinCohort": "Any"}), workload("big", "b", 9, age=9)]
    given += [workload("borrower", "b", 6, priority=-1, age=8)]
    objects = [*given, workload("w", "a", 10)]
    engine = Engine()
    World.of(given).apply_to(engine, now="2026-01-01T01:00:00Z")
    settle(engine, now="2026-01-01T01:00:00Z")
    engine.apply([objects[-1]], now="2026-01-01T01:00:00Z")
    found = explain(engine, "w", namespace="ns")
    assert found.now.outcome.value == "Preempts"
    assert fates(found) == {"big": Fate.NOT_NEEDED, "borrower": Fate.VICTIM}


def test_quota_withheld_by_a_lending_limit_is_an_obstacle() -> None:
    group = {"name": "cpu", "nominalQuota": 10, "lendingLimit": 2}
    objects = cohort()
    objects[4]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0] = group
    found = explained([*objects, workload("w", "a", 15)], "w")
    (asked,) = found.pod_sets[0].trials[0].asked
    assert (asked.verdict, asked.potential) == ("ExceedsMaximum", "12")
    assert [quota.free for quota in asked.kept] == ["8"]
    assert "more than ClusterQueue a could get if nothing else ran" in obstacles(found)[0].text


def test_the_report_says_how_much_is_borrowed_from_which_cohort(run: Callable[..., Ran]) -> None:
    found = explained([*cohort(), workload("held", "a", 8), workload("w", "a", 6)], "w")
    sentence = "ClusterQueue a has 10 cpu and uses 8: with 6 more it borrows 4 in all from Cohort x (02 §2.4)"
    assert why_it_borrows(found.pod_sets[0].trials[0]) == sentence
    alone = explained([*cohort(), workload("held", "a", 8)], "held")
    assert why_it_borrows(alone.pod_sets[0].trials[0]) == ""
    ran = run("-q", str(ROOT / "examples" / "two-teams"), "team-b/job-lint-ae481")
    why = "with 200m more it borrows 1200m in all from Cohort company (02 §2.4)"
    assert f"ClusterQueue team-b has 200m cpu and uses 1200m: {why}" in ran.out


def test_pods_that_cannot_be_placed_are_explained_by_level(run: Callable[..., Ran], tmp_path: Path) -> None:
    asked = kueue("Workload", "w", "ns", queueName="q", podSets=[pod_set(count=3, required=RACK)])
    objects = [topology(RACK, HOST), flavor(nodeLabels={RACK: "r"}), node("n", "r", cpu=2), *queue(), asked]
    path = tmp_path / "state.yaml"
    path.write_text("\n---\n".join(map(json.dumps, [namespace(), *objects])), encoding="utf-8")
    ran = run(str(path), "w")
    assert ran.code == ExitCode.OK
    assert "NOT PLACED" in ran.out
    assert "08 §10" in ran.out


def test_a_preempted_workload_names_its_preemptor(run: Callable[..., Ran], tmp_path: Path) -> None:
    preemption = {"withinClusterQueue": "LowerPriority"}
    low = workload("low", "a", 10)
    low["status"] = {
        "conditions": [
            {
                "type": "Preempted",
                "status": "True",
                "reason": "InClusterQueue",
                "lastTransitionTime": NOW,
                "message": "Preempted to accommodate a workload (UID: high-uid, JobUID: UNKNOWN) due to prioritization",
            }
        ]
    }
    high = workload("high", "a", 10, priority=9)
    high["metadata"]["uid"] = "high-uid"
    alone = [entry for entry in cohort(preemption=preemption) if entry["metadata"]["name"] != "b"]
    path = tmp_path / "state.yaml"
    path.write_text("\n---\n".join(map(json.dumps, [*alone, low, high])), encoding="utf-8")
    ran = run(str(path), "ns/low", "-o", "json", "--trusted")
    found = json.loads(ran.out)
    assert found["workload"]["preemptedBy"] == "ns/high"
    assert found["searches"][-1]["holders"][0]["link"] == "docs/rules/04-preemption.md"
    assert run(str(path), "ns/low", "--trusted", "--fail-on-pending").code == ExitCode.PENDING


def test_each_limit_that_binds_says_how_much_is_short() -> None:
    group = {"name": "cpu", "nominalQuota": 3, "borrowingLimit": 2}
    objects = cohort()
    objects[2]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0] = group
    objects += [workload("h", "b", 10, age=9), workload("i", "a", 2, age=8), workload("w", "a", 4)]
    found = explained(objects, "w")
    assert [obstacle.text for obstacle in obstacles(found)] == [
        "ClusterQueue a has 3 cpu, may borrow 2 and uses 2: 1 short",
        "Cohort x has 13 cpu, of which 12 are in use: 3 short",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"stopPolicy": "Hold"}, "ClusterQueue a: Can't admit new workloads: is stopped."),
        ({"namespaceSelector": {"matchLabels": {"no": "body"}}}, "namespace doesn't match ClusterQueue selector"),
    ],
)
def test_an_obstacle_before_any_flavor_is_tried_is_shown(change: Json, expected: str) -> None:
    objects = cohort()
    objects[2]["spec"] |= change
    (obstacle,) = obstacles(explained([*objects, workload("w", "a", 1)], "w"))
    assert expected in obstacle.text.replace("Workload ", "")


def test_a_workload_in_backoff_says_until_when(run: Callable[..., Ran], tmp_path: Path) -> None:
    later = workload("w", "a", 1)
    until = "2026-01-01T03:00:00Z"
    evicted = {
        "type": "Evicted",
        "status": "True",
        "reason": "PodsReadyTimeout",
        "message": "",
        "lastTransitionTime": NOW,
    }
    requeued = {**evicted, "type": "Requeued", "status": "False"}
    later["status"] = {"requeueState": {"count": 2, "requeueAt": until}, "conditions": [evicted, requeued]}
    path = tmp_path / "state.yaml"
    path.write_text("\n---\n".join(map(json.dumps, [*cohort(), later])), encoding="utf-8")
    ran = run(str(path), "w", "--trusted", "--now", "2026-01-01T00:30:00Z")
    assert f"it is not retried before {until}" in ran.out


def test_an_untried_flavor_says_why() -> None:
    asked = kueue("Workload", "w", "ns", queueName="a", podSets=[pod_set(cpu=1)])
    asked["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["example.com/x"] = 1
    found = explained([*cohort(), asked], "w")
    assert [obstacle.text for obstacle in obstacles(found)] == [
        "ClusterQueue a has no quota for example.com/x in any flavor"
    ]
    assert not found.pod_sets[0].trials
    assert found.pod_sets[0].not_tried == ("f",)


@pytest.mark.parametrize("fair", [False, True])
def test_every_verdict_cites_a_section_of_the_rules(fair: bool) -> None:
    given = [
        *cohort(preemption={"withinClusterQueue": "LowerPriority"}),
        workload("h", "a", 10, 9),
        workload("w", "a", 15),
    ]
    found = explained(given, "w", FAIR if fair else "")
    holder = found.searches[-1].holders[0]
    for fate in Fate:
        object.__setattr__(holder, "fate", fate)
        rule, why = why_so(holder, found, found.searches[-1])
        section = rule.partition("§")[2]
        text = (ROOT / rule_link(rule)).read_text(encoding="utf-8")
        assert f"# {section}." in text or f"# {section} " in text, rule
        assert why


def test_an_unknown_workload_is_an_error(run: Callable[..., Ran]) -> None:
    ran = run("examples/what-if", "lab/nobody")
    assert ran.code == ExitCode.BAD_INPUT
    assert "there is no workload" in ran.err
    with pytest.raises(UnknownObjectError):
        explain(Engine(), "w", namespace="ns")


def limit_range(**limits: Any) -> Json:
    metadata = {"name": "limits", "namespace": "ns"}
    spec = {"limits": [{"type": "Container", **limits}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}


def test_a_limit_range_violation_is_shown_once_with_the_message_of_the_status(
    run: Callable[..., Ran], tmp_path: Path
) -> None:
    # The maximum is the default limit, too: a cycle finds the request above it, before it looks at the maximum.
    objects = [*cohort(), limit_range(max={"cpu": "2"}), workload("w", "a", 3)]
    found = explained(objects, "w")
    assert found.now.message.startswith("resources validation failed: ")
    text = (
        "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: "
        'Invalid value: ["cpu"]: requests must not be above the limitRange max'
    )
    assert found.workload.message == text
    assert [(obstacle.rule, obstacle.text) for obstacle in obstacles(found)] == [("05 §6.1", text)]
    (tmp_path / "in.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}), "utf-8")
    ran = run("-q", str(tmp_path / "in.json"), "w")
    assert "validation failed" not in ran.out
    assert ran.out.count(text) == 2
    assert "as the head of a cycle" not in ran.out


def test_a_message_only_the_cycle_gives_is_shown_next_to_the_status() -> None:
    found = explained([*cohort(), limit_range(default={"cpu": "2"}), workload("w", "a", 3)], "w")
    assert found.workload.message == "Workload is pending evaluation in the scheduling queue"
    assert not found.repeats_status
    assert [obstacle.text for obstacle in obstacles(found)] == [found.now.message]
