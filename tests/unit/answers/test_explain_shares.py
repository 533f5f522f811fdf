"""What `kueuecore explain`, `what-if` and `run` say about preemption by fair sharing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kueuecore import Configuration, Engine
from kueuecore.answers import Explanation, Fate, explain
from kueuecore.answers.explanation import Holder
from kueuecore.answers.obstacles import why_so
from kueuecore.cli import main
from kueuecore.steady_state import settle
from kueuecore.world import World
from tests.command import Ran
from tests.topologies import Json, kueue, namespace, pod_set, queue

BOTH = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
NOW = "2026-01-01T01:00:00Z"
ANY = {"reclaimWithinCohort": "Any"}
AT_RANDOM = "Kueue takes one at random, here the last by name"


def configuration(*strategies: str) -> str:
    kind = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
    return json.dumps({**kind, "fairSharing": {"preemptionStrategies": list(strategies or BOTH)}})


def member(name: str, cohort: str, cpu: int = 0, weight: str = "1") -> list[Json]:
    return queue(name, cpu, ("f",), cohortName=cohort, preemption=ANY, fairSharing={"weight": weight})


def cohort(name: str, parent: str = "", cpu: int = 0, weight: str = "1") -> Json:
    spec: Json = {"parentName": parent, "fairSharing": {"weight": weight}} if parent else {}
    quota = [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": cpu}]}]
    return kueue("Cohort", name, **spec, resourceGroups=[{"coveredResources": ["cpu"], "flavors": quota}])


def workload(name: str, on: str, cpu: int, minute: int = 0) -> Json:
    made = kueue("Workload", name, "ns", queueName=on, priority=0, podSets=[pod_set(cpu=cpu)])
    made["metadata"] |= {"creationTimestamp": f"2026-01-01T00:{minute:02}:00Z", "uid": name}
    return made


def engine_of(objects: list[Json], late: list[Json], strategies: tuple[str, ...] = BOTH) -> Engine:
    engine = Engine(Configuration.parse(configuration(*strategies)))
    World.of([namespace(), kueue("ResourceFlavor", "f"), *objects]).apply_to(engine, now=NOW)
    settle(engine, now=NOW)
    engine.apply(late, now=NOW)
    return engine


def explained(objects: list[Json], *, strategies: tuple[str, ...] = BOTH) -> Explanation:
    """Of `w`, which comes when the others have run as long as they could."""
    late = [object_ for object_ in objects if object_["metadata"]["name"] == "w"]
    rest = [object_ for object_ in objects if object_["metadata"]["name"] != "w"]
    return explain(engine_of(rest, late, strategies), "w", namespace="ns")


def holder(found: Explanation, name: str) -> Holder:
    return next(other for other in found.searches[-1].holders if other.name == name)


def why(found: Explanation, name: str) -> str:
    return why_so(holder(found, name), found, found.searches[-1])[1]


def two_sides(asked: int, lent: int = 8, **weights: str) -> list[Json]:
    """Cohort `left`, with 4 CPUs and ClusterQueues `a` and `noisy`, beside `right` with `b`."""
    return [
        cohort("root", cpu=lent),
        cohort("left", "root", 4, weights.get("left", "1")),
        cohort("right", "root", 0, weights.get("right", "1")),
        *member("a", "left"),
        *member("noisy", "left"),
        *member("b", "right"),
        workload("loud", "noisy", 6, 1),
        workload("held", "b", 6, 2),
        workload("w", "a", asked, 3),
    ]


def test_the_nodes_below_the_common_cohort_are_compared_not_the_cluster_queues() -> None:
    found = explained(two_sides(3), strategies=BOTH[:1])
    assert holder(found, "held").fate is Fate.SHARE
    assert why(found, "held") == (
        "Cohort left has a share of 166.7 and would have 416.7 with the preemptor, "
        "Cohort right has 500 and would have 0 without this workload: "
        "416.7 is above 0 (LessThanOrEqualToFinalShare)"
    )


def test_each_strategy_that_failed_says_what_it_compared() -> None:
    found = explained(two_sides(6))
    assert holder(found, "held").fate is Fate.SHARE
    assert why(found, "held").endswith(
        ": 666.7 is above 0 (LessThanOrEqualToFinalShare); 666.7 is above 500 (LessThanInitialShare)"
    )
    # Within its own cohort the ClusterQueues themselves are compared.
    assert why(found, "loud").startswith("ClusterQueue a has a share of 0 and would have 500 with the preemptor")
    assert "ClusterQueue noisy has 500 and would have 0 without this workload" in why(found, "loud")


def test_equal_shares_are_not_called_larger() -> None:
    found = explained(two_sides(4), strategies=BOTH[1:])
    assert why(found, "held").endswith(": 500 is equal to, not below, 500 (LessThanInitialShare)")


def test_a_victim_names_the_shares_that_made_it_one() -> None:
    found = explained(two_sides(3))
    assert found.now.outcome.value == "Preempts"
    victim = next(other for other in found.searches[-1].holders if other.fate is Fate.VICTIM)
    assert why(found, victim.name).startswith("it is preempted: ")
    assert victim.comparisons[-1].passes


def test_a_node_of_weight_zero_has_an_infinite_share() -> None:
    found = explained(two_sides(3, left="0"), strategies=BOTH[:1])
    assert why(found, "held").endswith(": infinite (weight 0) is above 0 (LessThanOrEqualToFinalShare)")
    found = explained(two_sides(3, left="0", right="0"), strategies=BOTH[1:])
    shares = "of two infinite shares 416.7 is below 500 (LessThanInitialShare)"
    assert why(found, "held").endswith(shares)


def test_a_cluster_queue_directly_below_the_common_cohort_is_compared_with_a_cohort() -> None:
    objects = [
        cohort("root", cpu=6),
        cohort("right", "root"),
        *member("a", "root"),
        *member("b", "right"),
        workload("held", "b", 6),
        workload("w", "a", 6),
    ]
    found = explained(objects)
    assert why(found, "held") == (
        "ClusterQueue a has a share of 0 and would have 1000 with the preemptor, "
        "Cohort right has 1000 and would have 0 without this workload: "
        "1000 is above 0 (LessThanOrEqualToFinalShare); 1000 is equal to, not below, 1000 (LessThanInitialShare)"
    )


def test_a_cohort_within_its_quota_protects_what_borrows_inside_it() -> None:
    objects = [
        cohort("root", cpu=2),
        cohort("right", "root", 4),
        *member("a", "root"),
        *member("b", "right"),
        *member("c", "root"),
        workload("held", "b", 4, 1),
        workload("mine", "c", 2, 2),
        workload("w", "a", 2, 3),
    ]
    assert holder(explained(objects), "held").fate is Fate.COHORT_WITHIN_NOMINAL


def equals(asked: int = 2, *others: str) -> list[Json]:
    """Cohorts `x` and `y` have borrowed as much as each other of what `c` lends."""
    names = ("x", "y", *others)
    cohorts = [cohort(name, "root") for name in names]
    queues = [entry for name in names for entry in member(f"in-{name}", name)]
    held = [workload(f"of-{name}", f"in-{name}", 2, n) for n, name in enumerate(names)]
    lent = 2 * len(names)
    return [cohort("root"), *cohorts, *member("c", "root", lent), *queues, *held, workload("w", "c", asked, 9)]


def test_a_victim_of_a_tie_says_that_kueue_chooses_at_random() -> None:
    found = explained(equals())
    assert [other.name for other in found.searches[-1].holders if other.fate is Fate.VICTIM] == ["of-y"]
    assert why(found, "of-y") == f"it is preempted: the shares of Cohort x and Cohort y are equal: {AT_RANDOM}"


def test_a_tie_in_which_all_become_victims_is_not_mentioned() -> None:
    found = explained(equals(4))
    assert [holder(found, name).fate for name in ("of-x", "of-y")] == [Fate.VICTIM, Fate.VICTIM]
    assert AT_RANDOM not in why(found, "of-x") + why(found, "of-y")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Ran]:
    def run(command: str, engine: Engine, *arguments: str) -> Ran:
        (tmp_path / "state.engine").write_bytes(engine.save())
        (tmp_path / "config.yaml").write_text(configuration(), encoding="utf-8")
        state = [str(tmp_path / "state.engine"), "--config", str(tmp_path / "config.yaml")]
        code = main([command, "-q", *state, *arguments])
        return Ran(code, *capsys.readouterr())

    return run


def test_run_and_what_if_say_that_a_victim_was_picked_by_a_tie(run: Callable[..., Ran], tmp_path: Path) -> None:
    objects = equals()
    ran = run("run", engine_of(objects[:-1], objects[-1:]))
    assert "ns/of-y" in ran.out
    assert f"the shares of Cohort x and Cohort y are equal: {AT_RANDOM}" in ran.out
    (tmp_path / "job.json").write_text(json.dumps(objects[-1]), encoding="utf-8")
    asked = run("what-if", engine_of(objects[:-1], []), "-f", str(tmp_path / "job.json"))
    assert f"ns/of-y is preempted: the shares of Cohort x and Cohort y are equal: {AT_RANDOM}" in asked.out
    asked = run("what-if", engine_of(objects[:-1], []), "-f", str(tmp_path / "job.json"), "-o", "json")
    (preemption,) = json.loads(asked.out)["workloads"][0]["preemptions"]
    assert AT_RANDOM in preemption["why"]


def test_run_names_the_shares_behind_a_preemption(run: Callable[..., Ran]) -> None:
    objects = two_sides(3)
    ran = run("run", engine_of(objects[:-1], objects[-1:]))
    assert "InCohortFairSharing" in ran.out
    assert "would have 416.7 with the preemptor" in ran.out
