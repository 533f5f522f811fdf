"""Random histories of many parents in which writes are refused and the controller begins anew."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kueuecore.api_server import ApiServer
from kueuecore.concurrent_admission import flavor_of, is_parent, parent_of
from kueuecore.controller import Controller
from kueuecore.times import SECOND_NS
from kueuecore.writes import Answer
from tests.unit.concurrent_admission.families import NOW, configuration
from tests.unit.concurrent_admission.test_controller_families import REFUSED, condition, queue, thing, workload

FLAVORS = ("good", "fair", "cheap")
N_JOBS = 6


class History:
    """Jobs of one ClusterQueue that come, run, stop when they are evicted, and end."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.config = configuration(UnadmittedWorkloadsObservability=random.random() < 0.5)
        self.api = ApiServer(now=NOW)
        policy: dict[str, Any] = {"mode": random.choice(("TryPreferredFlavors", "RetainFirstAdmission"))}
        if policy["mode"] == "TryPreferredFlavors" and random.random() < 0.5:
            policy["constraints"] = {"lastAcceptableFlavorName": random.choice(FLAVORS)}
        for made in (
            thing("Namespace", "ns", {}, labels={"kubernetes.io/metadata.name": "ns"}),
            *(thing("ResourceFlavor", flavor, {}) for flavor in FLAVORS),
            queue("queue", *FLAVORS, policy=policy),
            thing("LocalQueue", "jobs", {"clusterQueue": "queue", "stopPolicy": "None"}),
        ):
            self.api.create(made)
        self.share_refused = 0.2
        self.left_s = {f"job-{n:05}": random.randint(3, 12) for n in range(N_JOBS)}
        self.stops_at: dict[str, int] = {}
        self.comes_at = {name: NOW + random.randint(0, 20) * SECOND_NS for name in self.left_s}
        self.begin()

    def begin(self) -> None:
        """A controller that knows nothing."""
        self.controller, self.seen = Controller(self.config), 0

    def is_refused(self) -> bool:
        return self.random.random() < self.share_refused

    def find(self, name: str) -> dict[str, Any] | None:
        return self.api.find("Workload", name, namespace="ns")

    def second(self) -> None:
        """What happens in a second."""
        self.api.now += SECOND_NS
        for name, at in self.comes_at.items():
            if at <= self.api.now and self.find(name) is None:
                self.api.create(workload(name, priority=self.random.randint(0, 2)))
        if self.random.random() < self.share_refused / 4:
            self.begin()
        self.watch()
        self.turn()
        self.watch()
        self.check()
        for name in self.left_s:
            self.play(name)

    def watch(self) -> None:
        for event in self.api.since(self.seen):
            self.controller.observe(event, now=self.api.now)
        self.seen = self.api.version

    def turn(self) -> None:
        turn = self.controller.turn(self.api.now)
        writes = list(turn.writes)
        self.random.shuffle(writes)
        for write in writes:
            if self.is_refused():
                self.controller.done(write, Answer(self.find(write.name), error="refused"), now=self.api.now)
                continue
            self.controller.done(write, self.api.carry_out(write), now=self.api.now)
        for change in turn.objects:
            answer = REFUSED if self.is_refused() else self.api.carry_out(change)
            self.controller.done(change, answer, now=self.api.now)

    def play(self, name: str) -> None:
        """The job of a Workload, which it knows only as the API server has it."""
        of = self.find(name)
        if of is None or condition(of, "Finished")[0] == "True":
            return
        is_evicted, is_admitted = (condition(of, kind)[0] == "True" for kind in ("Evicted", "Admitted"))
        if is_evicted and "admission" in of["status"]:
            # Its pods take a while to stop.
            if self.stops_at.setdefault(name, self.api.now + self.random.randint(0, 3) * SECOND_NS) <= self.api.now:
                self.controller.stopped(name, namespace="ns")
            return
        self.stops_at.pop(name, None)
        if is_admitted:
            self.left_s[name] -= 1
            if self.left_s[name] <= 0:
                self.controller.finished(name, namespace="ns")

    def check(self) -> None:
        """No flavor is given to two, and whoever runs has a variant that holds what it runs on."""
        held: dict[str, str] = {}
        variants: dict[str, list[dict[str, Any]]] = {}
        found, _ = self.api.list("Workload")
        for error in found:
            parent = parent_of(error)
            if parent is None:
                continue
            variants.setdefault(parent[1], []).append(error)
            is_over = condition(error, "Finished")[0] == "True" or error["spec"].get("active") is False
            if condition(error, "QuotaReserved")[0] == "True" and not is_over:
                assert held.setdefault(flavor_of(error), error["metadata"]["name"]) == error["metadata"]["name"]
        for error in found:
            if (
                is_parent(error)
                and condition(error, "Admitted")[0] == "True"
                and condition(error, "Finished")[0] != "True"
            ):
                flavor = error["status"]["admission"]["podSetAssignments"][0]["flavors"]["cpu"]
                own = [v for v in variants[error["metadata"]["name"]] if flavor_of(v) == flavor]
                assert [condition(v, "QuotaReserved")[0] for v in own] == ["True"]

    def play_on(self) -> None:
        """Until all jobs have ended, the last of them without faults."""
        for second in range(600):
            if second == 120:
                self.share_refused = 0.0
            self.second()
            ends = [condition(self.find(name), "Finished")[0] for name in self.left_s]
            if second > 120 and set(ends) == {"True"} and self.controller.next_wake(self.api.now) is None:
                return
        raise AssertionError(f"not all have ended: {self.left_s}")


@pytest.mark.parametrize("seed", range(30))
def test_each_job_ends_once_and_no_flavor_is_given_twice(seed: int) -> None:
    history = History(seed)
    history.play_on()
    found, _ = history.api.list("Workload")
    assert len(found) == N_JOBS * (1 + len(FLAVORS))
    assert {condition(error, "Finished")[0] for error in found} == {"True"}
    assert history.controller.engine.cluster_queue("queue").reserving_workloads == 0
