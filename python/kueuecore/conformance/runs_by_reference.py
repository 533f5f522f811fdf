"""Answers to recorded cycles and whole runs, by the reference. Holds no rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from kueuecore.conformance import shapes
from kueuecore.conformance.reading import configuration_of
from kueuecore.conformance.worlds import begun
from kueuecore.reference import quantity, times
from kueuecore.reference.admission_fair_sharing import Account
from kueuecore.reference.cycle import Cycle
from kueuecore.reference.decision import Admission, Decision, PodSetAdmission
from kueuecore.reference.objects import complete
from kueuecore.reference.settings import Json
from kueuecore.reference.simulate import Run, SimulatedCycle, simulate
from kueuecore.reference.topology.capacity import add_usage, usage_of
from kueuecore.reference.world import World

__all__ = ["SeenWorld", "cycle", "cycles", "trace"]


class SeenWorld:
    """A world of the reference, seen from outside."""

    def __init__(self, world: World) -> None:
        self._world = world

    def statuses(self) -> dict[str, Json]:
        """The statuses of all Workloads, by key."""
        return {name: workload.get("status", {}) for name, workload in self._world.kind("Workload").items()}

    def admissions(self) -> dict[str, Json]:
        """The admissions of the Workloads that hold quota of active ClusterQueues, by key."""
        cache = self._world.cache
        active = [infos for name, infos in cache.workloads.items() if cache.is_active(name)]
        return {key: info.workload["status"]["admission"] for infos in active for key, info in infos.items()}

    def pending(self) -> Iterator[tuple[str, str, str]]:
        """ClusterQueue, key and place of each Workload that waits."""
        for queue in self._world.queues:
            for name, place in self._world.pending(queue):
                yield queue, name, place

    def accounts(self) -> dict[str, Json]:
        """What LocalQueues have used."""
        found: dict[str, Json] = {}
        for name, account in self._world.ledger.accounts.items():
            found[name] = {"consumed": _exact(account.consumed), "lastUpdate": account.updated}
            found[name] |= {"pendingPenalty": _exact(account.pending)} if account.pending else {}
        return found

    def usage(self) -> Iterator[tuple[str, str, str, str, str]]:
        """What the nodes use that are scheduled."""
        for row in self._world.quota():
            kind, name, flavor, resource = (row[part] for part in ("kind", "name", "flavor", "resource"))
            if row["usage"] and (kind == "Cohort" or self._world.cache.is_active(name)):
                yield kind, name, flavor, resource, quantity.text(resource, row["usage"])

    def topology_usage(self) -> Json:
        """What workloads use, by flavor and domain, not pooled."""
        used: dict[str, dict[str, dict[str, int]]] = {}
        for infos in self._world.cache.workloads.values():
            for info in infos.values():
                for flavor, uses in info.topology.items():
                    for use in uses:
                        add_usage(used.setdefault(flavor, {}), usage_of(use))
        return {
            flavor: {
                name: {resource: quantity.text(resource, number) for resource, number in each.items() if number}
                for name, each in domains.items()
            }
            for flavor, domains in used.items()
        }


def _exact(resources: Mapping[str, Fraction]) -> Json:
    return {name: quantity.text_of_exact(total) for name, total in resources.items()}


def _world(case: Json) -> World:
    world = World((), configuration=configuration_of(case), now=case["config"]["now"], trusted=True)
    for name, used in case.get("input", {}).get("localQueueUsage", {}).items():
        consumed = {resource: quantity.parse(written) for resource, written in used["consumed"].items()}
        world.ledger.accounts[name] = Account(times.moment(used["lastUpdate"]), consumed)
    world.apply(begun(case), trusted=True)
    return world


def cycle(case: Json) -> Json:
    """One cycle."""
    world, given = _world(case), case.get("input", {})
    world.second_passes.advance(times.FOREVER)
    world.flush()
    result = _decided(world, Cycle(world, given.get("admissionError")).run())
    if "concurrentUpdate" in given:
        # Somebody else writes labels while the scheduler writes the status: both are in the object afterwards.
        update = given["concurrentUpdate"]
        next(w for w in result["workloads"] if w["key"] == update["key"])["labels"] = update["labels"]
    return result


def cycles(case: Json) -> Json:
    """Several cycles, and what happens in between."""
    world = _world(case)
    decided = []
    for step in case["input"]["steps"]:
        match step["op"]:
            case "cycle":
                decided.append(_decided(world, Cycle(world).run()))
            case "update":
                world.cache.set_cluster_queue(complete(step["object"]), ())
            case "delete":
                namespace, _, name = step["key"].partition("/")
                world.delete(step["kind"], name, namespace=namespace)
            case "requeueInadmissible":
                world.flush()
    return {"cycles": decided}


def _decided(world: World, decision: Decision) -> Json:
    return shapes.after_cycle(SeenWorld(world), decision)


def trace(case: Json) -> Json:
    """A whole run."""
    config = configuration_of(case)
    run = simulate(
        case["objects"],
        case["input"]["events"],
        configuration=config,
        now=config["now"],
        trusted=True,
        cycle_seconds=config["cycleStepMs"] / 1000,
        quiet_cycles=config["quietCycles"],
        max_cycles=config["maxCycles"],
        eviction_seconds=config.get("evictionSeconds", 0),
        after_rounds=config.get("timers") != "WhenDue",
        admission_checks=config.get("admissionChecks"),
        # Runs with a topology were recorded by another loop.
        cuts_at_once=any(manifest["kind"] == "Topology" for manifest in case["objects"]),
    )
    clock = shapes.Clock(run.start, times.moment)
    return shapes.run((_told(clock, each) for each in run.cycles), _final(run, clock))


def _final(run: Run, clock: shapes.Clock) -> Json:
    return shapes.final(SeenWorld(run.world), clock, run.world.now, n_cycles=run.n_cycles, is_cut=run.is_cut)


def _told(clock: shapes.Clock, each: SimulatedCycle) -> Json:
    decision = each.decision
    return shapes.cycle_of_run(
        clock,
        (each.number, each.time),
        admitted=((granted.key, _admission(granted), granted.time) for granted in decision.admissions),
        placed=((moved.key, _admission(moved)) for moved in decision.placements),
        decision=decision,
        parked=each.parked,
    )


def _admission(given: Admission) -> Json:
    return {"clusterQueue": given.cluster_queue, "podSetAssignments": [_pod_set(p) for p in given.pod_sets]}


def _pod_set(given: PodSetAdmission) -> Json:
    pod_set: Json = {"name": given.name, "count": given.count, "flavors": dict(given.flavors)}
    placed = {"topologyAssignment": given.topology, "delayedTopologyRequest": given.delayed}
    return pod_set | {name: value for name, value in placed.items() if value}
