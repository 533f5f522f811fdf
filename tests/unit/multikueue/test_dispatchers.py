"""Who is nominated, and when (docs/sources.md G5, rules/06 §5, §6)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kueuecore._json import JsonObject
from kueuecore.configuration import Configuration
from kueuecore.multikueue import (
    AllAtOnce,
    AttemptOutcome,
    Dispatch,
    External,
    Incremental,
    KnownCluster,
    MultiKueueSettings,
    Nomination,
    Override,
    Recall,
    WinCondition,
    dispatcher_of,
)
from kueuecore.times import SECOND_NS
from tests.unit.multikueue.stage import MINUTE, Stage


def dispatch(*names: str, nominated: tuple[str, ...] = (), nominated_at: int | None = None, now: int = 0) -> Dispatch:
    """Of clusters that are connected; one whose name begins with a - is not."""
    clusters = tuple(KnownCluster(name=name.strip("-"), is_connected=not name.startswith("-")) for name in names)
    return Dispatch(workload={}, clusters=clusters, now=now, nominated=nominated, nominated_at=nominated_at)


def test_all_at_once_nominates_all_that_are_connected_by_name() -> None:
    assert AllAtOnce().nominate(dispatch("west", "-north", "east")) == Nomination(("east", "west"))


def test_incremental_nominates_the_next_clusters_of_the_config_each_round() -> None:
    names = ("onprem", "aws", "-gcp", "azure", "own")
    first = Incremental().nominate(dispatch(*names))
    assert first.clusters == ("onprem", "aws", "gcp")
    waiting = Incremental().nominate(dispatch(*names, nominated=first.clusters, nominated_at=0, now=5 * MINUTE - 1))
    assert (waiting.clusters, waiting.look_again) == (first.clusters, 5 * MINUTE)
    second = Incremental().nominate(dispatch(*names, nominated=first.clusters, nominated_at=0, now=5 * MINUTE))
    assert second.clusters == (*names[:2], "gcp", "azure", "own")


def test_incremental_goes_by_names_where_the_order_of_the_config_does_not_count() -> None:
    by_name = Incremental(step_size=2, respects_config_order=False)
    assert by_name.nominate(dispatch("c", "b", "a")).clusters == ("a", "b")


def test_incremental_has_a_problem_once_all_are_nominated() -> None:
    it = Incremental().nominate(dispatch("a", nominated=("a",), nominated_at=0, now=5 * MINUTE))
    assert (it.clusters, it.problem) == (("a",), "no more workers to nominate")


def test_external_leaves_it_to_somebody_else() -> None:
    assert External().nominate(dispatch("a", "b", nominated=("b",))) == Nomination(("b",))


def test_the_configuration_says_which_dispatcher_it_is() -> None:

    def named(name: str) -> object:
        return dispatcher_of(MultiKueueSettings.of(Configuration.trusted({"multiKueue": {"dispatcherName": name}})))

    assert named("kueue.x-k8s.io/multikueue-dispatcher-all-at-once") == AllAtOnce()
    assert named("kueue.x-k8s.io/multikueue-dispatcher-incremental") == Incremental()
    assert named("example.com/mine") == External()


# In a manager.


def test_incremental_goes_round_after_round_until_a_worker_admits() -> None:
    stage = Stage("onprem", "aws", "gcp", dispatcher=Incremental(step_size=1))
    stage.job()
    stage.settle()
    assert (stage.nominated(), stage.copies()) == (["onprem"], ["onprem"])
    stage.wait(5 * MINUTE)
    assert (stage.nominated(), stage.copies()) == (["onprem", "aws"], ["onprem", "aws"])
    stage.condition("aws", "job", "Admitted")
    stage.wait(6 * MINUTE)
    assert (stage.winner(), stage.nominated(), stage.copies()) == ("aws", [], ["aws"])


def test_the_rounds_of_incremental_begin_before_other_checks_are_ready() -> None:
    stage = Stage("a", "b", dispatcher=Incremental(step_size=1))
    stage.job()
    stage.check("job", "Pending", check="other")
    stage.wait(6 * MINUTE)
    assert (stage.nominated(), stage.copies()) == (["a", "b"], [])


def test_a_restarted_manager_begins_the_next_round_at_once() -> None:
    stage = Stage("a", "b", dispatcher=Incremental(step_size=1))
    stage.job()
    stage.settle()
    stage.restart()
    stage.settle()
    assert stage.nominated() == ["a", "b"]


def test_rounds_begin_anew_once_quota_was_lost() -> None:
    stage = Stage("a", "b", dispatcher=Incremental(step_size=1))
    stage.job()
    stage.wait(6 * MINUTE)
    stage.condition("", "job", "QuotaReserved", status="False")
    stage.status("", "Workload", "job", {"nominatedClusterNames": None})
    stage.settle()
    assert stage.copies() == []
    stage.condition("", "job", "QuotaReserved")
    stage.settle()
    assert stage.nominated() == ["a"]


def test_an_external_dispatcher_writes_the_nominations_and_the_manager_follows() -> None:
    stage = Stage("a", "b", dispatcher=External())
    stage.job()
    stage.settle()
    assert stage.copies() == []
    stage.status("", "Workload", "job", {"nominatedClusterNames": ["b"]})
    stage.settle()
    assert stage.copies() == ["b"]
    stage.status("", "Workload", "job", {"nominatedClusterNames": ["a"]})
    stage.settle()
    assert (stage.nominated(), stage.copies()) == (["a"], ["a"])


def test_a_nominated_worker_that_is_away_is_a_problem_and_the_others_get_their_copies() -> None:
    stage = Stage("a", "b", dispatcher=External())
    stage.cut("b")
    stage.job()
    stage.status("", "Workload", "job", {"nominatedClusterNames": ["b", "a"]})
    stage.settle()
    assert stage.copies() == ["a"]
    assert stage.problems[-1] == "cluster b: no remote client for nominated cluster"


def test_the_copies_of_the_others_stay_until_a_worker_has_admitted_it_with_all_its_checks() -> None:
    stage = Stage("a", "b")
    stage.job()
    stage.settle()
    stage.condition("a", "job", "QuotaReserved")
    stage.wait(10 * MINUTE)
    assert stage.copies() == ["a", "b"]
    stage.condition("a", "job", "Admitted")
    stage.settle()
    assert stage.copies() == ["a"]


def test_as_before_that_gate_quota_alone_can_win() -> None:
    stage = Stage("a", "b", settings=MultiKueueSettings(win_condition=WinCondition.QUOTA_RESERVED))
    stage.job()
    stage.settle()
    stage.condition("a", "job", "QuotaReserved")
    stage.settle()
    assert stage.copies() == ["a"]


# Dispatchers of one's own.


@dataclass
class Picky:
    """Nominates one worker, says what is otherwise there, and takes back what has been there for a minute."""

    waits_for_checks: bool = True
    asked: list[Dispatch] = field(default_factory=list)

    def nominate(self, dispatch: Dispatch) -> Nomination:
        self.asked.append(dispatch)
        tried = [attempt.cluster for attempt in dispatch.attempts]
        left = [cluster.name for cluster in dispatch.clusters if cluster.name not in tried]
        change: JsonObject = {
            "spec": {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"image": "mine"}}}]}
        }
        override = Override(workload=change, job={"spec": {"template": {"spec": {"image": "mine"}}}})
        return Nomination(tuple(left[:1]), overrides={left[0]: override})

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        worker = next(other for other in dispatch.clusters if other.name == cluster)
        assert worker.workload is not None
        begun = dispatch.now // SECOND_NS % 3600
        return Recall("it takes too long") if begun >= 60 else Recall(look_again=dispatch.now + 60 * SECOND_NS)


def test_a_dispatcher_says_what_is_otherwise_on_a_worker() -> None:
    stage = Stage("a", "b", dispatcher=Picky())
    stage.job()
    stage.settle()
    copy = stage.get("Workload", "job", cluster="a")
    assert copy is not None
    assert copy["spec"]["podSets"][0]["template"] == {"spec": {"image": "mine"}}
    stage.condition("a", "job", "Admitted")
    stage.settle()
    job = stage.get("Job", "job", cluster="a")
    assert job is not None
    assert job["spec"]["template"]["spec"]["image"] == "mine"
    # It is no reason to make the copy anew, not even for a manager that does not remember it.
    stage.restart()
    stage.done.clear()
    stage.settle()
    assert not [number for number in stage.done if number.cluster == "a"]


def test_a_dispatcher_takes_a_workload_back_and_knows_where_it_was() -> None:
    stage = Stage("a", "b", dispatcher=Picky())
    stage.job()
    stage.settle()
    stage.condition("a", "job", "Admitted")
    stage.settle()
    assert stage.check_of()[0] == "Ready"
    stage.wait(MINUTE)
    assert stage.check_of() == ("Retry", 'it takes too long, Previously: "Ready"')
    (attempt,) = stage.manager.attempts("job", namespace="ns")
    assert (attempt.cluster, attempt.outcome) == ("a", AttemptOutcome.RECALLED)


def test_a_dispatcher_is_told_what_is_known_of_the_workers() -> None:
    picky = Picky()
    stage = Stage("a", "b", dispatcher=picky)
    stage.create("LocalQueue", "lq", {"clusterQueue": "cq"}, cluster="a", namespace="ns")
    stage.create("ClusterQueue", "cq", {"resourceGroups": []}, cluster="a")
    stage.api[""].patch("MultiKueueCluster", "a", {"metadata": {"labels": {"region": "eu"}}})
    stage.cut("b")
    stage.job()
    stage.settle()
    a, b = picky.asked[-1].clusters
    assert (a.name, a.is_connected, a.lost_at, dict(a.labels)) == ("a", True, None, {"region": "eu"})
    assert a.cluster_queue is not None
    assert a.cluster_queue["spec"] == {"resourceGroups": []}
    assert (b.name, b.is_connected, b.workload) == ("b", False, None)
    assert b.lost_at is not None
