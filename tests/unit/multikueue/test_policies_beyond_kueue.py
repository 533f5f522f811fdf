"""What Kueue cannot do: each policy beside Kueue's own dispatcher, with the same work and seed (docs/sources.md H)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kueuecore.multikueue import MANAGER, AllAtOnce, Dispatch, Dispatcher, KnownCluster
from kueuecore.multikueue.policies import (
    COST,
    DATA,
    Filtered,
    Overflow,
    Overridden,
    Scored,
    TakingBack,
    by_cost,
    by_data,
    by_free_quota,
    by_priority,
    by_weight,
    cannot_hold,
    not_allowed,
)
from tests.unit.multikueue.scenarios import MINUTE_NS, places, run
from tests.unit.multikueue.worlds import fleet_of, job

BOTH = {"west": 12, "east": 12}


# H1: choose among workers that could all admit.


def test_the_worker_with_the_highest_priority_goes_first() -> None:
    default = run(24, BOTH)
    policy = run(24, BOTH, dispatcher=Scored(score=by_priority({"west": 1, "east": 2})))
    # By default whoever is quicker wins, and every job has a copy for nothing.
    assert (set(places(default)), default.all.n_copies, default.all.n_wasted_copies) == ({"west", "east"}, 12, 6)
    assert (places(policy), policy.all.n_copies, policy.all.n_wasted_copies) == ({"east": 6}, 6, 0)
    assert policy.all.n_finished == default.all.n_finished == 6


def test_the_next_worker_follows_if_the_first_has_no_room() -> None:
    score = by_priority({"west": 1, "east": 2})
    small = {"west": 12, "east": 3}
    patient = run(15, small, dispatcher=Scored(score=score, round_ns=MINUTE_NS), every=0, runs=300)
    reported = run(15, small, dispatcher=Scored(score=score, round_ns=MINUTE_NS, prefers_room=True), every=60, runs=300)
    # One fits in the east; without knowing its quota the others find out after a minute.
    assert places(patient)["east"] >= 1
    assert patient.all.mean is not None
    assert patient.all.mean > 40
    assert reported.all.mean is not None
    assert reported.all.mean < 30


def test_cost_decides_by_annotations_of_the_clusters() -> None:
    prices = {"west": 0.9, "east": 0.3}
    clusters = {name: {"annotations": {COST: str(price)}} for name, price in prices.items()}
    default = run(24, BOTH, clusters=clusters)
    policy = run(24, BOTH, clusters=clusters, dispatcher=Scored(score=by_cost()))
    spent = [sum(prices[other.cluster] for other in outcome.jobs) for outcome in (default, policy)]
    assert spent == pytest.approx([4.2, 1.8])
    # Nobody waits much longer for it, though a message is lost and sent again after a second; and there are half as
    # many copies.
    assert default.all.most is not None
    assert policy.all.most is not None
    assert policy.all.most < default.all.most + 1
    assert (default.all.n_copies, policy.all.n_copies) == (12, 6)


def test_data_decides_by_annotations_of_job_and_clusters() -> None:
    clusters = {"west": {"annotations": {DATA: "photos"}}, "east": {"annotations": {DATA: "films, photos"}}}
    reads = {DATA: "photos,films"}
    default = run(24, BOTH, clusters=clusters, annotations=reads)
    policy = run(24, BOTH, clusters=clusters, annotations=reads, dispatcher=Scored(score=by_data()))
    # By default most jobs run where some of their data is not.
    assert (places(default), places(policy)) == ({"west": 4, "east": 2}, {"east": 6})
    assert policy.all.n_finished == default.all.n_finished == 6


def test_weights_share_the_work() -> None:
    clusters = tuple(KnownCluster(name=name, is_connected=True) for name in BOTH)
    shares = Counter(
        Scored(score=by_weight(weights))
        .nominate(Dispatch(workload={"metadata": {"uid": str(uid)}}, clusters=clusters, now=0))
        .clusters[0]
        for weights in ({"west": 3, "east": 1},)
        for uid in range(1000)
    )
    assert 700 < shares["west"] < 800
    assert shares.total() == 1000


def test_a_job_allows_some_workers_only() -> None:
    annotations = {"multikueue.kueuecore/clusters": "west"}
    default = run(24, BOTH, annotations=annotations)
    policy = run(24, BOTH, annotations=annotations, dispatcher=Filtered(AllAtOnce(), (not_allowed,)))
    assert places(default)["east"] > 0
    assert places(policy) == {"west": 6}


def test_a_job_asks_for_labels_that_a_worker_has_to_have() -> None:
    clusters = {"west": {"labels": {"region": "us"}}, "east": {"labels": {"region": "eu"}}}
    wish = {"multikueue.kueuecore/cluster-selector": "region=eu"}
    default = run(24, BOTH, clusters=clusters, annotations=wish)
    policy = run(24, BOTH, clusters=clusters, annotations=wish, dispatcher=Filtered(AllAtOnce()))
    assert (places(default)["west"], places(policy)["west"]) == (4, 0)
    assert (places(policy)["east"], policy.all.n_wasted_copies) == (6, 0)


# H2: know the quota of each worker.


def test_work_goes_where_most_quota_is_free() -> None:
    uneven = {"west": 3, "east": 12}
    policy = run(
        15, uneven, every=5, runs=600, jobs=5, dispatcher=Scored(score=by_free_quota("cpu"), prefers_room=True)
    )
    default = run(15, uneven, every=5, runs=600, jobs=5)
    assert places(policy) == {"east": 4, "west": 1}
    assert policy.all.n_wasted_copies == 0 < default.all.n_wasted_copies
    # Nobody waits any longer for it.
    assert (policy.all.n_admitted, default.all.n_admitted) == (5, 5)
    assert policy.all.most is not None
    assert policy.all.most < 5


def test_what_no_single_worker_can_ever_hold_is_given_up_with_the_reason() -> None:
    # Four cpus together, and no worker has three.
    small = {"west": 2, "east": 2}
    default = run(4, small, jobs=1, until=3600)
    policy = run(4, small, jobs=1, until=3600, dispatcher=Filtered(AllAtOnce(), (cannot_hold,)))
    (waiting,), (given_up,) = default.jobs, policy.jobs
    assert (waiting.admitted, waiting.n_copies) == (None, 2)
    assert (given_up.admitted, given_up.n_copies) == (None, 0)
    assert given_up.message == (
        "No worker can run the workload: west: 3 of cpu are asked for, and it has 2 at most; "
        'east: 3 of cpu are asked for, and it has 2 at most, Previously: "Pending"'
    )


# H3: here first, on workers only what finds no quota here.

LOCAL = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: here}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 6}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: here, namespace: ns}
spec: {clusterQueue: here}
"""


def test_what_finds_no_quota_here_overflows_to_the_workers() -> None:
    work: dict[str, Any] = {"jobs": 6, "every": 10, "runs": 600, "more": LOCAL}
    here = run(24, BOTH, queue="here", **work)
    dispatched = run(24, BOTH, **work)
    overflow = run(24, BOTH, queue="here", overflow=Overflow({"here": "lq"}, patience_ns=MINUTE_NS // 2), **work)
    # Two fit here; the others wait ten minutes for them, or half a minute for the workers.
    assert places(here) == {"(manager)": 6}
    assert places(dispatched)["(manager)"] == 0
    assert places(overflow)["(manager)"] == 2
    assert sum(places(overflow).values()) == 6
    assert [other.n_copies for other in overflow.jobs][:2] == [0, 0]
    assert here.all.most is not None
    assert overflow.all.most is not None
    assert here.all.most > 1100
    assert 30 <= overflow.all.most < 40


# H4: take it back from a worker that does not get on with it.


def test_a_workload_is_taken_back_from_a_worker_on_which_it_does_not_start() -> None:
    # In the west there is quota, and no node: its priority is the highest nevertheless.
    inner = Scored(score=by_priority({"west": 2, "east": 1}))
    default = run(24, BOTH, jobs=2, until=3600, dead=("west",), dispatcher=inner)
    policy = run(
        24, BOTH, jobs=2, until=3600, dead=("west",), dispatcher=TakingBack(inner=inner, start_ns=2 * MINUTE_NS)
    )
    assert (places(default), default.all.n_finished) == ({"west": 2}, 0)
    assert (places(policy), policy.all.n_finished, policy.all.n_evictions) == ({"east": 2}, 2, 2)


def test_a_workload_does_not_bounce_and_is_given_up_in_the_end() -> None:
    work: dict[str, Any] = {"jobs": 1, "until": 7200, "dead": ("west", "east")}
    default = run(24, BOTH, **work)
    dispatcher = TakingBack(inner=AllAtOnce(), start_ns=2 * MINUTE_NS, exclude_ns=10 * MINUTE_NS, most_attempts=3)
    policy = run(24, BOTH, **work, dispatcher=dispatcher)
    (stuck,), (given_up,) = default.jobs, policy.jobs
    # It holds quota of a worker that cannot run it, forever and without a word.
    assert (stuck.n_admissions, stuck.finished, stuck.message) == (1, None, "")
    # Both workers once, then the first again when its ten minutes are over.
    assert given_up.n_admissions == 3
    assert given_up.message == (
        'Given up after 3 attempts: west (Recalled), east (Recalled), west (Recalled), Previously: "Pending"'
    )


# H5: what is otherwise on one worker.


def test_a_worker_has_an_image_registry_of_its_own() -> None:
    patch: dict[str, Any] = {
        "op": "replace",
        "path": "/spec/template/spec/containers/0/image",
        "value": "registry.east/i",
    }
    default, policy = AllAtOnce(), Overridden(AllAtOnce(), {"east": [patch]})
    assert ran_with(default) == ({MANAGER: "i", "east": "i"}, "Succeeded")
    # Workload and job fit there, so it runs to its end.
    assert ran_with(policy) == ({MANAGER: "i", "east": "registry.east/i"}, "Succeeded")


def ran_with(dispatcher: Dispatcher) -> tuple[dict[str, str], str]:
    """A job for which only the east has room: its image by cluster, and how it ended."""
    fleet = fleet_of(8, {"west": 1, "east": 4}, dispatcher=dispatcher)
    fleet.submit(job(cpu=3), run_seconds=60)
    fleet.wait(10)
    images = {
        cluster: job["spec"]["template"]["spec"]["containers"][0]["image"]
        for cluster in (MANAGER, "east")
        for job in fleet.objects("Job", cluster=cluster)
    }
    fleet.wait(70)
    (workload,) = fleet.objects("Workload")
    (finished,) = [condition for condition in workload["status"]["conditions"] if condition["type"] == "Finished"]
    return images, finished["reason"]
