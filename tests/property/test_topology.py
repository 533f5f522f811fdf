"""What holds of every placement on random nodes, by the reference model (rules/08)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kueuecore.reference import World
from kueuecore.reference.settings import Settings
from kueuecore.reference.topology.assignment import Assumed, TopologyAssignment
from kueuecore.reference.topology.capacity import FlavorNodes, TopologyUse, fit
from kueuecore.reference.topology.domains import Ask, Search
from kueuecore.reference.topology.encoding import decoded, encoded
from kueuecore.reference.topology.placement import NoPlaceError, place
from kueuecore.reference.topology.replacement import replaced
from tests.property.worlds import times
from tests.reference_topologies import ask, flavor_nodes
from tests.topologies import BLOCK, HOST, RACK, flavor, namespace, node, pod_set, queue, workload
from tests.topologies import topology as topology_of

Json = dict[str, Any]
LEVELS = {"hosts": (BLOCK, RACK, HOST), "racks": (BLOCK, RACK), "flat": (HOST,)}
GATES = (
    "TASProfileMixed",
    "TASBalancedPlacement",
    "TASNodeFeasibilityForAllLevels",
    "TASPartialSlices",
    "TASLeaderPodSetFeasibility",
)


@dataclass
class Trial:
    """Nodes, of which some are used, what is asked for, and the gates."""

    nodes: FlavorNodes
    worker: Ask
    leader: Ask | None
    settings: Settings
    free: dict[str, dict[str, int]]

    def may_end_short(self) -> bool:
        """Whether pods beyond the last whole slice make one more, which is shorter."""
        return self.settings.on("TASPartialSlices") and len(self.worker.request.constraints) <= 1

    def place(self) -> dict[str, TopologyAssignment]:
        return place(Search(self.nodes, self.settings, Assumed()), self.worker, self.leader)

    def paths(self, assignment: TopologyAssignment) -> list[tuple[tuple[str, ...], int]]:
        return [(self.nodes.path(values), count) for values, count in assignment.domains]


@st.composite
def trees(draw: st.DrawFn, settings: Settings) -> FlavorNodes:
    levels = LEVELS[draw(st.sampled_from(sorted(LEVELS)))]
    sizes = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 6), st.integers(0, 8))
    made = []
    for number, (block, rack, cpu, pods) in enumerate(draw(st.lists(sizes, min_size=1, max_size=10))):
        made.append(node(f"n-{number}", f"b{block}", f"r{rack}", cpu=cpu, pods=pods))
    nodes = flavor_nodes(levels, *made, settings=settings)
    for name in sorted(nodes.named):
        if draw(st.booleans()):
            nodes.charge_domain(name, {"cpu": 1000 * draw(st.integers(0, 3)), "pods": 1})
    return nodes


@st.composite
def trials(draw: st.DrawFn) -> Trial:
    settings = Settings({"featureGates": {gate: draw(st.booleans()) for gate in GATES}})
    nodes = draw(trees(settings))
    level = draw(st.sampled_from(nodes.levels))
    way = draw(st.sampled_from(["required", "preferred", "unconstrained", "implied"]))
    request: Json = {} if way == "implied" else {way: True if way == "unconstrained" else level}
    leader = None
    if draw(st.booleans()) and way in ("required", "preferred"):
        leader = ask(1, draw(st.integers(1, 3)), "leader")
    elif draw(st.booleans()) and way != "implied":
        request |= draw(layers(nodes.levels[nodes.levels.index(level) if way != "unconstrained" else 0 :]))
    worker = ask(draw(st.integers(1, 14)), draw(st.integers(1, 2)), **request)
    free = {name: nodes.remaining(name) for name in nodes.named}
    return Trial(nodes, worker, leader, settings, free)


@st.composite
def layers(draw: st.DrawFn, levels: tuple[str, ...]) -> Json:
    """Slices, and slices in slices: each on a lower level, and of a size that divides the one before."""
    chosen = sorted(draw(st.sets(st.sampled_from(range(len(levels))), min_size=1, max_size=2)))
    size = draw(st.sampled_from([2, 4, 6]))
    made = []
    for index in chosen:
        made.append({"topology": levels[index], "size": size})
        size = draw(st.sampled_from([d for d in (1, 2, 3) if size % d == 0]))
    return {"podsetSliceRequiredTopologyConstraints": made}


def used(trial: Trial, given: Mapping[str, TopologyAssignment]) -> dict[str, Counter[str]]:
    """What an answer uses of each leaf."""
    found: dict[str, Counter[str]] = {}
    for name, assignment in given.items():
        asked = trial.worker if name == trial.worker.name else trial.leader
        assert asked is not None
        for values, count in assignment.domains:
            leaf = found.setdefault(",".join(values), Counter())
            leaf["pods"] += count
            leaf["cpu"] += count * asked.single["cpu"]
    return found


@times(8)
@given(trials())
def test_a_placement_is_whole_and_within_what_is_free(trial: Trial) -> None:
    try:
        given = trial.place()
    except NoPlaceError:
        return
    for name, leaf in used(trial, given).items():
        for resource, number in leaf.items():
            assert number <= trial.free[name].get(resource, 0), (name, resource)
    size, count = trial.worker.request.slice_size, trial.worker.count
    assert given["main"].n_pods == (count if trial.may_end_short() else count // size * size)
    assert trial.leader is None or given["leader"].n_pods == 1
    assert all(len({values for values, _ in each.domains}) == len(each.domains) for each in given.values())


@times(8)
@given(trials())
def test_a_required_level_is_kept_and_slices_are_whole(trial: Trial) -> None:
    try:
        given = trial.place()
    except NoPlaceError:
        return
    request, levels = trial.worker.request, trial.nodes.levels
    placed = [path for each in given.values() for path, _ in trial.paths(each)]
    if request.required is not None:
        assert len({path[: levels.index(request.required) + 1] for path in placed}) <= 1
    for constraint in request.constraints:
        counts: Counter[tuple[str, ...]] = Counter()
        for path, count in trial.paths(given["main"]):
            counts[path[: levels.index(constraint.level) + 1]] += count
        n_broken = sum(count % constraint.size != 0 for count in counts.values())
        assert n_broken <= trial.may_end_short(), constraint


@times(8)
@given(trials())
def test_pods_without_slices_and_leader_find_a_place_if_there_is_one(trial: Trial) -> None:
    request, levels, worker = trial.worker.request, trial.nodes.levels, trial.worker
    if trial.leader is not None or request.constraints:
        return
    asked = {**worker.single, "pods": 1}
    room: Counter[tuple[str, ...]] = Counter()
    depth = 0 if request.required is None else levels.index(request.required) + 1
    for name, domain in trial.nodes.named.items():
        most = fit(asked, trial.free[name], trial.settings)[0]
        if trial.nodes.adds_nodes:
            own = (leaf for leaf in trial.nodes.leaves.values() if leaf.path[:-1] == domain.path)
            most = min(most, sum(fit(asked, leaf.remaining(), trial.settings)[0] for leaf in own))
        room[domain.path[:depth]] += most
    try:
        trial.place()
        found = True
    except NoPlaceError:
        found = False
    assert found == (max(room.values()) >= worker.count)


@times(4)
@given(trials(), st.data())
def test_a_replacement_moves_only_what_stood_on_the_lost_node(trial: Trial, data: st.DataObject) -> None:
    if not trial.nodes.is_by_host or trial.leader is not None:
        return
    try:
        old = trial.place()["main"]
    except NoPlaceError:
        return
    if not old.domains:
        return
    trial.nodes.charge(TopologyUse(old, trial.worker.single))
    lost = data.draw(st.sampled_from([values[-1] for values, _ in old.domains]))
    del trial.nodes.leaves[lost]
    search = Search(trial.nodes, trial.settings, Assumed())
    try:
        new, added = replaced(search, trial.worker, old, lost)
    except NoPlaceError:
        return
    before, after, moved = (Counter(dict(each.domains)) for each in (old, new, added))
    assert (lost,) not in after
    lost_pods = before.pop((lost,))
    assert after == before + moved
    assert sum(moved.values()) <= lost_pods
    required = trial.worker.request.required
    if required is not None and before and not trial.worker.request.constraints:
        depth = trial.nodes.levels.index(required) + 1
        assert len({path[:depth] for path, _ in trial.paths(new)}) == 1
    for values, count in moved.items():
        asked, room = {**trial.worker.single, "pods": 1}, trial.nodes.remaining(values[-1])
        assert fit(asked, room, trial.nodes.settings)[0] >= count


NAMES = st.text("ab-1", min_size=1, max_size=7)


@times(8)
@given(st.lists(st.tuples(NAMES, st.integers(1, 3)), max_size=8), st.booleans(), st.booleans())
def test_an_assignment_is_read_as_it_was_written(
    domains: list[tuple[str, int]], by_host: bool, by_prefix: bool
) -> None:
    levels = (HOST,) if by_host else (BLOCK, RACK)
    reported = tuple(((name,) if by_host else (name[:2], name), count) for name, count in domains)
    assignment = TopologyAssignment(levels, reported)
    assert decoded(encoded(assignment, by_prefix=by_prefix)) == assignment


@times(1)
@given(st.data())
def test_workloads_of_one_pod_set_never_use_more_of_a_node_than_there_is(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4)), min_size=1, max_size=5))
    nodes = [node(f"n{number}", f"r{rack}", cpu=cpu, pods=6) for number, (rack, cpu) in enumerate(sizes)]
    policy = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    queues = [each for name in "ab" for each in queue(name, cpu=6, cohortName="root", preemption=policy)]
    world = World([namespace(), topology_of(RACK, HOST), flavor(), *nodes, *queues], now=0)
    ways: list[Json] = [{"required": RACK}, {"preferred": RACK}, {"unconstrained": True}, {"required": HOST}]
    second = 0
    for number in range(data.draw(st.integers(1, 8))):
        request = data.draw(st.sampled_from(ways))
        pods = pod_set("main", data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2)), **request)
        name, priority = data.draw(st.sampled_from("ab")), data.draw(st.integers(0, 2))
        world.apply([workload(f"w{number}", pods, lq=name, priority=priority)])
        for _ in range(data.draw(st.integers(1, 2))):
            second += 1
            for preemption in world.cycle(second * 10**9).preemptions:
                world.release(preemption.name, namespace="ns", now=second * 10**9)
            found = world.snapshot().topologies["tas"]
            assert all(left >= 0 for leaf in found.leaves for left in found.remaining(leaf).values())
