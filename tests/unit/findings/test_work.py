"""Findings that take several workloads: circles of preemption, starvation, and the smallest world that shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from kueuecore import Configuration, Engine, World, parse_manifests, settle
from kueuecore.findings import Finding, check
from kueuecore.findings.building import facts_of
from kueuecore.findings.effort import Effort
from kueuecore.findings.recurring import starved
from kueuecore.manifests import JsonObject
from kueuecore.shrinking import shrunk
from kueuecore.steady_state import Ending
from tests.quota_manifests import flavor, local_queue, namespace, node, queue, workload

POLICIES = """preemption:
  withinClusterQueue: LowerPriority
  reclaimWithinCohort: Any
  borrowWithinCohort: {policy: LowerPriority}"""
NOISE = queue("z", cohort="other") + local_queue("z") + workload("idle", "z", 1) + flavor("spot")
# The first world of docs/anomalies.md.
LOOP = (
    flavor()
    + queue("left", "nominalQuota: 2", cohort="both", spec=POLICIES)
    + queue("right", "nominalQuota: 1", cohort="both")
    + local_queue("left")
    + local_queue("right")
    + workload("small", "left", 2)
    + workload("large", "left", 3, priority=1)
    + workload("guest", "right", 2, priority=2)
)
HUNGRY = flavor() + queue("a") + local_queue("a")
STARVATION = HUNGRY + workload("s1", "a", 2) + workload("s2", "a", 2) + workload("big", "a", 4)


def only(text: str, rule: str) -> Finding:
    (finding,) = check(parse_manifests(text), select=[rule])
    return finding


def names(objects: Sequence[JsonObject]) -> list[str]:
    return [f"{object_['kind']} {object_['metadata']['name']}" for object_ in objects]  # type: ignore[index,call-overload]


def ending(objects: Sequence[JsonObject]) -> Ending:
    """How the objects settle by themselves."""
    engine = Engine()
    World.of(objects).apply_to(engine, now=0)
    return settle(engine, now=0).ending


def changed(objects: Sequence[JsonObject], old: str, new: str) -> list[JsonObject]:
    return [json.loads(json.dumps(object_).replace(old, new)) for object_ in objects]


def test_a_preemption_loop_is_shown_by_its_smallest_world() -> None:
    finding = only(NOISE + LOOP, "preemption-loop")
    assert str(finding.object) == 'Workload "team/small"'
    assert names(finding.world) == [
        "ResourceFlavor default",
        "ClusterQueue left",
        "ClusterQueue right",
        "LocalQueue left",
        "LocalQueue right",
        "Workload small",
        "Workload large",
        "Workload guest",
    ]
    assert "team/large preempts team/small (InClusterQueue)" in finding.problem.message


def test_every_object_of_the_smallest_world_is_needed() -> None:
    world = only(NOISE + LOOP, "preemption-loop").world
    assert ending(world) is Ending.REPEATING
    smaller = [[*world[:i], *world[i + 1 :]] for i in range(len(world))]
    assert {ending(number) for number in smaller} == {Ending.SETTLED}


def test_each_remedy_for_a_loop_ends_it() -> None:
    finding = only(LOOP, "preemption-loop")
    assert finding.problem.remedy == (
        "any of these would stop it: preemption.withinClusterQueue: Never in ClusterQueue left; "
        "preemption.borrowWithinCohort.policy: Never in ClusterQueue left"
    )
    for field in ("withinClusterQueue", "policy"):
        assert ending(changed(finding.world, f'"{field}": "LowerPriority"', f'"{field}": "Never"')) is Ending.SETTLED


def test_preemption_that_ends_is_not_a_loop() -> None:
    text = LOOP.replace("borrowWithinCohort: {policy: LowerPriority}", "borrowWithinCohort: {policy: Never}")
    assert check(parse_manifests(text), select=["preemption-loop"]) == ()


def test_a_large_workload_starves_behind_recurring_small_ones() -> None:
    finding = only(NOISE + STARVATION, "starvation")
    assert str(finding.object) == 'Workload "team/big"'
    assert finding.problem.message == (
        "it fits, but is never admitted if each of team/s1, team/s2 is followed by another like it when it ends; these "
        "objects suffice: ResourceFlavor default, ClusterQueue a, LocalQueue team/a, Workload team/s1, "
        "Workload team/s2, Workload team/big"
    )
    assert "queueingStrategy: StrictFIFO in ClusterQueue a" in finding.problem.remedy


def test_a_workload_that_needs_a_whole_node_starves_behind_those_that_share_it() -> None:
    levels = "{levels: [{nodeLabel: kubernetes.io/hostname}]}"
    hosts = f"---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata: {{name: hosts}}\nspec: {levels}\n"
    fast = flavor(spec="{topologyName: hosts, nodeLabels: {pool: fast}}")
    text = hosts + fast + node("n1", "{pool: fast, kubernetes.io/hostname: n1}") + queue("a", "nominalQuota: 40")
    text += local_queue("a") + workload("s1", "a", 2) + workload("s2", "a", 2)
    assert check(parse_manifests(text), select=["starvation"]) == ()
    finding = only(text + workload("whole", "a", 4, request="{required: kubernetes.io/hostname}"), "starvation")
    assert str(finding.object) == 'Workload "team/whole"'
    assert "Node n1" in names(finding.world)


@pytest.mark.parametrize(
    "spec", ["queueingStrategy: StrictFIFO", "preemption: {withinClusterQueue: LowerOrNewerEqualPriority}"]
)
def test_each_remedy_for_starvation_ends_it(spec: str) -> None:
    text = STARVATION.replace("namespaceSelector: {}", f"namespaceSelector: {{}}\n  {spec}")
    assert check(parse_manifests(text), select=["starvation"]) == ()


@pytest.mark.parametrize("at", ["", "namespace: team"])
def test_a_workload_starves_in_a_local_queue_of_weight_zero_until_that_has_weight(at: str) -> None:
    usage = "admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}"
    last = local_queue("last", "a", spec="fairSharing: {weight: 0}")
    text = flavor() + queue("a", spec=usage) + local_queue("a") + last + workload("w", "last", 4)
    text += workload("o1", "a", 4) + workload("o2", "a", 4)
    text = text.replace("namespace: team", at)
    kind = "apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration"
    shared = Configuration.parse(f"{{{kind}, admissionFairSharing: {{usageHalfLifeTime: 1h}}}}")
    (finding,) = check(parse_manifests(text), configuration=shared, select=["starvation"])
    assert f"fairSharing.weight: 1 in LocalQueue {'team/' if at else ''}last" in finding.problem.remedy
    text = text.replace("weight: 0", "weight: 1")
    assert check(parse_manifests(text), configuration=shared, select=["starvation"]) == ()


def test_waiting_for_a_turn_is_not_starvation() -> None:
    text = HUNGRY + "".join(workload(name, "a", 2) for name in ("w1", "w2", "w3", "w4", "w5"))
    assert check(parse_manifests(text), select=["starvation"]) == ()


def test_a_low_priority_starves_behind_a_recurring_high_one() -> None:
    text = HUNGRY + workload("low", "a", 4) + workload("h1", "a", 4, priority=1) + workload("h2", "a", 4, priority=1)
    facts = facts_of(parse_manifests(text), configuration=None)
    assert starved(facts, Effort(10_000)) == {("team", "low"): frozenset({("team", "h1"), ("team", "h2")})}


def test_starvation_is_found_in_one_of_many_trees() -> None:
    """Only what shares a tree with the workload is played, so a hundred others are no hindrance."""
    others = "".join(queue(f"q{i}") + local_queue(f"q{i}") + workload(f"w{i}", f"q{i}", 1) for i in range(110))
    assert str(only(others + STARVATION, "starvation").object) == 'Workload "team/big"'


def test_a_finding_about_a_job_names_its_file_and_its_world_has_the_job() -> None:
    job = """---
apiVersion: batch/v1
kind: Job
metadata: {name: big, namespace: team, labels: {kueue.x-k8s.io/queue-name: a}}
spec:
  parallelism: 4
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
"""
    finding = only(HUNGRY + workload("s1", "a", 2) + workload("s2", "a", 2) + job, "starvation")
    assert str(finding.object) == 'Job "team/big"'
    assert "Job big" in names(finding.world)


def test_workloads_in_a_namespace_missing_from_a_dump_have_no_findings() -> None:
    text = STARVATION.replace("name: big", "name: z-big")  # nor does it say which came first, so names decide
    assert check(parse_manifests(text), trusted=True, select=["KC6"]) == ()
    (finding,) = check(parse_manifests(text + namespace("team")), trusted=True, select=["KC6"])
    assert str(finding.object) == 'Workload "team/z-big"'


def test_a_blocked_queue_reports_how_many_wait_behind_its_head() -> None:
    text = flavor() + queue("a", spec="queueingStrategy: StrictFIFO") + local_queue("a")
    text += "".join(workload(name, "a", cpus) for name, cpus in (("ok", 1), ("huge", 5), ("next", 1), ("last", 1)))
    finding = only(text, "blocked-strict-fifo")
    assert finding.problem.message.startswith(
        "it never fits in ClusterQueue a, and with StrictFIFO it blocks all behind it, now 2 workloads: "
        "couldn't assign flavors"
    )


def test_shrinking_keeps_the_order_and_only_needed_parts() -> None:
    assert shrunk("abcdefgh", lambda some: {"b", "g"} <= set(some), max_tries=100) == ("b", "g")
    assert len(shrunk(range(64), lambda some: 63 in some, max_tries=3)) == 32


# What a check costs is counted, not timed.


def many(n: int, *, kinds: int) -> str:
    """Four ClusterQueues of one cohort, and workloads that ask for more than there is."""
    spec = "preemption: {withinClusterQueue: LowerPriority}"
    queues = "".join(queue(f"q{i}", cohort="all", spec=spec) + local_queue(f"q{i}") for i in range(4))
    waiting = (workload(f"w{i}", f"q{i % 4}", 1 + i * 7 % kinds, priority=i % 3) for i in range(n))
    return flavor() + queues + "".join(waiting)


def counted(monkeypatch: pytest.MonkeyPatch, method: str) -> list[int]:
    """A list that grows with each call of a method of engines."""
    real, calls = getattr(Engine, method), [0]

    def counting(*args: object, **named: object) -> object:
        calls[0] += 1
        return real(*args, **named)

    monkeypatch.setattr(Engine, method, counting)
    return calls


def test_workloads_that_ask_for_the_same_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, "what_if")
    check(parse_manifests(many(80, kinds=3)), select=["never-fits"])
    assert calls == [12]


def test_starvation_is_played_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, "cycle")
    facts = facts_of(parse_manifests(many(40, kinds=5)), configuration=None)
    effort = Effort(300)
    assert starved(facts, effort) == {}
    assert effort.is_spent
    assert calls[0] <= 100


def test_a_check_says_what_it_has_not_tried_to_the_end() -> None:
    sentences: list[str] = []
    check(parse_manifests(many(101, kinds=5)), select=["starvation"], unfinished=sentences.append)
    assert sentences == [
        "KC604 starvation was not tried to the end: too many workloads share quota; check fewer of them at a time"
    ]


def test_a_state_returns_when_workloads_take_the_places_of_others_like_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, "cycle")
    text = HUNGRY + "".join(workload(f"s{i:02}", "a", 2) for i in range(40)) + workload("z", "a", 4)
    assert str(only(text, "starvation").object) == 'Workload "team/z"'
    assert calls[0] < 1_000
