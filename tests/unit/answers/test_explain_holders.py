"""Who holds what a workload needs: slices, many holders, places on nodes, and who is ahead in the queue."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import Configuration, Engine
from kueuecore.answers import Explanation, Fate, explain, obstacles, unblock
from kueuecore.cli import main
from kueuecore.steady_state import settle
from kueuecore.world import World
from tests.command import Ran
from tests.topologies import HOST, Json, flavor, kueue, namespace, node, pod, pod_set, queue, topology, workload

NOW = "2026-01-01T01:00:00Z"
KIND = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
LOWER = {"withinClusterQueue": "LowerPriority"}


def engine_of(objects: list[Json], *late: Json, configuration: Json | None = None) -> Engine:
    """The objects, settled, and then the late ones."""
    gates = {"ElasticJobsViaWorkloadSlices": True}
    text = json.dumps({**KIND, **(configuration or {})})
    engine = Engine(Configuration.parse(text, feature_gates=gates))
    World.of([namespace(), *objects]).apply_to(engine, now=NOW)
    settle(engine, now=NOW)
    for entry in late:
        engine.apply([entry], now=NOW)
        settle(engine, now=NOW)
    return engine


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Ran]:
    def run(engine: Engine, name: str, *arguments: str, command: str = "explain") -> Ran:
        (tmp_path / "state.engine").write_bytes(engine.save())
        code = main([command, "-q", str(tmp_path / "state.engine"), name, *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def of(
    name: str, cpu: int, *, count: int = 1, priority: int = 0, lq: str = "q", minute: int = 0, **details: Json
) -> Json:
    made = workload(name, pod_set(count=count, cpu=cpu), lq=lq, priority=priority, **details)
    made["metadata"]["creationTimestamp"] = f"2026-01-01T00:{minute:02}:00Z"
    return made


# Slices.


def slices(quota: int, taken: int, larger: int) -> Engine:
    """`old` has 4 CPUs of the queue, `top` some; `new` replaces `old`."""
    elastic = {"kueue.x-k8s.io/elastic-job": "true"}
    replaces = {"kueue.x-k8s.io/workload-slice-replacement-for": "ns/old"}
    old = of("old", 1, count=4, annotations=elastic, priority=5)
    top = of("top", taken, priority=9, minute=1)
    new = of("new", 1, count=larger, priority=5, minute=2, annotations={**elastic, **replaces})
    return engine_of([kueue("ResourceFlavor", "f"), *queue("q", quota, ("f",), preemption=LOWER), old, top], new)


def test_a_slice_that_scales_up_needs_only_the_difference(run: Callable[..., Ran]) -> None:
    engine = slices(8, 4, 7)
    found = explain(engine, "new", namespace="ns")
    assert "3 more needed" in found.now.message
    assert [obstacle.text for obstacle in obstacles(found)] == [
        "ClusterQueue q has 8 cpu, of which 4 are in use: 3 short"
    ]
    (level,) = found.pod_sets[0].trials[0].asked[0].levels
    assert (level.usage, level.needed, level.available, level.missing) == ("4", "7", "4", "3")
    assert [holder.name for holder in found.searches[-1].holders] == ["top"]
    assert found.replaces is not None
    assert (found.replaces.name, found.replaces.uses) == ("old", {("f", "cpu"): "4"})
    ran = run(engine, "new")
    assert "ns/old is replaced by this workload: its 4 cpu go over to new" in ran.out


def test_a_slice_larger_than_all_quota_says_what_kueue_says() -> None:
    """Kueue compares the difference with the most that there could be."""
    found = explain(slices(6, 2, 7), "new", namespace="ns")
    assert "1 more needed" not in found.now.message
    assert [obstacle.text for obstacle in obstacles(found)] == [
        "ClusterQueue q has 6 cpu, of which 2 are in use: 3 short"
    ]


def test_unblock_does_not_count_the_replaced_slice_as_evicted() -> None:
    found = unblock(slices(8, 4, 7), "new", namespace="ns", now=NOW)
    assert found.changes
    # With a higher priority the old slice is a candidate like any other, and Kueue preempts it.
    replaced = [change for change in found.changes if change.what != "priority"]
    assert replaced
    assert all("ns/old" not in (*change.evicted, *change.moved) for change in replaced)


# Holders.


def crowd(n_holders: int, **more: int) -> Engine:
    """Queues `q` and `r` of one cohort, full of workloads of one CPU."""
    plain = kueue("ResourceFlavor", "f")
    both = [*queue("q", n_holders, ("f",), cohortName="x", preemption=LOWER), *queue("r", 3, ("f",), cohortName="x")]
    held = [of(f"q-{n}", 1, priority=n, minute=n % 50) for n in range(1, n_holders + 1)]
    held += [of(f"r-{n}", 1, lq="r", minute=n) for n in range(3)]
    return engine_of([plain, *both, *held], of("w", more.get("asked", 2), minute=59))


def test_few_holders_are_listed_one_by_one(run: Callable[..., Ran]) -> None:
    ran = run(crowd(4), "w")
    assert ran.out.count("ns/q-") == 4


def test_many_holders_are_grouped_by_cluster_queue_and_verdict(run: Callable[..., Ran]) -> None:
    engine = crowd(30)
    ran = run(engine, "w")
    assert "30 workloads: ns/q-1, ns/q-2, ..." in ran.out
    assert "3 workloads: ns/r-0, ns/r-1, ..." in ran.out
    row = next(line for line in ran.out.splitlines() if line.startswith("30 workloads"))
    assert "1 to 30" in row
    assert "30 cpu" in row
    assert "of ns/q-1: its priority, 1, is not below 0" in row
    assert "-o wide lists each of them" in ran.out
    assert "ns/q-17" in run(engine, "w", "-o", "wide").out
    searches = json.loads(run(engine, "w", "-o", "json").out)["searches"]
    assert len(searches[-1]["holders"]) == 33


def test_holders_of_several_resources_are_listed_once(run: Callable[..., Ran]) -> None:
    quotas = [{"name": text, "nominalQuota": 4} for text in ("cpu", "example.com/gpu")]
    groups = [{"coveredResources": ["cpu", "example.com/gpu"], "flavors": [{"name": "f", "resources": quotas}]}]
    objects = [
        kueue("ResourceFlavor", "f"),
        kueue("ClusterQueue", "q", namespaceSelector={}, resourceGroups=groups, preemption=LOWER),
        kueue("LocalQueue", "q", "ns", clusterQueue="q"),
    ]

    def both(name: str, amount: int, minute: int) -> Json:
        made = of(name, amount, minute=minute)
        made["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = (
            amount
        )
        return made

    engine = engine_of([*objects, both("held", 4, 0)], both("w", 2, 1))
    ran = run(engine, "w")
    assert ran.out.count("ns/held") == 1
    assert "cpu in f, example.com/gpu in f: no preemption makes room" in ran.out
    assert "4 cpu, 4 example.com/gpu" in ran.out


# Places.


def on_nodes(*held: Json, pods: int = 2) -> list[Json]:
    where = flavor(nodeLabels={"example.com/rack": "r"})
    objects = [topology(HOST), where, node("n", "r", cpu=8, pods=pods), *queue("q", 8, preemption=LOWER), *held]
    objects[2]["status"]["allocatable"]["memory"] = "8Gi"
    group = objects[3]["spec"]["resourceGroups"][0]
    group["coveredResources"].append("memory")
    group["flavors"][0]["resources"].append({"name": "memory", "nominalQuota": "8Gi"})
    return objects


def test_quota_and_places_have_searches_of_their_own_with_titles_that_say_so(run: Callable[..., Ran]) -> None:
    # It takes a pod of the node, and no CPU.
    bare = workload("bare", pod_set(cpu=None, required=HOST), priority=3)
    bare["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Gi"}}
    held = workload("held", pod_set(cpu=8, required=HOST), priority=1)
    asks = workload("w", pod_set(count=2, cpu=4, required=HOST), priority=9)
    ran = run(engine_of(on_nodes(bare, held), asks), "w")
    assert "quota of cpu in tas, without regard to places: preempting the victims makes room" in ran.out
    assert "it would be preempted if only quota counted" in ran.out
    assert "it is preempted" not in ran.out
    places = "places for cpu in tas: no preemption of those that use it gives both quota and a place on nodes"
    assert places in ran.out
    assert ["tas", "n", "pods", "1", "2", "0", "2", "0"] in [line.split() for line in ran.out.splitlines()]
    (row,) = [line for line in ran.out.splitlines() if line.startswith("n ") and "ns/bare" in line]
    assert "no candidate: it uses no cpu in tas" in row
    assert "NotEnough" in next(line for line in ran.out.splitlines() if line.startswith("n ") and "ns/held" in line)


def test_pods_outside_kueue_that_hold_a_node_are_named_with_their_priority(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    agent = pod("agent", "n", cpu=7)
    agent["spec"]["priority"] = 2000
    done = pod("done", "n", cpu=7)
    done["status"]["phase"] = "Succeeded"
    asks = workload("w", pod_set(cpu=4, required=HOST), priority=9)
    path = tmp_path / "state.json"
    items = [namespace(), *on_nodes(pods=9), agent, done, asks]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}), "utf-8")
    assert main(["explain", "-q", str(path), "w"]) == 0
    out = capsys.readouterr().out
    (row,) = [line for line in out.splitlines() if "Pod system/" in line]
    assert row.split()[:4] == ["n", "Pod", "system/agent", "2000"]
    assert "1 pod, 7 cpu" in row
    assert "a pod outside Kueue" in row


NO_PLACE = "the pods have no place on the nodes of this flavor, even without other workloads"


def test_a_pod_set_without_a_place_says_so_where_another_lacks_quota(run: Callable[..., Ran]) -> None:
    held = workload("held", pod_set(cpu=4, unconstrained=True), priority=9)
    asks = workload("w", pod_set("a", cpu=5, unconstrained=True), pod_set("b", cpu=None, unconstrained=True))
    container = asks["spec"]["podSets"][1]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"memory": "9Gi"}}
    objects = on_nodes(held, pods=9)
    objects[3]["spec"]["resourceGroups"][0]["flavors"][0]["resources"][1]["nominalQuota"] = "90Gi"
    engine = engine_of(objects, asks)
    found = explain(engine, "w", namespace="ns")
    assert [(obstacle.pod_set, obstacle.flavor, obstacle.rule, obstacle.text) for obstacle in obstacles(found)] == [
        (0, "tas", "02 §2.2", "ClusterQueue q has 8 cpu, of which 4 are in use: 1 short"),
        (1, "tas", "08 §11.5", NO_PLACE),
    ]
    out = run(engine, "w").out
    assert "quota of cpu in tas, without regard to places: no preemption makes room" in out
    assert ["tas", "n", "memory", "9Gi", "8Gi", "0", "0", "8Gi"] in [line.split() for line in out.splitlines()]
    (placed,) = [line for line in out.splitlines() if line.startswith("ns/w  ")]
    assert placed.split()[:3] == ["ns/w", "b", "unconstrained"]
    assert "the nodes of flavor tas have no place for these pods" in placed


def test_victims_for_quota_are_not_said_to_be_enough_where_pods_outside_kueue_hold_the_nodes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    held = of("held", 8, priority=1)
    held["spec"]["podSets"][0]["topologyRequest"] = {"required": HOST}
    path = tmp_path / "state.json"
    engine = engine_of(on_nodes(held, pods=9))
    asks = workload("w", pod_set(cpu=4, required=HOST), priority=9)
    admitted = engine.object("Workload", "held", namespace="ns")
    items = [namespace(), *on_nodes(pods=9), admitted, pod("agent", "n", cpu=7), asks]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}), "utf-8")
    assert main(["explain", "-q", str(path), "w"]) == 0
    out = capsys.readouterr().out
    assert NO_PLACE in out
    assert "quota of cpu in tas, without regard to places: preempting the victims makes room" in out
    assert "it is preempted" not in out
    on_node = {line.split()[1]: line for line in out.splitlines() if line.startswith("n ")}
    assert "the pods would not fit without it either" in on_node["ns/held"]
    assert "a pod outside Kueue" in on_node["Pod"]
    assert main(["explain", "-q", str(path), "w", "-o", "json"]) == 0
    (holder,) = json.loads(capsys.readouterr().out)["searches"][-1]["holders"]
    assert (holder["verdict"], holder["why"]) == ("Victim", "it would be preempted if only quota counted")


# The queue.


def test_the_rule_that_puts_others_ahead_is_said(run: Callable[..., Ran]) -> None:
    plain = [kueue("ResourceFlavor", "f"), *queue("q", 2, ("f",)), of("held", 2, priority=9)]
    late = [of("high", 2, priority=7, minute=5), of("older", 2, minute=1), of("w", 2, minute=9)]
    ran = run(engine_of(plain, *late), "w")
    assert "ahead of it in the queue: ns/high (parked), ns/older (parked)" in ran.out
    assert "  ns/high: its priority, 7, is higher\n" in ran.out
    assert "  ns/older: it has waited longer, since 2026-01-01T00:01:00Z\n" in ran.out
    assert "StrictFIFO" not in ran.out


def test_a_strict_queue_says_that_nothing_behind_its_head_is_tried(run: Callable[..., Ran]) -> None:
    plain = [kueue("ResourceFlavor", "f"), *queue("q", 3, ("f",), queueingStrategy="StrictFIFO"), of("held", 2)]
    ran = run(engine_of(plain, of("head", 2, minute=1), of("w", 1, minute=2)), "w")
    assert "ClusterQueue q is StrictFIFO: nothing behind its head is tried before that has quota" in ran.out


def test_a_local_queue_of_weight_zero_comes_last_and_says_so(run: Callable[..., Ran]) -> None:
    by_usage = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
    none = kueue("LocalQueue", "none", "ns", clusterQueue="q", fairSharing={"weight": "0"})
    plain = [kueue("ResourceFlavor", "f"), *queue("q", 2, ("f",), **by_usage), none, of("held", 2)]
    engine = engine_of(
        plain,
        of("w", 2, lq="none", minute=1),
        of("later", 2, minute=2),
        configuration={"admissionFairSharing": {"usageHalfLifeTime": "1h"}},
    )
    found = explain(engine, "w", namespace="ns")
    (first,) = found.ahead
    assert (first.name, str(first.why)) == ("later", "Usage")
    assert [usage.usage is None for usage in first.usages] == [False, True]
    ran = run(engine, "w")
    assert "LocalQueue ns/none is infinite (weight 0)" in ran.out


def test_a_workload_with_victims_that_stop_stays_first() -> None:
    preempts = of("big", 4, priority=5, minute=1)
    objects = [kueue("ResourceFlavor", "f"), *queue("q", 4, ("f",), preemption=LOWER), of("low", 4, priority=1)]
    engine = engine_of(objects)
    engine.apply([preempts], now=NOW)
    assert engine.cycle(NOW).preemptions
    engine.apply([of("higher", 4, priority=9, minute=2)], now=NOW)
    (first,) = explain(engine, "higher", namespace="ns").ahead
    assert (first.name, str(first.why)) == ("big", "Sticky")


# Obstacles and checks.


def lowered(used: int, quota: int) -> Explanation:
    objects = [kueue("ResourceFlavor", "f"), *queue("q", used, ("f",)), of("held", used), of("w", 1, minute=1)]
    engine = engine_of(objects)
    engine.apply([queue("q", quota, ("f",))[0]], now=NOW)
    settle(engine, now=NOW)
    return explain(engine, "w", namespace="ns")


def test_a_quota_that_was_lowered_below_its_use_is_not_said_to_contain_it() -> None:
    assert [obstacle.text for obstacle in obstacles(lowered(5, 3))] == [
        "ClusterQueue q has 3 cpu, and 5 are in use: 3 short"
    ]
    assert [obstacle.text for obstacle in obstacles(lowered(5, 5))] == [
        "ClusterQueue q has 5 cpu, of which 5 are in use: 1 short"
    ]


def test_an_admission_check_says_its_message_and_since_when(run: Callable[..., Ran]) -> None:
    check = kueue("AdmissionCheck", "prov", controllerName="example.com/checks")
    check["status"] = {
        "conditions": [
            {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": NOW}
        ]
    }
    strategy = {"admissionChecks": [{"name": "prov"}]}
    objects = [check, kueue("ResourceFlavor", "f"), *queue("q", 2, ("f",), admissionChecksStrategy=strategy)]
    engine = engine_of([*objects, of("w", 1)])
    state: Json = json.loads(json.dumps(engine.object("Workload", "w", namespace="ns")))
    since = "2026-01-01T00:40:00Z"
    (row,) = state["status"]["admissionChecks"]
    row |= {"state": "Pending", "message": "no nodes left in zone b", "lastTransitionTime": since}
    engine.apply([state], now=NOW, trusted=True)
    ran = run(engine, "w")
    assert "it is waiting for its admission checks: prov" in ran.out
    assert f"\nadmission check prov is Pending since {since}: no nodes left in zone b" in ran.out


def test_a_holder_beside_the_shares_of_fair_sharing_has_no_comparison() -> None:
    found = explain(crowd(4), "w", namespace="ns")
    assert all(holder.comparisons == () and holder.ties == () for holder in found.searches[-1].holders)
    assert {holder.fate for holder in found.searches[-1].holders} == {Fate.PRIORITY, Fate.POLICY}
