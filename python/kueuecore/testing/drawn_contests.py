"""Worlds with much contention: deep trees, many flavors, one pool for all, crowds of candidates.

The worlds of `drawn_worlds` are small and plain, so these shapes hardly come up in them. Here each world is built
around one shape, and the rest is drawn: quotas, limits, weights, policies, priorities, and later moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.testing.chance import Chance, SeededChance
from kueuecore.testing.contest_parts import (
    amount_of_cpu,
    cohort_tree,
    contest_configuration,
    contest_stock,
    contested_queue,
    groups_of_cpu,
    holding,
    huge_holders,
    pod_set_of,
    preempting,
    quota_of_cpu,
    small_holders,
    workload_of,
)
from kueuecore.testing.drawn_histories import CYCLE, move
from kueuecore.testing.drawn_worlds import (
    Stock,
    fungibilities,
    local_queues,
    namespaces,
    resource_flavors,
)
from kueuecore.testing.history import History, Move, MoveKind, key_of

__all__ = ["Contest", "contest", "random_contest"]

_LARGEST = 2**63 - 1
# In thousandths; sums of a few of these saturate (rules/02 §1).
_EDGES = (2**61, 2**62, 2**62 - 1, 2**63 - 2, _LARGEST, 2**61 + 1)
_GPU = "example.com/gpu"


class Contest(StrEnum):
    """The shape around which a world is built."""

    BRANCHES = "branches"
    """Fair sharing in a tree of up to five levels of Cohorts, with heads on several branches."""
    FLAVORS = "flavors"
    """Up to eight flavors in a resource group, and workloads that use several."""
    POOL = "pool"
    """Several heads that want the same pool of small workloads at once, under limits on several levels."""
    CROWD = "crowd"
    """One to three ClusterQueues full of small workloads that together are just enough for a head, or just too few."""


def random_contest(seed: int, kind: Contest | None = None, *, edges: bool = True) -> History:
    """Return the contest of a seed; fast, like `random_history`.

    Args:
        seed: The same seed gives the same contest.
        kind: Its shape; `None`: any.
        edges: Whether there may be amounts near the largest that 64 bits hold.

    Example:
        >>> random_contest(1) == random_contest(1)
        True
    """
    return contest(SeededChance(seed), kind, edges=edges)


def contest(chance: Chance, kind: Contest | None = None, *, edges: bool = True) -> History:
    """Draw a world with much contention, and its moves; see `random_contest`."""
    if kind is None:
        kind = chance.one(*Contest)
    has_edges = edges and chance.rarely(4)
    drawn = {
        Contest.BRANCHES: _branches,
        Contest.FLAVORS: _flavors,
        Contest.POOL: _pool,
        Contest.CROWD: _crowd,
    }[kind](chance, _EDGES if has_edges else ())
    return drawn.history(chance)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The parts of a contest: its objects, and the heads that arrive, starting with those that arrive together."""

    stock: Stock
    configuration: JsonObject | None
    queues: list[JsonObject]
    holders: list[JsonObject]
    heads: list[JsonObject]
    later: list[JsonObject]

    def history(self, chance: Chance) -> History:
        """Return the world with its first cycles and what happens then."""
        stock = self.stock
        objects = [namespaces(chance), *(resource_flavors(chance, flavor) for flavor in stock.flavors), *self.queues]
        objects += [local_queues(chance, stock, name) for name in (*stock.queues, *stock.others)]
        # Kueue leaves the order open, and it matters where sums saturate: here it is that of the names.
        objects += [*sorted(self.holders, key=key_of), *self.heads]
        moves = [_a_cycle(chance) for _ in range(chance.integer(1, 2))]
        moves += [Move(kind=MoveKind.APPLY, object=head) for head in self.later]
        moves += [_a_cycle(chance) for _ in range(chance.integer(1, 2))]
        # Workloads that hold quota already keep their admission: their spec may ask for less than the status shows.
        known = [_without_status(head) for head in (*self.heads, *self.later, *self.holders[:8])]
        for number in range(chance.integer(0, 3)):
            moves.append(move(chance, stock, tuple(known), number=number))
            if chance.boolean():
                moves.append(_a_cycle(chance))
        return History(tuple(objects), (*moves, CYCLE), self.configuration)


def _a_cycle(chance: Chance) -> Move:
    """Return a cycle; after some, evicted jobs keep running."""
    return Move(kind=MoveKind.LINGER) if chance.rarely(3) else CYCLE


def _without_status(workload: JsonObject) -> JsonObject:
    return {name: value for name, value in workload.items() if name != "status"}


def _branches(chance: Chance, edges: Sequence[int]) -> _Drawn:
    """Draw fair sharing in a deep tree, with heads on several branches."""
    depth = chance.one(5, 4, 3, 5)
    flavors = ("f1", "f2")[: chance.one(1, 1, 2)]
    stock = contest_stock(
        chance,
        edges,
        groups=[(("cpu",), flavors)],
        n_cohorts=depth + chance.integer(1, 4),
        n_queues=chance.integer(4, 9),
        quotas=("1", "2", "0", "3", "1"),
        requests=("1", "2", "1", "3"),
        fair_sharing=True,
    )
    queues = [contested_queue(chance, stock, name) for name in stock.queues]
    holders: list[JsonObject] = []
    heads: list[JsonObject] = []
    later: list[JsonObject] = []
    for number, name in enumerate(stock.queues):
        if not chance.rarely(3):
            n = chance.integer(1, 3)
            holders += small_holders(chance, name, n, first=10 * number, flavors=flavors, priorities=(0, 0, -1, 1))
        for again in range(chance.one(1, 2, 1)):
            pods = [pod_set_of("main", chance.one(1, 2, 3), {"cpu": chance.one(*stock.requests)}, chance.one(None, 1))]
            created = chance.integer(-2, 0)
            heads.append(workload_of(f"w{number}{again}", name, chance.one(0, 1, 2, 0), pods, created=created))
        if chance.boolean():
            pods = [pod_set_of("main", chance.one(1, 2), {"cpu": chance.one(*stock.requests)})]
            later.append(workload_of(f"x{number}", name, chance.one(1, 2, 0), pods, created=chance.integer(0, 3)))
    configuration = contest_configuration(chance, stock)
    return _Drawn(stock, configuration, [*cohort_tree(chance, stock, depth), *queues], holders, heads, later)


def _flavors(chance: Chance, edges: Sequence[int]) -> _Drawn:
    """Draw many flavors, with workloads and candidates on several of them."""
    flavors = tuple(f"f{number}" for number in range(1, 1 + chance.one(5, 3, 8, 6, 4, 7)))
    groups: list[tuple[tuple[str, ...], tuple[str, ...]]] = [(("cpu",), flavors)]
    n_queues = chance.one(3, 2, 4, 1)
    # In some, one ClusterQueue holds everything, and the others want the same of it, on a flavor of each group.
    is_one_sided = n_queues > 1 and chance.boolean()
    others = ("g1", "g2", "g3")[: chance.one(1, 2) if is_one_sided else chance.one(0, 2, 3)]
    if others:
        groups.append(((_GPU,), others))
    depth = chance.one(1, 2, 1)
    stock = contest_stock(
        chance,
        edges,
        groups=groups,
        n_cohorts=depth,
        n_queues=n_queues,
        quotas=("2", "1", "3", "2", "4", "0"),
        requests=("1", "2", "1", "3"),
    )
    queues = []
    for name in stock.queues:
        changes: JsonObject = {"flavorFungibility": {**fungibilities(chance), "whenCanPreempt": "TryNextFlavor"}}
        queue = contested_queue(chance, stock, name, **({} if chance.rarely(4) else changes))
        reclaims = is_one_sided or chance.boolean()
        queues.append(preempting(queue, "reclaimWithinCohort", "Any") if reclaims else queue)
    holders: list[JsonObject] = []
    heads: list[JsonObject] = []
    later: list[JsonObject] = []
    tree = cohort_tree(chance, stock, depth)
    pods = _pods_on_several(chance, stock, bool(others))
    if is_one_sided:
        pods[0] = pod_set_of("main", 1, {"cpu": chance.one(*stock.requests), _GPU: "1"})
    for number, name in enumerate(stock.queues):
        # Flavor by flavor, as they compete for the quota of a flavor.
        for place, flavor in enumerate(flavors):
            first = 1000 * number + 100 * place
            n = chance.one(1, 1, 2, 0)
            if is_one_sided:
                n = max(1, _nominal([*tree, *queues], flavor)) if number == 0 else 0
            holders += small_holders(chance, name, n, first=first, flavors=(flavor,), priorities=(0, 0, -1, 1))
        for place, flavor in enumerate(others):
            held = [pod_set_of("main", 1, {_GPU: "1"})]
            workload = workload_of(f"g{number}{place}", name, chance.one(0, -1, 1), held, created=-9)
            used = chance.one("1", "2")
            if is_one_sided:
                used = str(max(1, _nominal([*tree, *queues], flavor)) if number == 0 else 0)
            holders.append(holding(workload, name, {_GPU: flavor}, {_GPU: used}, seconds=chance.integer(1, 4)))
        for again in range(chance.one(1, 2)):
            if not is_one_sided:
                pods = _pods_on_several(chance, stock, bool(others))
            heads.append(workload_of(f"w{number}{again}", name, chance.one(2, 3, 2, 0), pods, created=-again))
        if chance.boolean():
            pods = _pods_on_several(chance, stock, bool(others))
            later.append(workload_of(f"x{number}", name, chance.one(3, 4, 2), pods, created=chance.integer(0, 3)))
    holders += huge_holders(stock, queues, stock.queues[0] if is_one_sided else "")
    return _Drawn(stock, contest_configuration(chance, stock), [*tree, *queues], holders, heads, later)


def _nominal(objects: Sequence[JsonObject], flavor: str) -> int:
    """Return the total quota of the first resource in a flavor, without unlimited quotas."""
    rows = (
        object_at(list_at(other, "resources")[0])
        for found in objects
        for group in list_at(found, "spec", "resourceGroups")
        for other in list_at(group, "flavors")
        if text_at(other, "name") == flavor
    )
    amounts = (text_at(row, "nominalQuota") for row in rows)
    return sum(int(amount) for amount in amounts if len(amount) < 3)


def _pods_on_several(chance: Chance, stock: Stock, has_gpu: bool) -> list[JsonObject]:
    """Return one to four pod sets; what one takes is not available to the next, so they go to several flavors."""
    found: list[JsonObject] = []
    for name in ("main", "side", "more", "last")[: chance.one(2, 1, 3, 4)]:
        requests: JsonObject = {"cpu": chance.one(*stock.requests)}
        if has_gpu and chance.boolean():
            requests[_GPU] = chance.one("1", "2")
        count = chance.one(1, 1, 2)
        found.append(pod_set_of(name, count, requests, 1 if name == "main" and chance.rarely(3) else None))
    return found


def _pool(chance: Chance, edges: Sequence[int]) -> _Drawn:
    """Draw heads of several ClusterQueues that reclaim what they have lent to one or two others."""
    depth = chance.one(2, 1, 3)
    flavors = ("f1", "f2")[: chance.one(1, 1, 2)]
    n_queues = chance.integer(4, 7)
    stock = contest_stock(
        chance,
        edges,
        groups=[(("cpu",), flavors)],
        n_cohorts=1 if depth == 1 else depth + chance.integer(0, 2),
        n_queues=n_queues,
        quotas=("4", "3", "5", "6"),
        requests=("1", "2", "3"),
    )
    n_pools = chance.one(1, 1, 2)
    objects = cohort_tree(chance, stock, depth)
    for cohort in objects[1:]:
        # The ClusterQueues have all quota that can be lent; Cohorts on the way limit it.
        limits = quota_of_cpu("0", borrowing=chance.one(None, "8", "4"), lending=chance.one(None, "8", "4"))
        object_at(cohort, "spec")["resourceGroups"] = groups_of_cpu(dict.fromkeys(flavors, limits))
    holders: list[JsonObject] = []
    heads: list[JsonObject] = []
    later: list[JsonObject] = []
    n_lent = 0
    for number, name in enumerate(stock.queues[n_pools:], start=n_pools):
        # Some ClusterQueues do not lend: their heads fit between others that preempt.
        keeps = chance.rarely(4)
        nominal = chance.one(*stock.quotas)
        n_lent += 0 if keeps or nominal in stock.edges else int(nominal)
        quota = quota_of_cpu(nominal, borrowing=chance.one(None, None, "1", "4"), lending="0" if keeps else None)
        if not keeps and chance.rarely(4):
            quota["lendingLimit"] = chance.one(nominal, "2", "3")
        objects.append(_pool_queue(chance, stock, name, dict.fromkeys(flavors, quota)))
        head, old = _pool_head(chance, stock, number, name, flavors)
        holders += old
        heads.append(head)
        if chance.rarely(3):
            pods = [pod_set_of("main", chance.one(2, 1, 3), {"cpu": chance.one("1", "2")}, chance.one(None, 1))]
            later.append(workload_of(f"x{number}", name, chance.one(2, 1, 3), pods, created=chance.integer(0, 3)))
    for number, name in enumerate(stock.queues[:n_pools]):
        objects.append(
            _pool_queue(chance, stock, name, {flavor: quota_of_cpu(chance.one("0", "2")) for flavor in flavors})
        )
        n = max(3, n_lent * len(flavors) * 3 // (4 * n_pools) + chance.integer(-1, 2))
        holders += small_holders(chance, name, n, first=100 * number, flavors=flavors, priorities=(0, -1, 0, 0, 1))
    holders += huge_holders(stock, objects, stock.queues[0])
    return _Drawn(stock, contest_configuration(chance, stock), objects, holders, heads, later)


def _pool_queue(chance: Chance, stock: Stock, name: str, quotas: Mapping[str, JsonObject]) -> JsonObject:
    """Return a ClusterQueue of a pool; most of those that may reclaim may do so from any other."""
    queue = contested_queue(
        chance, stock, name, cohortName=chance.one(*stock.cohorts), resourceGroups=groups_of_cpu(quotas)
    )
    return queue if chance.rarely(3) else preempting(queue, "reclaimWithinCohort", "Any")


def _pool_head(
    chance: Chance, stock: Stock, number: int, queue: str, flavors: Sequence[str]
) -> tuple[JsonObject, list[JsonObject]]:
    """Return a head that needs the room of many workloads, and the slice that it replaces, if any."""
    count = chance.one(3, 4, 5, 2, 1)
    priority = chance.one(1, 2, 0, 3)
    # Where sums saturate, what a slice leaves behind depends on the order of events, which Kueue leaves open.
    if not stock.edges and chance.rarely(5):
        old = workload_of(f"s{number}", queue, 0, [pod_set_of("main", 1, {"cpu": "1"})], created=-9)
        held = holding(old, queue, {"cpu": chance.one(*flavors)}, {"cpu": "1"}, seconds=2)
        pods = [pod_set_of("main", count + 1, {"cpu": "1"})]
        return workload_of(f"w{number}", queue, priority, pods, created=-1, slice_of=key_of(old)), [held]
    request = chance.one(*stock.edges) if stock.edges and chance.rarely(4) else "1"
    pods = [pod_set_of("main", count, {"cpu": request}, chance.one(None, 1, max(1, count - 1)))]
    return workload_of(f"w{number}", queue, priority, pods, created=chance.integer(-3, 0)), []


@dataclass(frozen=True, slots=True)
class _Held:
    """A workload in a crowd: its priority, and what it holds, in thousandths."""

    priority: int
    size: int


def _crowd(chance: Chance, edges: Sequence[int]) -> _Drawn:
    """Draw heads whose many small candidates are just enough, or just too few."""
    depth = chance.one(1, 2)
    n_queues = chance.one(1, 2, 3)
    stock = contest_stock(
        chance,
        edges,
        groups=[(("cpu",), ("f1",))],
        n_cohorts=depth,
        n_queues=n_queues,
        quotas=("4", "40"),
        requests=("1", "8"),
    )
    holders: list[JsonObject] = []
    crowds: list[list[_Held]] = []
    for number, name in enumerate(stock.queues):
        # The second and third are less crowded, or the reference would take too long.
        n = chance.one(20, 40, 60, 100) if number == 0 else chance.one(20, 30, 60, 40)
        members, crowd = _crowd_of(chance, stock, name, n, first=200 * number, edges=edges)
        holders += members
        crowds.append(crowd)
    sums = [sum(held.size for held in crowd) for crowd in crowds]
    free = chance.one(0, 0, 500, 2000)
    # What the others hold beyond their own quota can be reclaimed from them.
    nominals = [0, *(chance.one(0, other // 2000 * 1000, other) for other in sums[1:])]
    nominals[0] = sum(sums) + free - sum(nominals)
    objects = cohort_tree(chance, stock, depth)
    for cohort in objects:
        # Only the ClusterQueues have quota, or the sums would not be known.
        object_at(cohort, "spec").pop("resourceGroups", None)
    for name, nominal in zip(stock.queues, nominals, strict=True):
        groups = groups_of_cpu({"f1": quota_of_cpu(amount_of_cpu(nominal))})
        changes: JsonObject = {"cohortName": chance.one(*stock.cohorts), "resourceGroups": groups}
        queue = contested_queue(chance, stock, name, **changes)
        if chance.boolean():
            queue = preempting(queue, "withinClusterQueue", "LowerOrNewerEqualPriority")
        objects.append(queue)
    heads: list[JsonObject] = []
    later: list[JsonObject] = []
    for number in range(chance.one(2, 1, 3)):
        place = chance.one(0, 0, 0, n_queues - 1)
        priority = chance.one(0, 1, -1, 2)
        own = sum(held.size for held in crowds[place] if held.priority < priority)
        equal = sum(held.size for held in crowds[place] if held.priority == priority)
        excess = sum(max(0, sums[index] - nominals[index]) for index in range(n_queues) if index != place)
        lower = sum(held.size for crowd in crowds[1:] for held in crowd if held.priority < priority)
        most = chance.one(own + excess, own, own + equal + excess, own + min(lower, excess), nominals[place] // 2)
        asked = max(500, free + most + chance.one(0, 1, 1000, 0, -500, -(most // 3)))
        if edges and chance.rarely(2):
            asked = chance.one(*edges)
        pods = [pod_set_of("main", 1, {"cpu": amount_of_cpu(asked)})]
        if chance.rarely(6):
            pods = [pod_set_of("main", 4, {"cpu": amount_of_cpu(asked // 4)}, 2)]
        local_queue = chance.one(stock.queues[place], *stock.others) if place == 0 else stock.queues[place]
        head = workload_of(f"w{number}", local_queue, priority, pods, created=chance.one(-20, -1, -8, -20))
        (later if number and chance.boolean() else heads).append(head)
    return _Drawn(stock, contest_configuration(chance, stock), objects, holders, heads, later)


def _crowd_of(
    chance: Chance, stock: Stock, queue: str, n: int, *, first: int, edges: Sequence[int]
) -> tuple[list[JsonObject], list[_Held]]:
    """Return small workloads that hold quota, in repeating patterns, so that few choices make many of them."""
    sizes = [chance.one(1000, 500, 1000, 2000, 250) for _ in range(chance.one(1, 2, 3))]
    # Some are more urgent than every head: then the candidates do not free everything.
    priorities = [chance.one(0, -1, 1, 0, -2) for _ in range(chance.one(2, 1, 3, 5))] + [9] * chance.boolean()
    ages = [chance.integer(1, 9) for _ in range(chance.one(1, 3, 4))]
    evicted = chance.one(0, 0, 7, 2)
    huge = chance.integer(0, n - 1) if edges else -1
    holders, crowd = [], []
    for number in range(n):
        priority, age = priorities[number % len(priorities)], ages[number % len(ages)]
        size = chance.one(*edges) if number == huge else sizes[number % len(sizes)]
        local_queue = stock.others[0] if stock.others and queue == stock.queues[0] and number % 3 == 0 else queue
        name = f"h{first + number * 37 % n:03}"
        pods = [pod_set_of("main", 1, {"cpu": amount_of_cpu(size)})]
        # Queued before or after the heads: among equal priorities only newer ones are preempted.
        workload = workload_of(name, local_queue, priority, pods, created=-2 * age)
        is_evicted = bool(evicted) and number % evicted == 0
        usage = {"cpu": amount_of_cpu(size)}
        holders.append(holding(workload, queue, {"cpu": "f1"}, usage, seconds=age, is_evicted=is_evicted))
        crowd.append(_Held(priority, size))
    return holders, crowd
